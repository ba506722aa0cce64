//! Upper confidence limits on ε, by sampling, for two schemes whose loss has no short formula: one
//! random bin for all passes, and Poisson samples with correlated noise.
//!
//! # What is promised
//!
//! δ(ε) is the mean of a bounded function under a law that can be drawn from, so a test can refuse
//! "δ(ε) is more than δ - β" with a chance of at most β = δ/100 of being wrong. The chance is over
//! the draws, not over the mechanism: it is paid for inside δ, so (ε, δ) is what is reported. The
//! seed is fixed here and depends on the parameters alone. No user chooses it, and the same question
//! has the same answer; the statement is that of all seeds this file could have had, a share of at
//! most β would mislead for a given run.
//!
//! # Proof: Monte Carlo with its failure in δ
//!
//! Write T for the law of the outputs that we draw for (P, with the record; or Q, without it), ℓ
//! for the loss ln T/(other) and R = Σ w_k R_k for a mixture of tilted laws. Then δ(ε) = E_R X with
//! X = (1 - e^(ε-ℓ))₊ / Σ w_k e^(r_k), r_k = ln dR_k/dT. Importance weights alone are bounded only
//! by 1/w; with δ = 1e-5 that would need 1e8 draws. Each tilt here comes with a *certificate* r_k ≥
//! slope·ℓ - offset that holds at every output (Jensen; see [`balls_and_bins`] and
//! [`poisson_chain`]), so with v = ℓ - ε > 0
//!
//! X ≤ M = sup_v (1 - e^(-v)) / Σ w_k exp(slope_k(ε + v) - offset_k),
//!
//! often hundreds of times smaller. The test is a bet (Waudby-Smith and Ramdas, *Estimating means
//! of bounded random variables by betting*, 2024): for 0 ≤ λ < 1/(M - m) the wealth Π (1 + λ(m -
//! X_i)) is non-negative, and if E X ≥ m it is a supermartingale. By Ville's inequality it ever
//! reaches 1/β with probability at most β. So we may stop when we like, nothing is lost to an
//! estimated variance, and X = 0 throughout would need only M·ln(1/β)/m draws.
//!
//! Several ε are tested on the same draws, from the largest down, up to the first that is not
//! refused. δ(ε) falls, so the report is wrong only if the largest of the tested ε with δ(ε) ≥ m
//! was refused: one test, one β. The report is the larger of both directions' and is too small only
//! if that direction erred whose true ε is larger: again one β. Tilts, ε and λ are chosen on pilot
//! draws from another stream, so for the test they are constants.
//!
//! Rounding: relative errors are below 1e-11. X and M are raised by 1e-9, and ε by 1e-9. Uniform
//! and normal numbers of 53 bits change the law of a draw by less than 1e-11 in total variation, so
//! the mean of X by less than 1e-11·M, which is taken off m.
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::{
    importance::{Draw, Mixture, Pair},
    pilot::Pilot,
};
use crate::correlated::{CorrelatedGaussian, Participation, Strategy};

mod balls_and_bins;
mod importance;
mod pilot;
mod poisson_chain;

/// An ε for the δ asked, the failure of the sampling counted inside that δ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Confident {
    pub(crate) epsilon: f64,
    /// β, the chance (over seeds) that ε is too small. Already part of δ.
    pub(crate) failure: f64,
    /// Draws the tests used, pilots not counted.
    pub(crate) samples: u64,
}

/// A second or two, in elementary operations.
#[cfg(test)]
const WORK: u64 = 1_000_000_000;

/// Share of δ that the sampling may fail with.
const FAILURE: f64 = 0.01;
/// Shares of the work: pilot and test of the remove direction, pilot and test of the add direction.
const SHARES: [f64; 4] = [0.12, 0.68, 0.05, 0.15];
/// Tested ε, relative to the one that the pilot thinks can just be had.
const RUNGS: [f64; 12] = [1.5, 1.3, 1.2, 1.12, 1.07, 1.04, 1.02, 1.01, 1.0, 0.99, 0.98, 0.97];

