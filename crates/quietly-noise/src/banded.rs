//! A banded strategy matrix, in strategy form: V_t = (CX)_t + round(s·Z_t).
//!
//! C is lower triangular and Toeplitz, C_{t,t-j} = c_j for j < b, with c_j = a_j/2ᵏ. CX then lies
//! on the lattice of multiples of 2^-k, and with noise rounded to *that* lattice V = round(CX +
//! sZ): a function of the ideal mechanism. In units of 2^-k: V_t = Σ a_j·X_{t-j} +
//! round(2ᵏ·s·Z_t). The last b - 1 sums are secret state.
//!
//! Y = C⁻¹V, an estimate of X with correlated noise, is post-processing: [`BandedInverse`], in
//! floating point.
use std::{collections::VecDeque, fmt};

use zeroize::Zeroizing;

use crate::{error::Error, key::Stream, normal::RoundedNormal, scale::Dyadic};

/// The banded mechanism: secret sums in, noisy V out. The secret state has no getter.
///
/// ```
/// use quietly_noise::{Banded, Dyadic, Key};
///
/// let stream = Key::from_seed(1).stream("banded");
/// let band = [Dyadic::ONE, Dyadic::new(1, 1)?, Dyadic::new(3, 3)?]; // 1, 1/2, 3/8
/// let mut banded = Banded::new(stream, 2, 100.0, &band)?;
/// let mut inverse = banded.inverse();
/// let released = banded.release(&[40, -7])?; // in units of 1/8
/// let estimate = inverse.next(&released); // near 40, -7
/// # Ok::<(), quietly_noise::Error>(())
/// ```
pub struct Banded {
    stream: Stream,
    width: usize,
    noise: RoundedNormal,
    band: Vec<Dyadic>,
    /// a_0, a_1, …
    numerators: Vec<i64>,
    log2_denominator: u32,
    limit: i64,
    step: u64,
    /// X_{t-1}, X_{t-2}, …
    earlier: VecDeque<Zeroizing<Vec<i64>>>,
}

impl Banded {
    /// The mechanism with the band c_0, c_1, … and noise of `scale` lattice units. It owns its
    /// stream, so no noise is used twice.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless c_0 > 0, `scale`·2ᵏ is from 1/4 to 2⁴⁵, and Σ|a_j| at most 2⁵².
    pub fn new(stream: Stream, width: usize, scale: f64, band: &[Dyadic]) -> Result<Self, Error> {
        let first = band.first().map_or(0.0, |c| c.value());
        Error::unless(first > 0.0, "first coefficient of the band", "positive", first)?;
        let log2_denominator = band.iter().map(|c| c.log2_denominator()).max().unwrap_or(0);
        let numerators: Vec<i128> = band.iter().map(|c| c.over(log2_denominator)).collect();
        let sum: i128 = numerators.iter().map(|a| a.abs()).sum();
        Error::unless(sum <= 1 << 52, "band", "of numerators at most 2^52 in sum", sum)?;
        Ok(Self {
            stream,
            width,
            // A power of two times an f64 in this range is exact.
            noise: RoundedNormal::new(scale * (1u64 << log2_denominator) as f64)?,
            band: band.to_vec(),
            numerators: numerators.iter().map(|a| *a as i64).collect(),
            log2_denominator,
            limit: ((1i128 << 62) / sum) as i64,
            step: 0,
            earlier: VecDeque::new(),
        })
    }

    /// k: what is released is in units of 2^-k lattice units.
    pub fn log2_denominator(&self) -> u32 {
        self.log2_denominator
    }

    /// Sums are cut to this size, so that Σ|a_j·X| ≤ 2⁶². It depends on the band alone.
    pub fn limit(&self) -> i64 {
        self.limit
    }

    /// Takes the sum of the next step and returns V in units of 2^-k lattice units.
    ///
    /// # Errors
    ///
    /// As [`RoundedNormal::fill`]. Nothing has changed then.
    ///
    /// # Panics
    ///
    /// If `sum` is not `width` long, which is a bug in the caller.
    pub fn release(&mut self, sum: &[i64]) -> Result<Vec<i64>, Error> {
        assert_eq!(sum.len(), self.width, "width of the sum");
        let sum: Vec<i64> = sum.iter().map(|x| (*x).clamp(-self.limit, self.limit)).collect();
        let sum = Zeroizing::new(sum);
        let mut released: Vec<i64> = sum.iter().map(|x| x * self.numerators[0]).collect();
        for (a, x) in self.numerators[1..].iter().zip(&self.earlier) {
            released.iter_mut().zip(x.iter()).for_each(|(v, x)| *v += a * x);
        }
        self.noise.add(&self.stream, self.step, &mut released)?;
        self.earlier.push_front(sum);
        self.earlier.truncate(self.numerators.len() - 1);
        self.step += 1;
        Ok(released)
    }

