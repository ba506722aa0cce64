//! The paper's figures: test losses over budgets and over sizes of samples.

use quietly::{Charge, FitInput, FitOptions, FitOutput, Key, Plan};
use quietly_cli::{error::Failure, terminal::Progress, trial};

use super::{
    faithful::Printed,
    problem::{Entrant, Kind, Problem, delta},
    tables::{Sample, Table},
};
use crate::reproduce::{Draw, Size, world::Normals};

/// The runs.
pub(super) struct Figures {
    /// How many of the paper's tables, at most.
    pub(super) tables: usize,
    /// Rows of a sample where budgets vary.
    pub(super) rows: usize,
    pub(super) epsilons: Vec<f64>,
    /// Sizes of samples, at the first of the budgets.
    pub(super) sizes: Vec<usize>,
    pub(super) runs: u64,
    /// Who takes part in a problem.
    pub(super) entrants: fn(Problem) -> Vec<Entrant>,
}

/// Losses of one entrant on one problem, one table, one size and one budget.
pub(super) struct Cell {
    pub(super) table: usize,
    pub(super) problem: Problem,
    pub(super) rows: usize,
    pub(super) epsilon: f64,
    pub(super) entrant: Entrant,
    plan: Option<Plan>,
    problem_met: Option<String>,
    losses: Vec<f64>,
}

/// All of them.
pub(super) struct Outcomes {
    pub(super) cells: Vec<Cell>,
    /// The names of tables.
    pub(super) tables: Vec<&'static str>,
    /// Rows where budgets vary.
    pub(super) rows: usize,
    pub(super) epsilons: Vec<f64>,
}

impl Figures {
    pub(super) fn new(size: Size) -> Figures {
        let full = Figures {
            tables: 4,
            rows: 10_000,
            epsilons: vec![0.5, 1.0, 1.5, 2.0],
            sizes: vec![2500, 5000, 10_000, 20_000, 30_000],
            runs: 20,
            entrants: Entrant::all,
        };
        match size {
            Size::Full => full,
            Size::Quick => Figures {
                tables: 2,
                epsilons: vec![0.5, 2.0],
                sizes: vec![2500, 10_000],
                runs: 5,
                ..full
            },
            Size::Tiny => Figures {
                tables: 1,
                rows: 400,
                epsilons: vec![0.5, 2.0],
                sizes: vec![200, 400],
                runs: 1,
                ..full
            },
        }
    }

    pub(super) fn about(&self) -> String {
        format!(
            "Budgets {:?} at n = {}, and samples of {:?} rows at epsilon {} (as many as a table has); {} runs of each.",
            self.epsilons, self.rows, self.sizes, self.epsilons[0], self.runs
        )
    }

    /// Sizes with their budgets, for a table of so many rows.
    fn sweeps(&self, most: usize) -> Vec<(usize, &[f64])> {
        let mut sizes: Vec<usize> = self.sizes.iter().map(|n| (*n).min(most)).collect();
        sizes.push(self.rows.min(most));
        sizes.sort_unstable();
        sizes.dedup();
        let budgets = |n: usize| {
            if n == self.rows.min(most) { &self.epsilons[..] } else { &self.epsilons[..1] }
        };
        sizes.into_iter().map(|n| (n, budgets(n))).collect()
    }
}

impl Cell {
    /// The mean loss and its standard error.
    pub(super) fn mean(&self) -> Option<(f64, f64)> {
        let n = self.losses.len() as f64;
        let mean = self.losses.iter().sum::<f64>() / n;
        let square = self.losses.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>();
        (n > 0.0).then(|| (mean, (square / (n * (n - 1.0).max(1.0))).sqrt()))
    }
}

