//! Work in blocks, on any number of threads, with the same result.
use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use quietly_core::lattice::{clamped, lowered};

use super::LANES;

/// Gives `0..items` in blocks to idle workers; returns what every worker has gathered.
///
/// Which worker gets which block is a matter of chance, so what they gather must add up to the
/// same whatever the split: integers do.
pub fn in_blocks<S: Send>(
    items: usize,
    block: usize,
    threads: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = start();
        loop {
            let first = next.fetch_add(1, Ordering::Relaxed).saturating_mul(block);
            if first >= items {
                return state;
            }
            work(&mut state, first..items.min(first + block));
        }
    };
    // The caller is a worker too; more workers than blocks would only wait.
    let others = threads.min(items.div_ceil(block)).saturating_sub(1);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..others).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        for handle in handles {
            states.push(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        states
    })
}

/// What one worker has added up so far.
pub(super) struct Gathered {
    /// The sum over the current block, of integers as [`raised`](quietly_core::lattice::raised) gives them.
    pub(super) block: Vec<[i64; LANES]>,
    total: Vec<i128>,
    pub(super) counts: Vec<u64>,
}

impl Gathered {
    pub(super) fn new(width: usize, bins: usize) -> Self {
        let chunks = width.div_ceil(LANES);
        let (block, total) = (vec![[0; LANES]; chunks], vec![0; chunks * LANES]);
        Self { block, total, counts: vec![0; bins] }
    }

    /// Ends a block of so many rows, before its sums could overflow.
    pub(super) fn end_block(&mut self, rows: usize) {
        let block = self.block.as_flattened_mut();
        for (total, block) in self.total.iter_mut().zip(block) {
            *total += i128::from(lowered(std::mem::take(block), rows));
        }
    }
}

/// What one pass over rows gives. All of it is private.
#[derive(Debug, PartialEq)]
pub struct Totals {
    /// The sum of the clipped records in lattice units; empty if none was asked for.
    pub sum: Vec<i64>,
    /// How many values fell into every bin of the grid; empty if there was none.
    pub counts: Vec<u64>,
}

impl Totals {
    /// The first `width` sums of all workers; those beyond are padding.
    pub(super) fn of(workers: Vec<Gathered>, width: usize) -> Self {
        let bins = workers.first().map_or(0, |worker| worker.counts.len());
        let mut total = vec![0i128; width];
        let mut counts = vec![0u64; bins];
        for worker in workers {
            total.iter_mut().zip(&worker.total).for_each(|(sum, x)| *sum += x);
            counts.iter_mut().zip(&worker.counts).for_each(|(sum, x)| *sum += x);
        }
        Self { sum: total.into_iter().map(clamped).collect(), counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for (items, block, threads) in [(0, 4, 2), (1, 4, 0), (10, 3, 1), (1000, 7, 64)] {
            let work = |sum: &mut Vec<usize>, block: Range<usize>| sum.extend(block);
            let mut seen = in_blocks(items, block, threads, Vec::new, work).concat();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..items));
        }
    }

    #[test]
    fn no_number_of_rows_overflows() {
        let mut worker = Gathered::new(2, 0);
        for _ in 0..5 {
            worker.block = vec![[i64::MAX, i64::MIN, 0, 0]];
            worker.end_block(0);
            assert_eq!(worker.block, [[0; LANES]]);
        }
        assert_eq!(worker.total[0], 5 * i128::from(i64::MAX));
        assert_eq!(Totals::of(vec![worker], 2).sum, [1 << 62, -(1 << 62)]);
    }
}
