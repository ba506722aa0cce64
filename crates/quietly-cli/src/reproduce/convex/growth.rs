//! Rates under growth: the hard instance of the lower bounds, where everything is known.
//!
//! F(w) = -⟨w, z⟩ + ‖w‖^θ/θ, z the mean of rows in {±d^-½}^d; w* = z‖z‖^-(θ-2)/(θ-1), and F grows like ‖w - w*‖^θ.
use std::ops::ControlFlow;

use quietly::{Budget, Convex, Key, Loss, Method, Neighbours, Plan, Private, Set, Table};

use super::problem::{AMP, ERM, ITERATED, PHASED, PSA, SC, delta};
use crate::{
    chart::{Axis, Chart, Point, Series},
    failure::Failure,
    reproduce::{
        Draw, Size,
        claim::{Check, Claim, slope},
        report::{Entry, Grid},
        world::Normals,
    },
    screen::Progress,
    trial,
};

const THETAS: [f64; 2] = [2.0, 4.0];
const MEAN: &str = "noisy mean";
const BOUND: &str = "lower bound";
/// The paper's methods, for slopes.
const SUBJECTS: [&str; 4] = [PHASED, PSA, ITERATED[1], "psa-ii"];
const METHODS: [&str; 10] =
    [PHASED, PSA, SC, ITERATED[1], "psa-ii", ERM, "dp-gd", AMP, MEAN, "nothing learnt"];

/// What is run.
pub(super) struct Growing {
    width: usize,
    rows: Vec<usize>,
    /// The size at which budgets vary, and the budget at which sizes do.
    base: (usize, f64),
    epsilons: Vec<f64>,
    runs: u64,
}

/// Excess risks of one method at one place, for both means.
struct Risk {
    theta: f64,
    rows: usize,
    epsilon: f64,
    method: &'static str,
    plan: Option<Plan>,
    /// For a mean that is well above the noise, and for one at its level.
    values: [Vec<f64>; 2],
}

/// All of them.
pub(super) struct Risks<'a> {
    growing: &'a Growing,
    risks: Vec<Risk>,
}

/// θ/(θ-1).
fn power(theta: f64) -> f64 {
    theta / (theta - 1.0)
}

/// μ of a budget.
fn mu(rows: usize, epsilon: f64) -> f64 {
    quietly_accounting::gaussian_mu(epsilon, delta(rows)).unwrap_or(f64::NAN)
}

impl Growing {
    pub(super) fn new(size: Size) -> Growing {
        let full = Growing {
            width: 40,
            rows: vec![2000, 4000, 8000, 16_000, 32_000, 64_000],
            base: (8000, 0.2),
            epsilons: vec![0.05, 0.1, 0.2, 0.4, 0.8],
            runs: 20,
        };
        match size {
            Size::Full => full,
            Size::Quick => Growing {
                rows: vec![2000, 8000, 32_000],
                epsilons: vec![0.1, 0.2, 0.4],
                runs: 6,
                ..full
            },
            Size::Tiny => Growing {
                width: 4,
                rows: vec![200, 400],
                base: (400, 1.0),
                epsilons: vec![0.5, 1.0],
                runs: 1,
            },
        }
    }

    pub(super) fn about(&self) -> String {
        format!(
            "Growth: -<w, z> + ||w||^theta/theta on the unit ball, theta 2 and 4, z the mean of rows in {{-1, 1}}^d/sqrt(d), d {}. Each \
             number is the mean excess risk of {} runs, of the harder of two means: ||z|| = 1/2, and ||z|| at the level of the noise, \
             where F is flat. It is computed exactly. Sizes {:?} at epsilon {}, budgets {:?} at n = {}.",
            self.width, self.runs, self.rows, self.base.1, self.epsilons, self.base.0
        )
    }

    /// Sizes and budgets, without repeats.
    fn places(&self) -> Vec<(usize, f64)> {
        let mut places: Vec<(usize, f64)> = self.rows.iter().map(|n| (*n, self.base.1)).collect();
        places.extend(self.epsilons.iter().map(|e| (self.base.0, *e)));
        places.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
        places.dedup();
        places
    }

    /// The error of a private mean, about: of sampling, and of noise.
    fn level(&self, rows: usize, epsilon: f64) -> f64 {
        let n = rows as f64;
        1.0 / n.sqrt() + 2.0 * (self.width as f64).sqrt() / (n * mu(rows, epsilon))
    }

