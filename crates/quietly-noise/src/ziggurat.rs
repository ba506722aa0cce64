//! The ziggurat: 1024 regions of exactly equal area that cover the half-normal.
//!
//! # Proof: the ziggurat covers the half-normal
//!
//! *Statement.* The x of a uniform point of a uniform region, accepted if and only if it is below
//! f, is exactly half-normal.
//!
//! *Geometry.* f(x) = exp(-x²/2) for x ≥ 0. All of the following are exact rationals:
//!
//! * v, the common area, and heights 0 = Y₀ < Y₁ < … < Y₁₀₂₄, multiples of 2⁻⁶²;
//! * widths X_i = v/H_i with H_i = Y_{i+1} - Y_i. Layer i is [0, X_i) × [Y_i, Y_{i+1}), of area v
//!   exactly, because X_i is *defined* as the quotient and never rounded;
//! * the start of the tail r, a multiple of 2⁻³². In layer 0 the part x ≥ r, of area a = v -
//!   r·Y₁, is not used as a rectangle but stands for the region below G·exp(-r(x - r)), x ≥ r,
//!   with G = a·r: its area is a exactly.
//!
//! *Cover.* (1) f(X_i) ≤ Y_i for 1 ≤ i < 1024, (2) f(r) ≤ Y₁, (3) f(r) ≤ G, (4) Y₁₀₂₄ ≥ 1. Then
//! each point (x, y) with 0 < y < f(x) lies in exactly one region. If x ≥ r, then y < f(r) ≤ Y₁, so
//! it is in no layer i ≥ 1; it is below the tail's envelope because f(x) = f(r)·exp(-r(x-r) -
//! (x-r)²/2) ≤ G·exp(-r(x-r)). If x < r and Y_i ≤ y < Y_{i+1}, then for i = 0 it is in the
//! rectangle, and for i ≥ 1 x < X_i, since f falls and f(X_i) ≤ Y_i ≤ y < f(x). (f(r) ≤ Y₁ ≤ y also
//! shows that a point of a layer i ≥ 1 that lies below f has x < r.)
//!
//! A uniform layer, a uniform point of its region, kept if and only if it is below f, is
//! therefore a uniform point below f, and its x has density proportional to f: **exactly
//! half-normal**. How tightly the regions hug f decides how often a point is refused (0.2 %),
//! nothing else.
//!
//! A word is kept at once if it is below `keep`, which guarantees u·X_i ≤ K_i with (5) f(K_i) ≥
//! Y_{i+1}.
//!
//! *Rounding.* `build` runs in the compiler: in integers, from the one constant [`R`]. Newton's
//! iteration proposes X_i and K_i, which are then moved outwards (inwards) until [`exp_neg`] with
//! its proven error *certifies* (1)–(5); a table that does not satisfy them does not compile. A
//! test checks them again with an independent library at 200 bits.
use crate::exp::{EXP_ERROR, exp_neg};

/// log2 of the number of layers: the bits of a word that choose one.
pub(crate) const LAYER_BITS: u32 = 10;
pub(crate) const LAYERS: usize = 1 << LAYER_BITS;

/// r·2³²: where the tail starts. Just below 4.0396441…, at which the layers would end at height 1
/// exactly; a little less makes v a little larger and Y₁₀₂₄ a little more than 1.
pub(crate) const R: u64 = (403_964 << 32) / 100_000;

/// With u known to 53 bits, u·X_i is known to this many units of 2⁻⁶⁰ (see [`crate::lazy_normal`]).
pub(crate) const SPREAD: u64 = 560;

/// What the hot loop reads of a layer.
#[derive(Clone, Copy)]
pub(crate) struct Layer {
    /// ⌊2⁶⁰ X_i⌋.
    pub(crate) width: u64,
    /// Words below this are kept at once.
    pub(crate) keep: u64,
}

pub(crate) struct Table {
    pub(crate) layers: [Layer; LAYERS],
    /// 2⁶² Y_i, and Y₁₀₂₄ last.
    pub(crate) y: [u64; LAYERS + 1],
    /// 2⁶² v.
    pub(crate) v: u64,
}

pub(crate) static TABLE: Table = build();

impl Table {
    /// 2⁶² H_i, so that X_i = v/H_i.
    pub(crate) fn height(&self, layer: usize) -> u64 {
        self.y[layer + 1] - self.y[layer]
    }

    /// 2¹²⁶ G.
    pub(crate) fn envelope(&self) -> u128 {
        (((self.v as u128) << 32) - self.y[1] as u128 * R as u128) * R as u128
    }
}

/// exp(-x²/2) lies between these in units of 2⁻⁶⁴, x in units of 2⁻⁶⁰: b = x²/2 is cut by less
/// than one unit of 2⁻⁶⁰, which lifts e^-b by less than 16 of 2⁻⁶⁴.
const fn f_low(x: u64) -> u128 {
    f_middle(x).saturating_sub(EXP_ERROR as u128 + 16)
}

const fn f_high(x: u64) -> u128 {
    f_middle(x) + EXP_ERROR as u128
}

const fn f_middle(x: u64) -> u128 {
    exp_neg(((x as u128 * x as u128) >> 61) as u64) as u128
}

