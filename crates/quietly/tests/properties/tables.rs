//! Synthetic tables by name: each is drawn anew for a seed. Public ranges are those of all rows, unless a table says otherwise.
use crate::statistics::{Random, variance};

/// Rows that are held out to measure errors on.
pub(crate) const HELD_OUT: usize = 4000;

/// A column.
#[derive(Clone)]
pub(crate) enum Cells {
    Numbers { values: Vec<f64>, range: (f64, f64) },
    Categories { values: Vec<usize>, names: Vec<String> },
}

/// A table whose first rows are learnt from; the target is the column `y`.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) columns: Vec<(String, Cells)>,
    pub(crate) train: usize,
}

impl Cells {
    fn numbers(values: Vec<f64>) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // A range has a length, of a constant column, too.
        let high = if high > low { high } else { low + 1.0 };
        Cells::Numbers { values, range: (low, high) }
    }

    pub(crate) fn classes(values: Vec<usize>, count: usize) -> Self {
        Cells::Categories { values, names: (0..count).map(|k| format!("class {k}")).collect() }
    }

    fn slice(&self, from: usize, to: usize) -> Self {
        match self.clone() {
            Cells::Numbers { values, range } => {
                Cells::Numbers { values: values[from..to].to_vec(), range }
            }
            Cells::Categories { values, names } => {
                Cells::Categories { values: values[from..to].to_vec(), names }
            }
        }
    }
}

impl Made {
    /// From columns of numbers.
    fn of(x: Vec<Vec<f64>>, target: Cells, train: usize) -> Self {
        let columns = x.into_iter().enumerate();
        let mut columns: Vec<(String, Cells)> =
            columns.map(|(j, values)| (format!("x{j}"), Cells::numbers(values))).collect();
        columns.push(("y".into(), target));
        Made { columns, train }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn rows(&self) -> usize {
        match &self.columns[0].1 {
            Cells::Numbers { values, .. } => values.len(),
            Cells::Categories { values, .. } => values.len(),
        }
    }

    pub(crate) fn slice(&self, from: usize, to: usize) -> Made {
        let columns = self.columns.iter().map(|(name, c)| (name.clone(), c.slice(from, to)));
        Made { columns: columns.collect(), train: to - from }
    }

    /// The same with so many rows to learn from, and the same held-out rows.
    pub(crate) fn first(&self, train: usize) -> Made {
        let keep = |i: usize| i < train || i >= self.train;
        fn kept<T: Copy>(values: &[T], keep: impl Fn(usize) -> bool) -> Vec<T> {
            values.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, x)| *x).collect()
        }
        let cells = |cells: &Cells| match cells {
            Cells::Numbers { values, range } => {
                Cells::Numbers { values: kept(values, keep), range: *range }
            }
            Cells::Categories { values, names } => {
                Cells::Categories { values: kept(values, keep), names: names.clone() }
            }
        };
        let columns = self.columns.iter().map(|(name, column)| (name.clone(), cells(column)));
        Made { columns: columns.collect(), train }
    }

    /// The same with other numbers and ranges in the columns that `which` names.
    #[must_use]
    pub(crate) fn with(
        mut self,
        which: impl Fn(&str) -> bool,
        number: impl Fn(f64) -> f64,
        range: impl Fn((f64, f64)) -> (f64, f64),
    ) -> Made {
        for (name, cells) in &mut self.columns {
            if let (true, Cells::Numbers { values, range: ends }) = (which(name), cells) {
                values.iter_mut().for_each(|x| *x = number(*x));
                *ends = range(*ends);
            }
        }
        self
    }

    /// The same with ranges so many times as long, about their middles.
    #[must_use]
    pub(crate) fn wider(self, times: f64) -> Made {
        let wide = |(low, high): (f64, f64)| {
            let (middle, half) = (0.5 * (low + high), 0.5 * times * (high - low));
            (middle - half, middle + half)
        };
        self.with(|_| true, |x| x, wide)
    }

    pub(crate) fn has_classes(&self) -> bool {
        matches!(self.columns.last(), Some((_, Cells::Categories { .. })))
    }

    pub(crate) fn numbers(&self, column: usize) -> &[f64] {
        match &self.columns[column].1 {
            Cells::Numbers { values, .. } => values,
            Cells::Categories { .. } => panic!("a column of categories"),
        }
    }
}

/// So many columns of so many rows and the held-out ones.
fn columns(
    random: &mut Random,
    (train, width): (usize, usize),
    draw: impl Fn(&mut Random) -> f64,
) -> Vec<Vec<f64>> {
    (0..width).map(|_| (0..train + HELD_OUT).map(|_| draw(random)).collect()).collect()
}

