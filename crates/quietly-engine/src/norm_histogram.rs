//! The clipping norm from a released histogram of gradient norms: all of it post-processing.
//!
//! Norms are counted in powers of two. Noise alone puts counts into empty bins far above all norms, and a clip there would
//! cost noise for nothing. So the clip follows from a lower bound on the tail: above an end there is at least what stands out from its
//! noise in any run of bins above it, and what is above that run. A run has the noise of its own bins only, so that rows in a few bins are
//! seen however many empty ones there are above them. Without noise the bound is exact.

use crate::residual::MEDIAN;

/// The lowest end of a bin is 2^this, for targets within [-1, 1] and whitened rows.
const FIRST: i32 = -24;
/// So many standard deviations of their noise are taken from the counts of a run.
const STANDS_OUT: f64 = 3.0;
/// The same of norms that few tables have, where a clip that follows noise would be far too high.
const STANDS_FAR_OUT: f64 = 4.0;
/// What clipping is charged: between 0, if what is cut off is symmetric, and 1, if all of it lies on one side.
const BIAS: f64 = 0.3;
/// The least share of the curvature that a clip is taken to leave.
const LEAST_LEFT: f64 = 0.5;

/// A released histogram of the norms of gradients.
#[derive(Clone, Debug, PartialEq)]
pub struct NormHistogram {
    /// The upper ends of all bins.
    ends: Vec<f64>,
    /// The share of rows in each bin, by the lower bound on tails: what that leaves over is in the first.
    mass: Vec<f64>,
    scale: f64,
}

/// Where a clip is best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestClip {
    pub clip: f64,
    /// The share of the curvature that it leaves.
    pub left: f64,
}

impl NormHistogram {
    /// The upper ends of all bins but the last, for about so many rows of d features: a row whitened by the others has norm √n at most,
    /// and few are longer than six times √d.
    pub fn ends(rows: u64, d: usize) -> Vec<f64> {
        let usual = usual(d);
        let last = usual.max(1 + (0.5 * (rows.max(1) as f64).log2()).ceil() as i32);
        let far = (usual + 2..=last + 1).step_by(2);
        (FIRST..=usual).chain(far).map(|k| 2f64.powi(k)).collect()
    }

    /// From noisy counts of about so many rows between these ends, with noise of this standard deviation.
    ///
    /// # Panics
    ///
    /// Unless there is one count more than there are ends.
    pub fn new(mut ends: Vec<f64>, counts: &[f64], sd: f64, (rows, d): (f64, usize)) -> Self {
        assert_eq!(counts.len(), ends.len() + 1, "a count for every bin");
        ends.push(ends[ends.len() - 1] * 2.0);
        let usual = 6.0 * (d as f64).sqrt();
        let (mut above, mut median) = (0.0, 0);
        // The rows in the bin and those above it, at least.
        let mut tails = vec![0.0; counts.len() + 1];
        for k in (0..counts.len()).rev() {
            above += counts[k];
            if median == 0 && above >= 0.5 * rows {
                median = k;
            }
            let far = if ends[k] > 2.0 * usual { STANDS_FAR_OUT } else { STANDS_OUT };
            let (mut run, mut most) = (0.0, tails[k + 1]);
            for end in k..counts.len() {
                run += counts[end];
                let noise = far * sd * ((end + 1 - k) as f64).sqrt();
                most = f64::max(most, run - noise + tails[end + 1]);
            }
            tails[k] = most.min(rows);
        }
        let mut mass: Vec<f64> = tails.windows(2).map(|t| (t[0] - t[1]) / rows).collect();
        mass[0] += 1.0 - tails[0] / rows;
        let median = ends[median] * 2f64.powf(-0.5);
        let mut histogram = NormHistogram { ends, mass, scale: 0.0 };
        let square: f64 = histogram.points().map(|(norm, mass)| mass * norm * norm).sum();
        histogram.scale = square.sqrt().max(median / MEDIAN);
        histogram
    }

    /// The clip of the least predicted error: `noise`²·clip² from the noise that is made for it, and what it takes from gradients,
    /// 0.3·E(norm - clip)₊².
    pub fn best_clip(&self, noise: f64) -> BestClip {
        let error = |clip: f64| {
            let over: f64 = self.points().map(|(norm, mass)| mass * (norm - clip).max(0.0)).sum();
            (noise * clip).powi(2) + BIAS * over * over
        };
        let quarters = [0.75, 0.5, 0.25, 0.0].map(|k: f64| 2f64.powf(-k));
        let fine = self.ends.iter().flat_map(|end| quarters.map(|part| part * end));
        let clip = fine.min_by(|a, b| error(*a).total_cmp(&error(*b))).expect("there are bins");
        let below: f64 = self.points().filter(|(norm, _)| *norm <= clip).map(|(_, m)| m).sum();
        BestClip { clip, left: below.clamp(LEAST_LEFT, 1.0) }
    }

