//! KanConfig, attacked with neighbouring tables, under every sampler and noise.
use std::ops::ControlFlow;

use quietly_accounting::Neighbours;
use quietly_core::{
    budget::Budget,
    mechanism::{Correlation, Sampler},
    random::Random,
    release::{Releaser, Witnessed, depth},
    rows_used::ROWS_USED,
};
use quietly_data::{Private, Table};
use quietly_engine::error::Error;
use quietly_kan::{
    Clip, Input, Kan, NetworkLoss, NetworkNoise, NetworkSampler, NetworkShape, train::GRADIENT,
};
use quietly_noise::Key;

use crate::plan::Plan;
use crate::plan::{FitInput, test_support::options};

const WIDTH: usize = 3;
const ROWS: usize = 30;
const BATCHES: u64 = 4;
const PASSES: u64 = 3;

type Row = ([f64; WIDTH], f64);

pub(super) fn shape() -> NetworkShape {
    let inputs = vec![Input::Spline, Input::Plain, Input::Spline];
    NetworkShape { hidden: vec![5], ..NetworkShape::new(inputs, NetworkLoss::Logistic) }
}

pub(super) fn lambda(lambda: f64) -> NetworkNoise {
    NetworkNoise::Mixed { correlation: Correlation::lambda(lambda).unwrap() }
}

fn bands(bands: u32) -> NetworkNoise {
    NetworkNoise::Mixed { correlation: Correlation::bands(bands).unwrap() }
}

pub(super) fn budget(neighbours: Neighbours) -> Budget {
    Budget::new(2.0, 1e-5).unwrap().under(neighbours)
}

pub(super) const RELATIONS: [Neighbours; 2] = [Neighbours::AddRemove, Neighbours::ReplaceOne];

/// Every sampler with every noise, whether they go together or not.
pub(super) fn all() -> Vec<(NetworkSampler, NetworkNoise)> {
    let samplings = [
        NetworkSampler::FullBatch,
        NetworkSampler::Poisson,
        NetworkSampler::BallsAndBins,
        NetworkSampler::Cyclic,
        NetworkSampler::FixedSize,
    ];
    let noises = [NetworkNoise::Independent, lambda(0.5), bands(3), NetworkNoise::Tree];
    samplings.into_iter().flat_map(|s| noises.map(|n| (s, n))).collect()
}

/// Whether there is a theorem for them, by the table of docs/spec/networks.md#2.3 and not by the planner.
pub(super) fn goes_together(
    sampling: NetworkSampler,
    noise: NetworkNoise,
    neighbours: Neighbours,
) -> bool {
    let replaced = neighbours == Neighbours::ReplaceOne;
    match (sampling, noise) {
        (NetworkSampler::Cyclic, NetworkNoise::Tree) => true,
        (_, NetworkNoise::Tree) => false,
        (NetworkSampler::Poisson, NetworkNoise::Mixed { .. }) => !replaced,
        (NetworkSampler::FixedSize, _) => replaced,
        _ => true,
    }
}

pub(super) fn kan(sampling: NetworkSampler, noise: NetworkNoise) -> Kan {
    let passes = if noise == NetworkNoise::Tree { 1 } else { PASSES };
    let kan = Kan::new(shape()).sampler(sampling).noise(noise).passes(passes);
    // A low cut, so that most rows meet the bound.
    kan.batches(BATCHES).clip(Clip::At(0.01))
}

pub(super) fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for neighbours in RELATIONS {
        for (sampling, noise) in all() {
            if goes_together(sampling, noise, neighbours) {
                let plan = Plan::kan(&kan(sampling, noise), ROWS as u64, budget(neighbours));
                plans.push(plan.unwrap_or_else(|e| panic!("{sampling:?} {noise:?}: {e}")));
            }
        }
    }
    plans
}

pub(super) fn name(plan: &Plan) -> String {
    format!("{} {:?} {:?}", plan.sampler(), plan.training().noise, plan.budget().neighbours())
}

/// Corners, ordinary numbers, and what no reader hands out.
fn row(random: &mut Random) -> Row {
    let odd = [f64::NAN, f64::INFINITY, -1e300, 5e-324];
    let mut number = || match random.word() % 16 {
        0..4 => 1.0,
        4..8 => -1.0,
        8 => odd[random.word() as usize % odd.len()],
        _ => random.number(),
    };
    let x = std::array::from_fn(|_| number());
    let label = match random.word() % 12 {
        0 => f64::NAN,
        1 => 0.5,
        n => (n % 2) as f64,
    };
    (x, label)
}

