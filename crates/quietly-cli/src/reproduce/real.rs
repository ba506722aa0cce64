//! Real, public tables: the protocol that private regressions are compared with.
//!
//! Splits of 80 and 20 by seed; features standardised by the training part and cut to [-3, 3]; δ = 1e-5, add-remove.
use std::{fs, ops::ControlFlow, path::Path};

use quietly::{Budget, Key, Link, Method, Private, Table};

use crate::{
    failure::Failure,
    reproduce::{
        Size,
        claim::{Check, Claim},
        report::{Entry, Grid},
    },
    screen::Progress,
    trial::{self, Entrant, Spread},
};

const DELTA: f64 = 1e-5;
/// Features are cut to this many standard deviations.
const CUT: f64 = 3.0;
/// Training rows that are public, for DP-GLMtron; no other method sees them.
const PUBLIC: usize = 200;

/// A table as it stands in its files.
pub(crate) struct Real {
    name: &'static str,
    width: usize,
    features: Vec<f64>,
    target: Vec<f64>,
}

/// Where a table stands, its target, and what else is left out.
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
fn load(data: &Path, link: Link) -> Result<(Vec<Real>, Vec<String>), Failure> {
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
    fn split(&self, link: Link, seed: u64) -> Result<Split, Failure> {
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

struct Split {
    /// The same rows twice: the tables are public, so their losses may be looked at.
    train: Table,
    private: Private<Table>,
    public: Table,
    test: Table,
}

/// Half the mean squared error, and R².
fn losses(table: &Table, link: Link, intercept: f64, weights: &[f64]) -> (f64, f64) {
    let rows = table.features().chunks_exact(table.width()).zip(table.target());
    let (n, mut error) = (table.rows() as f64, 0.0);
    for (row, y) in rows {
        let u = row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + intercept;
        error += (link.apply(u) - y).powi(2);
    }
    let mean = table.target().iter().sum::<f64>() / n;
    let spread: f64 = table.target().iter().map(|y| (y - mean).powi(2)).sum();
    (0.5 * error / n, 1.0 - error / spread)
}

/// What a method came to on one table at one ε: loss of R² on test rows, test loss, training loss.
struct Result3 {
    name: String,
    own: bool,
    epsilon: f64,
    values: Vec<[f64; 3]>,
}

impl Result3 {
    fn median(&self, which: usize) -> Option<f64> {
        let column: Vec<f64> = self.values.iter().map(|v| v[which]).collect();
        (!column.is_empty()).then(|| Spread::of(&column).median)
    }
}

/// Tables, claims and remarks for every real table in `data`.
pub(crate) fn run(
    data: &Path,
    link: Link,
    size: Size,
    seed: u64,
    threads: usize,
    progress: &Progress,
) -> Result<(Vec<Grid>, Vec<Claim>, Vec<String>), Failure> {
    let (tables, mut remarks) = load(data, link)?;
    let seeds = match size {
        Size::Full => 10,
        Size::Quick => 3,
        Size::Tiny => 1,
    };
    let (methods, epsilons): (&[Method], &[f64]) = match (link, size) {
        (Link::Relu, _) => (
            &[Method::DpSgd, Method::DpGlmtron, Method::DpMbglmtron, Method::FullBatch],
            &[0.05, 0.2, 0.5],
        ),
        (Link::Linear, Size::Full) => (&LINEAR, &[0.1, 0.5, 1.0, 3.0]),
        (Link::Linear, _) => (&LINEAR, &[0.1, 1.0]),
    };
    remarks.push(format!(
        "Real tables: {seeds} splits of 80/20, features standardised by the training part and cut to [-3, 3], the target in \
         units of its standard deviation, delta {DELTA:e}, add-remove."
    ));
    let (mut grids, mut claims) = (vec![], vec![]);
    for table in &tables {
        progress.say(table.name);
        let results = measure(table, link, methods, epsilons, seeds, seed, threads)?;
        grids.push(grid(table.name, link, &results));
        claims.push(claim(table.name, link, &results, epsilons));
    }
    Ok((grids, claims, remarks))
}

const LINEAR: [Method; 7] = [
    Method::FullBatch,
    Method::OnePass,
    Method::AdaptiveGd,
    Method::DpAmbssgd,
    Method::AdaSsp,
    Method::BoostedAdaSsp,
    Method::TukeyEm,
];

fn measure(
    table: &Real,
    link: Link,
    methods: &[Method],
    epsilons: &[f64],
    seeds: u64,
    seed: u64,
    threads: usize,
) -> Result<Vec<Result3>, Failure> {
    let rows = (table.target.len() * 4 / 5) as u64;
    let mut plans = vec![];
    let mut results = vec![];
    let plain = Entrant::plain();
    let plain = plain.plan(link, rows, table.width, Budget::new(f64::INFINITY, DELTA)?)?;
    for entrant in methods.iter().map(|m| Entrant::new(*m)) {
        for &epsilon in epsilons {
            let plan = entrant.plan(link, rows, table.width, Budget::new(epsilon, DELTA)?);
            let own = plan.as_ref().is_ok_and(|plan| entrant.stand_in(plan).is_none());
            results.push(Result3 { name: entrant.name.clone(), own, epsilon, values: vec![] });
            plans.push((entrant.clone(), plan));
        }
    }
    let turns: Vec<u64> = (0..seeds).collect();
    let range = if link == Link::Linear { (-10.0, 10.0) } else { (-12.0, 12.0) };
    let found = trial::all(&turns, threads, &|_| (), |turn| {
        let split = table.split(link, seed.wrapping_mul(1_000_003) + turn)?;
        let quiet = &mut |_| ControlFlow::Continue(());
        let (b, w) = plain.run(&split.private, range, Key::from_seed(0), 1, quiet)?;
        let best = losses(&split.test, link, b, &w).1;
        let mut values = vec![];
        for (i, (entrant, plan)) in plans.iter().enumerate() {
            let Ok(plan) = plan else { continue };
            let public = entrant.needs_public_rows().then_some(&split.public);
            let key = Key::from_seed((seed << 40) + (turn << 20) + i as u64);
            let Ok((b, w)) = plan.run_beside(&split.private, public, range, key, 1, quiet) else {
                continue;
            };
            let (loss, r2) = losses(&split.test, link, b, &w);
            values.push((i, [best - r2, loss, losses(&split.train, link, b, &w).0]));
        }
        Ok::<_, Failure>(values)
    });
    for turn in found {
        turn?.into_iter().for_each(|(i, value)| results[i].values.push(value));
    }
    Ok(results)
}

fn grid(name: &str, link: Link, results: &[Result3]) -> Grid {
    let mut columns = vec!["method".to_string()];
    let mut rows: Vec<Vec<Entry>> = vec![];
    for result in results {
        if rows.last().is_none_or(|row| row[0] != Entry::Word(result.name.clone())) {
            rows.push(vec![Entry::Word(result.name.clone())]);
        }
        let row = rows.last_mut().expect("pushed");
        let wanted: &[(usize, &str)] = if link == Link::Linear {
            &[(0, "loss of R2")]
        } else {
            &[(1, "test loss"), (2, "training loss")]
        };
        for (which, what) in wanted {
            let title = format!("{what}, eps {}", result.epsilon);
            if !columns.contains(&title) {
                columns.push(title);
            }
            row.push(match (result.median(*which), result.own) {
                (Some(value), false) => Entry::Marked(value, "†"),
                (value, _) => Entry::of(value),
            });
        }
    }
    let note = match link {
        Link::Linear => {
            "Median loss of test R2 against least squares on the same split. † another method was planned."
        }
        Link::Relu => {
            "Median of (1/2) the mean squared error, on test and training rows. † another method was planned."
        }
    };
    Grid { title: name.into(), note: note.into(), columns, rows }
}

fn claim(table: &str, link: Link, results: &[Result3], epsilons: &[f64]) -> Claim {
    let get = |name: &str, e: f64, which| {
        let found = results.iter().find(|r| r.name == name && r.epsilon == e && r.own);
        found.and_then(|r| r.median(which))
    };
    if link == Link::Relu {
        let check = |(worse, better): (&str, &str), e: f64| {
            let ratio = get(worse, e, 1).zip(get(better, e, 1)).map(|(a, b)| a / b);
            Check::above(format!("eps {e}, {worse} over {better}:"), ratio, 1.0)
        };
        let pairs = [("dp-sgd", "dp-glmtron"), ("dp-glmtron", "dp-mbglmtron")];
        let checks = epsilons.iter().flat_map(|e| pairs.map(|pair| check(pair, *e)));
        let says = format!("{table}: test loss falls from DP-SGD over DP-GLMtron to DP-MBGLMtron");
        return Claim::new(says, "DLW, real data", checks.collect());
    }
    let check = |e: &f64| {
        let rivals = ["adassp", "boosted-adassp", "tukey-em"];
        let best = rivals.iter().filter_map(|name| get(name, *e, 0)).reduce(f64::min);
        let behind = get("full-batch", *e, 0).zip(best).map(|(ours, best)| ours - best);
        Check::below(format!("eps {e}: loss beyond the best rival's"), behind, 0.005)
    };
    let says = format!(
        "{table}: the default loses no more R2 than AdaSSP, boosted AdaSSP and TukeyEM (within 0.005)"
    );
    Claim::new(says, "this library", epsilons.iter().map(check).collect())
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
        // Where the target is the mean, R² is none; half of its variance is the loss.
        let (loss, r2) = losses(&split.train, Link::Linear, 0.0, &[0.0, 0.0]);
        assert!((loss - 0.5).abs() < 1e-9 && r2.abs() < 1e-9, "{loss} {r2}");
        for bad in ["", "a;b\n1;2\n", "a;y\n1;x\n", "a;y\n1\n"] {
            assert!(!empty().add(bad, ';', "y", &[]), "{bad}");
        }
    }
}
