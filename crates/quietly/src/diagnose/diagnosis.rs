//! Whether a signal can be learnt at a budget: three numbers, a verdict, and what would be enough.
//!
//! Over T steps on all rows the mean clipped gradient moves the weights by up to ηCT along the signal. The noise of an exact
//! plan moves them along any direction by ηCTΔ/(nμ), where Δ is 1 for a row that is there or not and 2 for one that is
//! replaced, and (ε, δ) is μ-Gaussian. Neither step size, steps, clip nor width are left in the ratio, which a fresh row
//! feels as SNR·nμ/Δ. The limits are measured, not proven: `quietly-lab reproduce features` measures them again.
use quietly_accounting::{Neighbours, gaussian_mu};
use quietly_core::budget::Budget;
use quietly_engine::error::Error;
use serde::Serialize;

/// What a [`Diagnosis`] concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The signal is lost in the noise.
    No,
    /// It may be learnt, or not.
    Marginal,
    /// It is learnt.
    Enough,
}

impl Verdict {
    /// The word used on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::No => "no",
            Verdict::Marginal => "marginal",
            Verdict::Enough => "enough",
        }
    }
}

/// From where on a number is enough, and below which value it is hopeless.
struct Limits {
    no: f64,
    enough: f64,
}

/// SNR·nμ/Δ: 10 and 30 are where the measured phase transitions begin and end.
const PRIVACY: Limits = Limits { no: 10.0, enough: 30.0 };
/// SNR^q·n: 10 is measured; below 1 the paper's theorem fails without any privacy.
const STATISTICS: Limits = Limits { no: 1.0, enough: 10.0 };
/// T/T_Γ: 2 is measured; at a half the signal has not begun to grow.
const TIME: Limits = Limits { no: 0.5, enough: 2.0 };

impl Limits {
    fn verdict(&self, value: f64) -> Verdict {
        match value {
            v if v >= self.enough => Verdict::Enough,
            v if v >= self.no => Verdict::Marginal,
            _ => Verdict::No,
        }
    }
}

/// Whether so strong a signal in so many rows can be learnt at a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Diagnosis {
    snr: f64,
    rows: u64,
    budget: Budget,
    power: f64,
    /// T, and T_Γ for a given SNR, as a power law: T_Γ(snr) = at one·snr^-q.
    time: Option<(u64, f64)>,
}

/// The norm of a patch of noise in the paper's experiment: 1000 numbers of variance 1.
const PAPER_NOISE: f64 = 31.606961258558215;

/// What decides how fast the paper's network learns a signal: m filters for each label whose ReLU has power q, steps of η, weights
/// that start with standard deviation σ₀.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// How many filters each label has: m.
    pub filters: usize,
    /// The power of the ReLU, above 2: q.
    pub power: f64,
    /// How far a step goes along the mean gradient: η.
    pub step_size: f64,
    /// The standard deviation of the weights at the start: σ₀.
    pub start: f64,
}

impl Default for Setup {
    /// The paper's experiment.
    fn default() -> Self {
        Setup { filters: 10, power: 3.0, step_size: 0.01, start: 0.001 }
    }
}

impl Setup {
    /// T_Γ: about how many steps the signal takes to be learnt without noise, for a signal of norm `length`.
    ///
    /// From <w, v> ← <w, v> + η q ‖v‖² <w, v>^(q-1)/4m, whose largest filter starts at about 1.5 σ₀ ‖v‖.
    pub fn signal_time(&self, length: f64) -> f64 {
        let q = self.power;
        let start = 1.5 * self.start * length;
        let pace = self.step_size * q * (q - 2.0) * length * length * start.powf(q - 2.0);
        4.0 * self.filters as f64 / pace
    }
}

