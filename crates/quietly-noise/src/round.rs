//! Rounding s·Z, or a sum of several, once and exactly.
//!
//! # Proof: rounded once, exactly
//!
//! For a scale s = m·2^(E-64) (m a full word, so s < 2^E) the grid has f = 60 - E fractional
//! bits. From coarse ≤ 2⁶⁰|Z| < coarse + SPREAD follows, multiplying by 2^f·s/2⁶⁰ = m/2⁶⁴ < 1 and
//! cutting,
//!
//! ```text
//! q = ⌊coarse·m/2⁶⁴⌋,    q ≤ 2^f·s|Z| < q + SPREAD + 1 = q + WIDTH.
//! ```
//!
//! If q + 2^(f-1) and q + 2^(f-1) + WIDTH - 1 have the same floor after division by 2^f, that is
//! ⌊s|Z| + ½⌋, the rounding of s|Z|; the sign is put on afterwards, since ⌊-t + ½⌋ = -⌊t + ½⌋
//! unless t + ½ is an integer, which has probability zero. Otherwise the number *straddles*
//! (probability about WIDTH·2^-f·m/2⁶⁴: 2⁻²¹ at s = 2³⁰), and late bits decide which of the two
//! integers it is: for one term |Z| < (n + ½)/s is a question about u and a ratio; for several,
//! [`round_wide`] learns bits until both ends of an exact enclosure of the sum round alike.
use num_bigint::{BigInt, BigUint};

use crate::{
    error::Error,
    exact_numbers::Scale,
    lazy_normal::{LazyNormal, multiply_high},
    rejection::outward,
    stream_layout::Words,
    ziggurat::SPREAD,
};

/// 2^f·s|Z| is known to this many units.
pub(crate) const WIDTH: u64 = SPREAD + 1;

/// The fixed-point grid of a scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) scale: Scale,
    /// f.
    pub(crate) bits: u32,
    /// 2^(f-1).
    half: u64,
    mask: u64,
}

impl Grid {
    pub(crate) fn new(scale: Scale) -> Self {
        let bits = (60 - scale.exponent) as u32;
        Self { scale, bits, half: 1 << (bits - 1), mask: (1 << bits) - 1 }
    }

    /// q: 2^f·s|Z| from below, for |Z| at `coarse`.
    #[inline(always)]
    pub(crate) fn cut(&self, coarse: u64) -> u64 {
        multiply_high(coarse, self.scale.mantissa)
    }

    /// ⌊s|Z| + ½⌋ if `q` does not straddle, and whether it does.
    #[inline(always)]
    pub(crate) fn round(&self, q: u64) -> (u64, bool) {
        let t = q + self.half;
        (t >> self.bits, (t & self.mask) + WIDTH > self.mask + 1)
    }

    /// round(s·Z).
    pub(crate) fn round_real<W: Words>(&self, mut z: LazyNormal<W>) -> Result<i64, Error> {
        if let Some(coarse) = z.coarse {
            let (mut n, straddles) = self.round(self.cut(coarse));
            if straddles {
                // Less than a lattice unit is unknown, so it is n or n + 1.
                let (twice, k) = self.scale.twice();
                n += u64::from(!z.below(u128::from(2 * n + 1) << k, twice)?);
            }
            return Ok(if z.negative { -(n as i64) } else { n as i64 });
        }
        round_wide(&self.scale, &mut [(1, &mut z)], 0)
    }
}