pub(super) fn table(rows: &[Row]) -> Private<Table> {
    let x = rows.iter().flat_map(|r| r.0).collect();
    Private::new(Table::new(WIDTH, x, rows.iter().map(|r| r.1).collect()))
}

pub(super) fn rows(count: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    (0..count).map(|_| row(&mut random)).collect()
}

fn witnessed(plan: &Plan, rows: &[Row], seed: u64) -> Vec<Witnessed> {
    let mut releaser = Releaser::new(Key::from_seed(seed), plan.stages(), 1);
    releaser.witness = Some(Vec::new());
    let (table, quiet) = (table(rows), &mut |_| ControlFlow::Continue(()));
    plan.through(&mut releaser, &table, None, (0.0, 1.0), quiet).unwrap();
    releaser.witness.unwrap()
}

/// How far apart the sums of two tables are in every step, over what one row may add.
fn apart(plan: &Plan, a: &[Row], b: &[Row], seed: u64) -> Vec<f64> {
    let gradients = |rows: &[Row]| {
        let mut all = witnessed(plan, rows, seed);
        // The number of rows is released once, for all steps.
        let counts = all.extract_if(.., |asked| asked.purpose == ROWS_USED).count();
        assert_eq!(counts, 1, "one count");
        all
    };
    let (a, b) = (gradients(a), gradients(b));
    assert_eq!(a.len() as u64, plan.training().steps, "one sum in every step");
    assert_eq!(a.len(), b.len(), "no row decides what is asked");
    let far = |(a, b): (&Witnessed, &Witnessed)| {
        assert_eq!((&*a.purpose, a.bound), (GRADIENT, b.bound));
        let squares = a.values.iter().zip(&b.values).map(|(a, b)| ((a - b) as f64).powi(2));
        squares.sum::<f64>().sqrt() / a.bound.unwrap()
    };
    a.iter().zip(&b).map(far).collect()
}

/// Two neighbours: the last row leaves, so that all others keep their draws, or becomes another.
fn neighbours(plan: &Plan, seed: u64) -> (Vec<Row>, Vec<Row>) {
    let mut all = rows(ROWS, 100 + seed);
    // Half of the time one that counts for as much as any can.
    if seed.is_multiple_of(2) {
        *all.last_mut().unwrap() = ([0.4, 1.0, -0.3], 1.0);
    }
    let mut other = all.clone();
    let last = other.pop().unwrap();
    if plan.budget().neighbours() == Neighbours::ReplaceOne {
        other.push(if seed.is_multiple_of(2) {
            (last.0, 1.0 - last.1)
        } else {
            row(&mut Random(seed))
        });
    }
    (all, other)
}

/// In which steps a row may be, by the sampler alone.
fn may_be_in(plan: &Plan, moved: &[usize]) -> bool {
    match plan.sampler() {
        Sampler::BallsAndBins { bins, passes } | Sampler::Cyclic { period: bins, passes } => {
            let same = moved.windows(2).all(|w| ((w[1] - w[0]) as u64).is_multiple_of(bins));
            same && moved.len() as u64 <= passes
        }
        Sampler::Partition { steps } => moved.len() as u64 <= depth(steps),
        _ => true,
    }
}

#[test]
fn no_row_moves_a_sum_by_more_than_is_charged_nor_in_other_steps() {
    let all = plans();
    assert_eq!(all.len(), 27, "every sampler and noise that go together");
    for plan in all {
        let most = match plan.budget().neighbours() {
            Neighbours::AddRemove => 1.0,
            Neighbours::ReplaceOne => 2.0,
        };
        let mut farthest = 0.0_f64;
        for seed in 0..12 {
            let (a, b) = neighbours(&plan, seed);
            let far = apart(&plan, &a, &b, seed);
            let count = |rows: &[Row]| {
                let all = witnessed(&plan, rows, seed);
                let count = all.into_iter().find(|asked| asked.purpose == ROWS_USED).unwrap();
                count.values[0] as f64 / count.bound.unwrap()
            };
            assert!((count(&a) - count(&b)).abs() <= most, "{}: the count", name(&plan));
            farthest = far.iter().copied().fold(farthest, f64::max);
            let moved: Vec<usize> = (0..far.len()).filter(|t| far[*t] > 0.0).collect();
            assert!(may_be_in(&plan, &moved), "{}: in steps {moved:?}", name(&plan));
        }
        assert!(farthest <= most, "{}: {farthest}", name(&plan));
        // The bound is met, so that one too loose would be seen.
        assert!(farthest > 0.99 * most, "{}: {farthest}", name(&plan));
    }
}

