//! Private ReLU regression: what Ding, Lei, Wang, Zheng, Wang and Xu say, and what is measured.
use quietly::{
    Link, Method,
    svg::{Axis, Chart, Point, Series},
};
use quietly_cli::trial::{Entrant, Spread};

use crate::reproduce::{
    Size, Study,
    claim::{Check, Claim},
    measure::{Field, Scores},
    report::{Entry, Grid},
    sweep::{Over, Sweep, corners},
    world::Setting,
};

const TABLE: &str = "DLW, Table 4";
const SGD: &str = "dp-sgd";
const SGD_PASS: &str = "dp-sgd-one-pass";
const SGD_ROW: &str = "dp-sgd-one-row";
const GLMTRON: &str = "dp-glmtron";
const MINIBATCH: &str = "dp-mbglmtron";
const TREE: &str = "dp-taglmtron";
const ADAPTIVE: &str = "adaptive-gd";
const PGD: &str = "dp-pgd";

const FORMULA: &str = "(**) is 2 c(q) sigma^2 d/2N + 2 (theta_q/q)^2 sigma^2 d^2/(N^2 sum 1/m^2), with the noise m of the plan's \
                       gradients, d with the intercept, q where it clips; the first term doubles for one pass. It is left out where \
                       noise is too large for it (A > 1/40). The lower bound is sigma^2 d^2/(2 N^2 (exp(mu^2) - 1)), for \
                       unbiased estimators: privacy's part alone.";

/// The runs.
pub(crate) struct Relu {
    /// Setting T4, and T4L with five times as many rows.
    settings: Vec<(&'static str, Setting, u64)>,
    epsilons: Vec<f64>,
    sweep: Sweep,
}

fn law(rows: usize, width: usize) -> Setting {
    Setting { link: Link::Relu, rows, width, sigma: 1.0, kappa: 1.0, signal: 2.0 * width as f64 }
}

fn delta(setting: &Setting) -> f64 {
    (setting.rows as f64).powf(-1.1)
}

fn entrants(setting: &Setting) -> Vec<Entrant> {
    let pgd = Entrant { radius: Some(setting.radius()), ..Entrant::new(Method::DpPgd) };
    let mut all = vec![Entrant::plain(), Entrant::new(Method::DpSgd)];
    all.extend(
        [
            Method::DpSgdOnePass,
            Method::DpSgdOneRow,
            Method::DpGlmtron,
            Method::DpMbglmtron,
            Method::DpMbglmtronPublished,
            Method::DpTaglmtron,
            Method::AdaptiveGd,
            Method::FullBatch,
            Method::OnePass,
        ]
        .map(Entrant::new),
    );
    all.push(pgd);
    all
}

impl Relu {
    pub(crate) fn new(size: Size) -> Relu {
        let (small, large) = (law(8000, 20), law(40_000, 20));
        let settings = match size {
            Size::Full => vec![("T4", small, 10), ("T4L", large, 5)],
            Size::Quick => vec![("T4", small, 5)],
            Size::Tiny => vec![("T4", law(1000, 4), 1)],
        };
        let base = law(32_000, 20);
        let methods = [Method::DpMbglmtron, Method::AdaptiveGd, Method::FullBatch];
        let plain = std::iter::once(Entrant::plain());
        let sweep = Sweep {
            base,
            delta: delta(&base),
            epsilon: 0.2,
            rows: vec![16_000, 32_000, 64_000],
            widths: vec![10, 20, 40],
            sigmas: vec![0.3, 1.0, 3.0],
            epsilons: vec![0.1, 0.2, 0.4],
            seeds: 10,
            everywhere: plain.chain(methods.map(Entrant::new)).collect(),
            also: vec![Entrant::new(Method::DpSgd)],
            subjects: [ADAPTIVE, MINIBATCH],
            formula: "(**)",
            corners: if size == Size::Full { corners(base) } else { vec![] },
        };
        let sweep = match size {
            Size::Full => sweep,
            Size::Quick => Sweep { widths: vec![10, 20, 40], seeds: 15, ..sweep },
            Size::Tiny => {
                let base = law(3000, 4);
                let (rows, widths, sigmas) = (vec![1500, 3000], vec![4, 8], vec![0.5, 1.0]);
                let small = Sweep { base, rows, widths, sigmas, epsilon: 1.0, ..sweep };
                Sweep { delta: delta(&base), epsilons: vec![0.5, 1.0], seeds: 2, ..small }
            }
        };
        let epsilons = if size == Size::Tiny { vec![0.2, 0.5] } else { vec![0.05, 0.2, 0.5] };
        Relu { settings, epsilons, sweep }
    }
}

impl Study for Relu {
    fn about(&self) -> Vec<String> {
        let mut lines = vec![
            "Features are N(0, I), the target is max(<x, w*>, 0) + sigma z with ||w*||^2 = 2d; replace-one. The excess risk is \
             (1/2) the mean of (max(<x, w> + b, 0) - max(<x, w*>, 0))^2 over 2000 fresh rows, or over those of the table. Numbers \
             are medians over tables. Methods of one row a step (dp-glmtron and dp-sgd-one-row) have 200 public rows for their \
             thresholds; DP-PGD knows ||w*||; dp-sgd takes Poisson samples of a twentieth of the rows, and its two other \
             forms differ from DP-MBGLMtron and DP-GLMtron in the gradient alone."
                .into(),
            "The paper prints neither d, N, w*, sigma nor the steps of its Table 4: its numbers cannot be reproduced, only its \
             comparison, on a problem of the same scale (the zero model has a risk of about 10)."
                .into(),
        ];
        for (name, s, seeds) in &self.settings {
            lines.push(format!(
                "Setting {name}: N {}, d {}, sigma 1, delta N^-1.1, epsilon in {:?}; {seeds} seeds.",
                s.rows, s.width, self.epsilons
            ));
        }
        lines.push(self.sweep.about());
        lines
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = self.sweep.fields();
        fields.extend(self.settings.iter().map(|(_, setting, seeds)| Field {
            setting: *setting,
            delta: delta(setting),
            epsilons: self.epsilons.clone(),
            entrants: entrants(setting),
            seeds: *seeds,
        }));
        fields
    }

