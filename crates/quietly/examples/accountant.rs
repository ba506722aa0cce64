// The accountant on its own: what DP-SGD costs, and how much noise a budget needs.
//
//     cargo run -p quietly --example accountant
use std::error::Error;

use quietly_accounting::{Event, Neighbours, calibrate, epsilon};

fn main() -> Result<(), Box<dyn Error>> {
    // DP-SGD: 60 000 rows, batches of about 600 by Poisson sampling, 20 epochs.
    let (rate, steps, delta) = (600.0 / 60_000.0, 2000, 1e-5);
    let run = |noise_multiplier| Event::poisson(rate, noise_multiplier)?.repeat(steps);

    // The upper end is certified and may be promised. The lower end is what some pair of
    // neighbouring tables really leaks, so that no accountant can say less.
    println!("noise multiplier   epsilon at delta {delta:e}");
    let mut before = f64::INFINITY;
    for noise_multiplier in [0.8, 1.0, 1.5, 2.0] {
        let cost = epsilon(&run(noise_multiplier)?, Neighbours::AddRemove, delta)?;
        println!("{noise_multiplier:16.1}   {:.3} to {:.3}", cost.lower, cost.upper);
        assert!(cost.lower <= cost.upper && cost.upper < before);
        before = cost.upper;
    }

    // The least noise for ε = 1. Its cost has been computed, not interpolated.
    let found = calibrate(run, Neighbours::AddRemove, 1.0, delta)?;
    println!("\nepsilon 1 needs {:.3}: {}", found.noise_multiplier, found.epsilon.method);
    assert!(found.epsilon.upper <= 1.0 && found.epsilon.upper > 0.99);

    // Events add up: a private histogram first, then the training.
    let both = Event::gaussian(20.0)?.then(run(found.noise_multiplier)?);
    let cost = epsilon(&both, Neighbours::AddRemove, delta)?;
    println!("with a histogram at noise multiplier 20 before it: {:.3}", cost.upper);
    assert!(cost.upper > 1.0);
    Ok(())
}
