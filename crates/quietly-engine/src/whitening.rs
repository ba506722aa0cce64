//! From noisy second moments to the space in which gradients are clipped.
//!
//! Everything here is post-processing of released values.
use crate::{
    linalg::{Square, dot, eigen, weighted},
    residual::{MEDIAN, Residual},
    transform::RowTransform,
};

/// Wider tables are not whitened: a second moment would not fit.
pub const WIDEST: usize = 1000;
/// How much noise the high clip may add, as a share of the residuals' variance.
const ALLOWED: f64 = 0.005;
/// λ grows from nothing at a clip of 6 medians to 0.3 mean eigenvalues at 16.
const LAMBDA: (f64, f64, f64) = (6.0, 16.0, 0.3);

/// A basis in which the second moment of the rows is about the identity.
pub struct Whitening {
    /// Rows x with their constant become x·basis.
    basis: Square,
    /// basis⁻¹.
    inverse: Square,
    constant: f64,
    rows: f64,
    /// The second moment in the last basis, as well as it is known.
    curvature: Vec<f64>,
    /// Without a second moment: rows are scaled by this alone.
    plain: Option<f64>,
}

impl Whitening {
    pub fn new(width: usize, constant: f64, norm: f64, rows: u64) -> Self {
        let d = if width > WIDEST { 1 } else { width + 1 };
        Whitening {
            basis: Square::identity(d),
            inverse: Square::identity(d),
            constant,
            rows: rows as f64,
            curvature: vec![1.0; width + 1],
            plain: Some(((width + 1) as f64).sqrt() / norm),
        }
    }

    /// How many features the table has, and its rows in the basis.
    ///
    /// The basis is turned first so that half of it is zero, which halves the work; norms and what is whitened do not change.
    /// [`refine`](Self::refine) comes next: until then, the curvature is that of directions before the turn.
    pub fn shape(&mut self) -> (usize, RowTransform) {
        self.basis.lower(self.basis.size, Some(&mut self.inverse));
        (self.curvature.len() - 1, turned(&self.basis, self.constant))
    }

    /// Whitens once more, by a noisy second moment in the present basis with noise `std` on its diagonal.
    ///
    /// With eigenvalues e, directions are scaled by 1/√(max(e, 0) + ν), where ν is about the largest eigenvalue of the noise:
    /// a direction that is lost in the noise is left small rather than blown up.
    pub fn refine(&mut self, moment: &Square, std: f64) {
        let size = moment.size;
        let (values, vectors) = eigen(&moment.entries, size);
        let floor = (0.7 * std * (2.0 * size as f64).sqrt()).max(f64::MIN_POSITIVE);
        let length: Vec<f64> =
            values.iter().map(|e| ((e.max(0.0) + floor) / self.rows).sqrt()).collect();
        let vectors = Square { size, entries: vectors };
        // Columns of `turn` are scaled eigenvectors; its inverse has scaled eigenvectors for rows.
        let turn = Square::new(size, |row, k| vectors.at(k, row) / length[k]);
        let back = Square::new(size, |k, column| vectors.at(k, column) * length[k]);
        self.basis = self.basis.times(&turn);
        self.inverse = back.times(&self.inverse);
        // Noise spreads eigenvalues: they are drawn back to their mean by as much as it does.
        let mean = values.iter().sum::<f64>() / size as f64;
        let variance = values.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / size as f64;
        let real = (1.0 - 0.5 * std * std * size as f64 / variance.max(1e-300)).max(0.0).sqrt();
        let likely = |e: &f64| (mean + real * (e - mean)).max(0.05 * mean.abs());
        let part = |e: &f64| likely(e) / (e.max(0.0) + floor);
        self.curvature = values.iter().map(part).collect();
        self.plain = None;
    }
}

/// The space in which gradients are clipped.
pub struct Preconditioner {
    map: Map,
    /// Newton's step for each coordinate.
    pub multipliers: Vec<f64>,
    /// How many medians the clip may be high.
    pub highest_clip: f64,
    /// The curvature along each coordinate after Newton's step, at most one.
    curvature: Vec<f64>,
}

enum Map {
    /// x·basis. Rows are asked after a turn of the features that makes half of the basis zero, which halves the work: norms do
    /// not change, and noise that is alike in all directions does not, either. half · back is the basis, and back a turn.
    Dense { basis: Square, half: Square, back: Square, constant: f64 },
    /// Each feature scaled alike.
    Plain { scale: f64, constant: f64 },
}

