//! Poisson samples with noise κ(z_t - λz_(t-1)): P = law of s + κζ, s_t = λs_(t-1) + y_t with y_t ~
//! Bernoulli(r), against κζ.
//!
//! # Proof: tilts for Poisson samples with correlated noise
//!
//! s is a Markov chain, so P is a hidden Markov model. Its state is rounded up to a grid: by
//! Kahane's inequality both divergences grow with every overlap ⟨s(y), s(y')⟩, and those of
//! non-negative vectors grow with their entries. From here on "the chain" is the rounded one, in
//! drawing and in likelihoods alike; nothing else is approximated. The grid is geometric with ratio
//! λ^(-1/j) through 1: decay is exact (j cells down), the first participation is exact, and only
//! later ones are rounded. Below a floor the state stays there; zero is left for good by the first
//! participation.
//!
//! All states are in units of κ. Let A = Σ s_t² and Z = exp(Σ x_t s_t - A/2), so e^L = E_y Z.
//!
//! **Removed.** The tilt by c ≥ 1 draws y with probability ∝ P(y)e^((c-1)A/2), then x around c·s.
//! With q = e^(-(c-1)²A/2) and N = E e^((c-1)A/2) its density is dR_c/dQ = E_y exp((c-1)A/2 + c⟨x,
//! s⟩ - c²A/2)/N = E_y[q Z^c]/N. Hölder's inequality, E Z ≤ (E q Z^c)^(1/c) (E
//! q^(-1/(c-1)))^((c-1)/c), gives E q Z^c ≥ e^(cL)/N^(c-1), so ln dR_c/dP ≥ (c - 1)L - c·ln N. (Of
//! all tilts e^(τA) this τ has the best such bound; for a constant A it is Jensen's.) A is a sum
//! over the steps, so this law of y is a Markov chain too, its rates found by a backward sweep. No
//! participation has to be excluded for being too heavy: where a bound on A would enter, its exact
//! exponential moment does.
//!
//! **Added.** With y tilted by e^(-A/2), m = E' s and K = -ln E e^(-A/2): e^L = e^(-K) E' e^⟨x,s⟩ ≥
//! exp(⟨x, m⟩ - K). The tilt by h ≥ 0 draws x around -h·m: ln dR_h/dQ = -h⟨x, m⟩ - h²|m|²/2 ≥
//! h(-L) - hK - h²|m|²/2.
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};

use super::importance::{Draw, Pair, Tilt, exp, useful_powers, useful_shifts};

pub(super) struct Chain {
    steps: usize,
    rate: f64,
    /// The grid over κ: zero, the floor, and up. Raised by 1e-9, which is more than all rounding of
    /// it.
    states: Vec<f64>,
    /// Where a state goes without and with a participation.
    quiet: Vec<usize>,
    joined: Vec<usize>,
    /// LossCells of one step's decay, and the state from which there is no further decay.
    down: usize,
    rest: usize,
    /// Runs of states that a participation takes to the same state: (to, first, after the last).
    landings: Vec<(usize, usize, usize)>,
}

/// Relative step of the grid that is aimed at, and most entries of one table.
const STEP: f64 = 0.05;
const TABLE: u64 = 2_000_000;
/// Masses below this are dropped (numbers too small for full precision are slow), totals below that
/// are not trusted.
///
/// What is dropped in one step is below 1e-90 of the likelihood so far, whose mean under Q is one:
/// all of it together changes δ(ε) by less than 1e-80 in the removed direction, and can only raise
/// it in the added one.
const DROPPED: f64 = 1e-200;
const LOST: f64 = 1e-100;

impl Chain {
    /// `None` if only a few hundred draws could be afforded.
    pub(super) fn new(lambda: f64, rate: f64, steps: u64, noise: f64, work: u64) -> Option<Chain> {
        let (states, down, rest) = match lambda > 0.0 {
            true => grid(lambda, steps as f64)?,
            false => (vec![0.0, 1.0], 2, 0),
        };
        let n = states.len();
        let size = (n as u64).saturating_mul(steps);
        if size.saturating_mul(5_000) > work || size > TABLE {
            return None;
        }
        let quiet = (0..n).map(|i| i.saturating_sub(down).max(rest.min(i))).collect();
        let up = |s: f64| states.partition_point(|x| *x < s * (1.0 - 1e-11)).min(n - 1);
        let joined: Vec<usize> = states.iter().map(|s| up(lambda * s + 1.0)).collect();
        let mut landings: Vec<(usize, usize, usize)> = vec![];
        for (i, &to) in joined.iter().enumerate() {
            match landings.last_mut() {
                Some(last) if last.0 == to => last.2 = i + 1,
                _ => landings.push((to, i, i + 1)),
            }
        }
        let states = states.into_iter().map(|s| s * (1.0 + 1e-9) / noise).collect();
        Some(Chain { steps: steps as usize, rate, states, quiet, joined, down, rest, landings })
    }

