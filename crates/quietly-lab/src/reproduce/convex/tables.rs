//! The paper's four tables, or a synthetic one in their place.
use std::{ops::ControlFlow, path::Path};

use quietly::{
    Encoding, Format, Key, Private, ReadOptions, Schema, Source, Sparse, Table as Dense,
};
use quietly_cli::error::Failure;

use crate::reproduce::world::Normals;

/// Features of the files lie within ±8; a power of two, so that dividing by it loses nothing.
const REACH: f64 = 8.0;

/// Names, widths, and the files of training and test rows.
const KNOWN: [(&str, usize, [&str; 2]); 4] = [
    ("a9a", 123, ["a9a.gz", "a9a.t"]),
    ("ijcnn1", 22, ["ijcnn1.gz", "ijcnn1.t.gz"]),
    ("a8a", 123, ["a8a", "a8a.t"]),
    ("w7a", 300, ["w7a", "w7a.t"]),
];

/// Public rows for training and testing, of 1-norm at most 1, with targets ±1.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) width: usize,
    train: Sparse,
    pub(super) test: Sparse,
}

/// Training rows of one run.
pub(super) struct Sample {
    pub(super) rows: Sparse,
    pub(super) table: Private<Dense>,
}

/// Reads the first `most` tables that are there, and says which are not.
pub(super) fn load(
    data: &Path,
    most: usize,
    threads: usize,
) -> Result<(Vec<Table>, Vec<String>), Failure> {
    let (mut tables, mut missing) = (vec![], vec![]);
    for (name, width, files) in KNOWN {
        if tables.len() == most {
            break;
        }
        let paths = files.map(|file| data.join(name).join(file));
        if let Some(lost) = files.iter().zip(&paths).find(|(_, path)| !path.is_file()) {
            missing.push(format!("{name} was left out: there is no {name}/{} in --data.", lost.0));
            continue;
        }
        let [train, test] = paths.map(|path| read(&path, width, threads));
        tables.push(Table { name, width, train: train?, test: test? });
    }
    Ok((tables, missing))
}

/// The rows of a public libsvm file, each divided by its 1-norm if that is above 1.
fn read(path: &Path, width: usize, threads: usize) -> Result<Sparse, Failure> {
    let schema = format!(
        "rows = 50000\nfeatures = {width}\n[columns]\nlabel = {{ range = [-1, 1] }}\n\"*\" = {{ range = [-{REACH}, {REACH}] }}\n"
    );
    let bad = |e: quietly::DataError| Failure::from(quietly::Error::from(e));
    let schema = Schema::parse(&schema).map_err(bad)?;
    let mut options = ReadOptions::default();
    (options.format, options.features) = (Some(Format::Libsvm), Some(width));
    let source = Source::open([path], &options).map_err(bad)?;
    let encoding = Encoding::new(&schema, source.columns(), None, Some("label")).map_err(bad)?;
    let mut rows = Sparse::empty(width);
    source
        .blocks(&encoding, threads, &mut |block| {
            for (row, y) in block.features.chunks_exact(width).zip(&block.target) {
                push(&mut rows, row, REACH, *y);
            }
            ControlFlow::Continue(())
        })
        .map_err(bad)?;
    Ok(rows)
}

/// Adds a row, in units of `unit`, clipped to 1-norm 1.
fn push(rows: &mut Sparse, row: &[f64], unit: f64, target: f64) {
    let norm: f64 = row.iter().map(|x| (unit * x).abs()).sum::<f64>().max(1.0);
    let there = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
    rows.push(there.map(|(j, x)| (j as u32, unit * x / norm)), target);
}

impl Table {
    /// A stand-in of the paper's kind: ten groups of six indicators each, and labels of which one in four is +1.
    pub(super) fn made_up(train: usize, test: usize) -> Result<Table, Failure> {
        const GROUPS: usize = 10;
        const EACH: usize = 6;
        let width = GROUPS * EACH;
        let key = Key::from_seed(2024);
        let mut truth = vec![0.0; width];
        Normals::new(key.stream("truth").bits(0)?).fill(&mut truth)?;
        let draw = |name: &str, count: usize| {
            let mut bits = key.stream(name).bits(0)?;
            let mut rows = Sparse::empty(width);
            for _ in 0..count {
                let (mut row, mut score) = (vec![0.0; width], -1.6);
                for group in 0..GROUPS {
                    // Of two draws the lower one: early values are more common.
                    let value = bits.below(EACH as u64)?.min(bits.below(EACH as u64)?);
                    let at = group * EACH + value as usize;
                    row[at] = 1.0;
                    score += 0.5 * truth[at];
                }
                let chance = 1.0 / (1.0 + (-score).exp());
                let positive = (bits.below(1 << 32)? as f64) < chance * 2f64.powi(32);
                push(&mut rows, &row, 1.0, if positive { 1.0 } else { -1.0 });
            }
            Ok::<_, Failure>(rows)
        };
        let (train, test) = (draw("rows", train)?, draw("test rows", test)?);
        Ok(Table { name: "synthetic", width, train, test })
    }

    pub(super) fn rows(&self) -> usize {
        self.train.rows()
    }

    /// So many rows at random, in random order.
    pub(super) fn sample(&self, rows: usize, seed: u64) -> Result<Sample, Failure> {
        let mut order: Vec<usize> = (0..self.rows()).collect();
        let mut bits = Key::from_seed(seed).stream("sample").bits(0)?;
        let (mut picked, mut dense) = (Sparse::empty(self.width), vec![0.0; rows * self.width]);
        for i in 0..rows {
            let other = i + bits.below((order.len() - i) as u64)? as usize;
            order.swap(i, other);
            let (index, values) = self.train.row(order[i]);
            picked.push(
                index.iter().copied().zip(values.iter().copied()),
                self.train.target[order[i]],
            );
            let at = &mut dense[i * self.width..(i + 1) * self.width];
            index.iter().zip(values).for_each(|(j, x)| at[*j as usize] = *x);
        }
        let table = Private::new(Dense::new(self.width, dense, picked.target.clone()));
        Ok(Sample { rows: picked, table })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_other_rows_for_another_seed_and_all_within_the_ball() {
        let table = Table::made_up(500, 100).unwrap_or_else(|e| panic!("{e:?}"));
        let sample = |rows, seed| table.sample(rows, seed).unwrap_or_else(|e| panic!("{e:?}")).rows;
        let (all, some) = (sample(500, 1), sample(50, 2));
        assert_eq!((all.rows(), some.rows()), (500, 50));
        assert_ne!(all.index[..100], some.index[..100]);
        // The whole table is itself in another order.
        let sum = |rows: &Sparse| rows.target.iter().sum::<f64>();
        assert_eq!(sum(&all), sum(&table.train));
        for i in 0..500 {
            assert!((all.row(i).1.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let share = 0.5 + 0.5 * sum(&all) / 500.0;
        assert!((0.1..0.4).contains(&share), "{share}");
    }
}