    fn tables(&self, scores: &Scores) -> Vec<Grid> {
        let mut tables = vec![];
        for (name, setting, _) in &self.settings {
            let mut columns = vec!["method".to_string()];
            for e in &self.epsilons {
                columns.extend([format!("test, eps {e}"), format!("training, eps {e}")]);
            }
            let mut rows = vec![];
            for entrant in entrants(setting) {
                let mut row = vec![Entry::Word(entrant.name.clone())];
                for &e in &self.epsilons {
                    let score = scores.find(setting, &entrant.name, e);
                    row.push(score.map_or(Entry::Nothing, |s| s.entry()));
                    let train = score.filter(|s| !s.train.is_empty());
                    row.push(Entry::of(train.map(|s| Spread::of(&s.train).median)));
                }
                rows.push(row);
            }
            let note = "The zero model has about ||w*||^2/4. † another method was planned.".into();
            tables.push(Grid {
                title: format!("Excess risk, setting {name}"),
                note,
                columns,
                rows,
            });
        }
        tables.extend([self.sweep.slopes(scores), self.sweep.formulas(scores, FORMULA)]);
        tables
    }

    fn claims(&self, scores: &Scores) -> Vec<Claim> {
        let setting = &self.settings[0].1;
        let risk = |name: &str, e: f64| scores.risk(setting, name, e);
        let ratio = |e: f64, a: &str, b: &str| scores.ratio(e, (setting, a), (setting, b));
        let each = |from: f64, check: &dyn Fn(f64, String) -> Check| -> Vec<Check> {
            let wanted = self.epsilons.iter().filter(|e| **e >= from);
            wanted.map(|e| check(*e, format!("eps {e}:"))).collect()
        };
        let order = |says: &str, from, worse: &'static str, better: &'static str, least: f64| {
            let check = |e: f64, what: String| Check::above(what, ratio(e, worse, better), least);
            Claim::new(says, from, each(0.0, &check))
        };
        let strongest = self.epsilons[0];
        let best = risk(SGD_PASS, strongest).zip(risk(GLMTRON, strongest)).map(|(a, b)| a.min(b));
        let lead = risk(MINIBATCH, strongest).zip(best).map(|(a, b)| a / b);
        let mut claims = vec![
            Claim::new(
                format!(
                    "at epsilon {strongest} DP-MBGLMtron is best: below 0.7 of DP-SGD in one pass and of DP-GLMtron, and below 5"
                ),
                TABLE,
                vec![
                    Check::below("over the better of the two:", lead, 0.7),
                    Check::below("risk:", risk(MINIBATCH, strongest), 5.0),
                ],
            ),
            Claim::new(
                "from epsilon 0.2 on DP-MBGLMtron's risk is below 0.1, of 10 for the zero model",
                "our analysis of DLW's method",
                each(0.2, &|e, what| Check::below(what, risk(MINIBATCH, e), 0.1)),
            ),
            order("one row a step, DP-GLMtron beats DP-SGD", TABLE, SGD_ROW, GLMTRON, 1.0),
            order("DP-MBGLMtron beats DP-GLMtron", TABLE, GLMTRON, MINIBATCH, 1.0),
            order("in one pass, DP-MBGLMtron beats DP-SGD", TABLE, SGD_PASS, MINIBATCH, 1.0),
            order("DP-MBGLMtron beats DP-SGD by Poisson samples", TABLE, SGD, MINIBATCH, 1.0),
            order("DP-MBGLMtron beats DP-TAGLMtron", TABLE, TREE, MINIBATCH, 1.0),
            order("DP-TAGLMtron beats DP-GLMtron", TABLE, GLMTRON, TREE, 1.0),
            order("DP-TAGLMtron beats DP-SGD, one row a step", TABLE, SGD_ROW, TREE, 1.0),
            Claim::new(
                "DP-PGD has at least ten times the risk of DP-MBGLMtron, from epsilon 0.2 on",
                "DLW, against Shen et al.",
                each(0.2, &|e, what| Check::above(what, ratio(e, PGD, MINIBATCH), 10.0)),
            ),
            Claim::new(
                "random allocation beats the published sampler at least twofold",
                "our analysis of DLW's method",
                each(0.0, &|e, what| {
                    Check::above(what, ratio(e, "dp-mbglmtron-published", MINIBATCH), 2.0)
                }),
            ),
            Claim::new(
                "from epsilon 0.2 on the default is within a factor of 2 of the best of the papers' methods",
                "this library",
                each(0.2, &|e, what| {
                    let rivals = [SGD, SGD_PASS, SGD_ROW, GLMTRON, MINIBATCH, TREE, PGD];
                    let best = rivals.iter().filter_map(|m| risk(m, e)).reduce(f64::min);
                    Check::below(what, risk("full-batch", e).zip(best).map(|(a, b)| a / b), 2.0)
                }),
            ),
        ];
        for (says, over) in [
            ("what privacy adds to the risk falls as N^-2", Over::Rows),
            ("it grows as d^2", Over::Width),
            ("it falls as epsilon^-2", Over::Epsilon),
            ("it is proportional to sigma^2", Over::Sigma),
        ] {
            claims.push(Claim::new(says, "DLW, Theorem 4", self.sweep.slope_checks(scores, over)));
        }
        claims.extend(self.sweep.formula_claims(scores));
        claims
    }

    fn pictures(&self, scores: &Scores) -> Vec<(String, String, String)> {
        let mut pictures = vec![];
        for (name, setting, _) in &self.settings {
            let line = |entrant: Entrant| {
                let point = |&e: &f64| scores.find(setting, &entrant.name, e)?.point(e);
                let points: Vec<Point> = self.epsilons.iter().filter_map(point).collect();
                let reference = entrant.method == Method::Exact;
                Series { name: entrant.name, points, reference }
            };
            let series = entrants(setting).into_iter().map(line).collect();
            let caption = format!("setting {name}: excess risk against epsilon");
            let y = Axis { ceiling: 100.0, ..Axis::log("excess risk on fresh rows") };
            let chart = Chart { title: caption.clone(), x: Axis::log("epsilon"), y, series };
            pictures.push((format!("{}.svg", name.to_lowercase()), caption, chart.svg()));
        }
        pictures.extend(self.sweep.pictures(scores));
        pictures
    }
}
