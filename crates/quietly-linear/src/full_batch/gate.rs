//! Whether a model is better than a simpler one, by two private sums, and by how much it is drawn to it.
//!
//! With r = y - b and D = f - b for a simpler model b, the squared error of b + t·D is S(t) = mean r² - 2tA + t²B for A = mean rD and B = mean D². Both are
//! known with noise. t = (A - k)/max(B, b₀), held to [0, 1]: with k half a standard deviation of that noise and what a fit to its own
//! rows flatters itself by, S(t) - S(0) is at most 2(A' - A - k)₊ where A' is what was released, if max(B', b₀) ≥ B/2: then tB ≤ 2(A' - k), so that
//! t(tB - 2A) ≤ 2t(A' - k - A).
use quietly_accounting::Neighbours;
use quietly_core::release::Releaser;
use quietly_engine::{
    backend::{Backend, Batch, run_query},
    error::Error,
    link::Link,
    query::ModelGain,
    target_scaling::TargetScaling,
    transform::RowTransform,
};

/// Gains of rows are clipped at so many residuals times the size of D.
const CLIP: f64 = 6.0;

pub(crate) struct Gate<'a> {
    pub release: &'static str,
    pub transform: &'a RowTransform,
    pub link: Link,
    pub range: (f64, f64),
    pub unit: TargetScaling,
    pub rows: f64,
    pub neighbours: Neighbours,
    /// b, where it is a constant; where targets are residuals already, 0.
    pub base: f64,
    /// The standard deviation of residuals, about.
    pub scale: f64,
    /// About the mean of D², by what was released before.
    pub energy: f64,
    /// The effective number of features of the model.
    pub effective_width: f64,
}

impl Gate<'_> {
    /// t, for a model with these weights of transformed rows and this centre.
    pub(crate) fn kept(
        &self,
        weights: Vec<f64>,
        centre: f64,
        backend: &mut dyn Backend,
        releaser: &mut Releaser,
    ) -> Result<f64, Error> {
        let energy = self.energy.max(1e-12);
        let clip = (CLIP * self.scale * energy.sqrt()).clamp(1e-12, 1e12);
        let query = ModelGain {
            transform: self.transform.clone(),
            weights,
            intercept: centre,
            link: self.link,
            range: self.range,
            unit: self.unit,
            base: self.base,
            clip,
            neighbours: self.neighbours,
        };
        let sum = run_query(backend, releaser, &Batch::All, &query)?.sum();
        let (sums, std) = releaser.sum(self.release, sum)?;
        let (gain, size, noise) = (sums[0] / self.rows, sums[1] / self.rows, std / self.rows);
        let optimism = self.scale * self.scale * self.effective_width / self.rows;
        let gain = gain - optimism - 0.5 * noise;
        Ok(match self.link {
            // A part of max(u, 0) and a constant are no such model: it is one or the other.
            Link::Relu => f64::from(u8::from(gain > 0.5 * size)),
            _ => (gain / size.max(0.25 * energy)).clamp(0.0, 1.0),
        })
    }
}