/// The ε of `run` at `delta` under add-remove, if sampling can show less than `deterministic` with
/// this much work.
pub(crate) fn epsilon(
    run: &CorrelatedGaussian,
    delta: f64,
    deterministic: f64,
    work: u64,
) -> Option<Confident> {
    seeded(run, delta, deterministic, work, seed(run, delta))
}

fn seeded(
    run: &CorrelatedGaussian,
    delta: f64,
    known: f64,
    work: u64,
    seed: u64,
) -> Option<Confident> {
    if !(known > 0.0 && known.is_finite()) {
        return None;
    }
    let limits = Limits { delta, known, work: work as f64, seed };
    match (run.participation(), run.strategy()) {
        (Participation::BallsAndBins { bins }, _) => {
            let bins = balls_and_bins::Bins::new(run, bins, work)?;
            limits.both(&mut bins.removed(known), &mut bins.added(known))
        }
        (Participation::Poisson { rate }, Strategy::Lambda(lambda)) => {
            let chain = poisson_chain::Chain::new(*lambda, rate, run.steps(), run.noise(), work)?;
            limits.both(&mut chain.removed(known), &mut chain.added(known))
        }
        _ => None,
    }
}

/// What to test, decided before the draws of the test.
struct Plan {
    mixture: Mixture,
    /// ε, M and λ, largest ε first.
    rungs: Vec<Rung>,
    draws: u64,
}

struct Rung {
    epsilon: f64,
    most: f64,
    bet: f64,
}

/// Total variation between the draws as computed and as meant.
const ROUNDED: f64 = 1e-11;

/// What is asked of both directions.
struct Limits {
    delta: f64,
    /// The ε that is known anyway.
    known: f64,
    work: f64,
    seed: u64,
}

