//! Figure 2 of the paper: eight panels, the table behind them, and what it claims.
use quietly::svg::{Axis, Chart, Point, Series};
use quietly_accounting::{Event, Neighbours};
use quietly_lab::feature_learning::{Course, Moment};

use super::{Cell, Kind, Outcomes, cells::DELTA};
use crate::reproduce::{
    Size,
    claim::{Check, Claim},
    report::{Entry, Grid, number},
};

const SNRS: [f64; 3] = [0.2, 0.6, 3.0];
const EPSILONS: [f64; 3] = [5.0, 1.0, 0.2];
/// Letter, SNR and ε of the panels that compare signal and noise; h is made of g.
const PANELS: [(char, f64, f64); 7] = [
    ('a', 0.6, 5.0),
    ('b', 0.6, 1.0),
    ('c', 0.6, 0.2),
    ('d', 3.0, 0.2),
    ('e', 0.2, 5.0),
    ('f', 0.2, 1.0),
    ('g', 0.2, 0.2),
];
const PAPER: &str = "the paper, Figure 2";
const OURS: &str = "our analysis of the paper";

/// The runs.
pub(super) struct Figure {
    base: Cell,
}

impl Figure {
    pub(super) fn new(size: Size) -> Figure {
        let base =
            Cell { snr: 0.6, rows: 50, kind: Kind::Plain, dimension: 1000, steps: 500, draws: 1 };
        Figure {
            base: match size {
                Size::Full => Cell { draws: 3, ..base },
                Size::Quick => base,
                Size::Tiny => Cell { rows: 8, dimension: 60, steps: 20, ..base },
            },
        }
    }

    fn at(&self, snr: f64, kind: Kind) -> Cell {
        Cell { snr, kind, ..self.base }
    }

    pub(super) fn about(&self) -> String {
        let Cell { rows, dimension, steps, draws, .. } = self.base;
        format!(
            "The figure: n {rows}, d {dimension}, {steps} steps, {draws} draw(s); tables and claims hold medians, pictures the first draw."
        )
    }

    pub(super) fn cells(&self) -> Vec<Cell> {
        let mut cells = vec![];
        for snr in SNRS {
            cells.push(self.at(snr, Kind::Plain));
            cells.extend(EPSILONS.map(|e| self.at(snr, Kind::Published(e))));
            cells.extend(EPSILONS.map(|e| self.at(snr, Kind::Honest(e))));
        }
        cells
    }

    pub(super) fn grids(&self, outcomes: &Outcomes) -> Vec<Grid> {
        let mut columns = vec!["SNR".to_string(), "no noise".into()];
        columns.extend(EPSILONS.map(|e| format!("published, eps {e}")));
        columns.extend(EPSILONS.map(|e| format!("calibrated, eps {e}")));
        let mut rows = vec![];
        for snr in SNRS {
            let mut row = vec![Entry::Number(snr)];
            let kinds = EPSILONS.map(Kind::Published).into_iter().chain(EPSILONS.map(Kind::Honest));
            for kind in std::iter::once(Kind::Plain).chain(kinds) {
                let cell = self.at(snr, kind);
                let told =
                    |of: fn(&Course) -> f64| outcomes.median(&cell, of).map_or("-".into(), number);
                row.push(Entry::Word(format!(
                    "{} / {} / {} ({})",
                    told(|c| c.end().signal),
                    told(|c| c.end().memorised),
                    told(|c| c.end().pushed_away),
                    told(|c| c.test_error)
                )));
            }
            rows.push(row);
        }
        let note = "The largest signal / memorised noise / noise pushed away in a filter at the end, and the test error. Published noise \
                    gives no guarantee.";
        vec![
            Grid {
                title: "Signal and noise in the filters".into(),
                note: note.into(),
                columns,
                rows,
            },
            self.lengths(outcomes),
        ]
    }

