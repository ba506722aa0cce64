//! Private feature learning: what the paper's figure shows, and what is measured.
//!
//! *Understanding Private Learning From Feature Perspective*, anonymous submission.
use std::path::Path;

use clap::ValueEnum;
use quietly_cli::{error::Failure, terminal::Progress};

use crate::reproduce::{
    Draw, Size,
    features::{
        cells::{Cell, Kind, Outcomes},
        figure::Figure,
        phases::Phases,
    },
    report::Report,
};

mod cells;
mod figure;
mod images;
mod phases;
mod png;
mod sheet;

const ABOUT: &str = "Pictures of two patches: the label times a signal v, and normal noise of variance 1 orthogonal to it. The network has 10 \
    filters for each label, the third power of the ReLU, weights that start at 0.001, steps of 0.01. The paper states neither the number of \
    pictures nor the scale of the noise: 50 pictures of 1000 numbers fit what it describes.";
const KINDS: &str = "\"Published\" noise has standard deviation sqrt(2 ln(1.25/delta))/(epsilon n m) in each of the steps, and nothing is clipped. It \
    gives NO guarantee at any epsilon. \"Honest\" is this library's plan: gradients clipped to 0.1, all steps together within epsilon at \
    delta 1e-5, add-remove. All pictures are synthetic; what is shown of a run is computed from them and is no release.";

/// What there is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    Figure,
    Phases,
    Images,
}

/// Measures, judges and fills the report: all of it, or one part. Pictures go on from what is in `unfinished`.
pub(super) fn run(
    data: Option<&Path>,
    only: Option<Part>,
    draw: Draw,
    unfinished: &Path,
    progress: &Progress,
    report: &mut Report,
) -> Result<(), Failure> {
    let (figure, phases) = (Figure::new(draw.size), Phases::new(draw.size));
    let wanted = |part| only.is_none_or(|only| only == part);
    report.about.push(match draw.size {
        Size::Full => format!("A full run with seed {}.", draw.seed),
        Size::Quick => format!(
            "A quick run with seed {}: one draw of each cell, and no table of more than 200 pictures (2000 for networks of \
             convolutions). Verdicts near a limit may differ in a full run.",
            draw.seed
        ),
        Size::Tiny => "A test of the command: these numbers mean nothing.".into(),
    });
    let mut asked = if wanted(Part::Figure) { figure.cells() } else { vec![] };
    for cell in if wanted(Part::Phases) { phases.cells() } else { vec![] } {
        if !asked.contains(&cell) {
            asked.push(cell);
        }
    }
    if !asked.is_empty() {
        report.about.extend([ABOUT.into(), KINDS.into()]);
    }
    let outcomes = Outcomes::measure(asked, draw, progress)?;
    if wanted(Part::Figure) {
        report.about.push(figure.about());
        report.claims.extend(figure.claims(&outcomes));
        report.tables.extend(figure.grids(&outcomes));
        report.pictures.extend(figure.pictures(&outcomes));
    }
    if wanted(Part::Phases) {
        report.about.push(phases.about());
        report.claims.extend(phases.claims(&outcomes));
        report.tables.extend(phases.grids(&outcomes));
        report.pictures.extend(phases.pictures(&outcomes));
    }
    if wanted(Part::Figure) || wanted(Part::Phases) {
        report.claims.push(outcomes.agreement());
    }
    if wanted(Part::Images) {
        images::run(data, draw, unfinished, progress, report)?;
    }
    Ok(())
}
