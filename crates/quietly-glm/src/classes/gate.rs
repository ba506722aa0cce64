//! The gate: one private comparison chooses among models that were released.
//!
//! # Proof: differences of log losses
//!
//! Given everything released before, every candidate is a fixed function of a row, and so is the row's vector of differences: the log loss
//! of each candidate less that of the linear arm, clipped to [-1, 1], the vector clipped to norm 1. A row that joins or leaves moves the
//! sum by at most 1, a replaced one by at most 2: [`Lattice::clipped_coefficient`] holds what enters to that, floating point counted. A row
//! without a class adds nothing. The choice is post-processing.
//!
//! Mixtures are of scores, so of log-probabilities: log loss is convex in the weight of a mixture, and a mixture is never worse than the
//! worse of its two ends (docs/spec/default.md#2.5).
use quietly_core::{
    lattice::{self, Lattice},
    mechanism::{PlannedRelease, Stage},
    release::BoundedSum,
};
use quietly_engine::error::Error;

use super::{LEAST_NOISE, Rows};
use crate::{
    design_matrix::in_parts,
    run::{Fitting, Weights},
};

/// The release of the gate.
pub const GATE: &str = "differences of log losses";
/// The share of μ² that it takes.
pub(super) const SHARE: f64 = 0.07;
/// Standard deviations of noise that are added to a candidate that must prove itself.
const CAUTION: f64 = 0.5;

/// The stage of the gate, where the budget is worth `mu`.
pub(super) fn stage(mu: f64) -> Stage {
    Stage::new(
        "gate",
        1,
        vec![PlannedRelease::sum(GATE, (1.0 / (SHARE.sqrt() * mu)).max(LEAST_NOISE))],
    )
}

/// A candidate: the share of the linear arm's scores, that of the splines' scores, and whether it must prove itself. The rest of the scores
/// is that of the classes' shares.
struct Candidate {
    linear: f64,
    splines: f64,
    doubtful: bool,
}

/// All but the linear arm. Where there are splines, these must prove themselves; otherwise what is less than the linear arm must.
fn candidates(splines: bool) -> Vec<Candidate> {
    let of = |linear, splines, doubtful| Candidate { linear, splines, doubtful };
    let mut all = vec![of(0.0, 0.0, !splines), of(0.5, 0.0, !splines)];
    if splines {
        all.extend([of(0.5, 0.5, true), of(0.0, 1.0, true)]);
    }
    all
}

/// The log loss of a row of this class whose scores are these; of two classes the first has score 0.
fn log_loss(scores: &[f64], class: usize, least: f64) -> f64 {
    let first: &[f64] = if scores.len() == 1 { &[0.0] } else { &[] };
    let all = || first.iter().chain(scores).copied();
    let top = all().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = all().map(|u| (u - top).exp()).sum();
    let said = all().nth(class).map_or(0.0, |u| (u - top).exp() / total);
    let classes = (first.len() + scores.len()) as f64;
    let least = least.min(0.5 / classes);
    -(least + (1.0 - classes * least) * said).ln()
}

/// What rows are compared by: released models, and the lattice of their sum.
struct Comparison<'a> {
    linear: &'a Weights,
    splines: Option<&'a Weights>,
    candidates: Vec<Candidate>,
    /// The scores that say the classes' shares.
    offsets: &'a [f64],
    /// What no probability is below.
    least: f64,
    lattice: Lattice,
}

impl<'a> Comparison<'a> {
    fn new(
        linear: &'a Weights,
        splines: Option<&'a Weights>,
        offsets: &'a [f64],
        least: f64,
    ) -> Self {
        let candidates = candidates(splines.is_some());
        let lattice = Lattice::for_sums(1.0, candidates.len());
        Comparison { linear, splines, candidates, offsets, least, lattice }
    }

    /// The differences of a row of this class, each clipped.
    fn differences(&self, row: &[f64], class: usize) -> Vec<f64> {
        let plain = self.linear.scores(row);
        let bent = self.splines.map(|splines| splines.scores(row));
        let before = log_loss(&plain, class, self.least);
        let difference = |candidate: &Candidate| {
            let Candidate { linear, splines, .. } = *candidate;
            let of = |(k, offset): (usize, &f64)| {
                let bent = bent.as_ref().map_or(0.0, |bent| splines * bent[k]);
                linear * plain[k] + bent + (1.0 - linear - splines) * offset
            };
            let scores: Vec<f64> = self.offsets.iter().enumerate().map(of).collect();
            (log_loss(&scores, class, self.least) - before).clamp(-1.0, 1.0)
        };
        self.candidates.iter().map(difference).collect()
    }

