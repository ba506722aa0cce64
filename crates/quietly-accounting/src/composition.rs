//! The cost of a composition of mechanisms, as an interval that is refined until it is narrow.
use crate::{
    convolution::{Curve, Target, Term, compose, tilt},
    dominating_pair::{Direction, DominatingPair, PreparedPair, Resolution},
    gaussian,
    interval::Interval,
    pld_grid::Side,
    ratio_distribution::RatioDistribution,
};

mod closed_form;

/// Mechanisms that ran on the same units: Gaussian releases by their total μ², the others by their
/// pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Composition {
    pub(crate) mu_squared: f64,
    pub(crate) pairs: Vec<(DominatingPair, u64)>,
    /// Whether likelihood ratios are too large for a [`RatioDistribution`].
    pub(crate) large: bool,
}

/// Refinement stops at this relative width, or at these limits.
const NARROW: f64 = 4e-3;
const ROUNDS: usize = 3;
const MOST_CELLS: f64 = (1 << 17) as f64;
const MOST_POINTS: usize = 2400;
/// Share of δ that truncation may cost.
const TRUNCATION: f64 = 1e-6;
/// How often a step is doubled until the window fits.
const COARSENINGS: usize = 12;

/// A bound on the curve δ(ε), from one side.
pub(crate) enum Profile {
    Composed(Curve),
    Allocated(RatioDistribution, Direction, Side),
    /// No bound but the trivial one.
    Unknown(Side),
}

impl Profile {
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        match self {
            Profile::Composed(curve) => curve.delta(epsilon),
            Profile::Allocated(law, Direction::Removed, side) => law.delta_removed(epsilon, *side),
            Profile::Allocated(law, Direction::Added, side) => law.delta_added(epsilon, *side),
            Profile::Unknown(Side::Above) => 1.0,
            Profile::Unknown(Side::Below) => 0.0,
        }
    }

    fn epsilon(&self, target: f64) -> f64 {
        match self {
            Profile::Composed(curve) => curve.epsilon(target),
            Profile::Allocated(_, _, side) | Profile::Unknown(side) => match side {
                Side::Above => crossing(|e| exceeds(self.delta(e), target)).1,
                Side::Below => crossing(|e| self.delta(e) > target).0,
            },
        }
    }

    fn bound(&self, target: Target) -> f64 {
        match target {
            Target::Delta(delta) => self.epsilon(delta),
            Target::Epsilon(epsilon) => self.delta(epsilon),
        }
    }
}

/// Whether an upper bound on δ is above the target. NaN counts as above.
fn exceeds(delta: f64, target: f64) -> bool {
    delta.is_nan() || delta > target
}

/// The bound in the worse direction. NaN becomes infinity from above and zero from below.
fn worst(profiles: &[Profile], target: Target, side: Side) -> f64 {
    let unknown = if side == Side::Above { f64::INFINITY } else { 0.0 };
    let known = |answer: f64| if answer.is_nan() { unknown } else { answer };
    profiles.iter().map(|profile| known(profile.bound(target))).fold(0.0, f64::max)
}

/// Brackets the point up to which `above` holds, for an `above` that is false from there on.
pub(crate) fn crossing(above: impl Fn(f64) -> bool) -> (f64, f64) {
    if !above(0.0) {
        return (0.0, 0.0);
    }
    let mut high = 1.0 / 64.0;
    while above(high) {
        high *= 2.0;
        if high > 1e6 {
            return (0.5 * high, f64::INFINITY);
        }
    }
    let mut low = 0.0;
    while high - low > 1e-12 * high {
        let mid = 0.5 * (low + high);
        if above(mid) { low = mid } else { high = mid }
    }
    (low, high)
}

impl Composition {
    pub(crate) fn gaussian(mu: f64) -> Composition {
        Composition { mu_squared: mu * mu, pairs: vec![], large: false }
    }

    pub(crate) fn of(pair: DominatingPair) -> Composition {
        Composition { mu_squared: 0.0, pairs: vec![(pair, 1)], large: false }
    }

