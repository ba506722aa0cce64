//! The layout of a stream: which random words each use owns.
//!
//! # Proof: no two uses share a word
//!
//! A stream is ChaCha20 in counter mode under the stream's own key: a function
//! from a 64-bit nonce and a 64-bit block counter to a block of eight 64-bit
//! words. Every use has its own blocks:
//!
//! | use | nonce | block counter |
//! | --- | --- | --- |
//! | normal: first word of coordinate c | 8·step + 0 | ⌊c/8⌋, word c mod 8 |
//! | normal: late words of coordinate c | 8·step + 1 | 2¹⁶·c + j, j < 2¹⁶ |
//! | Laplace: first words of coordinate c | 8·step + 2 | c |
//! | Laplace: late words of coordinate c | 8·step + 3 | 2¹⁶·c + j, j < 2¹⁶ |
//! | sequential words of a step | 8·step + 4 | 0, 1, 2, … |
//!
//! **No two uses share a word.** step < 2⁶¹, so 8·step + region is below 2⁶⁴ and
//! determines both. c < 2⁴⁸ and j < 2¹⁶, so 2¹⁶·c + j is below 2⁶⁴ and determines
//! both; ⌊c/8⌋ with c mod 8 determines c. The limits are checked, never wrapped:
//! [`check`] for step and coordinates, [`Late::word`] for j.
//!
//! First words are contiguous, so a long vector is one run of the cipher; late
//! words cost a block each and are needed for about one coordinate in 200.
use chacha20::{
    ChaCha20LegacyCore, KeyIvInit,
    cipher::{Block, StreamCipherCore},
};

use crate::{error::Error, key::Stream};

/// Steps are numbered below this.
pub(crate) const STEPS: u64 = 1 << 61;
/// Coordinates are numbered below this.
pub(crate) const COORDINATES: u64 = 1 << 48;
/// Words in a ChaCha block.
pub(crate) const BLOCK: usize = 8;
/// log2 of the late blocks every coordinate owns.
const LATE_BITS: u32 = 16;

/// What a nonce is for; the low three bits of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Region {
    NormalFirst = 0,
    NormalLate = 1,
    LaplaceFirst = 2,
    LaplaceLate = 3,
    Sequential = 4,
}

/// Fails unless `step` and the coordinates `first..first + count` exist.
pub(crate) fn check(step: u64, first: u64, count: usize) -> Result<(), Error> {
    Error::ensure(step < STEPS, "step", "below 2^61", step)?;
    let end = first.checked_add(count as u64).filter(|&end| end <= COORDINATES);
    Error::ensure(end.is_some(), "coordinate", "at most 2^48 in all", format!("{first} + {count}"))
}

/// The cipher of one (stream, step, region).
pub(crate) struct Cipher {
    core: ChaCha20LegacyCore,
}

impl Cipher {
    /// `step` has passed [`check`].
    pub(crate) fn new(stream: &Stream, step: u64, region: Region) -> Self {
        debug_assert!(step < STEPS);
        let nonce = (step << 3) | region as u64;
        Self { core: ChaCha20LegacyCore::new(stream.key().into(), &nonce.to_le_bytes().into()) }
    }

    /// The words of the blocks from `block` on, as many as fill `out`, which
    /// is whole blocks.
    pub(crate) fn words(&mut self, block: u64, out: &mut [u64]) {
        // As many blocks as the widest vector unit computes together.
        let mut bytes = [Block::<ChaCha20LegacyCore>::default(); 16];
        self.core.set_block_pos(block);
        for words in out.chunks_mut(bytes.len() * BLOCK) {
            let bytes = &mut bytes[..words.len() / BLOCK];
            self.core.write_keystream_blocks(bytes);
            for (words, block) in words.chunks_exact_mut(BLOCK).zip(bytes.iter()) {
                copy(block, words);
            }
        }
    }

    /// The words of one block.
    pub(crate) fn block(&mut self, block: u64, out: &mut [u64; BLOCK]) {
        let mut bytes = Block::<ChaCha20LegacyCore>::default();
        self.core.set_block_pos(block);
        self.core.write_keystream_block(&mut bytes);
        copy(&bytes, out);
    }
}

#[inline(always)]
fn copy(bytes: &[u8], words: &mut [u64]) {
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
}

/// A source of uniform 64-bit words, each given once.
pub(crate) trait Words {
    fn word(&mut self) -> Result<u64, Error>;
}

impl<W: Words> Words for &mut W {
    fn word(&mut self) -> Result<u64, Error> {
        (**self).word()
    }
}

/// The late words of one coordinate, in order.
pub(crate) struct Late<'a> {
    stream: &'a Stream,
    step: u64,
    region: Region,
    coordinate: u64,
    next: u32,
    block: [u64; BLOCK],
}

impl<'a> Late<'a> {
    /// `step` and `coordinate` have passed [`check`].
    pub(crate) fn new(stream: &'a Stream, step: u64, region: Region, coordinate: u64) -> Self {
        debug_assert!(coordinate < COORDINATES);
        Self { stream, step, region, coordinate, next: 0, block: [0; BLOCK] }
    }
}

