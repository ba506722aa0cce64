//! Rejection: whether a point lies below the density. A comparison in 64 bits decides nearly
//! always; otherwise a wide one does. `lazy_normal.rs` proves that the result is exact.
//!
//! # Proof: comparisons end soon
//!
//! Let y be known to 64m bits, so that y·H_i (or y·G) is uniform in an interval of length at least
//! 2⁻¹²·2^-64m. After the next word y stays undecided only where f(x) itself is not known well
//! enough: by u, known to 53 + 64m bits and worth less than 2^-(51 + 64m) in f, and by fewer than
//! 16 units of the precision 2^-64(m+1). Those are less than 2⁻³⁰ of the interval, whatever the
//! bits of u. The narrow comparison leaves less than 2¹³ units of 2⁻⁶⁴ open, less than 2⁻³⁰ as
//! well.
use num_bigint::BigUint;

use crate::{
    error::Error,
    exp::{EXP_ERROR, exp_neg, exp_neg_wide},
    lazy_normal::multiply_high,
    lazy_uniform::{LazyUniform, exponential},
    stream_layout::Words,
    ziggurat::{R, SPREAD, TABLE},
};

/// How far f(x) can lie below its value at `coarse`, in units of 2⁻⁶⁴: |f'| ≤ e^-½ < 0.61 over
/// SPREAD units of 2⁻⁶⁰, 16 for cutting b to 2⁻⁶⁰, and the error of the exponential.
const F_BELOW: u64 = (SPREAD * 16 * 61).div_ceil(100) + 16 + EXP_ERROR;

/// What a narrow comparison says.
#[derive(Debug, PartialEq)]
enum Verdict {
    Keep,
    Refuse,
    /// Too close for 64 bits.
    Unsure,
}

/// Whether u·X₀ < r, which is u < r·Y₁/v.
pub(crate) fn below_r(
    coarse: u64,
    u: &mut LazyUniform,
    words: &mut impl Words,
) -> Result<bool, Error> {
    const R60: u64 = R << 28;
    if coarse + SPREAD <= R60 {
        return Ok(true);
    }
    if coarse >= R60 {
        return Ok(false);
    }
    u.below(u128::from(R) * u128::from(TABLE.y[1]), u128::from(TABLE.v) << 32, words)
}

/// Whether a fresh point of `layer` at x = u·X_i lies below f.
pub(crate) fn under(
    layer: usize,
    coarse: u64,
    u: &mut LazyUniform,
    words: &mut impl Words,
) -> Result<bool, Error> {
    let mut y = LazyUniform::draw(words)?;
    match under_narrow(layer, coarse, y.head) {
        Verdict::Keep => Ok(true),
        Verdict::Refuse => Ok(false),
        Verdict::Unsure => under_wide(layer, u, &mut y, words),
    }
}

/// With f taken at coarse, f(x) lies in (f - F_BELOW, f + EXP_ERROR].
fn under_narrow(layer: usize, coarse: u64, y_head: u64) -> Verdict {
    let b = (u128::from(coarse) * u128::from(coarse)) >> 61;
    // 4·2⁶²·H_i fits a word, so 2⁶⁴y is less than two above this.
    let rise = multiply_high(y_head, TABLE.height(layer) << 2);
    verdict((u128::from(TABLE.y[layer]) << 2) + u128::from(rise), exp_neg(b as u64))
}

/// Whether a number in [y, y + 3) is below one in (e - F_BELOW, e + EXP_ERROR].
fn verdict(y: u128, e: u64) -> Verdict {
    let e = u128::from(e);
    if y + 3 + u128::from(F_BELOW) <= e {
        Verdict::Keep
    } else if y > e + u128::from(EXP_ERROR) {
        Verdict::Refuse
    } else {
        Verdict::Unsure
    }
}

#[cold]
fn under_wide(
    layer: usize,
    u: &mut LazyUniform,
    y: &mut LazyUniform,
    words: &mut impl Words,
) -> Result<bool, Error> {
    let (floor, height) = (BigUint::from(TABLE.y[layer]), BigUint::from(TABLE.height(layer)));
    decide(u, y, words, |u, y, p| {
        let x = u.integer() * TABLE.v;
        let x = outward(&x, &(&x + TABLE.v), &(&height << u.bits()), p);
        let y_low = (&floor << y.bits()) + y.integer() * &height;
        let y = outward(&y_low, &(&y_low + &height), &(BigUint::from(1u8) << (62 + y.bits())), p);
        (y, x, BigUint::ZERO)
    })
}

