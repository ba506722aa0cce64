//! Training: from rows to weights, through the door.
use std::borrow::Cow;

use quietly_accounting::Neighbours;
use quietly_data::{Encoding, Private, Source, Table};
use quietly_noise::Key;

use super::{
    Trained,
    draw::Draw,
    features::Prepared,
    network::Network,
    shape::NetworkLoss,
    training::{Average, NetworkNoise, Training},
};
use crate::{
    charge::Sampler,
    error::Error,
    model::Link,
    plan::Plan,
    progress::{Watch, tell},
    recipes::Tree,
    release::{Door, LatticeSum},
    unit::Unit,
};

/// The question of every step.
pub(crate) const GRADIENT: &str = "sum of clipped gradients";

/// Reads a table and trains on it.
pub(crate) fn read(
    plan: &Plan,
    source: &Source,
    encoding: &Encoding,
    range: (f64, f64),
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Trained, Error> {
    // Under replace-one the number of records is public, null records among them.
    let places = plan.budget.neighbours() == Neighbours::ReplaceOne;
    let encoding = if places { encoding.keeping_places() } else { encoding.clone() };
    let table = source.read(&encoding, door.threads())?;
    fit(plan, &table, range, door, watch)
}

/// Trains on a table whose targets are the numbers of classes, or lie in `range`.
///
/// # Errors
///
/// [`Error::Parameter`] if batches have one size and the public number of rows is not the planned one; [`Error::Stopped`];
/// [`Error::Noise`] if there is no randomness. No row can cause an error.
pub(crate) fn fit(
    plan: &Plan,
    table: &Private<Table>,
    range: (f64, f64),
    door: &mut Door,
    watch: &mut Watch<'_>,
) -> Result<Trained, Error> {
    let training = plan.training();
    let mut network = Network::new(training.shape.clone(), training.seed)?;
    let count = table.as_ref().map(|t| t.target().len() + t.nulls().len());
    let public = door.public_rows(plan.budget.neighbours(), count);
    if let (Sampler::FixedSize { rows, .. }, Some(found)) = (plan.sampler, public) {
        let want = "what the schema says, for batches of one size";
        Error::unless(rows == found as u64, "number of rows", want, found)?;
    }
    let rows = public.map_or(plan.rows as f64, |n| n.max(1) as f64);
    let prepared = table.as_ref().map(|table| {
        assert_eq!(table.width(), plan.width, "the planned number of features");
        let of = |y: &f64| label(training.shape.loss, *y, range);
        let mut labels: Vec<f64> = table.target().iter().map(of).collect();
        // Null records that were left out are records: where batches have one size, they take places.
        labels.resize(labels.len() + table.nulls().len(), f64::NAN);
        let mut features = Cow::from(table.features());
        if !table.nulls().is_empty() {
            features.to_mut().resize(labels.len() * plan.width, 0.0);
        }
        Prepared::new(&training.shape, &features, &labels)
    });
    let used = table.as_ref().map(|table| {
        let of = |y: &&f64| !label(training.shape.loss, **y, range).is_nan();
        table.target().iter().filter(of).count() as u64
    });
    door.count_rows(plan, used)?;
    if !plan.budget.is_private() {
        return plainly(training, network, door, prepared, watch);
    }
    plan.fits_the_lattice(&network)?;
    let draw = prepared.as_ref().map(|rows| Draw::new(plan.sampler, door.sampling(), rows.len()));
    let mut draw = Door::unless_exhausted(draw)?;
    let batch = rows * share(plan.sampler);
    let mut walk = Walk::new(training, &network)?;
    let mut tree = Tree::default();
    for t in 0..training.steps {
        tell(watch, "step", t + 1, training.steps)?;
        let sensitivity = network.sensitivity(training.clip);
        let threads = door.threads();
        let sum = draw.as_mut().zip(prepared.as_ref()).map(|(draw, rows)| {
            let mut sum = vec![0_i64; training.shape.weights()];
            let which = draw.step(t)?;
            network.clipped_sum(rows, which, training.clip, threads, &mut sum);
            Ok::<_, Error>(sum)
        });
        let (unit, bound) = (sensitivity.unit, sensitivity.bound);
        let sum = Door::unless_exhausted(sum)?;
        let released = match training.noise {
            NetworkNoise::Independent => door.sum(GRADIENT, LatticeSum { sum, bound, unit })?.0,
            NetworkNoise::Mixed { .. } => {
                door.mixed_sum(GRADIENT, LatticeSum { sum, bound, unit })?
            }
            NetworkNoise::Tree => walk.since_last(tree.add(door, GRADIENT, sum, bound, unit)?),
        };
        walk.step(&released, batch * training.clip);
        network.set_weights(&walk.weights);
    }
    network.set_weights(&walk.handed_out());
    Ok(Trained::new(network))
}

/// The label as the loss wants it: ±1, the number of a class, or in units of the range. What is no class is no number.
fn label(loss: NetworkLoss, raw: f64, range: (f64, f64)) -> f64 {
    match loss {
        NetworkLoss::Logistic if raw == range.0 => -1.0,
        NetworkLoss::Logistic if raw == range.1 => 1.0,
        NetworkLoss::Logistic => f64::NAN,
        NetworkLoss::Softmax { classes } => {
            if raw >= 0.0 && raw < classes as f64 && raw.fract() == 0.0 { raw } else { f64::NAN }
        }
        NetworkLoss::Huber { .. } => Unit::new(Link::Linear, range).of(raw).clamp(-1.0, 1.0),
    }
}

/// The share of rows that a step sees.
pub(super) fn share(sampler: Sampler) -> f64 {
    match sampler {
        Sampler::Poisson { rate, .. } => rate,
        Sampler::Bins { bins, .. } => 1.0 / bins as f64,
        Sampler::Cyclic { period, .. } => 1.0 / period as f64,
        Sampler::Parts { steps } => 1.0 / steps as f64,
        Sampler::FixedSize { batch, rows, .. } => batch as f64 / rows as f64,
        _ => 1.0,
    }
}

/// Weights on their way: public, as all that moves them is.
struct Walk<'a> {
    training: &'a Training,
    start: Vec<f64>,
    weights: Vec<f64>,
    /// Where it goes.
    direction: Vec<f64>,
    done: u64,
    /// The first and the last step whose weights are averaged, from 1.
    kept: (u64, u64),
    /// The sum of those.
    sum: Vec<f64>,
    /// What a tree has said so far.
    prefix: Vec<f64>,
}

