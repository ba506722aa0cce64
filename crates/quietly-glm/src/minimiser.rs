//! The minimiser of a smooth, strongly convex sum over rows, with a proof of how near it is.
//!
//! # Proof: distance to a minimiser
//!
//! J(w) = Σ q(⟨w, z_i⟩, y_i) + Λ/2·‖w‖² + ⟨b, w⟩. Its gradient is Λ-strongly monotone, so ‖w - argmin J‖ ≤ ‖∇J(w)‖/Λ, whatever way
//! led to w: a point is returned when this, with all that rounding may have done to ∇J, is at most what was asked for.
//!
//! The way is L-BFGS from an inverse of the curvature of some rows. It needs no proof. Where numbers of 53 bits cannot show
//! what was requested, Newton's steps continue with gradients in two words, and where those do not help, plain gradient steps in
//! two words, which must arrive: each takes the distance to argmin J down by the factor 1 - Λ/(nβ + Λ) at least.
use std::{collections::VecDeque, ops::Range};

use quietly_engine::linalg::{Factor, dot, norm};

use super::{
    design_matrix::{self, Examples},
    double_double::Double,
    glm::Glm,
    regulariser::PowerTerm,
};

/// Steps that L-BFGS looks back.
const MEMORY: usize = 10;
/// More weights than this are not worth a matrix of their own.
pub(super) const WIDEST: usize = 512;

/// What is public about J.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub glm: Glm,
    /// No row is longer.
    pub radius: f64,
    /// How many numbers a row has, its constant among them.
    pub size: usize,
    /// Λ.
    pub strong: f64,
    /// What is convex beyond that, within a set only.
    pub power_term: PowerTerm,
}

/// J.
pub struct Objective<'a> {
    pub terms: Terms,
    pub examples: &'a Examples<'a>,
    /// Which of them.
    pub rows: Range<usize>,
    /// b.
    pub linear_term: &'a [f64],
}

/// A point, and how far argmin J can be from it.
pub struct Near {
    pub point: Vec<f64>,
    pub distance: f64,
}

impl Terms {
    /// β: what the second derivative of a row does not exceed.
    pub fn smooth(&self) -> f64 {
        self.glm.smoothness * self.radius * self.radius
    }

    /// nβ + Λ, and what the power term adds.
    pub fn derivative_bound(&self, rows: f64) -> f64 {
        rows * self.smooth() + self.strong + self.power_term.smoothness
    }

    /// By how much rounding may move ∇J, for so many rows, weights of this norm and b of that.
    pub fn rounding(&self, rows: f64, weights: f64, linear_term: f64) -> f64 {
        // A power, its root and products err by less than 8u of the power term's gradient.
        let others = (self.strong + self.power_term.smoothness) * weights + linear_term;
        let sum = design_matrix::rounding(self.glm, self.radius, self.size, rows, weights);
        sum + 4.0 * f64::EPSILON * (2.0 * others + rows * self.radius * self.glm.derivative_bound)
    }

    /// A distance that 53 bits can show.
    pub fn least_distance(&self, rows: f64, weights: f64, linear_term: f64) -> f64 {
        4.0 * self.rounding(rows, weights, linear_term) / self.strong
    }
}

