//! Numbers from text: one pass over the digits, correctly rounded.
//!
//! Almost every number in a table has at most 19 digits and a small exponent. Its digits fit a
//! `u64`, and what is left is one exact division by a power of five, after Möller and Granlund,
//! *Improved division by invariant integers*, IEEE Transactions on Computers 60 (2011). All other
//! numbers go to `fast-float2`. Either way the result is that of `str::parse`, bit for bit.

/// The number that `text` starts with, and how many bytes it takes. `None` if there is none.
#[inline(always)]
pub(crate) fn prefix(text: &[u8]) -> Option<(f64, usize)> {
    match quick(text) {
        Some(found) => Some(found),
        None => any(text),
    }
}

#[cold]
fn any(text: &[u8]) -> Option<(f64, usize)> {
    fast_float2::parse_partial(text).ok()
}

/// The number that the whole of `text` is, if it is one.
pub(crate) fn whole(text: &[u8]) -> Option<f64> {
    prefix(text).filter(|(_, used)| *used == text.len()).map(|(x, _)| x)
}

/// [`prefix`] for the common case; `None` says nothing.
#[inline(always)]
fn quick(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let (mut digits, before) = run(text, &mut at, 0)?;
    let mut after = 0;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let start = if digits == 0 { 0 } else { before };
        (digits, after) = run(text, &mut at, digits)?;
        // 19 digits always fit; zeros in front of the point do not count.
        if start + after > 19 {
            return None;
        }
    }
    // ".5" and "5." are numbers, "." is not: leave the rare ones to the other parser.
    if before == 0 || before > 19 {
        return None;
    }
    let mut exponent = -(after as i32);
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let mut digit = at + 1;
        let down = text.get(digit) == Some(&b'-');
        digit += usize::from(down || text.get(digit) == Some(&b'+'));
        let (first, second) = (text.get(digit)?, text.get(digit + 1));
        if !first.is_ascii_digit() {
            return None;
        }
        let mut power = i32::from(first - b'0');
        at = digit + 1;
        if let Some(second) = second.filter(|d| d.is_ascii_digit()) {
            power = 10 * power + i32::from(second - b'0');
            at += 1;
            if text.get(at).is_some_and(u8::is_ascii_digit) {
                return None;
            }
        }
        exponent += if down { -power } else { power };
    }
    let size = scaled(digits, exponent)?;
    // A sign is as good as random: no branch.
    Some((f64::from_bits(size.to_bits() | u64::from(negative) << 63), at))
}

/// Reads a run of digits onto `value`, eight at a time. Returns the value and how many were read;
/// the value is right as long as there were no more than 19 in all.
#[inline(always)]
fn run(text: &[u8], at: &mut usize, mut value: u64) -> Option<(u64, usize)> {
    let start = *at;
    loop {
        // Near the end of the text, or in a short one.
        let Some(eight) = text[*at..].first_chunk::<8>() else {
            while let Some(digit) = text.get(*at).filter(|d| d.is_ascii_digit()) {
                value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                *at += 1;
            }
            return Some((value, *at - start));
        };
        let word = u64::from_le_bytes(*eight) ^ 0x3030_3030_3030_3030;
        // A byte is a digit if it is now 0 to 9; its high nibble stays 0 when 6 is added, too.
        let others = (word | word.wrapping_add(0x0606_0606_0606_0606)) & 0xF0F0_F0F0_F0F0_F0F0;
        if others == 0 {
            value = value.wrapping_mul(100_000_000).wrapping_add(eight_digits(word));
            *at += 8;
            continue;
        }
        // None to seven more. No branch: how many is hard to foresee.
        let count = others.trailing_zeros() as usize / 8;
        let last = eight_digits(word << (56 - 8 * count) << 8);
        value = value.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(last);
        *at += count;
        return Some((value, *at - start));
    }
}

/// The value of eight digits, the first of them in the lowest byte.
#[inline]
fn eight_digits(word: u64) -> u64 {
    let pairs = (word.wrapping_mul(10) + (word >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF
}

const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1; 20];
    let mut k = 1;
    while k < 20 {
        powers[k] = powers[k - 1] * 10;
        k += 1;
    }
    powers
};

/// `digits` · 10^`exponent`, rounded to nearest, ties to even.
#[inline(always)]
fn scaled(digits: u64, exponent: i32) -> Option<f64> {
    if digits == 0 {
        return Some(0.0);
    }
    if exponent > 0 {
        let factor = *POWERS_OF_TEN.get(exponent as usize)?;
        return digits.checked_mul(factor).map(|whole| whole as f64);
    }
    let fives = FIVES.get(exponent.unsigned_abs() as usize)?;
    let shift = digits.leading_zeros();
    let high = (digits << shift) >> 1;
    let low = (digits << shift) << 63;
    let (quotient, remainder) = fives.divide(high, low);
    // The quotient has at least 63 bits, more than a float keeps, so that the last one can stand
    // for everything below. As a signed integer it becomes a float in one instruction.
    let sticky = quotient & 1 | u64::from(remainder != 0);
    let rounded = (quotient >> 1 | sticky).cast_signed() as f64;
    let power = fives.shift as i32 - shift as i32 - 62 + exponent;
    Some(rounded * f64::from_bits(((1023 + power) as u64) << 52))
}

