//! What a comparison came to: a table, a picture, JSON, and what looking at it costs.
use quietly::{
    Link, Neighbours,
    svg::{Axis, Chart, Point, Series},
};
use serde_json::{Value, json};

use crate::{
    compare::{Cell, SideBySide},
    error::Failure,
    format,
    terminal::{Screen, WIDTH},
    trial::Spread,
};

const NOT_PRIVATE: &str = "These scores were computed from the rows themselves, without noise: they are NOT private. Nor is \
                           choosing among many results, unless the cost of every fit is counted. Use a public or a \
                           synthetic table, or do not share the scores.";

/// Everything that was found.
pub(super) struct Summary<'a> {
    pub(super) asked: &'a SideBySide,
    pub(super) link: Link,
    pub(super) delta: f64,
    pub(super) seeds: u64,
    /// The sum of ε over all fits.
    pub(super) spent: f64,
    pub(super) cells: Vec<Cell>,
    /// R² and RMSE of the fit without noise, for each split.
    pub(super) without: (Vec<f64>, Vec<f64>),
    pub(super) seconds: f64,
}

impl Summary<'_> {
    fn fits(&self) -> u64 {
        self.cells.len() as u64 * self.seeds
    }

    fn neighbours(&self) -> Neighbours {
        self.asked.neighbours.into()
    }

    fn tested_on(&self) -> String {
        match &self.asked.test {
            Some(file) => format!("tested on {}", file.display()),
            None => "tested on a random fifth".into(),
        }
    }

    fn price(&self) -> String {
        format!(
            "{} private fits spent epsilon {} in total (the sum; delta {:e} each).",
            self.fits(),
            format::high(self.spent),
            self.delta
        )
    }

    pub(super) fn print(&self, screen: &mut Screen) -> Result<(), Failure> {
        let (r2, rmse) = (Spread::of(&self.without.0), Spread::of(&self.without.1));
        screen.say(&screen.bold(&format!(
            "{} regression of {}, {} splits, {}, {} at delta {:e}",
            self.link.name(),
            self.asked.columns.target,
            self.seeds,
            self.tested_on(),
            self.neighbours().name(),
            self.delta
        )))?;
        screen.say(&format!(
            "without noise: R2 {}, RMSE {} (in units of {})\n",
            short(r2.median),
            short(rmse.median),
            self.asked.columns.target
        ))?;
        screen
            .say("epsilon  method                  R2        loss of R2 (quartiles)       RMSE")?;
        for cell in &self.cells {
            let (r2, loss) = (Spread::of(&cell.r2), Spread::of(&cell.loss));
            let spread = format!("{} to {}", short(loss.low), short(loss.high));
            let excess = Spread::of(&cell.excess).median;
            let more = if excess < 10.0 {
                format!("{:+.1} %", 100.0 * excess)
            } else {
                "over 1000 %".into()
            };
            let mark = if cell.entrant.stand_in(&cell.plan).is_some() { "*" } else { "" };
            screen.say(&format!(
                "{:<8} {:<23} {:<9} {:<7} {:<20} {more}",
                cell.epsilon,
                format!("{}{mark}", cell.entrant.name),
                short(r2.median),
                short(loss.median),
                format!("({spread})")
            ))?;
        }
        for line in self.remarks() {
            screen.say(&format::wrap(&line, "", WIDTH))?;
        }
        let text = format!("{} {NOT_PRIVATE}", self.price());
        screen.say(&format!("\n{}", format::wrap(&text, "", WIDTH)))?;
        match &self.asked.svg {
            Some(path) => {
                Ok(screen.say(&format!("saved {}, in {:.1} s", path.display(), self.seconds))?)
            }
            None => Ok(()),
        }
    }

    /// Methods that another one stands in for.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = vec![];
        for cell in &self.cells {
            if let Some(other) = cell.entrant.stand_in(&cell.plan) {
                remarks.push(format!(
                    "* {} at epsilon {}: the plan uses {other} for this number of rows and features.",
                    cell.entrant.name, cell.epsilon
                ));
            }
        }
        remarks
    }

    pub(super) fn json(&self) -> Value {
        let cell = |cell: &Cell| {
            json!({
                "method": cell.entrant.name,
                "epsilon": cell.epsilon,
                "planned_method": cell.plan.method().name(),
                "planned_epsilon": format::json(cell.plan.epsilon()),
                "r2": Spread::of(&cell.r2).json(),
                "rmse": Spread::of(&cell.rmse).json(),
                "loss_of_r2": Spread::of(&cell.loss).json(),
                "excess_rmse": Spread::of(&cell.excess).json(),
            })
        };
        json!({
            "private": false,
            "warning": format!("{} {NOT_PRIVATE}", self.price()),
            "model": self.link.name(),
            "target": self.asked.columns.target,
            "neighbours": self.neighbours().name(),
            "delta": self.delta,
            "splits": self.seeds,
            "test": self.tested_on(),
            "fits": self.fits(),
            "epsilon_spent_in_all": format::json(self.spent),
            "without_noise": {
                "r2": Spread::of(&self.without.0).json(),
                "rmse": Spread::of(&self.without.1).json(),
            },
            "results": self.cells.iter().map(cell).collect::<Vec<_>>(),
            "svg": self.asked.svg.as_ref().map(|p| p.display().to_string()),
            "seconds": self.seconds,
        })
    }

    /// RMSE against ε.
    pub(super) fn picture(&self) -> Chart {
        let mut series: Vec<Series> = vec![];
        for cell in &self.cells {
            let Spread { median, low, high } = Spread::of(&cell.rmse);
            let point = Point { x: cell.epsilon, y: median, low, high };
            match series.iter_mut().find(|s| s.name == cell.entrant.name) {
                Some(line) => line.points.push(point),
                None => {
                    let name = cell.entrant.name.clone();
                    series.push(Series { name, points: vec![point], reference: false });
                }
            }
        }
        series.iter_mut().for_each(|s| s.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
        let plain = Spread::of(&self.without.1).median;
        let ends = series.iter().flat_map(|s| &s.points).map(|p| p.x);
        let mut ends: Vec<f64> = ends.collect();
        ends.sort_by(f64::total_cmp);
        let level = |x: f64| Point { x, y: plain, low: plain, high: plain };
        let points = ends.iter().map(|x| level(*x)).collect();
        series.push(Series { name: "without noise".into(), points, reference: true });
        let target = &self.asked.columns.target;
        Chart {
            title: format!("{} regression of {target}, {} splits", self.link.name(), self.seeds),
            x: Axis::log("epsilon"),
            // What is a hundred times worse need not be told apart.
            y: Axis { ceiling: 100.0 * plain, ..Axis::log("RMSE on test rows") },
            series,
        }
    }
}

/// Four places for what is near, fewer for what is far off.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "undefined".into(),
        // No minus before a zero.
        size if size < 10.0 => format!("{:.4}", (value * 1e4).round() / 1e4 + 0.0),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.1e}"),
    }
}
