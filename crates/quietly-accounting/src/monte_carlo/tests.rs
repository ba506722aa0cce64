use super::{
    importance::{Tilt, exp},
    *,
};
use crate::{composition::Composition, convolution::Target, dominating_pair::DominatingPair};

fn allocated(lambda: f64, bins: u64, steps: u64, noise: f64) -> CorrelatedGaussian {
    CorrelatedGaussian::new(
        Strategy::Lambda(lambda),
        Participation::BallsAndBins { bins },
        steps,
        noise,
    )
    .unwrap()
}

fn poisson(lambda: f64, rate: f64, steps: u64, noise: f64) -> CorrelatedGaussian {
    CorrelatedGaussian::new(Strategy::Lambda(lambda), Participation::Poisson { rate }, steps, noise)
        .unwrap()
}

/// The report for `run` must lie between `truth` and a little above it. With fresh seeds a correct
/// program would fail with probability β = δ/100 = 1e-7.
fn is_close_above(run: &CorrelatedGaussian, truth: f64, slack: f64, work: u64) -> f64 {
    let got = epsilon(run, 1e-5, 2.0 * truth, work).expect("a limit below twice the truth").epsilon;
    assert!(got >= truth && got <= (1.0 + slack) * truth, "{run:?}: {got} for {truth}");
    got
}

fn true_epsilon(account: &Composition) -> f64 {
    account.bracket(Target::Delta(1e-5)).lower
}

#[test]
fn fast_exponential_is_the_exponential() {
    for i in 0..70_000 {
        let x = -0.01 * f64::from(i);
        assert!((exp(x) / x.exp() - 1.0).abs() < 1e-14, "{x}");
    }
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(-701.0), 0.0);
}

/// Every draw of every tilt satisfies its certificate, and some nearly with equality.
fn certificates_hold(pair: &mut impl Pair, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tilts = pair.tilts().to_vec();
    let all: Vec<usize> = (0..tilts.len()).collect();
    let mut out = vec![0.0; tilts.len()];
    let mut broken = 0;
    // Σ of the importance weights of T, and of their squares.
    let (mut first, mut second, draws) = (0.0, 0.0, 4000);
    for i in 0..draws {
        let asked = Draw { from: i % tilts.len(), tilts: &all, above: f64::NEG_INFINITY };
        let loss = pair.draw(asked, &mut rng, &mut out);
        for (tilt, r) in tilts.iter().zip(&out) {
            assert!(*r >= tilt.slope * loss - tilt.offset - 1e-7, "{tilt:?} {loss} {r}");
            broken += usize::from(*r < 1.2 * tilt.slope * loss - 0.8 * tilt.offset);
        }
        let weight = tilts.len() as f64 / out.iter().map(|r| r.exp()).sum::<f64>();
        first += weight / draws as f64;
        second += weight * weight / draws as f64;
    }
    // A control: a bolder certificate would be broken.
    assert!(broken > 20, "{broken}");
    // Densities integrate to one. Weights are at most the number of tilts, as T is one of them: 5
    // standard errors, 6e-7.
    let error = ((second - first * first) / draws as f64).sqrt();
    assert!((first - 1.0).abs() < 5.0 * error && error < 0.1, "{first} {error}");
}

#[test]
fn tilts_keep_what_they_certify() {
    let run = allocated(0.6, 6, 30, 3.0);
    let bins = balls_and_bins::Bins::new(&run, 6, WORK).unwrap();
    certificates_hold(&mut bins.removed(4.0), 1);
    certificates_hold(&mut bins.added(4.0), 2);
    let chain = poisson_chain::Chain::new(0.7, 0.15, 20, 4.0, WORK).unwrap();
    certificates_hold(&mut chain.removed(3.0), 3);
    certificates_hold(&mut chain.added(3.0), 4);
}

