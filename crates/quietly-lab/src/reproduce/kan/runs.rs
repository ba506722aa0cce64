//! Runs: a way to learn a task at a budget, once for every seed.

use quietly::{
    AnyAlgorithm, Budget, Charge, Correlation, FitInput, FitOptions, Key, Plan,
    kan::{Kan, NetworkNoise, NetworkSampler},
};
use quietly_cli::{error::Failure, terminal::Progress, trial};

use super::task::{Split, Task};
use crate::reproduce::{
    Draw,
    claim::{Check, Claim},
    report::Entry,
};

pub(super) const DELTA: f64 = 1e-5;

/// How it is learnt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    /// A network, planned by default.
    Default,
    /// A network on bins with this λ: so many batches, so many passes.
    Bins { lambda: f64, batches: u64, passes: u64 },
    /// A network on Poisson samples with independent noise.
    Poisson { batches: u64, passes: u64 },
    /// Logistic regression, planned by default.
    Logistic,
    /// The same on splines of every number.
    Twin,
}

impl Way {
    pub(super) fn name(self) -> String {
        match self {
            Way::Default => "network, default".into(),
            Way::Bins { lambda, .. } => format!("bins, lambda {lambda}"),
            Way::Poisson { .. } => "Poisson, lambda 0".into(),
            Way::Logistic => "logistic".into(),
            Way::Twin => "logistic on splines".into(),
        }
    }

    /// The plan for a task.
    pub(super) fn plan(
        self,
        task: &Task,
        rows: usize,
        epsilon: f64,
        seed: u64,
    ) -> Result<Plan, Failure> {
        let (rows, budget) = (rows as u64, Budget::new(epsilon, DELTA)?);
        let kan = Kan::new(task.shape()).seed(seed);
        let kan = match self {
            Way::Default => kan,
            Way::Bins { lambda, batches, passes } => {
                let correlation = Correlation::lambda(lambda)?;
                let noise = if lambda == 0.0 {
                    NetworkNoise::Independent
                } else {
                    NetworkNoise::Mixed { correlation }
                };
                kan.sampler(NetworkSampler::BallsAndBins)
                    .batches(batches)
                    .passes(passes)
                    .noise(noise)
                    .momentum(0.0)
            }
            Way::Poisson { batches, passes } => {
                let kan = kan.sampler(NetworkSampler::Poisson).batches(batches).passes(passes);
                kan.noise(NetworkNoise::Independent).momentum(0.0)
            }
            Way::Logistic => return Ok(task.convex().plan(rows, task.width, budget)?),
            Way::Twin => {
                let splines = task.splines();
                let plan = task.convex().plan(rows, splines.width(), budget)?;
                return Ok(plan.expanding(splines)?);
            }
        };
        Ok(Plan::kan(&kan, rows, budget)?)
    }
}

/// A way, a task, its rows and an ε.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) task: String,
    pub(super) rows: usize,
    pub(super) way: Way,
    pub(super) epsilon: f64,
    pub(super) seeds: u64,
}

/// What all cells came to.
pub(super) struct Outcomes(Vec<Outcome>);

struct Outcome {
    cell: Cell,
    /// The planned ε over the budget.
    spent: f64,
    accuracies: Vec<f64>,
}