impl Preconditioner {
    /// The metric for last steps whose average has noise `noise` times the clip over `rows` rows.
    pub fn new(whitening: Whitening, rows: u64, noise: f64) -> Self {
        let n = rows as f64;
        let d = whitening.curvature.len();
        if let Some(scale) = whitening.plain {
            let even = vec![1.0; d];
            let (highest_clip, _) = highest_clip(&even, 0.0, noise / n);
            let map = Map::Plain { scale, constant: whitening.constant };
            return Preconditioner {
                map,
                multipliers: even.clone(),
                highest_clip,
                curvature: even,
            };
        }
        // The regularised second moment, over n; positive definite, whatever was released.
        let gram = whitening.inverse.transposed().times(&whitening.inverse);
        let p = d - 1;
        let corner = gram.at(p, p);
        let lean: Vec<f64> = (0..p).map(|j| gram.at(j, p) / corner).collect();
        let covariance = Square::new(p, |j, k| gram.at(j, k) - lean[j] * gram.at(k, p));
        let (mut values, vectors) = eigen(&covariance.entries, p);
        let vectors = Square { size: p, entries: vectors };
        let most = values.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
        values.iter_mut().for_each(|g| *g = g.max(1e-14 * most));
        let mean = values.iter().sum::<f64>() / p as f64;
        // The constant counts as a direction of middling variance.
        values.push(mean);
        let (highest_clip, lambda) = highest_clip(&values, mean, noise / n);
        let multipliers: Vec<f64> = values.iter().map(|g| (g + lambda) / g).collect();
        let mut basis = Square { size: d, entries: vec![0.0; d * d] };
        for (k, value) in values[..p].iter().enumerate() {
            let length = (value + lambda).sqrt();
            for j in 0..p {
                basis.entries[j * d + k] = vectors.at(k, j) / length;
            }
            basis.entries[p * d + k] = -dot(&lean, vectors.row(k)) / length;
        }
        basis.entries[d * d - 1] = (mean / (mean + lambda) / corner).sqrt();
        // The curvature seen along the new coordinates: an orthogonal turn of the whitened ones.
        let scaled = Square::new(d, |row, k| basis.at(row, k) * multipliers[k].sqrt());
        let turn = whitening.inverse.times(&scaled);
        let seen = |k: usize| -> f64 {
            (0..d).map(|j| turn.at(j, k).powi(2) * whitening.curvature[j]).sum()
        };
        let curvature = (0..d).map(|k| seen(k).clamp(0.0, 1.0)).collect();
        let (mut half, mut back) = (basis.clone(), Square::identity(d));
        half.lower(p, Some(&mut back));
        let map = Map::Dense { basis, half, back, constant: whitening.constant };
        Preconditioner { map, multipliers, highest_clip, curvature }
    }

    /// Rows of `width` features in this preconditioner.
    ///
    /// Where rows are standardised first, these are the features that come out of that.
    pub fn transform(&self, width: usize) -> RowTransform {
        match &self.map {
            Map::Dense { half, constant, .. } => turned(half, *constant),
            Map::Plain { scale, constant } => RowTransform::scaled(width, *scale, scale * constant),
        }
    }

    /// Weights, for the rows of the view.
    pub fn forth(&self, w: &[f64]) -> Vec<f64> {
        match &self.map {
            Map::Dense { back, .. } => back.apply(w),
            Map::Plain { .. } => w.to_vec(),
        }
    }

    /// Weights or a gradient, from the rows of the view.
    pub fn back(&self, w: Vec<f64>) -> Vec<f64> {
        match &self.map {
            Map::Dense { back, .. } => back.transposed().apply(&w),
            Map::Plain { .. } => w,
        }
    }

    /// Newton's step along a gradient.
    pub fn newton(&self, residual: Residual, w: &[f64], gradient: &[f64]) -> Vec<f64> {
        let plain = gradient.iter().zip(&self.multipliers).map(|(g, m)| g * m).collect();
        let p = w.len() - 1;
        let size: f64 = w[..p].iter().zip(&self.multipliers).map(|(w, m)| w * w / m).sum();
        residual.newton(w, gradient, plain, size.sqrt())
    }