/// M is the supremum it says it is: never below the function on a fine grid, never 3 % above its
/// largest value there.
#[test]
fn mixture_bound_is_a_tight_supremum() {
    let tilts = [(0.0, 0.0), (1.5, 0.7), (4.0, 5.0)].map(|(slope, offset)| Tilt { slope, offset });
    for (a, b, w) in [(0, 0, 1.0), (1, 1, 1.0), (0, 1, 0.5), (2, 1, 0.8), (0, 2, 0.8)] {
        let mixture = Mixture::of(a, b, w);
        for e in [0.1, 1.0, 3.0] {
            let below = |v: f64| -> f64 {
                let term = |(k, w): (&usize, &f64)| {
                    w * (tilts[*k].slope * (e + v) - tilts[*k].offset).exp()
                };
                mixture.tilts.iter().zip(&mixture.weights).map(term).sum()
            };
            let at = |i: i32| -f64::exp_m1(-0.002 * f64::from(i)) / below(0.002 * f64::from(i));
            let largest = (1..20_000).map(at).fold(0.0, f64::max);
            let bound = mixture.bound(&tilts, e);
            assert!(bound >= largest && bound < 1.03 * largest, "{a} {b} {e}: {bound} {largest}");
            if a == b {
                assert!((tilts[a].log_bound(e) - bound.ln()).abs() < 0.03);
            }
        }
    }
}

/// One bin is a plain Gaussian.
#[test]
fn one_bin_is_a_gaussian() {
    let truth = true_epsilon(&Composition::gaussian(10.0_f64.sqrt() / 8.0));
    is_close_above(&allocated(0.0, 1, 10, 8.0), truth, 0.02, WORK / 10);
}

/// Without correlation the bins' means are orthogonal: an allocation with σ = κ/√k. Half the noise
/// must cost more.
#[test]
fn uncorrelated_bins_are_an_allocation() {
    let truth = |noise: f64| {
        true_epsilon(&Composition::of(DominatingPair::RandomAllocation {
            steps: 8,
            sigma: noise / 5.0,
        }))
    };
    let one = is_close_above(&allocated(0.0, 8, 200, 8.1), truth(8.1), 0.05, WORK / 2);
    let four = is_close_above(&allocated(0.0, 8, 200, 3.82), truth(3.82), 0.05, WORK / 4);
    assert!(four > 2.0 * one);
}

/// Without correlation the chain is a composition of Poisson samples.
#[test]
fn uncorrelated_chain_is_poisson_sampling() {
    let part = DominatingPair::Poisson { rate: 0.3, sigma: 3.0 };
    let account = Composition { mu_squared: 0.0, pairs: vec![(part, 10)], large: false };
    is_close_above(&poisson(0.0, 0.3, 10, 3.0), true_epsilon(&account), 0.05, WORK / 4);
}

/// Rows of the table in the accounting notes (exact likelihood ratio, importance sampling; ± one
/// standard error). A correct limit is below the mean less two standard errors with probability
/// 1e-7 plus the 2 % that the table errs.
#[test]
fn correlated_poisson_is_close_above_the_table() {
    for (noise, exact, error) in [(24.6, 0.996, 0.001), (8.57, 3.962, 0.004)] {
        let run = poisson(0.9, 0.1, 50, noise);
        let got = is_close_above(&run, exact - 2.0 * error, 0.13, WORK / 2);
        let half = poisson(0.9, 0.1, 50, 0.5 * noise);
        let more = epsilon(&half, 1e-5, 10.0 * exact, WORK / 4).unwrap().epsilon;
        assert!(more > 1.5 * got, "{more} {got}");
    }
}

