//! What a list of mechanisms costs together, as an interval, refined until it is narrow.
use crate::{
    cells::Side,
    compose::{Curve, Target, Term, compose, tilt},
    gaussian,
    interval::Interval,
    law::Law,
    part::{Direction, Part, Ready, Resolution},
};

mod closed;

/// Mechanisms run on the same records: Gaussian releases by their total μ², the rest one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) mu_squared: f64,
    pub(crate) parts: Vec<(Part, u64)>,
    /// Whether ratios are too large to be gathered into laws.
    pub(crate) large: bool,
}

/// The width, relative to the answer, at which refinement stops, and where it gives up.
const NARROW: f64 = 4e-3;
const ROUNDS: usize = 3;
const MOST_CELLS: f64 = (1 << 17) as f64;
const MOST_POINTS: usize = 2400;
/// Share of δ that truncation may cost.
const TRUNCATION: f64 = 1e-6;
/// How often a step is doubled before a window is given up.
const COARSENINGS: usize = 12;

/// A curve δ(ε) known from one side.
pub(crate) enum Profile {
    Composed(Curve),
    Allocated(Law, Direction, Side),
    /// Nothing is known.
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

    fn answer(&self, target: Target) -> f64 {
        match target {
            Target::Delta(delta) => self.epsilon(delta),
            Target::Epsilon(epsilon) => self.delta(epsilon),
        }
    }
}

/// Whether an upper bound on δ is above the target. What is not a number is.
fn exceeds(delta: f64, target: f64) -> bool {
    delta.is_nan() || delta > target
}

/// The answer in the worse direction. What is not a number is infinite from above, and nothing from below.
fn worst(profiles: &[Profile], target: Target, side: Side) -> f64 {
    let unknown = if side == Side::Above { f64::INFINITY } else { 0.0 };
    let known = |answer: f64| if answer.is_nan() { unknown } else { answer };
    profiles.iter().map(|profile| known(profile.answer(target))).fold(0.0, f64::max)
}

/// Brackets the point up to which `above` holds, for an `above` that stays false once it is.
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

impl Account {
    pub(crate) fn gaussian(mu: f64) -> Account {
        Account { mu_squared: mu * mu, parts: vec![], large: false }
    }

    pub(crate) fn part(part: Part) -> Account {
        Account { mu_squared: 0.0, parts: vec![(part, 1)], large: false }
    }

    pub(crate) fn repeat(&mut self, times: u64) {
        self.mu_squared *= times as f64;
        self.parts.iter_mut().for_each(|(_, t)| *t = t.saturating_mul(times));
    }

    pub(crate) fn join(&mut self, other: &Account) {
        self.mu_squared += other.mu_squared;
        for (part, times) in &other.parts {
            match self.parts.iter_mut().find(|(p, _)| p == part) {
                Some((_, t)) => *t = t.saturating_add(*times),
                None => self.parts.push((part.clone(), *times)),
            }
        }
    }

    /// The parts that are composed numerically, the Gaussians as one of them.
    fn numeric(&self) -> Vec<(Part, u64)> {
        let gathered =
            |(part, times): &(Part, u64)| match !self.large && part.is_fine(*times, 1e-15) {
                true => (Part::Many { sampled: Box::new(part.clone()), times: *times }, 1),
                false => (part.clone(), *times),
            };
        let mut parts: Vec<(Part, u64)> = self.parts.iter().map(gathered).collect();
        if self.mu_squared > 0.0 {
            parts.push((Part::Gaussian { sigma: 1.0 / self.mu_squared.sqrt() }, 1));
        }
        parts
    }

