//! Many fits of drawn tables, and their results.

use quietly::{
    AnyAlgorithm, Budget, Charge, Clip, FitInput, FitOptions, FitOutput, Key, Link, Mechanism,
    Method, Neighbours, Plan, Sampler, svg::Point,
};
use quietly_cli::{
    error::Failure,
    terminal::Progress,
    trial::{self, Entrant, Spread},
};

use crate::reproduce::{report::Entry, world::Setting};

/// Tables of one distribution, and the methods that are tried on them.
pub(crate) struct Field {
    pub(crate) setting: Setting,
    pub(crate) delta: f64,
    pub(crate) epsilons: Vec<f64>,
    pub(crate) entrants: Vec<Entrant>,
    /// How many tables.
    pub(crate) seeds: u64,
}

/// What one method came to on one law at one ε, replace-one.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) setting: Setting,
    pub(crate) delta: f64,
    pub(crate) epsilon: f64,
    pub(crate) entrant: Entrant,
    /// The method that was planned in its place.
    pub(crate) stand_in: Option<&'static str>,
    /// Why there is nothing.
    pub(crate) problem: Option<String>,
    /// Excess risk on fresh rows, and on the rows of the table, for each seed.
    pub(crate) risks: Vec<f64>,
    pub(crate) train: Vec<f64>,
    /// Σ 1/m² over the gradients, m their noise over what a row adds to a sum over all rows.
    pub(crate) precision: Option<f64>,
    /// The quantile at which gradients are clipped.
    pub(crate) level: Option<f64>,
}

impl Score {
    /// What it is in a table: a stand-in is marked, and nothing stays nothing.
    pub(crate) fn entry(&self) -> Entry {
        match (self.risks.is_empty(), self.stand_in) {
            (true, _) => Entry::Nothing,
            (false, Some(_)) => Entry::Marked(self.spread().median, "†"),
            (false, None) => Entry::Number(self.spread().median),
        }
    }

    pub(crate) fn spread(&self) -> Spread {
        Spread::of(&self.risks)
    }

    /// The median risk of the method itself, not of a stand-in.
    pub(crate) fn own(&self) -> Option<f64> {
        let own = self.stand_in.is_none() && !self.risks.is_empty();
        own.then(|| self.spread().median)
    }

    /// Its point on a chart, at `x`; none if another method replaced it.
    pub(crate) fn point(&self, x: f64) -> Option<Point> {
        self.own()?;
        let Spread { median, low, high } = self.spread();
        Some(Point { x, y: median, low, high })
    }

    /// Formula (*) for linear models, (**) for ReLU: the risk that the noise in the plan should lead to, and the term of it
    /// that is privacy's. None where noise is too large for it, or where the plan has no gradients.
    pub(crate) fn predicted(&self) -> Option<(f64, f64)> {
        let (d, n) = (self.setting.weights(), self.setting.rows as f64);
        let precision = self.precision?;
        // θ such that a share q of normal residuals is within ±θ, and what clipping there costs without noise.
        let (q, theta, c) = match self.level? {
            q if q < 0.625 => (0.5, 0.6745, 1.195),
            q if q < 0.825 => (0.75, 1.1503, 1.079),
            q if q < 0.94 => (0.9, 1.6449, 1.026),
            _ => (0.98, 2.3263, 1.004),
        };
        let relu = self.setting.link == Link::Relu;
        let noise = (theta / q * d / n).powi(2) / precision;
        if noise * if relu { 4.0 } else { 1.0 } > 1.0 / 40.0 {
            return None;
        }
        // One pass averages over half of the rows.
        let halved = if self.one_pass() { 2.0 } else { 1.0 };
        let twice = if relu { 2.0 } else { 1.0 };
        let privacy = twice * noise * self.setting.sigma * self.setting.sigma;
        Some((twice * halved * c * self.setting.statistical() + privacy, privacy))
    }

    /// What privacy adds: the median risk without what finitely many rows cost anyway.
    pub(crate) fn private_part(&self) -> Option<f64> {
        let relu = if self.setting.link == Link::Relu { 2.0 } else { 1.0 };
        let halved = if self.one_pass() { 2.0 } else { 1.0 };
        let risk = self.own()?;
        let left = risk - relu * halved * 1.1 * self.setting.statistical();
        // A tenth of the risk is within chance.
        (left > 0.1 * risk).then_some(left)
    }

    fn one_pass(&self) -> bool {
        let full = [Method::AdaptiveGd, Method::FullBatch, Method::Auto, Method::DpPgd];
        !full.contains(&self.entrant.method)
    }

    /// No unbiased estimator of this budget has a smaller risk: σ²d²/2N²(exp μ² - 1), for linear models and ReLU alike.
    pub(crate) fn lower_bound(&self) -> Option<f64> {
        let mu = quietly_accounting::gaussian_mu(self.epsilon, self.delta).ok()?;
        let s = self.setting;
        Some((s.sigma * s.weights() / s.rows as f64).powi(2) / (2.0 * (mu * mu).exp_m1()))
    }
}