/// round(Σ a·s·Z/2ᵏ) over the `terms` (a, Z).
///
/// The result fits: |Z| < 2¹⁷ because a coordinate's words end before that, and callers keep
/// Σ|a|·s/2ᵏ ≤ 2⁴⁵.
#[cold]
pub(crate) fn round_wide<W: Words>(
    scale: &Scale,
    terms: &mut [(i128, &mut LazyNormal<W>)],
    log2_denominator: u32,
) -> Result<i64, Error> {
    let mut p = 64;
    loop {
        for (_, z) in terms.iter_mut() {
            z.refine()?;
        }
        p += 64;
        let (mut low, mut high) = (BigInt::ZERO, BigInt::ZERO);
        for (a, z) in terms.iter() {
            // s|Z| outwards in units of 2^-p: |Z|·m in units of 2^-(p + E - 64).
            let (from, to, denominator) = z.enclose();
            let m = BigUint::from(scale.mantissa);
            let bits = (p as i64 + i64::from(scale.exponent) - 64) as u64;
            let (from, to) = outward(&(from * &m), &(to * m), &denominator, bits);
            let a = BigInt::from(if z.negative { -a } else { *a });
            let (from, to) = (BigInt::from(from) * &a, BigInt::from(to) * &a);
            let swap = from > to;
            low += if swap { &to } else { &from };
            high += if swap { &from } else { &to };
        }
        let one = p + u64::from(log2_denominator);
        let half = BigInt::from(1) << (one - 1);
        // Shifts of negative numbers round down, which is what floor wants.
        let (low, high): (BigInt, BigInt) = ((low + &half) >> one, (high + half) >> one);
        if low == high {
            return Ok(i64::try_from(low).expect("limits on scale and words keep this small"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        stream_layout::Script,
        ziggurat::{LAYERS, TABLE},
    };

    /// The words of a/b < 1: 53 bits at the top of one, then whole ones.
    fn digits(a: &BigUint, b: &BigUint, late: u64) -> (u64, Vec<u64>) {
        let all: BigUint = (a << (53 + 64 * late)) / b;
        (word(&all, late) << 11, (0..late).rev().map(|i| word(&all, i)).collect())
    }

    /// Word i from the right.
    fn word(x: &BigUint, i: u64) -> u64 {
        x.iter_u64_digits().nth(i as usize).unwrap_or(0)
    }

    /// u is chosen so that s·u·X_i = n + ½ to 53 + 64·depth bits, exactly as rationals; the word
    /// after that puts it above or below. Both roundings must agree with what was chosen, from
    /// the fewest words.
    #[test]
    fn straddles_are_decided_by_late_bits() {
        let mut tested = 0;
        for s in [0.25, 1.0, 3.0, 1000.1, 2f64.powi(30) + 0.3, 2f64.powi(45)] {
            let scale = Scale::new(s).unwrap();
            let grid = Grid::new(scale);
            for layer in [1usize, 5, 200, 900] {
                for depth in 0..3u64 {
                    let (v, h) = (BigUint::from(TABLE.v), BigUint::from(TABLE.height(layer)));
                    // A place before `keep`, so that the word is kept at once.
                    let keep = TABLE.layers[layer].keep as f64 / 2f64.powi(64);
                    let n = (s * 0.8 * keep * TABLE.v as f64 / TABLE.height(layer) as f64 - 0.5)
                        .max(0.0)
                        .floor() as u64;
                    let (twice, k) = scale.twice();
                    let a = (BigUint::from(2 * n + 1) << k) * &h;
                    let b = v * twice;
                    if &a * 10u8 > &b * ((keep * 9.9) as u64) {
                        continue; // at the smallest scales ½ is beyond this layer
                    }
                    let (head, late) = digits(&a, &b, depth + 1);
                    for up in [false, true] {
                        let mut late = late.clone();
                        let last = late.last_mut().unwrap();
                        *last = if up {
                            last.saturating_add(1 << 20)
                        } else {
                            last.saturating_sub(1 << 20)
                        };
                        late.extend([77, 78, 79]);
                        let word = head | 1 << 10 | layer as u64;
                        let draw = || LazyNormal::draw(word, Script::new(&late)).unwrap();
                        let coarse = draw().coarse.unwrap();
                        assert!(grid.round(grid.cut(coarse)).1, "it must straddle");
                        let want = -(n as i64 + i64::from(up));
                        assert_eq!(grid.round_real(draw()), Ok(want), "{s} {layer} {depth} {up}");
                        assert_eq!(round_wide(&scale, &mut [(1, &mut draw())], 0), Ok(want));
                        tested += 1;
                    }
                }
            }
        }
        assert!(tested > 100, "{tested}");
    }

    /// A straddle in the tail: x = r + u/r with s·x = n + ½ to 64 bits of u, then decided by the
    /// next word.
    #[test]
    fn straddles_in_the_tail_are_decided_by_late_bits() {
        use crate::ziggurat::R;
        for s in [3.0, 1000.0, 3.0 * 2f64.powi(38)] {
            let scale = Scale::new(s).unwrap();
            let n = (s * R as f64 / 2f64.powi(32) + s * 0.1).floor() as u128;
            // u = r(n + ½)/s - r² for s a whole number, over 2s·2⁶⁴.
            let (r, s) = (BigUint::from(R), BigUint::from(s as u128));
            let a = ((BigUint::from(2 * n + 1) * &r) << 32) - &r * &r * 2u8 * &s;
            let all: BigUint = (a << 64) / (s * 2u8); // two words of u
            let (whole, head, late) = (word(&all, 2), word(&all, 1), word(&all, 0));
            for up in [false, true] {
                let late =
                    if up { late.saturating_add(1 << 30) } else { late.saturating_sub(1 << 30) };
                let mut words: Vec<u64> = [5, 4, 9].repeat(whole as usize);
                words.extend([head, u64::MAX, 0, late, 1, 2, 3]);
                let draw = || LazyNormal::draw(u64::MAX >> 11 << 11, Script::new(&words)).unwrap();
                let want = Ok((n + u128::from(up)) as i64);
                let grid = Grid::new(scale);
                assert!(up || grid.round(grid.cut(draw().coarse.unwrap())).1);
                assert_eq!(grid.round_real(draw()), want);
                assert_eq!(round_wide(&scale, &mut [(1, &mut draw())], 0), want);
            }
        }
    }

    /// Far out, where the grid ends: E = 40 + ¼, so |Z| = r + 40.25/r.
    #[test]
    fn draws_beyond_the_grid_are_rounded_too() {
        let mut words: Vec<u64> = [5, 4, 9].repeat(40);
        words.extend([1 << 62, u64::MAX, 0, 0, 0, 0, 0, 0, 0]);
        let z = LazyNormal::draw(u64::MAX >> 11 << 11, Script::new(&words)).unwrap();
        assert_eq!(z.coarse, None);
        let grid = Grid::new(Scale::new(1e6).unwrap());
        let want = (1e6 * (4.03964 + 40.25 / 4.03964_f64)).round() as i64;
        let got = grid.round_real(z).unwrap();
        assert!((got - want).abs() <= 1, "{got} {want}");
    }

    #[test]
    fn the_grid_holds_every_layer() {
        for s in [0.25, 0.4999, 1.0, 2f64.powi(45)] {
            let grid = Grid::new(Scale::new(s).unwrap());
            assert!(WIDTH < grid.mask);
            for layer in 0..LAYERS {
                let q = grid.cut(TABLE.layers[layer].width + SPREAD);
                assert!(q.checked_add(grid.half + WIDTH).is_some_and(|t| t < 1 << 63));
            }
        }
    }
}
