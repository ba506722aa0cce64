//! Draws per second, one thread.
use crate::{Line, best};
use quietly_noise::{Key, RoundedGaussian};
use rand::{Rng, SeedableRng};
use std::hint::black_box;

const DRAWS: usize = 1 << 22;

pub(crate) fn lines() -> Vec<Line> {
    let ours = ours();
    let mut lines = vec![Line::at_least(
        "noise at s = 2^30, ChaCha20 / rand_distr normal, ChaCha12",
        ours / rand_distr(),
        1.0 / 3.0,
        "x",
    )];
    match opendp() {
        Some(theirs) => lines.push(Line::at_least(
            "noise at s = 2^30 / opendp discrete Gaussian, scale 1e6",
            ours / theirs,
            400.0,
            "x",
        )),
        None => println!("left out: noise against opendp (run `make bench`)"),
    }
    lines
}

fn ours() -> f64 {
    let stream = Key::from_seed(1).stream("bench");
    let normal = RoundedGaussian::new((1u64 << 30) as f64).expect("a valid scale");
    let mut out = vec![0; DRAWS];
    let mut step = 0;
    let seconds = best(9, || {
        normal.fill(&stream, step, &mut out).expect("a valid step");
        step += 1;
        black_box(&out);
    });
    DRAWS as f64 / seconds
}

fn rand_distr() -> f64 {
    let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(1);
    let seconds = best(9, || {
        let mut sum = 0.0;
        for _ in 0..DRAWS {
            let z: f64 = rng.sample(rand_distr::StandardNormal);
            sum += z;
        }
        black_box(sum);
    });
    DRAWS as f64 / seconds
}

#[cfg(feature = "rivals")]
fn opendp() -> Option<f64> {
    use opendp::{
        domains::{AtomDomain, VectorDomain},
        measurements::make_gaussian,
        measures::ZeroConcentratedDivergence,
        metrics::L2Distance,
    };
    const FEW: usize = 20_000;
    let mechanism = make_gaussian::<_, _, ZeroConcentratedDivergence>(
        VectorDomain::new(AtomDomain::<i64>::default()),
        L2Distance::<f64>::default(),
        1e6,
        None,
    )
    .expect("a valid mechanism");
    let zeros = vec![0i64; FEW];
    let seconds = best(5, || {
        black_box(mechanism.invoke(&zeros).expect("a valid input"));
    });
    Some(FEW as f64 / seconds)
}

#[cfg(not(feature = "rivals"))]
fn opendp() -> Option<f64> {
    None
}
