//! Filling vectors: which coordinate gets which words, on how many threads, and what happens to the
//! rest if something fails.
use std::num::NonZeroUsize;

use crate::{
    error::Error,
    key::Stream,
    lazy_normal::{LazyNormal, multiply_high, parse},
    round::{Grid, WIDTH},
    stream_layout::{BLOCK, Cipher, Late, Region},
    ziggurat::TABLE,
};

/// Words handled at a time: long enough for the vector units, short enough for the first-level
/// cache.
pub(crate) const RUN: usize = 64 * BLOCK;

/// Sums are clamped to this size before noise is added. The noise is smaller than it as well.
pub(crate) const LIMIT: i64 = 1 << 62;

/// Adds `noise` to `sums`, clamped to ±2⁶².
pub(crate) fn add_clamped(noise: &[i64], sums: &mut [i64]) {
    for (sum, n) in sums.iter_mut().zip(noise) {
        *sum = (*sum).clamp(-LIMIT, LIMIT) + n;
    }
}

/// Calls `with(coordinate, words, out)` for runs of coordinates from `first` on and their first
/// words.
pub(crate) fn first_words(
    stream: &Stream,
    step: u64,
    first: u64,
    out: &mut [i64],
    mut with: impl FnMut(u64, &[u64], &mut [i64]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut cipher = Cipher::new(stream, step, Region::NormalFirst);
    let mut words = [0; RUN];
    let mut rest = out;
    let mut coordinate = first;
    while !rest.is_empty() {
        // Only the first run can start inside a block.
        let skip = coordinate as usize % BLOCK;
        let count = rest.len().min(RUN - skip);
        let (run, later) = rest.split_at_mut(count);
        let blocks = (skip + count).div_ceil(BLOCK);
        cipher.words(coordinate / BLOCK as u64, &mut words[..blocks * BLOCK]);
        with(coordinate, &words[skip..skip + count], run)?;
        coordinate += count as u64;
        rest = later;
    }
    Ok(())
}

/// The largest number of threads. A larger one is reduced to it, with the same bits.
const MOST_THREADS: usize = 256;

/// Runs `work(first coordinate, part)` over parts of `out`, one per thread.
pub(crate) fn spread(
    out: &mut [i64],
    threads: NonZeroUsize,
    work: impl Fn(u64, &mut [i64]) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let part = out.len().div_ceil(threads.get().min(MOST_THREADS)).next_multiple_of(BLOCK).max(RUN);
    if out.len() <= part {
        return work(0, out);
    }
    std::thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = out
            .chunks_mut(part)
            .enumerate()
            .map(|(i, chunk)| scope.spawn(move || work((i * part) as u64, chunk)))
            .collect();
        let results: Vec<_> = handles.into_iter().map(|h| h.join()).collect();
        results.into_iter().try_for_each(|r| r.expect("noise does not panic"))
    })
}

/// Runs `work`, and zeroes `out` if it fails.
pub(crate) fn or_zero(
    out: &mut [i64],
    work: impl FnOnce(&mut [i64]) -> Result<(), Error>,
) -> Result<(), Error> {
    // Zeroes on the way out, by error or by panic, unless the work was done.
    struct Guard<'a>(&'a mut [i64], bool);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            if !self.1 {
                self.0.fill(0);
            }
        }
    }
    let mut guard = Guard(out, false);
    let result = work(guard.0);
    guard.1 = result.is_ok();
    result
}

/// The noise of `step` on the grid: 2^f·s·Z lies in [value, value + WIDTH], or the value is
/// [`OFF_GRID`].
pub(crate) fn fill_grid(
    grid: &Grid,
    stream: &Stream,
    step: u64,
    first: u64,
    out: &mut [i64],
) -> Result<(), Error> {
    first_words(stream, step, first, out, |first, words, out| {
        for (j, (&word, value)) in words.iter().zip(out).enumerate() {
            let (layer, negative, head) = parse(word);
            let layer = &TABLE.layers[layer];
            *value = if word < layer.keep {
                on_grid(grid, negative, Some(multiply_high(head, layer.width)))
            } else {
                let late = Late::new(stream, step, Region::NormalLate, first + j as u64);
                let z = LazyNormal::draw(word, late)?;
                on_grid(grid, z.negative, z.coarse)
            };
        }
        Ok(())
    })
}

