//! Public normal numbers: random directions, weights at the start, synthetic tables.
use quietly_noise::{Error, RoundedGaussian, Stream};

/// Standard normal numbers, rounded to multiples of 2^-`bits`. They are drawn anew for every `step`, and are no noise of a release.
///
/// # Errors
///
/// Those of [`RoundedGaussian::fill`].
pub fn normals(stream: &Stream, step: u64, bits: u32, count: usize) -> Result<Vec<f64>, Error> {
    let grid = (1_u64 << bits) as f64;
    let mut drawn = vec![0; count];
    RoundedGaussian::new(grid)?.fill(stream, step, &mut drawn)?;
    Ok(drawn.into_iter().map(|z| z as f64 / grid).collect())
}
