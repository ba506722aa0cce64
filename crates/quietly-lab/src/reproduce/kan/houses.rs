//! Houses in California: a real table where a network beats models of weighted sums, its convex twin among them.
use std::{ops::ControlFlow, path::Path};

use quietly::{
    AnyAlgorithm, Budget, Charge, Encoding, Expansion, FitInput, FitOptions, Key, Link, Plan,
    Private, ReadOptions, Regression, Schema, Source, Table,
    kan::{Input, Kan, NetworkLoss, NetworkShape},
};
use quietly_cli::{error::Failure, terminal::Progress, trial};

use super::runs::DELTA;
use crate::reproduce::{
    Draw, Size,
    claim::{Check, Claim},
    report::{Entry, Grid},
};

const FILE: &str = "california-housing/california_housing.csv";
const TARGET: &str = "MedHouseVal";
/// Round ranges; what lies beyond is held to them.
const SCHEMA: &str = "rows = 16512\n[columns]\nMedInc = { range = [0.5, 15] }\nHouseAge = { range = [1, 52] }\nAveRooms = { range = [1, 10] }\n\
    AveBedrms = { range = [0.5, 2] }\nPopulation = { range = [0, 5000] }\nAveOccup = { range = [1, 6] }\nLatitude = { range = [32.5, 42] }\n\
    Longitude = { range = [-124.5, -114] }\nMedHouseVal = { range = [0, 5] }\n";
const RANGE: (f64, f64) = (0.0, 5.0);
const WAYS: [&str; 3] = ["network", "linear on splines", "linear"];
const EPSILONS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, f64::INFINITY];

/// The table, and what was found.
pub(super) struct Houses {
    encoding: Encoding,
    features: Vec<f64>,
    target: Vec<f64>,
    seeds: u64,
    /// R² of every seed, way after way for every ε.
    found: Vec<Vec<f64>>,
}

impl Houses {
    /// Reads the table, if it is there, and fits it.
    pub(super) fn measure(
        data: Option<&Path>,
        draw: Draw,
        progress: &Progress,
    ) -> Result<Result<Houses, String>, Failure> {
        let seeds = match draw.size {
            Size::Full => 10,
            Size::Quick => 2,
            Size::Tiny => return Ok(Err("houses were left out of this test.".into())),
        };
        let Some(file) = data.map(|data| data.join(FILE)).filter(|file| file.is_file()) else {
            return Ok(Err(format!("houses were left out: {FILE} is taken from --data DIR.")));
        };
        let bad = |e: quietly::DataError| Failure::from(quietly::Error::from(e));
        let schema = Schema::parse(SCHEMA).map_err(bad)?;
        let source = Source::open([&file], &ReadOptions::default()).map_err(bad)?;
        let encoding = Encoding::new(&schema, source.columns(), None, Some(TARGET)).map_err(bad)?;
        let (mut features, mut target) = (vec![], vec![]);
        source
            .blocks(&encoding, draw.threads, &mut |block| {
                features.extend_from_slice(&block.features);
                target.extend_from_slice(&block.target);
                ControlFlow::Continue(())
            })
            .map_err(bad)?;
        let mut houses = Houses { encoding, features, target, seeds, found: vec![] };
        let cells: Vec<(usize, f64)> =
            EPSILONS.iter().flat_map(|e| (0..WAYS.len()).map(move |way| (way, *e))).collect();
        let jobs: Vec<(usize, u64)> = (0..cells.len())
            .flat_map(|cell| (0..seeds).map(move |seed| (cell, 1000 * draw.seed + seed)))
            .collect();
        let say = |done: usize| progress.say(&format!("houses: {done} of {} models", jobs.len()));
        let found = trial::all(&jobs, draw.threads, &say, |(cell, seed)| {
            let (way, epsilon) = cells[*cell];
            houses.fit(way, epsilon, *seed, *cell)
        });
        let found: Vec<f64> = found.into_iter().collect::<Result<_, _>>()?;
        houses.found = found.chunks_exact(seeds as usize).map(<[f64]>::to_vec).collect();
        Ok(Ok(houses))
    }

    /// Rows to learn from.
    fn rows(&self) -> usize {
        self.target.len() * 4 / 5
    }

