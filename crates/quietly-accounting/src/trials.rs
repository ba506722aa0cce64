//! The best of a random number of trials: what it costs to choose.
//!
//! A trial Q draws a candidate, trains it and gives it a score, all of it privately. K trials are made, and the one with the best
//! score is released, alone. With a K that anybody knows this would cost about K trials. Here nobody knows: K is drawn from the
//! logarithmic law P(K = k) = (1 - γ)^k / (k·ln(1/γ)), and the price hardly depends on how many trials there are.
//!
//! **Theorem.** Let δ(ε) be the privacy profile of Q (the larger of both directions). If δ(a) ≤ α and δ(b) ≤ (e^b - 1)·γ/(1 - γ), then
//! the release is (a + b, E\[K\]·α)-differentially private.
//!
//! *Proof.* Give each trial an independent uniform number beside its score, which decides between equals and leaves the profile as it is:
//! scores are then distinct. Let q(y) be the chance that a trial is not better than y. With the generating function
//! f(x) = E\[x^K\] = ln(1 - (1 - γ)x)/ln γ the released y has density A(y) = Q(y)·f'(q(y)), as f(q) is the law of the best. Here
//! f'(x) = (1 - γ)/(ln(1/γ)·(1 - (1 - γ)x)), which grows up to f'(1) = E\[K\]. On a neighbouring table, with primes,
//!
//! f'(q)/f'(q') = (γ + (1 - γ)(1 - q'))/(γ + (1 - γ)(1 - q)), and 1 - q' ≤ e^b(1 - q) + δ(b), "better than y" being an event. So the
//! numerator is at most e^b(γ + (1 - γ)(1 - q)) - (e^b - 1)γ + (1 - γ)δ(b), where the last two terms are together at most 0: the
//! ratio is at most e^b. Then for every set S, with ε = a + b,
//!
//! A(S) - e^ε·A'(S) = ∫_S f'(q)·(Q - e^ε·Q'·f'(q')/f'(q)) ≤ ∫_S f'(q)·(Q - e^a·Q')₊ ≤ E\[K\]·δ(a). ∎
//!
//! The law is that of Papernot and Steinke, *Hyperparameter Tuning with Renyi Differential Privacy*, 2022 (η = 0), and privacy profiles
//! for it are due to Koskela, Redberg and Wang, 2024. With pure ε, a = b = ε gives their 2ε.
//!
//! **Drawing K.** K is geometric with chance s = γ^u of stopping after each trial, u uniform: ∫ s(1 - s)^(k - 1) du is the law above. What
//! is drawn has an s that is off by a factor within 1 ± ξ, ξ < 3e-12 (u and coins of 53 bits, s ≥ γ > 1e-4, and `powf`). The
//! derivative of a geometric law's generating function is s/((1 - x) + s·x)², which then is off by a factor within (1 ± ξ)^3 for
//! every x at once: ε grows by less than 2e-11 and E\[K\] by a factor below 1 + 1e-11. [`Trials::total`] adds more than that.
use crate::{
    error::Error,
    event::{Event, Neighbours},
    privacy,
};

/// Room for a K that is drawn with rounding, and for the rounding of sums.
const SLACK: f64 = 1e-9;

/// A random number of trials, of which the best is released.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, Trials, epsilon};
///
/// // About thirty trainings, each as private as one noisy sum, and the best of them.
/// let trials = Trials::about(30.0)?;
/// let training = Event::gaussian(10.0)?;
/// let once = epsilon(&training, Neighbours::AddRemove, 1e-6 / 31.0)?.upper;
/// let order = trials.order(&training, Neighbours::AddRemove)?;
/// let (epsilon, delta) = trials.total(once, 1e-6 / 31.0, order);
/// assert!(epsilon < 2.0 * once && delta < 1e-6);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trials {
    gamma: f64,
}

