//! The paper's algorithms with the paper's constants, simulated: for comparison only.
//!
//! **Nothing here is a release.** Noise is 4Lη√ln(1/δ)/ε by a plain generator, points leave the set after noise, parts have
//! the printed sizes and rows beyond them are unused, and the start is random: with points outside the set the published
//! proof has a hole, and inside it the noise is several times what is needed. See the errata in docs/spec/convex.md#10.
use quietly::{Set, Sparse};
use quietly_cli::error::Failure;

use super::problem::{ITERATED, PHASED, PSA, Problem, SC, score};
use crate::reproduce::world::Normals;

/// D, for sets of diameter 2.
const DIAMETER: f64 = 2.0;
/// Halvings in search of a point on a sphere.
const HALVINGS: usize = 30;

/// A run of an algorithm on rows.
pub(super) struct Printed<'a> {
    pub(super) problem: Problem,
    pub(super) rows: &'a Sparse,
    pub(super) width: usize,
    pub(super) epsilon: f64,
    pub(super) delta: f64,
    pub(super) normals: Normals,
}

/// The set, and a ball around a centre.
struct Ground {
    set: Set,
    ball: Option<(Vec<f64>, f64)>,
}

impl Ground {
    /// The nearest point of both; of the set, the nearest to the centre if they do not meet.
    fn project(&self, w: &mut Vec<f64>) {
        let outside = w.clone();
        self.set.project(w);
        let Some((centre, radius)) = &self.ball else { return };
        let far = |w: &[f64]| {
            w.iter().zip(centre).map(|(w, c)| (w - c) * (w - c)).sum::<f64>().sqrt() > *radius
        };
        if !far(w) {
            return;
        }
        // The set's nearest point to c + s(w - c) moves away from c as s grows.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let s = 0.5 * (low + high);
            w.clear();
            w.extend(outside.iter().zip(centre).map(|(w, c)| c + s * (w - c)));
            self.set.project(w);
            if far(w) { high = s } else { low = s }
        }
    }
}

impl Printed<'_> {
    /// The weights by the algorithm of this name.
    pub(super) fn fit(&mut self, name: &str) -> Result<Vec<f64>, Failure> {
        let n = self.rows.rows();
        let mut w = self.start()?;
        let whole = |set| Ground { set, ball: None };
        let set = self.problem.set();
        if name == PHASED {
            return self.phased(w, 0, n, DIAMETER, &whole(set));
        }
        let log = (n as f64).log2();
        if name == PSA {
            let stages = ((0.5 * (2.0 * n as f64 / log).log2()).floor() as usize).max(2) - 1;
            let (part, mut radius) = (n / stages, DIAMETER);
            for k in 0..stages {
                let ground = Ground { set: set.clone(), ball: Some((w.clone(), radius)) };
                w = self.phased(w, k * part, part, radius, &ground)?;
                radius /= 2.0;
            }
            return Ok(w);
        }
        // The part of the rows that the first of the doubling parts has, and how many there are.
        let (first, parts) = match name {
            SC => (0.5 / log, log.log2().ceil().max(1.0)),
            _ => {
                let theta: f64 = if name == ITERATED[0] { 1.5 } else { 2.0 };
                let kappa = 1.0 / theta.log2();
                (log.powf(-kappa), (kappa * log.log2()).floor().max(1.0))
            }
        };
        let mut from = 0;
        for i in 0..parts as i32 {
            let part = ((first * n as f64 * 2f64.powi(i)) as usize).min(n - from);
            w = self.phased(w, from, part, DIAMETER, &whole(set.clone()))?;
            from += part;
        }
        Ok(w)
    }

    /// Algorithm 1 on `rows` rows from `from`, with the step of Lemma 10.
    fn phased(
        &mut self,
        mut w: Vec<f64>,
        mut from: usize,
        rows: usize,
        distance: f64,
        ground: &Ground,
    ) -> Result<Vec<f64>, Failure> {
        let (lipschitz, smooth) = self.problem.published_constants();
        let log = (1.0 / self.delta).ln();
        let privacy = self.epsilon / (2.0 * (self.width as f64 * log).sqrt());
        let step = distance / lipschitz * (4.0 / (rows as f64).sqrt()).min(privacy);
        let mut step = step.min(1.0 / smooth);
        let mut noise = vec![0.0; self.width];
        for i in 1..=(rows as f64).log2().ceil() as u32 {
            step /= 4.0;
            let part = rows >> i;
            let mut sum = w.clone();
            for t in from..from + part {
                self.descend(&mut w, t, step);
                ground.project(&mut w);
                sum.iter_mut().zip(&w).for_each(|(s, w)| *s += w);
            }
            from += part;
            let sigma = 4.0 * lipschitz * step * log.sqrt() / self.epsilon;
            self.normals.fill(&mut noise)?;
            let mean = sum.iter().map(|s| s / (part + 1) as f64);
            w = mean.zip(&noise).map(|(w, z)| w + sigma * z).collect();
        }
        Ok(w)
    }

    /// A gradient step on one row.
    fn descend(&self, w: &mut [f64], row: usize, step: f64) {
        let (index, values) = self.rows.row(row);
        let slope =
            self.problem.loss().derivative(score(w, (index, values)), self.rows.target[row]);
        let ridge = self.problem.ridge();
        if ridge > 0.0 {
            w.iter_mut().for_each(|w| *w -= step * ridge * *w);
        }
        index.iter().zip(values).for_each(|(j, x)| w[*j as usize] -= step * slope * x);
    }

    /// A uniform point of the set.
    fn start(&mut self) -> Result<Vec<f64>, Failure> {
        let mut w = vec![0.0; self.width];
        self.normals.fill(&mut w)?;
        // Two normals more make squares of d + 2 that are uniform over a ball once the two are left out; pairs of squares are
        // exponential, and d + 1 of those do the same for the L1 ball.
        let mut more = vec![0.0; 2 * self.width + 2];
        self.normals.fill(&mut more)?;
        if let Set::L2 { radius } = self.problem.set() {
            let all: f64 = w.iter().chain(&more[..2]).map(|x| x * x).sum();
            return Ok(w.iter().map(|x| radius * x / all.sqrt()).collect());
        }
        let sizes: Vec<f64> = more.chunks_exact(2).map(|p| p[0] * p[0] + p[1] * p[1]).collect();
        let all: f64 = sizes.iter().sum();
        Ok(w.iter().zip(&sizes).map(|(x, size)| x.signum() * size / all).collect())
    }
}