    /// The mechanism's ε at a δ, or δ at an ε, as an interval.
    pub(crate) fn bracket(&self, target: Target) -> Interval {
        // Composition of Gaussians is exact up to the rounding of μ² itself.
        if self.parts.is_empty() {
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
        let mut best = Interval { lower: 0.0, upper: self.simple(target) };
        for round in 0..ROUNDS {
            let found = self.at(target, &mut resolution);
            debug_assert!(found.lower <= best.upper * (1.0 + 1e-9) + 1e-9, "{found:?} {best:?}");
            // Ratios beyond the laws' ceiling: transform the losses instead.
            if !self.large
                && self.is_long()
                && (found.lower > 300.0 || found.upper == f64::INFINITY)
            {
                return Account { large: true, ..self.clone() }.bracket(target);
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

    /// Upper bounds from one pass, `coarser` times as coarse as a bracket begins: enough to search with. The pass is made for
    /// `around`, and loosest where a target is farthest from it.
    pub(crate) fn uppers(&self, around: Target, targets: &[Target], coarser: f64) -> Vec<f64> {
        if self.parts.is_empty() || self.single(around).is_some() {
            return targets.iter().map(|target| self.bracket(*target).upper).collect();
        }
        let mut resolution = self.first_resolution(around);
        resolution.step *= coarser;
        resolution.points = (resolution.points as f64 / coarser) as usize;
        self.align(&mut resolution);
        let parts = self.numeric();
        let prepared = Prepared::new(&parts, Side::Above, resolution);
        for _ in 0..COARSENINGS {
            if let Some(profiles) = prepared.profiles(around, resolution) {
                let upper = |target| worst(&profiles, target, Side::Above).min(self.simple(target));
                return targets.iter().map(|target| upper(*target)).collect();
            }
            resolution.step *= 2.0;
            self.align(&mut resolution);
        }
        targets.iter().map(|target| self.simple(*target)).collect()
    }

    fn first_resolution(&self, target: Target) -> Resolution {
        let parts = self.numeric();
        let total: f64 = parts.iter().map(|(_, t)| *t as f64).sum();
        let variance: f64 = parts.iter().map(|(p, t)| *t as f64 * p.spread().powi(2)).sum();
        let delta = match target {
            Target::Delta(delta) => delta,
            Target::Epsilon(_) => 1e-12,
        };
        let tail = TRUNCATION * delta / total;
        let length = parts.iter().map(|(p, _)| p.length(tail)).fold(0.0, f64::max);
        let step =
            (0.1 * (variance / total).sqrt()).clamp(2.0 * length / MOST_CELLS, length / 64.0);
        let points = parts.iter().map(|(p, _)| p.points()).max().unwrap_or(0);
        let mut resolution = Resolution { step, points, tail, delta };
        self.align(&mut resolution);
        resolution
    }

    /// Makes the step divide the first atom's loss that is no smaller. It gets at most twice as fine: a step that followed
    /// a loss of 1e-6 would put millions of cells under a Gaussian beside it.
    fn align(&self, resolution: &mut Resolution) {
        let mut units = self.parts.iter().filter_map(|(p, _)| p.unit());
        if let Some(unit) = units.find(|unit| *unit >= resolution.step) {
            resolution.step = unit / (unit / resolution.step).ceil();
        }
    }

    /// Errors fall with the square of the step. False if there is no room left.
    fn refine(&self, resolution: &mut Resolution, wanted: f64) -> bool {
        let factor = (0.8 * wanted.sqrt()).clamp(0.1, 0.6);
        let parts = self.numeric();
        let length = parts.iter().map(|(p, _)| p.length(resolution.tail)).fold(0.0, f64::max);
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
        self.numeric().iter().any(|(p, _)| matches!(p, Part::Many { .. } | Part::Allocation { .. }))
    }

    /// Both sides in the worse direction. Coarsens the step where the window would not fit.
    fn at(&self, target: Target, resolution: &mut Resolution) -> Interval {
        let (parts, long) = (self.numeric(), self.is_long());
        let prepared = |side| Prepared::new(&parts, side, *resolution);
        // The two sides are independent; where they are long work, they share the cores.
        let (above, below) = both(long, || prepared(Side::Above), || prepared(Side::Below));
        for _ in 0..COARSENINGS {
            let curves = |side: &Prepared<'_>| side.profiles(target, *resolution);
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

    /// An upper bound under replace-one, through the record's absence: for every e,
    /// δ(ε) ≤ δ(with ‖ without)(e) + e^e·δ(without ‖ with)(ε - e).
    ///
    /// P_z(E) ≤ e^e·P₀(E) + δ(with ‖ without)(e) and P₀(E) ≤ e^(ε-e)·P_z'(E) + δ(without ‖ with)(ε - e).
    pub(crate) fn through_absence(&self, target: Target) -> f64 {
        // The tilt wants the δ at which the two curves are read: about that of half the ε.
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
            let parts = self.numeric();
            let prepared = Prepared::new(&parts, Side::Above, resolution);
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
                _ => unreachable!("a target is one of two"),
            }
        }
        answer
    }
}

/// Parts made ready for one side. None of this depends on the step, so that it is done once however often a step is coarsened.
struct Prepared<'a> {
    ready: Vec<(Ready<'a>, u64)>,
    symmetric: bool,
    side: Side,
}

impl<'a> Prepared<'a> {
    fn new(parts: &'a [(Part, u64)], side: Side, resolution: Resolution) -> Self {
        let ready = parts.iter().map(|(part, times)| (part.ready(side, resolution), *times));
        let symmetric = parts.iter().all(|(part, _)| part.is_symmetric());
        Prepared { ready: ready.collect(), symmetric, side }
    }

    /// The curve in each direction (one, if they are the same). `None` if the window does not fit.
    fn profiles(&self, target: Target, resolution: Resolution) -> Option<Vec<Profile>> {
        let side = self.side;
        let both = [Direction::Removed, Direction::Added];
        if let [(Ready::Law(law), 1)] = &self.ready[..] {
            return Some(both.map(|d| Profile::Allocated(law.clone(), d, side)).into());
        }
        let directions = if self.symmetric { &both[..1] } else { &both[..] };
        let profile = |&direction: &Direction| {
            let term = |(r, t): &(Ready<'_>, u64)| -> Option<Term> {
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

/// Two computations, at the same time if they are `long`.
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

/// The least value of a function with one valley, to a thousandth of the range.
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

    fn repeated(part: Part, times: u64) -> Account {
        Account { mu_squared: 0.0, parts: vec![(part, times)], large: false }
    }

    /// Two independent computations of the same thing: a Fourier transform on a grid, and products of laws.
    #[test]
    fn transform_and_doubling_agree() {
        for (rate, sigma, times) in [(0.01, 1.0, 1000), (0.2, 4.0, 100), (0.001, 0.8, 3000)] {
            let sampled = Part::Poisson { rate, sigma };
            let many = Part::Many { sampled: Box::new(sampled.clone()), times };
            let target = Target::Delta(1e-6);
            let transformed = repeated(sampled.clone(), times).bracket(target);
            let doubled = Account::part(many).bracket(target);
            assert!(doubled.relative_width() < 0.005, "{doubled:?}");
            assert!(transformed.relative_width() < 0.005, "{transformed:?}");
            assert!(doubled.lower <= transformed.upper, "{doubled:?} {transformed:?}");
            assert!(transformed.lower <= doubled.upper, "{doubled:?} {transformed:?}");
            // Noise less by two percent must be told apart.
            let less = repeated(Part::Poisson { rate, sigma: 0.98 * sigma }, times).bracket(target);
            assert!(less.lower > doubled.upper, "{less:?} {doubled:?}");
        }
    }

    #[test]
    fn gaussians_composed_numerically_enclose_the_exact_curve() {
        for (sigma, times) in [(2.0, 1), (10.0, 100), (200.0, 10_000)] {
            let exact = gaussian::epsilon((times as f64).sqrt() / sigma, 1e-8);
            let found = repeated(Part::Gaussian { sigma }, times).bracket(Target::Delta(1e-8));
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
            let found =
                Account::part(Part::Allocation { steps: 1, sigma }).bracket(Target::Delta(1e-5));
            let exact = gaussian::epsilon(1.0 / sigma, 1e-5);
            assert!(
                found.lower <= exact.upper && exact.lower <= found.upper,
                "{found:?} {exact:?}"
            );
        }
    }

    /// With one step, replacing a record is a Gaussian of twice the gap: the way through absence may not undercut it.
    #[test]
    fn the_way_through_absence_is_never_cheaper_than_the_truth() {
        for sigma in [1.0, 4.0, 20.0] {
            let through = Account::part(Part::Allocation { steps: 1, sigma })
                .through_absence(Target::Delta(1e-6));
            let exact = gaussian::epsilon(2.0 / sigma, 1e-6).lower;
            assert!(through >= exact && through < 1.6 * exact, "{sigma} {through} {exact}");
        }
    }

    #[test]
    fn epsilon_and_delta_are_inverse() {
        let account = repeated(Part::Laplace { scale: 3.7 }, 100);
        let epsilon = account.bracket(Target::Delta(1e-7));
        let delta = account.bracket(Target::Epsilon(epsilon.upper));
        assert!(delta.lower <= 1e-7 && delta.upper >= 0.9e-7, "{delta:?}");
    }
}
