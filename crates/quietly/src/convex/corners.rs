//! How much noise hides a row in the gradient of an objective.
//!
//! Kifer, Smith, Thakurta, *Private Convex Empirical Risk Minimization and High-dimensional Regression*, COLT 2012; Iyengar,
//! Near, Song, Thakkar, Thakurta, Wang, *Towards Practical Differentially Private Convex Optimization*, S&P 2019.
//!
//! # Theorem
//!
//! Let J(w) = Σ q(⟨w, z_i⟩, y_i) + Λ/2·‖w‖² + ⟨b, w⟩ + r(w) over a convex set, b ~ N(0, σ²I), r convex, ‖z_i‖ ≤ R. Then argmin J is
//! (ε, δ)-differentially private if Σ_c δ_G(c/σ, ε - D) ≤ δ, where δ_G(μ, ·) is the exact curve of a Gaussian shifted by μ, and the
//! corners c and the determinant D are those below.
//!
//! *Proof.* First without a set and r ∈ C². b ↦ w is one to one, b(w) = -∇(J - ⟨b, ·⟩)(w). The ratio of the densities at w is
//! exp((‖b + v‖² - ‖b‖²)/2σ²)·det H/det H', where v is the difference of the two gradients at w and H, H' are the Hessians
//! without and with it.
//! *Determinant.* Both are M ⪰ ΛI plus the part A of one row: 1 ≤ det(M + A)/det M ≤ Π(1 + λ_i(A)/Λ). With one score A = q''·zzᵀ,
//! so D = ln(1 + βR²/Λ) with q'' ≤ β; for a replaced row the ratio is one such factor over another that is at least 1. With K
//! scores A = (diag p - ppᵀ) ⊗ zzᵀ has rank K - 1 and trace (1 - Σp²)R² ≤ (1 - 1/K)R²; the product is largest where eigenvalues
//! are equal: D = (K - 1)·ln(1 + R²/(KΛ)).
//! *Corners.* v = s·z (a row that is there or not) or s·z - s'·z' (a replaced one), where s is the row's slope at w: unknown, but
//! within an interval, or a simplex, that the row fixes. ‖b + v‖² is convex in s, hence largest at a corner, and
//! (1 - e^(ε - D - max))₊ ≤ Σ_corners (1 - e^(ε - D - ·))₊. At a corner v is one fixed vector, and the term is the curve of a Gaussian
//! shifted by ‖v‖; a corner v = 0 adds nothing.
//!
//! * Slopes of one sign, in [0, L] or [-L, 0] (logistic, hinge: the label fixes the sign): a row that is there or not has the
//!   corners 0 and LR; a replaced one 0, LR, LR and at most 2LR.
//! * Slopes in [-L, L]: ±LR; or ±p ± p' with ‖p‖, ‖p'‖ ≤ LR, of which two measure ‖p + p'‖ and two ‖p - p'‖, whose squares sum to
//!   at most 4L²R²: the largest sum over all such pairs counts.
//! * K scores: slopes p - e_y have the corners e_j - e_y: K - 1 of norm √2·R; a replaced row (K - 1)² of at most 2√2·R and
//!   2(K - 1) of √2·R.
//!
//! With a set or a rougher r: take smooth penalties that increase to it. Minimisers converge for every b, and differential
//! privacy survives convergence in law. Where slopes are held to ±L ([`Glm`](super::glm::Glm)), q'' jumps; mollify. ∎
use quietly_accounting::{Event, Neighbours, delta};

use super::loss::Loss;
use crate::error::Error;