/// x·2⁶⁰ near the solution of f(x) = y·2⁻⁶², by Newton's iteration from `x`.
const fn newton(mut x: u64, y: u64) -> u64 {
    let mut i = 0;
    while i < 8 {
        let f = f_middle(x) as i128;
        let slope = (f * x as i128) >> 60;
        x = (x as i128 + ((f - ((y as i128) << 2)) << 60) / slope) as u64;
        i += 1;
    }
    x
}

/// A step of 2⁻⁴⁷, in which guesses are moved until they are certified.
const NUDGE: u64 = 1 << 13;

const fn build() -> Table {
    let r60 = R << 28;
    // Y₁ ≥ f(r), and v = Y₁(r + 1/r) rounded up, so that G ≥ Y₁ ≥ f(r).
    let y1 = (f_high(r60) >> 2) as u64 + 1;
    let r = R as u128;
    let v = ((y1 as u128 * (r * r + (1 << 64))).div_ceil(r << 32)) as u64;

    let mut y = [0; LAYERS + 1];
    let mut layers = [Layer { width: 0, keep: 0 }; LAYERS];
    y[1] = y1;
    let mut guess = r60;
    let mut i = 0;
    while i < LAYERS {
        if i > 0 {
            // The smallest certified x with f(x) ≤ Y_i gives the largest height with X_i ≥ x.
            let mut x = guess;
            while f_high(x) > (y[i] as u128) << 2 {
                x += NUDGE;
            }
            y[i + 1] = y[i] + (((v as u128) << 60) / x as u128) as u64;
        }
        let height = (y[i + 1] - y[i]) as u128;
        let width = ((v as u128) << 60) / height;
        assert!(3 + ((width + 1) >> (64 - LAYER_BITS - 1)) <= SPREAD as u128);
        let mut keep = 0;
        if i + 1 < LAYERS {
            guess = if i == 0 { r60 } else { newton(guess, y[i + 1]) };
            let mut k = guess;
            while f_low(k) < (y[i + 1] as u128) << 2 {
                k -= NUDGE;
            }
            // Words below keep have u < keep/2⁶⁴ ≤ K_i/X_i: cut to the bits of u.
            keep = (((k as u128 * height) / v as u128) << 4) as u64;
            keep = keep >> (LAYER_BITS + 1) << (LAYER_BITS + 1);
        }
        layers[i] = Layer { width: width as u64, keep };
        i += 1;
    }
    assert!(y[LAYERS - 1] < 1 << 62 && y[LAYERS] >= 1 << 62);
    Table { layers, y, v }
}

#[cfg(test)]
mod tests {
    use dashu_float::{FBig, round::mode::HalfEven};
    use dashu_int::IBig;

    use super::*;

    type Float = FBig<HalfEven, 2>;

    fn dyadic(numerator: impl Into<IBig>, bits: isize) -> Float {
        Float::from_parts(numerator.into(), -bits).with_precision(200).value()
    }

    fn f(x: Float) -> Float {
        (-(x.clone() * x) >> 1).exp()
    }

    /// (1)–(5) of the module, at 200 bits with a library that shares no code with the generator.
    /// Comparisons have margins near 2⁻⁵⁶, so 200 bits decide them beyond doubt.
    #[test]
    fn the_regions_cover_the_normal() {
        let t = &TABLE;
        let v = dyadic(t.v, 62);
        let r = dyadic(R, 32);
        assert!(f(r.clone()) <= dyadic(t.y[1], 62));
        assert!(f(r.clone()) <= dyadic(t.envelope(), 126));
        assert!(t.y[LAYERS] >= 1 << 62);
        for (i, layer) in t.layers.iter().enumerate() {
            assert!(t.y[i] < t.y[i + 1]);
            let x = v.clone() / dyadic(t.height(i), 62);
            if i > 0 {
                assert!(f(x.clone()) <= dyadic(t.y[i], 62), "{i}");
            }
            if layer.keep > 0 {
                let k = x.clone() * dyadic(layer.keep, 64);
                assert!(f(k.clone()) >= dyadic(t.y[i + 1], 62), "{i}");
                assert!(k <= r, "{i}");
            }
            let cut = dyadic(layer.width, 60);
            assert!(cut <= x && x < cut + dyadic(1, 60), "{i}");
        }
        assert_eq!(t.layers[LAYERS - 1].keep, 0);
    }

    /// Areas are equal by definition, X_i = v/H_i. What could be wrong is the tail: rectangle and
    /// envelope must share v exactly. In integers, units of 2⁻¹²⁶: (r·Y₁)·r + G = v·r.
    #[test]
    fn the_tail_has_exactly_the_area_left_over() {
        let t = &TABLE;
        let (r, y1, v) = (u128::from(R), u128::from(t.y[1]), u128::from(t.v));
        assert_eq!(IBig::from(r * y1) * r + t.envelope(), IBig::from(v * r) << 32);
    }

    /// The cover is tight: few points are refused, and most are kept without looking at f.
    #[test]
    fn the_cover_is_tight() {
        let area = TABLE.v as f64 / 2f64.powi(62) * LAYERS as f64;
        let refused = 1.0 - (std::f64::consts::PI / 2.0).sqrt() / area;
        assert!(refused < 0.00205, "{refused}");
        let keep: f64 = TABLE.layers.iter().map(|l| l.keep as f64 / 2f64.powi(64)).sum();
        assert!(keep / LAYERS as f64 > 0.995, "{keep}");
    }
}
