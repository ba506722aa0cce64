//! Medians, and what is known of them.

/// SplitMix64: Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let r = (-2.0 * self.uniform().ln()).sqrt();
        r * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t with so many degrees of freedom.
    pub(crate) fn student(&mut self, degrees: u32) -> f64 {
        let square: f64 = (0..degrees).map(|_| self.normal().powi(2)).sum();
        self.normal() / (square / f64::from(degrees)).sqrt()
    }

    /// A Poisson number, by inversion.
    pub(crate) fn poisson(&mut self, mean: f64) -> f64 {
        let (mut k, mut p, u) = (0.0, (-mean).exp(), self.uniform());
        let mut sum = p;
        while sum < u && k < 1000.0 {
            k += 1.0;
            p *= mean / k;
            sum += p;
        }
        k
    }

    /// The place that these weights draw.
    pub(crate) fn one_of(&mut self, weights: &[f64]) -> usize {
        let mut left = self.uniform() * weights.iter().sum::<f64>();
        for (k, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return k;
            }
        }
        weights.len() - 1
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64
}

/// About the standard error of a median: that of normal values with the same median distance from it, so that a few wild
/// seeds do not excuse the others.
pub(crate) fn error_of_median(values: &[f64]) -> f64 {
    let middle = median(values);
    let far: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    1.2533 * 1.4826 * median(&far) / (values.len() as f64).sqrt()
}

/// The greatest distance between the distribution functions of two samples: Kolmogorov and Smirnov.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    let below = |values: &[f64], x: f64| {
        values.iter().filter(|y| **y <= x).count() as f64 / values.len() as f64
    };
    a.iter().chain(b).map(|x| (below(a, *x) - below(b, *x)).abs()).fold(0.0, f64::max)
}

#[test]
fn statistics_are_what_they_are_called() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    assert_eq!(variance(&[1.0, 3.0]), 1.0);
    assert_eq!(distance(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
    assert_eq!(distance(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
    let mut random = Random(4);
    let normal: Vec<f64> = (0..40_000).map(|_| random.normal()).collect();
    // Five standard errors of either.
    assert!(mean(&normal).abs() < 0.025 && (variance(&normal) - 1.0).abs() < 0.036);
    assert!((error_of_median(&normal) * 200.0 / 1.2533 - 1.0).abs() < 0.05);
    let counts: Vec<f64> = (0..40_000).map(|_| random.poisson(2.0)).collect();
    assert!((mean(&counts) - 2.0).abs() < 0.036);
}