impl Outcomes {
    /// Plans and runs everything.
    pub(super) fn measure(
        figures: &Figures,
        tables: &[Table],
        draw: Draw,
        progress: &Progress,
    ) -> Result<Outcomes, Failure> {
        let mut asked = vec![];
        let mut jobs = vec![];
        for (at, table) in tables.iter().enumerate() {
            for (rows, epsilons) in figures.sweeps(table.rows()) {
                for problem in Problem::ALL {
                    for entrant in (figures.entrants)(problem) {
                        let plain = [f64::INFINITY];
                        let all = if entrant.kind == Kind::Plain { &plain } else { epsilons };
                        asked.extend(all.iter().map(|e| (at, rows, problem, entrant, *e)));
                    }
                }
                jobs.extend((0..figures.runs).map(|run| (at, rows, run)));
            }
        }
        let told = |done| progress.say(&format!("planning: {done} of {}", asked.len()));
        let plans = trial::all(&asked, draw.threads, &told, |(at, rows, problem, entrant, e)| {
            entrant.plan(*problem, *rows, tables[*at].width, *e).transpose()
        });
        let mut cells = vec![];
        for ((table, rows, problem, entrant, epsilon), plan) in asked.into_iter().zip(plans) {
            let problem_met = plan.as_ref().err().map(ToString::to_string);
            let plan = plan.ok().flatten();
            let losses = vec![];
            cells.push(Cell { table, problem, rows, epsilon, entrant, plan, problem_met, losses });
        }
        // Large samples first: no thread is left alone with them in the end.
        jobs.sort_by_key(|(_, rows, _)| std::cmp::Reverse(*rows));
        let told = |done| progress.say(&format!("fitting: {done} of {} samples", jobs.len()));
        let found = trial::all(&jobs, draw.threads, &told, |(at, rows, run)| {
            let table = &tables[*at];
            let sample = table.sample(*rows, draw.seed.wrapping_mul(1_000_003) + run)?;
            let mut losses = vec![];
            let mine = |cell: &Cell| (cell.table, cell.rows) == (*at, *rows);
            for (i, cell) in cells.iter().enumerate().filter(|(_, cell)| mine(cell)) {
                // Noise of its own for every fit.
                let key = Key::from_seed((draw.seed << 40) + (run << 20) + i as u64);
                let weights = cell.fit(&sample, table.width, key);
                losses.push((i, weights.map(|w| w.map(|w| cell.problem.risk(&w, &table.test)))));
            }
            Ok::<_, Failure>((*run, losses))
        });
        let mut runs: Vec<_> = found.into_iter().collect::<Result<_, _>>()?;
        runs.sort_by_key(|(run, _)| *run);
        for (i, loss) in runs.into_iter().flat_map(|(_, losses)| losses) {
            match loss? {
                Ok(loss) => cells[i].losses.push(loss),
                Err(problem) => cells[i].problem_met = Some(problem),
            }
        }
        Ok(Outcomes {
            cells,
            tables: tables.iter().map(|t| t.name).collect(),
            rows: figures.rows,
            epsilons: figures.epsilons.clone(),
        })
    }

    /// The cell of a method; `rows` at most, if its table has fewer.
    pub(super) fn find(
        &self,
        table: usize,
        problem: Problem,
        rows: usize,
        epsilon: f64,
        (kind, base): (Kind, &str),
    ) -> Option<&Cell> {
        self.cells.iter().find(|c| {
            (c.table, c.problem, c.rows) == (table, problem, rows)
                && (c.entrant.kind, c.entrant.base) == (kind, base)
                && (c.epsilon == epsilon || kind == Kind::Plain)
        })
    }

    /// The sizes that were run for a table.
    pub(super) fn sizes(&self, table: usize) -> Vec<usize> {
        let mut sizes: Vec<usize> =
            self.cells.iter().filter(|c| c.table == table).map(|c| c.rows).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The size at which budgets vary.
    pub(super) fn main_size(&self, table: usize) -> usize {
        let sizes = self.sizes(table);
        *sizes.iter().rev().find(|n| **n <= self.rows).unwrap_or(&sizes[0])
    }

    /// Sentences about what failed.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![];
        for cell in &self.cells {
            let Some(problem) = &cell.problem_met else { continue };
            let name = cell.entrant.name();
            let remark =
                format!("{name} was not run everywhere ({}): {problem}.", cell.problem.name());
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks
    }
}

impl Cell {
    /// The weights; a sentence if there is no plan for them, and an error if something else is wrong.
    fn fit(
        &self,
        sample: &Sample,
        width: usize,
        key: Key,
    ) -> Result<Result<Vec<f64>, String>, Failure> {
        if self.entrant.kind == Kind::Printed {
            let mut printed = Printed {
                problem: self.problem,
                rows: &sample.rows,
                width,
                epsilon: self.epsilon,
                delta: delta(self.rows),
                normals: Normals::new(key.stream("simulation").bits(0)?),
            };
            return printed.fit(self.entrant.base).map(Ok);
        }
        let Some(plan) = &self.plan else {
            return Ok(Err(self.problem_met.clone().unwrap_or_default()));
        };
        let options = FitOptions::new(Charge::without_ledger(key)).threads(1);
        let fit = plan.fit(FitInput::table(&sample.table, (-1.0, 1.0)), options);
        let found = fit.and_then(FitOutput::coefficients);
        Ok(found.map(|(_, weights)| weights).map_err(|e| e.to_string()))
    }
}