/// How a row can move a gradient: (norm in units of the longest row's gradient, how many corners).
fn corners(loss: Loss, neighbours: Neighbours) -> Vec<Vec<(f64, f64)>> {
    use Neighbours::{AddRemove, ReplaceOne};
    let others = (loss.outputs() as f64 - 1.0).max(1.0);
    match (loss.sign_known() || loss.outputs() > 1, neighbours) {
        (true, AddRemove) => vec![vec![(1.0, others)]],
        (true, ReplaceOne) => vec![vec![(2.0, others * others), (1.0, 2.0 * others)]],
        (false, AddRemove) => vec![vec![(1.0, 2.0)]],
        // Angles in steps; between two of them neither norm exceeds its larger end.
        (false, ReplaceOne) => (0..64)
            .map(|k| {
                let angle = |k: u8| f64::from(k) / 64.0 * std::f64::consts::FRAC_PI_4;
                vec![(2.0 * angle(k).cos(), 2.0), (2.0 * angle(k + 1).sin(), 2.0)]
            })
            .collect(),
    }
}

/// D: what the determinants may add to ε, where no row's second derivative exceeds `smooth` and the objective is
/// `strong`-convex without it.
pub(crate) fn determinant(loss: Loss, smooth: f64, strong: f64) -> f64 {
    match loss {
        // smooth = R²/2, and the trace is (1 - 1/K)·R².
        Loss::Softmax { classes } => {
            let k = classes as f64;
            (k - 1.0) * (2.0 * smooth / (k * strong)).ln_1p()
        }
        _ => (smooth / strong).ln_1p(),
    }
}

/// The least strong convexity for which determinants add no more than `share` to ε.
pub(crate) fn strong_enough(loss: Loss, smooth: f64, share: f64) -> f64 {
    let above = 1.0 + 1e-9;
    above * match loss {
        Loss::Softmax { classes } => {
            let k = classes as f64;
            2.0 * smooth / (k * (share / (k - 1.0)).exp_m1())
        }
        _ => smooth / share.exp_m1(),
    }
}

