//! Work on all cores, in one order.
use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::RUN;

/// A sum is made of at most so many parts, in one order whatever the number of threads.
const PARTS: usize = 64;

/// Works on consecutive ranges of rows; the ranges follow from the number of rows alone.
pub fn in_parts<T: Send>(
    threads: usize,
    all: Range<usize>,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let (start, rows) = (all.start, all.len());
    let part = rows.div_ceil(PARTS).next_multiple_of(RUN).max(16 * RUN);
    let parts = rows.div_ceil(part);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= parts {
                return done;
            }
            let end = rows.min((at + 1) * part);
            done.push((at, work(start + at * part..start + end)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let others = threads.min(parts).saturating_sub(1);
        let handles: Vec<_> = (0..others).map(|_| scope.spawn(run)).collect();
        let mut all = run();
        for handle in handles {
            all.extend(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, part)| part).collect()
}