/// All of them.
pub(crate) struct Scores(pub(crate) Vec<Score>);

impl Scores {
    /// Plans and runs everything.
    pub(crate) fn measure(
        fields: &[Field],
        seed: u64,
        threads: usize,
        progress: &Progress,
    ) -> Result<Scores, Failure> {
        let mut asked = vec![];
        for (at, field) in fields.iter().enumerate() {
            for entrant in &field.entrants {
                let plain = [f64::INFINITY];
                let epsilons =
                    if entrant.method == Method::Exact { &plain[..] } else { &field.epsilons };
                asked.extend(epsilons.iter().map(|epsilon| (at, entrant, *epsilon)));
            }
        }
        // A plan sees no data, so it serves every law with as many rows and features. Some take seconds.
        let alike = |&(a, one, e): &(usize, &Entrant, f64),
                     &(b, other, f): &(usize, &Entrant, f64)| {
            let (a, b) = (&fields[a], &fields[b]);
            let size = |f: &Field| (f.setting.link, f.setting.rows, f.setting.width, f.delta);
            one == other && e == f && size(a) == size(b)
        };
        let mut distinct: Vec<(usize, &Entrant, f64)> = vec![];
        for question in &asked {
            if !distinct.iter().any(|other| alike(question, other)) {
                distinct.push(*question);
            }
        }
        let told = |done| progress.say(&format!("planning: {done} of {}", distinct.len()));
        let made = trial::all(&distinct, threads, &told, |(at, entrant, epsilon)| {
            let field = &fields[*at];
            let Setting { link, rows, width, .. } = field.setting;
            let budget = Budget::new(*epsilon, field.delta)?.under(Neighbours::ReplaceOne);
            entrant.plan(link, rows as u64, width, budget)
        });
        let plan_of = |question| distinct.iter().position(|other| alike(question, other));
        let plans: Vec<&Result<Plan, quietly::Error>> =
            asked.iter().map(|question| &made[plan_of(question).expect("all are there")]).collect();
        let mut scores: Vec<Score> = vec![];
        for ((at, entrant, epsilon), plan) in asked.iter().zip(&plans) {
            let Field { setting, delta, .. } = fields[*at];
            let plan = plan.as_ref();
            scores.push(Score {
                setting,
                delta,
                epsilon: *epsilon,
                entrant: (*entrant).clone(),
                stand_in: plan.ok().and_then(|p| entrant.stand_in(p)),
                problem: plan.err().map(ToString::to_string),
                risks: vec![],
                train: vec![],
                precision: plan.ok().and_then(precision),
                level: plan.ok().and_then(level),
            });
        }
        let jobs: Vec<(usize, u64)> = (0..fields.len())
            .flat_map(|at| (0..fields[at].seeds).map(move |turn| (at, turn)))
            .collect();
        let told = |done| progress.say(&format!("fitting: {done} of {} tables", jobs.len()));
        let found = trial::all(&jobs, threads, &told, |(at, turn)| {
            let world = fields[*at].setting.draw(seed.wrapping_mul(1_000_003) + turn)?;
            let mut risks = vec![];
            for (i, plan) in plans.iter().enumerate().filter(|(i, _)| asked[*i].0 == *at) {
                let Ok(plan) = plan else { continue };
                let public = asked[i].1.needs_public_rows().then_some(&world.public);
                // Noise of its own for every fit.
                let noise = (seed << 40) + (turn << 20) + i as u64;
                let charge = Charge::without_ledger(Key::from_seed(noise));
                let options = FitOptions::new(charge).threads(1).public(public);
                let input = FitInput::table(&world.table, fields[*at].setting.range());
                let fit = plan.fit(input, options).and_then(FitOutput::coefficients);
                risks.push((i, fit.map(|(b, w)| world.risks(b, &w)).map_err(|e| e.to_string())));
            }
            Ok::<_, Failure>(risks)
        });
        for job in found {
            for (i, risk) in job? {
                match risk {
                    Ok((test, train)) => {
                        scores[i].risks.push(test);
                        scores[i].train.push(train);
                    }
                    Err(problem) => scores[i].problem = Some(problem),
                }
            }
        }
        Ok(Scores(scores))
    }

    /// One method on one law at one ε.
    pub(crate) fn find(&self, setting: &Setting, name: &str, epsilon: f64) -> Option<&Score> {
        self.0.iter().find(|s| {
            s.setting == *setting
                && s.entrant.name == name
                && (s.epsilon == epsilon || s.entrant.method == Method::Exact)
        })
    }

    /// Its median risk, if the method itself was run.
    pub(crate) fn risk(&self, setting: &Setting, name: &str, epsilon: f64) -> Option<f64> {
        self.find(setting, name, epsilon)?.own()
    }

