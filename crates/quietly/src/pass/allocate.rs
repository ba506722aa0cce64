//! Every row in one step, chosen uniformly and independently.
use quietly_data::Table;
use quietly_noise::Stream;

/// Rows that share one run of random words. Part of the law of seeded results: do not change.
const BLOCK: usize = 8192;

/// The rows of a step, ascending, and their targets: those lie too far apart to be fetched one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bucket {
    pub(super) rows: Vec<u32>,
    pub(super) targets: Vec<f64>,
}

impl Bucket {
    /// The targets of its rows.
    pub(crate) fn targets(&self) -> &[f64] {
        &self.targets
    }
}

/// A copy of the table with the rows of one step after the other, and where each step ends.
pub(crate) fn grouped(table: &Table, steps: &[Bucket]) -> (Table, Vec<usize>) {
    let width = table.width();
    let (mut features, mut targets) = (Vec::with_capacity(table.features().len()), Vec::new());
    let end = |step: &Bucket| {
        for &row in &step.rows {
            features.extend_from_slice(&table.features()[row as usize * width..][..width]);
        }
        targets.extend_from_slice(&step.targets);
        targets.len()
    };
    let ends = steps.iter().map(end).collect();
    (Table::new(width, features, targets), ends)
}

/// The rows of every step: each row of a table is in one of `steps` steps, with equal chances.
///
/// A record's step goes by its place, whatever becomes of those before it: null records have steps, too.
///
/// # Panics
///
/// As [`places`].
pub(crate) fn allocate(
    table: &Table,
    steps: usize,
    stream: &Stream,
    threads: usize,
) -> Vec<Bucket> {
    let (target, nulls) = (table.target(), table.nulls());
    let mut labels = labels(target.len() + nulls.len(), steps, stream, threads);
    let (mut place, mut null) = (0, nulls.iter().peekable());
    labels.retain(|_| {
        place += 1;
        null.next_if(|null| **null == place - 1).is_none()
    });
    scatter(&labels, target, steps, threads)
}

/// The places of the records of every step: each of so many records is in one, with equal chances.
///
/// The result is a function of the stream alone. The law is exact: a word w makes m draws, the digits of ⌊w·steps^m/2⁶⁴⌋
/// in base `steps`, and is refused with chance below 2⁻³² where that number would be uneven
/// (Lemire, *Fast random integer generation in an interval*, 2019).
///
/// # Panics
///
/// Unless `steps` is within 1 to 65536 and there are at most 2³² records: a table has no more.
pub(crate) fn places(
    records: usize,
    steps: usize,
    stream: &Stream,
    threads: usize,
) -> Vec<Vec<u32>> {
    let labels = labels(records, steps, stream, threads);
    scatter(&labels, &[], steps, threads).into_iter().map(|bucket| bucket.rows).collect()
}

/// The step of every record.
fn labels(records: usize, steps: usize, stream: &Stream, threads: usize) -> Vec<u16> {
    assert!((1..=1 << 16).contains(&steps), "steps must be within 1 to 65536");
    assert!(u32::try_from(records.saturating_sub(1)).is_ok(), "a table has at most 2^32 rows");
    let dice = Dice::new(steps as u64);
    let run = run(records, threads);
    let mut labels = vec![0u16; records];
    each(labels.chunks_mut(run).enumerate(), |(i, labels)| {
        for (block, labels) in (i * run / BLOCK..).zip(labels.chunks_mut(BLOCK)) {
            dice.throw(words(stream, block as u64), labels);
        }
    });
    labels
}

/// The random words of a block of records.
fn words(stream: &Stream, block: u64) -> impl FnMut() -> u64 {
    let mut bits = stream.bits(block).expect("there are fewer blocks than steps of a stream");
    move || bits.word().expect("a block has fewer words than a stream")
}

/// How many records a worker takes: one run of whole blocks.
fn run(records: usize, threads: usize) -> usize {
    records.div_ceil(threads.clamp(1, 64)).next_multiple_of(BLOCK).max(BLOCK)
}