    pub(crate) fn repeat(&mut self, times: u64) {
        self.mu_squared *= times as f64;
        self.pairs.iter_mut().for_each(|(_, t)| *t = t.saturating_mul(times));
    }

    pub(crate) fn join(&mut self, other: &Composition) {
        self.mu_squared += other.mu_squared;
        for (pair, times) in &other.pairs {
            match self.pairs.iter_mut().find(|(p, _)| p == pair) {
                Some((_, t)) => *t = t.saturating_add(*times),
                None => self.pairs.push((pair.clone(), *times)),
            }
        }
    }

    /// The pairs that are composed numerically, with all Gaussian releases as one.
    fn numeric(&self) -> Vec<(DominatingPair, u64)> {
        let combined = |(pair, times): &(DominatingPair, u64)| match !self.large
            && pair.is_fine(*times, 1e-15)
        {
            true => (
                DominatingPair::RepeatedPoisson { sampled: Box::new(pair.clone()), times: *times },
                1,
            ),
            false => (pair.clone(), *times),
        };
        let mut pairs: Vec<(DominatingPair, u64)> = self.pairs.iter().map(combined).collect();
        if self.mu_squared > 0.0 {
            pairs.push((DominatingPair::Gaussian { sigma: 1.0 / self.mu_squared.sqrt() }, 1));
        }
        pairs
    }

    /// An interval for ε at a δ, or for δ at an ε.
    pub(crate) fn bracket(&self, target: Target) -> Interval {
        // Composition of Gaussians is exact up to the rounding of μ².
        if self.pairs.is_empty() {
            let low = self.mu_squared.sqrt() * (1.0 - 1e-14);
            let high = self.mu_squared.sqrt() * (1.0 + 1e-14);
            return match target {
                Target::Delta(d) => {
                    Interval::new(gaussian::epsilon(low, d).lower, gaussian::epsilon(high, d).upper)
                }
                Target::Epsilon(e) => {
                    Interval::new(gaussian::delta(low, e).lower, gaussian::delta(high, e).upper)
                }
            };
        }
        if let Some(known) = self.single(target) {
            return known;
        }
        let narrow = match target {
            Target::Delta(_) => NARROW,
            Target::Epsilon(_) => 10.0 * NARROW,
        };
        let mut resolution = self.first_resolution(target);
        let mut best = Interval { lower: 0.0, upper: self.basic(target) };
        for round in 0..ROUNDS {
            let found = self.at(target, &mut resolution);
            debug_assert!(found.lower <= best.upper * (1.0 + 1e-9) + 1e-9, "{found:?} {best:?}");
            // Ratios above the ceiling of a `RatioDistribution`: transform the losses instead.
            if !self.large
                && self.is_long()
                && (found.lower > 300.0 || found.upper == f64::INFINITY)
            {
                return Composition { large: true, ..self.clone() }.bracket(target);
            }
            best = Interval::new(best.lower.max(found.lower), best.upper.min(found.upper));
            let width = best.relative_width();
            if width <= narrow
                || round + 1 == ROUNDS
                || !self.refine(&mut resolution, narrow / width)
            {
                break;
            }
        }
        best
    }

    /// Upper bounds from one composition, `coarser` times as coarse as the first of a bracket:
    /// enough for a search. The composition is tuned to `around`, and loosest for the targets
    /// farthest from it.
    pub(crate) fn uppers(&self, around: Target, targets: &[Target], coarser: f64) -> Vec<f64> {
        if self.pairs.is_empty() || self.single(around).is_some() {
            return targets.iter().map(|target| self.bracket(*target).upper).collect();
        }
        let mut resolution = self.first_resolution(around);
        resolution.step *= coarser;
        resolution.points = (resolution.points as f64 / coarser) as usize;
        self.align(&mut resolution);
        let pairs = self.numeric();
        let prepared = PreparedPairs::new(&pairs, Side::Above, resolution);
        for _ in 0..COARSENINGS {
            if let Some(profiles) = prepared.profiles(around, resolution) {
                let upper = |target| worst(&profiles, target, Side::Above).min(self.basic(target));
                return targets.iter().map(|target| upper(*target)).collect();
            }
            resolution.step *= 2.0;
            self.align(&mut resolution);
        }
        targets.iter().map(|target| self.basic(*target)).collect()
    }

