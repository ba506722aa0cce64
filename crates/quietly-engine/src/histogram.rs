//! Histograms: bins, and counting values into them on any number of threads.
use std::thread;

/// How many of `values` fall into each of `bins` bins.
pub fn tally<T: Copy + Sync>(
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

/// `start`·2^(k/4) for k from `first` to `last`.
pub fn geometric_bins(start: f64, first: i32, last: i32) -> Vec<f64> {
    (first..=last).map(|k| start * 2.0_f64.powf(0.25 * f64::from(k))).collect()
}

/// A grid whose highest bin has `threshold` in its middle: the next threshold is no greater.
pub fn decreasing_bins(threshold: f64, depth: i32) -> Vec<f64> {
    geometric_bins(threshold * 2.0_f64.powf(0.125), -depth, 0)
}

/// The value that stands for bin k: the geometric mean of its ends.
pub fn bin_value(thresholds: &[f64], k: usize) -> f64 {
    (thresholds[k.saturating_sub(1)] * thresholds[k]).sqrt()
}

/// 801 thresholds from -2·scale to 2·scale, and the bin of a value among them.
pub fn linear_bins(scale: f64) -> (Vec<f64>, impl Fn(f64) -> usize + Sync) {
    let step = scale / 200.0;
    let thresholds = (0..=800).map(|k| -2.0 * scale + step * f64::from(k)).collect();
    // As a cast: below 0 and not a number give 0, beyond the end the last bin.
    let bin = move |y: f64| ((((y + 2.0 * scale) / step).ceil()) as usize).min(801);
    (thresholds, bin)
}
