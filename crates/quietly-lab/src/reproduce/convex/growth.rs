//! Risks under growth, measured on the hard instance.

use quietly::{Charge, FitInput, FitOptions, Key, Plan};
use quietly_cli::{error::Failure, terminal::Progress, trial};

use super::{
    instance::{self, Law, excess, mu, power},
    problem::{AMP, ERM, ITERATED, PHASED, PSA, SC},
};
use crate::reproduce::{Draw, Size, claim::slope};

pub(super) const THETAS: [f64; 2] = [2.0, 4.0];
pub(super) const MEAN: &str = "noisy mean";
pub(super) const NOTHING: &str = "nothing learnt";
pub(super) const BOUND: &str = "lower bound";
pub(super) const METHODS: [&str; 10] =
    [PHASED, PSA, SC, ITERATED[1], "psa-ii", ERM, "dp-gd", AMP, MEAN, NOTHING];

/// The runs.
pub(super) struct Growing {
    width: usize,
    pub(super) rows: Vec<usize>,
    /// The size at which budgets vary, and the budget at which sizes do.
    pub(super) base: (usize, f64),
    pub(super) epsilons: Vec<f64>,
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
    pub(super) growing: &'a Growing,
    risks: Vec<Risk>,
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
             where F is flat. It is computed exactly, for plans of this library: none of these rows is as printed. Theory's slopes leave \
             logarithms out. Sizes {:?} at epsilon {}, budgets {:?} at n = {}.",
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
    pub(super) fn lower_bound(&self, theta: f64, rows: usize, epsilon: f64) -> f64 {
        let mu = mu(rows, epsilon);
        let off = (self.width as f64 / (mu * mu).exp_m1()).sqrt() / rows as f64;
        off.powf(power(theta)) / theta
    }
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
            instance::plan(theta, (rows, growing.width), epsilon, method)
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
                if let Some(w) = risk.fit(&law, key)? {
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
    pub(super) fn risk(&self, theta: f64, rows: usize, epsilon: f64, method: &str) -> Option<f64> {
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
    pub(super) fn points(
        &self,
        by_size: bool,
        of: &dyn Fn(usize, f64) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let (rows, epsilon) = self.growing.base;
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

    pub(super) fn slope(&self, theta: f64, by_size: bool, method: &str) -> Option<f64> {
        slope(&self.points(by_size, &|n, e| self.risk(theta, n, e, method)))
    }

    /// The slope of (1/√n + √d G/nμ)^(θ/(θ-1)), the upper bounds' rate.
    pub(super) fn theory(&self, theta: f64, by_size: bool) -> f64 {
        let rate = |n: usize, e: f64| Some(self.growing.level(n, e).powf(power(theta)));
        slope(&self.points(by_size, &rate)).unwrap_or(f64::NAN)
    }
}

impl Risk {
    /// The weights; none where there is no plan.
    fn fit(&self, law: &Law, key: Key) -> Result<Option<Vec<f64>>, Failure> {
        match (self.method, &self.plan) {
            (NOTHING, _) => Ok(Some(vec![0.0; law.mean.len()])),
            (MEAN, _) => {
                let sigma = 2.0 / (self.rows as f64 * mu(self.rows, self.epsilon));
                law.by_mean(self.theta, sigma, key).map(Some)
            }
            (_, Some(plan)) => {
                let options = FitOptions::new(Charge::without_ledger(key)).threads(1);
                let fit = plan.fit(FitInput::table(&law.table, (-1.0, 1.0)), options)?;
                Ok(Some(fit.coefficients()?.1))
            }
            _ => Ok(None),
        }
    }
}
