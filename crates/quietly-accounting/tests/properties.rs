//! What must hold for any parameters: drawn at random with a fixed seed, so that a failure stays
//! one.
mod common;
use common::*;
use quietly_accounting::{
    CorrelatedGaussian, Event, Neighbours, Participation, PrivacyBound, Strategy, calibrate, delta,
    epsilon,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use rand_distr::{Distribution, StandardUniform};

struct Draws(ChaCha8Rng);

impl Draws {
    fn uniform(&mut self) -> f64 {
        StandardUniform.sample(&mut self.0)
    }

    /// Uniform in the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.uniform())
    }
}

/// A mechanism whose noise is still open.
struct Recipe {
    kind: usize,
    rate: f64,
    steps: u64,
    lambda: f64,
}

impl Recipe {
    fn draw(rng: &mut Draws) -> Recipe {
        let kind = (rng.uniform() * 8.0) as usize;
        let lambda = 0.95 * rng.uniform();
        Recipe {
            kind,
            rate: rng.between(1e-3, 0.9),
            steps: rng.between(1.0, 2000.0) as u64,
            lambda,
        }
    }

    fn event(&self, noise: f64) -> Result<Event, quietly_accounting::Error> {
        let Recipe { kind, rate, steps, lambda } = *self;
        let share = ((rate * 1e4) as u64).max(1);
        let bins = ((1.0 / rate) as u64).clamp(2, steps.max(2));
        match kind {
            0 => Event::gaussian(noise)?.repeat(steps),
            1 => Event::laplace(noise)?.repeat(steps),
            2 => Event::poisson(rate, noise)?.repeat(steps),
            3 => Event::fixed_size(10_000, share, noise)?.repeat(steps),
            4 => Event::random_allocation(bins, 1, noise)?.repeat(1 + steps / 200),
            5 => {
                Ok(Event::gaussian(3.0 * noise)?.then(Event::poisson(rate, noise)?.repeat(steps)?))
            }
            6 => {
                let poisson = Participation::Poisson { rate };
                Ok(Event::correlated(CorrelatedGaussian::new(
                    Strategy::Lambda(lambda),
                    poisson,
                    steps,
                    noise,
                )?))
            }
            _ => {
                let all = Participation::BallsAndBins { bins };
                Ok(Event::correlated(CorrelatedGaussian::new(
                    Strategy::Lambda(lambda),
                    all,
                    steps.max(bins),
                    noise,
                )?))
            }
        }
    }
}

fn sane(answer: PrivacyBound) {
    assert!(
        answer.lower >= 0.0 && answer.lower <= answer.upper && !answer.upper.is_nan(),
        "{answer:?}"
    );
}

#[test]
fn answers_are_intervals_and_move_the_right_way() {
    let mut rng = Draws(ChaCha8Rng::seed_from_u64(1));
    let mut finite = 0;
    for _ in 0..24 {
        let recipe = Recipe::draw(&mut rng);
        let (noise, target) = (rng.between(0.7, 50.0), rng.between(1e-10, 0.1));
        let what = format!(
            "kind {} rate {} steps {} λ {} noise {noise} δ {target}",
            recipe.kind, recipe.rate, recipe.steps, recipe.lambda
        );
        let event = recipe.event(noise).unwrap();
        let ask = |e: &Event, n: Neighbours| epsilon(e, n, target).unwrap();
        let (one, two) = (ask(&event, AddRemove), ask(&event, ReplaceOne));
        sane(one);
        sane(two);
        // What holds for the truth: each end of one interval against the other end of the other.
        assert!(
            two.upper >= one.lower * (1.0 - 1e-9),
            "replace-one costs more: {what} {one:?} {two:?}"
        );
        let quieter = ask(&recipe.event(1.25 * noise).unwrap(), AddRemove);
        assert!(
            quieter.lower <= one.upper * (1.0 + 1e-9),
            "more noise is cheaper: {what} {one:?} {quieter:?}"
        );
        let longer = ask(&event.clone().repeat(2).unwrap(), AddRemove);
        assert!(
            longer.upper >= one.lower * (1.0 - 1e-9),
            "more steps cost more: {what} {one:?} {longer:?}"
        );
        if one.upper > 2e-3 && one.upper < 900.0 {
            finite += 1;
            // At the ε promised, δ is at most the δ asked for; just under the ε shown, it is more.
            let at = delta(&event, AddRemove, one.upper * 1.001).unwrap();
            assert!(at.lower <= target * (1.0 + 1e-9), "{what} {one:?} {at:?}");
            let under = delta(&event, AddRemove, (one.lower * 0.999).max(1e-3)).unwrap();
            assert!(
                one.lower < 2e-3 || under.upper >= target * (1.0 - 1e-9),
                "{what} {one:?} {under:?}"
            );
            let further = delta(&event, AddRemove, one.upper * 1.2).unwrap();
            assert!(
                further.lower <= at.upper * (1.0 + 1e-9),
                "δ falls with ε: {what} {at:?} {further:?}"
            );
        }
    }
    assert!(finite > 10, "{finite}");
}