    fn first_resolution(&self, target: Target) -> Resolution {
        let pairs = self.numeric();
        let total: f64 = pairs.iter().map(|(_, t)| *t as f64).sum();
        let variance: f64 = pairs.iter().map(|(p, t)| *t as f64 * p.spread().powi(2)).sum();
        let delta = match target {
            Target::Delta(delta) => delta,
            Target::Epsilon(_) => 1e-12,
        };
        let tail = TRUNCATION * delta / total;
        let length = pairs.iter().map(|(p, _)| p.length(tail)).fold(0.0, f64::max);
        let step =
            (0.1 * (variance / total).sqrt()).clamp(2.0 * length / MOST_CELLS, length / 64.0);
        let points = pairs.iter().map(|(p, _)| p.points()).max().unwrap_or(0);
        let mut resolution = Resolution { step, points, tail, delta };
        self.align(&mut resolution);
        resolution
    }

    /// Makes the step divide the loss of the first atom that is not below it. The step becomes at
    /// most twice as fine: a step that divided a loss of 1e-6 would need millions of cells for a
    /// Gaussian in the same composition.
    fn align(&self, resolution: &mut Resolution) {
        let mut units = self.pairs.iter().filter_map(|(p, _)| p.unit());
        if let Some(unit) = units.find(|unit| *unit >= resolution.step) {
            resolution.step = unit / (unit / resolution.step).ceil();
        }
    }

    /// Refines the resolution; errors decrease with the square of the step. False at the limits.
    fn refine(&self, resolution: &mut Resolution, wanted: f64) -> bool {
        let factor = (0.8 * wanted.sqrt()).clamp(0.1, 0.6);
        let pairs = self.numeric();
        let length = pairs.iter().map(|(p, _)| p.length(resolution.tail)).fold(0.0, f64::max);
        let finest = length / MOST_CELLS;
        if resolution.step <= 1.01 * finest || resolution.points >= MOST_POINTS {
            return false;
        }
        resolution.step = (resolution.step * factor).max(finest);
        resolution.points = ((resolution.points as f64 / factor) as usize).min(MOST_POINTS);
        self.align(resolution);
        true
    }

    fn is_long(&self) -> bool {
        self.numeric().iter().any(|(p, _)| {
            matches!(
                p,
                DominatingPair::RepeatedPoisson { .. } | DominatingPair::RandomAllocation { .. }
            )
        })
    }

    /// Both sides in the worse direction. Coarsens the step where the window would not fit.
    fn at(&self, target: Target, resolution: &mut Resolution) -> Interval {
        let (pairs, long) = (self.numeric(), self.is_long());
        let prepared = |side| PreparedPairs::new(&pairs, side, *resolution);
        // The two sides are independent. Long computations run in parallel.
        let (above, below) = both(long, || prepared(Side::Above), || prepared(Side::Below));
        for _ in 0..COARSENINGS {
            let curves = |side: &PreparedPairs<'_>| side.profiles(target, *resolution);
            if let (Some(upper), Some(lower)) = both(long, || curves(&above), || curves(&below)) {
                let [lower, upper] = [(lower, Side::Below), (upper, Side::Above)]
                    .map(|(profiles, side)| worst(&profiles, target, side));
                return Interval::new(lower, upper);
            }
            resolution.step *= 2.0;
            self.align(resolution);
        }
        Interval { lower: 0.0, upper: f64::INFINITY }
    }