    /// For the law of y tilted by e^(θA): ln E e^(θA) and, step by step, each state's rate of
    /// participation.
    fn tilted(&self, theta: f64) -> (f64, Vec<f64>) {
        let n = self.states.len();
        let gain: Vec<f64> = self.states.iter().map(|s| theta * s * s).collect();
        let mut ahead = vec![0.0; n];
        let mut rates = vec![0.0; n * self.steps];
        for t in (0..self.steps).rev() {
            let mut next = vec![0.0; n];
            for i in 0..n {
                let (q, j) = (self.quiet[i], self.joined[i]);
                let stays = (-self.rate).ln_1p() + gain[q] + ahead[q];
                let joins = self.rate.ln() + gain[j] + ahead[j];
                let top = stays.max(joins);
                next[i] = top + ((stays - top).exp() + (joins - top).exp()).ln();
                rates[t * n + i] = (joins - next[i]).exp();
            }
            ahead = next;
        }
        (ahead[0], rates)
    }

    /// The mean of s under given rates.
    fn mean(&self, rates: &[f64]) -> Vec<f64> {
        let n = self.states.len();
        let mut mass = vec![0.0; n];
        mass[0] = 1.0;
        let step = |rates: &[f64]| {
            let mut next = vec![0.0; n];
            for i in 0..n {
                next[self.joined[i]] += rates[i] * mass[i];
                next[self.quiet[i]] += (1.0 - rates[i]) * mass[i];
            }
            mass = next;
            mass.iter().zip(&self.states).map(|(m, s)| m * s).sum()
        };
        rates.chunks(n).map(step).collect()
    }

    pub(super) fn removed(&self, known: f64) -> Removed<'_> {
        let moment = |c: f64| self.tilted(0.5 * (c - 1.0));
        let mean = self.tilted(1e-6).0 / 1e-6;
        let busy = (self.rate * self.steps as f64).min(1.0);
        let powers = useful_powers(known, |c| c * moment(c).0, mean.max(self.single()), busy);
        let (logs, rates): (Vec<f64>, Vec<Vec<f64>>) = powers.iter().map(|c| moment(*c)).unzip();
        let tilt = |(c, log): (&f64, &f64)| Tilt { slope: c - 1.0, offset: c * log };
        let tilts = powers.iter().zip(&logs).map(tilt).collect();
        Removed { chain: self, powers, logs, tilts, rates, filter: Filter::new(self) }
    }

    /// The energy of one participation.
    fn single(&self) -> f64 {
        let mut state = self.joined[0];
        let mut energy = 0.0;
        for _ in 0..self.steps {
            energy += self.states[state].powi(2);
            state = self.quiet[state];
        }
        energy
    }

    pub(super) fn added(&self, known: f64) -> Added<'_> {
        let (log, rates) = self.tilted(-0.5);
        let mean = self.mean(&rates);
        let mu_squared = mean.iter().map(|m| m * m).sum::<f64>();
        let shifts = useful_shifts(known, -log, mu_squared);
        let tilt = |h: &f64| Tilt { slope: *h, offset: -h * log + 0.5 * h * h * mu_squared };
        let tilts = shifts.iter().map(tilt).collect();
        Added { chain: self, mean, mu_squared, shifts, tilts, filter: Filter::new(self) }
    }
}

/// The states, the cells of one step's decay, and the index of the floor. `None` if λ is so near 1
/// that there are too many.
fn grid(lambda: f64, steps: f64) -> Option<(Vec<f64>, usize, usize)> {
    let decay = -lambda.ln();
    let down = (decay / STEP).ceil().max(1.0);
    let step = decay / down;
    // What lies below the floor for the whole run has a thousandth of a participation's energy.
    let floor = (1e-3 / ((1.0 - lambda * lambda) * steps)).sqrt().min(0.5);
    let below = (-floor.ln() / step).ceil() as usize;
    let above = (-(-lambda).ln_1p() / step + 1e-9).ceil() as usize;
    if below + above > 4096 {
        return None;
    }
    let mut states = vec![0.0];
    states.extend((0..=below + above).map(|i| ((i as f64 - below as f64) * step).exp()));
    Some((states, down as usize, 1))
}

/// ln E_y exp(c⟨x, s⟩ - dA/2), d = c² - c + 1; c = 1 is L.
struct Filter {
    mass: Vec<f64>,
    next: Vec<f64>,
    x: Vec<f64>,
}