/// The attack sees what it should: two rows that leave are more than one.
#[test]
fn the_attack_catches_a_second_row() {
    for plan in plans() {
        let caught = (0..12).any(|seed| {
            let (a, mut b) = neighbours(&plan, seed);
            // The same row twice, in the same step sooner or later.
            let mut a = a;
            let twin = a[ROWS - 1];
            a[ROWS - 2] = twin;
            match plan.budget().neighbours() {
                Neighbours::AddRemove => b.truncate(ROWS - 2),
                Neighbours::ReplaceOne => b[ROWS - 2] = (twin.0, 1.0 - twin.1),
            }
            let far = apart(&plan, &a, &b, seed);
            let moved: Vec<usize> = (0..far.len()).filter(|t| far[*t] > 0.0).collect();
            let most = if plan.budget().neighbours() == Neighbours::AddRemove { 1.0 } else { 2.0 };
            far.iter().any(|f| *f > most) || !may_be_in(&plan, &moved)
        });
        assert!(caught, "{}", name(&plan));
    }
}

/// Where rows are drawn independently, removing one changes no other. In a batch of fixed size another row takes its place: that is why it is
/// refused where rows come and go.
#[test]
fn one_row_decides_nothing_about_the_others_but_in_batches_of_one_size() {
    let steps = BATCHES * PASSES;
    let (bins, passes, batch, rows) = (BATCHES, PASSES, 8, 31);
    let samplers = [
        (Sampler::FullBatch, true),
        (Sampler::Poisson { steps, rate: 0.25 }, true),
        (Sampler::BallsAndBins { bins, passes }, true),
        (Sampler::Cyclic { period: bins, passes }, true),
        (Sampler::Partition { steps }, true),
        (Sampler::FixedSize { steps, batch, rows }, false),
    ];
    for (sampler, alone) in samplers {
        let drawn = |rows: usize| {
            let stream = Key::from_seed(3).stream("test");
            let mut batches = sampler.draw(stream).batches(rows);
            let step = |t| {
                let mut step = batches.step(t).to_vec();
                step.retain(|row| *row < 30);
                step.sort_unstable();
                step
            };
            (0..steps).map(step).collect::<Vec<_>>()
        };
        assert_eq!(drawn(31) == drawn(30), alone, "{sampler}");
    }
}

#[test]
fn a_table_of_another_size_is_refused_for_batches_of_one_size() {
    let plan = kan(NetworkSampler::FixedSize, NetworkNoise::Independent);
    let plan = Plan::kan(&plan, ROWS as u64, budget(Neighbours::ReplaceOne)).unwrap();
    let run = |count: usize| {
        let table = table(&rows(count, 1));
        plan.fit(FitInput::table(&table, (0.0, 1.0)), options(1, 1)).map(drop)
    };
    assert!(run(ROWS).is_ok());
    for count in [0, ROWS - 1, ROWS + 1] {
        let error = run(count).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "number of rows", .. }), "{error}");
    }
}

/// One, two and three threads give one network, bit for bit; another seed gives another.
#[test]
fn threads_change_nothing() {
    for plan in plans() {
        let train = |threads: usize, seed: u64| {
            let table = table(&rows(ROWS, 7));
            let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(seed, threads));
            fit.unwrap().network().unwrap()
        };
        let alone = train(1, 5);
        assert!(alone == train(2, 5) && alone == train(3, 5), "{}", name(&plan));
        assert!(alone != train(1, 6), "{}", name(&plan));
    }
}

/// No table is too small to be trained on: there may be no row at all, and none with a label.
#[test]
fn no_table_stops_a_training() {
    for plan in plans() {
        if matches!(plan.sampler(), Sampler::FixedSize { .. }) {
            continue;
        }
        let odd = ([f64::NAN, f64::INFINITY, -1e300], f64::NAN);
        for rows in [vec![], vec![odd], vec![odd; 400]] {
            let table = table(&rows);
            let fit = plan.fit(FitInput::table(&table, (0.0, 1.0)), options(1, 2));
            let scores = fit.unwrap().network().unwrap().scores(&[0.1, 0.0, -0.5]);
            assert!(scores.iter().all(|s| s.is_finite()), "{}", name(&plan));
        }
    }
}
