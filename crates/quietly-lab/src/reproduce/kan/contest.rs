//! Networks beside each other, and beside logistic regression.
use quietly::svg::{Axis, Chart, Point, Series};

use super::{
    runs::{Cell, Outcomes, Way},
    task::Task,
};
use crate::reproduce::{
    Size,
    claim::{Check, Claim},
    report::{Entry, Grid},
};

const PAPER: &str = "the paper, Figure 1 (left)";
const OURS: &str = "our analysis of the paper";
pub(super) const LAMBDAS: [f64; 4] = [0.0, 0.3, 0.6, 0.9];

/// The runs.
pub(super) struct Contest {
    /// Names and rows.
    tasks: Vec<(String, usize)>,
    epsilons: Vec<f64>,
    pub(super) batches: u64,
    pub(super) passes: u64,
    seeds: u64,
}

impl Contest {
    pub(super) fn new(size: Size, tasks: &[Task]) -> Contest {
        let (rows, epsilons, batches, passes, seeds) = match size {
            Size::Full => (4000, vec![1.0, 4.0, 8.0], 8, 25, 10),
            Size::Quick => (4000, vec![1.0, 4.0, 8.0], 8, 25, 3),
            Size::Tiny => (200, vec![4.0], 4, 3, 1),
        };
        let tasks = tasks.iter().filter(|task| task.competes());
        let tasks = tasks.map(|task| (task.name.clone(), task.rows().unwrap_or(rows))).collect();
        Contest { tasks, epsilons, batches, passes, seeds }
    }

    fn bins(&self, lambda: f64) -> Way {
        Way::Bins { lambda, batches: self.batches, passes: self.passes }
    }

    fn poisson(&self) -> Way {
        Way::Poisson { batches: self.batches, passes: self.passes }
    }

    fn ways(&self) -> Vec<Way> {
        let mut ways = vec![Way::Default];
        ways.extend(LAMBDAS.map(|lambda| self.bins(lambda)));
        ways.extend([self.poisson(), Way::Twin, Way::Logistic]);
        ways
    }

    fn cell(&self, task: &(String, usize), way: Way, epsilon: f64) -> Cell {
        Cell { task: task.0.clone(), rows: task.1, way, epsilon, seeds: self.seeds }
    }

    /// The rows of the table: a task and an ε. Without a budget there is no sampler to choose.
    fn lines(&self) -> Vec<((String, usize), f64, Vec<Way>)> {
        let mut lines = vec![];
        for task in &self.tasks {
            for &epsilon in &self.epsilons {
                lines.push((task.clone(), epsilon, self.ways()));
            }
            lines.push((task.clone(), f64::INFINITY, vec![Way::Default, Way::Twin, Way::Logistic]));
        }
        lines
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        let cells = self.lines().into_iter().flat_map(|(task, epsilon, ways)| {
            ways.into_iter().map(move |way| (task.clone(), way, epsilon))
        });
        cells.map(|(task, way, epsilon)| self.cell(&task, way, epsilon)).collect()
    }

    pub(super) fn grids(&self, outcomes: &Outcomes) -> Vec<Grid> {
        let mut columns = vec!["task".to_string(), "rows".into(), "epsilon".into()];
        columns.extend(self.ways().iter().map(|way| way.name()));
        let row = |(task, epsilon, _): ((String, usize), f64, Vec<Way>)| {
            let asked = if epsilon.is_finite() { format!("{epsilon}") } else { "inf".into() };
            let mut row = vec![
                Entry::Word(task.0.clone()),
                Entry::Word(task.1.to_string()),
                Entry::Word(asked),
            ];
            row.extend(self.ways().iter().map(|w| outcomes.entry(&self.cell(&task, *w, epsilon))));
            row
        };
        let rows = self.lines().into_iter().map(row).collect();
        let note = format!(
            "Accuracy on test rows, mean and standard error over {} seeds. Grid and Poisson samples: {} batches, {} passes.",
            self.seeds, self.batches, self.passes
        );
        vec![Grid { title: "Accuracy".into(), note, columns, rows }]
    }