/// Integer parts of E for which the tail is decided in 64 bits: (x - r)² + r² stays below 32.
pub(crate) const NARROW: u64 = 14;

/// An exponential variable E whose x = r + E/r is kept, or `None` if it is refused.
#[cold]
pub(crate) fn tail(words: &mut impl Words) -> Result<Option<(u64, LazyUniform)>, Error> {
    let (whole, mut u) = exponential(words)?;
    let mut y = LazyUniform::draw(words)?;
    let keep = match tail_narrow(whole, &u, y.head) {
        Verdict::Keep => true,
        Verdict::Refuse => false,
        Verdict::Unsure => tail_wide(whole, &mut u, &mut y, words)?,
    };
    Ok(keep.then_some((whole, u)))
}

/// ⌊2⁶⁰E/r⌋, less than two below the truth: the unknown bits of E are worth less than 2⁻⁶⁴.
pub(crate) fn tail_excess(whole: u64, u: &LazyUniform) -> u64 {
    let e = (u128::from(whole) << 64) | u128::from(u.head);
    ((e << 28) / u128::from(R)) as u64
}

/// As [`under_narrow`]: x - r moves by less than SPREAD, and ∂/∂x e^-b is below 0.61 here too.
fn tail_narrow(whole: u64, u: &LazyUniform, y_head: u64) -> Verdict {
    if whole >= NARROW {
        return Verdict::Unsure;
    }
    let (t, r) = (u128::from(tail_excess(whole, u)), u128::from(R << 28));
    let b = (t * t + r * r) >> 61;
    // y' and G are each less than a unit above what is multiplied: less than three in all.
    let y = multiply_high(y_head, (TABLE.envelope() >> 62) as u64);
    verdict(u128::from(y), exp_neg(b as u64))
}

#[cold]
fn tail_wide(
    whole: u64,
    u: &mut LazyUniform,
    y: &mut LazyUniform,
    words: &mut impl Words,
) -> Result<bool, Error> {
    let envelope = BigUint::from(TABLE.envelope());
    decide(u, y, words, |u, y, p| {
        let e = (BigUint::from(whole) << u.bits()) + u.integer();
        let r = BigUint::from(R);
        let x = outward(&(&e << 32), &((&e + 1u8) << 32), &(&r << u.bits()), p);
        let y_low = y.integer() * &envelope;
        let one = BigUint::from(1u8) << (126 + y.bits());
        let y = outward(&y_low, &(&y_low + &envelope), &one, p);
        (y, x, (&r * &r) << (2 * p - 64))
    })
}

/// low/denominator and high/denominator in units of 2^-p, the first down and the second up.
pub(crate) fn outward(
    low: &BigUint,
    high: &BigUint,
    denominator: &BigUint,
    p: u64,
) -> (BigUint, BigUint) {
    ((low << p) / denominator, (high << p) / denominator + 1u8)
}

type Enclosure = (BigUint, BigUint);