impl Filter {
    fn new(chain: &Chain) -> Filter {
        let zeros = vec![0.0; chain.states.len()];
        Filter { mass: zeros.clone(), next: zeros, x: vec![0.0; chain.steps] }
    }

    fn run(&mut self, chain: &Chain, c: f64) -> f64 {
        let top = chain.states[chain.states.len() - 1];
        let d = c * c - c + 1.0;
        self.mass.fill(0.0);
        self.mass[0] = 1.0;
        let mut log = 0.0;
        for (t, &x) in self.x.iter().enumerate() {
            // The largest exponent, up to the grid.
            let near = (c * x / d).clamp(0.0, top);
            let shift = (c * x - 0.5 * d * near) * near;
            log += shift;
            chain.step(&self.mass, &mut self.next);
            for ((m, next), s) in self.mass.iter_mut().zip(&self.next).zip(&chain.states) {
                let product = next * exp((c * x - 0.5 * d * s) * s - shift);
                *m = if product < DROPPED { 0.0 } else { product };
            }
            if t % 4 == 3 || t + 1 == self.x.len() {
                let total = sum(&self.mass);
                // Lost in underflow: not a number, which counts as the worst.
                log += if total > LOST { total.ln() } else { f64::NAN };
                self.mass.iter_mut().for_each(|m| *m /= total);
            }
        }
        log
    }
}

/// A sum in four lanes.
fn sum(x: &[f64]) -> f64 {
    let four = x.chunks_exact(4);
    let rest: f64 = four.remainder().iter().sum();
    let mut lanes = [0.0; 4];
    four.for_each(|x| (0..4).for_each(|k| lanes[k] += x[k]));
    lanes.iter().sum::<f64>() + rest
}

impl Chain {
    /// One step of the law of the state.
    fn step(&self, mass: &[f64], next: &mut [f64]) {
        let (n, rest) = (mass.len(), self.rest);
        let stay = 1.0 - self.rate;
        let decayed = n.saturating_sub(self.down).max(rest + 1);
        for (next, m) in
            next[rest + 1..decayed].iter_mut().zip(&mass[(rest + 1 + self.down).min(n)..])
        {
            *next = stay * m;
        }
        next[decayed..].fill(0.0);
        next[0] = stay * mass[0];
        next[rest] = stay * sum(&mass[rest..(rest + self.down + 1).min(n)]);
        for &(to, first, last) in &self.landings {
            next[to] += self.rate * sum(&mass[first..last]);
        }
    }
}

pub(super) struct Removed<'a> {
    chain: &'a Chain,
    powers: Vec<f64>,
    /// ln N of each tilt.
    logs: Vec<f64>,
    tilts: Vec<Tilt>,
    rates: Vec<Vec<f64>>,
    filter: Filter,
}

impl Pair for Removed<'_> {
    fn tilts(&self) -> &[Tilt] {
        &self.tilts
    }

    fn draw(&mut self, from: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64 {
        let Draw { from, tilts, above } = from;
        let n = self.chain.states.len();
        let mut state = 0;
        for (x, rates) in self.filter.x.iter_mut().zip(self.rates[from].chunks(n)) {
            let u: f64 = StandardUniform.sample(rng);
            let joins = u < rates[state];
            state = if joins { self.chain.joined[state] } else { self.chain.quiet[state] };
            let noise: f64 = StandardNormal.sample(rng);
            *x = self.powers[from] * self.chain.states[state] + noise;
        }
        let loss = self.filter.run(self.chain, 1.0);
        if loss <= above {
            return loss;
        }
        for (k, out) in tilts.iter().zip(out) {
            let c = self.powers[*k];
            *out = match c > 1.0 {
                true => self.filter.run(self.chain, c) - self.logs[*k] - loss,
                false => 0.0,
            };
        }
        loss
    }

    fn cost(&self, tilts: usize) -> f64 {
        let size = self.chain.states.len() as f64;
        self.chain.steps as f64 * (20.0 + 5.0 * size * (1.0 + tilts as f64))
    }
}

pub(super) struct Added<'a> {
    chain: &'a Chain,
    mean: Vec<f64>,
    mu_squared: f64,
    shifts: Vec<f64>,
    tilts: Vec<Tilt>,
    filter: Filter,
}

