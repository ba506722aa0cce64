//! Accuracy as rows, the budget and the number of columns grow, on the synthetic task.
use quietly::svg::{Axis, Chart, Point, Series};

use super::{
    runs::{Cell, Outcomes, Way},
    task::{WIDTH, WIDTHS, product_of},
};
use crate::reproduce::{
    Size,
    claim::{Check, Claim, slope},
    report::{Entry, Grid},
};

const EPSILONS: [f64; 2] = [1.0, 4.0];

/// The runs.
pub(super) struct Rates {
    rows: Vec<usize>,
    seeds: u64,
}

impl Rates {
    pub(super) fn new(size: Size) -> Rates {
        let (rows, seeds) = match size {
            Size::Full => (vec![1000, 2000, 4000, 8000], 10),
            Size::Quick => (vec![1000, 2000, 4000, 8000], 3),
            Size::Tiny => (vec![100, 200], 1),
        };
        Rates { rows, seeds }
    }

    fn cell(&self, rows: usize, epsilon: f64) -> Cell {
        self.wide(WIDTH, rows, epsilon)
    }

    fn wide(&self, width: usize, rows: usize, epsilon: f64) -> Cell {
        Cell { task: product_of(width), rows, way: Way::Default, epsilon, seeds: self.seeds }
    }

    /// How many rows there are where columns grow.
    fn fixed(&self) -> usize {
        self.rows[self.rows.len() / 2]
    }

    /// Test errors for every number of columns.
    fn by_width(&self, outcomes: &Outcomes, epsilon: f64) -> Vec<Point> {
        let point = |width: &usize| {
            let (mean, error) = outcomes.of(&self.wide(*width, self.fixed(), epsilon))?;
            let y = 1.0 - mean;
            Some(Point { x: *width as f64, y, low: y - error, high: y + error })
        };
        WIDTHS.iter().filter_map(point).collect()
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        let each = EPSILONS.iter().flat_map(|e| self.rows.iter().map(move |n| (*n, *e)));
        let wider = EPSILONS.iter().flat_map(|e| WIDTHS.map(|w| self.wide(w, self.fixed(), *e)));
        each.map(|(rows, epsilon)| self.cell(rows, epsilon)).chain(wider).collect()
    }

    pub(super) fn grid(&self, outcomes: &Outcomes) -> Grid {
        let mut columns = vec!["rows".to_string()];
        columns.extend(EPSILONS.map(|e| format!("epsilon {e}")));
        let row = |rows: &usize| {
            let mut row = vec![Entry::Word(rows.to_string())];
            row.extend(EPSILONS.map(|e| outcomes.entry(&self.cell(*rows, e))));
            row
        };
        Grid {
            title: "Product: accuracy as rows grow".into(),
            note: "The default plan of a network.".into(),
            columns,
            rows: self.rows.iter().map(row).collect(),
        }
    }

    pub(super) fn claims(&self, outcomes: &Outcomes) -> Vec<Claim> {
        let mean = |rows: usize, epsilon: f64| outcomes.mean(&self.cell(rows, epsilon));
        let less = |a: Option<f64>, b: Option<f64>| Some(a? - b?);
        let mut grows = vec![];
        for pair in self.rows.windows(2) {
            for epsilon in EPSILONS {
                let gain = less(mean(pair[1], epsilon), mean(pair[0], epsilon));
                let what = format!("eps {epsilon}: {} over {} rows", pair[1], pair[0]);
                grows.push(Check::above(what, gain, 0.0));
            }
        }
        let mut equal = vec![];
        for rows in &self.rows {
            if self.rows.contains(&(4 * rows)) {
                let gain = less(mean(4 * rows, 1.0), mean(*rows, 4.0));
                let what = format!("{} rows at eps 1 over {rows} at eps 4", 4 * rows);
                equal.push(Check::above(what, gain, 0.0));
            }
        }
        let mut wider = vec![];
        for epsilon in EPSILONS {
            let errors = self.by_width(outcomes, epsilon);
            for pair in errors.windows(2) {
                let what = format!("eps {epsilon}: {} over {} columns", pair[1].x, pair[0].x);
                wider.push(Check::above(what, Some(pair[1].y - pair[0].y), 0.0));
            }
        }
        let points: Vec<(f64, f64)> =
            self.rows.iter().filter_map(|n| Some((*n as f64, 1.0 - mean(*n, 4.0)?))).collect();
        let error = slope(&points);
        let says = "columns that say nothing cost accuracy, as a rate of sqrt(d)/(n epsilon) says";
        vec![
            Claim::new(says, "the paper, Corollary 5.5", wider),
            Claim::new("more rows are better at every budget", "the paper, Corollary 5.5", grows),
            Claim::new(
                "at equal n epsilon more rows are better, as a rate of 1/sqrt(n) + sqrt(d)/(n epsilon) says",
                "the paper, Corollary 5.5",
                equal,
            ),
            Claim::new(
                "the test error at eps 4 falls at a rate of n^-1/2, or faster",
                "the paper, Corollary 5.5",
                vec![Check::below("slope", error, -0.4)],
            ),
        ]
    }

    pub(super) fn pictures(&self, outcomes: &Outcomes) -> [(String, String, String); 2] {
        [self.picture(outcomes), self.picture_by_width(outcomes)]
    }

    fn picture_by_width(&self, outcomes: &Outcomes) -> (String, String, String) {
        let of = |epsilon: f64| {
            let (name, points) = (format!("epsilon {epsilon}"), self.by_width(outcomes, epsilon));
            Series { name, points, reference: false }
        };
        let title = format!("product: test error as columns grow, {} rows", self.fixed());
        let (x, y, series) =
            (Axis::log("columns"), Axis::log("test error"), EPSILONS.map(of).into());
        ("columns.svg".into(), title.clone(), Chart { title, x, y, series }.svg())
    }

    fn picture(&self, outcomes: &Outcomes) -> (String, String, String) {
        let of = |epsilon: f64| {
            let point = |n: &usize| {
                let (mean, error) = outcomes.of(&self.cell(*n, epsilon))?;
                let y = 1.0 - mean;
                Some(Point { x: *n as f64, y, low: y - error, high: y + error })
            };
            let points = self.rows.iter().filter_map(point).collect();
            Series { name: format!("epsilon {epsilon}"), points, reference: false }
        };
        let title = "product: test error as rows grow".to_string();
        let series = EPSILONS.map(of).into();
        let (x, y) = (Axis::log("rows"), Axis::log("test error"));
        ("rows.svg".into(), title.clone(), Chart { title, x, y, series }.svg())
    }
}
