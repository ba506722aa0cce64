//! The rows of every step of a table in memory, where a draw puts each row in one.
use quietly_core::batch_sampling::{BLOCK, BatchDraw};
use quietly_data::Table;

/// The rows of a step, ascending, and their targets: those lie too far apart to be fetched one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bucket {
    pub(super) rows: Vec<u32>,
    pub(super) targets: Vec<f64>,
}

impl Bucket {
    /// These rows, ascending, of a table with these targets.
    pub fn new(rows: Vec<u32>, targets: &[f64]) -> Self {
        let targets = rows.iter().map(|&row| targets[row as usize]).collect();
        Bucket { rows, targets }
    }

    /// Its rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// A copy of its rows of a table.
    pub fn table(&self, of: &Table) -> Table {
        let width = of.width();
        let mut features = Vec::with_capacity(self.rows.len() * width);
        for &row in &self.rows {
            features.extend_from_slice(&of.features()[row as usize * width..][..width]);
        }
        Table::new(width, features, self.targets.clone())
    }

    /// The targets of its rows.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }
}

/// The rows of every step, where each row is in one.
///
/// Places number all rows of the table, null records among them: whatever becomes of one row, all others keep their
/// steps.
///
/// # Panics
///
/// As [`places`].
pub fn allocate(table: &Table, draw: &BatchDraw, threads: usize) -> Vec<Bucket> {
    let (target, nulls) = (table.target(), table.nulls());
    let mut groups = groups(target.len() + nulls.len(), draw, threads);
    let (mut place, mut null) = (0, nulls.iter().peekable());
    groups.retain(|_| {
        place += 1;
        null.next_if(|null| **null == place - 1).is_none()
    });
    scatter(&groups, target, draw, threads)
}

/// The places of the rows of every step, for so many rows.
///
/// # Panics
///
/// Unless the draw puts each unit in one of at most 65536 groups, by place, and there are at most 2³² rows.
pub fn places(rows: usize, draw: &BatchDraw, threads: usize) -> Vec<Vec<u32>> {
    let groups = groups(rows, draw, threads);
    scatter(&groups, &[], draw, threads).into_iter().map(|bucket| bucket.rows).collect()
}

/// The group of every row.
fn groups(rows: usize, draw: &BatchDraw, threads: usize) -> Vec<u16> {
    assert!(u32::try_from(rows.saturating_sub(1)).is_ok(), "a table has at most 2^32 rows");
    let run = run(rows, threads);
    let mut groups = vec![0u16; rows];
    each(groups.chunks_mut(run).enumerate(), |(i, groups)| {
        for (block, groups) in (i * run / BLOCK..).zip(groups.chunks_mut(BLOCK)) {
            draw.block(block as u64, groups);
        }
    });
    groups
}

/// How many rows a worker takes: one run of whole blocks.
fn run(rows: usize, threads: usize) -> usize {
    rows.div_ceil(threads.clamp(1, 64)).next_multiple_of(BLOCK).max(BLOCK)
}

/// The rows of each group, with their targets where there are any.
fn scatter(groups: &[u16], target: &[f64], draw: &BatchDraw, threads: usize) -> Vec<Bucket> {
    let steps = draw.groups().expect("each unit is in one group") as usize;
    // Each worker counts its run, then scatters it into its own part of every step.
    let run = run(groups.len(), threads);
    let counts = each(groups.chunks(run), |groups| {
        let mut counts = vec![0usize; steps];
        groups.iter().for_each(|&group| counts[usize::from(group)] += 1);
        counts
    });
    let all = |step: usize| counts.iter().map(|count| count[step]).sum();
    let empty = |n: usize| Bucket {
        rows: vec![0; n],
        targets: vec![0.0; if target.is_empty() { 0 } else { n }],
    };
    let mut buckets: Vec<Bucket> = (0..steps).map(|step| empty(all(step))).collect();
    let mut rest: Vec<Part<'_>> =
        buckets.iter_mut().map(|b| (b.rows.as_mut_slice(), b.targets.as_mut_slice())).collect();
    let parts = counts.iter().map(|count| split(&mut rest, count)).collect::<Vec<_>>();
    each(parts.into_iter().zip(groups.chunks(run)).enumerate(), |(i, (mut parts, groups))| {
        let mut filled = vec![0; steps];
        for (row, &group) in (i * run..).zip(groups) {
            let step = usize::from(group);
            let ((rows, targets), at) = (&mut parts[step], filled[step]);
            rows[at] = row as u32;
            if let Some(y) = target.get(row) {
                targets[at] = *y;
            }
            filled[step] = at + 1;
        }
    });
    buckets
}