    /// What the row adds to the sum.
    fn units(&self, row: &[f64], class: usize) -> impl Iterator<Item = i64> {
        let apart = self.differences(row, class);
        let squares: f64 = apart.iter().map(|x| x * x).sum();
        let units = self.lattice.clipped_coefficient(1.0, lattice::norm(squares));
        apart.into_iter().map(move |x| (units * x).round() as i64)
    }
}

/// Asks which candidate is best; the model is the linear arm if none is better.
pub(super) fn choose(
    run: &mut Fitting<'_, '_>,
    rows: &Rows<'_>,
    linear: Weights,
    splines: Option<Weights>,
) -> Result<Weights, Error> {
    let (width, threads) = (run.shape.width, run.releaser.threads());
    let two = run.offsets.len() == 1;
    let comparison = Comparison::new(&linear, splines.as_ref(), &run.offsets, 0.25 / run.rows);
    let size = comparison.candidates.len();
    let sum = rows.features.as_ref().zip(rows.target.as_ref()).map(|(features, target)| {
        let parts = in_parts(threads, 0..target.len(), |range| {
            let (mut sum, mut row) = (vec![0_i64; size], vec![0.0; width]);
            for i in range.filter(|&i| !target[i].is_nan()) {
                features.row(i, width).fill(&mut row);
                let class = if two { usize::from(target[i] > 0.0) } else { target[i] as usize };
                sum.iter_mut().zip(comparison.units(&row, class)).for_each(|(s, q)| *s += q);
            }
            sum
        });
        let total = |j: usize| parts.iter().map(|p| i128::from(p[j])).sum::<i128>();
        (0..size).map(|j| lattice::clamped(total(j))).collect()
    });
    let (candidates, lattice) = (comparison.candidates, comparison.lattice);
    let (sums, noise) = run.releaser.sum(GATE, BoundedSum::new(sum, lattice.sensitivity()))?;
    let mut best = (0.0, None);
    for (sum, candidate) in sums.iter().zip(&candidates) {
        let worse = sum + if candidate.doubtful { CAUTION * noise } else { 0.0 };
        if worse < best.0 {
            best = (worse, Some(candidate));
        }
    }
    let Some(Candidate { linear: of_linear, splines: of_splines, .. }) = best.1 else {
        return Ok(linear);
    };
    let mut model = linear.times(*of_linear);
    let rest = 1.0 - of_linear - of_splines;
    for ((intercept, _), offset) in model.outputs.iter_mut().zip(&run.offsets) {
        *intercept += rest * offset;
    }
    let splines = splines.filter(|_| *of_splines > 0.0);
    model.splines = splines.map(|splines| Box::new(splines.times(*of_splines)));
    Ok(model)
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    /// No row adds more than its bound, which rows reach: without the clip of the vector they would exceed it.
    #[test]
    fn a_row_adds_at_most_one_to_the_sum_of_differences() {
        let mut random = Random(8);
        let (mut most, mut plain) = (0.0_f64, 0.0_f64);
        for k in 0..2000 {
            let far = [0.1, 3.0, 1e4, 1e200][k % 4];
            let several = k % 3 == 0;
            let mut weights = || {
                let mut output = || {
                    let mut number = || far * random.number();
                    (number(), vec![number(), number()])
                };
                let outputs = (0..if several { 3 } else { 1 }).map(|_| output()).collect();
                Weights { outputs, ..Weights::from((0.0, Vec::new())) }
            };
            let (linear, bent) = (weights(), weights());
            let offsets = if several { vec![0.3, -2.0, 1.7] } else { vec![-1.5] };
            let splines = (k % 2 == 0).then_some(&bent);
            let comparison = Comparison::new(&linear, splines, &offsets, 1e-4);
            let (row, class) = ([random.number(), random.number()], k % 2);
            let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let units: Vec<f64> = comparison.units(&row, class).map(|q| q as f64).collect();
            most = most.max(norm(&units) / comparison.lattice.bound() as f64);
            plain = plain.max(norm(&comparison.differences(&row, class)));
        }
        assert!(most <= 1.0 && most > 0.999, "{most}");
        assert!(plain > 1.4, "{plain}");
    }

    #[test]
    fn losses_are_those_of_the_probabilities() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(log_loss(&[0.0], 1, 0.0), std::f64::consts::LN_2);
        near(log_loss(&[2.0], 1, 0.0), (1.0 + (-2.0_f64).exp()).ln());
        near(log_loss(&[2.0], 0, 0.0), (1.0 + 2.0_f64.exp()).ln());
        near(log_loss(&[1e300, 0.0, 0.0], 1, 0.01), 0.01_f64.ln().abs());
        near(log_loss(&[5.0, 5.0, 5.0], 2, 0.0), 3.0_f64.ln());
    }
}
