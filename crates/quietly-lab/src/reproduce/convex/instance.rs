//! The hard instance of the lower bounds: everything about it is known.
//!
//! F(w) = -⟨w, z⟩ + ‖w‖^θ/θ on the unit ball, z the mean of rows in {±d^-½}^d. Its minimiser is z‖z‖^-(θ-2)/(θ-1), and
//! F(w) - F(w*) ≥ 2^(2-θ)/θ · ‖w - w*‖^θ.
use quietly::{Budget, Convex, Key, Loss, Method, Neighbours, Plan, Private, Set, Table};
use quietly_cli::error::Failure;

use super::problem::{ITERATED, SC, delta};
use crate::reproduce::world::Normals;

/// θ/(θ-1).
pub(super) fn power(theta: f64) -> f64 {
    theta / (theta - 1.0)
}

/// μ of a budget.
pub(super) fn mu(rows: usize, epsilon: f64) -> f64 {
    quietly_accounting::gaussian_mu(epsilon, delta(rows)).unwrap_or(f64::NAN)
}

/// F(w) - F(w*).
pub(super) fn excess(theta: f64, z: &[f64], w: &[f64]) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let along: f64 = w.iter().zip(z).map(|(w, z)| w * z).sum();
    norm(w).powf(theta) / theta - along + norm(z).powf(power(theta)) / power(theta)
}

/// The minimiser for the mean `z`, within the unit ball.
pub(super) fn minimiser(theta: f64, z: &[f64]) -> Vec<f64> {
    let norm = z.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let long = norm.powf(1.0 / (theta - 1.0)).min(1.0);
    z.iter().map(|z| z * long / norm).collect()
}

/// The plan of the method of this name, if it can.
pub(super) fn plan(
    theta: f64,
    (rows, width): (usize, usize),
    epsilon: f64,
    method: &str,
) -> Option<Plan> {
    let named = if method == ITERATED[1] { "iterated-phased-sgd" } else { method };
    let mut convex = Convex::new(Loss::Margin)
        .method(Method::named(named)?)
        .within(Set::L2 { radius: 1.0 })
        .constant(0.0)
        .rows_within(1.0)
        .known_radius();
    // A square is a ridge, which all methods know.
    convex = if theta == 2.0 { convex.ridge(1.0) } else { convex.power(theta, 1.0) };
    convex = match method {
        "psa-ii" | SC => convex.growing(theta, 2f64.powf(2.0 - theta) / theta),
        _ if method == ITERATED[1] => convex.growing(2.0, 1.0),
        _ => convex,
    };
    let budget = Budget::new(epsilon, delta(rows)).ok()?.under(Neighbours::ReplaceOne);
    convex.plan(rows as u64, width, budget).ok()
}

/// Rows of the hard instance.
pub(super) struct Law {
    pub(super) mean: Vec<f64>,
    average: Vec<f64>,
    pub(super) table: Private<Table>,
}

impl Law {
    pub(super) fn draw(width: usize, rows: usize, norm: f64, key: Key) -> Result<Law, Failure> {
        let mut bits = key.stream("rows").bits(0)?;
        let unit = (width as f64).sqrt().recip();
        let mut mean = vec![];
        for _ in 0..width {
            mean.push(if bits.below(2)? == 0 { -norm * unit } else { norm * unit });
        }
        let (mut features, mut average) = (Vec::with_capacity(rows * width), vec![0.0; width]);
        for _ in 0..rows {
            for (average, mean) in average.iter_mut().zip(&mean) {
                let chance = 0.5 + 0.5 * mean / unit;
                let up = ((bits.word()? >> 11) as f64) < chance * 2f64.powi(53);
                let x = if up { unit } else { -unit };
                features.push(x);
                *average += x / rows as f64;
            }
        }
        let table = Private::new(Table::new(width, features, vec![1.0; rows]));
        Ok(Law { mean, average, table })
    }

    /// What releasing the mean once, with the noise of the whole budget, leads to: a simulation.
    pub(super) fn by_mean(&self, theta: f64, sigma: f64, key: Key) -> Result<Vec<f64>, Failure> {
        let mut noise = vec![0.0; self.mean.len()];
        Normals::new(key.stream("simulation").bits(0)?).fill(&mut noise)?;
        let noisy = self.average.iter().zip(&noise).map(|(x, z)| x + sigma * z);
        Ok(minimiser(theta, &noisy.collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimiser_has_no_excess_and_growth_is_as_said() {
        let z = [0.1, -0.3, 0.2];
        for theta in [2.0, 3.0, 4.0] {
            let best = minimiser(theta, &z);
            assert!(excess(theta, &z, &best).abs() < 1e-15);
            for k in 0..200 {
                let near = |j: usize| best[j] + 0.3 * (f64::from(k) * (1.0 + j as f64)).sin();
                let w = [near(0), near(1), near(2)];
                let far = w.iter().zip(&best).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                let least = 2f64.powf(2.0 - theta) / theta * far.powf(theta);
                assert!(excess(theta, &z, &w) >= 0.999 * least, "{theta} {w:?}");
            }
        }
    }

    /// The average of 40 000 rows is off by 1/200 in the mean; ten times that would be chance in no lifetime.
    #[test]
    fn rows_have_the_mean_that_is_said() {
        let law = Law::draw(5, 40_000, 0.5, Key::from_seed(1)).unwrap_or_else(|e| panic!("{e:?}"));
        let norm: f64 = law.mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((norm - 0.5).abs() < 1e-12);
        let off = law.average.iter().zip(&law.mean).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
        assert!(off.sqrt() < 0.05, "{off}");
        let quiet = law.by_mean(4.0, 0.0, Key::from_seed(2)).unwrap_or_else(|e| panic!("{e:?}"));
        let loud = law.by_mean(4.0, 0.5, Key::from_seed(2)).unwrap_or_else(|e| panic!("{e:?}"));
        let risk = |w: &[f64]| excess(4.0, &law.mean, w);
        assert!(risk(&quiet) < 1e-3 && risk(&loud) > 10.0 * risk(&quiet));
    }
}