    fn plan(&self, way: usize, epsilon: f64) -> Result<Plan, Failure> {
        let (rows, width) = (self.rows() as u64, self.encoding.width());
        let budget = Budget::new(epsilon, DELTA)?;
        let linear = Regression::new(Link::Linear);
        Ok(match way {
            0 => {
                let loss = NetworkLoss::Huber { width: 0.25 };
                let kan = Kan::new(NetworkShape::new(vec![Input::Spline; width], loss));
                Plan::kan(&kan, rows, budget)?
            }
            1 => {
                let splines = Expansion::splines(&self.encoding, 6);
                linear.plan(rows, splines.width(), budget)?.expanding(splines)?
            }
            _ => linear.plan(rows, width, budget)?,
        })
    }

    /// R² on the rows that were not learnt from.
    fn fit(&self, way: usize, epsilon: f64, seed: u64, cell: usize) -> Result<f64, Failure> {
        let (plan, width) = (self.plan(way, epsilon)?, self.encoding.width());
        let mut order: Vec<usize> = (0..self.target.len()).collect();
        let mut bits = Key::from_seed(seed).stream("rows of a task").bits(0)?;
        for i in 0..order.len() {
            let other = i + bits.below((order.len() - i) as u64)? as usize;
            order.swap(i, other);
        }
        let part = |which: &[usize]| {
            let row = |i: &usize| self.features[i * width..(i + 1) * width].to_vec();
            let x: Vec<f64> = which.iter().flat_map(row).collect();
            (x, which.iter().map(|i| self.target[*i]).collect::<Vec<f64>>())
        };
        let (train, test) = order.split_at(self.rows());
        let ((x, y), (test, truth)) = (part(train), part(test));
        let train = Private::new(Table::new(width, x, y));
        let key = Key::from_seed((seed << 16) + cell as u64);
        let options = FitOptions::new(Charge::without_ledger(key)).threads(1);
        let fit = plan.fit(FitInput::table(&train, RANGE), options)?;
        let scores: Vec<f64> = if matches!(plan.algorithm(), AnyAlgorithm::Kan(_)) {
            let scores = fit.network()?.scores_of_rows(&test, 1);
            // A network's scores are in units of half the range.
            let (low, high) = RANGE;
            scores.iter().map(|s| 0.5 * (low + high) + 0.5 * (high - low) * s).collect()
        } else {
            let fit = fit.linear()?;
            let rows = plan.expansion().map_or(Ok(test.clone()), |by| by.rows(&test))?;
            rows.chunks_exact(plan.width()).map(|row| fit.predict(row)).collect()
        };
        let mean = truth.iter().sum::<f64>() / truth.len() as f64;
        let total: f64 = truth.iter().map(|y| (y - mean).powi(2)).sum();
        let missed: f64 = scores.iter().zip(&truth).map(|(s, y)| (s - y).powi(2)).sum();
        Ok(1.0 - missed / total)
    }

    /// The mean over seeds and its standard error.
    fn of(&self, at: usize, way: usize) -> (f64, f64) {
        let values = &self.found[at * WAYS.len() + way];
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let spread = values.iter().map(|a| (a - mean).powi(2)).sum::<f64>();
        (mean, (spread / (n - 1.0).max(1.0) / n).sqrt())
    }

    pub(super) fn grid(&self) -> Grid {
        let mut columns = vec!["epsilon".to_string()];
        columns.extend(WAYS.map(String::from));
        let row = |(at, epsilon): (usize, &f64)| {
            let entry = |way: usize| {
                let (mean, error) = self.of(at, way);
                Entry::Word(format!("{mean:.3} +- {error:.3}"))
            };
            let mut row = vec![Entry::Word(format!("{epsilon}"))];
            row.extend((0..WAYS.len()).map(entry));
            row
        };
        Grid {
            title: "Houses in California: R2".into(),
            note: format!(
                "On the fifth of the rows that was not learnt from, mean and standard error over {} seeds; {} rows to learn from.",
                self.seeds,
                self.rows()
            ),
            columns,
            rows: EPSILONS.iter().enumerate().map(row).collect(),
        }
    }

    pub(super) fn claim(&self) -> Claim {
        let ahead = |(at, epsilon): (usize, &f64)| {
            let ((network, a), (twin, b)) = (self.of(at, 0), self.of(at, 1));
            let error = a.hypot(b);
            let what =
                format!("eps {epsilon}: R2 of the network over that of its twin, less 3 errors");
            Check::above(what, Some(network - twin - 3.0 * error), 0.0)
        };
        let checks =
            EPSILONS.iter().enumerate().filter(|(_, e)| (4.0..=8.0).contains(*e)).map(ahead);
        let says = "on a real table, where a house stands counts by both coordinates at once: a network beats sums of splines at eps 4 and 8";
        Claim::new(says, "this library's defaults", checks.collect())
    }
}