impl Trials {
    /// So many trials in the mean.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless that is from 2 to 1000.
    pub fn about(mean: f64) -> Result<Self, Error> {
        let fine = (2.0..=1000.0).contains(&mean);
        Error::within("trials", "from 2 to 1000, in the mean", mean, fine)?;
        let (mut low, mut high) = (1e-4_f64, 0.999_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if expected(middle) > mean { low = middle } else { high = middle }
        }
        Ok(Trials { gamma: high })
    }

    /// The mean number of trials, not below.
    pub fn mean(&self) -> f64 {
        expected(self.gamma) * (1.0 + SLACK)
    }

    /// The chance to stop after each trial, where `u` is uniform in [0, 1): it is the same for all trials of a run.
    pub fn stopping(&self, u: f64) -> f64 {
        self.gamma.powf(u)
    }

    /// Whether trials of this `event` are put in order for at most `order`: the theorem's b.
    ///
    /// # Errors
    ///
    /// As [`delta`](crate::delta).
    pub fn orders_within(
        &self,
        event: &Event,
        neighbours: Neighbours,
        order: f64,
    ) -> Result<bool, Error> {
        let most = order.exp_m1() * self.gamma / (1.0 - self.gamma) * (1.0 - SLACK);
        Ok(privacy::delta(event, neighbours, order)?.upper <= most)
    }

