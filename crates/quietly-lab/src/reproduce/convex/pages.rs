//! The figures as tables and charts.
use quietly::svg::{Axis, Chart, Point, Series};

use super::{
    figures::Outcomes,
    problem::{AMP, ERM, Entrant, ITERATED, Kind, PHASED, PSA, Problem, SC},
};
use crate::reproduce::report::{Entry, Grid};

/// The position of a point, its number of rows and its budget.
type Place = (f64, usize, f64);

impl Outcomes {
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
                let mut over_epsilon: Vec<Place> = vec![];
                over_epsilon.extend(self.epsilons.iter().map(|e| (*e, main, *e)));
                let mut over_n: Vec<Place> = vec![];
                over_n.extend(sizes.iter().map(|n| (*n as f64, *n, self.epsilons[0])));
                for (over, places) in [("epsilon", over_epsilon), ("n", over_n)] {
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

/// The methods that charts show.
fn shown(problem: Problem) -> Vec<(Kind, &'static str)> {
    let mut shown = vec![(Kind::Plain, "no noise"), (Kind::Found, "dp-sgd")];
    shown.push((Kind::Found, "sc-psgd"));
    let own = if problem == Problem::Logistic { SC } else { PHASED };
    shown.extend([own, PSA, ITERATED[0], ITERATED[1]].map(|base| (Kind::Printed, base)));
    shown.extend([PHASED, ERM, AMP].map(|base| (Kind::Found, base)));
    shown
}
