//! A second part of a classifier: weights of expanded rows, whose scores are added to those of the plain ones.
use quietly_engine::expansion::{CachedExpander, Expansion};
use quietly_glm::{RowMap, Weights};
use serde::{Deserialize, Serialize};

use super::classes::sum;
use crate::plan::PlanRecord;

/// Weights of expanded rows. The shares that the two parts have in a mixture are multiplied into their weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplinePart {
    /// What is made of the features of a row first.
    expansion: Expansion,
    #[serde(skip)]
    prepared: CachedExpander,
    /// How an expanded row comes to the weights.
    rows: RowMap,
    /// One for every score.
    intercepts: Vec<f64>,
    /// So many for the first score as there are expanded features, then for the second, and so on.
    weights: Vec<f64>,
}

impl SplinePart {
    pub(super) fn new(learnt: Option<Box<Weights>>, plan: &PlanRecord) -> Option<Self> {
        let Weights { outputs, rows, .. } = *learnt?;
        let (intercepts, weights): (Vec<f64>, Vec<Vec<f64>>) = outputs.into_iter().unzip();
        let expansion = plan.algorithm().splines().expect("splines that were planned").clone();
        let (prepared, rows) = (CachedExpander::default(), rows.expect("an arm of scaled rows"));
        Some(SplinePart { expansion, prepared, rows, intercepts, weights: weights.concat() })
    }

    /// What is made of the features of a row.
    pub fn expansion(&self) -> &Expansion {
        &self.expansion
    }

    /// The scores of a row of features.
    pub(super) fn scores(&self, features: &[f64]) -> Vec<f64> {
        let row = self.rows.apply(&self.prepared.of(&self.expansion).apply(features));
        let each = self.weights.chunks_exact(row.len()).zip(&self.intercepts);
        each.map(|(w, intercept)| sum(w, &row, *intercept)).collect()
    }

    /// Whether it goes with so many features and scores.
    pub(super) fn check(&self, features: usize, outputs: usize) -> Result<(), &'static str> {
        if self.expansion.inputs() != features || self.expansion.check().is_err() {
            return Err("the expansion of its \"splines\" does not go with its features");
        }
        let width = self.expansion.width();
        let sizes = self.intercepts.len() == outputs && self.weights.len() == outputs * width;
        let numbers = self.weights.iter().chain(&self.intercepts).all(|w| w.is_finite());
        match sizes && numbers && self.rows.fits(width) {
            true => Ok(()),
            false => Err("the weights of its \"splines\" do not go with its features"),
        }
    }
}