    /// ‖z‖ of both means.
    fn norms(&self, rows: usize, epsilon: f64) -> [f64; 2] {
        [0.5, self.level(rows, epsilon).min(0.5)]
    }

    /// For unbiased estimates of the mean E‖ẑ - z‖² ≥ d/(n²(exp μ² - 1)), by the tracing attack; half of it is F's excess for θ = 2.
    fn lower_bound(&self, theta: f64, rows: usize, epsilon: f64) -> f64 {
        let mu = mu(rows, epsilon);
        let off = (self.width as f64 / (mu * mu).exp_m1()).sqrt() / rows as f64;
        off.powf(power(theta)) / theta
    }

    fn plan(&self, theta: f64, rows: usize, epsilon: f64, method: &str) -> Option<Plan> {
        let named = if method == ITERATED[1] { "iterated-phased-sgd" } else { method };
        let mut convex = Convex::new(Loss::Margin)
            .method(Method::named(named)?)
            .within(Set::L2 { radius: 1.0 })
            .constant(0.0)
            .rows_within(1.0)
            .known_radius();
        // A square is a ridge, which all methods know.
        convex = if theta == 2.0 { convex.ridge(1.0) } else { convex.power(theta, 1.0) };
        convex = match method {
            "psa-ii" | SC => convex.growing(theta, 2f64.powf(2.0 - theta) / theta),
            _ if method == ITERATED[1] => convex.growing(2.0, 1.0),
            _ => convex,
        };
        let budget = Budget::new(epsilon, delta(rows)).ok()?.under(Neighbours::ReplaceOne);
        convex.plan(rows as u64, self.width, budget).ok()
    }
}

/// F(w) - F(w*).
fn excess(theta: f64, z: &[f64], w: &[f64]) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let along: f64 = w.iter().zip(z).map(|(w, z)| w * z).sum();
    norm(w).powf(theta) / theta - along + norm(z).powf(power(theta)) / power(theta)
}

/// The minimiser for the mean `z`, within the unit ball.
fn minimiser(theta: f64, z: &[f64]) -> Vec<f64> {
    let norm = z.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let long = norm.powf(1.0 / (theta - 1.0)).min(1.0);
    z.iter().map(|z| z * long / norm).collect()
}

