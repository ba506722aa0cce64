//! The paper's figures: test losses over budgets and over sizes of samples.
use std::ops::ControlFlow;

use quietly::{Key, Plan};

use super::{
    faithful::Printed,
    problem::{AMP, ERM, Entrant, ITERATED, Kind, PHASED, PSA, Problem, SC, delta},
    tables::{Sample, Table},
};
use crate::{
    chart::{Axis, Chart, Point, Series},
    failure::Failure,
    reproduce::{
        Draw, Size,
        report::{Entry, Grid},
        world::Normals,
    },
    screen::Progress,
    trial,
};

/// What is run.
pub(super) struct Figures {
    /// How many of the paper's tables, at most.
    pub(super) tables: usize,
    /// Rows of a sample where budgets vary.
    pub(super) rows: usize,
    epsilons: Vec<f64>,
    /// Sizes of samples, at the first of the budgets.
    sizes: Vec<usize>,
    runs: u64,
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
        };
        match size {
            Size::Full => full,
            Size::Quick => Figures {
                tables: 2,
                epsilons: vec![0.5, 2.0],
                sizes: vec![2500, 10_000],
                runs: 3,
                ..full
            },
            Size::Tiny => Figures {
                tables: 1,
                rows: 400,
                epsilons: vec![0.5, 2.0],
                sizes: vec![200, 400],
                runs: 1,
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
                    for entrant in Entrant::all(problem) {
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

    /// A table of losses for each problem: budgets, and then sizes.
    pub(super) fn grids(&self) -> Vec<Grid> {
        let mut grids = vec![];
        for problem in Problem::ALL {
            for by_size in [false, true] {
                let mut columns = vec!["method".to_string()];
                let mut cells = vec![];
                for (table, name) in self.tables.iter().enumerate() {
                    if by_size {
                        let sizes = self.sizes(table);
                        columns.extend(sizes.iter().map(|n| format!("{name}, n {n}")));
                        cells.extend(sizes.into_iter().map(|n| (table, n, self.epsilons[0])));
                    } else {
                        columns.extend(self.epsilons.iter().map(|e| format!("{name}, eps {e}")));
                        let rows = self.main_size(table);
                        cells.extend(self.epsilons.iter().map(|e| (table, rows, *e)));
                    }
                }
                columns.push("largest standard error".into());
                let rows = Entrant::all(problem).into_iter().map(|entrant| {
                    let get = |&(table, rows, epsilon): &(usize, usize, f64)| {
                        let key = (entrant.kind, entrant.base);
                        self.find(table, problem, rows, epsilon, key)?.mean()
                    };
                    let found: Vec<Option<(f64, f64)>> = cells.iter().map(get).collect();
                    let worst = found.iter().flatten().map(|m| m.1).reduce(f64::max);
                    let mut row = vec![Entry::Word(entrant.name())];
                    let entry =
                        |m: &Option<(f64, f64)>| m.map_or(Entry::Nothing, |m| Entry::Fine(m.0));
                    row.extend(found.iter().map(entry));
                    row.push(worst.map_or(Entry::Nothing, Entry::Fine));
                    row
                });
                let over = match by_size {
                    true => format!("over n, at epsilon {}", self.epsilons[0]),
                    false => format!("over epsilon, at n = {}", self.rows),
                };
                grids.push(Grid {
                    title: format!("Test loss of {}, {over}", problem.title()),
                    note: String::new(),
                    rows: rows.collect(),
                    columns,
                });
            }
        }
        grids
    }

    /// The paper's figures: its own methods as printed, and beside them what this library has.
    pub(super) fn pictures(&self) -> Vec<(String, String, String)> {
        let mut pictures = vec![];
        for (table, name) in self.tables.iter().enumerate() {
            for problem in Problem::ALL {
                let shown = shown(problem);
                let main = self.main_size(table);
                let sizes = self.sizes(table);
                let over_epsilon = self.epsilons.iter().map(|e| (*e, main, *e)).collect();
                let over_n = sizes.iter().map(|n| (*n as f64, *n, self.epsilons[0])).collect();
                let sweeps: [(&str, Vec<(f64, usize, f64)>); 2] =
                    [("epsilon", over_epsilon), ("n", over_n)];
                for (over, places) in sweeps {
                    let line = |&(kind, base): &(Kind, &'static str)| {
                        let mut label = String::new();
                        let mut points = vec![];
                        for (x, rows, epsilon) in &places {
                            let cell = self.find(table, problem, *rows, *epsilon, (kind, base));
                            let Some((cell, (y, off))) = cell.and_then(|c| Some((c, c.mean()?)))
                            else {
                                continue;
                            };
                            label = cell.entrant.name();
                            points.push(Point { x: *x, y, low: y - off, high: y + off });
                        }
                        Series { name: label, points, reference: kind == Kind::Plain }
                    };
                    let series = shown.iter().map(line).filter(|s| !s.points.is_empty()).collect();
                    let caption = format!("{name}: {}, over {over}", problem.title());
                    let plain = |label: &str| Axis { log: false, ..Axis::log(label) };
                    let (x, y) = (plain(over), plain("test loss"));
                    let chart = Chart { title: caption.clone(), x, y, series };
                    let file = format!("{}-{name}-{over}.svg", problem.name());
                    pictures.push((file, caption, chart.svg()));
                }
            }
        }
        pictures
    }
}

/// Whom pictures show.
fn shown(problem: Problem) -> Vec<(Kind, &'static str)> {
    let mut shown = vec![(Kind::Plain, "no noise"), (Kind::Found, "dp-sgd")];
    shown.push((Kind::Found, "sc-psgd"));
    let own = if problem == Problem::Logistic { SC } else { PHASED };
    shown.extend([own, PSA, ITERATED[0], ITERATED[1]].map(|base| (Kind::Printed, base)));
    shown.extend([PHASED, ERM, AMP].map(|base| (Kind::Found, base)));
    shown
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
        let quiet = &mut |_| ControlFlow::Continue(());
        let found = plan.learn(&sample.table, (-1.0, 1.0), key, 1, quiet);
        Ok(found.map(|w| w.outputs[0].1.clone()).map_err(|e| e.to_string()))
    }
}
