//! Private selection: the cost of releasing the best of a random number of trials.
//!
//! A trial Q draws a candidate, trains it and scores it, all of it privately. K trials run, and
//! only the one with the best score is released. A public K would cost about K trials. Here K is
//! secret: it is drawn from the logarithmic distribution P(K = k) = (1 - γ)^k / (k·ln(1/γ)), and
//! the cost hardly depends on the number of trials.
//!
//! # Proof: private selection
//!
//! *Statement.* Let δ(ε) be the privacy profile of Q (the larger of both directions). If δ(a) ≤ α
//! and δ(b) ≤ (e^b - 1)·γ/(1 - γ), then the release is (a + b, E\[K\]·α)-differentially private.
//!
//! *Conditions.* Trials are independent and have the same distribution. K depends on no data and
//! stays secret.
//!
//! 1. Give each trial an independent uniform number besides its score, which breaks ties and does
//!    not change the profile. Scores are then distinct.
//! 2. Let q(y) be the probability that a trial is not better than y. With the generating function
//!    f(x) = E\[x^K\] = ln(1 - (1 - γ)x)/ln γ, the released y has density A(y) = Q(y)·f'(q(y)),
//!    because f(q) is the distribution function of the best. Here f'(x) = (1 - γ)/(ln(1/γ)·(1 -
//!    (1 - γ)x)), which increases up to f'(1) = E\[K\].
//! 3. On a neighbouring table, with primes, f'(q)/f'(q') = (γ + (1 - γ)(1 - q'))/(γ + (1 - γ)(1 -
//!    q)), and 1 - q' ≤ e^b(1 - q) + δ(b), since "better than y" is an event.
//! 4. So the numerator is at most e^b(γ + (1 - γ)(1 - q)) - (e^b - 1)γ + (1 - γ)δ(b). The last two
//!    terms are together at most 0. The ratio is at most e^b.
//! 5. For every set S, with ε = a + b, A(S) - e^ε·A'(S) = ∫_S f'(q)·(Q - e^ε·Q'·f'(q')/f'(q)) ≤ ∫_S
//!    f'(q)·(Q - e^a·Q')₊ ≤ E\[K\]·δ(a). ∎
//!
//! *Rounding.* K is drawn as geometric with probability s = γ^u of stopping after each trial, u
//! uniform: ∫ s(1 - s)^(k - 1) du is the distribution above. The s that is drawn has a relative
//! error within 1 ± ξ, ξ < 3e-12 (u and uniform draws of 53 bits, s ≥ γ > 1e-4, and `powf`). The
//! derivative of a geometric generating function is s/((1 - x) + s·x)², which then has an error
//! factor within (1 ± ξ)^3 for every x at once. So ε grows by less than 2e-11 and E\[K\] by a
//! factor below 1 + 1e-11. [`TrialCount::total_cost`] adds more than that.
//!
//! *Not covered.* An observer who sees how long the run takes, and so learns K.
//!
//! The distribution is that of Papernot and Steinke, *Hyperparameter Tuning with Renyi Differential
//! Privacy*, 2022 (η = 0). Privacy profiles for it are due to Koskela, Redberg and Wang, 2024. With
//! pure ε, a = b = ε gives their 2ε.
use crate::{
    accountant,
    error::Error,
    event::{Event, Neighbours},
};

/// Covers the rounding in the draw of K and in sums.
const SLACK: f64 = 1e-9;

/// A random number of trials, of which the best is released.
///
/// ```
/// use quietly_accounting::{Event, Neighbours, TrialCount, epsilon};
///
/// // The best of about thirty trainings, each of which costs as much as one noisy sum.
/// let trials = TrialCount::with_mean(30.0)?;
/// let training = Event::gaussian(10.0)?;
/// let once = epsilon(&training, Neighbours::AddRemove, 1e-6 / 31.0)?.upper;
/// let order = trials.selection_epsilon(&training, Neighbours::AddRemove)?;
/// let (epsilon, delta) = trials.total_cost(once, 1e-6 / 31.0, order);
/// assert!(epsilon < 2.0 * once && delta < 1e-6);
/// # Ok::<(), quietly_accounting::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialCount {
    gamma: f64,
}