/// Had the seeds been drawn afresh, a correct program would fail once in 250 000 times: 40
/// repetitions, each 1e-7.
#[test]
fn limit_is_above_the_truth_for_forty_seeds() {
    let run = allocated(0.0, 4, 8, 2.0);
    let account =
        Composition::of(DominatingPair::RandomAllocation { steps: 4, sigma: 2.0 / 2.0_f64.sqrt() });
    let truth = true_epsilon(&account);
    let mut different = vec![];
    for seed in 0..40 {
        let got = seeded(&run, 1e-5, 1.5 * truth, WORK / 100, seed).unwrap().epsilon;
        assert!(got > truth && got < 1.15 * truth, "{seed}: {got} for {truth}");
        different.push(got.to_bits());
    }
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 4, "the seed is used");
    // A control: the same test must not be able to show what is not true. Refusing a true null at
    // 0.97 of the truth has probability 1e-7 for each seed.
    let bins = balls_and_bins::Bins::new(&run, 4, WORK).unwrap();
    for seed in 0..10 {
        let limits = Limits { delta: 1e-5, known: 1.5 * truth, work: 1e7, seed };
        let mut pair = bins.removed(limits.known);
        let mut plan = limits.plan(&mut pair, None, 0).unwrap();
        plan.rungs.truncate(1);
        plan.rungs[0].epsilon = 0.97 * truth;
        plan.rungs[0].most = plan.mixture.bound(pair.tilts(), 0.97 * truth);
        plan.rungs[0].bet = 0.5 / plan.rungs[0].most;
        assert_eq!(limits.test(&mut pair, &plan, 1), None);
    }
}

#[test]
fn nothing_is_reported_that_is_not_better_or_too_much_work() {
    let run = allocated(0.6, 8, 200, 17.4);
    let once = epsilon(&run, 1e-5, 1.2, WORK / 20).unwrap();
    assert_eq!(epsilon(&run, 1e-5, 1.2, WORK / 20), Some(once));
    assert_eq!(once.failure, 1e-5 * FAILURE);
    assert_eq!(epsilon(&run, 1e-5, 0.9 * once.epsilon, WORK / 20), None);
    assert_eq!(epsilon(&run, 1e-5, f64::INFINITY, WORK), None);
    for big in [
        poisson(0.999_999, 0.1, 1000, 1e4),
        poisson(0.9, 0.001, 10_000_000, 1e4),
        allocated(0.5, 100_000, 1_000_000, 10.0),
        allocated(0.5, 900, 900, 3.0),
    ] {
        assert_eq!(epsilon(&big, 1e-5, 5.0, WORK / 20), None, "{big:?}");
    }
    // Poisson samples with other strategies have no short chain.
    let banded = Strategy::Banded(vec![1.0, 0.5]);
    let run =
        CorrelatedGaussian::new(banded, Participation::Poisson { rate: 0.1 }, 10, 3.0).unwrap();
    assert_eq!(epsilon(&run, 1e-5, 5.0, WORK), None);
}

/// X is 1 with probability `chance`, else 0, at every ε that matters.
struct Coin {
    chance: f64,
}

impl Pair for Coin {
    fn tilts(&self) -> &[Tilt] {
        &[Tilt { slope: 0.0, offset: 0.0 }]
    }

    fn draw(&mut self, _: Draw<'_>, rng: &mut ChaCha8Rng, out: &mut [f64]) -> f64 {
        use rand_distr::{Distribution, StandardUniform};
        out[0] = 0.0;
        let u: f64 = StandardUniform.sample(rng);
        if u < self.chance { 100.0 } else { -1.0 }
    }

    fn cost(&self, _: usize) -> f64 {
        1.0
    }
}

/// At δ = ½ the failure β = 0.005 is large enough to be counted. Of 4000 tests of a true null a
/// correct program refuses more than 45 with probability 2e-6 or less, and of 100 tests of a
/// clearly false one it refuses all but a few.
#[test]
fn bet_is_won_by_chance_no_more_often_than_promised() {
    let won = |chance: f64, seeds: u64| {
        let test = |seed: &u64| {
            let limits = Limits { delta: 0.5, known: 2.0, work: 1e3, seed: *seed };
            let rungs = vec![Rung { epsilon: 1.0, most: 1.0 + 1e-9, bet: 0.2 }];
            let plan = Plan { mixture: Mixture::of(0, 0, 1.0), rungs, draws: 2000 };
            limits.test(&mut Coin { chance }, &plan, 1).is_some()
        };
        (0..seeds).filter(test).count()
    };
    let wrong = won(0.5 * (1.0 - FAILURE), 4000);
    assert!(wrong <= 45, "{wrong}");
    assert!(won(0.4, 100) > 90);
}
