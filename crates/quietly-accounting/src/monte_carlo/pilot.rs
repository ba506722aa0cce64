//! Parameters chosen before the test, on separate draws: nothing here can make a report wrong, only
//! late or loose.
use rand_chacha::ChaCha8Rng;

use super::importance::{Draw, Mixture, Pair};

/// Draws that plans are made from: ℓ, and dR_k/dT for all tilts up to a common factor e^-`shift`.
pub(super) struct Pilot {
    pub(super) draws: Vec<(f64, f64, Vec<f64>)>,
}

impl Pilot {
    /// Draws from all tilts in turn, equally often.
    pub(super) fn new(pair: &mut impl Pair, work: f64, rng: &mut ChaCha8Rng) -> Option<Pilot> {
        let count = pair.tilts().len();
        let all: Vec<usize> = (0..count).collect();
        let draws = (work / pair.cost(count)).min(8_000.0) as usize;
        if draws < 100 {
            return None;
        }
        let draw = |i: usize| {
            let mut ratios = vec![0.0; count];
            let asked = Draw { from: i % count, tilts: &all, above: f64::NEG_INFINITY };
            let loss = pair.draw(asked, rng, &mut ratios);
            let shift = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            ratios.iter_mut().for_each(|r| *r = (*r - shift).exp());
            (loss, shift, ratios)
        };
        let draws = (0..draws).map(draw);
        let finite =
            |(loss, shift, _): &(f64, f64, Vec<f64>)| loss.is_finite() && shift.is_finite();
        Some(Pilot { draws: draws.filter(finite).collect() })
    }

    /// (weight, X) of each draw with X > 0, as if it came from `mixture`; the weights' mean over
    /// all draws is about 1.
    pub(super) fn terms<'a>(
        &'a self,
        mixture: &'a Mixture,
        epsilon: f64,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        self.draws.iter().filter(move |(loss, ..)| *loss > epsilon).map(
            move |(loss, shift, ratios)| {
                let mixed: f64 =
                    mixture.tilts.iter().zip(&mixture.weights).map(|(k, w)| w * ratios[*k]).sum();
                let pilot = ratios.iter().sum::<f64>() / ratios.len() as f64;
                (mixed / pilot, -f64::exp_m1(epsilon - loss) / mixed * (-shift).exp())
            },
        )
    }

    /// Expected growth of ln wealth per draw, and the bet for it.
    ///
    /// The pilot has not seen what is rare: a hundredth of the target is put at the largest X there
    /// could be.
    pub(super) fn growth(
        &self,
        mixture: &Mixture,
        epsilon: f64,
        most: f64,
        target: f64,
    ) -> (f64, f64) {
        if most <= target {
            return (f64::INFINITY, 0.0);
        }
        let (mut first, mut second) = (0.01 * target, 0.01 * target * most);
        let n = self.draws.len() as f64;
        for (weight, x) in self.terms(mixture, epsilon) {
            first += weight * x / n;
            second += weight * x * x / n;
        }
        let gap = target - first;
        let spread = second - 2.0 * target * first + target * target;
        let bet = (gap / spread).min(0.7 / (most - target));
        if gap > 0.0 { (bet * gap - 0.5 * bet * bet * spread, bet) } else { (0.0, 0.0) }
    }

    /// The best mixture of two tilts for one ε, and the work that a test with it should take.
    pub(super) fn best(
        &self,
        pair: &impl Pair,
        epsilon: f64,
        target: f64,
        need: f64,
    ) -> (f64, Mixture) {
        let tilts = pair.tilts();
        let mut best = (f64::INFINITY, Mixture::of(0, 0, 1.0));
        for a in 0..tilts.len() {
            for b in 0..tilts.len() {
                let weights: &[f64] = if a == b { &[1.0] } else { &[0.5, 0.8] };
                for &weight in weights {
                    let mixture = Mixture::of(a, b, weight);
                    let most = mixture.bound(tilts, epsilon);
                    let (growth, _) = self.growth(&mixture, epsilon, most, target);
                    let work = need / growth * pair.cost(mixture.tilts.len());
                    if work < best.0 {
                        best = (work, mixture);
                    }
                }
            }
        }
        best
    }

    /// The bet that grows fastest on the pilot, by golden section; the growth is concave in it.
    pub(super) fn bet(&self, mixture: &Mixture, epsilon: f64, most: f64, target: f64) -> f64 {
        if most <= target {
            return 0.0;
        }
        let terms: Vec<(f64, f64)> = self.terms(mixture, epsilon).collect();
        let n = self.draws.len() as f64;
        let value = |bet: f64| {
            let log = |x: f64| (bet * (target - x.min(most))).ln_1p();
            let zero = log(0.0);
            let rare = 0.01 * target / most * (log(most) - zero);
            zero + rare + terms.iter().map(|(w, x)| w * (log(*x) - zero)).sum::<f64>() / n
        };
        let (mut low, mut high) = (0.0, 0.98 / (most - target));
        for _ in 0..30 {
            let (a, b) = (low + 0.382 * (high - low), high - 0.382 * (high - low));
            if value(a) < value(b) { low = a } else { high = b }
        }
        0.5 * (low + high)
    }
}