impl<'a> Walk<'a> {
    fn new(training: &'a Training, network: &Network) -> Result<Self, Error> {
        let start = network.weights();
        let (weights, zeros, steps) = (start.clone(), vec![0.0; start.len()], training.steps);
        let kept = match training.average {
            Average::All => (1, steps),
            Average::Half => (steps / 2 + 1, steps),
            Average::Last => (steps, steps),
            Average::Lot => {
                let drawn = Key::from_seed(training.seed).stream("lot").bits(0)?.below(steps)? + 1;
                (drawn, drawn)
            }
        };
        let (direction, sum, prefix) = (zeros.clone(), zeros.clone(), zeros);
        Ok(Walk { training, start, weights, direction, done: 0, kept, sum, prefix })
    }

    /// What a prefix adds to the one before.
    fn since_last(&mut self, prefix: Vec<f64>) -> Vec<f64> {
        let step = prefix.iter().zip(&self.prefix).map(|(now, last)| now - last).collect();
        self.prefix = prefix;
        step
    }

    /// A step against a sum of gradients, of which `whole` is the most.
    fn step(&mut self, sum: &[f64], whole: f64) {
        let (factor, kept) = (self.training.step_size / whole, self.training.momentum);
        let moving = self.weights.iter_mut().zip(&mut self.direction).zip(sum);
        for ((w, v), g) in moving {
            *v = kept * *v + (1.0 - kept) * g;
            *w -= factor * *v;
        }
        if let Some(ball) = self.training.ball {
            let far =
                self.weights.iter().zip(&self.start).map(|(w, s)| (w - s).powi(2)).sum::<f64>();
            let back = (ball / far.sqrt()).min(1.0);
            for (w, s) in self.weights.iter_mut().zip(&self.start) {
                *w = s + back * (*w - s);
            }
        }
        self.done += 1;
        if (self.kept.0..=self.kept.1).contains(&self.done) {
            self.sum.iter_mut().zip(&self.weights).for_each(|(sum, w)| *sum += w);
        }
    }

    fn handed_out(self) -> Vec<f64> {
        let count = (self.kept.1 - self.kept.0 + 1) as f64;
        self.sum.iter().map(|w| w / count).collect()
    }
}

/// The same without any noise: for plans that promise nothing.
fn plainly(
    training: &Training,
    mut network: Network,
    door: &Door,
    prepared: Private<Prepared>,
    watch: &mut Watch<'_>,
) -> Result<Trained, Error> {
    let threads = door.threads();
    door.plain(prepared, |rows| {
        let which: Vec<u32> = (0..rows.len() as u32).collect();
        let mut walk = Walk::new(training, &network)?;
        for t in 0..training.steps {
            tell(watch, "step", t + 1, training.steps)?;
            let mut sum = vec![0.0; training.shape.weights()];
            network.plain_sum(&rows, &which, threads, &mut sum);
            walk.step(&sum, rows.len().max(1) as f64 * training.clip);
            network.set_weights(&walk.weights);
        }
        network.set_weights(&walk.handed_out());
        Ok(Trained::new(network))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Budget,
        kan::{Input, Kan, NetworkShape},
    };

    /// Half of a direction is that of the step before: after gradients of 1 and 0 the weights moved by ½ and ¼ of a step.
    #[test]
    fn momentum_keeps_a_part_of_the_direction() {
        let shape = NetworkShape::new(vec![Input::Spline], NetworkLoss::Logistic);
        let kan = Kan::new(shape).momentum(0.5).step_size(8.0).passes(2);
        let plan = kan.plan(100, Budget::new(f64::INFINITY, 1e-5).unwrap()).unwrap();
        let training = plan.training();
        let network = Network::new(training.shape.clone(), training.seed).unwrap();
        let mut walk = Walk::new(training, &network).unwrap();
        let (start, size) = (walk.weights[0], walk.weights.len());
        for (gradient, moved) in [(1.0, 4.0), (0.0, 6.0)] {
            walk.step(&vec![gradient; size], 1.0);
            assert!((start - walk.weights[0] - moved).abs() < 1e-12);
        }
    }
}
