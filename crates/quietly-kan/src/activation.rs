//! tanh of many numbers abreast, the same on every processor.

/// How many numbers are worked on abreast.
pub(super) const LANES: usize = 8;
/// Numbers side by side.
pub(super) type Lanes = [f32; LANES];

/// Beyond, tanh is one to within 3e-7.
const END: f32 = 7.905_311;
/// A quotient of polynomials in x², fitted to tanh(x)/x between the ends.
const ABOVE: [f32; 7] = [
    -2.760_768_5e-16,
    2.000_188e-13,
    -8.604_672e-11,
    5.122_297e-8,
    1.485_722_4e-5,
    6.372_619e-4,
    4.893_525e-3,
];
const BELOW: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];

/// tanh, to within 5e-7, and never beyond ±1; not a number stays so.
///
/// The library's tanh differs between systems, and takes one number at a time.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let x = x.clamp(-END, END);
    let square = x * x;
    let [a, b, c, d, e, f, g] = ABOVE;
    let above =
        (((((a * square + b) * square + c) * square + d) * square + e) * square + f) * square + g;
    let [a, b, c, d] = BELOW;
    let below = ((a * square + b) * square + c) * square + d;
    (x * above / below).clamp(-1.0, 1.0)
}

/// tanh(scale·x) of lanes.
#[inline(always)]
pub(super) fn tanh_of(x: &Lanes, scale: f32) -> Lanes {
    let mut y = [0.0; LANES];
    for lane in 0..LANES {
        y[lane] = tanh(x[lane] * scale);
    }
    y
}

/// The sum of the lanes, in the one order we use.
#[inline(always)]
pub(super) fn across(x: Lanes) -> f32 {
    ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tanh_is_close_to_the_real_one() {
        let mut worst = 0f64;
        for i in -200_000..=200_000 {
            let x = i as f32 / 10_000.0;
            let error = (f64::from(tanh(x)) - f64::from(x).tanh()).abs();
            worst = worst.max(error);
            assert!(tanh(x).abs() <= 1.0 && tanh(-x) == -tanh(x));
        }
        // Not exact, or this would compare the library's tanh with itself.
        assert!((1e-9..5e-7).contains(&worst), "{worst}");
        assert_eq!(tanh(f32::INFINITY), tanh(1e30));
        assert!(tanh(f32::NAN).is_nan());
        assert!((tanh(1e-30) / 1e-30 - 1.0).abs() < 1e-6);
    }
}