impl TrialCount {
    /// A random number of trials with this mean.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless `mean` is from 2 to 1000.
    pub fn with_mean(mean: f64) -> Result<Self, Error> {
        let fine = (2.0..=1000.0).contains(&mean);
        Error::within("trials", "from 2 to 1000 on average", mean, fine)?;
        let (mut low, mut high) = (1e-4_f64, 0.999_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if expected(middle) > mean { low = middle } else { high = middle }
        }
        Ok(TrialCount { gamma: high })
    }

    /// The mean number of trials, rounded up.
    pub fn mean(&self) -> f64 {
        expected(self.gamma) * (1.0 + SLACK)
    }

    /// The probability of stopping after each trial, for `u` uniform in [0, 1). It is the same for
    /// all trials of a run.
    pub fn stop_probability(&self, u: f64) -> f64 {
        self.gamma.powf(u)
    }

    /// Whether selection among trials of `event` costs at most `order`: the b of the proof.
    ///
    /// # Errors
    ///
    /// As [`delta`](crate::delta).
    pub fn selection_epsilon_at_most(
        &self,
        event: &Event,
        neighbours: Neighbours,
        order: f64,
    ) -> Result<bool, Error> {
        let most = order.exp_m1() * self.gamma / (1.0 - self.gamma) * (1.0 - SLACK);
        Ok(accountant::delta(event, neighbours, order)?.upper <= most)
    }

