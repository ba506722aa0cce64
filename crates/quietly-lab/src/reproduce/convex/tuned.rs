//! The default beside rivals that are tuned on the test rows: the most that those could do.
//!
//! Each rival runs with all settings of a grid, and of each cell the setting with the least mean test loss counts. That cannot be
//! released: the choice looks at test rows, and at every fit, and is not paid for. The default has no settings.
use super::{
    claims::{Place, SAME},
    figures::{Cell, Figures, Outcomes},
    problem::{Entrant, Kind, LOCAL, Problem, Setting},
};
use crate::reproduce::{
    Size,
    claim::{Check, Claim},
    report::{Entry, Grid},
};

const AUTO: &str = "auto";
const SGD: &str = "dp-sgd";
const PSGD: &str = "sc-psgd";

/// Steps of DP-SGD and their lengths.
const STEPS: [u64; 3] = [10, 40, 160];
const LENGTHS: [f64; 4] = [0.5, 2.0, 8.0, 32.0];
/// Clipping norms, as shares of the gradient norm of a row of norm 1 at w = 0.
const CLIP: f64 = 0.3;
/// Passes of SC-psgd, and the lengths of its steps as shares of 2/(β + λ), the longest that its proof allows.
const PASSES: [u64; 3] = [1, 3, 10];
const SHARES: [f64; 8] = [1.0, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.003];

/// The runs.
pub(super) fn contest(size: Size) -> Figures {
    let figures = Figures { sizes: vec![], runs: 6, entrants: all, ..Figures::new(size) };
    match size {
        Size::Full => figures,
        Size::Quick => Figures { tables: 1, runs: 3, entrants: few, ..figures },
        Size::Tiny => Figures { runs: 2, entrants: few, ..figures },
    }
}

pub(super) fn about(contest: &Figures) -> String {
    let settings = |base| {
        let of = |e: &&Entrant| e.kind == Kind::Tuned && e.base == base;
        (contest.entrants)(Problem::Linear).iter().filter(of).count()
    };
    format!(
        "The default beside ORACLE-TUNED rivals, TUNING NOT PAID FOR: budgets {:?} at n = {}, {} runs. DP-SGD (Poisson samples of a tenth \
         of the rows) has {} settings of steps, step size and clip, SC-psgd {} of passes and step size, their defaults among them; for every cell \
         the one with the least mean test loss over these very runs is taken. \"auto\" has one setting, its default. All first pay for a private \
         bound on rows. All methods see the same samples.",
        contest.epsilons,
        contest.rows,
        contest.runs,
        settings(SGD),
        settings(PSGD)
    )
}

/// Who takes part: the default, all that localise, and the rivals in every setting.
fn all(problem: Problem) -> Vec<Entrant> {
    let local = LOCAL.into_iter().filter(|base| problem.suits(base));
    let mut all = vec![Entrant::plain()];
    all.extend(local.chain([AUTO]).filter_map(|base| Entrant::new(Kind::Found, base)));
    for (base, settings) in [(SGD, sgd(problem)), (PSGD, psgd(problem))] {
        let plain = Entrant::new(Kind::Tuned, base);
        let set = |setting| Some(plain?.set(setting));
        all.extend(plain.into_iter().chain(settings.into_iter().filter_map(set)));
    }
    all
}

/// The same with a sixth of the settings.
fn few(problem: Problem) -> Vec<Entrant> {
    let (tuned, others): (Vec<_>, Vec<_>) =
        all(problem).into_iter().partition(|e| e.setting.is_some());
    others.into_iter().chain(tuned.into_iter().skip(2).step_by(6)).collect()
}

fn sgd(problem: Problem) -> Vec<Setting> {
    let clip = CLIP * problem.loss().derivative(0.0, 1.0).abs();
    let mut settings = vec![];
    for steps in STEPS {
        for step_size in LENGTHS {
            settings.extend([None, Some(clip)].map(|clip| Setting { steps, step_size, clip }));
        }
    }
    settings
}

fn psgd(problem: Problem) -> Vec<Setting> {
    // The published smoothness has the ridge in it; a little less than the bound, for rounding.
    let longest = 1.999 / (problem.published_constants().1 + problem.ridge());
    let mut settings = vec![];
    for steps in PASSES {
        let setting = |share| Setting { steps, step_size: share * longest, clip: None };
        settings.extend(SHARES.map(setting));
    }
    settings
}

impl Setting {
    fn name(&self) -> String {
        let clip = self.clip.map_or(String::new(), |clip| format!(", clip {clip:.2}"));
        format!("{} of {:.3}{clip}", self.steps, self.step_size)
    }
}