impl Limits {
    fn both(&self, removed: &mut impl Pair, added: &mut impl Pair) -> Option<Confident> {
        let plan = self.plan(removed, None, 0)?;
        let (epsilon, first) = self.test(removed, &plan, 1)?;
        // Given the first result, the second direction's ε are fixed in advance too.
        let plan = self.plan(added, Some(epsilon), 2)?;
        let (epsilon, second) = self.test(added, &plan, 3)?;
        let epsilon = epsilon + 1e-9;
        (epsilon < self.known).then_some(Confident {
            epsilon,
            failure: FAILURE * self.delta,
            samples: first + second,
        })
    }

    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }

    /// m = δ - β, before rounding.
    fn target(&self) -> f64 {
        self.delta * (1.0 - FAILURE)
    }

    /// ln(1/β), and a little for rounding.
    fn need(&self) -> f64 {
        -(FAILURE * self.delta).ln() + 1e-6
    }

    /// Finds the least ε that a test with the allowed work should be able to show; `least` if that
    /// is enough.
    fn plan(&self, pair: &mut impl Pair, least: Option<f64>, stream: u64) -> Option<Plan> {
        let share = |s: u64| SHARES[s as usize] * self.work;
        let pilot = Pilot::new(pair, share(stream), &mut self.rng(stream))?;
        // Growth is only estimated: plan for two thirds of the work.
        let allowed = share(stream + 1) / 1.5;
        let (need, target) = (self.need(), self.target());
        let reach = |e: f64| pilot.best(pair, e, target, need);
        let (mut low, mut high) = (least.unwrap_or(0.0), self.known);
        if reach(high).0 > allowed {
            return None;
        }
        if least.is_some_and(|e| reach(e).0 <= allowed) {
            high = low;
        }
        while high - low > 3e-3 * high {
            let mid = 0.5 * (low + high);
            if reach(mid).0 > allowed { low = mid } else { high = mid }
        }
        if high > 0.995 * self.known {
            return None;
        }
        let mixture = reach(high).1;
        let rung = |factor: &f64| {
            let epsilon = factor * high;
            let most = mixture.bound(pair.tilts(), epsilon);
            Rung { epsilon, most, bet: pilot.bet(&mixture, epsilon, most, target) }
        };
        let useful = |r: &f64| r * high < self.known && least.is_none_or(|e| r * high >= e);
        let rungs: Vec<Rung> = RUNGS.iter().filter(|r| useful(r)).map(rung).collect();
        let draws = (share(stream + 1) / pair.cost(mixture.tilts.len())) as u64;
        Some(Plan { mixture, rungs, draws })
    }

    /// The least ε of the plan down to which all were shown, and the number of draws.
    fn test(&self, pair: &mut impl Pair, plan: &Plan, stream: u64) -> Option<(f64, u64)> {
        let (need, target) = (self.need(), self.target());
        let mut rng = self.rng(stream);
        // ln wealth is n·ln(1 + λm) plus what the draws with X > 0 took away.
        let targets: Vec<f64> = plan.rungs.iter().map(|r| target - ROUNDED * r.most).collect();
        let gain: Vec<f64> =
            plan.rungs.iter().zip(&targets).map(|(r, m)| (r.bet * m).ln_1p()).collect();
        let mut taken = vec![0.0; plan.rungs.len()];
        // A bound M ≤ m needs no draw at all.
        let mut shown: Vec<bool> = plan.rungs.iter().map(|r| r.most <= target).collect();
        let mut ratios = vec![0.0; plan.mixture.tilts.len()];
        let lowest = plan.rungs.last()?.epsilon;
        let mut drawn = 0;
        while drawn < plan.draws && !shown.iter().all(|s| *s) {
            let from = plan.mixture.pick(&mut rng);
            let asked = Draw { from, tilts: &plan.mixture.tilts, above: lowest };
            let loss = pair.draw(asked, &mut rng, &mut ratios);
            drawn += 1;
            if loss.is_nan() || loss > lowest {
                let mixed = plan.mixture.log_sum(&ratios);
                let lost = !(loss.is_finite() && mixed.is_finite());
                for (i, rung) in plan.rungs.iter().enumerate() {
                    let x = match lost {
                        // What could not be computed counts as the largest it can be.
                        true => rung.most,
                        false if loss <= rung.epsilon => continue,
                        false => -f64::exp_m1(rung.epsilon - loss) * (-mixed).exp() * (1.0 + 1e-9),
                    };
                    taken[i] += (rung.bet * (targets[i] - x.min(rung.most))).ln_1p() - gain[i];
                }
            }
            if drawn.is_multiple_of(64) {
                for (i, s) in shown.iter_mut().enumerate() {
                    *s |= drawn as f64 * gain[i] + taken[i] >= need;
                }
            }
        }
        let run = shown.iter().take_while(|s| **s).count();
        (run > 0).then(|| (plan.rungs[run - 1].epsilon, drawn))
    }
}

/// Mixes all parameters into one number.
fn seed(run: &CorrelatedGaussian, delta: f64) -> u64 {
    let mut bits = vec![run.steps(), run.noise().to_bits(), delta.to_bits()];
    match run.strategy() {
        Strategy::Lambda(lambda) => bits.extend([1, lambda.to_bits()]),
        Strategy::Banded(c) => bits.extend([2].into_iter().chain(c.iter().map(|x| x.to_bits()))),
        Strategy::Matrix(m) => {
            bits.extend([3].into_iter().chain(m.iter().flatten().map(|x| x.to_bits())));
        }
    }
    match run.participation() {
        Participation::Poisson { rate } => bits.extend([4, rate.to_bits()]),
        Participation::BallsAndBins { bins } => bits.extend([5, bins]),
        _ => {}
    }
    // The constants of SplitMix64, started from the digits of π.
    bits.into_iter().fold(0x3141_5926_5358_9793, |state: u64, x| {
        let z = (state ^ x).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests;