/// The lower end of 2^f·s·Z.
#[inline(always)]
fn on_grid(grid: &Grid, negative: bool, coarse: Option<u64>) -> i64 {
    match coarse.map(|coarse| grid.cut(coarse)) {
        Some(q) if negative => -((q + WIDTH) as i64),
        Some(q) => q as i64,
        None => OFF_GRID,
    }
}

/// Marks a draw so far out that the grid cannot hold it.
pub(crate) const OFF_GRID: i64 = i64::MIN;

#[cfg(test)]
mod tests {
    use num_bigint::{BigInt, BigUint};

    use super::*;
    use crate::{correlated::regenerate, exact_numbers::Scale, key::Key};

    /// 2^f·s·Z lies in [value, value + WIDTH] for every coordinate, of either sign, with Z known to
    /// 300 bits. The intervals are not twice too wide either: the widest use more than a third.
    #[test]
    fn the_grid_encloses_every_draw() {
        let stream = Key::from_seed(61).stream("grid");
        for s in [0.25, 3.0, 2f64.powi(30) - 1.0, 2f64.powi(45)] {
            let grid = Grid::new(Scale::new(s).unwrap());
            let mut values = vec![0; 3000];
            fill_grid(&grid, &stream, 5, 0, &mut values).unwrap();
            let mut widest = 0.0f64;
            for (c, value) in (0..).zip(values) {
                let mut z = regenerate(&stream, 5, c).unwrap();
                (0..4).for_each(|_| z.refine().unwrap());
                let (low, _, denominator) = z.enclose();
                // 2^f·s = m/2⁴; 200 bits behind the point.
                let m = BigUint::from(grid.scale.mantissa);
                let size = BigInt::from(((low * m) << 196u32) / denominator);
                let truth = if z.negative { -size } else { size };
                let from = BigInt::from(value) << 200u32;
                let to = BigInt::from(value + WIDTH as i64) << 200u32;
                assert!(from <= truth && truth <= to, "{s} {c}");
                let above = i64::try_from((truth - from) >> 200u32).unwrap();
                widest = widest.max(if z.negative { WIDTH as i64 - above } else { above } as f64);
            }
            let share = widest / (WIDTH as f64 * grid.scale.mantissa as f64 / 2f64.powi(64));
            assert!(share > 0.33, "{s} {share}");
        }
    }

    #[test]
    fn far_draws_are_marked() {
        let grid = Grid::new(Scale::new(1.0).unwrap());
        assert_eq!(on_grid(&grid, false, None), OFF_GRID);
        assert_eq!(on_grid(&grid, true, Some(8)), -4 - WIDTH as i64);
        assert_eq!(on_grid(&grid, false, Some(8)), 4);
    }

    /// A caller that catches a panic finds zeros, not sums without noise.
    #[test]
    fn neither_an_error_nor_a_panic_leaves_a_sum_behind() {
        let mut sums = [7_i64; 4];
        let failed = or_zero(&mut sums, |_| Err(Error::Exhausted { step: 0, coordinate: 0 }));
        assert!(failed.is_err() && sums == [0; 4]);
        let mut sums = [7_i64; 4];
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            or_zero(&mut sums, |_| panic!("on purpose"))
        }));
        assert!(caught.is_err() && sums == [0; 4]);
        let mut sums = [7_i64; 4];
        assert!(or_zero(&mut sums, |_| Ok(())).is_ok() && sums == [7; 4]);
    }
}