impl Words for Late<'_> {
    #[inline]
    fn word(&mut self) -> Result<u64, Error> {
        let (block, within) = (self.next / BLOCK as u32, self.next as usize % BLOCK);
        if within == 0 {
            if block >> LATE_BITS != 0 {
                let (step, coordinate) = (self.step, self.coordinate);
                return Err(Error::Exhausted { step, coordinate });
            }
            let counter = (self.coordinate << LATE_BITS) | u64::from(block);
            Cipher::new(self.stream, self.step, self.region).block(counter, &mut self.block);
        }
        self.next += 1;
        Ok(self.block[within])
    }
}

/// Words chosen by a test, so that rare branches can be taken on purpose.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) struct Script(pub(crate) std::collections::VecDeque<u64>);

#[cfg(test)]
impl Script {
    pub(crate) fn new(words: &[u64]) -> Self {
        Self(words.iter().copied().collect())
    }
}

#[cfg(test)]
impl Words for Script {
    fn word(&mut self) -> Result<u64, Error> {
        self.0.pop_front().ok_or(Error::Exhausted { step: 0, coordinate: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    /// The ChaCha20 block function as its author published it (64-bit counter
    /// in words 12 and 13, 64-bit nonce in 14 and 15), written again here.
    fn chacha20(key: &[u8; 32], nonce: u64, counter: u64) -> [u64; 8] {
        let mut state = [0u32; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        state[12] = counter as u32;
        state[13] = (counter >> 32) as u32;
        state[14] = nonce as u32;
        state[15] = (nonce >> 32) as u32;
        let start = state;
        let mut quarter = |a: usize, b: usize, c: usize, d: usize| {
            for (x, y, z, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                state[x] = state[x].wrapping_add(state[y]);
                state[z] = (state[z] ^ state[x]).rotate_left(turn);
            }
        };
        for _ in 0..10 {
            for i in 0..4 {
                quarter(i, 4 + i, 8 + i, 12 + i);
            }
            for i in 0..4 {
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
            }
        }
        let sum: Vec<u32> = state.iter().zip(start).map(|(a, b)| a.wrapping_add(b)).collect();
        std::array::from_fn(|i| u64::from(sum[2 * i]) | u64::from(sum[2 * i + 1]) << 32)
    }

    /// Every word is where the table says, also where the counter needs more
    /// than 32 bits and across many blocks in one run.
    #[test]
    fn words_are_where_the_layout_says() {
        let stream = Key::from_seed(3).stream("layout");
        for (step, block) in [(0, 0), (1, 5), (STEPS - 1, 0xffff_fffe), (77, (1 << 45) + 3)] {
            let mut words = [0; 8 * 40];
            Cipher::new(&stream, step, Region::NormalFirst).words(block, &mut words);
            for (i, got) in words.as_chunks::<8>().0.iter().enumerate() {
                assert_eq!(*got, chacha20(stream.key(), 8 * step, block + i as u64));
            }
        }
        for coordinate in [0, 9, COORDINATES - 1] {
            let mut late = Late::new(&stream, 6, Region::NormalLate, coordinate);
            for j in 0..3 {
                let want = chacha20(stream.key(), 8 * 6 + 1, coordinate * 65536 + j);
                assert!(want.iter().all(|&w| late.word().unwrap() == w));
            }
        }
    }

    /// The counters of the table do not collide on a grid of extreme values,
    /// and would if a coordinate or step were one past its limit.
    #[test]
    fn ranges_never_overlap() {
        let mut seen = std::collections::HashSet::new();
        for step in [0, 1, 2, STEPS - 2, STEPS - 1] {
            for coordinate in [0, 1, 2, COORDINATES - 2, COORDINATES - 1] {
                for j in [0u64, 1, 65534, 65535] {
                    let nonce = step.checked_mul(8).unwrap() + 1;
                    let counter = coordinate.checked_mul(65536).unwrap().checked_add(j).unwrap();
                    assert!(seen.insert((nonce, counter)));
                }
            }
        }
        assert_eq!((STEPS).checked_mul(8), None);
        assert_eq!(COORDINATES.checked_mul(65536), None);
    }

    #[test]
    fn limits_are_errors() {
        assert!(check(STEPS - 1, COORDINATES - 5, 5).is_ok());
        let text = check(STEPS, 0, 1).unwrap_err().to_string();
        assert_eq!(text, "step must be below 2^61, but is 2305843009213693952");
        assert!(check(0, COORDINATES - 5, 6).is_err());
        assert!(check(0, u64::MAX, 6).is_err());

        let stream = Key::from_seed(3).stream("limits");
        let mut late = Late::new(&stream, 4, Region::NormalLate, 9);
        late.next = 8 << 16;
        assert_eq!(late.word(), Err(Error::Exhausted { step: 4, coordinate: 9 }));
        late.next = (8 << 16) - 1;
        assert!(late.word().is_ok());
        assert!(late.word().is_err());
    }
}
