//! The next input: a file of the corpus with a few changes, or bytes at random.
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Longer inputs are cut: they cost time and find little.
const LONGEST: usize = 1 << 16;

/// Numbers at which readers of lengths, offsets and floats break.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
    f64::NAN.to_bits(),
    f64::INFINITY.to_bits(),
];

/// Text at which parsers break.
const WORDS: [&str; 16] = [
    "-1",
    "1e308",
    "1e999",
    "NaN",
    "inf",
    "null",
    "\"",
    "\n",
    "\r",
    ",",
    "[[[[[[[[",
    "{",
    "\u{202e}",
    "\u{1b}[2J",
    "18446744073709551616",
    "0.0000000000001",
];

/// A mutated input.
pub(crate) fn next(seeds: &[(String, Vec<u8>)], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let fresh = seeds.is_empty() || rng.random_ratio(1, 16);
    let mut input = if fresh {
        let length = rng.random_range(0..256);
        (0..length).map(|_| rng.random()).collect()
    } else {
        seeds[rng.random_range(0..seeds.len())].1.clone()
    };
    // One change, two, four or eight: most readers break on the first.
    for _ in 0..1 << rng.random_range(0..4) {
        change(&mut input, seeds, rng);
    }
    input.truncate(LONGEST);
    input
}

fn change(input: &mut Vec<u8>, seeds: &[(String, Vec<u8>)], rng: &mut ChaCha8Rng) {
    let at = rng.random_range(0..=input.len());
    let rest = input.len() - at;
    let some = rng.random_range(0..=rest.min(64));
    match rng.random_range(0..9) {
        0 if rest > 0 => input[at] ^= 1 << rng.random_range(0..8),
        1 if rest > 0 => input[at] = rng.random(),
        2 => {
            let number = NUMBERS[rng.random_range(0..NUMBERS.len())].to_le_bytes();
            let width = 1 << rng.random_range(0..4);
            put(input, at, &number[..width]);
        }
        3 => {
            let word = WORDS[rng.random_range(0..WORDS.len())];
            input.splice(at..at, word.bytes());
        }
        4 => {
            let copy = input[at..at + some].to_vec();
            let to = rng.random_range(0..=input.len());
            input.splice(to..to, copy);
        }
        5 => drop(input.drain(at..at + some)),
        6 => input.truncate(at),
        7 if !seeds.is_empty() => {
            // The head of this one and the tail of another.
            let other = &seeds[rng.random_range(0..seeds.len())].1;
            let from = rng.random_range(0..=other.len());
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => input.insert(at, rng.random()),
    }
}

/// Writes over what is there, as far as it goes.
fn put(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, byte) in input[at..].iter_mut().zip(bytes) {
        *to = *byte;
    }
}