impl Objective<'_> {
    fn count(&self) -> f64 {
        self.rows.len() as f64
    }

    /// ∇J, and by how much it may err.
    pub(super) fn gradient(&self, w: &[f64]) -> (Vec<f64>, f64) {
        let mut g = self.examples.gradient(self.terms.glm, w, self.rows.clone());
        g.iter_mut()
            .zip(w)
            .zip(self.linear_term)
            .for_each(|((g, w), b)| *g += self.terms.strong * w + b);
        self.terms.power_term.add_gradient(w, &mut g);
        (g, self.terms.rounding(self.count(), norm(w), norm(self.linear_term)))
    }

    fn gradient_in_double(&self, w: &[Double]) -> (Vec<Double>, f64) {
        let (mut g, error) = self.examples.gradient_in_double(self.terms.glm, w, self.rows.clone());
        let strong = Double::from(self.terms.strong);
        let ws: Vec<f64> = w.iter().map(|w| w.hi).collect();
        let size = self.terms.strong * norm(&ws) + norm(self.linear_term);
        for ((g, w), b) in g.iter_mut().zip(w).zip(self.linear_term) {
            *g = *g + strong * *w + Double::from(*b);
        }
        (g, error + size * 2f64.powi(-96))
    }

    /// How far argmin J can be from where the gradient is this long.
    fn distance(&self, gradient: f64, error: f64) -> f64 {
        1.000_001 * (gradient + error) / self.terms.strong
    }

    /// A point within `near` of argmin J.
    ///
    /// `keep_on` is told of every pass, and may end it all.
    pub fn minimise<E>(
        &self,
        near: f64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<Near, E> {
        let (found, factor, passes) = self.descend(near, keep_on)?;
        if found.distance <= near {
            return Ok(found);
        }
        self.in_double(found.point, &factor, near, keep_on, passes)
    }

    /// The same, but where that takes long a point that is not as near. Also returns the curvature that it went by, and how many
    /// passes it took.
    pub fn descend<E>(
        &self,
        near: f64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<(Near, Option<Factor>, u64), E> {
        self.descend_from(vec![0.0; self.linear_term.len()], near, keep_on)
    }

    /// The same, from a point.
    pub(super) fn descend_from<E>(
        &self,
        start: Vec<f64>,
        near: f64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
    ) -> Result<(Near, Option<Factor>, u64), E> {
        debug_assert_eq!(self.terms.power_term, PowerTerm::default(), "a power term is for sets");
        let mut w = start;
        let mut passes = 0_u64;
        let mut look = |w: &[f64]| {
            passes += 1;
            keep_on(passes).map(|()| self.gradient(w))
        };
        let (mut g, mut error) = look(&w)?;
        let mut factor = self.factor(&w);
        let mut memory: VecDeque<(Vec<f64>, Vec<f64>, f64)> = VecDeque::new();
        let mut refreshed = 0;
        for step in 1..400 {
            let long = norm(&g);
            if self.distance(long, error) <= near || long <= 2.0 * error {
                break;
            }
            // The curvature of the first guess is soon out of date.
            if matches!(step, 3 | 6 | 12) && refreshed < 3 {
                factor = self.factor(&w);
                memory.clear();
                refreshed += 1;
            }
            let mut direction = self.direction(&g, &memory, &factor);
            let mut derivative = dot(&g, &direction);
            if derivative.is_nan() || derivative >= 0.0 {
                memory.clear();
                direction =
                    g.iter().map(|g| -g / (self.terms.derivative_bound(self.count()))).collect();
                derivative = dot(&g, &direction);
            }
            // As J is convex, it falls along the direction for as long as its derivative is negative.
            let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
            let (next, next_g, next_error) = loop {
                let next: Vec<f64> = w.iter().zip(&direction).map(|(w, d)| w + t * d).collect();
                let (next_g, next_error) = look(&next)?;
                let now = dot(&next_g, &direction);
                if now.abs() <= 0.7 * derivative.abs() || (high - low) < 1e-9 * t {
                    break (next, next_g, next_error);
                }
                if now > 0.0 {
                    high = t
                } else {
                    low = t
                }
                t = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * t };
                if t > 1e6 {
                    break (next, next_g, next_error);
                }
            };
            let s: Vec<f64> = next.iter().zip(&w).map(|(a, b)| a - b).collect();
            let y: Vec<f64> = next_g.iter().zip(&g).map(|(a, b)| a - b).collect();
            let turn = dot(&s, &y);
            if turn > 0.0 {
                memory.push_back((s, y, turn));
                if memory.len() > MEMORY {
                    memory.pop_front();
                }
            }
            (w, g, error) = (next, next_g, next_error);
        }
        let distance = self.distance(norm(&g), error);
        Ok((Near { point: w, distance }, factor, passes))
    }

    fn factor(&self, w: &[f64]) -> Option<Factor> {
        let size = self.linear_term.len();
        if size > WIDEST {
            return None;
        }
        let rows = (30 * size).max(1 << 12);
        let mut matrix = self.examples.curvature(self.terms.glm, w, self.rows.clone(), rows);
        (0..size).for_each(|j| matrix[j * size + j] += self.terms.strong);
        Factor::new(matrix, size)
    }

    /// -H∇J, where H is the inverse curvature that L-BFGS knows of.
    fn direction(
        &self,
        g: &[f64],
        memory: &VecDeque<(Vec<f64>, Vec<f64>, f64)>,
        factor: &Option<Factor>,
    ) -> Vec<f64> {
        let mut q: Vec<f64> = g.iter().map(|g| -g).collect();
        let mut alphas = Vec::with_capacity(memory.len());
        for (s, y, turn) in memory.iter().rev() {
            let alpha = dot(s, &q) / turn;
            q.iter_mut().zip(y).for_each(|(q, y)| *q -= alpha * y);
            alphas.push(alpha);
        }
        match (factor, memory.back()) {
            (Some(factor), _) => factor.solve(&mut q),
            (None, Some((_, y, turn))) => {
                let scale = turn / dot(y, y);
                q.iter_mut().for_each(|q| *q *= scale);
            }
            (None, None) => {
                let most = self.terms.derivative_bound(self.count());
                q.iter_mut().for_each(|q| *q /= most);
            }
        }
        for ((s, y, turn), alpha) in memory.iter().zip(alphas.into_iter().rev()) {
            let beta = dot(y, &q) / turn;
            q.iter_mut().zip(s).for_each(|(q, s)| *q += (alpha - beta) * s);
        }
        q
    }

    /// Continues with gradients in two words.
    fn in_double<E>(
        &self,
        start: Vec<f64>,
        factor: &Option<Factor>,
        near: f64,
        keep_on: &mut dyn FnMut(u64) -> Result<(), E>,
        mut passes: u64,
    ) -> Result<Near, E> {
        let mut w: Vec<Double> = start.into_iter().map(Double::from).collect();
        let most = self.terms.derivative_bound(self.count());
        let (mut last, mut plain) = (f64::INFINITY, false);
        loop {
            passes += 1;
            keep_on(passes)?;
            let (g, error) = self.gradient_in_double(&w);
            let g: Vec<f64> = g.into_iter().map(|g| g.hi).collect();
            let long = norm(&g);
            let point: Vec<f64> = w.iter().map(|w| w.hi).collect();
            // The point is what the first words say.
            let rounded = f64::EPSILON * norm(&point);
            let distance = self.distance(long * (1.0 + f64::EPSILON), error) + rounded;
            if distance <= near {
                return Ok(Near { point, distance });
            }
            plain |= long > 0.7 * last || factor.is_none();
            last = long;
            let mut step: Vec<f64> = g.iter().map(|g| -g).collect();
            match factor {
                Some(factor) if !plain => factor.solve(&mut step),
                _ => step.iter_mut().for_each(|s| *s /= most),
            }
            w.iter_mut().zip(step).for_each(|(w, s)| *w = *w + Double::from(s));
        }
    }
}

