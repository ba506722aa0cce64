//! Tables as a user has them, fitted as a user fits them: a schema, a plan, a model.
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use quietly::{
    Budget, Charge, Convex, Encoding, Family, FitInput, FitOptions, Key, Link, Loss, Method, Model,
    ModelSpec, Neighbours, Plan, Private, Regression, Rule, Schema, Source, Table, Value,
};

use crate::{
    statistics::{mean, variance},
    tables::{Cells, Made},
};

pub(crate) const DELTA: f64 = 1e-5;

/// A default: what a user asks for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    pub(crate) method: Method,
}

const fn way(name: &'static str, family: Family, method: Method) -> Way {
    Way { name, family, method }
}

pub(crate) const LINEAR: Way = way("linear", Family::Linear, Method::Auto);
pub(crate) const RELU: Way = way("relu", Family::Relu, Method::Auto);
pub(crate) const ONE_PASS: Way = way("one pass", Family::Linear, Method::OnePass);
pub(crate) const LOGISTIC: Way = way("logistic", Family::Logistic, Method::Auto);

/// `auto`, where there is such a family.
pub(crate) fn auto() -> Option<Way> {
    Family::named("auto").map(|family| way("auto", family, Method::Auto))
}

/// A table with its schema: rows to learn from, and others.
pub(crate) struct Prepared {
    source: Source,
    encoding: Encoding,
    rows: u64,
    train: Table,
    test: Table,
}

/// The budget for ε, add-remove.
pub(crate) fn budget(epsilon: f64) -> Budget {
    Budget::new(epsilon, DELTA).unwrap().under(Neighbours::AddRemove)
}

/// What a budget is worth for a row.
pub(crate) fn mu(epsilon: f64) -> f64 {
    quietly_accounting::gaussian_mu(epsilon, DELTA).unwrap()
}

impl Prepared {
    pub(crate) fn new(made: &Made) -> Self {
        let encoding = encoding(made);
        let (train, test) = (made.slice(0, made.train), made.slice(made.train, made.rows()));
        let read = |made: &Made| source(made).read_public(&encoding, 1).unwrap();
        let (train_rows, test_rows) = (read(&train), read(&test));
        let (source, rows) = (source(&train), made.train as u64);
        Prepared { source, encoding, rows, train: train_rows, test: test_rows }
    }

    pub(crate) fn plan(&self, way: Way, budget: Budget) -> Plan {
        let mut spec = ModelSpec::new(way.family);
        if way.method != Method::Auto {
            spec.method = Some(way.method.name().into());
        }
        spec.plan(&self.encoding, self.rows, budget).unwrap()
    }

    pub(crate) fn fit(&self, plan: &Plan, seed: u64) -> Model {
        let charge = Charge::without_ledger(Key::from_seed(seed));
        let options = FitOptions::new(charge).threads(1);
        let fit = plan.fit(FitInput::source(&self.source, &self.encoding), options);
        fit.and_then(|fit| fit.model("row")).unwrap()
    }

    /// The error of a model on the other rows: a mean square, or log loss.
    pub(crate) fn error(&self, model: &Model) -> f64 {
        match model.link.is_classifier() {
            true => self.log_loss(|row| model.classify(row).probabilities),
            false => self.squared_error(|row| model.predict(row)),
        }
    }

    pub(crate) fn squared_error(&self, predict: impl Fn(&[f64]) -> f64) -> f64 {
        let errors = rows(&self.test).map(|(row, y)| (predict(row) - y).powi(2));
        errors.sum::<f64>() / self.test.rows() as f64
    }

    pub(crate) fn log_loss(&self, probabilities: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
        let classes = self.classes();
        let losses = rows(&self.test).map(|(row, y)| {
            // Two classes are -1 and 1, more of them 0, 1, ...
            let class = if classes == 2 { usize::from(y > 0.0) } else { y as usize };
            -probabilities(row)[class].max(1e-300).ln()
        });
        losses.sum::<f64>() / self.test.rows() as f64
    }

    /// R² on the other rows.
    pub(crate) fn r2(&self, error: f64) -> f64 {
        1.0 - error / variance(self.test.target())
    }

    /// The error of the exact mean of the rows to learn from, or of their exact class shares.
    pub(crate) fn error_of_constant(&self) -> f64 {
        if self.classes() == 0 {
            let constant = mean(self.train.target());
            return self.squared_error(|_| constant);
        }
        let shares = self.shares();
        self.log_loss(|_| shares.clone())
    }