impl Diagnosis {
    /// A diagnosis for the power q = 3 of the ReLU.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless the SNR is from 0 to 1e6, there are rows, and ε is finite and δ above 0.
    pub fn new(snr: f64, rows: u64, budget: Budget) -> Result<Diagnosis, Error> {
        Error::ensure((0.0..=1e6).contains(&snr), "SNR", "from 0 to 1e6", snr)?;
        Error::ensure(rows > 0, "rows", "at least 1", rows)?;
        Error::ensure(budget.is_private(), "epsilon", "finite", budget.epsilon())?;
        let want = "above 0, as the noise is Gaussian";
        Error::ensure(!budget.is_pure(), "delta", want, budget.delta())?;
        budget.of_one_row()?;
        Ok(Diagnosis { snr, rows, budget, power: 3.0, time: None })
    }

    /// The same for another power of the ReLU.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless it is above 2, up to 9.
    pub fn power(self, power: f64) -> Result<Diagnosis, Error> {
        let fine = power > 2.0 && power <= 9.0;
        Error::ensure(fine, "power", "above 2, up to 9", power)?;
        // The time depends on the power.
        let again = Diagnosis { power, time: None, ..self };
        match self.time {
            Some((steps, _)) => again.steps(steps),
            None => Ok(again),
        }
    }

    /// The same for so many steps of the paper's network: 10 filters, steps of 0.01, a start of 0.001, 1000 numbers of
    /// variance 1 in a patch.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless there are from 1 to ten million steps.
    pub fn steps(self, steps: u64) -> Result<Diagnosis, Error> {
        let fine = (1..=10_000_000).contains(&steps);
        Error::ensure(fine, "steps", "from 1 to ten million", steps)?;
        let time = Setup { power: self.power, ..Setup::default() }.signal_time(PAPER_NOISE);
        Ok(self.trained(steps, time))
    }

    /// The same for so many steps of a training that learns a signal of SNR 1 in about `time` of them
    /// ([`Setup::signal_time`] of the norm that patches of noise have).
    pub fn trained(self, steps: u64, time: f64) -> Diagnosis {
        Diagnosis { time: Some((steps, time)), ..self }
    }

    /// Q_priv = SNR·n·μ(ε, δ)/Δ: the signal over the noise of privacy.
    pub fn privacy(&self) -> f64 {
        let one = self.budget.of_one_row().expect("checked before");
        let mu = gaussian_mu(one.epsilon(), one.delta());
        let mu = mu.expect("a budget is within the accountant's range");
        let sensitivity = match self.budget.neighbours() {
            Neighbours::AddRemove => 1.0,
            Neighbours::ReplaceOne => 2.0,
        };
        self.snr * self.rows as f64 * mu / sensitivity
    }

    /// Q_stat = SNR^q·n: the signal over what so few rows memorise, without any privacy.
    pub fn statistics(&self) -> f64 {
        self.snr.powf(self.power) * self.rows as f64
    }

    /// Q_time = T/T_Γ: steps over what the signal takes to be learnt; none if the training was not told.
    pub fn time(&self) -> Option<f64> {
        // T_Γ is proportional to ‖v‖^-q.
        self.time.map(|(steps, at_one)| steps as f64 * self.snr.powf(self.power) / at_one)
    }

    /// The SNR it is about.
    pub fn snr(&self) -> f64 {
        self.snr
    }

    /// The number of rows it is about.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The budget it is about.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The least of what the three numbers say.
    pub fn verdict(&self) -> Verdict {
        let each = [
            PRIVACY.verdict(self.privacy()),
            STATISTICS.verdict(self.statistics()),
            self.time().map_or(Verdict::Enough, |t| TIME.verdict(t)),
        ];
        each.into_iter().min().expect("three of them")
    }

    /// By how much SNR·n must grow to reach the private regime; 1 if it is there.
    pub fn factor(&self) -> f64 {
        (PRIVACY.enough / self.privacy()).max(1.0)
    }

