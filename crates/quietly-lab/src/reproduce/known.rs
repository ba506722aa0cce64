//! The real, public tables: read, split and standardised.
use std::{fs, path::Path};

use quietly::{Key, LinearFit, Link, Private, Table};
use quietly_cli::error::Failure;

/// Features are clamped to this many standard deviations.
const CUT: f64 = 3.0;
/// Training rows that are public, for DP-GLMtron; no other method sees them.
const PUBLIC: usize = 200;

/// A table as it is in its files.
pub(super) struct Real {
    pub(super) name: &'static str,
    pub(super) width: usize,
    features: Vec<f64>,
    pub(super) target: Vec<f64>,
}

/// The folder of a table, its target, and columns that are left out.
type Known = (&'static str, &'static [&'static str], char, &'static str, &'static [&'static str]);

const YEARS: &[&str] = &[
    "gas-turbine/gt_2011.csv",
    "gas-turbine/gt_2012.csv",
    "gas-turbine/gt_2013.csv",
    "gas-turbine/gt_2014.csv",
    "gas-turbine/gt_2015.csv",
];
const KNOWN: [Known; 4] = [
    ("california-housing", &["california-housing/california_housing.csv"], ',', "MedHouseVal", &[]),
    ("gas-turbine NOX", YEARS, ',', "NOX", &["CO"]),
    ("gas-turbine TEY", YEARS, ',', "TEY", &["CO", "NOX"]),
    ("wine-quality-white", &["wine-quality-white/winequality-white.csv"], ';', "quality", &[]),
];

/// Reads the tables that are there, and says which are not.
pub(super) fn load(data: &Path, link: Link) -> Result<(Vec<Real>, Vec<String>), Failure> {
    let (mut tables, mut missing) = (vec![], vec![]);
    for (name, files, delimiter, target, drop) in KNOWN {
        // The ReLU paper has one task for each data set.
        if link == Link::Relu && target == "TEY" {
            continue;
        }
        if let Some(lost) = files.iter().find(|file| !data.join(file).is_file()) {
            missing.push(format!("{name} was left out: there is no {lost} in --data."));
            continue;
        }
        let mut table = Real { name, width: 0, features: vec![], target: vec![] };
        for file in files {
            let path = data.join(file);
            let text = fs::read_to_string(&path).map_err(|e| Failure::file(&path, &e))?;
            if !table.add(&text, delimiter, target, drop) {
                let why = format!("no table of numbers with a column {target}");
                return Err(Failure::File { path: path.display().to_string(), why });
            }
        }
        tables.push(table);
    }
    Ok((tables, missing))
}

impl Real {
    /// Adds the rows of one file; false if it is not what it should be.
    fn add(&mut self, text: &str, delimiter: char, target: &str, drop: &[&str]) -> bool {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let names: Vec<&str> =
            header.split(delimiter).map(|n| n.trim().trim_matches('"')).collect();
        let Some(at) = names.iter().position(|n| *n == target) else { return false };
        self.width = names.iter().filter(|n| **n != target && !drop.contains(n)).count();
        for line in lines.filter(|l| !l.trim().is_empty()) {
            let cells: Result<Vec<f64>, _> =
                line.split(delimiter).map(|c| c.trim().parse()).collect();
            let Some(cells) = cells.ok().filter(|c| c.len() == names.len()) else { return false };
            for (i, cell) in cells.iter().enumerate() {
                if i == at {
                    self.target.push(*cell);
                } else if !drop.contains(&names[i]) {
                    self.features.push(*cell);
                }
            }
        }
        self.width > 0 && self.target.len() > 10 * PUBLIC
    }