    /// The share of each class among the rows to learn from.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let classes = self.classes();
        let mut counts = vec![0.0; classes];
        for y in self.train.target() {
            counts[if classes == 2 { usize::from(*y > 0.0) } else { *y as usize }] += 1.0;
        }
        counts.iter().map(|count| count / self.rows as f64).collect()
    }

    pub(crate) fn classes(&self) -> usize {
        self.encoding.target().map_or(0, |target| target.class_count())
    }

    pub(crate) fn width(&self) -> usize {
        self.encoding.width()
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// The standard deviation of the target, over half its range: of the rows that R² is measured on.
    pub(crate) fn spread(&self) -> f64 {
        let target = self.encoding.target().unwrap();
        variance(self.test.target()).sqrt() / (0.5 * (target.hi - target.lo))
    }

    /// The error of the plain model: the map, the features and the radius that this one has, without noise and clips.
    pub(crate) fn plain(&self, model: &Model) -> f64 {
        let train: Vec<f64> = rows(&self.train).flat_map(|(row, _)| mapped(model, row)).collect();
        let width = train.len() / self.train.rows();
        let table = Private::new(Table::new(width, train, self.train.target().to_vec()));
        let endless = Budget::new(f64::INFINITY, DELTA).unwrap();
        let plan = match model.link {
            Link::Linear | Link::Relu => {
                Regression::new(model.link).plan(self.rows, width, endless)
            }
            Link::Softmax => Convex::new(Loss::Softmax { classes: self.classes() })
                .plan(self.rows, width, endless),
            _ => Convex::new(Loss::Logistic).plan(self.rows, width, endless),
        };
        let (plan, target) = (plan.unwrap(), self.encoding.target().unwrap());
        let options = FitOptions::new(Charge::without_ledger(Key::from_seed(0))).threads(1);
        let fit = plan.fit(FitInput::table(&table, (target.lo, target.hi)), options).unwrap();
        let weights = fit.weights().unwrap();
        let scores = |row: &[f64]| weights.scores(&mapped(model, row));
        match model.link {
            Link::Softmax => self.log_loss(|row| softmax(&scores(row))),
            Link::Logistic => self.log_loss(|row| softmax(&[0.0, scores(row)[0]])),
            link => {
                self.squared_error(|row| link.apply(scores(row)[0]).clamp(target.lo, target.hi))
            }
        }
    }
}

/// The row as the weights of a model see it, within [-1, 1].
fn mapped(model: &Model, row: &[f64]) -> Vec<f64> {
    match (&model.columns, &model.rows) {
        (Some(map), _) => map.winsorised(row, &model.tails),
        (None, Some(map)) => map.apply(row).iter().map(|z| z / map.radius).collect(),
        _ => row.to_vec(),
    }
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let parts: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
    let total: f64 = parts.iter().sum();
    parts.iter().map(|part| part / total).collect()
}

fn rows(table: &Table) -> impl Iterator<Item = (&[f64], f64)> {
    table.features().chunks_exact(table.width()).zip(table.target().iter().copied())
}

fn encoding(made: &Made) -> Encoding {
    let rule = |cells: &Cells| match cells {
        Cells::Numbers { range: (lo, hi), .. } => Rule::Range { lo: *lo, hi: *hi, missing: None },
        Cells::Categories { names, .. } => Rule::Values {
            values: names.iter().map(|name| Value::Text(name.clone())).collect(),
            other: false,
        },
    };
    let columns = made.columns.iter().map(|(name, cells)| (name.clone(), rule(cells))).collect();
    let schema = Schema { rows: made.train as u64, columns, ..Schema::default() };
    Encoding::new(&schema, &made.names(), None, Some("y")).unwrap()
}

fn source(made: &Made) -> Source {
    let column = |cells: &Cells| -> ArrayRef {
        match cells {
            Cells::Numbers { values, .. } => Arc::new(Float64Array::from(values.clone())),
            Cells::Categories { values, names } => {
                Arc::new(values.iter().map(|k| Some(names[*k].as_str())).collect::<StringArray>())
            }
        }
    };
    let columns = made.columns.iter().map(|(name, cells)| (name, column(cells)));
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Source::in_memory(made.names(), vec![batch]).unwrap()
}