    /// The fewest rows that are enough, all else as it is; none if no number of rows is, up to 1e15.
    pub fn least_rows(&self) -> Option<u64> {
        let enough = |rows: u64| Diagnosis { rows, ..*self }.is_enough();
        let (mut low, mut high) = (0, 1_000_000_000_000_000);
        if !enough(high) {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if enough(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// The least ε that is enough, all else as it is; none if none is, up to 1000.
    pub fn least_epsilon(&self) -> Option<f64> {
        let budget = |epsilon: f64| {
            let other = Budget::new(epsilon, self.budget.delta()).ok()?;
            let other = other.under(self.budget.neighbours());
            other.for_units_of(self.budget.rows_per_unit()).ok()
        };
        let enough = |epsilon: f64| {
            budget(epsilon).is_some_and(|budget| Diagnosis { budget, ..*self }.is_enough())
        };
        // Group privacy has no delta left for one row where epsilon is large.
        let most = std::iter::successors(Some(1000.0), |epsilon| Some(0.9 * epsilon));
        let most = { most }.take_while(|e| *e > 0.001).find(|e| budget(*e).is_some())?;
        least(0.001, most, enough)
    }

    /// The least SNR that is enough, all else as it is; none if none is, up to 1e6.
    pub fn least_snr(&self) -> Option<f64> {
        least(1e-9, 1e6, |snr| Diagnosis { snr, ..*self }.is_enough())
    }

    fn is_enough(&self) -> bool {
        self.verdict() == Verdict::Enough
    }

    /// What it means, in sentences: the verdict first.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = vec![match self.verdict() {
            Verdict::Enough => {
                "enough: feature learning works here, with clipped gradients and exact noise."
                    .into()
            }
            Verdict::Marginal => {
                "marginal: feature learning works here for some draws of noise, and not for others."
                    .into()
            }
            Verdict::No => "no: at this budget a trained network only guesses.".to_string(),
        }];
        let factor = self.factor();
        if !factor.is_finite() {
            said.push("No signal is detectable.".into());
        } else if self.privacy() < PRIVACY.enough {
            said.push(format!("To reach the private regime multiply SNR·n by {}.", digits(factor)));
        }
        if self.statistics() < STATISTICS.enough {
            said.push("Even without privacy, so few rows with so weak a signal are memorised, not learnt.".into());
        }
        if self.time().is_some_and(|t| t < TIME.enough) {
            said.push("So few steps are too few for the signal to grow; more rows or a larger epsilon do not help.".into());
        }
        said
    }
}

/// Two digits that count, rounded up.
fn digits(x: f64) -> String {
    let scale = 10_f64.powi(1 - x.log10().floor() as i32);
    format!("{}", (x * scale).ceil() / scale)
}