/// σ over the longest gradient of a row: the least for which the corners cost no more than (ε, δ) after the determinants.
///
/// # Errors
///
/// [`Error::Accounting`] if the budget is out of the accountant's range.
pub(crate) fn noise(
    loss: Loss,
    neighbours: Neighbours,
    epsilon: f64,
    most: f64,
) -> Result<f64, Error> {
    let cases = corners(loss, neighbours);
    let cost = |sigma: f64| -> Result<f64, Error> {
        let mut worst = 0.0_f64;
        for case in &cases {
            let mut sum = 0.0;
            for &(norm, times) in case {
                // More noise than the accountant knows costs no more than the most it knows.
                let event = Event::gaussian((sigma / norm).min(1e5))?;
                sum += times * delta(&event, Neighbours::AddRemove, epsilon)?.upper;
            }
            worst = worst.max(sum);
        }
        Ok(worst)
    };
    let (mut low, mut high) = (0.2_f64, 1e5_f64);
    // Where even little noise is enough, that much is taken.
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if cost(middle)? <= most { high = middle } else { low = middle }
    }
    Error::unless(cost(high)? <= most, "epsilon", "large enough for the noise to be drawn", epsilon)?;
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convex::glm::Glm;

    /// The exact δ of argmin J in one dimension: its density is that of b at b(w), times b'(w).
    fn exact(glm: Glm, strong: f64, sigma: f64, epsilon: f64, here: &[(f64, f64)], there: &[(f64, f64)]) -> f64 {
        let density = |rows: &[(f64, f64)], w: f64| {
            let (mut gradient, mut bend) = (strong * w, strong);
            for &(z, y) in rows {
                let mut slope = [w * z];
                let mut curve = [0.0];
                glm.bends(&slope, y, &mut curve);
                glm.slopes(&mut slope, y);
                gradient += slope[0] * z;
                bend += curve[0] * z * z;
            }
            (-0.5 * (gradient / sigma).powi(2)).exp() / (sigma * (2.0 * std::f64::consts::PI).sqrt()) * bend
        };
        let (steps, far) = (6_000, 12.0 * sigma / strong + 4.0);
        let width = 2.0 * far / f64::from(steps);
        let point = |k: i32| -far + width * (f64::from(k) + 0.5);
        let excess = |w: f64| (density(here, w) - epsilon.exp() * density(there, w)).max(0.0);
        (0..steps).map(|k| excess(point(k)) * width).sum()
    }

    /// Spec 11.5: the exact δ in one dimension is within the theorem's, for extreme rows under both relations.
    #[test]
    fn exact_integration_stays_within_the_theorem() {
        let glm = |loss, steepest, bend| Glm { loss, steepest, bend };
        let losses = [
            glm(Loss::Logistic, 1.0, 0.25),
            glm(Loss::SmoothHinge { width: 0.5 }, 1.0, 1.0),
            glm(Loss::Huber { width: 0.7 }, 0.7, 1.0),
            glm(Loss::SmoothQuantile { level: 0.3, width: 0.5 }, 0.7, 1.0),
        ];
        let others = [(1.0, 1.0), (-0.5, 1.0), (0.3, -1.0)];
        let rows = [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (0.4, -1.0)];
        let mut tightest = 0.0_f64;
        for glm in losses {
            for (epsilon, most) in [(0.5, 1e-3), (2.0, 1e-5)] {
                let strong = strong_enough(glm.loss, glm.bend, 0.1 * epsilon);
                let left = epsilon - determinant(glm.loss, glm.bend, strong);
                assert!(left >= 0.9 * epsilon - 1e-9);
                for neighbours in [Neighbours::AddRemove, Neighbours::ReplaceOne] {
                    let sigma = glm.steepest * noise(glm.loss, neighbours, left, most).unwrap();
                    for row in rows {
                        let with = [&others[..], &[row]].concat();
                        let pairs: Vec<_> = match neighbours {
                            Neighbours::AddRemove => {
                                vec![(with.clone(), others.to_vec()), (others.to_vec(), with)]
                            }
                            _ => rows
                                .iter()
                                .map(|&other| (with.clone(), [&others[..], &[other]].concat()))
                                .collect(),
                        };
                        for (here, there) in pairs {
                            let found = exact(glm, strong, sigma, epsilon, &here, &there);
                            assert!(found <= most, "{glm:?} {epsilon} {found:e}");
                            tightest = tightest.max(found / most);
                        }
                    }
                }
            }
        }
        assert!(tightest > 0.01, "{tightest}");
    }

    /// The control: with six tenths of the noise a pair of tables is told apart more often than promised.
    #[test]
    fn less_noise_is_not_enough() {
        let glm = Glm { loss: Loss::Logistic, steepest: 1.0, bend: 0.25 };
        let strong = strong_enough(glm.loss, glm.bend, 0.05);
        let left = 0.5 - determinant(glm.loss, glm.bend, strong);
        let sigma = 0.6 * noise(glm.loss, Neighbours::AddRemove, left, 1e-3).unwrap();
        // A row that is far from learnt: its slope stays near one.
        let others: Vec<(f64, f64)> = vec![(1.0, -1.0); 200];
        let with = [&others[..], &[(1.0, 1.0)]].concat();
        let found = exact(glm, strong, sigma, 0.5, &others, &with)
            .max(exact(glm, strong, sigma, 0.5, &with, &others));
        assert!(found > 1e-3, "{found:e}");
    }

    /// One Gaussian of shift 1 is what a row that is there or not costs where slopes have one sign.
    #[test]
    fn noise_is_that_of_a_gaussian_where_the_sign_is_known() {
        let (epsilon, most) = (1.0, 1e-5);
        let mu = quietly_accounting::gaussian_mu(epsilon, most).unwrap();
        let logistic = noise(Loss::Logistic, Neighbours::AddRemove, epsilon, most).unwrap();
        assert!((logistic * mu - 1.0).abs() < 1e-6, "{}", logistic * mu);
        let of = |loss, neighbours| noise(loss, neighbours, epsilon, most).unwrap() / logistic;
        let huber = Loss::Huber { width: 1.0 };
        assert!((1.03..1.06).contains(&of(huber, Neighbours::AddRemove)));
        assert!((2.0..2.001).contains(&of(Loss::Logistic, Neighbours::ReplaceOne)));
        assert!((2.06..2.12).contains(&of(huber, Neighbours::ReplaceOne)));
        let three = Loss::Softmax { classes: 3 };
        assert!((1.03..1.06).contains(&of(three, Neighbours::AddRemove)));
    }
}