    /// An upper bound under replace-one, by removing one unit and adding the other: for every e,
    /// δ(ε) ≤ δ(with ‖ without)(e) + e^e·δ(without ‖ with)(ε - e).
    ///
    /// Proof: P_z(E) ≤ e^e·P₀(E) + δ(with ‖ without)(e) and
    /// P₀(E) ≤ e^(ε-e)·P_z'(E) + δ(without ‖ with)(ε - e).
    pub(crate) fn through_absence(&self, target: Target) -> f64 {
        // The tilt needs the δ at which the two curves are read: about that of half the ε.
        let (mut inner, outer) = match target {
            Target::Delta(delta) => (0.3 * delta, Some(delta)),
            Target::Epsilon(epsilon) => {
                (self.bracket(Target::Epsilon(0.5 * epsilon)).upper.clamp(1e-15, 0.3), None)
            }
        };
        let mut answer = f64::INFINITY;
        for _ in 0..2 {
            let query = Target::Delta(inner);
            let mut resolution = self.first_resolution(query);
            resolution.step *= 0.5;
            resolution.points *= 2;
            let pairs = self.numeric();
            let prepared = PreparedPairs::new(&pairs, Side::Above, resolution);
            let found = (0..COARSENINGS).find_map(|_| {
                let profiles = prepared.profiles(query, resolution);
                resolution.step *= 2.0;
                profiles
            });
            let Some(profiles) = found else { break };
            let [removed, added] = [&profiles[0], &profiles[profiles.len() - 1]];
            let at = |epsilon: f64| {
                let through = |e: f64| removed.delta(e) + e.exp() * added.delta(epsilon - e);
                golden(through, 0.0, epsilon).min(1.0)
            };
            match (target, outer) {
                (Target::Epsilon(epsilon), _) => return at(epsilon),
                (_, Some(delta)) => {
                    answer = f64::min(answer, crossing(|e| exceeds(at(e), delta)).1);
                    inner = (delta / (1.0 + (0.5 * answer).exp())).max(1e-15);
                }
                _ => unreachable!("a target has two variants"),
            }
        }
        answer
    }
}

/// Pairs prepared for one side. Nothing here depends on the step, so it is computed once however
/// often the step is doubled.
struct PreparedPairs<'a> {
    ready: Vec<(PreparedPair<'a>, u64)>,
    symmetric: bool,
    side: Side,
}

impl<'a> PreparedPairs<'a> {
    fn new(pairs: &'a [(DominatingPair, u64)], side: Side, resolution: Resolution) -> Self {
        let ready = pairs.iter().map(|(pair, times)| (pair.prepare(side, resolution), *times));
        let symmetric = pairs.iter().all(|(pair, _)| pair.is_symmetric());
        PreparedPairs { ready: ready.collect(), symmetric, side }
    }

    /// The curve in each direction, or one if they are equal. `None` if the window does not fit.
    fn profiles(&self, target: Target, resolution: Resolution) -> Option<Vec<Profile>> {
        let side = self.side;
        let both = [Direction::Removed, Direction::Added];
        if let [(PreparedPair::Ratio(ratio), 1)] = &self.ready[..] {
            return Some(both.map(|d| Profile::Allocated(ratio.clone(), d, side)).into());
        }
        let directions = if self.symmetric { &both[..1] } else { &both[..] };
        let profile = |&direction: &Direction| {
            let term = |(r, t): &(PreparedPair<'_>, u64)| -> Option<Term> {
                Some((r.cells(direction, side, resolution)?.grid(side), *t))
            };
            let Some(terms) = self.ready.iter().map(term).collect::<Option<Vec<Term>>>() else {
                return Some(Profile::Unknown(side));
            };
            compose(&terms, tilt(&terms, target), side).map(Profile::Composed)
        };
        directions.iter().map(profile).collect()
    }
}

/// Two computations, in parallel if they are `long`.
fn both<A: Send, B: Send>(
    long: bool,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if !long {
        return (first(), second());
    }
    std::thread::scope(|scope| {
        let second = scope.spawn(second);
        (first(), second.join().expect("accounting does not panic"))
    })
}