impl Outcomes {
    /// The best of some entrants in a place, with its mean and standard error.
    fn best_of(
        &self,
        (table, problem, epsilon): Place,
        wanted: impl Fn(&Entrant) -> bool,
    ) -> Option<(&Cell, (f64, f64))> {
        let here = self.cells.iter().filter(|c| (c.table, c.problem) == (table, problem));
        let here = here.filter(|c| c.epsilon == epsilon || c.entrant.kind == Kind::Plain);
        let means = here.filter(|c| wanted(&c.entrant)).filter_map(|c| Some((c, c.mean()?)));
        means.min_by(|a, b| a.1.0.total_cmp(&b.1.0))
    }

    fn is(kind: Kind, base: &str) -> impl Fn(&Entrant) -> bool {
        move |e| (e.kind, e.base) == (kind, base)
    }

    fn is_local(entrant: &Entrant) -> bool {
        LOCAL.contains(&entrant.base)
    }

    /// How much the default loses to the best of some entrants; negative where it is ahead.
    fn behind(&self, place: Place, rivals: impl Fn(&Entrant) -> bool) -> Option<f64> {
        let auto = self.best_of(place, Self::is(Kind::Found, AUTO))?.1.0;
        Some(auto - self.best_of(place, rivals)?.1.0)
    }

    pub(super) fn contest_claims(&self) -> [Claim; 3] {
        let places = self.places(&Problem::ALL);
        let checks = |rivals: &dyn Fn(&Entrant) -> bool, slack| {
            let check =
                |place: &Place| Check::below(self.tell(*place), self.behind(*place, rivals), slack);
            places.iter().map(check).collect()
        };
        let ours = "this library";
        [
            Claim::new(
                "auto, untuned, is within 0.001 of oracle-tuned DP-SGD (tuning not paid for) in every cell",
                ours,
                checks(&Self::is(Kind::Tuned, SGD), SAME),
            ),
            Claim::new(
                "auto is ahead of every localisation method in every cell",
                ours,
                checks(&Self::is_local, 0.0),
            ),
            Claim::new(
                "auto, untuned, is ahead of oracle-tuned SC-psgd (tuning not paid for) in every cell",
                ours,
                checks(&Self::is(Kind::Tuned, PSGD), 0.0),
            ),
        ]
    }

    /// A row for every cell.
    pub(super) fn contest_grid(&self) -> Grid {
        let mut columns: Vec<String> = ["table", "problem", "epsilon"].map(String::from).into();
        for name in ["no noise", AUTO, "tuned DP-SGD", "tuned SC-psgd", "best localisation"] {
            columns.extend([name.into(), format!("{name}, s.e.")]);
        }
        columns.extend(
            ["DP-SGD's setting", "SC-psgd's setting", "which localisation"].map(String::from),
        );
        columns.extend(
            ["within 0.001 of DP-SGD", "ahead of localisation", "ahead of SC-psgd"]
                .map(String::from),
        );
        let row = |&place: &Place| {
            let (table, problem, epsilon) = place;
            let rivals: [&dyn Fn(&Entrant) -> bool; 5] = [
                &Self::is(Kind::Plain, "no noise"),
                &Self::is(Kind::Found, AUTO),
                &Self::is(Kind::Tuned, SGD),
                &Self::is(Kind::Tuned, PSGD),
                &Self::is_local,
            ];
            let found = rivals.map(|rival| self.best_of(place, rival));
            let mut row = vec![
                Entry::Word(self.tables[table].into()),
                Entry::Word(problem.name().into()),
                Entry::Word(epsilon.to_string()),
            ];
            row.extend(found.iter().flat_map(|found| match found {
                Some((_, (mean, error))) => [Entry::Fine(*mean), Entry::Number(*error)],
                None => [Entry::Nothing, Entry::Nothing],
            }));
            let chosen = |cell: &Cell| match cell.entrant.setting {
                Some(setting) => setting.name(),
                None if cell.entrant.kind == Kind::Tuned => "default".into(),
                None => cell.entrant.name(),
            };
            let word = |word: Option<String>| word.map_or(Entry::Nothing, Entry::Word);
            row.extend(found[2..].iter().map(|f| word(f.map(|(cell, _)| chosen(cell)))));
            let slack = [SAME, 0.0, 0.0];
            row.extend([2, 4, 3].iter().zip(slack).map(|(i, slack)| {
                let behind = self.behind(place, rivals[*i]);
                word(behind.map(|b| if b <= slack { "yes" } else { "NO" }.into()))
            }));
            row
        };
        Grid {
            title: format!("The default beside oracle-tuned rivals, at n = {}", self.rows),
            note: "Mean test loss and its standard error. TUNING IS NOT PAID FOR: settings (steps or passes, step size, clip) are those \
                   with the least test loss in the cell, chosen after the fact. \"auto\" is what one gets without choosing anything."
                .into(),
            columns,
            rows: self.places(&Problem::ALL).iter().map(row).collect(),
        }
    }
}