impl Risks<'_> {
    pub(super) fn measure<'a>(
        growing: &'a Growing,
        draw: Draw,
        progress: &Progress,
    ) -> Result<Risks<'a>, Failure> {
        let mut asked = vec![];
        for theta in THETAS {
            for (rows, epsilon) in growing.places() {
                asked.extend(METHODS.map(|method| (theta, rows, epsilon, method)));
            }
        }
        let plans = trial::all(&asked, draw.threads, &|_| (), |&(theta, rows, epsilon, method)| {
            growing.plan(theta, rows, epsilon, method)
        });
        let mut risks = vec![];
        for ((theta, rows, epsilon, method), plan) in asked.into_iter().zip(plans) {
            risks.push(Risk { theta, rows, epsilon, method, plan, values: [vec![], vec![]] });
        }
        let mut jobs = vec![];
        for (rows, epsilon) in growing.places() {
            for which in 0..2 {
                jobs.extend((0..growing.runs).map(|run| (rows, epsilon, which, run)));
            }
        }
        jobs.sort_by_key(|job| std::cmp::Reverse(job.0));
        let told = |done| progress.say(&format!("growth: {done} of {} samples", jobs.len()));
        let found = trial::all(&jobs, draw.threads, &told, |&(rows, epsilon, which, run)| {
            let norm = growing.norms(rows, epsilon)[which];
            let seed = (draw.seed << 40) + (run << 20) + ((which as u64) << 19);
            let law = Law::draw(growing.width, rows, norm, Key::from_seed(seed))?;
            let mut values = vec![];
            let here = |risk: &Risk| (risk.rows, risk.epsilon) == (rows, epsilon);
            for (i, risk) in risks.iter().enumerate().filter(|(_, risk)| here(risk)) {
                let key = Key::from_seed(seed + 1 + i as u64);
                if let Some(w) = law.fit(risk, key)? {
                    values.push((i, excess(risk.theta, &law.mean, &w)));
                }
            }
            Ok::<_, Failure>((which, values))
        });
        for job in found {
            let (which, values) = job?;
            values.into_iter().for_each(|(i, value)| risks[i].values[which].push(value));
        }
        Ok(Risks { growing, risks })
    }

    /// The mean excess risk of the harder mean.
    fn risk(&self, theta: f64, rows: usize, epsilon: f64, method: &str) -> Option<f64> {
        if method == BOUND {
            return Some(self.growing.lower_bound(theta, rows, epsilon));
        }
        let here = |r: &&Risk| (r.theta, r.rows, r.epsilon) == (theta, rows, epsilon);
        let risk = self.risks.iter().find(|r| here(r) && r.method == method)?;
        let mean = |v: &Vec<f64>| v.iter().sum::<f64>() / v.len() as f64;
        let filled = risk.values.iter().filter(|v| !v.is_empty());
        filled.map(mean).reduce(f64::max)
    }

    /// Points over sizes or over budgets.
    fn points(
        &self,
        theta: f64,
        by_size: bool,
        of: &dyn Fn(usize, f64) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let (rows, epsilon) = self.growing.base;
        let _ = theta;
        match by_size {
            true => {
                let sizes = self.growing.rows.iter();
                sizes.filter_map(|n| Some((*n as f64, of(*n, epsilon)?))).collect()
            }
            false => {
                let all = self.growing.epsilons.iter();
                all.filter_map(|e| Some((*e, of(rows, *e)?))).collect()
            }
        }
    }

    fn slope(&self, theta: f64, by_size: bool, method: &str) -> Option<f64> {
        slope(&self.points(theta, by_size, &|n, e| self.risk(theta, n, e, method)))
    }

    /// The slope of (1/√n + √d G/nμ)^(θ/(θ-1)), the upper bounds' rate.
    fn theory(&self, theta: f64, by_size: bool) -> f64 {
        let rate = |n: usize, e: f64| Some(self.growing.level(n, e).powf(power(theta)));
        slope(&self.points(theta, by_size, &rate)).unwrap_or(f64::NAN)
    }

    pub(super) fn claims(&self) -> Vec<Claim> {
        let mut claims = vec![];
        for theta in THETAS {
            for (by_size, over) in [(true, "n"), (false, "epsilon")] {
                let theory = self.theory(theta, by_size);
                let check = |method: &&str| {
                    let slope = self.slope(theta, by_size, method);
                    Check::within(format!("{method}:"), slope, theory - 0.4, theory + 0.4)
                };
                claims.push(Claim::new(
                    format!(
                        "growth with theta {theta}: the slope of the risk in {over} is that of (1/sqrt(n) + sqrt(d)/(n eps))^{:.2} here, {theory:.2}, within 0.4",
                        power(theta)
                    ),
                    "SHW, Theorems 11, 12 and 14",
                    SUBJECTS.iter().map(check).collect(),
                ));
            }
            let (rows, epsilon) = self.growing.base;
            let over = |method: &str| {
                let bound = self.growing.lower_bound(theta, rows, epsilon);
                self.risk(theta, rows, epsilon, method).map(|risk| risk / bound)
            };
            let near = [MEAN, PHASED, PSA, ITERATED[1]]
                .map(|method| Check::within(format!("{method}:"), over(method), 1.0, 100.0));
            claims.push(Claim::new(
                format!("theta {theta}: the risk is 1 to 100 times the lower bound, at n = {rows} and epsilon {epsilon}"),
                "SHW, Theorem 19; constants by our analysis",
                near.into(),
            ));
        }
        claims
    }

    pub(super) fn grids(&self) -> Vec<Grid> {
        let mut grids = vec![];
        for theta in THETAS {
            let mut columns = vec!["method".to_string()];
            columns.extend(self.growing.rows.iter().map(|n| format!("n {n}")));
            columns.push("slope in n".into());
            columns.extend(self.growing.epsilons.iter().map(|e| format!("eps {e}")));
            columns.push("slope in eps".into());
            let (base, epsilon) = self.growing.base;
            let mut rows = vec![];
            for method in METHODS.into_iter().chain([BOUND]) {
                let at = |n: usize, e: f64| Entry::of(self.risk(theta, n, e, method));
                let mut row = vec![Entry::Word(method.into())];
                row.extend(self.growing.rows.iter().map(|n| at(*n, epsilon)));
                row.push(Entry::of(self.slope(theta, true, method)));
                row.extend(self.growing.epsilons.iter().map(|e| at(base, *e)));
                row.push(Entry::of(self.slope(theta, false, method)));
                rows.push(row);
            }
            let mut theory = vec![Entry::Nothing; columns.len()];
            theory[0] = Entry::Word("theory's slope".into());
            theory[1 + self.growing.rows.len()] = Entry::Number(self.theory(theta, true));
            *theory.last_mut().expect("a row") = Entry::Number(self.theory(theta, false));
            rows.push(theory);
            grids.push(Grid {
                title: format!("Growth with theta {theta}: excess risk"),
                note: format!(
                    "Sizes at epsilon {epsilon}, budgets at n = {base}. \"Noisy mean\" releases the mean once and solves for w, a simulation: \
                     what the problem allows. \"Nothing learnt\" is w = 0. The lower bound is (1/theta) (d/(n^2 (exp(mu^2) - 1)))^(theta/(2 theta - 2)): \
                     privacy's part alone, for unbiased estimates at theta 2, and Theorem 19's order with the same constant at theta 4. AMP \
                     and Phased-ERM know no power but the square."
                ),
                columns,
                rows,
            });
        }
        grids
    }

    pub(super) fn pictures(&self) -> Vec<(String, String, String)> {
        let mut pictures = vec![];
        for theta in THETAS {
            for (by_size, over) in [(true, "n"), (false, "epsilon")] {
                let line = |method: &'static str| {
                    let points =
                        self.points(theta, by_size, &|n, e| self.risk(theta, n, e, method));
                    let point = |(x, y): (f64, f64)| Point { x, y, low: y, high: y };
                    let points: Vec<Point> = points.into_iter().map(point).collect();
                    let reference = [MEAN, BOUND, "nothing learnt"].contains(&method);
                    Series { name: method.into(), points, reference }
                };
                let all = METHODS.into_iter().chain([BOUND]).map(line);
                let series = all.filter(|s| !s.points.is_empty()).collect();
                let caption = format!("growth with theta {theta}: excess risk over {over}");
                let (x, y) = (Axis::log(over), Axis::log("excess risk"));
                let chart = Chart { title: caption.clone(), x, y, series };
                pictures.push((format!("growth-{theta}-{over}.svg"), caption, chart.svg()));
            }
        }
        pictures
    }
}