/// A score of each row with weights 1, -1/2, 1/3, ... of its columns, of variance one.
fn score(x: &[Vec<f64>]) -> Vec<f64> {
    let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
    let weight = |j: usize| sign(j) / (j + 1) as f64;
    let sum = |i: usize| x.iter().enumerate().map(|(j, column)| weight(j) * column[i]).sum();
    let sums: Vec<f64> = (0..x[0].len()).map(sum).collect();
    let sd = variance(&sums).sqrt();
    sums.iter().map(|s| s / sd).collect()
}

/// The table of this name with so many rows to learn from and columns, where the name leaves them open.
pub(crate) fn numbers(name: &str, (train, width): (usize, usize), seed: u64) -> Made {
    let random = &mut Random(seed ^ 0x7ab1e);
    let shape = (train, width);
    let normal = |random: &mut Random| columns(random, shape, Random::normal);
    // Half of the variance of the target is explained.
    let line = |random: &mut Random, x: Vec<Vec<f64>>| {
        let y = score(&x).iter().map(|u| u + random.normal()).collect();
        Made::of(x, Cells::numbers(y), train)
    };
    match name {
        "normal" => {
            let x = normal(random);
            line(random, x)
        }
        "one feature" => {
            let x = columns(random, (train, 1), Random::normal);
            line(random, x)
        }
        "t3 columns" => {
            let x = columns(random, shape, |r| r.student(3));
            line(random, x)
        }
        // The target saturates where columns have their tails.
        "lognormal columns" => {
            let x = columns(random, shape, |r| (1.5 * r.normal()).exp());
            let logarithms: Vec<Vec<f64>> =
                x.iter().map(|column| column.iter().map(|x| x.ln()).collect()).collect();
            let y = score(&logarithms).iter().map(|u| u + 0.5 * random.normal()).collect();
            Made::of(x, Cells::numbers(y), train)
        }
        "skewed columns, linear" => {
            let x = columns(random, shape, |r| r.normal().exp());
            line(random, x)
        }
        "collinear" => {
            let mut x = normal(random);
            let (first, second) = (x[0].clone(), x[1].clone());
            let near = first.iter().zip(&second).map(|(a, b)| a + b + 1e-3 * random.normal());
            x[2] = near.collect();
            line(random, x)
        }
        "constant column" => {
            let mut x = normal(random);
            let made = line(random, x.clone());
            x[width - 1] = vec![3.0; train + HELD_OUT];
            Made::of(x, made.columns.last().expect("a target").1.clone(), train)
        }
        // Money, years and shares: units and offsets of their own, and a target around 40,000.
        "units" => {
            let x = normal(random);
            let units = [(1e6, 3e6), (12.0, 1990.0), (1e-3, 0.4), (7.0, -300.0)];
            let target: Vec<f64> =
                score(&x).iter().map(|u| 40e3 + 5e3 * (u + random.normal())).collect();
            let unit = |j: usize| units[j % units.len()];
            let x = x.into_iter().enumerate();
            let x = x.map(|(j, c)| c.iter().map(|v| unit(j).1 + unit(j).0 * v).collect());
            Made::of(x.collect(), Cells::numbers(target), train)
        }
        "wide ranges" => numbers("normal", shape, seed).wider(5.0),
        "categories" => categories(random, train),
        "noise" => {
            let x = normal(random);
            let y = (0..train + HELD_OUT).map(|_| random.normal()).collect();
            Made::of(x, Cells::numbers(y), train)
        }
        _ => {
            let x = normal(random);
            let y = target(name, &score(&x), random);
            Made::of(x, Cells::numbers(y), train)
        }
    }
}

/// A target of this name for scores of variance one.
fn target(name: &str, scores: &[f64], random: &mut Random) -> Vec<f64> {
    let mut one = |u: f64| match name {
        "rectified" => u.max(0.0) + 0.5 * random.normal(),
        "counts" => random.poisson((0.5 * u).exp()),
        "lognormal target" => (0.5 * u + random.normal()).exp(),
        "t2 residuals" => u + random.student(2),
        "two values" => f64::from(u8::from(u + random.normal() > 0.0)),
        "rare value" => f64::from(u8::from(u + random.normal() > 2.3)),
        // Zero for three rows in four, whatever their score.
        "spike" => {
            if random.uniform() < 0.75 {
                0.0
            } else {
                1.0 + u + random.normal()
            }
        }
        // The score decides whether there is anything, and how much.
        "hurdle" => {
            if u + 0.5 * random.normal() < 0.75 {
                0.0
            } else {
                (0.5 * u + 0.3 * random.normal()).exp()
            }
        }
        name => match name.strip_suffix(" % equal").map(|share| share.parse::<f64>()) {
            Some(Ok(share)) => {
                if random.uniform() < 0.01 * share {
                    0.3
                } else {
                    u + random.normal()
                }
            }
            _ => panic!("no table is called {name}"),
        },
    };
    scores.iter().map(|u| one(*u)).collect()
}