    /// What is known of the noise draws an average of last iterates back to zero.
    ///
    /// `noises` holds each step's noise, momentum and whether its iterate is averaged; `left` is the share of the curvature
    /// that clipping leaves. To first order a step's noise
    /// travels through the later ones by itself; its variance in the average adds up over steps. All weights but the
    /// constant's are shrunk by one factor max(0, 1 - noise/(signal + noise)), measured in predictions.
    pub fn shrink(
        &self,
        mut w: Vec<f64>,
        sizes: &[f64],
        left: f64,
        noises: &[(f64, f64, bool)],
    ) -> Vec<f64> {
        let d = w.len();
        let last = noises.iter().filter(|n| n.2).count().max(1) as f64;
        let spread = |j: usize| -> f64 {
            let (size, m) = (sizes[j] / self.multipliers[j], self.multipliers[j]);
            let travel = |from: usize| {
                let mut x = size * noises[from].0;
                let mut speed = x;
                let mut total = if noises[from].2 { x } else { 0.0 };
                for later in &noises[from + 1..] {
                    speed = later.1 * speed - left * size * self.curvature[j] * x;
                    x += speed;
                    total += if later.2 { x } else { 0.0 };
                }
                (total / last).powi(2) * m
            };
            (0..noises.len()).map(travel).sum()
        };
        let variance: Vec<f64> = (0..d).map(spread).collect();
        let whitened: Vec<f64> =
            w.iter().zip(&self.multipliers).map(|(w, m)| w / m.sqrt()).collect();
        let h = &self.curvature[..d - 1];
        let signal = weighted(h, &whitened[..d - 1]);
        let factor = kept(dot(h, &variance[..d - 1]), signal);
        w[..d - 1].iter_mut().for_each(|w| *w *= factor);
        w[d - 1] *= kept(variance[d - 1], whitened[d - 1].powi(2));
        w
    }

    /// Whether a second moment is known.
    pub fn is_whitened(&self) -> bool {
        matches!(self.map, Map::Dense { .. })
    }

    /// What noise of standard deviation one in every coordinate of a mean gradient adds to the squared error of predictions, after
    /// Newton's step.
    pub fn noise_gain(&self) -> f64 {
        dot(&self.curvature, &self.multipliers)
    }

    /// The effective number of features: the sum of all curvatures.
    pub fn effective_width(&self) -> f64 {
        self.curvature.iter().sum()
    }

    /// The mean square of predictions under these weights, about, without the constant.
    pub fn energy(&self, w: &[f64]) -> f64 {
        let parts = w.iter().zip(&self.multipliers).zip(&self.curvature);
        parts.take(w.len() - 1).map(|((w, m), h)| h * w * w / m).sum()
    }

    /// Holds the weight of the constant, in rows that have the mean of the table, to ±`most`.
    pub fn hold_constant(&self, w: &mut [f64], most: f64) {
        let p = w.len() - 1;
        let each = match &self.map {
            Map::Dense { basis, .. } => basis.at(p, p),
            Map::Plain { scale, .. } => *scale,
        };
        w[p] = w[p].clamp(-most / each, most / each);
    }

    /// The weights of the table's own columns, and of its constant.
    pub fn unmap(&self, w: &[f64]) -> (Vec<f64>, f64) {
        let mut weights = match &self.map {
            Map::Dense { basis, .. } => basis.apply(w),
            Map::Plain { scale, .. } => w.iter().map(|w| w * scale).collect(),
        };
        let constant = weights.pop().expect("there is a constant");
        (weights, constant)
    }
}

/// max(0, 1 - noise/total), James and Stein's factor.
fn kept(noise: f64, total: f64) -> f64 {
    if total > 0.0 && total.is_finite() { (1.0 - noise / total).max(0.0) } else { 0.0 }
}

/// The highest clip, in medians of the gradients' norms, that keeps noise within what is allowed, and the λ for it.
///
/// A clip of k medians on rows of squared norm Σ g/(g+λ) adds noise of variance 0.455·k²·Σ g/(g+λ)·Σ (g+λ)/g, in
/// residual variances (0.455 is the squared median of |Z|).
fn highest_clip(values: &[f64], mean: f64, noise: f64) -> (f64, f64) {
    let lambda = |k: f64| {
        let (low, high, most) = LAMBDA;
        let rise = ((k / low).powi(2) - 1.0) / ((high / low).powi(2) - 1.0);
        most * mean * rise.clamp(0.0, 1.0)
    };
    let added = |k: f64| {
        let l = lambda(k);
        let norm: f64 = values.iter().map(|g| g / (g + l)).sum();
        let back: f64 = values.iter().map(|g| (g + l) / g).sum();
        MEDIAN * MEDIAN * (k * noise).powi(2) * norm * back
    };
    let mut k = 1.0;
    while k < LAMBDA.1 && added(1.05 * k) <= ALLOWED {
        k *= 1.05;
    }
    (k, lambda(k))
}

/// [x; constant]·basis as the view of a table's rows.
fn turned(basis: &Square, constant: f64) -> RowTransform {
    let d = basis.size;
    let entry = |k: usize, j: usize| basis.at(j, k) * if j + 1 == d { constant } else { 1.0 };
    RowTransform::linear(Square::new(d, entry).entries, d - 1)
}
