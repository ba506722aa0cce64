//! Runs of the network on synthetic pictures, one for every draw.
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use quietly::{Budget, Key, diagnose::Diagnosis};
use quietly_cli::{error::Failure, terminal::Progress};
use quietly_lab::feature_learning::{Course, Descent, Noise, World, study};

use crate::reproduce::{
    Draw,
    claim::{Check, Claim},
};

pub(super) const DELTA: f64 = 1e-5;

/// What is added to gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Plain,
    Published(f64),
    Honest(f64),
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) snr: f64,
    pub(super) rows: usize,
    pub(super) kind: Kind,
    pub(super) dimension: usize,
    pub(super) steps: u64,
    /// How many draws.
    pub(super) draws: u64,
}

impl Cell {
    fn descent(&self) -> Descent {
        Descent { steps: self.steps, ..Descent::default() }
    }

    fn run(&self, seed: u64) -> Result<Course, quietly::Error> {
        let noise = match self.kind {
            Kind::Plain => Noise::None,
            Kind::Published(epsilon) => Noise::Published { epsilon, delta: DELTA },
            Kind::Honest(epsilon) => {
                let budget = Budget::new(epsilon, DELTA)?;
                Noise::Planned(self.descent().plan(self.rows as u64, self.dimension, budget)?)
            }
        };
        let world = World::new(self.dimension, self.snr, &Key::from_seed(seed))?;
        study(self.descent(), &noise, &world, self.rows, Key::from_seed(seed ^ 0x5eed_0000))
    }

    /// What is said of it before it is run.
    pub(super) fn diagnosis(&self) -> Option<Diagnosis> {
        let Kind::Honest(epsilon) = self.kind else { return None };
        let noise = ((self.dimension - 1) as f64).sqrt();
        let budget = Budget::new(epsilon, DELTA).ok()?;
        let (descent, rows) = (self.descent(), self.rows as u64);
        let diagnosis = Diagnosis::new(self.snr, rows, budget).ok()?.power(descent.power).ok()?;
        Some(diagnosis.trained(descent.steps, descent.signal_time(noise)))
    }

    pub(super) fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Plain => "no noise".into(),
            Kind::Published(epsilon) => format!("published eps {epsilon}"),
            Kind::Honest(epsilon) => format!("eps {epsilon}"),
        };
        format!("SNR {}, n {}, {kind}:", self.snr, self.rows)
    }
}

/// All cells and their draws.
pub(super) struct Outcomes(Vec<(Cell, Vec<Course>)>);

impl Outcomes {
    /// Runs everything, the longest first, on all threads.
    pub(super) fn measure(
        mut cells: Vec<Cell>,
        draw: Draw,
        progress: &Progress,
    ) -> Result<Outcomes, Failure> {
        cells.sort_by_key(|cell| std::cmp::Reverse(cell.rows));
        let jobs: Vec<(usize, u64)> = cells
            .iter()
            .enumerate()
            .flat_map(|(at, cell)| (0..cell.draws).map(move |k| (at, 1000 * draw.seed + k)))
            .collect();
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..draw.threads.min(jobs.len()) {
                scope.spawn(|| {
                    while let Some(&(at, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let course = cells[at].run(seed);
                        let mut done = done.lock().expect("no thread panics");
                        done.push((at, seed, course));
                        progress.say(&format!(
                            "training: {} of {} networks",
                            done.len(),
                            jobs.len()
                        ));
                    }
                });
            }
        });
        let mut done = done.into_inner().expect("no thread panics");
        done.sort_by_key(|(at, seed, _)| (*at, *seed));
        let mut all: Vec<(Cell, Vec<Course>)> = cells.into_iter().map(|c| (c, vec![])).collect();
        for (at, _, course) in done {
            all[at].1.push(course?);
        }
        Ok(Outcomes(all))
    }

    pub(super) fn find(&self, cell: &Cell) -> &[Course] {
        self.0.iter().find(|(c, _)| c == cell).map_or(&[], |(_, courses)| courses)
    }

    /// The median over draws; none if there are none.
    pub(super) fn median(&self, cell: &Cell, of: impl Fn(&Course) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.find(cell).iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// The largest over draws.
    pub(super) fn worst(&self, cell: &Cell, of: impl Fn(&Course) -> f64) -> Option<f64> {
        self.find(cell).iter().map(of).reduce(f64::max)
    }

    /// Γ and Φ are found in two ways.
    pub(super) fn agreement(&self) -> Claim {
        let worst = |kind: fn(&Kind) -> bool| {
            let runs = self.0.iter().filter(|(cell, _)| kind(&cell.kind));
            runs.flat_map(|(_, courses)| courses.iter().filter_map(|c| c.disagreement))
                .reduce(f64::max)
        };
        let check = |what: &str, kind| Check::below(format!("{what}: apart by"), worst(kind), 1e-9);
        Claim::new(
            "signal and noise in the filters by recursion and by projection are the same",
            "the paper's Lemma 4.2, with clipping",
            vec![
                check("no noise", |k| matches!(k, Kind::Plain)),
                check("published", |k| matches!(k, Kind::Published(_))),
                check("calibrated", |k| matches!(k, Kind::Honest(_))),
            ],
        )
    }
}
