//! How long a step takes, on made-up rows.
use std::{num::NonZero, time::Instant};

use quietly::{
    Error,
    kan::{Input, NetworkShape, network::Network, quantized_rows::QuantizedRows},
};
use quietly_noise::{Key, RoundedGaussian};

/// Where gradients are cut.
const CLIP: f64 = 0.3;

/// Seconds of the fastest of several steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSpeed {
    /// The exact sum of clipped gradients.
    pub(crate) clipped: f64,
    /// The same with noise, independent in every step.
    pub(crate) noisy: f64,
    /// The sum of gradients as they are.
    pub(crate) plain: f64,
}

/// Measures a step over `batch` of ten times as many rows, made up.
///
/// Rows are synthetic: sums of gradients of real rows never leave the library without noise.
///
/// # Errors
///
/// What [`NetworkShape::check`] says.
pub(crate) fn step_speed(
    shape: &NetworkShape,
    batch: usize,
    threads: usize,
    runs: usize,
) -> Result<StepSpeed, Error> {
    let network = Network::new(shape.clone(), 1)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut number = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let outputs = shape.loss.outputs();
    let inputs = || shape.inputs.iter().cycle().take(shape.inputs.len() * batch * 10);
    let features: Vec<f64> = inputs()
        .map(|input| match input {
            Input::Spline => number(),
            Input::Plain => f64::from(number() > 0.8),
        })
        .collect();
    let labels: Vec<f64> = (0..batch * 10).map(|i| (i % outputs.max(2)) as f64).collect();
    let rows = QuantizedRows::new(shape, &features, &labels);
    let which: Vec<u32> =
        (0..batch as u32).map(|i| (i * 7 + i % 3) % rows.count() as u32).collect();
    let (mut exact, mut plain) = (vec![0; shape.weights()], vec![0.0; shape.weights()]);
    let mut speed =
        StepSpeed { clipped: f64::INFINITY, noisy: f64::INFINITY, plain: f64::INFINITY };
    let noise = RoundedGaussian::new(4.0 * network.sensitivity(CLIP).bound)?;
    let stream = Key::from_seed(1).stream("speed");
    let cores = NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN);
    // In turn, so that other work on the machine hits both alike.
    for run in 0..runs {
        exact.fill(0);
        let start = Instant::now();
        network.clipped_sum(&rows, &which, CLIP, threads, &mut exact);
        speed.clipped = speed.clipped.min(start.elapsed().as_secs_f64());
        noise.add_threads(&stream, run as u64, &mut exact, cores)?;
        speed.noisy = speed.noisy.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        network.plain_sum(&rows, &which, threads, &mut plain);
        speed.plain = speed.plain.min(start.elapsed().as_secs_f64());
    }
    Ok(speed)
}