    /// One median risk over another.
    pub(crate) fn ratio(
        &self,
        epsilon: f64,
        (above, over): (&Setting, &str),
        (below, under): (&Setting, &str),
    ) -> Option<f64> {
        Some(self.risk(above, over, epsilon)? / self.risk(below, under, epsilon)?)
    }

    /// Sentences about stand-ins and about what failed.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = vec![];
        for score in &self.0 {
            let name = &score.entrant.name;
            let remark = match (&score.problem, score.stand_in) {
                (Some(problem), _) => format!("{name} was not run everywhere: {problem}."),
                (None, Some(other)) => format!(
                    "† {name}: in some cells the plan takes {other} instead; such numbers decide no claim about {name}."
                ),
                (None, None) => continue,
            };
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        remarks
    }
}

/// Σ 1/m² over a plan's gradients. A step of a sampler sees one row in so many, so its noise weighs more.
fn precision(plan: &Plan) -> Option<f64> {
    let mut sum = 0.0;
    for stage in plan.stages() {
        let part = match plan.sampler() {
            _ if stage.all_rows => 1.0,
            Sampler::RandomAllocation { steps } | Sampler::Partition { steps } => steps as f64,
            Sampler::Poisson { rate, .. } => 1.0 / rate,
            _ => 1.0,
        };
        for charge in stage.releases.iter().filter(|c| c.purpose.contains("gradient")) {
            if let Mechanism::Gaussian { noise } = charge.mechanism {
                sum += (stage.steps * charge.times) as f64 / (noise * part).powi(2);
            }
        }
    }
    (sum > 0.0).then_some(sum)
}

/// Where a recipe clips.
fn level(plan: &Plan) -> Option<f64> {
    let AnyAlgorithm::Recipe(recipe) = plan.algorithm() else { return None };
    match recipe.clip {
        Clip::Fixed { level } | Clip::Falling { level } | Clip::Public { level } => Some(level),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field() -> Field {
        let setting = Setting {
            link: Link::Linear,
            rows: 4000,
            width: 3,
            sigma: 1.0,
            kappa: 1.0,
            signal: 1.0,
        };
        let entrants = vec![Entrant::plain(), Entrant::new(Method::FullBatch)];
        Field { setting, delta: 1e-6, epsilons: vec![1.0, 4.0], entrants, seeds: 6 }
    }

    #[test]
    fn risks_are_measured_and_repeat() {
        let run = |threads| {
            Scores::measure(&[field()], 7, threads, &Progress::new(""))
                .unwrap_or_else(|e| panic!("{e:?}"))
        };
        let scores = run(2);
        assert_eq!(scores.0.len(), 3);
        let setting = field().setting;
        let plain = scores.risk(&setting, "least squares", 1.0).unwrap();
        assert!((0.2..5.0).contains(&(plain / setting.statistical())), "{plain}");
        let ours =
            scores.ratio(4.0, (&setting, "full-batch"), (&setting, "least squares")).unwrap();
        assert!(ours > 0.5 && ours < 20.0, "{ours}");
        let again = run(1);
        assert_eq!(scores.0[1].risks, again.0[1].risks);
        assert!(scores.remarks().is_empty());
        assert!(scores.0[1].precision.is_some_and(|p| p > 0.0));
        // Two budgets, two draws of noise.
        assert_ne!(scores.0[1].risks, scores.0[2].risks);
    }

    /// docs/spec/regression.md#11.2: "(*) predicts: eps=.1, N=1e5, d=10, sigma=1: 1.8e-4", with three
    /// quarters of μ² for gradients.
    #[test]
    fn the_formula_gives_the_number_of_the_spec() {
        let mu = quietly_accounting::gaussian_mu(0.1, 1e-6).unwrap();
        let mut score = Score {
            setting: Setting { rows: 100_000, width: 9, ..field().setting },
            delta: 1e-6,
            epsilon: 0.1,
            entrant: Entrant::new(Method::AdaptiveGd),
            stand_in: None,
            problem: None,
            risks: vec![1.8e-4],
            train: vec![],
            precision: Some(0.75 * mu * mu / 4.0),
            level: Some(0.5),
        };
        let (risk, privacy) = score.predicted().unwrap();
        assert!((risk / 1.8e-4 - 1.0).abs() < 0.05, "{risk}");
        // "(*) at q=1/2 is 14.6/(share .75) = 19 times" the lower bound.
        let times = privacy / score.lower_bound().unwrap();
        assert!((times / 19.4 - 1.0).abs() < 0.02, "{times}");
        score.stand_in = Some("full-batch");
        assert_eq!(score.own(), None);
        assert_eq!(score.entry(), Entry::Marked(1.8e-4, "†"));
        score.setting.rows = 2000;
        assert_eq!(score.predicted(), None);
    }
}