    /// The post-processing that belongs to this band.
    pub fn inverse(&self) -> BandedInverse {
        BandedInverse {
            band: self.band.iter().map(|c| c.value()).collect(),
            unit: 0.5f64.powi(self.log2_denominator as i32),
            earlier: VecDeque::new(),
        }
    }
}

impl fmt::Debug for Banded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Banded")
            .field("width", &self.width)
            .field("band", &self.band)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// Y = C⁻¹V, step by step: Y_t = (V_t - Σ_{j≥1} c_j·Y_{t-j})/c_0. It sees nothing secret, so its
/// rounding costs no privacy.
#[derive(Clone, Debug)]
pub struct BandedInverse {
    band: Vec<f64>,
    unit: f64,
    earlier: VecDeque<Vec<f64>>,
}

impl BandedInverse {
    /// Takes what [`Banded::release`] returned and gives Y in lattice units.
    pub fn next(&mut self, released: &[i64]) -> Vec<f64> {
        let mut y: Vec<f64> = released.iter().map(|v| *v as f64 * self.unit).collect();
        for (c, earlier) in self.band[1..].iter().zip(&self.earlier) {
            y.iter_mut().zip(earlier).for_each(|(y, e)| *y -= c * e);
        }
        y.iter_mut().for_each(|y| *y /= self.band[0]);
        self.earlier.push_front(y.clone());
        self.earlier.truncate(self.band.len() - 1);
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{correlated::regenerate, key::Key, round::round_wide, scale::Scale};

    fn band() -> Vec<Dyadic> {
        [(1, 0), (-1, 1), (0, 0), (5, 4)].map(|(a, k)| Dyadic::new(a, k).unwrap()).to_vec()
    }

    fn sums(t: i64) -> [i64; 2] {
        [1000 * t - 3000 + t * t, -(1 << (3 * t)) - 1]
    }

    /// V is round(CX + sZ) on the finer lattice, with CX in rationals (integers over 16) and
    /// round(16·s·Z) by the arbitrary-precision path alone.
    #[test]
    fn released_values_are_the_rounded_ideal() {
        let key = Key::from_seed(9);
        let mut banded = Banded::new(key.stream("band"), 2, 37.5, &band()).unwrap();
        let mut inverse = banded.inverse();
        let scale = Scale::new(37.5 * 16.0).unwrap();
        let stream = key.stream("band");
        for t in 0..12i64 {
            let released = banded.release(&sums(t)).unwrap();
            let y = inverse.next(&released);
            for i in 0..2 {
                let exact: i64 =
                    [16, -8, 0, 5].iter().zip((0..=t).rev()).map(|(a, u)| a * sums(u)[i]).sum();
                let mut z = regenerate(&stream, t as u64, i as u64).unwrap();
                let noise = round_wide(&scale, &mut [(1, &mut z)], 0).unwrap();
                assert_eq!(released[i], exact + noise);
                // C⁻¹ has entries below 1.3 here, so Y is X with noise of a few dozen.
                assert!((y[i] - sums(t)[i] as f64).abs() < 600.0, "{t} {i} {}", y[i]);
            }
        }
    }

    #[test]
    fn bad_bands_and_extreme_sums() {
        let new =
            |scale, band: &[Dyadic]| Banded::new(Key::from_seed(0).stream(""), 1, scale, band);
        assert!(new(1.0, &[]).is_err());
        assert!(new(1.0, &[-Dyadic::ONE]).is_err());
        assert!(new(f64::NAN, &band()).is_err());
        assert!(new(2f64.powi(42), &band()).is_err());
        let mut banded = new(2f64.powi(41), &band()).unwrap();
        assert_eq!(banded.limit(), (1 << 62) / 29);
        for x in [i64::MAX, i64::MIN, i64::MAX, i64::MAX, i64::MIN] {
            banded.release(&[x]).unwrap();
        }
        let text = format!("{banded:?}");
        assert!(text.ends_with("step: 5, .. }") && !text.contains("159"), "{text}");
    }
}