/// The least x between the ends for which something holds that holds for all larger ones, to nine digits.
fn least(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
    if holds(low) {
        return Some(low);
    }
    if !holds(high) {
        return None;
    }
    while high / low > 1.0 + 1e-9 {
        let middle = (low * high).sqrt();
        if holds(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(snr: f64, rows: u64, epsilon: f64) -> Diagnosis {
        Diagnosis::new(snr, rows, Budget::new(epsilon, 1e-5).unwrap()).unwrap()
    }

    /// Golden: μ(ε, 1e-5) and Q_priv, Q_stat of the table that the limits were measured in
    /// (docs/spec/networks.md#4.3 and #4.7).
    #[test]
    fn the_numbers_are_those_of_the_table() {
        for (epsilon, mu) in [(0.2, 0.0613), (1.0, 0.268), (4.0, 0.925), (5.0, 1.121), (8.0, 1.666)]
        {
            let found = diagnosis(1.0, 1, epsilon).privacy();
            assert!((found / mu - 1.0).abs() < 2e-3, "{epsilon}: {found}");
        }
        for (snr, rows, epsilon, privacy, statistics) in [
            (0.6, 50, 0.2, 1.8, 11.0),
            (0.6, 200, 1.0, 32.0, 43.0),
            (3.0, 50, 1.0, 40.0, 1350.0),
            (0.2, 800, 5.0, 179.0, 6.4),
        ] {
            let d = diagnosis(snr, rows, epsilon);
            assert!((d.privacy() / privacy - 1.0).abs() < 0.03, "{}", d.privacy());
            assert!((d.statistics() / statistics - 1.0).abs() < 0.03, "{}", d.statistics());
        }
        // T_Γ = 3500, 130 and 1 at SNR 0.2, 0.6 and 3.
        for (snr, time) in [(0.2, 500.0 / 3500.0), (0.6, 500.0 / 130.0), (3.0, 500.0)] {
            let found = diagnosis(snr, 50, 1.0).steps(500).unwrap().time().unwrap();
            assert!((found / time - 1.0).abs() < 0.1, "{snr}: {found}");
        }
    }

    #[test]
    fn every_number_can_spoil_the_verdict() {
        let verdict = |snr, rows, epsilon| diagnosis(snr, rows, epsilon).verdict();
        assert_eq!(verdict(0.6, 50, 1.0), Verdict::No);
        assert_eq!(verdict(0.6, 100, 1.0), Verdict::Marginal);
        assert_eq!(verdict(0.6, 200, 1.0), Verdict::Enough);
        assert_eq!(verdict(0.4, 100, 5.0), Verdict::Marginal);
        let slow = diagnosis(0.3, 1_000_000, 5.0);
        assert_eq!(slow.verdict(), Verdict::Enough);
        assert_eq!(slow.steps(500).unwrap().verdict(), Verdict::No);
        // A replaced row costs twice.
        let budget = Budget::new(1.0, 1e-5).unwrap().under(Neighbours::ReplaceOne);
        assert_eq!(Diagnosis::new(0.6, 200, budget).unwrap().verdict(), Verdict::Marginal);
        assert_eq!(verdict(0.0, 200, 1.0), Verdict::No);
    }

    #[test]
    fn the_least_of_each_is_enough_and_a_little_less_is_not() {
        for (snr, rows, epsilon) in [(0.6, 50, 0.2), (0.05, 3000, 1.0), (3.0, 500, 4.0)] {
            let d = diagnosis(snr, rows, epsilon);
            let n = d.least_rows().unwrap();
            assert!(Diagnosis { rows: n, ..d }.is_enough());
            assert!(n == 1 || !Diagnosis { rows: n - 1, ..d }.is_enough());
            let snr = d.least_snr().unwrap();
            assert!(Diagnosis { snr, ..d }.is_enough());
            assert!(!Diagnosis { snr: 0.999 * snr, ..d }.is_enough());
            if let Some(e) = d.least_epsilon() {
                assert!(diagnosis(d.snr, rows, e).is_enough());
                assert!(!diagnosis(d.snr, rows, 0.999 * e).is_enough());
            }
        }
        // Advice for units of eight rows is about the unit, and true.
        let budget = Budget::new(1.0, 1e-5).unwrap().for_units_of(8).unwrap();
        let eight = Diagnosis::new(0.6, 100_000, budget).unwrap();
        assert_eq!(eight.budget().epsilon(), 1.0);
        let least = eight.least_epsilon().unwrap();
        let at = |epsilon| {
            let budget = Budget::new(epsilon, 1e-5).unwrap().for_units_of(8).unwrap();
            Diagnosis::new(0.6, 100_000, budget).unwrap().is_enough()
        };
        assert!(at(1.001 * least) && !at(0.98 * least), "{least}");
        assert!(least > 4.0 * diagnosis(0.6, 100_000, 1.0).least_epsilon().unwrap());
        // No budget makes a weak signal in few rows stronger, and no number of rows a run longer.
        assert_eq!(diagnosis(0.2, 50, 1.0).least_epsilon(), None);
        assert_eq!(diagnosis(0.2, 50, 1.0).steps(500).unwrap().least_rows(), None);
        assert_eq!(diagnosis(0.0, 50, 1.0).least_rows(), None);
    }

    #[test]
    fn nonsense_is_refused() {
        let budget = Budget::new(1.0, 1e-5).unwrap();
        for snr in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(Diagnosis::new(snr, 50, budget).is_err(), "{snr}");
        }
        assert!(Diagnosis::new(1.0, 0, budget).is_err());
        assert!(Diagnosis::new(1.0, 50, Budget::pure(1.0).unwrap()).is_err());
        assert!(Diagnosis::new(1.0, 50, Budget::new(f64::INFINITY, 1e-5).unwrap()).is_err());
        for power in [2.0, 9.5, f64::NAN] {
            assert!(diagnosis(1.0, 50, 1.0).power(power).is_err(), "{power}");
        }
        assert!(diagnosis(1.0, 50, 1.0).steps(0).is_err());
    }
}
