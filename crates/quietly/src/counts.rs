//! Counting numbers into bins, on any number of threads.
use std::thread;

/// How many of `values` fall into each of `bins` bins.
pub(crate) fn tally<T: Copy + Sync>(
    values: &[T],
    bins: usize,
    bin: impl Fn(T) -> usize + Sync,
    threads: usize,
) -> Vec<u64> {
    let share = values.len().div_ceil(threads.max(1)).max(1 << 12);
    let count = |values: &[T]| {
        let mut counts = vec![0_u64; bins];
        values.iter().for_each(|&v| counts[bin(v)] += 1);
        counts
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            values.chunks(share).map(|part| scope.spawn(|| count(part))).collect();
        let mut total = vec![0; bins];
        for worker in workers {
            let part = worker.join().expect("counting does not panic");
            total.iter_mut().zip(part).for_each(|(t, p)| *t += p);
        }
        total
    })
}