/// Whether y < exp(-(x² + c)/2), by refining `u` and `v` until their enclosures tell. `enclose`
/// gives y and x in units of 2^-p, and c exactly in units of 2^-2p.
fn decide<W: Words>(
    u: &mut LazyUniform,
    v: &mut LazyUniform,
    words: &mut W,
    enclose: impl Fn(&LazyUniform, &LazyUniform, u64) -> (Enclosure, Enclosure, BigUint),
) -> Result<bool, Error> {
    let mut p = 64;
    loop {
        u.refine(words)?;
        v.refine(words)?;
        p += 64;
        let (y, x, c) = enclose(u, v, p);
        let b_low = (&x.0 * &x.0 + &c) >> (p + 1);
        let b_high = ((&x.1 * &x.1 + &c) >> (p + 1)) + 1u8;
        if y.1 <= exp_neg_wide(&b_high, p).0 {
            return Ok(true);
        }
        if y.0 >= exp_neg_wide(&b_low, p).1 {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use dashu_float::{FBig, round::mode::HalfEven};
    use dashu_int::{IBig, UBig};

    use super::*;
    use crate::{lazy_normal::LazyNormal, stream_layout::Script};

    type Float = FBig<HalfEven, 2>;

    const PRECISION: usize = 400;

    fn float(x: impl Into<IBig>, bits: isize) -> Float {
        Float::from_parts(x.into(), -bits).with_precision(PRECISION).value()
    }

    /// The words of a number in [0, 1), by another library.
    fn digits(x: &Float, count: usize) -> Vec<u64> {
        let scaled = (x.clone() << (64 * count as isize)).floor().to_int().value();
        let bytes = UBig::try_from(scaled).unwrap().to_le_bytes();
        let mut words = vec![0u64; count];
        for (i, byte) in bytes.iter().enumerate() {
            words[count - 1 - i / 8] |= u64::from(*byte) << (8 * (i % 8));
        }
        words
    }

    /// u with 53 bits of head and then whole words, as the sampler reads it.
    fn number(head: u64, late: &[u64]) -> Float {
        let mut u = float(head >> 11, 53);
        for (i, word) in late.iter().enumerate() {
            u += float(*word, 117 + 64 * i as isize);
        }
        u
    }

    fn f_of(x: Float) -> Float {
        (-(x.clone() * x) >> 1).exp()
    }

    /// A word of layer 7 that is kept at once.
    const PLAIN: u64 = (1 << 62) | 7;

    /// Interleaves the late words of two numbers, as comparisons read them, y's head first.
    fn reads(y: &[u64], u: &[u64]) -> Vec<u64> {
        let mut words = vec![y[0]];
        for (u, y) in u.iter().zip(&y[1..]) {
            words.extend([*u, *y]);
        }
        words
    }

    /// y agrees with f(x) in `depth` words and differs in the next: every shallower comparison
    /// must be unsure, and the answer must be that of 400-bit arithmetic. Nothing is read beyond
    /// what is needed.
    #[test]
    fn the_wedge_is_decided_by_late_bits() {
        let late = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 63];
        for layer in [1, 17, 300, 700, 1022, 1023] {
            let keep = TABLE.layers[layer].keep;
            // Between `keep` and the layer's end, in the middle of the wedge.
            let head = (keep / 2 + u64::MAX / 2) >> 11 << 11;
            let word = head | 1 << 10 | layer as u64;
            assert!(word >= keep);
            let height = float(TABLE.height(layer), 62);
            let x = number(head, &late) * float(TABLE.v, 62) / &height;
            let target = (f_of(x.clone()) - float(TABLE.y[layer], 62)) / &height;
            if layer == 1023 {
                assert!(target < float(1, 0));
            }
            let mut reached = 0;
            for depth in 0..3 {
                for up in [false, true] {
                    let mut y = digits(&target, depth + 1);
                    let nudge = 1 << 40;
                    y[depth] = if up { y[depth] + nudge } else { y[depth] - nudge };
                    let mut words = reads(&y, &late);
                    words.push(PLAIN);
                    let real = LazyNormal::draw(word, Script::new(&words)).unwrap();
                    // Up: above f, refused, and the plain word is used.
                    assert_eq!(real.denominator == TABLE.height(7), up, "{layer} {depth}");
                    assert_eq!(real.words.0.len(), usize::from(!up));
                    if !up {
                        reached += 1;
                        assert!(real.negative);
                        assert_eq!(real.u.bits(), 53 + 64 * depth as u64);
                        assert_encloses(
                            &real,
                            &(number(head, &late[..depth]) * float(TABLE.v, 62) / &height),
                        );
                    }
                }
            }
            assert_eq!(reached, 3);
        }
    }

    /// low ≤ x ≤ high where x is the number with zeros after the known bits, so low = x.
    fn assert_encloses(real: &LazyNormal<Script>, x: &Float) {
        let (low, high, denominator) = real.enclose();
        let big = |x: &BigUint| float(IBig::from(UBig::from_le_bytes(&x.to_bytes_le())), 0);
        let (low, high) = (big(&low) / big(&denominator), big(&high) / big(&denominator));
        let error = (low.clone() - x).to_f64().value().abs();
        assert!(error < 1e-100, "{error}");
        assert!(high > low);
        if let Some(coarse) = real.coarse {
            assert!(float(coarse, 60) <= low + float(1, 300));
            assert!(high <= float(coarse + SPREAD, 60));
        }
    }

    /// The same for the tail, with the exponential's fraction in place of u.
    #[test]
    fn the_tail_is_decided_by_late_bits() {
        let word = (u64::MAX >> 11 << 11) | 1 << 10; // layer 0, x near X₀ > r
        let late = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 1 << 63];
        let (r, envelope) = (float(R, 32), float(TABLE.envelope(), 126));
        for whole in [0u64, 1, 5, 13, 14, 20] {
            for fraction in [1u64 << 61, 0x9999_9999_9999_9999] {
                let mut e = float(whole, 0) + float(fraction, 64);
                for (i, word) in late.iter().enumerate() {
                    e += float(*word, 128 + 64 * i as isize);
                }
                let t = e / &r;
                let target = (-((t.clone() * &t + r.clone() * &r) >> 1)).exp() / &envelope;
                for depth in 0..3 {
                    for up in [false, true] {
                        let mut y = digits(&target, depth + 1);
                        // Far out the target is tiny and its first digits are zero.
                        let nudge = if depth > 0 || whole < 6 { 1 << 40 } else { y[0] / 2 + 1 };
                        y[depth] = if up {
                            y[depth].saturating_add(nudge)
                        } else {
                            y[depth].saturating_sub(nudge)
                        };
                        // A run of two fails and raises the integer part; a run of one ends it.
                        let mut words: Vec<u64> = [5, 4, 9].repeat(whole as usize);
                        words.extend([fraction, u64::MAX]);
                        words.extend(reads(&y, &late));
                        // Far out even the first comparison is wide and reads a level more.
                        let spare = [late[depth], if up { u64::MAX } else { 0 }];
                        let mut enough = words.clone();
                        enough.extend(spare);
                        enough.push(PLAIN);
                        words.push(PLAIN);
                        let script = if whole >= NARROW && depth == 0 { enough } else { words };
                        let real = LazyNormal::draw(word, Script::new(&script)).unwrap();
                        assert_eq!(real.denominator == TABLE.height(7), up, "{whole} {depth} {up}");
                        if !up {
                            assert_eq!(real.coarse.is_some(), whole < NARROW);
                            let known = real.u.bits() as usize / 64 - 1;
                            let mut e = float(whole, 0) + float(fraction, 64);
                            for (i, word) in late[..known].iter().enumerate() {
                                e += float(*word, 128 + 64 * i as isize);
                            }
                            assert_encloses(&real, &(r.clone() + e / &r));
                        }
                    }
                }
            }
        }
    }

    /// u agrees with r/X₀ in its 53 bits and one word more; the second word sends it into the
    /// tail or not.
    #[test]
    fn the_start_of_the_tail_is_decided_by_late_bits() {
        let border = float(R, 32) * float(TABLE.y[1], 62) / float(TABLE.v, 62);
        let head = digits(&border, 1)[0] >> 11 << 11;
        let rest = (border - float(head >> 11, 53)) << 53;
        let late = digits(&rest, 2);
        for (second, tail) in [(late[1] - 9, false), (late[1] + 9, true)] {
            // In the rectangle: y' = 0 keeps it. In the tail: E = 1/4 and y' = 0 keep it.
            let words = if tail {
                vec![late[0], second, 1 << 62, u64::MAX, 0]
            } else {
                vec![late[0], second, 0]
            };
            let real = LazyNormal::draw(head, Script::new(&words)).unwrap();
            assert!(real.words.0.is_empty());
            assert_eq!(real.offset != 0, tail);
            if tail {
                assert_encloses(&real, &(float(R, 32) + (float(1, 2) / float(R, 32))));
            } else {
                let x =
                    number(head, &[late[0], second]) * float(TABLE.v, 62) / float(TABLE.y[1], 62);
                assert!(x < float(R, 32));
                assert_encloses(&real, &x);
            }
        }
    }

    /// The narrow verdict is never wrong and seldom unsure, over heights on both sides of f.
    #[test]
    fn narrow_verdicts_are_right() {
        let mut unsure = 0;
        for i in 0..4000u64 {
            let layer = 1 + (i * 37 % 1023) as usize;
            let keep = TABLE.layers[layer].keep;
            let head = (keep + (u64::MAX - keep) / 4000 * i) >> 11 << 11;
            let height = float(TABLE.height(layer), 62);
            let x = number(head, &[]) * float(TABLE.v, 62) / &height;
            let x_next = x.clone() + float(TABLE.v, 62) / &height / float(1u64 << 53, 0);
            let at = |x: Float| (f_of(x) - float(TABLE.y[layer], 62)) / &height;
            let coarse = multiply_high(head, TABLE.layers[layer].width);
            let near = at(x.clone()).to_f64().value().clamp(0.0, 0.999_999) * 2f64.powi(64);
            for distance in [-1e9, -2e7, -1e4, 0.0, 1e4, 2e7, 1e9] {
                let y = (near + distance).clamp(0.0, 1.8e19) as u64;
                let (y_low, y_high) = (float(y, 64), float(u128::from(y) + 1, 64));
                match under_narrow(layer, coarse, y) {
                    Verdict::Keep => assert!(y_high <= at(x_next.clone())),
                    Verdict::Refuse => assert!(y_low >= at(x.clone())),
                    Verdict::Unsure => unsure += 1,
                }
            }
        }
        // Certainly unsure at distance 0; seldom at 1e9 of 2⁶⁴.
        assert!((3000..21_000).contains(&unsure), "{unsure}");
    }
}
