//! Training: from sums over rows to weights, through the releaser.
use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Sampler, Stage},
    privacy_plan::PrivacyPlan,
    progress::{ProgressCallback, report},
    release::{Released, Releaser},
};
use quietly_engine::{
    algorithm::{Access, Algorithm, Run, Shape},
    backend::{Backend, Batch, run_query},
    descent::{self, At, ClippedGradient, Descent, FixedClip, StepSum, Update},
    error::Error,
};
use quietly_noise::Key;

use super::{
    KanModel,
    config::{Average, KanConfig, NetworkNoise},
    network::Network,
    planning,
    query::NetworkQuery,
};

/// The question of every step.
pub const GRADIENT: &str = "sum of clipped gradients";

impl Algorithm for KanConfig {
    type Fitted = KanModel;

    fn sampler(&self, _: Shape) -> Sampler {
        self.sampler
    }

    fn stages(&self, _: Shape, budget: Budget, noise: f64) -> Vec<Stage> {
        match budget.is_private() {
            true => vec![planning::stage(&self.candidate(), noise)],
            false => Vec::new(),
        }
    }

    fn check(&self, shape: Shape, budget: Budget) -> Result<(), Error> {
        self.check_plan(shape, budget)
    }

    fn access(&self) -> Access {
        Access::Sums
    }

    /// Under replace-one the number of records is public, null records among them.
    fn keeps_places(&self, plan: &PrivacyPlan) -> bool {
        plan.budget.neighbours() == Neighbours::ReplaceOne
    }

    fn fit(&self, run: Run<'_, '_>) -> Result<KanModel, Error> {
        fit(self, run)
    }
}

/// Trains on a table whose targets are the numbers of classes, or lie in `range`.
///
/// # Errors
///
/// [`Error::Parameter`] if batches have one size and the public number of rows is not the planned one; [`Error::Interrupted`];
/// [`Error::Noise`] if there is no randomness. No row can cause an error.
fn fit(training: &KanConfig, run: Run<'_, '_>) -> Result<KanModel, Error> {
    let Run { plan, shape, range, backend, releaser, watch, .. } = run;
    let mut network = Network::new(training.shape.clone(), training.seed)?;
    let neighbours = plan.budget.neighbours();
    let public = match neighbours {
        Neighbours::ReplaceOne => {
            releaser.public_rows(neighbours, backend.count()?.map(|count| count as usize))
        }
        Neighbours::AddRemove => None,
    };
    if let (Sampler::FixedSize { rows, .. }, Some(found)) = (plan.sampler, public) {
        let want = "what the schema says, for batches of one size";
        Error::ensure(rows == found as u64, "number of rows", want, found)?;
    }
    let rows = public.map_or(shape.rows as f64, |n| n.max(1) as f64);
    let count = NetworkQuery::count(&network, range);
    let used = run_query(backend, releaser, &Batch::All, &count)?.histogram().total();
    releaser.count_rows(plan, shape.rows, used)?;
    if !plan.budget.is_private() {
        return without_noise(training, network, (backend, range), releaser, watch);
    }
    training.fits_the_lattice(&network, plan)?;
    backend.begin(&releaser.draw(plan.sampler))?;
    if training.noise == NetworkNoise::Tree {
        releaser.aggregate_by_tree(GRADIENT);
    }
    let batch = rows * plan.sampler.share();
    let start = network.weights();
    let mut update = Momentum::new(training, start.clone(), batch * training.clip);
    let mut descent = Descent {
        release: GRADIENT,
        steps: 0..training.steps,
        clip: &mut FixedClip(training.clip),
        update: &mut update,
        average: training.average.of(training.steps, training.seed)?,
    };
    let report = &mut |t| Ok(report(watch, "step", t + 1, training.steps)?);
    let mut gradient = Gradient { network: &mut network, backend, range };
    let weights = descent.run(start, &mut gradient, releaser, report)?;
    network.set_weights(&weights);
    Ok(KanModel::new(network))
}

/// Sums of clipped gradients over the rows of a step.
struct Gradient<'a> {
    network: &'a mut Network,
    backend: &'a mut dyn Backend,
    range: (f64, f64),
}

impl ClippedGradient for Gradient<'_> {
    fn sum(&mut self, at: &At<'_>, releaser: &mut Releaser) -> Result<StepSum, Error> {
        self.network.set_weights(at.weights);
        let query = NetworkQuery::gradients(self.network, self.range, at.clip);
        let gradient = run_query(self.backend, releaser, &Batch::step(at.step), &query)?.sum();
        Ok(StepSum { gradient, norms: None })
    }
}