/// The rows that have each label, with their targets where there are any.
fn scatter(labels: &[u16], target: &[f64], steps: usize, threads: usize) -> Vec<Bucket> {
    // Each worker counts its run, then scatters it into its own part of every step.
    let run = run(labels.len(), threads);
    let counts = each(labels.chunks(run), |labels| {
        let mut counts = vec![0usize; steps];
        labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
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
    each(parts.into_iter().zip(labels.chunks(run)).enumerate(), |(i, (mut parts, labels))| {
        let mut filled = vec![0; steps];
        for (row, &label) in (i * run..).zip(labels) {
            let step = usize::from(label);
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

/// The steps of rows that come one after the other: the same ones that [`places`] gives them.
pub(crate) struct Labels {
    dice: Dice,
    block: u64,
    labels: Vec<u16>,
    next: usize,
}

impl Labels {
    /// For a run of `steps` steps, at most 65536.
    pub(crate) fn new(steps: usize) -> Self {
        Labels { dice: Dice::new(steps as u64), block: 0, labels: vec![0; BLOCK], next: BLOCK }
    }

    /// The same for rows that come after so many others.
    pub(crate) fn after(steps: usize, rows: u64, stream: &Stream) -> Self {
        let mut labels = Labels { block: rows / BLOCK as u64, ..Labels::new(steps) };
        (0..rows % BLOCK as u64).for_each(|_| _ = labels.next(stream));
        labels
    }

    /// The step of the next row.
    pub(crate) fn next(&mut self, stream: &Stream) -> usize {
        if self.next == BLOCK {
            self.dice.throw(words(stream, self.block), &mut self.labels);
            (self.block, self.next) = (self.block + 1, 0);
        }
        self.next += 1;
        usize::from(self.labels[self.next - 1])
    }
}

/// Several draws below `sides` from one word.
struct Dice {
    sides: u64,
    draws: usize,
    /// 2⁶⁴ mod sides^draws: words whose last remainder is below it are refused.
    refused: u64,
}

/// More would cost more words than they save.
const MOST: usize = 8;

impl Dice {
    fn new(sides: u64) -> Self {
        let draws = (1..=MOST as u32)
            .take_while(|&m| sides.checked_pow(m).is_some_and(|all| all <= 1 << 32))
            .last()
            .expect("at most 2^16 sides");
        let all = u128::from(sides.pow(draws));
        Self { sides, draws: draws as usize, refused: ((1 << 64) % all) as u64 }
    }

    #[inline]
    fn throw(&self, mut word: impl FnMut() -> u64, labels: &mut [u16]) {
        for labels in labels.chunks_mut(self.draws) {
            loop {
                let mut digits = [0; MOST];
                let mut rest = word();
                for digit in &mut digits[..self.draws] {
                    let product = u128::from(rest) * u128::from(self.sides);
                    (*digit, rest) = ((product >> 64) as u16, product as u64);
                }
                if rest >= self.refused {
                    labels.copy_from_slice(&digits[..labels.len()]);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;

    fn stream() -> Stream {
        Key::from_seed(1).stream("test")
    }

    #[test]
    fn every_row_is_in_one_step_whatever_the_threads() {
        for (rows, steps) in [(0, 3), (1, 1), (5, 65536), (20_000, 20), (30_011, 7)] {
            let target: Vec<f64> = (0..rows).map(|i| 0.5 * i as f64).collect();
            let table = Table::new(0, vec![], target.clone());
            let one = allocate(&table, steps, &stream(), 1);
            assert_eq!(one.len(), steps);
            assert!(one.iter().all(|step| step.rows.is_sorted()));
            for step in &one {
                assert!(step.rows.iter().map(|&i| target[i as usize]).eq(step.targets.clone()));
            }
            let mut all: Vec<u32> = one.iter().flat_map(|step| step.rows.clone()).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..rows as u32));
            for threads in [0, 2, 3, 64] {
                assert!(allocate(&table, steps, &stream(), threads) == one);
                let places = places(rows, steps, &stream(), threads);
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
        let all = allocate(&Table::new(0, vec![], target(false)), steps, &stream(), 2);
        let some = allocate(&Table::new(0, vec![], target(true)), steps, &stream(), 2);
        for (all, some) in all.iter().zip(&some) {
            let kept = all.targets.iter().filter(|y| !(**y as usize).is_multiple_of(3));
            assert!(kept.eq(&some.targets));
        }
        // One after the other, as a file is read.
        let mut labels = Labels::new(steps);
        for place in 0..records {
            let step = labels.next(&stream());
            assert!(all[step].rows.binary_search(&(place as u32)).is_ok());
        }
    }

    /// χ² over pairs of neighbours, 49 cells: 48 degrees of freedom have the 1 - 1e-6 quantile
    /// 108. The control calls every eighth draw of 6 a 5.
    #[test]
    fn draws_are_uniform_and_independent() {
        let mut labels = vec![0; 98_000];
        Dice::new(7).throw(words(&stream(), 3), &mut labels);
        let chi_square = |labels: &[u16]| {
            let mut counts = [0.0f64; 49];
            for pair in labels.chunks_exact(2) {
                counts[usize::from(pair[0] * 7 + pair[1])] += 1.0;
            }
            counts.iter().map(|n| (n - 1000.0).powi(2) / 1000.0).sum::<f64>()
        };
        assert!(chi_square(&labels) < 108.0);
        labels.iter_mut().step_by(8).for_each(|label| *label = (*label).min(5));
        assert!(chi_square(&labels) > 108.0);
    }

    /// With 3 sides, 8 draws: 3⁸ = 6561, so 2⁶⁴ mod 6561 remainders are refused, 0 among them.
    #[test]
    fn uneven_words_are_refused() {
        let dice = Dice::new(3);
        assert_eq!((dice.draws, u128::from(dice.refused)), (8, (1 << 64) % 6561));
        let mut script = [0, u64::MAX].into_iter();
        let mut labels = [9; 8];
        dice.throw(|| script.next().unwrap(), &mut labels);
        assert_eq!((labels, script.next()), ([2; 8], None));
        // The digits are those of ⌊w·3⁸/2⁶⁴⌋.
        let w = 0x1234_5678_9abc_def0u64;
        dice.throw(|| w, &mut labels);
        let value = labels.iter().fold(0, |v, &digit| 3 * v + u128::from(digit));
        assert_eq!(value, (u128::from(w) * 6561) >> 64);
    }
}