#[cfg(test)]
pub mod tests {
    use quietly_core::random::Random;

    use super::*;
    use crate::{
        design_matrix::{Features, Shape},
        loss::Loss,
    };

    /// Losses with bounds that hold for rows of norm 2 and the weights of these tests.
    pub const SMOOTH: [Glm; 6] = [
        Glm { loss: Loss::Logistic, derivative_bound: 1.0, smoothness: 0.25 },
        Glm { loss: Loss::Squared, derivative_bound: 40.0, smoothness: 2.0 },
        Glm { loss: Loss::SmoothHinge { width: 0.5 }, derivative_bound: 1.0, smoothness: 1.0 },
        Glm { loss: Loss::Huber { width: 0.7 }, derivative_bound: 0.7, smoothness: 1.0 },
        Glm {
            loss: Loss::SmoothQuantile { level: 0.3, width: 0.5 },
            derivative_bound: 0.7,
            smoothness: 1.0,
        },
        Glm { loss: Loss::Softmax { classes: 3 }, derivative_bound: 1.5, smoothness: 0.5 },
    ];

    pub fn rows(count: usize, width: usize, glm: Glm, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut random = Random(seed);
        let x = (0..count * width).map(|_| random.number()).collect();
        let y = (0..count).map(|_| {
            let y = random.number();
            match glm.loss {
                Loss::Softmax { classes } => ((0.5 + 0.5 * y) * classes as f64).floor(),
                loss if loss.needs_labels() => y.signum(),
                _ => y,
            }
        });
        (x, y.collect())
    }

    pub const SHAPE: Shape = Shape { width: 4, constant: 0.5, l1: None, radius: 2.0 };