impl Pair for Added<'_> {
    fn tilts(&self) -> &[Tilt] {
        &self.tilts
    }

    fn draw(&mut self, from: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64 {
        let Draw { from, tilts, .. } = from;
        let h = self.shifts[from];
        let mut along = 0.0;
        for (x, m) in self.filter.x.iter_mut().zip(&self.mean) {
            let noise: f64 = StandardNormal.sample(rng);
            *x = noise - h * m;
            along += *x * m;
        }
        for (k, out) in tilts.iter().zip(out) {
            let h = self.shifts[*k];
            *out = -h * along - 0.5 * h * h * self.mu_squared;
        }
        -self.filter.run(self.chain, 1.0)
    }

    fn cost(&self, _: usize) -> f64 {
        self.chain.steps as f64 * (20.0 + 5.0 * self.chain.states.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// The chain's states along a participation, read off its own tables.
    fn path(chain: &Chain, y: u32) -> Vec<f64> {
        let mut state = 0;
        let step = |t: usize| {
            let next = if y >> t & 1 == 1 { &chain.joined } else { &chain.quiet };
            state = next[state];
            chain.states[state]
        };
        (0..chain.steps).map(step).collect()
    }

    fn exact(lambda: f64, noise: f64, steps: usize, y: u32) -> Vec<f64> {
        let mut state = 0.0;
        let step = |t: usize| {
            state = lambda * state + f64::from(y >> t & 1);
            state / noise
        };
        (0..steps).map(step).collect()
    }

    /// ln E_y exp(c⟨x, s⟩ - dA/2) over all 2^T participations.
    fn enumerated(rate: f64, x: &[f64], c: f64, means: impl Fn(u32) -> Vec<f64>) -> f64 {
        let d = c * c - c + 1.0;
        let term = |y: u32| {
            let joined = y.count_ones() as i32;
            let log: f64 = means(y).iter().zip(x).map(|(s, x)| (c * x - 0.5 * d * s) * s).sum();
            rate.powi(joined) * (1.0 - rate).powi(x.len() as i32 - joined) * log.exp()
        };
        (0..1 << x.len()).map(term).sum::<f64>().ln()
    }

    fn random(steps: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        (0..steps)
            .map(|_| {
                let z: f64 = StandardNormal.sample(rng);
                z + 0.5
            })
            .collect()
    }

    /// No false positives: the two sums are the same number.
    #[test]
    fn filter_is_the_sum_over_all_participations() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (lambda, noise) in [(0.0, 1.0), (0.3, 0.8), (0.5, 1.0), (0.9, 3.0)] {
            let chain = Chain::new(lambda, 0.2, 11, noise, 1 << 40).unwrap();
            let mut filter = Filter::new(&chain);
            for c in [1.0, 1.7, 3.0] {
                filter.x = random(11, &mut rng);
                let got = filter.run(&chain, c);
                let want = enumerated(0.2, &filter.x, c, |y| path(&chain, y));
                assert!((got - want).abs() < 1e-11, "{lambda} {c} {got} {want}");
                // A control: another rate is another number.
                let other = enumerated(0.21, &filter.x, c, |y| path(&chain, y));
                assert!((got - other).abs() > 1e-5, "{got} {other}");
            }
        }
    }

    #[test]
    fn rounded_states_are_never_below_the_exact_ones_and_not_far_above() {
        for (lambda, noise) in [(0.1, 1.0), (0.5, 1.0), (0.9, 3.0), (0.97, 10.0)] {
            let chain = Chain::new(lambda, 0.2, 12, noise, 1 << 40).unwrap();
            let mut worst: f64 = 1.0;
            for y in 0..1 << 12 {
                for (up, s) in path(&chain, y).iter().zip(exact(lambda, noise, 12, y)) {
                    assert!(*up >= s, "{lambda} {y}");
                    if s * noise > 0.1 {
                        worst = worst.max(up / s);
                    }
                }
            }
            // Each participation rounds by at most a step, and the earlier ones have decayed.
            assert!(
                worst > 1.001 && worst < (STEP * 1.01 / (1.0 - lambda)).exp().min(1.3),
                "{lambda} {worst}"
            );
        }
    }

    /// For two steps and the golden λ, 1 + λ = 1/λ: all states lie on the grid and nothing is
    /// rounded.
    #[test]
    fn nothing_is_lost_where_the_grid_is_exact() {
        let lambda = 0.5 * (5.0_f64.sqrt() - 1.0);
        let chain = Chain::new(lambda, 0.3, 2, 0.7, 1 << 40).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut filter = Filter::new(&chain);
        for _ in 0..20 {
            filter.x = random(2, &mut rng);
            let want = enumerated(0.3, &filter.x, 1.0, |y| exact(lambda, 0.7, 2, y));
            let got = filter.run(&chain, 1.0);
            assert!((got - want).abs() < 1e-7, "{got} {want}");
        }
    }
}