impl Average {
    /// The average over so many steps. One that is drawn comes from the public seed.
    fn of(self, steps: u64, seed: u64) -> Result<descent::Average, Error> {
        Ok(match self {
            Average::All => descent::Average::over(0..steps),
            Average::Half => descent::Average::last_half(steps),
            Average::Last => descent::Average::Last,
            Average::Random => {
                let drawn = Key::from_seed(seed).stream("lot").bits(0)?.below(steps)?;
                descent::Average::over(drawn..drawn + 1)
            }
        })
    }
}

/// Steps with momentum, within a ball around the start.
struct Momentum<'a> {
    training: &'a KanConfig,
    start: Vec<f64>,
    /// The mean of past gradients.
    direction: Vec<f64>,
    /// What a sum of gradients can be at most.
    whole: f64,
}

impl<'a> Momentum<'a> {
    fn new(training: &'a KanConfig, start: Vec<f64>, whole: f64) -> Self {
        Momentum { training, direction: vec![0.0; start.len()], start, whole }
    }
}

impl Update for Momentum<'_> {
    fn step(&mut self, _step: u64, weights: &mut [f64], released: &Released) {
        let (factor, kept) = (self.training.step_size / self.whole, self.training.momentum);
        let moving = weights.iter_mut().zip(&mut self.direction).zip(&released.values);
        for ((w, v), g) in moving {
            *v = kept * *v + (1.0 - kept) * g;
            *w -= factor * *v;
        }
        if let Some(ball) = self.training.ball {
            let far = weights.iter().zip(&self.start).map(|(w, s)| (w - s).powi(2)).sum::<f64>();
            let back = (ball / far.sqrt()).min(1.0);
            for (w, s) in weights.iter_mut().zip(&self.start) {
                *w = s + back * (*w - s);
            }
        }
    }
}

/// The same without any noise: for plans that promise nothing.
fn without_noise(
    training: &KanConfig,
    mut network: Network,
    (backend, range): (&mut dyn Backend, (f64, f64)),
    releaser: &Releaser,
    watch: &mut ProgressCallback<'_>,
) -> Result<KanModel, Error> {
    let threads = releaser.threads();
    releaser.non_private(backend.rows()?, |rows| {
        let rows = NetworkQuery::count(&network, range).quantized(rows.dense());
        let which: Vec<u32> = (0..rows.count() as u32).collect();
        let (mut weights, whole) = (network.weights(), rows.count().max(1) as f64 * training.clip);
        let mut update = Momentum::new(training, weights.clone(), whole);
        let average = training.average.of(training.steps, training.seed)?;
        let mut mean = descent::Mean::new(average, weights.len());
        for t in 0..training.steps {
            report(watch, "step", t + 1, training.steps)?;
            let mut values = vec![0.0; training.shape.weights()];
            network.plain_sum(&rows, &which, threads, &mut values);
            update.step(t, &mut weights, &Released { values, std: 0.0, prefix: None });
            network.set_weights(&weights);
            mean.take(t, &weights);
        }
        network.set_weights(&mean.of(weights));
        Ok(KanModel::new(network))
    })
}

#[cfg(test)]
mod tests {
    use quietly_core::budget::Budget;

    use super::*;
    use crate::{Input, Kan, NetworkLoss, NetworkShape};

    /// Half of a direction is that of the step before: after gradients of 1 and 0 the weights moved by ½ and ¼ of a step.
    #[test]
    fn momentum_keeps_a_part_of_the_direction() {
        let shape = NetworkShape::new(vec![Input::Spline], NetworkLoss::Logistic);
        let kan = Kan::new(shape).momentum(0.5).step_size(8.0).passes(2);
        let planned = kan.draft(100, Budget::new(f64::INFINITY, 1e-5).unwrap()).unwrap();
        let training = &planned.algorithm;
        let network = Network::new(training.shape.clone(), training.seed).unwrap();
        let mut weights = network.weights();
        let (start, size) = (weights[0], weights.len());
        let mut update = Momentum::new(training, weights.clone(), 1.0);
        for (gradient, moved) in [(1.0, 4.0), (0.0, 6.0)] {
            let released = Released { values: vec![gradient; size], std: 0.0, prefix: None };
            update.step(0, &mut weights, &released);
            assert!((start - weights[0] - moved).abs() < 1e-12);
        }
    }
}
