//! The tasks: a synthetic one, and two small public tables.
use std::{ops::ControlFlow, path::Path};

use quietly::{
    Convex, Encoding, Expansion, Key, Kind, Loss, Private, ReadOptions, Schema, Source, Table,
    kan::{Input, NetworkLoss, NetworkShape},
};
use quietly_cli::error::Failure;
use quietly_noise::Bits;

use crate::reproduce::{Draw, Size};

/// Files in --data, without .csv and .schema.toml. The target is the column `label`.
const KNOWN: [&str; 2] = ["breast-cancer", "digits"];
/// Columns of the synthetic task.
pub(super) const WIDTH: usize = 10;
/// The same with more and with fewer columns that say nothing.
pub(super) const WIDTHS: [usize; 4] = [5, WIDTH, 20, 40];

/// What is learnt.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) width: usize,
    pub(super) classes: usize,
    inputs: Vec<Input>,
    /// All rows of a real table; none of the synthetic one, whose rows are drawn.
    rows: Option<(Vec<f64>, Vec<f64>)>,
}

/// Rows to learn from and rows to test on.
pub(super) struct Split {
    pub(super) train: Private<Table>,
    pub(super) features: Vec<f64>,
    pub(super) classes: Vec<f64>,
}

impl Task {
    /// The synthetic task and the real ones that are available; and which are not.
    pub(super) fn all(
        data: Option<&Path>,
        draw: Draw,
    ) -> Result<(Vec<Task>, Vec<String>), Failure> {
        let (mut tasks, mut missing) = (WIDTHS.map(Task::product).to_vec(), vec![]);
        for name in KNOWN {
            match data {
                _ if draw.size == Size::Tiny => {}
                None => missing.push(format!("{name} was left out: it is taken from --data DIR.")),
                Some(data) => {
                    let files = [".csv", ".schema.toml"].map(|end| format!("{name}{end}"));
                    match files.iter().find(|file| !data.join(file).is_file()) {
                        Some(lost) => missing.push(format!(
                            "{name} was left out: there is no {lost} in --data; bench/small_tables.py makes both files."
                        )),
                        None => tasks.push(Task::read(name, &files.map(|f| data.join(f)), draw)?),
                    }
                }
            }
        }
        Ok((tasks, missing))
    }

    fn product(width: usize) -> Task {
        let (name, inputs) = (product_of(width), vec![Input::Spline; width]);
        Task { name, width, classes: 2, inputs, rows: None }
    }

    /// Whether it is for the contest: real, or the synthetic one as it is.
    pub(super) fn competes(&self) -> bool {
        self.rows.is_some() || self.width == WIDTH
    }

    fn read(
        name: &str,
        [csv, schema]: &[std::path::PathBuf; 2],
        draw: Draw,
    ) -> Result<Task, Failure> {
        let bad = |e: quietly::DataError| Failure::from(quietly::Error::from(e));
        let schema = Schema::read(schema).map_err(bad)?;
        let source = Source::open([csv], &ReadOptions::default()).map_err(bad)?;
        let encoding =
            Encoding::new(&schema, source.columns(), None, Some("label")).map_err(bad)?;
        let classes = encoding.target().map_or(0, |target| target.class_count());
        if classes < 2 {
            let why = "its label has no values in the schema".into();
            return Err(Failure::File { path: csv.display().to_string(), why });
        }
        let (mut features, mut target) = (vec![], vec![]);
        source
            .blocks(&encoding, draw.threads, &mut |block| {
                features.extend_from_slice(&block.features);
                target.extend_from_slice(&block.target);
                ControlFlow::Continue(())
            })
            .map_err(bad)?;
        let input = |kind: &Kind| match kind {
            Kind::Number { .. } => Input::Spline,
            _ => Input::Plain,
        };
        let inputs = encoding.features().iter().map(|f| input(&f.kind)).collect();
        let (width, rows) = (encoding.width(), Some((features, target)));
        Ok(Task { name: name.into(), width, classes, inputs, rows })
    }

    /// The network's shape, by default.
    pub(super) fn shape(&self) -> NetworkShape {
        let loss = match self.classes {
            2 => NetworkLoss::Logistic,
            classes => NetworkLoss::Softmax { classes },
        };
        NetworkShape::new(self.inputs.clone(), loss)
    }

    /// A model of weighted sums.
    pub(super) fn convex(&self) -> Convex {
        Convex::new(match self.classes {
            2 => Loss::Logistic,
            classes => Loss::Softmax { classes },
        })
    }

    /// The splines of the convex twin, as many as by default.
    pub(super) fn splines(&self) -> Expansion {
        Expansion::Splines { inputs: self.inputs.clone(), functions: 6, degree: 3 }
    }

    /// How many rows there are to learn from, where that is not for us to say.
    pub(super) fn rows(&self) -> Option<usize> {
        self.rows.as_ref().map(|(_, target)| target.len() * 3 / 4)
    }

    /// `rows` rows and others to test on.
    pub(super) fn split(&self, rows: usize, seed: u64) -> Result<Split, Failure> {
        let mut bits = Key::from_seed(seed).stream("rows of a task").bits(0)?;
        let Some((features, target)) = &self.rows else {
            let width = self.width;
            let (x, y) = product(rows, width, &mut bits)?;
            let test = product(4000, width, &mut bits)?;
            let train = Private::new(Table::new(width, x, y));
            return Ok(Split { train, features: test.0, classes: test.1 });
        };
        let mut order: Vec<usize> = (0..target.len()).collect();
        for i in 0..order.len() {
            let other = i + bits.below((order.len() - i) as u64)? as usize;
            order.swap(i, other);
        }
        let part = |which: &[usize]| {
            let row = |i: &usize| features[i * self.width..(i + 1) * self.width].to_vec();
            let x: Vec<f64> = which.iter().flat_map(row).collect();
            (x, which.iter().map(|i| target[*i]).collect::<Vec<f64>>())
        };
        let ((x, y), test) = (part(&order[..rows]), part(&order[rows..]));
        let train = Private::new(Table::new(self.width, x, y));
        Ok(Split { train, features: test.0, classes: test.1 })
    }
}

/// The name of the synthetic task with so many columns.
pub(super) fn product_of(width: usize) -> String {
    if width == WIDTH { "product".into() } else { format!("product of {width} columns") }
}

/// Rows of the synthetic task.
fn product(rows: usize, width: usize, bits: &mut Bits) -> Result<(Vec<f64>, Vec<f64>), Failure> {
    let (mut features, mut classes) = (Vec::with_capacity(rows * width), vec![]);
    let mut x = vec![0.0; width];
    while classes.len() < rows {
        for x in &mut x {
            *x = (bits.word()? >> 11) as f64 * 2f64.powi(-52) - 1.0;
        }
        let score = 3.0 * x[0] * x[1] + 0.7 * (std::f64::consts::PI * x[2]).sin();
        if score.abs() > 0.15 {
            features.extend_from_slice(&x);
            classes.push(f64::from(u8::from(score > 0.0)));
        }
    }
    Ok((features, classes))
}