#[test]
fn calibrated_noise_is_enough_and_little_less_is_not() {
    let mut rng = Draws(ChaCha8Rng::seed_from_u64(2));
    let mut tight = 0;
    for _ in 0..12 {
        let recipe = Recipe::draw(&mut rng);
        let (goal, target) = (rng.between(0.1, 10.0), rng.between(1e-9, 1e-3));
        let relation = if rng.uniform() < 0.5 { AddRemove } else { ReplaceOne };
        let what = format!(
            "kind {} rate {} steps {} λ {} ε {goal} δ {target} {relation:?}",
            recipe.kind, recipe.rate, recipe.steps, recipe.lambda
        );
        let found = calibrate(|noise| recipe.event(noise), relation, goal, target);
        let found = found.unwrap_or_else(|e| panic!("{what} {e}"));
        assert!(found.epsilon.upper <= goal, "{what} {found:?}");
        let again =
            epsilon(&recipe.event(found.noise_multiplier).unwrap(), relation, target).unwrap();
        assert!(again.upper <= goal, "{what} {again:?}");
        if found.noise_multiplier > 0.103 {
            let less = recipe.event(0.98 * found.noise_multiplier).unwrap();
            let less = epsilon(&less, relation, target).unwrap();
            assert!(less.upper > goal, "{what} {found:?} {less:?}");
            tight += 1;
        }
    }
    assert!(tight > 7, "{tight}");
}

/// Corners of the domain: a sane answer, and soon.
#[test]
fn the_corners_of_the_domain_are_answered() {
    let lambda = |l: f64, p, steps, noise| {
        Event::correlated(CorrelatedGaussian::new(Strategy::Lambda(l), p, steps, noise).unwrap())
    };
    let corners = [
        Event::poisson(0.5, 0.1).unwrap().repeat(1000).unwrap(),
        Event::poisson(1e-9, 0.1).unwrap().repeat(1000).unwrap(),
        Event::poisson(1e-4, 1e4).unwrap().repeat(100_000).unwrap(),
        Event::laplace(0.1).unwrap().repeat(100_000).unwrap(),
        Event::fixed_size(1000, 10, 0.1).unwrap().repeat(1000).unwrap(),
        Event::fixed_size(10_000, 2, 8.107652854557292).unwrap().repeat(88).unwrap(),
        Event::random_allocation(1000, 999, 1.0).unwrap(),
        Event::random_allocation(2, 1, 0.1).unwrap(),
        Event::gaussian(0.1).unwrap().then(Event::poisson(0.5, 1.0).unwrap()).repeat(1000).unwrap(),
        lambda(0.9, Participation::Poisson { rate: 0.5 }, 10, 0.1),
        lambda(0.9, Participation::Poisson { rate: 0.1 }, 100, 1.0),
        lambda(0.9, Participation::BallsAndBins { bins: 10 }, 100, 0.1),
        lambda(
            0.029083137322209216,
            Participation::BallsAndBins { bins: 204 },
            204,
            1.4733307054536393,
        ),
        lambda(0.99, Participation::FullBatch, 1000, 0.1),
    ];
    for event in &corners {
        for relation in [AddRemove, ReplaceOne] {
            sane(epsilon(event, relation, 1e-5).unwrap());
            sane(delta(event, relation, 0.13391048841535727).unwrap());
            sane(delta(event, relation, 1000.0).unwrap());
        }
    }
}

/// The search for noise begins at a multiplier of one, wherever the answer lies.
#[test]
fn strongly_correlated_runs_can_be_calibrated() {
    for (lambda, participation) in [
        (0.9, Participation::Poisson { rate: 0.01 }),
        (0.99, Participation::BallsAndBins { bins: 10 }),
    ] {
        let run = |noise| {
            Ok(Event::correlated(CorrelatedGaussian::new(
                Strategy::Lambda(lambda),
                participation,
                1000,
                noise,
            )?))
        };
        let found = calibrate(run, AddRemove, 1.0, 1e-5).unwrap();
        assert!(found.epsilon.upper <= 1.0 && found.epsilon.upper > 0.99, "{found:?}");
    }
}
