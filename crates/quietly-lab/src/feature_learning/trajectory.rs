//! A training run on made-up pictures, watched from the inside.
use quietly::Private;
use quietly_core::release::Releaser;
use quietly_engine::{error::Error, linalg::add, normals::normals};
use quietly_noise::Key;

use super::{
    decomposition::Decomposition,
    descent::{Descent, PatchPlan},
    gradient::{self, Look},
    network::Network,
    patches::{Images, World},
};
use crate::GRID;

/// What is added to the gradients of a [`study`].
#[derive(Clone, Debug)]
pub enum Noise {
    /// Nothing, and nothing is clipped.
    None,
    /// The paper's, and nothing is clipped: normal, of standard deviation √(2 ln(1.25/δ))/(ε n m) in every step. **It gives no
    /// guarantee**: gradients have no bound, and the price of one step is not that of all.
    Published {
        /// The paper's ε.
        epsilon: f64,
        /// The paper's δ.
        delta: f64,
    },
    /// Gradients are clipped, and the noise is that of a plan.
    Planned(PatchPlan),
}

/// Where a run stands after so many steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Moment {
    /// After how many steps.
    pub step: u64,
    /// The largest |Γ|: how much signal a filter has learnt.
    pub signal: f64,
    /// The largest Φ of a filter and a picture of its label: how much noise it has memorised.
    pub memorised: f64,
    /// The largest |Φ| of a filter and a picture of the other label.
    pub pushed_away: f64,
    /// The largest |<w - w₀, v>|, noise of privacy included.
    pub raw_signal: f64,
    /// The largest |<w - w₀, ξ>|, noise of privacy included.
    pub raw_noise: f64,
    /// The longest gradient of one picture, before clipping.
    pub steepest: f64,
}

/// What a [`study`] saw. It **promises nothing**, whatever noise was added: it was computed from the pictures themselves.
///
/// It cannot be written into a report,
///
/// ```compile_fail,E0277
/// fn written<T: serde::Serialize>(_: &T) {}
/// fn report(course: &quietly_lab::feature_learning::Course) { written(course) }
/// ```
///
/// and private pictures have no course: [`study`] takes pictures from a [`World`], where nobody lives.
///
/// ```compile_fail,E0308
/// # use quietly::{Key, Private};
/// # use quietly_lab::feature_learning::{Descent, Images, Noise, study};
/// fn watch(private: &Private<Images>) {
///     let _ = study(Descent::default(), &Noise::None, private, 50, Key::from_seed(1));
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Course {
    /// Where the run stood before every step, and after the last.
    pub moments: Vec<Moment>,
    /// How far Γ and Φ by recursion and by projection are apart, over 1 + the largest of them; none where there are more
    /// patches of noise than numbers in one, or where numbers ran out.
    pub disagreement: Option<f64>,
    /// The share of fresh pictures that the network gets wrong.
    pub test_error: f64,
    /// The same of the pictures that it was trained on.
    pub training_error: f64,
}

impl Course {
    /// Where the run ended.
    ///
    /// # Panics
    ///
    /// Never: a run has an end.
    pub fn end(&self) -> &Moment {
        self.moments.last().expect("a run has an end")
    }
}

/// How many fresh pictures a network is tried on.
const TEST: usize = 1000;

/// Trains on `rows` pictures of a made-up world, and watches signal and noise in every filter.
///
/// # Errors
///
/// [`Error::Parameter`] if a setting makes no sense, or the plan is another descent's; [`Error::Noise`] if there is no randomness.
pub fn study(
    descent: Descent,
    noise: &Noise,
    world: &World,
    rows: usize,
    key: Key,
) -> Result<Course, Error> {
    descent.check()?;
    Error::ensure(rows > 0, "rows", "at least 1", rows)?;
    let (images, fresh) = (world.draw(0, rows)?, world.draw(1, TEST)?);
    let mut run = Run::new(descent, noise, &images, key)?;
    let mut parts = Decomposition::new(&run.network, &images);
    let mut moments = Vec::with_capacity(descent.steps as usize + 1);
    for step in 0..descent.steps {
        let looks = run.step(step, |network, looks| {
            moments.push(parts.moment(step, network, &images, looks));
        })?;
        parts.advance(&run.network, &images, &looks, descent.step_size / run.divisor);
    }
    let (_, looks) = gradient::plain(&run.network, &images);
    moments.push(parts.moment(descent.steps, &run.network, &images, &looks));
    let disagreement =
        parts.disagreement(&run.network, &images, world, &run.moved()).filter(|x| x.is_finite());
    let (test_error, training_error) = (run.network.error(&fresh), run.network.error(&images));
    Ok(Course { moments, disagreement, test_error, training_error })
}

