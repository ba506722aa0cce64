//! Sweeps, which vary one parameter at a time: slopes, formulas and charts.
use quietly::svg::{Axis, Chart, Point, Series};
use quietly_cli::trial::Entrant;

use crate::reproduce::{
    claim::{Check, Claim, slope},
    measure::{Field, Score, Scores},
    report::{Entry, Grid},
    world::Setting,
};

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Rows,
    Width,
    Sigma,
    Epsilon,
}

impl Over {
    pub(crate) const ALL: [Over; 4] = [Over::Rows, Over::Width, Over::Sigma, Over::Epsilon];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Over::Rows => "N",
            Over::Width => "d",
            Over::Sigma => "sigma",
            Over::Epsilon => "epsilon",
        }
    }

    /// The exponent of what privacy adds, and what is accepted for it.
    pub(crate) fn theory(self) -> (f64, f64, f64) {
        match self {
            Over::Rows => (-2.0, -2.4, -1.7),
            // 12 to 35 times from d = 10 to 50.
            Over::Width => (2.0, 1.54, 2.21),
            // 50 to 200 times from sigma = 0.1 to 1.
            Over::Sigma => (2.0, 1.7, 2.3),
            // The Gaussian parameter is not quite proportional to epsilon.
            Over::Epsilon => (-2.0, -2.4, -1.6),
        }
    }
}

/// A middle, and what is varied around it.
pub(crate) struct Sweep {
    pub(crate) base: Setting,
    pub(crate) delta: f64,
    pub(crate) epsilon: f64,
    pub(crate) rows: Vec<usize>,
    pub(crate) widths: Vec<usize>,
    pub(crate) sigmas: Vec<f64>,
    pub(crate) epsilons: Vec<f64>,
    pub(crate) seeds: u64,
    /// Who is tried everywhere, and who only where sigma varies.
    pub(crate) everywhere: Vec<Entrant>,
    pub(crate) also: Vec<Entrant>,
    /// What formula and slopes are about.
    pub(crate) subjects: [&'static str; 2],
    pub(crate) formula: &'static str,
    /// Where else the formula is tried, on its subjects.
    pub(crate) corners: Vec<(Setting, f64)>,
}

/// N, d, sigma and epsilon varied together around a law, with ||w*|| = 1.
pub(crate) fn corners(law: Setting) -> Vec<(Setting, f64)> {
    let mut corners = vec![];
    for rows in [20_000, 40_000, 80_000, 160_000] {
        for width in [10, 50] {
            for sigma in [0.1, 1.0] {
                let law = Setting { rows, width, sigma, signal: 1.0, ..law };
                corners.extend([0.1, 1.0].map(|epsilon| (law, epsilon)));
            }
        }
    }
    corners
}

impl Sweep {
    /// The points of a sweep: position, setting and ε.
    pub(crate) fn cells(&self, over: Over) -> Vec<(f64, Setting, f64)> {
        let (base, e) = (self.base, self.epsilon);
        match over {
            Over::Rows => {
                self.rows.iter().map(|&rows| (rows as f64, Setting { rows, ..base }, e)).collect()
            }
            Over::Width => {
                let at = |&width: &usize| (width as f64, Setting { width, ..base }, e);
                self.widths.iter().map(at).collect()
            }
            Over::Sigma => {
                self.sigmas.iter().map(|&sigma| (sigma, Setting { sigma, ..base }, e)).collect()
            }
            Over::Epsilon => self.epsilons.iter().map(|&e| (e, base, e)).collect(),
        }
    }

