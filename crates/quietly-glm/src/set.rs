//! Constraint sets of weights. All are convex, closed and public.
use quietly_engine::error::Error;
use serde::{Deserialize, Serialize};

use super::{
    constants::Norms,
    projection::{distance, largest, norm, onto_l1, onto_l2, onto_simplex, soften, sum_of_sizes},
};

/// Where weights may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "kebab-case")]
pub enum Set {
    /// Anywhere.
    Everything,
    /// ‖w‖₂ ≤ radius.
    L2 {
        /// The ball's radius.
        radius: f64,
    },
    /// ‖w‖₁ ≤ radius.
    L1 {
        /// The ball's radius.
        radius: f64,
    },
    /// Every |w| ≤ radius.
    Linf {
        /// The cube's half side.
        radius: f64,
    },
    /// w ≥ 0 and Σw = total.
    Simplex {
        /// What the weights add up to.
        total: f64,
    },
    /// Every weight between bounds of its own.
    Box {
        /// The lower bounds.
        lo: Vec<f64>,
        /// The upper bounds.
        hi: Vec<f64>,
    },
}

impl Set {
    /// # Errors
    ///
    /// [`Error::Parameter`] unless the set fits `width` weights and is neither empty nor broken.
    pub fn check(&self, width: usize) -> Result<(), Error> {
        let fits = |x: f64| {
            let good = x > 0.0 && x.is_finite();
            Error::ensure(good, "the set's radius or total", "positive", x)
        };
        match self {
            Set::Everything => Ok(()),
            Set::L2 { radius } | Set::L1 { radius } | Set::Linf { radius } => fits(*radius),
            Set::Simplex { total } => fits(*total),
            Set::Box { lo, hi } => {
                let count = lo.len().max(hi.len());
                let good = lo.len() == width && hi.len() == width;
                Error::ensure(good, "the box's bounds", "two for every weight", count)?;
                let ordered = lo.iter().zip(hi).all(|(l, h)| l <= h && (h - l).is_finite());
                Error::ensure(ordered, "the box's bounds", "finite, lower before upper", "not")
            }
        }
    }

    /// Moves `v` to the nearest point of the set.
    ///
    /// Exact up to 8d · 2⁻⁵³ (‖v‖ + radius), for d entries. Infinite or NaN entries, which no
    /// computation here makes of finite ones, give useless results but no panic.
    ///
    /// # Panics
    ///
    /// If `v` is not as wide as a box.
    pub fn project(&self, v: &mut [f64]) {
        match self {
            Set::Everything => {}
            Set::L2 { radius } => onto_l2(v, *radius),
            Set::L1 { radius } => onto_l1(v, *radius),
            // Not `clamp`, which panics for bounds in the wrong order.
            Set::Linf { radius } => v.iter_mut().for_each(|x| *x = x.max(-radius).min(*radius)),
            Set::Simplex { total } => onto_simplex(v, *total),
            Set::Box { lo, hi } => {
                assert_eq!((lo.len(), hi.len()), (v.len(), v.len()), "the box's width");
                for (x, (lo, hi)) in v.iter_mut().zip(lo.iter().zip(hi)) {
                    *x = x.max(*lo).min(*hi);
                }
            }
        }
    }

    /// Moves `v` to the u in the set with least ½‖u - v‖² + by · ‖u‖₁.
    ///
    /// Soften, then project: exact, because for every set but the simplex both do the same to the
    /// optimality conditions. L1 ball: both lower all sizes by one threshold. L2 ball: u + νu +
    /// by · sign(u) = v has the solution soft(v)/(1 + ν). Boxes: a convex function of one number is
    /// least, within bounds, at its minimiser moved to the nearest bound. On the simplex ‖u‖₁ is
    /// constant and softening would be wrong.
    pub fn shrink(&self, by: f64, v: &mut [f64]) {
        if !matches!(self, Set::Simplex { .. }) {
            soften(v, by);
        }
        self.project(v);
    }

    /// Whether `w` is in the set, but for `slack` in its bounds.
    pub fn contains(&self, w: &[f64], slack: f64) -> bool {
        let sum = |w: &[f64]| w.iter().sum::<f64>();
        match self {
            Set::Everything => true,
            Set::L2 { radius } => norm(w) <= radius + slack,
            Set::L1 { radius } => sum_of_sizes(w) <= radius + slack,
            Set::Linf { radius } => largest(w) <= radius + slack,
            Set::Simplex { total } => {
                w.iter().all(|&x| x >= -slack) && (sum(w) - total).abs() <= slack
            }
            Set::Box { lo, hi } => w
                .iter()
                .zip(lo.iter().zip(hi))
                .all(|(x, (lo, hi))| *x >= lo - slack && *x <= hi + slack),
        }
    }

