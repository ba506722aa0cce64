//! The exponential mechanism, exactly.
//!
//! # Proof: exponential mechanism by rejection
//!
//! McSherry and Talwar, *Mechanism design via differential privacy*, FOCS 2007: index k with
//! probability proportional to exp(ε·u_k/(2D)). With M the largest score, a uniform index is
//! proposed and kept with probability exp(-(ε/2D)(M - u_k)): rejection from the uniform law, so
//! what is kept has exactly the odds asked for. Scores are integers, the rate a ratio of
//! integers, and `bernoulli_exp` is exact; no floating point is involved.
//!
//! **Time.** The largest score is kept whenever it is proposed, so at most K proposals are
//! expected for K candidates, each a few words, whatever the spread of the scores: 10⁵ candidates
//! take milliseconds. The number of proposals is geometric with mean K/Σexp(-(ε/2D)(M - u_k)):
//! **it depends on the data.** The time reveals about how many candidates are near the best. Do not
//! let an adversary time the call.
use crate::{
    bits::{Bits, bernoulli_exp},
    error::Error,
    exact_numbers::Ratio,
};

/// Selects an index with probability proportional to exp(rate·score).
///
/// ```
/// use quietly_noise::{ExponentialMechanism, Key, Ratio};
///
/// // ε/(2D) = 1/4 per unit of score, scores in quarters.
/// let mechanism = ExponentialMechanism::new(Ratio::new(1, 4)?, 2)?;
/// let mut bits = Key::from_seed(1).stream("threshold").bits(0)?;
/// let index = mechanism.choose(&[-400, -3, 0, -900], &mut bits)?;
/// assert!(index == 1 || index == 2);
/// # Ok::<(), quietly_noise::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ExponentialMechanism {
    rate: Ratio,
    log2_denominator: u32,
}

impl ExponentialMechanism {
    /// The mechanism with `rate` = ε/(2D), exactly, for scores in units of 2^-`log2_denominator`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if `log2_denominator` exceeds 32.
    pub fn new(rate: Ratio, log2_denominator: u32) -> Result<Self, Error> {
        let fine = log2_denominator <= 32;
        Error::ensure(fine, "log2_denominator", "at most 32", log2_denominator)?;
        Ok(Self { rate, log2_denominator })
    }

    /// An index of `scores`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if there are no scores; [`Error::Exhausted`] after 2⁶⁷ words.
    pub fn choose(&self, scores: &[i64], bits: &mut Bits) -> Result<usize, Error> {
        let most = scores.iter().max();
        let most = *most.ok_or_else(|| Error::parameter("number of scores", "positive", 0))?;
        let denominator = u128::from(self.rate.denominator()) << self.log2_denominator;
        loop {
            let index = bits.below(scores.len() as u64)? as usize;
            // Both factors are below 2⁶⁴.
            let gap = u128::from(most.abs_diff(scores[index]));
            if bernoulli_exp(gap * u128::from(self.rate.numerator()), denominator, bits)? {
                return Ok(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn counts(scores: &[i64], draws: usize) -> Vec<f64> {
        let mechanism = ExponentialMechanism::new(Ratio::new(1, 3).unwrap(), 1).unwrap();
        let mut bits = Key::from_seed(41).stream("choice").bits(scores[0] as u64 & 7).unwrap();
        let mut counts = vec![0.0; scores.len()];
        for _ in 0..draws {
            counts[mechanism.choose(scores, &mut bits).unwrap()] += 1.0;
        }
        counts
    }

    fn law(scores: &[i64], rate: f64) -> Vec<f64> {
        let weights: Vec<f64> = scores.iter().map(|u| (rate * *u as f64 / 2.0).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|w| w / total).collect()
    }

    fn chi_square(counts: &[f64], law: &[f64]) -> f64 {
        let n: f64 = counts.iter().sum();
        counts.iter().zip(law).map(|(c, p)| (c - n * p).powi(2) / (n * p)).sum()
    }

    /// 40.5 is the 1 - 1e-6 quantile of χ² with 7 degrees of freedom (40.52). The control is the
    /// rate off by 3 %.
    #[test]
    fn odds_are_proportional_to_the_exponentials() {
        let scores = [3, 0, -2, -5, 1, 3, -9, 2];
        let counts = counts(&scores, 200_000);
        let right = chi_square(&counts, &law(&scores, 1.0 / 3.0));
        assert!(right < 40.5, "{right}");
        let wrong = chi_square(&counts, &law(&scores, 1.03 / 3.0));
        assert!(wrong > 40.5, "{wrong}");
    }

    /// Neighbouring counts: every score moves by at most one unit, here two halves, so no index
    /// changes its odds by more than e^(2·rate) = e^(2/3). Observed log-odds have a standard
    /// error below 0.02; 5 of those give a false-positive rate of 1e-6. The control: the bound is
    /// nearly met (0.616), so a bound of three quarters is refused.
    #[test]
    fn neighbours_have_close_odds() {
        let scores = [1, 1, 1, 1, 1, 1, 1, 1, 1, -3];
        let neighbour = [-1; 10];
        let (a, b) = (counts(&scores, 100_000), counts(&neighbour, 100_000));
        let worst = a.iter().zip(&b).map(|(a, b)| (a / b).ln().abs()).fold(0.0, f64::max);
        assert!(worst < 2.0 / 3.0 + 0.1, "{worst}");
        assert!(worst > 0.75 * 2.0 / 3.0, "{worst}");
    }

    #[test]
    fn many_candidates_with_huge_gaps_are_quick() {
        let scores: Vec<i64> = (0..100_000i64).map(|i| (i * 7919 % 100_003) * -10_000).collect();
        let mechanism = ExponentialMechanism::new(Ratio::new(1, 1).unwrap(), 0).unwrap();
        let mut bits = Key::from_seed(42).stream("choice").bits(0).unwrap();
        for _ in 0..5 {
            assert_eq!(mechanism.choose(&scores, &mut bits).unwrap(), 0);
        }
        // Extreme scores and rates overflow nothing.
        let mechanism =
            ExponentialMechanism::new(Ratio::new(u64::MAX, u64::MAX).unwrap(), 32).unwrap();
        let index = mechanism.choose(&[i64::MIN, i64::MAX, i64::MIN], &mut bits).unwrap();
        assert_eq!(index, 1);
        let mechanism = ExponentialMechanism::new(Ratio::new(u64::MAX, 1).unwrap(), 0).unwrap();
        assert_eq!(mechanism.choose(&[i64::MIN, i64::MAX], &mut bits).unwrap(), 1);
    }

    #[test]
    fn bad_parameters_are_errors() {
        let rate = Ratio::new(1, 2).unwrap();
        assert!(ExponentialMechanism::new(rate, 33).is_err());
        let mut bits = Key::from_seed(42).stream("choice").bits(0).unwrap();
        assert!(ExponentialMechanism::new(rate, 0).unwrap().choose(&[], &mut bits).is_err());
    }
}
