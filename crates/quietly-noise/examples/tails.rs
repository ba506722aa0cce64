//! How often noise lies beyond 4.5 and 5.5 standard deviations, in a thousand million draws.
//!
//! `cargo run --release -p quietly-noise --example tails`. Exits with an error if a count is
//! further than 5 standard deviations from what the law says (false-positive rate 6e-7 each).
use std::num::NonZeroUsize;

use quietly_noise::{Error, Key, RoundedGaussian};

const DRAWS: usize = 1_000_000_000;
const RUN: usize = 10_000_000;

fn main() -> Result<(), Error> {
    let (scale, stream) = (2f64.powi(30), Key::from_seed(45).stream("tails"));
    let normal = RoundedGaussian::new(scale)?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let limits = [3.0, 4.0, 4.5, 5.0, 5.5];
    let mut counts = [0u64; 5];
    let mut noise = vec![0; RUN];
    for step in 0..(DRAWS / RUN) as u64 {
        normal.fill_threads(&stream, step, &mut noise, threads)?;
        for (limit, count) in limits.iter().zip(&mut counts) {
            let limit = (limit * scale) as u64;
            *count += noise.iter().filter(|n| n.unsigned_abs() > limit).count() as u64;
        }
    }
    let mut worst = 0.0f64;
    for (limit, count) in limits.iter().zip(counts) {
        let expected = DRAWS as f64 * libm::erfc(limit / std::f64::consts::SQRT_2);
        let deviations = (count as f64 - expected) / expected.sqrt();
        worst = worst.max(deviations.abs());
        println!(
            "beyond {limit}: {count}, expected {expected:.1}, off by {deviations:+.2} deviations"
        );
    }
    assert!(worst < 5.0, "the tail is wrong");
    Ok(())
}