/// A power of five, shifted until its highest bit is set, and its reciprocal.
#[derive(Clone, Copy)]
struct Divisor {
    value: u64,
    /// ⌊(2¹²⁸ - 1) / value⌋ - 2⁶⁴.
    reciprocal: u64,
    shift: u32,
}

impl Divisor {
    const fn power_of_five(k: u32) -> Self {
        let power = 5u64.pow(k);
        let shift = power.leading_zeros();
        let value = power << shift;
        // Without its highest 1, which `as` cuts off.
        let reciprocal = (u128::MAX / value as u128) as u64;
        Divisor { value, reciprocal, shift }
    }

    /// Quotient and remainder of high · 2⁶⁴ + low, for high < value. Algorithm 4.
    #[inline]
    fn divide(self, high: u64, low: u64) -> (u64, u64) {
        let estimate = u128::from(self.reciprocal) * u128::from(high)
            + (u128::from(high) << 64 | u128::from(low));
        let fraction = estimate as u64;
        let mut quotient = ((estimate >> 64) as u64).wrapping_add(1);
        let mut remainder = low.wrapping_sub(quotient.wrapping_mul(self.value));
        // One too many, about every other time: no branch.
        let over = u64::from(remainder > fraction);
        quotient = quotient.wrapping_sub(over);
        remainder = remainder.wrapping_add(over.wrapping_neg() & self.value);
        if remainder >= self.value {
            quotient = quotient.wrapping_add(1);
            remainder -= self.value;
        }
        (quotient, remainder)
    }
}

/// 5⁰ to 5²⁷, all that fit.
const FIVES: [Divisor; 28] = {
    let mut fives = [Divisor::power_of_five(0); 28];
    let mut k = 1;
    while k < 28 {
        fives[k as usize] = Divisor::power_of_five(k);
        k += 1;
    }
    fives
};

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64: enough for tests, and needs no crate.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn same(text: &str) {
        let want: f64 = text.parse().unwrap();
        let padded = format!("{text},12345678901234567890");
        for (given, used) in [(text, text.len()), (padded.as_str(), text.len())] {
            let got = prefix(given.as_bytes()).unwrap_or_else(|| panic!("{given}"));
            assert_eq!((got.0.to_bits(), got.1), (want.to_bits(), used), "{given}");
        }
    }

    #[test]
    fn numbers_equal_those_of_std() {
        let state = &mut 3;
        let mut quickly = 0;
        for i in 0..1_000_000u64 {
            let bits = random(state);
            let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
            let digits = bits >> (random(state) % 64);
            let text = match i % 8 {
                0 => format!("{unit}"),
                1 => format!("-{:?}", unit * 1e-3),
                2 => format!("{:.*}", (bits % 30) as usize, unit * 1000.0),
                3 => format!("{:e}", f64::from_bits(bits & !(1 << 62))),
                4 => format!("{digits}"),
                // Any digits with any exponent, and a point anywhere.
                5 => format!("{digits}e{}", (random(state) % 640) as i64 - 330),
                6 => format!("{}.{digits}E+{}", bits % 1000, random(state) % 30),
                // Halfway between two floats, or the least bit beside.
                _ => {
                    let middle = (u128::from(bits >> 11 | 1 << 52) << 1) + 1;
                    format!("{}.5", (middle * 5 + u128::from(i % 3) - 1) / 10)
                }
            };
            if text.contains("NaN") || text.contains("inf") {
                continue;
            }
            quickly += usize::from(quick(text.as_bytes()).is_some());
            same(&text);
        }
        // The quick way is taken, so it is what was tested.
        assert!(quickly > 400_000, "{quickly}");
    }

    #[test]
    fn hard_numbers_equal_those_of_std() {
        for text in [
            "0",
            "-0",
            "0.0",
            "-0.0",
            "1",
            "+1",
            ".5",
            "5.",
            "1e0",
            "1E+05",
            "1e-5",
            "1e22",
            "1e23",
            "9007199254740993",
            "9007199254740992.5",
            "9223372036854775807",
            "18446744073709551615",
            "18446744073709551616",
            "9999999999999999999",
            "99999999999999999999",
            "1e400",
            "1e-400",
            "0.1",
            "0.30000000000000004",
            "123456789012345678901234567890",
            "2.2250738585072011e-308",
            "4.9e-324",
            "1.7976931348623157e308",
            "0.000000000000000000000000001",
            "inf",
            "-inf",
            "Infinity",
            "0000000000000000000000000000001.5",
            "00000000.00000000000000000000000001",
            "1.00000000000000011102230246251565404236316680908203125",
            "8.5e-22",
            "6e-27",
            "1e-28",
        ] {
            same(text);
        }
        assert!(whole(b"NaN").unwrap().is_nan());
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in
            ["", "-", ".", "e5", "x", "1e", "1e+", "1.5.2", "1,5", "--1", "1 ", "0x10", "1_0"]
        {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }
}