/// A network on its way.
struct Run<'a> {
    descent: Descent,
    images: &'a Images,
    network: Network,
    start: Vec<f64>,
    /// Σ z: all noise so far, as it entered mean gradients.
    noise: Vec<f64>,
    divisor: f64,
    source: Added<'a>,
}

/// Where noise comes from.
enum Added<'a> {
    Nothing,
    Published { scale: f64, stream: quietly_noise::Stream },
    Planned { plan: &'a PatchPlan, releaser: Box<Releaser> },
}

impl<'a> Run<'a> {
    fn new(
        descent: Descent,
        noise: &'a Noise,
        images: &'a Images,
        key: Key,
    ) -> Result<Self, Error> {
        let network = descent.network(images.dimension(), &key)?;
        let mut divisor = images.len() as f64;
        let source = match noise {
            Noise::None => Added::Nothing,
            Noise::Published { epsilon, delta } => {
                let fine = *epsilon > 0.0 && *delta > 0.0 && *delta < 1.0;
                let want = "above 0, with delta between 0 and 1";
                Error::ensure(fine, "epsilon", want, epsilon)?;
                let scale = (2.0 * (1.25 / delta).ln()).sqrt()
                    / (epsilon * images.len() as f64 * descent.filters as f64);
                Added::Published { scale, stream: key.stream("published noise") }
            }
            Noise::Planned(plan) => {
                let same = plan.descent == descent && plan.dimension == images.dimension();
                Error::ensure(same, "plan", "one of this descent and dimension", "another's")?;
                divisor = plan.rows as f64;
                let releaser = Releaser::new(key, &plan.stages, 1);
                Added::Planned { plan, releaser: Box::new(releaser) }
            }
        };
        let (start, noise) = (network.weights.clone(), vec![0.0; network.weights.len()]);
        Ok(Run { descent, images, network, start, noise, divisor, source })
    }

    /// One step; `see` is shown the network and the pictures before it.
    fn step(
        &mut self,
        step: u64,
        mut see: impl FnMut(&Network, &[Look]),
    ) -> Result<Vec<Look>, Error> {
        let eta = self.descent.step_size;
        if let Added::Planned { plan, releaser } = &mut self.source {
            let lattice = self.descent.lattice(self.images.dimension());
            let all = gradient::clipped(&self.network, self.images, &lattice, 1, true);
            see(&self.network, &all.looks);
            let bare: Vec<f64> = all.sum.iter().map(|s| *s as f64 * lattice.step()).collect();
            let released = plan.release(releaser, Private::new(all.sum), &lattice)?;
            plan.descend(&mut self.network, &released);
            for ((z, noisy), bare) in self.noise.iter_mut().zip(&released).zip(&bare) {
                *z += (noisy - bare) / self.divisor;
            }
            return Ok(all.looks);
        }
        let (sum, looks) = gradient::plain(&self.network, self.images);
        see(&self.network, &looks);
        add(&mut self.network.weights, &sum, -eta / self.divisor);
        if let Added::Published { scale, stream } = &self.source {
            let drawn = normals(stream, step, GRID, sum.len())?;
            add(&mut self.network.weights, &drawn, -eta * scale);
            add(&mut self.noise, &drawn, *scale);
        }
        Ok(looks)
    }

    /// w - w₀ + η·Σ z.
    fn moved(&self) -> Vec<f64> {
        let mut moved = self.network.weights.clone();
        add(&mut moved, &self.start, -1.0);
        add(&mut moved, &self.noise, self.descent.step_size);
        moved
    }
}
