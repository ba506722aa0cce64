//! Private feature learning: what the paper's figure shows, and what is measured.
//!
//! *Understanding Private Learning From Feature Perspective*, anonymous submission.
use crate::{
    failure::Failure,
    reproduce::{
        Draw, Size,
        features::{
            cells::{Cell, Kind, Outcomes},
            figure::Figure,
            phases::Phases,
        },
        report::Report,
    },
    screen::Progress,
};

mod cells;
mod figure;
mod phases;

const ABOUT: &str = "Pictures of two patches: the label times a signal v, and normal noise of variance 1 orthogonal to it. The network has 10 \
    filters for each label, the third power of the ReLU, weights that start at 0.001, steps of 0.01. The paper states neither the number of \
    pictures nor the scale of the noise: 50 pictures of 1000 numbers fit what it describes.";
const KINDS: &str = "\"Published\" noise has standard deviation sqrt(2 ln(1.25/delta))/(epsilon n m) in each of the steps, and nothing is clipped. It \
    gives NO guarantee at any epsilon. \"Honest\" is this library's plan: gradients clipped to 0.1, all steps together within epsilon at \
    delta 1e-5, add-remove. All pictures are made up; what is shown of a run is computed from them and is no release.";

/// Measures, judges and fills the report.
pub(super) fn run(draw: Draw, progress: &Progress, report: &mut Report) -> Result<(), Failure> {
    let (figure, phases) = (Figure::new(draw.size), Phases::new(draw.size));
    report.about.push(match draw.size {
        Size::Full => format!("A full run with seed {}.", draw.seed),
        Size::Quick => format!(
            "A quick run with seed {}: one draw of each cell, and no table of more than 200 pictures. Verdicts near a limit may differ in \
             a full run.",
            draw.seed
        ),
        Size::Tiny => "A test of the command: these numbers mean nothing.".into(),
    });
    report.about.extend([ABOUT.into(), KINDS.into(), figure.about(), phases.about()]);
    let mut asked = figure.cells();
    for cell in phases.cells() {
        if !asked.contains(&cell) {
            asked.push(cell);
        }
    }
    let outcomes = Outcomes::measure(asked, draw, progress)?;
    report.claims = figure.claims(&outcomes);
    report.claims.extend(phases.claims(&outcomes));
    report.claims.push(outcomes.agreement());
    report.tables = figure.grids(&outcomes);
    report.tables.extend(phases.grids(&outcomes));
    report.pictures = figure.pictures(&outcomes);
    report.pictures.extend(phases.pictures(&outcomes));
    Ok(())
}
