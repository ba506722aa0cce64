//! Clipped gradients on an integer lattice, certified in integers.
//!
//! # Proof: clipped outer products in integers
//!
//! A row adds to every trainable layer the products δ̂_j·φ̂_k of two stored vectors of integers, so
//! what it adds has squared norm Σ_l (Σ δ̂²)(Σ φ̂²), exactly. [`Exact::clip`] computes this from
//! the words that are stored, in integers that cannot overflow, and keeps them only if it is at
//! most C². If not, it shrinks them once and tries again, and then takes zeros. Nothing is assumed
//! of the floating-point numbers that δ̂ came from: those that are no numbers give zeros.
//!
//! A row's integers are a function of the row, the weights and the clip alone: what else is in the
//! batch, in what order and on how many threads, changes no bit of them
//! ([`layer`](super::layer)). Hence adding or removing a row changes the sum by its own vector.
//!
//! # How large the integers are
//!
//! φ̂ are bytes, 255 for one. δ̂ are 16-bit words: the units of δ/√d are such that a row of norm
//! clip with the shortest φ that a full row can have just fits. A word that would not fit is cut,
//! which shortens the row. Squares are below 2³⁰, so 2¹² outputs stay below 2⁴², and 2¹⁶ inputs of
//! 6 bytes below 2³⁵: each layer's product is below 2⁷⁷, and `u128` adds up as many as there are.
use super::{
    activation::{LANES, Lanes, across},
    batch_gradient::Arithmetic,
    layer::TILE,
    network::Network,
    quantized_rows::ONE,
};

/// The largest word of δ̂.
const MOST: f64 = 32_767.0;

/// What one row can add to a sum. Both depend on public quantities only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// C: the norm of what one row can add, in units; a whole number.
    pub bound: f64,
    /// h: what one unit of the sum is worth.
    pub unit: f64,
}

impl Network {
    /// What one row can add to a sum of gradients clipped to norm `clip`.
    pub fn sensitivity(&self, clip: f64) -> Sensitivity {
        Exact::new(self, clip).sensitivity()
    }
}

/// Sums of clipped gradients in integers.
pub(super) struct Exact {
    /// Words of δ̂ per one.
    per_one: f64,
    bound: u64,
    /// The norm that rows are scaled to, in units: a little less, so that rounding rarely matters.
    reach: f64,
}

/// What one layer's gradient of a row is made of, and where its δ goes.
pub(super) struct Side<'a, D> {
    pub(super) deltas: &'a [Lanes],
    /// 1/√d.
    pub(super) scale: f32,
    /// Σ φ̂².
    pub(super) squares: u64,
    /// Tiles of δ for a chunk of rows, [tile][row].
    pub(super) into: &'a mut [[D; TILE]],
}

impl Exact {
    /// For gradients clipped to norm `clip`.
    ///
    /// # Panics
    ///
    /// Unless `clip` is within 1e-9 to 1e9: it is public.
    pub(super) fn new(network: &Network, clip: f64) -> Self {
        assert!((1e-9..=1e9).contains(&clip), "a clip norm must be within 1e-9 to 1e9");
        let (least, _) = network.basis.square_range();
        let trainable = network.layers.iter().filter(|layer| layer.shape.trainable);
        // A row of plain inputs alone has at least one of them, or no gradient.
        let shortest = trainable
            .map(|layer| (least * layer.splines.len() as f64).sqrt())
            .map(|norm| if norm > 0.0 { norm } else { 1.0 })
            .fold(f64::INFINITY, f64::min);
        let per_one = MOST * shortest / clip;
        let bound = (clip * ONE * per_one).floor();
        Self { per_one, bound: bound as u64, reach: bound * (1.0 - 1e-6) }
    }

    pub(super) fn sensitivity(&self) -> Sensitivity {
        Sensitivity { bound: self.bound as f64, unit: 1.0 / (ONE * self.per_one) }
    }

    /// Whether the stored words of a row are within the bound, and the squared norm they have.
    #[inline(always)]
    fn certified(&self, sides: &[Side<'_, i16>], slot: usize, chunk: usize) -> (bool, f64) {
        let mut total = 0u128;
        for side in sides.iter() {
            let mut squares = 0u64;
            for words in side.into[slot..].iter().step_by(chunk) {
                // Two squares fit in 32 bits without a sign: 2·32767² < 2³².
                let mut pairs = [0u32; TILE / 2];
                for (i, pair) in pairs.iter_mut().enumerate() {
                    let (a, b) = (i32::from(words[i]), i32::from(words[i + TILE / 2]));
                    *pair = (a * a) as u32 + (b * b) as u32;
                }
                squares += pairs.iter().map(|s| u64::from(*s)).sum::<u64>();
            }
            total += u128::from(squares) * u128::from(side.squares);
        }
        let bound = u128::from(self.bound);
        (total <= bound * bound, total as f64)
    }
}

impl Arithmetic for Exact {
    type Delta = i16;
    type Word = u8;
    type Factor = i16;
    type Partial = i32;
    type Total = i64;

    /// 256 products of 16 and 8 bits fit in 32: 256·32767·255 < 2³¹.
    const RUN: usize = 256;

    #[inline(always)]
    fn word(b: f32) -> u8 {
        (b * ONE as f32 + 0.5) as u8
    }

    #[inline(always)]
    fn square(word: u8) -> u64 {
        u64::from(word) * u64::from(word)
    }

    #[inline(always)]
    fn factor(word: u8) -> i16 {
        i16::from(word)
    }

    #[inline(always)]
    fn byte(byte: u8) -> i16 {
        i16::from(byte)
    }

    #[inline(always)]
    fn product(sum: i32, delta: i16, factor: i16) -> i32 {
        sum + i32::from(delta) * i32::from(factor)
    }

