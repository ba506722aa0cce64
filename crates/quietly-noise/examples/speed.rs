//! Draws per second, beside `rand_distr` over ChaCha12 in the same run.
//!
//! `cargo run --release -p quietly-noise --example speed`
use std::{hint::black_box, num::NonZeroUsize, time::Instant};

use quietly_noise::{Correlated, DiscreteLaplace, Dyadic, Error, Key, Ratio, RoundedNormal};
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;

const DRAWS: usize = 1 << 20;

/// Fills a vector with the noise of a step.
type Fill<'a> = &'a dyn Fn(u64, &mut [i64]) -> Result<(), Error>;

/// Draws per second: the best of several rounds, as the machine is shared.
fn best(mut work: impl FnMut()) -> f64 {
    let seconds = (0..15).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    });
    DRAWS as f64 / seconds.fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Error> {
    let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(1);
    let theirs = best(|| {
        let mut sum = 0.0;
        for _ in 0..DRAWS {
            let z: f64 = rng.sample(StandardNormal);
            sum += z;
        }
        black_box(sum);
    });
    println!("rand_distr StandardNormal, ChaCha12:  {:6.1} million/s", theirs / 1e6);

    let stream = Key::from_os()?.stream("speed");
    let mut out = vec![0; DRAWS];
    let mut report = |what: &str, fill: Fill<'_>| {
        let mut step = 1;
        let ours = best(|| {
            fill(step, black_box(&mut out)).expect("bits suffice");
            step += 1;
        });
        println!("{what:<36} {:6.1} million/s, ratio {:.2}", ours / 1e6, ours / theirs);
    };
    for log2 in [0, 20, 30, 40, 45] {
        let normal = RoundedNormal::new(2f64.powi(log2))?;
        report(&format!("RoundedNormal, s = 2^{log2}, ChaCha20:"), &|t, out| {
            normal.fill(&stream, t, out)
        });
    }
    let normal = RoundedNormal::new(2f64.powi(30))?;
    let two = NonZeroUsize::new(2).expect("two is not zero");
    report("the same, s = 2^30, two threads:", &|t, out| normal.fill_threads(&stream, t, out, two));
    let correlated = Correlated::lambda(2f64.powi(30), Dyadic::new(3, 2)?)?;
    report("Correlated, s = 2^30, lambda = 3/4:", &|t, out| correlated.fill(&stream, t, out));
    let laplace = DiscreteLaplace::new(Ratio::new(1_000_000, 3)?)?;
    report("DiscreteLaplace, t = 10^6/3:", &|t, out| laplace.fill(&stream, t, out));
    Ok(())
}
