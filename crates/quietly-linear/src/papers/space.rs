//! The space that a recipe descends in: features scaled alike, or whitened.
use quietly_engine::{
    backend::Batch,
    error::Error,
    histogram::bin_value,
    linalg::dot,
    query::ClippedGradients,
    transform::RowTransform,
    whitening::{Preconditioner, Whitening},
};

use super::{Clip, Recipe, Run};
use crate::full_batch::{self, NORM};

/// The constant among the features while they are whitened.
const CONSTANT: f64 = 0.5;

/// Rows are cut to so many times √d once they are whitened.
const WHITENED: f64 = 1.7;

/// A public map of the rows, under which features have mean square one.
pub(super) enum Space {
    /// Each feature scaled alike, and a constant 1 after them.
    Plain { scale: f64, width: usize },
    /// Whitened, and a constant after them.
    Whitened(Preconditioner),
}

impl Space {
    /// Asks for the norm of the rows, and for their second moment if they are to be whitened. Of public rows nothing need
    /// be asked.
    pub(super) fn new(run: &mut Run<'_>, recipe: &Recipe) -> Result<Self, Error> {
        let width = run.shape.width;
        if let (Clip::Public { .. }, Some(public)) = (recipe.clip, run.public) {
            let squares = dot(public.features(), public.features()) / public.rows().max(1) as f64;
            let scale = (width as f64 / squares.max(1e-12)).sqrt();
            return Ok(Space::Plain { scale, width });
        }
        if recipe.whitenings == 0 {
            let scale = (width as f64).sqrt() / feature_norm(run)?;
            return Ok(Space::Plain { scale, width });
        }
        let norm = 1.1 * full_batch::row_norm(width, None, run.backend, run.releaser)?;
        let start = Whitening::new(width, CONSTANT, norm, run.shape.rows);
        let later = WHITENED * (width as f64 + 1.0).sqrt();
        let cuts: Vec<f64> =
            (0..recipe.whitenings).map(|round| if round == 0 { norm } else { later }).collect();
        let whitening =
            full_batch::whiten(start, &cuts, None, run.backend, run.releaser, &mut || Ok(()))?;
        // With no noise to spare, the metric of clipping is the whitened one.
        Ok(Space::Whitened(Preconditioner::new(whitening, run.shape.rows, 1e9)))
    }

    /// What a feature is multiplied with, where all are alike.
    pub(super) fn scale(&self) -> f64 {
        match self {
            Space::Plain { scale, .. } => *scale,
            Space::Whitened(_) => 1.0,
        }
    }

    /// The map of rows into this space.
    pub(super) fn transform(&self, width: usize) -> RowTransform {
        match self {
            Space::Plain { scale, width } => RowTransform::scaled(*width, *scale, 1.0),
            Space::Whitened(preconditioner) => preconditioner.transform(width),
        }
    }

    /// The intercept and the weights of the table's own columns.
    pub(super) fn unmap(&self, mut w: Vec<f64>) -> (f64, Vec<f64>) {
        match self {
            Space::Plain { scale, .. } => {
                let intercept = w.pop().expect("there is a constant");
                (intercept, w.into_iter().map(|w| w * scale).collect())
            }
            Space::Whitened(preconditioner) => {
                let (weights, constant) = preconditioner.unmap(&preconditioner.back(w));
                (constant * CONSTANT, weights)
            }
        }
    }
}

/// The private median of the rows' norms, without a constant.
fn feature_norm(run: &mut Run<'_>) -> Result<f64, Error> {
    let width = run.shape.width;
    let most = (width as f64).sqrt();
    // Norms crowd in many dimensions: eighth powers of two tell them apart.
    let grid: Vec<f64> = (-96..=0).map(|k| most * 2.0_f64.powf(f64::from(k) / 8.0)).collect();
    let query = ClippedGradients::norms(RowTransform::plain(width, 0.0), grid.clone());
    let counts = run.query(&Batch::All, &query)?.histogram();
    Ok(bin_value(&grid, run.releaser.quantile(NORM, 0.5, counts)?))
}