    /// The ε that selection adds to that of one trial: about the least b of the proof, rounded up.
    ///
    /// # Errors
    ///
    /// As [`delta`](crate::delta); [`Error::Unreachable`] if it is above 1000.
    pub fn selection_epsilon(&self, event: &Event, neighbours: Neighbours) -> Result<f64, Error> {
        let (mut low, mut high) = (1e-3_f64, 1e3_f64);
        if !self.selection_epsilon_at_most(event, neighbours, high)? {
            let instead = "add more noise to each trial";
            let (least, most) = (1e-3, 1e3);
            return Err(Error::Unreachable { least, most, epsilon: high, delta: 0.5, instead });
        }
        while high > low * 1.005 {
            let middle = (low * high).sqrt();
            match self.selection_epsilon_at_most(event, neighbours, middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(high)
    }

    /// (ε, δ) of the release, where one trial is (`epsilon`, `delta`)-DP and `order` is the b of
    /// the proof.
    pub fn total_cost(&self, epsilon: f64, delta: f64, order: f64) -> (f64, f64) {
        ((epsilon + order) * (1.0 + SLACK) + 1e-10, delta * self.mean())
    }
}

/// The mean of the logarithmic distribution.
fn expected(gamma: f64) -> f64 {
    (1.0 / gamma - 1.0) / (1.0 / gamma).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_given_one() {
        for mean in [2.0, 10.0, 300.0, 1000.0] {
            let trials = TrialCount::with_mean(mean).unwrap();
            let sum: f64 = (1..400_000)
                .map(|k| (1.0 - trials.gamma).powi(k) / (1.0 / trials.gamma).ln())
                .sum();
            assert!(trials.mean() <= mean * (1.0 + 1e-8) && trials.mean() > 0.999 * mean);
            assert!((sum / mean - 1.0).abs() < 1e-3, "{sum} {mean}");
        }
        for mean in [1.9, 1001.0, f64::NAN] {
            assert!(TrialCount::with_mean(mean).is_err());
        }
    }

    /// A uniform u, and a stop with probability γ^u after each trial: summed over u, the number of
    /// trials has the logarithmic distribution.
    #[test]
    fn stopping_gives_the_logarithmic_distribution() {
        let trials = TrialCount::with_mean(10.0).unwrap();
        let cells = 1_000_000;
        for k in [1, 2, 7, 40] {
            let chance = |u: f64| {
                let s = trials.stop_probability(u);
                s * (1.0 - s).powi(k - 1)
            };
            let found: f64 =
                (0..cells).map(|j| chance((j as f64 + 0.5) / cells as f64)).sum::<f64>()
                    / cells as f64;
            let right = (1.0 - trials.gamma).powi(k) / (k as f64 * (1.0 / trials.gamma).ln());
            assert!((found / right - 1.0).abs() < 1e-6, "{k} {found} {right}");
        }
    }

    /// The exact leak of the best of K on a grid of scores: Gaussian scores of neighbouring tables,
    /// μ apart, and the worst set.
    fn leak(trials: TrialCount, mu: f64, epsilon: f64) -> f64 {
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

    /// The cost covers the exact leak of the best of K Gaussian scores. The control: the cost of
    /// one trial does not.
    #[test]
    fn the_best_of_gaussian_scores_leaks_at_most_its_cost() {
        for (mean, mu) in [(10.0, 0.3), (10.0, 1.0), (100.0, 1.0), (1000.0, 0.5)] {
            let trials = TrialCount::with_mean(mean).unwrap();
            let event = Event::gaussian(1.0 / mu).unwrap();
            let b = trials.selection_epsilon(&event, Neighbours::AddRemove).unwrap();
            for alpha in [1e-3, 1e-5] {
                let a = accountant::epsilon(&event, Neighbours::AddRemove, alpha).unwrap().upper;
                let (epsilon, delta) = trials.total_cost(a, alpha, b);
                let found = leak(trials, mu, epsilon);
                assert!(found <= delta, "{mean} {mu} {alpha}: {found} {delta}");
                // The control.
                let alone = leak(trials, mu, a);
                assert!(alone > alpha, "{mean} {mu} {alpha}: {alone}");
            }
        }
    }

    /// A pair that nearly attains ε + b: a rare best outcome, and one that is otherwise likelier by
    /// e^ε.
    #[test]
    fn the_cost_of_pure_trials_is_nearly_attained() {
        let trials = TrialCount::with_mean(1000.0).unwrap();
        let epsilon = 1.0_f64;
        let f = |q: f64| (1.0 - (1.0 - trials.gamma) * q).ln() / trials.gamma.ln();
        // Outcomes from best to worst, and their probabilities on two tables.
        let rare = 0.02;
        let (one, other) =
            ([rare, 1e-4, 1.0 - rare - 1e-4], [rare * (-epsilon).exp(), 1e-4 * epsilon.exp(), 1.0]);
        let middle = |law: [f64; 3]| f(1.0 - law[0]) - f(1.0 - law[0] - law[1]);
        let ratio = (middle(other) / middle(one)).ln();
        assert!(ratio > 1.9 * epsilon, "{ratio}");
        let (price, delta) = trials.total_cost(epsilon, 0.0, epsilon);
        assert!(ratio <= price && price < 1.06 * ratio && delta == 0.0, "{ratio} {price}");
    }

    /// A best outcome that one table has with probability d and the other never. The next outcome
    /// is then 1 + d(1 - γ)/γ times as likely to be released, and selection costs just that.
    #[test]
    fn an_outcome_of_only_one_table_is_charged() {
        for (mean, d) in [(10.0, 1e-2), (100.0, 1e-3), (1000.0, 1e-5)] {
            let trials = TrialCount::with_mean(mean).unwrap();
            let derivative = |q: f64| 1.0 / (1.0 - (1.0 - trials.gamma) * q);
            let apart = (derivative(1.0) / derivative(1.0 - d)).ln();
            let event = Event::approximate_dp(1e-3, d).unwrap();
            let order = trials.selection_epsilon(&event, Neighbours::AddRemove).unwrap();
            assert!(order >= apart && order < 1.01 * apart, "{mean} {d}: {order} {apart}");
        }
    }
}
