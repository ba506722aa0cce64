//! Where time goes: `cargo bench -p quietly-bench`. Targets, as ratios beside other libraries, are `make bench`.
use divan::{Bencher, black_box, counter::ItemsCount};
use quietly_accounting::{Event, Neighbours, calibrate, epsilon};
use quietly_noise::{Dyadic, Key, RoundedGaussian};

fn main() {
    divan::main();
}

const DRAWS: usize = 1 << 16;

#[divan::bench(args = [1.0, 1000.0, 1_073_741_824.0, 35_184_372_088_832.0])]
fn rounded_normal(bencher: Bencher<'_, '_>, scale: f64) {
    let stream = Key::from_seed(1).stream("bench");
    let normal = RoundedGaussian::new(scale).expect("a valid scale");
    let mut out = vec![0; DRAWS];
    bencher.counter(ItemsCount::new(DRAWS)).bench_local(|| {
        normal.fill(&stream, 0, &mut out).expect("a valid step");
        black_box(out[0])
    });
}

#[divan::bench]
fn correlated_normal(bencher: Bencher<'_, '_>) {
    let stream = Key::from_seed(1).stream("bench");
    let three_quarters = Dyadic::new(3, 2).expect("a valid fraction");
    let noise =
        quietly_noise::CorrelatedNoise::lambda(1_073_741_824.0, three_quarters).expect("valid");
    let mut out = vec![0; DRAWS];
    bencher.counter(ItemsCount::new(DRAWS)).bench_local(|| {
        noise.fill(&stream, 1, &mut out).expect("a valid step");
        black_box(out[0])
    });
}

#[divan::bench(args = [(0.01, 1.0, 1000), (0.001, 0.8, 10_000), (0.004, 1.1, 15_000), (1e-4, 0.6, 100_000)])]
fn poisson_epsilon((rate, noise, steps): (f64, f64, u64)) -> f64 {
    let run = Event::poisson(rate, noise).and_then(|e| e.repeat(steps)).expect("valid");
    epsilon(&run, Neighbours::AddRemove, 1e-5).expect("supported").upper
}

#[divan::bench(args = [10, 100, 1000, 10_000])]
fn allocation_epsilon(steps: u64) -> f64 {
    let run = Event::random_allocation(steps, 1, 1.0).expect("valid");
    epsilon(&run, Neighbours::AddRemove, 1e-5).expect("supported").upper
}

#[divan::bench]
fn poisson_calibration() -> f64 {
    let run = |noise| Event::poisson(0.01, noise)?.repeat(1000);
    calibrate(run, Neighbours::AddRemove, 1.0, 1e-5).expect("reachable").noise_multiplier
}