    /// b is chosen so that the minimiser is known: what is found is as near as it claims, also where 53 bits do not do.
    #[test]
    fn the_minimiser_is_as_near_as_it_is_said_to_be() {
        for (k, glm) in SMOOTH.into_iter().enumerate() {
            let (x, y) = rows(600, 4, glm, 10 + k as u64);
            let examples = Examples::new(SHAPE, Features::Dense(&x), y, 2);
            let terms =
                Terms { glm, radius: 2.0, size: 5, strong: 3.0, power_term: PowerTerm::default() };
            let mut random = Random(99);
            let known: Vec<f64> = (0..5 * glm.outputs()).map(|_| random.number()).collect();
            let exact: Vec<Double> = known.iter().map(|&w| w.into()).collect();
            let (sum, _) = examples.gradient_in_double(glm, &exact, 0..examples.rows());
            let linear_term: Vec<f64> =
                sum.iter().zip(&known).map(|(g, w)| -(g.hi + 3.0 * w)).collect();
            for near in [1e-3, 1e-9, 1e-14] {
                let objective = Objective {
                    terms,
                    examples: &examples,
                    rows: 0..examples.rows(),
                    linear_term: &linear_term,
                };
                let mut passes = 0;
                let mut keep_on = |pass| -> Result<(), ()> {
                    passes = pass;
                    Ok(())
                };
                let found = objective.minimise(near, &mut keep_on).unwrap();
                let apart: Vec<f64> = found.point.iter().zip(&known).map(|(a, b)| a - b).collect();
                assert!(found.distance <= near && norm(&apart) <= near + 1e-15, "{glm:?} {near}");
                assert!(passes < 60, "{glm:?} {near} {passes}");
            }
        }
    }

    /// Plain steps in two words arrive on their own, as the theorem says.
    #[test]
    fn proven_steps_arrive() {
        let glm = SMOOTH[0];
        let (x, y) = rows(40, 4, glm, 3);
        let examples = Examples::new(SHAPE, Features::Dense(&x), y, 1);
        let terms =
            Terms { glm, radius: 2.0, size: 5, strong: 3.0, power_term: PowerTerm::default() };
        let objective = Objective {
            terms,
            examples: &examples,
            rows: 0..examples.rows(),
            linear_term: &[1.0; 5],
        };
        let fast = objective.minimise::<()>(1e-12, &mut |_| Ok(())).unwrap().point;
        let (mut passes, kappa) = (0, terms.derivative_bound(40.0) / 3.0);
        let mut count = |pass| -> Result<(), ()> {
            passes = pass;
            Ok(())
        };
        let slow = objective.in_double(vec![0.0; 5], &None, 1e-12, &mut count, 0).unwrap().point;
        assert!(fast.iter().zip(&slow).all(|(a, b)| (a - b).abs() < 3e-12));
        assert!((passes as f64) < kappa * 40.0, "{passes} {kappa}");
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let (x, y) = rows(5000, 4, SMOOTH[0], 5);
        let point = |threads| {
            let examples = Examples::new(SHAPE, Features::Dense(&x), y.clone(), threads);
            let terms = Terms {
                glm: SMOOTH[0],
                radius: 2.0,
                size: 5,
                strong: 3.0,
                power_term: PowerTerm::default(),
            };
            let objective = Objective {
                terms,
                examples: &examples,
                rows: 0..examples.rows(),
                linear_term: &[1.0; 5],
            };
            objective.minimise::<()>(1e-9, &mut |_| Ok(())).unwrap().point
        };
        assert!(point(1) == point(2) && point(1) == point(7));
    }

    /// What rounding is said to do to a gradient is no less than what it does; a sum in single words would do more.
    #[test]
    fn rounding_stays_within_its_bound() {
        for glm in SMOOTH {
            let (x, y) = rows(3000, 4, glm, 8);
            let examples = Examples::new(SHAPE, Features::Dense(&x), y, 2);
            let w: Vec<f64> = (0..5 * glm.outputs()).map(|j| 0.3 * j as f64 - 0.7).collect();
            let exact: Vec<Double> = w.iter().map(|&w| w.into()).collect();
            let (found, (sum, _)) = (
                examples.gradient(glm, &w, 0..3000),
                examples.gradient_in_double(glm, &exact, 0..examples.rows()),
            );
            let apart: Vec<f64> = found.iter().zip(&sum).map(|(a, b)| (a - b.hi) - b.lo).collect();
            let bound = design_matrix::rounding(glm, 2.0, 5, 3000.0, norm(&w));
            assert!(norm(&apart) <= bound && bound < 1e-8, "{glm:?} {bound:e}");
            assert!(norm(&apart) > 0.0);
        }
    }
}