/// One worker for each item; the caller is one of them.
fn each<T: Send, U: Send>(items: impl Iterator<Item = T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let mut items = items;
    let Some(first) = items.next() else { return vec![] };
    let work = &work;
    std::thread::scope(|scope| {
        let handles: Vec<_> = items.map(|item| scope.spawn(move || work(item))).collect();
        let mut done = vec![work(first)];
        for handle in handles {
            done.push(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}

/// Rows and targets of a step that are still to be filled.
type Part<'a> = (&'a mut [u32], &'a mut [f64]);

/// The first counted numbers of every part; the parts are left with the rest.
fn split<'a>(parts: &mut [Part<'a>], counts: &[usize]) -> Vec<Part<'a>> {
    let first = |(part, &n): (&mut Part<'a>, &usize)| {
        let targets = n.min(part.1.len());
        (part.0.split_off_mut(..n), part.1.split_off_mut(..targets))
    };
    let whole = |(rows, targets): (Option<_>, Option<_>)| rows.zip(targets);
    let firsts = parts.iter_mut().zip(counts).map(first);
    firsts.map(|part| whole(part).expect("counted before")).collect()
}

#[cfg(test)]
mod tests {
    use quietly_core::mechanism::Sampler;
    use quietly_noise::Key;

    use super::*;

    fn draw(steps: usize) -> BatchDraw {
        Sampler::RandomAllocation { steps: steps as u64 }.draw(Key::from_seed(1).stream("test"))
    }

    #[test]
    fn every_row_is_in_one_step_whatever_the_threads() {
        for (rows, steps) in [(0, 3), (1, 1), (5, 65536), (20_000, 20), (30_011, 7)] {
            let target: Vec<f64> = (0..rows).map(|i| 0.5 * i as f64).collect();
            let table = Table::new(0, vec![], target.clone());
            let one = allocate(&table, &draw(steps), 1);
            assert_eq!(one.len(), steps);
            assert!(one.iter().all(|step| step.rows.is_sorted()));
            for step in &one {
                assert!(step.rows.iter().map(|&i| target[i as usize]).eq(step.targets.clone()));
            }
            let mut all: Vec<u32> = one.iter().flat_map(|step| step.rows.clone()).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..rows as u32));
            for threads in [0, 2, 3, 64] {
                assert!(allocate(&table, &draw(steps), threads) == one);
                let places = places(rows, &draw(steps), threads);
                assert!(places.iter().eq(one.iter().map(|step| &step.rows)));
            }
        }
    }

    /// Every third record is null. The others are where they would be if it were not.
    #[test]
    fn a_null_record_moves_no_other() {
        let (records, steps) = (20_000, 7);
        let target = |nulls: bool| {
            let y = |i: usize| if nulls && i.is_multiple_of(3) { f64::NAN } else { i as f64 };
            (0..records).map(y).collect::<Vec<f64>>()
        };
        let all = allocate(&Table::new(0, vec![], target(false)), &draw(steps), 2);
        let some = allocate(&Table::new(0, vec![], target(true)), &draw(steps), 2);
        for (all, some) in all.iter().zip(&some) {
            let kept = all.targets.iter().filter(|y| !(**y as usize).is_multiple_of(3));
            assert!(kept.eq(&some.targets));
        }
        // One after the other, as a file is read.
        for (place, step) in (0..records).zip(draw(steps).assignments(0)) {
            assert!(all[step].rows.binary_search(&(place as u32)).is_ok());
        }
    }
}