    /// A point in the middle of the set.
    pub fn center(&self, width: usize) -> Vec<f64> {
        match self {
            Set::Simplex { total } => vec![total / width as f64; width],
            Set::Box { lo, hi } => lo.iter().zip(hi).map(|(lo, hi)| lo + (hi - lo) / 2.0).collect(),
            _ => vec![0.0; width],
        }
    }

    /// The largest distance of two points of the set.
    pub fn diameter(&self, width: usize) -> f64 {
        match self {
            Set::Everything => f64::INFINITY,
            Set::L2 { radius } | Set::L1 { radius } => 2.0 * radius,
            Set::Linf { radius } => 2.0 * radius * (width as f64).sqrt(),
            Set::Simplex { .. } if width < 2 => 0.0,
            Set::Simplex { total } => std::f64::consts::SQRT_2 * total,
            Set::Box { lo, hi } => distance(lo, hi),
        }
    }

    /// The largest distance of a point of the set from `start`, wherever that is.
    ///
    /// A distance is convex, so it is largest at a vertex.
    pub fn radius_from(&self, start: &[f64]) -> f64 {
        let size = norm(start);
        let farthest = |entries: &mut dyn Iterator<Item = f64>| norm(&entries.collect::<Vec<_>>());
        match self {
            Set::Everything => f64::INFINITY,
            Set::L2 { radius } => radius + size,
            // ‖±Be - w‖² = ‖w‖² + B² ± 2Bw.
            Set::L1 { radius } => {
                (size * size + radius * radius + 2.0 * radius * largest(start)).sqrt()
            }
            Set::Linf { radius } => farthest(&mut start.iter().map(|x| x.abs() + radius)),
            Set::Simplex { total } => {
                let least = start.iter().fold(f64::INFINITY, |least, &x| x.min(least));
                (size * size + total * total - 2.0 * total * least).max(0.0).sqrt()
            }
            Set::Box { lo, hi } => {
                let both = lo.iter().zip(hi).zip(start);
                farthest(&mut both.map(|((lo, hi), x)| (hi - x).max(x - lo)))
            }
        }
    }

    /// The largest norms of the set's points.
    pub fn norms(&self, width: usize) -> Norms {
        let root = (width as f64).sqrt();
        match self {
            Set::Everything => Norms { l1: f64::INFINITY, l2: f64::INFINITY, linf: f64::INFINITY },
            Set::L2 { radius } => Norms { l1: radius * root, l2: *radius, linf: *radius },
            Set::L1 { radius: r } | Set::Simplex { total: r } => Norms { l1: *r, l2: *r, linf: *r },
            Set::Linf { radius } => {
                Norms { l1: radius * width as f64, l2: radius * root, linf: *radius }
            }
            Set::Box { lo, hi } => {
                let far: Vec<f64> = lo.iter().zip(hi).map(|(l, h)| l.abs().max(h.abs())).collect();
                Norms { l1: sum_of_sizes(&far), l2: norm(&far), linf: largest(&far) }
            }
        }
    }

    /// The vertex with the least ⟨gradient, w⟩: which weight is not zero, and its value.
    ///
    /// Of equals the first. None for sets whose vertices are not on the axes.
    pub fn lowest_vertex(&self, gradient: &[f64]) -> Option<(usize, f64)> {
        let first = |key: &dyn Fn(f64) -> f64| {
            let better = |best: usize, at: usize| key(gradient[at]) > key(gradient[best]);
            (1..gradient.len()).fold(0, |best, at| if better(best, at) { at } else { best })
        };
        match self {
            Set::L1 { radius } => {
                let at = first(&f64::abs);
                Some((at, if gradient[at] > 0.0 { -radius } else { *radius }))
            }
            Set::Simplex { total } => Some((first(&|g| -g), *total)),
            _ => None,
        }
    }

    /// Writes the point with the least ⟨gradient, w⟩ into `out`.
    ///
    /// # Panics
    ///
    /// For [`Everything`](Set::Everything), which has none.
    pub fn lowest_point(&self, gradient: &[f64], out: &mut [f64]) {
        let down = |g: f64, lo: f64, hi: f64| if g > 0.0 { lo } else { hi };
        match self {
            Set::Everything => panic!("an unbounded set has no lowest point"),
            Set::L1 { .. } | Set::Simplex { .. } => {
                out.fill(0.0);
                if let Some((at, value)) = self.lowest_vertex(gradient) {
                    out[at] = value;
                }
            }
            Set::L2 { radius } => {
                let norm = norm(gradient);
                let scale = if norm > 0.0 { radius / norm } else { 0.0 };
                out.iter_mut().zip(gradient).for_each(|(w, g)| *w = -g * scale);
            }
            Set::Linf { radius } => {
                out.iter_mut().zip(gradient).for_each(|(w, &g)| *w = down(g, -radius, *radius));
            }
            Set::Box { lo, hi } => {
                for (at, w) in out.iter_mut().enumerate() {
                    *w = down(gradient[at], lo[at], hi[at]);
                }
            }
        }
    }
}
