//! Brute force: privacy losses by quadrature, written without a line of the crate's own numerics.
//!
//! For independent releases δ(ε) = E_P δ_last(ε - L), where L is the summed loss of all but the
//! last. The last release has a closed form that is smooth in ε, and the trapezoidal rule on a
//! smooth, fast-falling function is exact to about 1e-12. So T-fold compositions take T - 1 nested
//! sums and no grid of losses.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
use quietly_accounting::{Event, Neighbours, PrivacyBound, delta};

pub use quietly_accounting::Neighbours::{AddRemove, ReplaceOne};

pub fn upper_tail(z: f64) -> f64 {
    0.5 * libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// Nodes z and weights of the standard normal.
pub fn normal_nodes(count: usize) -> Vec<(f64, f64)> {
    let (reach, n) = (9.0, count as f64 - 1.0);
    let z = move |i: usize| reach * (2.0 * i as f64 / n - 1.0);
    (0..count).map(|i| (z(i), density(z(i)) * 2.0 * reach / n)).collect()
}

/// One release: its δ(ε) for every real ε, and nodes (weight, loss) of its loss under P.
pub trait Release {
    fn delta(&self, epsilon: f64) -> f64;
    fn nodes(&self, count: usize) -> Vec<(f64, f64)>;
}

/// Two mixtures of N(-1), N(0), N(1) at noise `sigma` whose ratio is monotone in x.
#[derive(Clone, Copy)]
pub struct Normals {
    p: [f64; 3],
    q: [f64; 3],
    sigma: f64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Removed,
    Added,
    ReplaceOne,
}

const CENTRES: [f64; 3] = [-1.0, 0.0, 1.0];

impl Normals {
    pub fn gaussian(sigma: f64) -> Normals {
        Normals::removed(1.0, sigma)
    }

    /// The record present against absent.
    pub fn removed(rate: f64, sigma: f64) -> Normals {
        Normals { p: [0.0, 1.0 - rate, rate], q: [0.0, 1.0, 0.0], sigma, kind: Kind::Removed }
    }

    /// The record absent against present.
    pub fn added(rate: f64, sigma: f64) -> Normals {
        Normals { p: [0.0, 1.0, 0.0], q: [0.0, 1.0 - rate, rate], sigma, kind: Kind::Added }
    }

    /// The record at +1 against -1.
    pub fn replaced(rate: f64, sigma: f64) -> Normals {
        let p = [0.0, 1.0 - rate, rate];
        Normals { p, q: [rate, 1.0 - rate, 0.0], sigma, kind: Kind::ReplaceOne }
    }

    /// ln P/Q at x: both over N(0) are 1 - r + r·e^(±x/σ² - 1/2σ²).
    pub fn loss(&self, x: f64) -> f64 {
        let s2 = self.sigma * self.sigma;
        let over =
            |w: &[f64; 3]| w[0] * ((-x - 0.5) / s2).exp() + w[1] + w[2] * ((x - 0.5) / s2).exp();
        (over(&self.p) / over(&self.q)).ln()
    }

    /// The x at which the loss is `epsilon`.
    fn threshold(&self, epsilon: f64) -> f64 {
        let (s2, rate) = (self.sigma * self.sigma, self.p[2].max(self.q[2]));
        // e^((x - 1/2)/s²) = (level - (1 - r))/r.
        let solved = |level: f64| 0.5 + s2 * ((level - (1.0 - rate)) / rate).max(0.0).ln();
        match self.kind {
            Kind::Removed => solved(epsilon.exp()),
            Kind::Added => solved((-epsilon).exp()),
            Kind::ReplaceOne => {
                // A quadratic in e^(x/s²).
                let (a, e) = (rate * (-0.5 / s2).exp(), epsilon.exp());
                let b = (1.0 - rate) * (e - 1.0);
                let root = (b * b + 4.0 * a * a * e).sqrt();
                let y = if b > 0.0 { (b + root) / (2.0 * a) } else { 2.0 * a * e / (root - b) };
                s2 * y.ln()
            }
        }
    }
}

impl Release for Normals {
    fn delta(&self, epsilon: f64) -> f64 {
        let x = self.threshold(epsilon);
        let sign = if self.kind == Kind::Added { -1.0 } else { 1.0 };
        let level = epsilon.exp();
        let mut total = 0.0;
        for (i, centre) in CENTRES.iter().enumerate() {
            let weight = self.p[i] - level * self.q[i];
            if weight != 0.0 {
                total += weight * upper_tail(sign * (x - centre) / self.sigma);
            }
        }
        total.max(0.0)
    }

    fn nodes(&self, count: usize) -> Vec<(f64, f64)> {
        let each = |(w, c): (&f64, f64)| {
            let at = move |(z, weight): (f64, f64)| (w * weight, self.loss(c + z * self.sigma));
            normal_nodes(count).into_iter().map(at).filter(|n| n.0 > 0.0).collect::<Vec<_>>()
        };
        self.p.iter().zip(CENTRES).flat_map(each).collect()
    }
}

/// A release with finitely many outcomes: (P, Q) of each.
pub struct Table(pub Vec<(f64, f64)>);

impl Release for Table {
    fn delta(&self, epsilon: f64) -> f64 {
        self.0.iter().map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum()
    }

    fn nodes(&self, _: usize) -> Vec<(f64, f64)> {
        self.0.iter().filter(|(p, _)| *p > 0.0).map(|(p, q)| (*p, (p / q).ln())).collect()
    }
}

/// Laplace noise of scale `0` on a shift of one.
pub struct Laplace(pub f64);

impl Release for Laplace {
    fn delta(&self, epsilon: f64) -> f64 {
        let top = 1.0 / self.0;
        match epsilon {
            e if e >= top => 0.0,
            e if e <= -top => 1.0 - e.exp(),
            e => -(0.5 * (e - top)).exp_m1(),
        }
    }

    /// Two atoms, and the density e^((l - 1/b)/2)/4 between them by the midpoint rule.
    fn nodes(&self, count: usize) -> Vec<(f64, f64)> {
        let (top, n) = (1.0 / self.0, 40 * count);
        let width = 2.0 * top / n as f64;
        let mut nodes = vec![(0.5, top), (0.5 * (-top).exp(), -top)];
        for i in 0..n {
            let loss = -top + (i as f64 + 0.5) * width;
            nodes.push((0.25 * width * (0.5 * (loss - top)).exp(), loss));
        }
        nodes
    }
}

/// δ(ε) of all releases together.
pub fn composed(releases: &[&dyn Release], epsilon: f64, count: usize) -> f64 {
    let (last, others) = releases.split_last().expect("at least one release");
    let mut total = vec![(1.0, 0.0)];
    for release in others {
        let nodes = release.nodes(count);
        total = total
            .iter()
            .flat_map(|(w, l)| nodes.iter().map(move |(v, m)| (w * v, l + m)))
            .filter(|(w, _)| *w > 1e-22)
            .collect();
    }
    total.iter().map(|(w, l)| w * last.delta(epsilon - l)).sum()
}

/// δ's interval must hold `truth`, which is known to the relative error `tolerance`.
pub fn holds(what: &str, answer: PrivacyBound, truth: f64, tolerance: f64) {
    assert!(
        answer.lower <= truth * (1.0 + tolerance) + 1e-15,
        "{what}: {truth} is below {answer:?}"
    );
    assert!(
        answer.upper >= truth * (1.0 - tolerance) - 1e-15,
        "{what}: {truth} is above {answer:?}"
    );
}

pub fn asked(event: &Event, neighbours: Neighbours, epsilon: f64) -> PrivacyBound {
    delta(event, neighbours, epsilon).expect("a valid question")
}

/// Σ over an even grid of `cells` points each way on [-reach, reach]^D of (p - e^ε q)₊, for
/// densities of `D` coordinates.
pub fn grid<const D: usize>(
    reach: f64,
    cells: usize,
    epsilon: f64,
    pair: impl Fn(&[f64; D]) -> (f64, f64),
) -> f64 {
    let width = 2.0 * reach / cells as f64;
    let mut total = 0.0;
    let mut index = [0; D];
    loop {
        let x = index.map(|i| -reach + (i as f64 + 0.5) * width);
        let (p, q) = pair(&x);
        total += (p - epsilon.exp() * q).max(0.0);
        let mut d = 0;
        while d < D && index[d] + 1 == cells {
            index[d] = 0;
            d += 1;
        }
        if d == D {
            return total * width.powi(D as i32);
        }
        index[d] += 1;
    }
}

/// The density of N(mean, sigma²I) at x.
pub fn bump<const D: usize>(x: &[f64; D], mean: &[f64], sigma: f64) -> f64 {
    x.iter().zip(mean).map(|(x, m)| density((x - m) / sigma) / sigma).product()
}