    pub(super) fn claims(&self, outcomes: &Outcomes) -> Vec<Claim> {
        let mean =
            |task: &(String, usize), way, epsilon| outcomes.mean(&self.cell(task, way, epsilon));
        let less = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
        let (mut humps, mut right, mut planner) = (vec![], vec![], vec![]);
        for task in &self.tasks {
            for &epsilon in &self.epsilons {
                let of = |way| mean(task, way, epsilon);
                let name = format!("{}, eps {epsilon}:", task.0);
                let lambdas = LAMBDAS.map(|lambda| of(self.bins(lambda)));
                if epsilon == 4.0 {
                    let gain = less(lambdas[2], lambdas[0]);
                    humps.push(Check::above(format!("{name} lambda 0.6 over 0"), gain, 0.0));
                    let back = less(lambdas[2], lambdas[3]);
                    humps.push(Check::above(format!("{name} lambda 0.6 over 0.9"), back, 0.0));
                }
                let best = lambdas[1..].iter().copied().flatten().reduce(f64::max);
                let gain = less(best, of(self.poisson()));
                right.push(Check::below(format!("{name} best lambda over Poisson"), gain, 0.02));
                let rivals = lambdas.into_iter().chain([of(self.poisson())]).flatten();
                let behind = less(of(Way::Default), rivals.reduce(f64::max));
                planner.push(Check::above(format!("{name} default over the best"), behind, -0.02));
            }
        }
        let says = "on one and the same sampler the effect of lambda has a maximum inside";
        let baseline = "against Poisson samples with independent noise, the right baseline, lambda gains nothing that counts";
        let chosen = "the planner's own choice, made without data, is no worse than any of these samplers and noises";
        let mut claims = vec![
            Claim::new(says, PAPER, humps),
            Claim::new(baseline, OURS, right),
            Claim::new(chosen, "docs/networks.md", planner),
        ];
        claims.extend(self.targets(outcomes));
        claims
    }

    /// What a prototype with tuned step sizes came to.
    fn targets(&self, outcomes: &Outcomes) -> Vec<Claim> {
        let at = |name: &str, way, epsilon| {
            let task = self.tasks.iter().find(|task| task.0 == name)?;
            outcomes.mean(&self.cell(task, way, epsilon))
        };
        let network = at("product", Way::Default, 4.0);
        let linear = at("product", Way::Logistic, 4.0);
        let ahead = network.zip(linear).map(|(a, b)| a - b);
        let mut checks = vec![
            Check::above(
                "product, eps 4: lambda 0.6 on bins",
                at("product", self.bins(0.6), 4.0),
                0.87,
            ),
            Check::above("Poisson", at("product", self.poisson(), 4.0), 0.88),
        ];
        if self.tasks.iter().any(|task| task.0 == "breast-cancer") {
            let found = at("breast-cancer", Way::Default, 4.0);
            checks.push(Check::above("breast-cancer, eps 4: default", found, 0.935));
        }
        vec![
            Claim::new(
                "a network learns at eps 4 what no weighted sum can",
                OURS,
                vec![Check::above("product: default over logistic", ahead, 0.1)],
            ),
            Claim::new("networks reach what a tuned prototype reached", OURS, checks),
        ]
    }

    /// Accuracy against λ, with the right baseline as a line.
    pub(super) fn pictures(&self, outcomes: &Outcomes) -> Vec<(String, String, String)> {
        let picture = |task: &(String, usize)| {
            let point = |x: f64, cell: &Cell| {
                let (y, error) = outcomes.of(cell)?;
                Some(Point { x, y, low: y - error, high: y + error })
            };
            let mut series = vec![];
            for &epsilon in &self.epsilons {
                let bins = LAMBDAS.iter().filter_map(|lambda| {
                    point(*lambda, &self.cell(task, self.bins(*lambda), epsilon))
                });
                let name = format!("bins, eps {epsilon}");
                series.push(Series { name, points: bins.collect(), reference: false });
            }
            for &epsilon in &self.epsilons {
                let poisson = self.cell(task, self.poisson(), epsilon);
                let line = [0.0, 0.9].iter().filter_map(|x| point(*x, &poisson)).collect();
                let name = format!("Poisson, eps {epsilon}");
                series.push(Series { name, points: line, reference: true });
            }
            let plain = |label: &str| Axis { log: false, ..Axis::log(label) };
            let title = format!("{}: accuracy against lambda", task.0);
            let (x, y) = (plain("lambda"), plain("accuracy"));
            let svg = Chart { title: title.clone(), x, y, series }.svg();
            (format!("lambda-{}.svg", task.0), title, svg)
        };
        self.tasks.iter().map(picture).collect()
    }
}
