//! A standard normal variable as a real number of which ever more bits can be known.
//!
//! [`LazyNormal::draw`] is the ziggurat of [`crate::ziggurat`] on lazily drawn numbers. It starts
//! from the first word w of a coordinate: bits 0–9 choose the layer i, bit 10 the sign, bits 11–63
//! are the first 53 bits of u, and x = u·X_i. Refused, it starts again from the next late word.
//! What it returns is not an approximation but (offset/2⁶⁴ + u)·numerator/denominator = |Z| with
//! exact integers and a uniform u whose late bits are still to come. So |Z| can be enclosed as
//! narrowly as anyone likes, and the same (key, step, coordinate) always encloses the *same* real
//! number.
//!
//! # Proof: the lazy normal is exact
//!
//! The cover and its rule are exact (see [`crate::ziggurat`]). It remains that each decision is
//! that of the real numbers:
//!
//! * *Kept at once*: w below `keep` implies u·X_i ≤ K_i whatever the late bits, so y < Y_{i+1} ≤
//!   f(K_i) ≤ f(x).
//! * *Tail or not* (layer 0): whether u·X₀ < r is first read off the 53 bits, then decided with
//!   late bits.
//! * *Wedge*: y = Y_i + y'·H_i with a fresh y' is compared with f(x); *tail*: x = r + E/r with E
//!   exponential has density ∝ exp(-r(x-r)), and y = y'·G·exp(-r(x-r)) < f(x) is asked as y'·G <
//!   exp(-((x-r)² + r²)/2). Both are comparisons of an enclosed number with e^-b for an enclosed
//!   b. 64 bits decide nearly always (`rejection.rs`); otherwise both numbers get 64 more bits,
//!   precision grows by 64 bits, and it is asked again. Enclosures never lie and shrink to
//!   points, so the answer is that of the reals unless both are equal, which has probability
//!   zero.
//!
//! The decisions use only u, y' and E, never the scale of the noise or what it is for. So whoever
//! regenerates Z, for whatever purpose, repeats the same reads and continues u with the same late
//! words.
//!
//! *Narrow enclosures.* With U the 53 known bits and W = ⌊2⁶⁰X_i⌋, `coarse` = ⌊U·W/2⁵³⌋
//! satisfies coarse ≤ 2⁶⁰x < coarse + SPREAD, because (U+1)(W+1)/2⁵³ - U·W/2⁵³ = U/2⁵³ +
//! (W+1)/2⁵³ < 1 + (W+1)/2⁵³, and the floor adds less than 1.
use num_bigint::BigUint;

use crate::{
    error::Error,
    lazy_uniform::LazyUniform,
    rejection::{NARROW, below_r, tail, tail_excess, under},
    stream_layout::Words,
    ziggurat::{LAYER_BITS, LAYERS, R, TABLE},
};

/// Bits of a word that are not u.
const USED_BITS: u32 = LAYER_BITS + 1;

/// ⌊a·b/2⁶⁴⌋.
#[inline(always)]
pub(crate) fn multiply_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// |Z| = (offset/2⁶⁴ + u)·numerator/denominator, and a sign.
pub(crate) struct LazyNormal<W> {
    pub(crate) negative: bool,
    /// 2⁶⁰|Z| is in [coarse, coarse + SPREAD); none where it would not fit.
    pub(crate) coarse: Option<u64>,
    pub(crate) offset: u128,
    pub(crate) numerator: u64,
    pub(crate) denominator: u64,
    pub(crate) u: LazyUniform,
    pub(crate) words: W,
}

/// The layer, sign and first bits in a word.
#[inline(always)]
pub(crate) fn parse(word: u64) -> (usize, bool, u64) {
    let layer = word as usize & (LAYERS - 1);
    (layer, (word >> LAYER_BITS) & 1 == 1, word >> USED_BITS << USED_BITS)
}

impl<W: Words> LazyNormal<W> {
    /// The normal variable that starts with `first` and continues with `words`.
    pub(crate) fn draw(first: u64, mut words: W) -> Result<Self, Error> {
        let mut word = first;
        loop {
            let (layer, negative, head) = parse(word);
            let mut u = LazyUniform::starting(head, 64 - USED_BITS);
            let coarse = multiply_high(head, TABLE.layers[layer].width);
            let kept = word < TABLE.layers[layer].keep;
            if !kept && layer == 0 && !below_r(coarse, &mut u, &mut words)? {
                if let Some((whole, u)) = tail(&mut words)? {
                    return Ok(Self::in_tail(negative, whole, u, words));
                }
            } else if kept || under(layer, coarse, &mut u, &mut words)? {
                let (numerator, denominator) = (TABLE.v, TABLE.height(layer));
                let coarse = Some(coarse);
                return Ok(Self { negative, coarse, offset: 0, numerator, denominator, u, words });
            }
            word = words.word()?;
        }
    }

    /// x = r + (whole + u)/r = (r² + whole + u)/r.
    fn in_tail(negative: bool, whole: u64, u: LazyUniform, words: W) -> Self {
        let square = u128::from(R) * u128::from(R);
        let coarse = (whole < NARROW).then(|| (R << 28) + tail_excess(whole, &u));
        let offset = square + (u128::from(whole) << 64);
        Self { negative, coarse, offset, numerator: 1 << 32, denominator: R, u, words }
    }

    /// Learns 64 more bits.
    pub(crate) fn refine(&mut self) -> Result<(), Error> {
        self.u.refine(&mut self.words)
    }

    /// Whether |Z| < a/b, for b < 2⁵⁴ and a < 8b where `coarse` is known.
    ///
    /// In a layer that is u·b·v < a·H_i, of at most 54 + 53 and 57 + 56 bits; in the tail, with
    /// u·b·2⁶⁴ on one side and a·r·2⁶⁴ - b·offset on the other, at most 54 + 64 and 57 + 35 + 32
    /// bits.
    pub(crate) fn below(&mut self, a: u128, b: u64) -> Result<bool, Error> {
        let (a, b) = (a * u128::from(self.denominator), u128::from(b));
        if self.offset == 0 {
            return self.u.below(a, b * u128::from(self.numerator), &mut self.words);
        }
        match (a << 32).checked_sub(b * self.offset) {
            Some(excess) => self.u.below(excess, b << 64, &mut self.words),
            None => Ok(false),
        }
    }

    /// Fractions (low, high, denominator): low/denominator ≤ |Z| < high/denominator.
    pub(crate) fn enclose(&self) -> (BigUint, BigUint, BigUint) {
        let bits = self.u.bits();
        let low =
            ((BigUint::from(self.offset) << bits) + (self.u.integer() << 64)) * self.numerator;
        let high = &low + (BigUint::from(self.numerator) << 64);
        (low, high, BigUint::from(self.denominator) << (64 + bits))
    }
}
