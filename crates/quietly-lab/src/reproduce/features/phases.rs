//! Where a private signal is learnt and where it is not: the limits behind `quietly diagnose`.
use quietly::{
    diagnose::{Diagnosis, Verdict},
    svg::{Axis, Chart, Point, Series},
};
use quietly_lab::feature_learning::Course;

use super::{Cell, Kind, Outcomes};
use crate::reproduce::{
    Size,
    claim::{Check, Claim},
    report::{Entry, Grid},
};

/// SNR, n and ε of runs on both sides of every limit.
const TABLE: [(f64, usize, f64); 14] = [
    (0.6, 50, 0.2),
    (0.6, 200, 0.2),
    (0.6, 50, 1.0),
    (3.0, 50, 0.2),
    (1.2, 200, 0.2),
    (0.6, 400, 0.2),
    (1.2, 50, 1.0),
    (0.6, 100, 1.0),
    (3.0, 100, 0.2),
    (0.6, 200, 1.0),
    (0.6, 50, 5.0),
    (3.0, 50, 1.0),
    (0.4, 100, 5.0),
    (0.2, 800, 5.0),
];

/// The runs.
pub(super) struct Phases {
    table: Vec<Cell>,
    diagram: Vec<Cell>,
}

impl Phases {
    pub(super) fn new(size: Size) -> Phases {
        let (most, draws, dimension, steps) = match size {
            Size::Full => (usize::MAX, 3, 1000, 500),
            Size::Quick => (200, 1, 1000, 500),
            Size::Tiny => (50, 1, 60, 20),
        };
        let cell = |(snr, rows, epsilon)| {
            let rows = if size == Size::Tiny { 8 } else { rows };
            Cell { snr, rows, kind: Kind::Honest(epsilon), dimension, steps, draws }
        };
        let table = TABLE.into_iter().filter(|(_, rows, _)| *rows <= most).map(cell).collect();
        let (snrs, products): (&[f64], &[f64]) = match size {
            Size::Full => {
                (&[0.4, 0.6, 0.8, 1.2, 2.0, 3.0], &[10.0, 20.0, 50.0, 100.0, 250.0, 500.0])
            }
            Size::Quick => (&[0.6, 1.2, 3.0], &[10.0, 50.0, 250.0]),
            Size::Tiny => (&[0.6, 3.0], &[10.0, 250.0]),
        };
        let places = snrs.iter().flat_map(|s| products.iter().map(move |p| (*s, *p)));
        let diagram = places.map(|(snr, product)| cell((snr, 50, product / 50.0))).collect();
        Phases { table, diagram }
    }

    pub(super) fn about(&self) -> String {
        "Diagnoses: Q_priv = SNR n mu(epsilon, delta), Q_stat = SNR^3 n, Q_time = steps over the time that the signal takes without noise. \
         The diagram has n = 50 and varies epsilon."
            .into()
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        [&self.table[..], &self.diagram[..]].concat()
    }

    pub(super) fn grids(&self, outcomes: &Outcomes) -> Vec<Grid> {
        let columns = ["SNR", "n", "eps", "Q_priv", "Q_stat", "Q_time", "verdict", "test errors"];
        let row = |cell: &Cell| {
            let Kind::Honest(epsilon) = cell.kind else { return vec![] };
            let diagnosis = cell.diagnosis();
            let errors: Vec<String> =
                outcomes.find(cell).iter().map(|c| format!("{:.3}", c.test_error)).collect();
            vec![
                Entry::Number(cell.snr),
                Entry::Word(cell.rows.to_string()),
                Entry::Number(epsilon),
                Entry::of(diagnosis.map(|d| d.privacy())),
                Entry::of(diagnosis.map(|d| d.statistics())),
                Entry::of(diagnosis.and_then(|d| d.time())),
                diagnosis.map_or(Entry::Nothing, |d| Entry::Word(d.verdict().name().into())),
                Entry::Word(errors.join(" ")),
            ]
        };
        let grid = |title: &str, cells: &[Cell]| Grid {
            title: title.into(),
            note: "Honest noise, add-remove, delta 1e-5.".into(),
            columns: columns.map(String::from).into(),
            rows: cells.iter().map(row).collect(),
        };
        vec![
            grid("Diagnoses and test errors", &self.table),
            grid("Phase diagram in SNR and n times epsilon", &self.diagram),
        ]
    }