    /// About the least b of the theorem for this event, not below it.
    ///
    /// # Errors
    ///
    /// As [`delta`](crate::delta); [`Error::Unreachable`] if it is above 1000.
    pub fn order(&self, event: &Event, neighbours: Neighbours) -> Result<f64, Error> {
        let (mut low, mut high) = (1e-3_f64, 1e3_f64);
        if !self.orders_within(event, neighbours, high)? {
            let instead = "take more noise";
            let (least, most) = (1e-3, 1e3);
            return Err(Error::Unreachable { least, most, epsilon: high, delta: 0.5, instead });
        }
        while high > low * 1.005 {
            let middle = (low * high).sqrt();
            match self.orders_within(event, neighbours, middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(high)
    }

    /// (ε, δ) of the release, where one trial is (`epsilon`, `delta`)-private and `order` is the theorem's b.
    pub fn total(&self, epsilon: f64, delta: f64, order: f64) -> (f64, f64) {
        ((epsilon + order) * (1.0 + SLACK) + 1e-10, delta * self.mean())
    }
}

/// The mean of the logarithmic law.
fn expected(gamma: f64) -> f64 {
    (1.0 / gamma - 1.0) / (1.0 / gamma).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_what_was_asked() {
        for mean in [2.0, 10.0, 300.0, 1000.0] {
            let trials = Trials::about(mean).unwrap();
            let sum: f64 = (1..400_000)
                .map(|k| (1.0 - trials.gamma).powi(k) / (1.0 / trials.gamma).ln())
                .sum();
            assert!(trials.mean() <= mean * (1.0 + 1e-8) && trials.mean() > 0.999 * mean);
            assert!((sum / mean - 1.0).abs() < 1e-3, "{sum} {mean}");
        }
        for mean in [1.9, 1001.0, f64::NAN] {
            assert!(Trials::about(mean).is_err());
        }
    }

    /// A uniform u, and a stop with chance γ^u after each trial: the chance of k trials by a sum over u is the logarithmic law.
    #[test]
    fn stopping_gives_the_logarithmic_law() {
        let trials = Trials::about(10.0).unwrap();
        let cells = 1_000_000;
        for k in [1, 2, 7, 40] {
            let chance = |u: f64| {
                let s = trials.stopping(u);
                s * (1.0 - s).powi(k - 1)
            };
            let found: f64 =
                (0..cells).map(|j| chance((j as f64 + 0.5) / cells as f64)).sum::<f64>()
                    / cells as f64;
            let right = (1.0 - trials.gamma).powi(k) / (k as f64 * (1.0 / trials.gamma).ln());
            assert!((found / right - 1.0).abs() < 1e-6, "{k} {found} {right}");
        }
    }

    /// The exact law of the best of K on a grid of scores: Gaussian scores of neighbouring tables, one μ apart, and the worst set.
    fn leak(trials: Trials, mu: f64, epsilon: f64) -> f64 {
        let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        let f = |q: f64| (1.0 - (1.0 - trials.gamma) * q).ln() / trials.gamma.ln();
        let (cells, width) = (20_000, 1e-3);
        let edge = |j: i32| width * f64::from(j);
        let each = |shift: f64, j: i32| f(phi(edge(j + 1) - shift)) - f(phi(edge(j) - shift));
        let sum = |from: f64, to: f64| {
            let part = |j| (each(from, j) - epsilon.exp() * each(to, j)).max(0.0);
            (-cells..cells).map(part).sum::<f64>()
        };
        sum(mu, 0.0).max(sum(0.0, mu))
    }

    /// The price covers the exact leak of the best of K Gaussian scores; a trial's own price does not.
    #[test]
    fn the_best_of_gaussian_scores_leaks_no_more_than_its_price() {
        for (mean, mu) in [(10.0, 0.3), (10.0, 1.0), (100.0, 1.0), (1000.0, 0.5)] {
            let trials = Trials::about(mean).unwrap();
            let event = Event::gaussian(1.0 / mu).unwrap();
            let b = trials.order(&event, Neighbours::AddRemove).unwrap();
            for alpha in [1e-3, 1e-5] {
                let a = privacy::epsilon(&event, Neighbours::AddRemove, alpha).unwrap().upper;
                let (epsilon, delta) = trials.total(a, alpha, b);
                let found = leak(trials, mu, epsilon);
                assert!(found <= delta, "{mean} {mu} {alpha}: {found} {delta}");
                // The control.
                let alone = leak(trials, mu, a);
                assert!(alone > alpha, "{mean} {mu} {alpha}: {alone}");
            }
        }
    }

    /// A pair for which ε + b is nearly reached: a rare best outcome, and one that is otherwise likelier by e^ε.
    #[test]
    fn the_price_of_pure_trials_is_nearly_reached() {
        let trials = Trials::about(1000.0).unwrap();
        let epsilon = 1.0_f64;
        let f = |q: f64| (1.0 - (1.0 - trials.gamma) * q).ln() / trials.gamma.ln();
        // Outcomes from best to worst, and their chances on two tables.
        let rare = 0.02;
        let (one, other) =
            ([rare, 1e-4, 1.0 - rare - 1e-4], [rare * (-epsilon).exp(), 1e-4 * epsilon.exp(), 1.0]);
        let middle = |law: [f64; 3]| f(1.0 - law[0]) - f(1.0 - law[0] - law[1]);
        let ratio = (middle(other) / middle(one)).ln();
        assert!(ratio > 1.9 * epsilon, "{ratio}");
        let (price, delta) = trials.total(epsilon, 0.0, epsilon);
        assert!(ratio <= price && price < 1.06 * ratio && delta == 0.0, "{ratio} {price}");
    }

    /// A best outcome that one table has with chance d and the other never: the next one is then 1 + d(1 - γ)/γ times as likely to be
    /// released, and putting in order costs just that.
    #[test]
    fn an_outcome_that_only_one_table_has_is_paid_for() {
        for (mean, d) in [(10.0, 1e-2), (100.0, 1e-3), (1000.0, 1e-5)] {
            let trials = Trials::about(mean).unwrap();
            let derivative = |q: f64| 1.0 / (1.0 - (1.0 - trials.gamma) * q);
            let apart = (derivative(1.0) / derivative(1.0 - d)).ln();
            let event = Event::promise(1e-3, d).unwrap();
            let order = trials.order(&event, Neighbours::AddRemove).unwrap();
            assert!(order >= apart && order < 1.01 * apart, "{mean} {d}: {order} {apart}");
        }
    }
}