    /// The root mean square of norms, about: where tails drown in noise, that of normal residuals with the same median.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Norms that stand for the bins, in order, with their mass: each bin is spread over its range.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let parts = [0.75, 0.5, 0.25, 0.0];
        let least = self.ends.iter().take(1).map(|end| 0.5 * end);
        let lower = least.chain(self.ends.iter().copied());
        self.ends.iter().zip(lower).zip(&self.mass).flat_map(move |((end, lower), mass)| {
            parts.map(|k: f64| (end * libm::pow(lower / end, k), mass / parts.len() as f64))
        })
    }
}

/// Norms of rows with d features are usually at most two to the power of this.
fn usual(d: usize) -> i32 {
    (6.0 * (d as f64).sqrt()).log2().ceil() as i32
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    /// The exact counts of these norms.
    fn counts(norms: &[f64], ends: &[f64]) -> Vec<f64> {
        let mut counts = vec![0.0; ends.len() + 1];
        norms.iter().for_each(|g| counts[ends.partition_point(|end| end < g)] += 1.0);
        counts
    }

    fn normal(random: &mut Random) -> f64 {
        let (a, b) = (random.number().abs().max(1e-300), random.number());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::PI * b).cos()
    }

    /// Without noise no norm is clipped; with much, more than half of the rows may be.
    #[test]
    fn the_clip_rises_with_what_noise_allows() {
        let mut random = Random(3);
        let norms: Vec<f64> = (0..20_000).map(|_| normal(&mut random).abs().exp()).collect();
        let most = norms.iter().copied().fold(0.0, f64::max);
        let ends = NormHistogram::ends(20_000, 7);
        let histogram =
            NormHistogram::new(ends.clone(), &counts(&norms, &ends), 0.0, (20_000.0, 7));
        let clip = |noise: f64| histogram.best_clip(noise);
        assert!(clip(0.0).clip >= 0.99 * most && clip(0.0).left > 0.999);
        let clips = [0.001, 0.01, 0.1, 1.0].map(|noise| clip(noise).clip);
        assert!(clips.is_sorted_by(|a, b| a > b) && clips[3] < histogram.scale(), "{clips:?}");
        assert_eq!(clip(1.0).left, LEAST_LEFT);
        let square = norms.iter().map(|g| g * g).sum::<f64>() / 20_000.0;
        assert!((histogram.scale() / square.sqrt()).log2().abs() < 0.5);
    }

    /// Norms between 1 and 2, and noise a fortieth of the rows: of 2000 releases from a fixed seed, one in 50 may have its clip above
    /// 4; counts that are taken as they come put it there nearly always.
    #[test]
    fn empty_bins_do_not_set_the_clip() {
        let mut random = Random(11);
        let norms: Vec<f64> = (0..4000).map(|i| 1.0 + f64::from(i) / 4000.0).collect();
        let ends = NormHistogram::ends(4000, 7);
        let exact = counts(&norms, &ends);
        let sd = 100.0;
        let (mut high, mut uncut) = (0, 0);
        for _ in 0..2000 {
            let noisy: Vec<f64> = exact.iter().map(|c| c + sd * normal(&mut random)).collect();
            high += usize::from(
                NormHistogram::new(ends.clone(), &noisy, sd, (4000.0, 7)).best_clip(0.01).clip
                    > 4.0,
            );
            uncut += usize::from(
                NormHistogram::new(ends.clone(), &noisy, 0.0, (4000.0, 7)).best_clip(0.01).clip
                    > 4.0,
            );
        }
        assert!(high < 40 && uncut > 1500, "{high} {uncut}");
    }

    /// Three quarters of all gradients are nought: the others set the clip.
    #[test]
    fn a_spike_at_nought_does_not_set_the_clip() {
        let norms: Vec<f64> = (0..4000).map(|i| if i % 4 == 0 { 1.0 } else { 0.0 }).collect();
        let ends = NormHistogram::ends(4000, 7);
        let histogram = NormHistogram::new(ends.clone(), &counts(&norms, &ends), 10.0, (4000.0, 7));
        assert!((0.7..1.5).contains(&histogram.best_clip(0.01).clip));
        assert_eq!(
            NormHistogram::new(ends.clone(), &vec![0.0; ends.len() + 1], 1.0, (9.0, 7)).mass[0],
            1.0
        );
    }
}