    pub(crate) fn fields(&self) -> Vec<Field> {
        let field = |setting, epsilon, entrants: &[Entrant]| {
            let (delta, seeds, entrants) = (self.delta, self.seeds, entrants.to_vec());
            Field { setting, delta, epsilons: vec![epsilon], entrants, seeds }
        };
        let mut fields: Vec<Field> = vec![];
        // The middle comes first, with all budgets; no law comes twice.
        let order = [Over::Epsilon, Over::Sigma, Over::Rows, Over::Width];
        for over in order {
            for (_, setting, epsilon) in self.cells(over) {
                let known = fields.iter_mut().find(|f| f.setting == setting);
                if let Some(field) = known {
                    if !field.epsilons.contains(&epsilon) {
                        field.epsilons.push(epsilon);
                    }
                    continue;
                }
                fields.push(field(setting, epsilon, &self.everywhere));
            }
        }
        let sigmas = self.cells(Over::Sigma);
        fields.extend(sigmas.into_iter().map(|(_, s, e)| field(s, e, &self.also)));
        let subject = |e: &&Entrant| self.subjects.contains(&e.name.as_str());
        let subjects: Vec<Entrant> = self.everywhere.iter().filter(subject).cloned().collect();
        for &(setting, epsilon) in &self.corners {
            fields.push(Field { seeds: self.seeds.min(9), ..field(setting, epsilon, &subjects) });
        }
        fields
    }

    /// What is varied, in a sentence.
    pub(crate) fn about(&self) -> String {
        let list = |over: Over| {
            self.cells(over).iter().map(|c| c.0.to_string()).collect::<Vec<_>>().join(", ")
        };
        let parts = Over::ALL.map(|over| format!("{} in {{{}}}", over.name(), list(over)));
        let Setting { rows, width, sigma, .. } = self.base;
        format!(
            "The sweeps, around N {rows}, d {width}, sigma {sigma}, kappa 1, epsilon {}: {}; {} seeds.{}",
            self.epsilon,
            parts.join(", "),
            self.seeds,
            if self.corners.is_empty() {
                ""
            } else {
                " The formula also at N in {20000, 40000, 80000, 160000}, d in {10, 50}, sigma in {0.1, 1}, epsilon in {0.1, 1}, \
                 ||w*|| = 1; up to 9 seeds."
            }
        )
    }

    /// The slope of what privacy adds.
    pub(crate) fn slope(&self, scores: &Scores, name: &str, over: Over) -> Option<f64> {
        let part = |(x, s, e): (f64, Setting, f64)| {
            // The intercept counts as a weight.
            let x = if over == Over::Width { x + 1.0 } else { x };
            Some((x, scores.find(&s, name, e)?.private_part()?))
        };
        slope(&self.cells(over).into_iter().filter_map(part).collect::<Vec<_>>())
    }

    pub(crate) fn slope_checks(&self, scores: &Scores, over: Over) -> Vec<Check> {
        let (_, from, to) = over.theory();
        let check = |name: &str| {
            Check::within(format!("{name}: slope"), self.slope(scores, name, over), from, to)
        };
        self.subjects.map(check).into()
    }

    pub(crate) fn slopes(&self, scores: &Scores) -> Grid {
        let columns = ["method", "in", "slope", "theory", "accepted"].map(String::from);
        let mut rows = vec![];
        for name in self.subjects {
            for over in Over::ALL {
                let (theory, from, to) = over.theory();
                rows.push(vec![
                    Entry::Word(name.into()),
                    Entry::Word(over.name().into()),
                    Entry::of(self.slope(scores, name, over)),
                    Entry::Number(theory),
                    Entry::Word(format!("{from} to {to}")),
                ]);
            }
        }
        let note = "What finitely many rows cost anyway (twice that for one pass) is taken off; points where less than a \
                    tenth is left are left out.";
        let title = "Slopes of what privacy adds to the risk, on log axes".into();
        Grid { title, note: note.into(), columns: columns.into(), rows }
    }