/// The minimum of a unimodal function, to a thousandth of the range (golden-section search).
fn golden(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    const SHARE: f64 = 0.381_966_011_250_105;
    let (mut a, mut b) = (low + SHARE * (high - low), high - SHARE * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..16 {
        if fa < fb {
            (high, b, fb) = (b, a, fa);
            a = low + SHARE * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = high - SHARE * (high - low);
            fb = f(b);
        }
    }
    fa.min(fb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(pair: DominatingPair, times: u64) -> Composition {
        Composition { mu_squared: 0.0, pairs: vec![(pair, times)], large: false }
    }

    /// Two independent computations of one composition: a Fourier transform on a grid, and products
    /// of ratio distributions.
    #[test]
    fn transform_and_doubling_agree() {
        for (rate, sigma, times) in [(0.01, 1.0, 1000), (0.2, 4.0, 100), (0.001, 0.8, 3000)] {
            let sampled = DominatingPair::Poisson { rate, sigma };
            let many =
                DominatingPair::RepeatedPoisson { sampled: Box::new(sampled.clone()), times };
            let target = Target::Delta(1e-6);
            let transformed = repeated(sampled.clone(), times).bracket(target);
            let doubled = Composition::of(many).bracket(target);
            assert!(doubled.relative_width() < 0.005, "{doubled:?}");
            assert!(transformed.relative_width() < 0.005, "{transformed:?}");
            assert!(doubled.lower <= transformed.upper, "{doubled:?} {transformed:?}");
            assert!(transformed.lower <= doubled.upper, "{doubled:?} {transformed:?}");
            // The control: two percent less noise must be distinguished.
            let less = repeated(DominatingPair::Poisson { rate, sigma: 0.98 * sigma }, times)
                .bracket(target);
            assert!(less.lower > doubled.upper, "{less:?} {doubled:?}");
        }
    }

    #[test]
    fn gaussians_composed_numerically_enclose_the_exact_curve() {
        for (sigma, times) in [(2.0, 1), (10.0, 100), (200.0, 10_000)] {
            let exact = gaussian::epsilon((times as f64).sqrt() / sigma, 1e-8);
            let found =
                repeated(DominatingPair::Gaussian { sigma }, times).bracket(Target::Delta(1e-8));
            assert!(
                found.lower <= exact.upper && exact.lower <= found.upper,
                "{found:?} {exact:?}"
            );
            assert!(found.relative_width() < 0.005, "{found:?}");
        }
    }

    #[test]
    fn an_allocation_to_one_step_is_a_gaussian() {
        for sigma in [0.5, 1.0, 30.0] {
            let found = Composition::of(DominatingPair::RandomAllocation { steps: 1, sigma })
                .bracket(Target::Delta(1e-5));
            let exact = gaussian::epsilon(1.0 / sigma, 1e-5);
            assert!(
                found.lower <= exact.upper && exact.lower <= found.upper,
                "{found:?} {exact:?}"
            );
        }
    }

    /// With one step, replacing a unit is a Gaussian at twice the distance. The bound through
    /// absence must not be below it.
    #[test]
    fn the_bound_through_absence_is_above_the_exact_cost() {
        for sigma in [1.0, 4.0, 20.0] {
            let through = Composition::of(DominatingPair::RandomAllocation { steps: 1, sigma })
                .through_absence(Target::Delta(1e-6));
            let exact = gaussian::epsilon(2.0 / sigma, 1e-6).lower;
            assert!(through >= exact && through < 1.6 * exact, "{sigma} {through} {exact}");
        }
    }

    #[test]
    fn epsilon_and_delta_are_inverse() {
        let account = repeated(DominatingPair::Laplace { scale: 3.7 }, 100);
        let epsilon = account.bracket(Target::Delta(1e-7));
        let delta = account.bracket(Target::Epsilon(epsilon.upper));
        assert!(delta.lower <= 1e-7 && delta.upper >= 0.9e-7, "{delta:?}");
    }
}