impl Outcomes {
    /// Plans every cell once and runs it for every seed, on all threads.
    pub(super) fn measure(
        cells: Vec<Cell>,
        tasks: &[Task],
        draw: Draw,
        progress: &Progress,
    ) -> Result<Outcomes, Failure> {
        let mut distinct: Vec<Cell> = vec![];
        for cell in cells {
            if !distinct.contains(&cell) {
                distinct.push(cell);
            }
        }
        let task = |cell: &Cell| tasks.iter().find(|t| t.name == cell.task).expect("a task");
        let of = distinct.len();
        let say = |done: usize| progress.say(&format!("planning: {done} of {of} settings"));
        let planned = trial::all(&distinct, draw.threads, &say, |cell| {
            cell.way.plan(task(cell), cell.rows, cell.epsilon, 1)
        });
        let planned: Vec<Plan> = planned.into_iter().collect::<Result<_, _>>()?;
        let jobs: Vec<(usize, u64)> = distinct
            .iter()
            .enumerate()
            .flat_map(|(at, cell)| (0..cell.seeds).map(move |k| (at, 1000 * draw.seed + k)))
            .collect();
        let of = jobs.len();
        let say = |done: usize| progress.say(&format!("training: {done} of {of} models"));
        let found = trial::all(&jobs, draw.threads, &say, |(at, seed)| {
            let (cell, plan) = (&distinct[*at], &planned[*at]);
            let split = task(cell).split(cell.rows, *seed)?;
            // Noise of its own for every cell.
            accuracy(plan, &split, task(cell), Key::from_seed((seed << 16) + *at as u64))
        });
        let mut all: Vec<Outcome> = distinct
            .into_iter()
            .zip(&planned)
            .map(|(cell, plan)| {
                let spent =
                    if cell.epsilon.is_finite() { plan.epsilon() / cell.epsilon } else { 0.0 };
                Outcome { cell, spent, accuracies: vec![] }
            })
            .collect();
        for ((at, _), accuracy) in jobs.into_iter().zip(found) {
            all[at].accuracies.push(accuracy?);
        }
        Ok(Outcomes(all))
    }

    /// The mean accuracy over seeds and its standard error.
    pub(super) fn of(&self, cell: &Cell) -> Option<(f64, f64)> {
        let values = &self.0.iter().find(|o| o.cell == *cell)?.accuracies;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let spread = values.iter().map(|a| (a - mean).powi(2)).sum::<f64>();
        Some((mean, if n > 1.0 { (spread / (n - 1.0) / n).sqrt() } else { 0.0 }))
    }

    pub(super) fn mean(&self, cell: &Cell) -> Option<f64> {
        Some(self.of(cell)?.0)
    }

    /// The mean and its standard error, as a table shows them.
    pub(super) fn entry(&self, cell: &Cell) -> Entry {
        self.of(cell)
            .map_or(Entry::Nothing, |(mean, error)| Entry::Word(format!("{mean:.3} +- {error:.3}")))
    }

    /// No plan costs more than its budget.
    pub(super) fn certified(&self) -> Option<Claim> {
        let most = self.0.iter().map(|o| o.spent).reduce(f64::max)?;
        let check = Check::below("certified epsilon over the budget, at most", Some(most), 1.0);
        Some(Claim::new(
            "every plan stays within its budget",
            "this library's certificates",
            vec![check],
        ))
    }
}

/// The share of test rows whose class is found.
fn accuracy(plan: &Plan, split: &Split, task: &Task, key: Key) -> Result<f64, Failure> {
    let range = (0.0, (task.classes - 1) as f64);
    let options = FitOptions::new(Charge::without_ledger(key)).threads(1);
    let fit = plan.fit(FitInput::table(&split.train, range), options)?;
    let outputs = if task.classes == 2 { 1 } else { task.classes };
    let scores: Vec<f64> = if matches!(plan.algorithm(), AnyAlgorithm::Kan(_)) {
        fit.network()?.scores_of_rows(&split.features, 1)
    } else {
        let learnt = fit.weights()?;
        split.features.chunks_exact(task.width).flat_map(|row| learnt.scores(row)).collect()
    };
    let class = |scores: &[f64]| match scores {
        [score] => usize::from(*score > 0.0),
        all => (0..all.len()).fold(0, |best, k| if all[k] > all[best] { k } else { best }),
    };
    let right = scores.chunks_exact(outputs).zip(&split.classes);
    let right = right.filter(|(scores, y)| class(scores) as f64 == **y).count();
    Ok(right as f64 / split.classes.len().max(1) as f64)
}
