//! What a classifier makes of a row.
use std::borrow::Cow;

use quietly_engine::link::{Link, sigmoid};

use super::Model;

/// What a classifier says about one row.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Classified {
    /// The place of the likeliest class among those of the schema, from 0.
    pub class: usize,
    /// For two classes: positive for the last of them, and the higher the likelier. Otherwise 0.
    pub score: f64,
    /// The probability of every class; none for a support vector machine, which has no probabilities.
    pub probabilities: Vec<f64>,
}

impl Model {
    /// The class of one encoded row, and how likely each class is.
    ///
    /// Of classes that are equally likely the first is taken.
    ///
    /// # Panics
    ///
    /// If the model is no classifier.
    pub fn classify(&self, features: &[f64]) -> Classified {
        let mut said = self.unbounded(features);
        if let Some(least) = self.least_probability {
            bound(&mut said.probabilities, least);
        }
        said
    }

    fn unbounded(&self, features: &[f64]) -> Classified {
        let scores = self.scores(features);
        match self.link {
            Link::Logistic => {
                let score = scores[0];
                let probabilities = vec![sigmoid(-score), sigmoid(score)];
                Classified { class: usize::from(score > 0.0), score, probabilities }
            }
            Link::Svm => {
                let score = scores[0];
                let class = usize::from(score > 0.0);
                Classified { class, score, probabilities: Vec::new() }
            }
            Link::Softmax => softmax(&scores),
            Link::Linear | Link::Relu | Link::Robust | Link::Quantile => {
                panic!("a {} model has no classes", self.link.name())
            }
        }
    }

    /// The row as it comes to the weights.
    pub(super) fn mapped<'a>(&self, features: &'a [f64]) -> Cow<'a, [f64]> {
        let row: Cow<'a, [f64]> = match &self.expansion {
            Some(expansion) => self.prepared.of(expansion).apply(features).into(),
            None => features.into(),
        };
        match &self.rows {
            Some(map) => map.apply(&row).into(),
            None => row,
        }
    }

    /// The score of a row, or one for every class.
    fn scores(&self, features: &[f64]) -> Vec<f64> {
        let mut scores = self.plain_scores(features);
        if let Some(splines) = &self.splines {
            let add = |(u, more): (&mut f64, f64)| *u = finite(*u + more);
            scores.iter_mut().zip(splines.scores(features)).for_each(add);
        }
        scores
    }

    /// The same without splines.
    fn plain_scores(&self, features: &[f64]) -> Vec<f64> {
        if let Some(network) = &self.network {
            return network.scores(features).into_iter().map(finite).collect();
        }
        let features = &*self.mapped(features);
        if self.link != Link::Softmax {
            return vec![sum(&self.weights, features, self.intercept)];
        }
        let each = self.weights.chunks_exact(features.len().max(1)).zip(&self.intercepts);
        each.map(|(w, intercept)| sum(w, features, *intercept)).collect()
    }
}

/// Brings probabilities that add up to one to at least `least`; their order and their sum stay.
fn bound(probabilities: &mut [f64], least: f64) {
    let classes = probabilities.len() as f64;
    let least = least.min(0.5 / classes.max(1.0));
    probabilities.iter_mut().for_each(|p| *p = least + (1.0 - classes * least) * *p);
}

fn softmax(scores: &[f64]) -> Classified {
    let mut class = 0;
    for (k, score) in scores.iter().enumerate() {
        if *score > scores[class] {
            class = k;
        }
    }
    // The greatest becomes e^0, so that nothing overflows; a difference may be -∞, which e turns into 0.
    let mut probabilities: Vec<f64> = scores.iter().map(|s| (s - scores[class]).exp()).collect();
    let total: f64 = probabilities.iter().sum();
    probabilities.iter_mut().for_each(|p| *p /= total);
    let score = match *scores {
        [first, last] => (last - first).clamp(-f64::MAX, f64::MAX),
        _ => 0.0,
    };
    Classified { class, score, probabilities }
}

/// A weighted sum, brought back into the finite numbers if weights near the greatest of them leave those; a difference of
/// infinities says nothing and counts as 0.
pub(super) fn sum(weights: &[f64], features: &[f64], intercept: f64) -> f64 {
    finite(weights.iter().zip(features).map(|(w, x)| w * x).sum::<f64>() + intercept)
}

pub(super) fn finite(u: f64) -> f64 {
    if u.is_nan() { 0.0 } else { u.clamp(-f64::MAX, f64::MAX) }
}