/// Three numbers and three columns of categories, one of them with a rare value.
fn categories(random: &mut Random, train: usize) -> Made {
    let x = columns(random, (train, 3), Random::normal);
    let kinds: [&[f64]; 3] = [&[0.5, 0.5], &[0.6, 0.3, 0.09, 0.01], &[0.2; 5]];
    let drawn: Vec<Vec<usize>> = kinds
        .iter()
        .map(|weights| (0..train + HELD_OUT).map(|_| random.one_of(weights)).collect())
        .collect();
    let base = score(&x);
    let y = (0..train + HELD_OUT).map(|i| {
        let moved: usize = drawn.iter().map(|column| column[i]).sum();
        base[i] + 0.4 * moved as f64 + random.normal()
    });
    let mut made = Made::of(x.clone(), Cells::numbers(y.collect()), train);
    for (j, (values, weights)) in drawn.into_iter().zip(kinds).enumerate() {
        let names = (0..weights.len()).map(|k| format!("kind {k}")).collect();
        made.columns.insert(j, (format!("k{j}"), Cells::Categories { values, names }));
    }
    made
}

/// The table of this name whose target has classes.
pub(crate) fn classes(name: &str, (train, width): (usize, usize), seed: u64) -> Made {
    let random = &mut Random(seed ^ 0xc1a55);
    let heavy = |r: &mut Random| r.student(3);
    let width = if name == "one feature, classes" { 1 } else { width };
    let x = match name {
        "heavy columns, classes" => columns(random, (train, width), heavy),
        _ => columns(random, (train, width), Random::normal),
    };
    let scores = score(&x);
    let logistic =
        |random: &mut Random, u: f64| usize::from(random.uniform() < 1.0 / (1.0 + (-u).exp()));
    let count = match name {
        "four classes" => 4,
        _ => 2,
    };
    let values = (0..train + HELD_OUT).map(|i| match name {
        "two classes" | "one feature, classes" | "heavy columns, classes" => {
            logistic(random, 2.0 * scores[i])
        }
        "rare class" => logistic(random, 1.5 * scores[i] - 4.2),
        "separated" => logistic(random, 12.0 * scores[i]),
        "coin" => logistic(random, 0.0),
        "four classes" => {
            let of = |k: usize| (1.5 * x[k % width][i]).exp() * [1.0, 0.5, 1.0, 0.3][k];
            random.one_of(&[0, 1, 2, 3].map(of))
        }
        _ => panic!("no table is called {name}"),
    });
    let values = values.collect();
    Made::of(x, Cells::classes(values, count), train)
}

/// Columns that are odd, in the place of the last column of a table, and the same table with an ordinary column there.
pub(crate) fn odd_column(name: &str, train: usize, seed: u64) -> (Made, Made) {
    let ordinary = numbers("normal", (train, 6), seed);
    let random = &mut Random(seed ^ 0x0dd);
    let rows = ordinary.rows();
    let column = |j: usize| ordinary.numbers(j);
    let values: Vec<f64> = match name {
        "constant" => vec![3.0; rows],
        "one nonzero row" => (0..rows).map(|i| f64::from(u8::from(i == 17))).collect(),
        "duplicate" => column(0).to_vec(),
        "sum of others" => (0..rows).map(|i| (0..5).map(|j| column(j)[i]).sum()).collect(),
        "variance 1e-9" => (0..rows).map(|_| 1e-4 * 1e-9_f64.sqrt() * random.normal()).collect(),
        "99 % one value" => {
            (0..rows).map(|_| if random.uniform() < 0.99 { 0.0 } else { random.normal() }).collect()
        }
        _ => panic!("no column is called {name}"),
    };
    // A range that is known from elsewhere, as that of a column with nothing in it must be.
    let range = match name {
        "constant" => (0.0, 4.0),
        "variance 1e-9" => (-1.0, 1.0),
        _ => match Cells::numbers(values.clone()) {
            Cells::Numbers { range, .. } => range,
            Cells::Categories { .. } => unreachable!("numbers"),
        },
    };
    let with = |cells: Cells| {
        let mut made = ordinary.clone();
        let target = made.columns.len() - 1;
        made.columns.insert(target, ("odd".into(), cells));
        made
    };
    let plain = (0..rows).map(|_| random.normal()).collect();
    (with(Cells::Numbers { values, range }), with(Cells::numbers(plain)))
}