    /// Every cell of every sweep, once.
    fn scores<'a>(&self, scores: &'a Scores, name: &str) -> Vec<&'a Score> {
        let mut seen: Vec<(Setting, f64)> = vec![];
        let cells = Over::ALL.iter().flat_map(|over| self.cells(*over)).map(|(_, s, e)| (s, e));
        for (setting, epsilon) in cells.chain(self.corners.iter().copied()) {
            if !seen.contains(&(setting, epsilon)) {
                seen.push((setting, epsilon));
            }
        }
        seen.iter().filter_map(|(s, e)| scores.find(s, name, *e)).collect()
    }

    pub(crate) fn formulas(&self, scores: &Scores, note: &str) -> Grid {
        let formula = format!("formula {}", self.formula);
        let columns =
            ["method", "epsilon", "N", "d", "sigma", "measured", &formula, "ratio", "lower bound"];
        let mut rows = vec![];
        for score in self.subjects.iter().flat_map(|name| self.scores(scores, name)) {
            let s = score.setting;
            let predicted = score.predicted().map(|p| p.0);
            rows.push(vec![
                Entry::Word(score.entrant.name.clone()),
                Entry::Number(score.epsilon),
                Entry::Word(s.rows.to_string()),
                Entry::Word(s.width.to_string()),
                Entry::Number(s.sigma),
                score.entry(),
                Entry::of(predicted),
                Entry::of(score.own().zip(predicted).map(|(m, p)| m / p)),
                Entry::of(score.lower_bound()),
            ]);
        }
        let title = format!("Formula {} and the lower bound", self.formula);
        Grid { title, note: note.into(), columns: columns.map(String::from).into(), rows }
    }

    /// The formula within a factor of two, and privacy's part against the lower bound, wherever the formula is meant to hold.
    pub(crate) fn formula_claims(&self, scores: &Scores) -> [Claim; 2] {
        let (mut ratios, mut bounds) = (vec![], vec![]);
        for score in self.subjects.iter().flat_map(|name| self.scores(scores, name)) {
            let Some((predicted, _)) = score.predicted() else { continue };
            let Setting { rows, width, sigma, .. } = score.setting;
            let name = &score.entrant.name;
            let what =
                format!("{name}, eps {}, N {rows}, d {width}, sigma {sigma}:", score.epsilon);
            let ratio = score.own().map(|m| m / predicted);
            ratios.push(Check::within(&what, ratio, 0.5, 2.0));
            let (part, bound) = (score.private_part(), score.lower_bound());
            if let (Some(part), Some(bound)) = (part, bound) {
                bounds.push(Check::within(what, Some(part / bound), 1.0, 60.0));
            }
        }
        [
            Claim::new(
                format!("formula {} gives the risk within a factor of 2", self.formula),
                "our analysis of the papers' methods",
                ratios,
            ),
            Claim::new(
                "nearly optimal: what privacy adds is 1 to 60 times the lower bound, whatever N, d, sigma and epsilon",
                "both papers' titles; constants by our analysis",
                bounds,
            ),
        ]
    }

    pub(crate) fn pictures(&self, scores: &Scores) -> Vec<(String, String, String)> {
        let all = self.everywhere.iter().chain(&self.also).map(|e| &e.name);
        let names: Vec<&String> = all.collect();
        let picture = |over: Over| {
            let cells = self.cells(over);
            let mut series = vec![];
            for (i, name) in names.iter().enumerate() {
                let point = |(x, s, e): &(f64, Setting, f64)| scores.find(s, name, *e)?.point(*x);
                let points: Vec<Point> = cells.iter().filter_map(point).collect();
                if !points.is_empty() {
                    series.push(Series { name: (*name).clone(), points, reference: i == 0 });
                }
            }
            let bound = |(x, s, e): &(f64, Setting, f64)| {
                let y = scores.find(s, self.subjects[0], *e)?.lower_bound()?;
                Some(Point { x: *x, y, low: y, high: y })
            };
            let points = cells.iter().filter_map(bound).collect();
            series.push(Series { name: "lower bound".into(), points, reference: true });
            let caption = format!("excess risk against {}", over.name());
            let y = Axis { ceiling: 100.0, ..Axis::log("excess risk") };
            let chart = Chart { title: caption.clone(), x: Axis::log(over.name()), y, series };
            (format!("risk-{}.svg", over.name()), caption, chart.svg())
        };
        Over::ALL.map(picture).into()
    }
}