/// Rows of the hard instance.
struct Law {
    mean: Vec<f64>,
    average: Vec<f64>,
    table: Private<Table>,
}

impl Law {
    fn draw(width: usize, rows: usize, norm: f64, key: Key) -> Result<Law, Failure> {
        let mut bits = key.stream("rows").bits(0)?;
        let unit = (width as f64).sqrt().recip();
        let mut mean = vec![];
        for _ in 0..width {
            mean.push(if bits.below(2)? == 0 { -norm * unit } else { norm * unit });
        }
        let (mut features, mut average) = (Vec::with_capacity(rows * width), vec![0.0; width]);
        for _ in 0..rows {
            for (average, mean) in average.iter_mut().zip(&mean) {
                let chance = 0.5 + 0.5 * mean / unit;
                let up = ((bits.word()? >> 11) as f64) < chance * 2f64.powi(53);
                let x = if up { unit } else { -unit };
                features.push(x);
                *average += x / rows as f64;
            }
        }
        let table = Private::new(Table::new(width, features, vec![1.0; rows]));
        Ok(Law { mean, average, table })
    }

    /// The weights; none where there is no plan.
    fn fit(&self, risk: &Risk, key: Key) -> Result<Option<Vec<f64>>, Failure> {
        match (risk.method, &risk.plan) {
            ("nothing learnt", _) => Ok(Some(vec![0.0; self.mean.len()])),
            (MEAN, _) => {
                let mut noise = vec![0.0; self.mean.len()];
                Normals::new(key.stream("simulation").bits(0)?).fill(&mut noise)?;
                let sigma = 2.0 / (risk.rows as f64 * mu(risk.rows, risk.epsilon));
                let noisy = self.average.iter().zip(&noise).map(|(x, z)| x + sigma * z);
                Ok(Some(minimiser(risk.theta, &noisy.collect::<Vec<_>>())))
            }
            (_, Some(plan)) => {
                let quiet = &mut |_| ControlFlow::Continue(());
                let found = plan.learn(&self.table, (-1.0, 1.0), key, 1, quiet)?;
                Ok(Some(found.outputs[0].1.clone()))
            }
            _ => Ok(None),
        }
    }
}