#[cfg(test)]
mod tests {
    use quietly::Key;

    use super::{super::tables::Table, *};

    fn printed(problem: Problem, rows: &Sparse, width: usize, seed: u64) -> Printed<'_> {
        let bits = Key::from_seed(seed).stream("test").bits(0).unwrap();
        let normals = Normals::new(bits);
        Printed { problem, rows, width, epsilon: 1e6, delta: 1e-5, normals }
    }

    #[test]
    fn starts_lie_in_the_set_and_fill_it() {
        let rows = Sparse::empty(3);
        for problem in [Problem::Linear, Problem::Logistic] {
            let (mut inner, count) = (0, 2000);
            for seed in 0..count {
                let mut run = printed(problem, &rows, 3, seed);
                let w = run.start().unwrap_or_else(|e| panic!("{e:?}"));
                let norm = match problem {
                    Problem::Logistic => w.iter().map(|x| x * x).sum::<f64>().sqrt(),
                    _ => w.iter().map(|x| x.abs()).sum(),
                };
                assert!(norm <= 1.0);
                inner += u64::from(norm < 0.5);
            }
            // An eighth of the volume, give or take four standard deviations of 0.0074.
            let share = inner as f64 / count as f64;
            assert!((share - 0.125).abs() < 0.03, "{problem:?} {share}");
        }
    }

    #[test]
    fn projections_meet_both_sets() {
        let ground = Ground { set: Set::L1 { radius: 1.0 }, ball: Some((vec![0.5, 0.0], 0.25)) };
        let mut w = vec![2.0, 0.0];
        ground.project(&mut w);
        assert!((w[0] - 0.75).abs() < 1e-8 && w[1].abs() < 1e-8, "{w:?}");
        let mut w = vec![0.4, 0.1];
        ground.project(&mut w);
        assert_eq!(w, [0.4, 0.1]);
    }

    /// Without noise to speak of, every algorithm learns: the loss falls below that of w = 0.
    #[test]
    fn algorithms_as_printed_learn_where_there_is_no_noise() {
        let table = Table::made_up(6000, 1000).unwrap_or_else(|e| panic!("{e:?}"));
        let sample = table.sample(5000, 1).unwrap_or_else(|e| panic!("{e:?}"));
        for problem in Problem::ALL {
            let zero = problem.risk(&vec![0.0; table.width], &table.test);
            for name in [PHASED, PSA, ITERATED[0], ITERATED[1], SC] {
                let mut run = printed(problem, &sample.rows, table.width, 3);
                let w = run.fit(name).unwrap_or_else(|e| panic!("{e:?}"));
                let risk = problem.risk(&w, &table.test);
                assert!(risk < zero - 0.01, "{problem:?} {name}: {risk} of {zero}");
            }
        }
    }
}