    /// What the published noise takes for granted.
    fn lengths(&self, outcomes: &Outcomes) -> Grid {
        let columns = [
            "SNR",
            "longest gradient",
            "assumed",
            "largest raw product with noise, calibrated eps 1",
            "memorised there",
        ];
        let row = |snr: f64| {
            let (plain, honest) = (self.at(snr, Kind::Plain), self.at(snr, Kind::Honest(1.0)));
            vec![
                Entry::Number(snr),
                Entry::of(outcomes.median(&plain, steepest)),
                Entry::Number(self.assumed(snr)),
                Entry::of(outcomes.median(&honest, |c| c.end().raw_noise)),
                Entry::of(outcomes.median(&honest, |c| c.end().memorised)),
            ]
        };
        let note = "The paper's sensitivity is (|v| + |xi|)/(n m), from a bound that holds with high probability; the longest gradient of a \
                    picture in a run without noise is longer. The raw products that the paper plots hold the noise of privacy, too.";
        Grid {
            title: "What the published noise takes for granted".into(),
            note: note.into(),
            columns: columns.map(String::from).into(),
            rows: SNRS.map(row).into(),
        }
    }

    /// (‖v‖ + ‖ξ‖)/m.
    fn assumed(&self, snr: f64) -> f64 {
        (1.0 + snr) * ((self.base.dimension - 1) as f64).sqrt() / 10.0
    }

    pub(super) fn claims(&self, outcomes: &Outcomes) -> Vec<Claim> {
        let end = |snr, kind, of: fn(&Moment) -> f64| {
            outcomes.median(&self.at(snr, kind), |course| of(course.end()))
        };
        let signal = |snr, kind| end(snr, kind, |m| m.signal);
        let memorised = |snr, kind| end(snr, kind, |m| m.memorised);
        let pushed = |snr, kind| end(snr, kind, |m| m.pushed_away);
        let error = |snr, kind| outcomes.median(&self.at(snr, kind), |c| c.test_error);
        let over = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
        use Kind::{Honest, Plain, Published};
        vec![
            Claim::new(
                "without noise a signal of SNR 0.6 is learnt, and one of 0.2 is not: noise is memorised",
                PAPER,
                vec![
                    Check::within("0.6: signal", signal(0.6, Plain), 4.4, 4.9),
                    Check::below("0.6: memorised", memorised(0.6, Plain), 0.2),
                    Check::within("0.2: memorised", memorised(0.2, Plain), 3.5, 4.5),
                    Check::below("0.2: signal", signal(0.2, Plain), 0.01),
                ],
            ),
            Claim::new(
                "at SNR 0.6, epsilon 5 and 1 look like no noise (2a, 2b)",
                PAPER,
                [5.0, 1.0]
                    .map(|e| {
                        let what = format!("eps {e}: signal over that without noise");
                        let ratio = over(signal(0.6, Published(e)), signal(0.6, Plain));
                        Check::within(what, ratio, 0.9, 1.1)
                    })
                    .into(),
            ),
            Claim::new(
                "at SNR 0.6 and epsilon 0.2 memorisation no longer stays below the signal (2c)",
                PAPER,
                vec![Check::above(
                    "memorised over signal",
                    over(memorised(0.6, Published(0.2)), signal(0.6, Published(0.2))),
                    1.0,
                )],
            ),
            Claim::new(
                "at SNR 0.6 and epsilon 0.2 memorisation grows at least tenfold",
                OURS,
                vec![Check::above(
                    "over that without noise",
                    over(memorised(0.6, Published(0.2)), memorised(0.6, Plain)),
                    10.0,
                )],
            ),
            Claim::new(
                "SNR 3 repairs it (2d)",
                PAPER,
                vec![Check::below(
                    "memorised over signal",
                    over(memorised(3.0, Published(0.2)), signal(3.0, Published(0.2))),
                    0.01,
                )],
            ),
            Claim::new(
                "at SNR 0.2 memorisation wins at every epsilon (2e to 2g)",
                PAPER,
                EPSILONS
                    .map(|e| {
                        let ratio = over(memorised(0.2, Published(e)), signal(0.2, Published(e)));
                        Check::above(format!("eps {e}: memorised over signal"), ratio, 1.0)
                    })
                    .into(),
            ),
            Claim::new(
                "at SNR 0.2 and epsilon 0.2 other filters memorise more, too (2h)",
                PAPER,
                vec![Check::above(
                    "pushed away, over that without noise",
                    over(pushed(0.2, Published(0.2)), pushed(0.2, Plain)),
                    1.5,
                )],
            ),
            self.no_guarantee(outcomes),
            Claim::new(
                "with calibrated noise nothing is memorised at SNR 0.2: training and test fail together",
                OURS,
                EPSILONS
                    .into_iter()
                    .flat_map(|e| {
                        let cell = self.at(0.2, Honest(e));
                        let training = outcomes.median(&cell, |c| c.training_error);
                        [
                            Check::below(
                                format!("eps {e}: memorised"),
                                memorised(0.2, Honest(e)),
                                1.0,
                            ),
                            Check::above(format!("eps {e}: training error"), training, 0.1),
                            Check::above(
                                format!("eps {e}: test error"),
                                error(0.2, Honest(e)),
                                0.3,
                            ),
                        ]
                    })
                    .collect(),
            ),
        ]
    }