    pub(super) fn claims(&self, outcomes: &Outcomes) -> Vec<Claim> {
        let checks = |verdict: Verdict, check: fn(String, Option<f64>) -> Check, of: Pick| {
            let mut seen: Vec<Cell> = vec![];
            for cell in self.cells() {
                if cell.diagnosis().is_some_and(|d| d.verdict() == verdict) && !seen.contains(&cell)
                {
                    seen.push(cell);
                }
            }
            seen.iter().map(|cell| check(cell.name(), of(outcomes, cell))).collect()
        };
        let error = |c: &Course| c.test_error;
        vec![
            Claim::new(
                "what is diagnosed as enough is learnt in every draw",
                "this library's quietly diagnose",
                checks(
                    Verdict::Enough,
                    |what, value| Check::below(what, value, 0.01),
                    |o, cell| o.worst(cell, |c| c.test_error),
                ),
            ),
            Claim::new(
                "what is diagnosed as no fails in some draw, or at least is not learnt well",
                "this library's quietly diagnose",
                checks(
                    Verdict::No,
                    |what, value| Check::above(what, value, 0.02),
                    |o, cell| o.worst(cell, |c| c.test_error),
                ),
            ),
            Claim::new(
                "a stronger signal needs less budget: at n 50, the least epsilon that is learnt falls with SNR",
                "the paper, Theorem 4.6",
                vec![Check::below(
                    "least n eps at the largest SNR over that at the smallest",
                    self.falls(outcomes, error),
                    0.999,
                )],
            ),
        ]
    }

    /// The least n·ε with an error of at most 1 %, at the largest SNR over that at the smallest for which there is one.
    fn falls(&self, outcomes: &Outcomes, error: fn(&Course) -> f64) -> Option<f64> {
        let learnt = |snr: f64| {
            let cells = self.diagram.iter().filter(|c| c.snr == snr);
            let good = cells.filter(|c| outcomes.median(c, error).is_some_and(|e| e <= 0.01));
            good.map(product).reduce(f64::min)
        };
        let snrs: Vec<f64> = self.snrs();
        let found: Vec<f64> = snrs.into_iter().filter_map(learnt).collect();
        Some(found.last()? / found.first()?)
    }

    fn snrs(&self) -> Vec<f64> {
        let mut snrs: Vec<f64> = self.diagram.iter().map(|c| c.snr).collect();
        snrs.dedup();
        snrs
    }

    pub(super) fn pictures(&self, outcomes: &Outcomes) -> Vec<(String, String, String)> {
        let point = |cell: &Cell, x: f64| {
            let error = |c: &Course| c.test_error;
            let low = outcomes.find(cell).iter().map(error).reduce(f64::min)?;
            let high = outcomes.worst(cell, error)?;
            Some(Point { x, y: outcomes.median(cell, error)?, low, high })
        };
        let mut series: Vec<Series> = self
            .snrs()
            .into_iter()
            .map(|snr| {
                let cells = self.diagram.iter().filter(|c| c.snr == snr);
                let points = cells.filter_map(|c| point(c, product(c))).collect();
                Series { name: format!("SNR {snr}"), points, reference: false }
            })
            .collect();
        let plain = |label: &str| Axis { log: false, ..Axis::log(label) };
        let chart = |file: &str, title: &str, x: &str, series: Vec<Series>| {
            let (x, y) = (Axis::log(x), plain("test error"));
            let chart = Chart { title: title.into(), x, y, series };
            (file.to_string(), title.to_string(), chart.svg())
        };
        let diagram = chart(
            "phases.svg",
            "test error against n times epsilon",
            "n epsilon",
            std::mem::take(&mut series),
        );
        let mut points: Vec<Point> = vec![];
        for cell in self.cells() {
            // Only where privacy alone limits learning.
            let fair = |d: &Diagnosis| d.statistics() >= 10.0 && d.time() >= Some(2.0);
            let diagnosis = cell.diagnosis().filter(fair);
            points.extend(diagnosis.and_then(|d| point(&cell, d.privacy())));
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let line = |name: &str, x: f64| {
            let at = |y: f64| Point { x, y, low: y, high: y };
            Series { name: name.into(), points: vec![at(0.0), at(0.6)], reference: true }
        };
        let all = vec![
            Series { name: "all SNR, n and epsilon".into(), points, reference: false },
            line("no below 10", 10.0),
            line("enough from 30", 30.0),
        ];
        vec![diagram, chart("collapse.svg", "test error against SNR n mu", "SNR n mu", all)]
    }
}

type Pick = fn(&Outcomes, &Cell) -> Option<f64>;

fn product(cell: &Cell) -> f64 {
    match cell.kind {
        Kind::Honest(epsilon) => cell.rows as f64 * epsilon,
        _ => f64::NAN,
    }
}