    /// Training and test rows, standardised; the target is centred for linear models only.
    pub(super) fn split(&self, link: Link, seed: u64) -> Result<Split, Failure> {
        let mut order: Vec<usize> = (0..self.target.len()).collect();
        let mut bits = Key::from_seed(seed).stream("split").bits(0)?;
        for i in (1..order.len()).rev() {
            order.swap(i, bits.below(i as u64 + 1)? as usize);
        }
        let (train, test) = order.split_at(order.len() * 4 / 5);
        let moments = |get: &dyn Fn(usize) -> f64| {
            let n = train.len() as f64;
            let mean = train.iter().map(|&i| get(i)).sum::<f64>() / n;
            let square = train.iter().map(|&i| (get(i) - mean).powi(2)).sum::<f64>() / n;
            (mean, if square > 0.0 { square.sqrt() } else { 1.0 })
        };
        let columns: Vec<(f64, f64)> =
            (0..self.width).map(|j| moments(&|i| self.features[i * self.width + j])).collect();
        let (centre, spread) = moments(&|i| self.target[i]);
        let centre = if link == Link::Linear { centre } else { 0.0 };
        let table = |rows: &[usize]| {
            let mut features = Vec::with_capacity(rows.len() * self.width);
            for &i in rows {
                let row = &self.features[i * self.width..(i + 1) * self.width];
                features.extend(row.iter().zip(&columns).map(|(x, (m, s))| (x - m) / s / CUT));
            }
            let target = rows.iter().map(|&i| (self.target[i] - centre) / spread).collect();
            Table::new(self.width, features, target)
        };
        let (public, private) = train.split_at(if link == Link::Relu { PUBLIC } else { 0 });
        Ok(Split {
            train: table(private),
            private: Private::new(table(private)),
            public: table(public),
            test: table(test),
        })
    }
}

/// The parts of a table.
pub(super) struct Split {
    /// The same rows twice: the tables are public, so their losses may be looked at.
    pub(super) train: Table,
    pub(super) private: Private<Table>,
    pub(super) public: Table,
    pub(super) test: Table,
}

/// Half the mean squared error, and R².
pub(super) fn losses(table: &Table, fit: &LinearFit) -> (f64, f64) {
    let rows = table.features().chunks_exact(table.width()).zip(table.target());
    let (n, mut error) = (table.rows() as f64, 0.0);
    for (row, y) in rows {
        error += (fit.predict(row) - y).powi(2);
    }
    let mean = table.target().iter().sum::<f64>() / n;
    let spread: f64 = table.target().iter().map(|y| (y - mean).powi(2)).sum();
    (0.5 * error / n, 1.0 - error / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_split_and_standardised() {
        let mut text = String::from("a;\"b\";gone;y\n");
        for i in 0..5000 {
            let (a, b) = ((i * 7919 % 5000) as f64, (i % 13) as f64);
            text += &format!("{a};{b};1;{}\n", 2.0 * a - b + 5.0);
        }
        let empty = || Real { name: "t", width: 0, features: vec![], target: vec![] };
        let mut real = empty();
        assert!(real.add(&text, ';', "y", &["gone"]));
        assert_eq!((real.width, real.target.len()), (2, 5000));
        let split = real.split(Link::Linear, 1).unwrap();
        assert_eq!((split.train.rows(), split.test.rows(), split.public.rows()), (4000, 1000, 0));
        assert_eq!(real.split(Link::Relu, 1).unwrap().public.rows(), PUBLIC);
        let mean = split.train.target().iter().sum::<f64>() / 4000.0;
        assert!(mean.abs() < 1e-9, "{mean}");
        let square = split.train.target().iter().map(|y| y * y).sum::<f64>() / 4000.0;
        assert!((square - 1.0).abs() < 1e-9, "{square}");
        // For a constant prediction R² is undefined; half the variance is the loss.
        let (loss, r2) =
            losses(&split.train, &LinearFit::plain(Link::Linear, (0.0, vec![0.0, 0.0])));
        assert!((loss - 0.5).abs() < 1e-9 && r2.abs() < 1e-9, "{loss} {r2}");
        for bad in ["", "a;b\n1;2\n", "a;y\n1;x\n", "a;y\n1\n"] {
            assert!(!empty().add(bad, ';', "y", &[]), "{bad}");
        }
    }
}