    #[inline(always)]
    fn flush(total: &mut i64, sum: i32) {
        *total += i64::from(sum);
    }

    #[inline(always)]
    fn clip(&self, sides: &mut [Side<'_, i16>], slot: usize, chunk: usize) {
        let mut squared = 0.0;
        for side in sides.iter() {
            let mut squares = [0.0; LANES];
            for delta in side.deltas {
                for lane in 0..LANES {
                    squares[lane] += delta[lane] * delta[lane];
                }
            }
            let scale = f64::from(side.scale);
            squared += f64::from(across(squares)) * scale * scale * side.squares as f64;
        }
        let norm = squared.sqrt() * self.per_one;
        let held = if norm > self.reach { self.reach / norm } else { 1.0 };
        let factor = if norm.is_finite() { held * self.per_one } else { 0.0 };
        for side in sides.iter_mut() {
            let factor = (factor * f64::from(side.scale)) as f32;
            let tiles = side.into[slot..].iter_mut().step_by(chunk);
            for (words, deltas) in tiles.zip(side.deltas.as_chunks::<2>().0) {
                for (word, delta) in words.iter_mut().zip(deltas.as_flattened()) {
                    let held = (delta * factor).clamp(-32_767.0, 32_767.0);
                    // The cast cuts towards zero, and makes zero of what is not a number.
                    *word = held as i32 as i16;
                }
            }
        }
        let (good, total) = self.certified(sides, slot, chunk);
        if good {
            return;
        }
        let shrink = self.bound as f64 / total.sqrt();
        self.change(sides, slot, chunk, |word| (f64::from(word) * shrink) as i16);
        if !self.certified(sides, slot, chunk).0 {
            self.change(sides, slot, chunk, |_| 0);
        }
    }
}

impl Exact {
    #[cold]
    fn change(
        &self,
        sides: &mut [Side<'_, i16>],
        slot: usize,
        chunk: usize,
        to: impl Fn(i16) -> i16,
    ) {
        for side in sides {
            for words in side.into[slot..].iter_mut().step_by(chunk) {
                *words = words.map(&to);
            }
        }
    }
}

/// Sums of gradients as they are: what ε = ∞ gives.
pub(super) struct Plain;

impl Arithmetic for Plain {
    type Delta = f32;
    type Word = f32;
    type Factor = f32;
    type Partial = f32;
    type Total = f64;

    const RUN: usize = 256;

    #[inline(always)]
    fn word(b: f32) -> f32 {
        b * ONE as f32
    }

    #[inline(always)]
    fn square(_: f32) -> u64 {
        0
    }

    #[inline(always)]
    fn factor(word: f32) -> f32 {
        word
    }

    #[inline(always)]
    fn byte(byte: u8) -> f32 {
        f32::from(byte)
    }

    #[inline(always)]
    fn product(sum: f32, delta: f32, factor: f32) -> f32 {
        sum + delta * factor
    }

    #[inline(always)]
    fn flush(total: &mut f64, sum: f32) {
        *total += f64::from(sum);
    }

    #[inline(always)]
    fn clip(&self, sides: &mut [Side<'_, f32>], slot: usize, chunk: usize) {
        for side in sides {
            let factor = (f64::from(side.scale) / ONE) as f32;
            let tiles = side.into[slot..].iter_mut().step_by(chunk);
            for (words, deltas) in tiles.zip(side.deltas.as_chunks::<2>().0) {
                for (word, delta) in words.iter_mut().zip(deltas.as_flattened()) {
                    *word = delta * factor;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settles one row of one layer and gives its words and the squared norm of what it adds.
    fn clipped(exact: &Exact, deltas: &[Lanes; 2], squares: u64) -> ([i16; TILE], u128) {
        let mut into = [[7; TILE]; 3];
        let side = Side { deltas, scale: 1.0, squares, into: &mut into };
        exact.clip(&mut [side], 1, 3);
        assert_eq!((into[0], into[2]), ([7; TILE], [7; TILE]), "other rows are left alone");
        let own = into[1].iter().map(|w| i64::from(*w).pow(2) as u128).sum::<u128>();
        (into[1], own * u128::from(squares))
    }

    #[test]
    fn what_scaling_lets_through_the_certificate_stops() {
        let deltas = [[0.9, -0.3, 0.2, 0.0, 1.0, -1.0, 0.5, 0.1]; 2];
        for bound in [3u64, 1000, 1 << 22, 1 << 27] {
            let right = Exact { per_one: 3e4, bound, reach: bound as f64 * (1.0 - 1e-6) };
            // Without a clip, and with one that is a little too loose.
            for reach in [f64::MAX, bound as f64 * 1.01] {
                let wrong = Exact { reach, ..right };
                let (words, length) = clipped(&wrong, &deltas, 255 * 255);
                assert!(length <= u128::from(bound).pow(2));
                // Shrunk, not dropped, where there is anything left to store.
                assert_eq!(words.iter().any(|w| *w != 0), bound > 3, "{bound}");
            }
            let (words, length) = clipped(&right, &deltas, 255 * 255);
            assert!(length <= u128::from(bound).pow(2));
            assert_eq!(words.iter().any(|w| *w != 0), bound > 3);
        }
    }

    #[test]
    fn what_is_not_finite_is_zero() {
        let exact = Exact { per_one: 100.0, bound: 1 << 20, reach: 1e6 };
        for odd in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut deltas = [[0.5; LANES]; 2];
            assert_eq!(clipped(&exact, &deltas, 1).0, [50; TILE]);
            deltas[1][3] = odd;
            assert_eq!(clipped(&exact, &deltas, 1).0, [0; TILE]);
        }
    }
}
