//! Private networks: what Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert and Kloft say, and what is measured.
//!
//! *Population Risk Bounds for Kolmogorov–Arnold Networks Trained by DP-SGD with Correlated Noise*.
use std::path::Path;

use clap::ValueEnum;
use quietly_cli::{error::Failure, terminal::Progress};

use crate::reproduce::{
    Draw, Size,
    kan::{
        contest::Contest, houses::Houses, lambda::Lambdas, rates::Rates, runs::Outcomes,
        task::Task, walk::Walk,
    },
    report::Report,
};

mod contest;
mod houses;
mod lambda;
mod rates;
mod runs;
mod task;
mod walk;

/// What there is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Networks beside each other and beside logistic regression
    Contest,
    /// A network and models of weighted sums on a real table of houses
    Houses,
    /// What mixed noise gains, against independent noise on Poisson samples
    Lambda,
    /// Accuracy as rows and the budget grow
    Rates,
    /// What is left of the noise of all steps
    Noise,
}

const ABOUT: &str = "Product: ten numbers within [-1, 1], the class is the sign of 3 x1 x2 + 0.7 sin(pi x3), rows nearer than 0.15 to the border left \
    out; no sum of functions of single columns separates the classes. Real tables are split 75/25 by seed, ranges are those of the \
    schema. delta is 1e-5, add-remove; every epsilon is certified by this library's accountant for the sampler that ran. Numbers are \
    accuracies on test rows, mean over seeds and its standard error; a seed draws rows and noise, and the first weights \
    are the same for all. Nothing is tuned: step size, clip and shape are this library's defaults.";
const BINS: &str = "\"Bins\" are batches in which each row has one secret place in every pass; lambda is the part of a step's noise that the next step \
    takes back. The published baseline for lambda > 0 is lambda = 0 on the same bins. The right one is Poisson samples with independent \
    noise: same batches, same passes, but their own, cheaper price. The paper draws batches of one size and charges them by a theorem that \
    is false for them (F.8, see the tests of the accountant); those batches are not in this table.";

/// Measures, judges and fills the report: all of it, or one part.
pub(super) fn run(
    data: Option<&Path>,
    only: Option<Part>,
    draw: Draw,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    report.about.push(match draw.size {
        Size::Full => format!("A full run with seed {}.", draw.seed),
        Size::Quick => format!(
            "A quick run with seed {}: three draws of each cell and fewer cells. Verdicts near a limit may differ in a full run.",
            draw.seed
        ),
        Size::Tiny => "A test of the command: these numbers mean nothing.".into(),
    });
    report.about.extend([ABOUT.into(), BINS.into()]);
    let (tasks, missing) = Task::all(data, draw)?;
    report.about.extend(missing);
    let wanted = |part| only.is_none_or(|only| only == part);
    let contest = Contest::new(draw.size, if wanted(Part::Contest) { &tasks } else { &[] });
    let lambdas = wanted(Part::Lambda).then(|| Lambdas::new(draw.size));
    let rates = wanted(Part::Rates).then(|| Rates::new(draw.size));
    let mut cells = contest.cells();
    cells.extend(lambdas.iter().flat_map(Lambdas::cells));
    cells.extend(rates.iter().flat_map(Rates::cells));
    let outcomes = Outcomes::measure(cells, &tasks, draw, progress)?;
    if wanted(Part::Contest) {
        report.claims.extend(contest.claims(&outcomes));
        report.tables.extend(contest.grids(&outcomes));
        report.pictures.extend(contest.pictures(&outcomes));
    }
    if let Some(lambdas) = &lambdas {
        let prices = lambdas.price(draw, progress)?;
        report.claims.extend(lambdas.claims(&prices, &outcomes));
        report.tables.push(lambdas.grid(&prices));
        report.pictures.push(lambdas.picture(&prices));
    }
    if let Some(rates) = &rates {
        report.claims.extend(rates.claims(&outcomes));
        report.tables.push(rates.grid(&outcomes));
        report.pictures.extend(rates.pictures(&outcomes));
    }
    if wanted(Part::Houses) {
        match Houses::measure(data, draw, progress)? {
            Err(missing) => report.about.push(missing),
            Ok(houses) => {
                report.claims.push(houses.claim());
                report.tables.push(houses.grid());
            }
        }
    }
    if wanted(Part::Noise) {
        let walk = Walk::measure(draw)?;
        report.claims.push(walk.claim());
        report.pictures.push(walk.picture());
    }
    report.claims.extend(outcomes.certified());
    Ok(())
}
