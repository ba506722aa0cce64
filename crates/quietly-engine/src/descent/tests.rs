use quietly_accounting::Neighbours;
use quietly_core::{
    mechanism::{PlannedRelease, Stage},
    release::Sensitivity,
};
use quietly_data::Private;
use quietly_noise::Key;

use super::*;

const UNIT: f64 = 1.0 / (1 << 30) as f64;
const ROWS: f64 = 1000.0;

/// The gradient of ½(w - 3)², of a thousand rows alike.
struct Parabola;

impl ClippedGradient for Parabola {
    fn sum(&mut self, at: &At<'_>, _releaser: &mut Releaser) -> Result<StepSum, Error> {
        let norm = (at.weights[0] - 3.0).abs();
        let each = (at.weights[0] - 3.0).clamp(-at.clip, at.clip);
        let sum = Private::new(vec![(ROWS * each / UNIT) as i64]);
        let gradient = BoundedSum::new(sum, Sensitivity::l2(at.clip / UNIT, UNIT));
        let count = |bins: &[f64]| {
            let bin = bins.partition_point(|end| *end < norm);
            let counts = (0..=bins.len()).map(|k| if k == bin { 1000 } else { 0 }).collect();
            Histogram::new(Private::new(counts))
        };
        Ok(StepSum { gradient, norms: at.bins.map(count) })
    }
}

/// The end of the bin that the norms of the step before were in.
struct LastNorm {
    bins: Vec<f64>,
    clip: f64,
    /// The weights that clips were found at, and the bins of the steps.
    seen: Vec<f64>,
    found: Vec<usize>,
}

impl ClipRule for LastNorm {
    fn clip(
        &mut self,
        _step: u64,
        weights: &[f64],
        _gradient: &mut dyn ClippedGradient,
        _releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        self.seen.push(weights[0]);
        Ok(self.clip)
    }

    fn bins(&self) -> Option<Vec<f64>> {
        Some(self.bins.clone())
    }

    fn after(&mut self, norms: Histogram, releaser: &mut Releaser) -> Result<(), Error> {
        self.found.push(releaser.quantile("norms", 0.5, norms)?);
        self.clip = self.bins[self.found[self.found.len() - 1]];
        Ok(())
    }
}

/// Half of the way along a mean gradient.
struct HalfWay;

impl Update for HalfWay {
    fn step(&mut self, _step: u64, weights: &mut [f64], released: &Released) {
        weights[0] -= 0.5 * released.values[0] / ROWS;
    }
}

/// Noise of 10⁻⁶ of a clip in sums of a thousand rows.
fn releaser(steps: u64) -> Releaser {
    let quantile = PlannedRelease::quantile("norms", 0.5, 50.0, Neighbours::AddRemove);
    let releases = vec![PlannedRelease::sum("gradient", 1e-6), quantile];
    Releaser::new(Key::from_seed(1), &[Stage::new("steps", steps, releases)], 1)
}

/// From 0 by half of the way to 3, first with a clip of 1: ½, then with the ends of the bins that 3, 2½ and 1¼ are in.
#[test]
fn a_step_clips_sums_releases_updates_and_learns_the_next_clip() {
    let bins = vec![0.5, 1.0, 2.0, 4.0];
    let mut clip = LastNorm { bins, clip: 1.0, seen: vec![], found: vec![] };
    let mut told = vec![];
    let weights = Descent {
        release: "gradient",
        steps: 2..6,
        clip: &mut clip,
        update: &mut HalfWay,
        average: Average::Last,
    }
    .run(vec![0.0], &mut Parabola, &mut releaser(4), &mut |t| {
        told.push(t);
        Ok(())
    })
    .unwrap();
    assert_eq!(told, [2, 3, 4, 5]);
    assert_eq!(clip.found, [3, 3, 2, 1]);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
    assert!(
        clip.seen.iter().zip([0.0, 0.5, 1.75, 2.375]).all(|(a, b)| near(*a, b)),
        "{:?}",
        clip.seen
    );
    assert!(near(weights[0], 2.6875), "{weights:?}");
}

#[test]
fn a_descent_averages_and_is_interrupted() {
    let run = |average: Average, until: u64| {
        let mut report = |t: u64| if t < until { Ok(()) } else { Err(Error::Interrupted) };
        let (clip, update) = (&mut FixedClip(4.0), &mut HalfWay);
        let mut descent = Descent { release: "gradient", steps: 0..4, clip, update, average };
        descent.run(vec![0.0], &mut Parabola, &mut releaser(4), &mut report).map(|w| w[0])
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
    // 1.5, 2.25, 2.625, 2.8125
    assert!(near(run(Average::Last, 4).unwrap(), 2.8125));
    assert!(near(run(Average::last_half(4), 4).unwrap(), 2.71875));
    assert!(near(run(Average::last_half(4).dividing_first(), 4).unwrap(), 2.71875));
    assert!(near(run(Average::over(0..4), 4).unwrap(), 2.296875));
    assert!(matches!(run(Average::Last, 3), Err(Error::Interrupted)));
}