    /// The published noise, priced as if its sensitivity were right, and the sensitivity.
    fn no_guarantee(&self, outcomes: &Outcomes) -> Claim {
        let mut checks = vec![];
        for epsilon in EPSILONS {
            let noise = (2.0 * (1.25 / DELTA).ln()).sqrt() / epsilon;
            let run = Event::gaussian(noise).and_then(|e| e.repeat(self.base.steps));
            let price =
                run.and_then(|e| quietly_accounting::epsilon(&e, Neighbours::AddRemove, DELTA));
            let ratio = price.ok().map(|p| p.lower / epsilon);
            checks.push(Check::above(
                format!("eps {epsilon}: cost of all steps over it"),
                ratio,
                5.0,
            ));
        }
        for snr in SNRS {
            let longest = outcomes.median(&self.at(snr, Kind::Plain), steepest);
            let ratio = longest.map(|g| g / self.assumed(snr));
            checks.push(Check::above(
                format!("SNR {snr}: longest gradient over the assumed"),
                ratio,
                1.0,
            ));
        }
        Claim::new(
            "the published noise keeps no promise: steps are not composed, gradients are longer than assumed",
            OURS,
            checks,
        )
    }

    pub(super) fn pictures(&self, outcomes: &Outcomes) -> Vec<(String, String, String)> {
        let line = |name: &str, cell: &Cell, reference: bool, of: fn(&Moment) -> f64| {
            let moments = outcomes.find(cell).first().map_or(&[][..], |c| &c.moments);
            let every = (moments.len() / 50).max(1);
            let shown = moments.iter().step_by(every).map(|m| {
                let y = of(m);
                Point { x: m.step as f64, y, low: y, high: y }
            });
            Series { name: name.into(), points: shown.collect(), reference }
        };
        let axis = |label: &str| Axis { log: false, ..Axis::log(label) };
        let chart = |file: char, title: String, series: Vec<Series>| {
            let chart = Chart {
                title: title.clone(),
                x: axis("step"),
                y: axis("largest in a filter"),
                series,
            };
            (format!("figure-2{file}.svg"), title, chart.svg())
        };
        let mut all = vec![];
        for (letter, snr, epsilon) in PANELS {
            let (plain, noisy) =
                (self.at(snr, Kind::Plain), self.at(snr, Kind::Published(epsilon)));
            let title = format!(
                "2{letter}: SNR {snr}, published noise for epsilon {epsilon}, no guarantee"
            );
            let memorised: fn(&Moment) -> f64 = |m| m.memorised.max(m.pushed_away);
            all.push(chart(
                letter,
                title,
                vec![
                    line("signal", &noisy, false, |m| m.signal),
                    line("memorised", &noisy, false, memorised),
                    line("signal, no noise", &plain, true, |m| m.signal),
                    line("memorised, no noise", &plain, true, memorised),
                ],
            ));
        }
        let (plain, noisy) = (self.at(0.2, Kind::Plain), self.at(0.2, Kind::Published(0.2)));
        let title = "2h: memorised by filters of the same and of the other label, SNR 0.2, epsilon 0.2, no guarantee";
        all.push(chart(
            'h',
            title.into(),
            vec![
                line("same label", &noisy, false, |m| m.memorised),
                line("other label", &noisy, false, |m| m.pushed_away),
                line("same label, no noise", &plain, true, |m| m.memorised),
                line("other label, no noise", &plain, true, |m| m.pushed_away),
            ],
        ));
        all
    }
}

/// The longest gradient of one picture in a run.
fn steepest(course: &Course) -> f64 {
    course.moments.iter().map(|m| m.steepest).fold(0.0, f64::max)
}
