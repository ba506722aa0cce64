//! What happens to the channels of one picture between convolutions: a group norm (without its mean), tanh, and a mean of 2x2 pixels.
//!
//! A group norm looks at one picture alone, unlike a batch norm, with which one picture would move the gradients of others.

/// Channels in groups: the numbers of each group are put to mean square 1, then scaled and shifted by channel.
///
/// The mean stays where it is. Without it, a bright patch would make all the rest of the picture darker, and a network would tell
/// the class from the background: of what it looked at, 0.03 to 0.06 were inside a patch of 0.14 of the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GroupNorm {
    pub(super) channels: usize,
    /// How many channels a group has.
    pub(super) group: usize,
}

/// Keeps a group without any contrast from being divided by nothing.
const LEAST: f32 = 1e-5;

impl GroupNorm {
    /// Puts `values` to mean square 1; `inverse` gets one over the root of what was there, for each channel.
    #[inline(always)]
    pub(super) fn normalise(&self, values: &mut [f32], inverse: &mut [f32]) {
        let size = (values.len() / self.channels * self.group) as f32;
        let inverse = &mut inverse[..self.channels];
        inverse.fill(0.0);
        for pixel in values.chunks_exact(self.channels) {
            inverse.iter_mut().zip(pixel).for_each(|(sum, v)| *sum = v.mul_add(*v, *sum));
        }
        self.shared(inverse, |sum| 1.0 / (sum / size + LEAST).sqrt());
        for pixel in values.chunks_exact_mut(self.channels) {
            pixel.iter_mut().zip(&*inverse).for_each(|(v, inverse)| *v *= inverse);
        }
    }

    /// Turns every channel's number into what `of` makes of its group's sum.
    #[inline(always)]
    fn shared(&self, numbers: &mut [f32], of: impl Fn(f32) -> f32) {
        for group in numbers.chunks_exact_mut(self.group) {
            let shared = of(group.iter().sum());
            group.fill(shared);
        }
    }

    /// The gradient by what came in, in place of that by what went out; and those by scale and shift.
    #[inline(always)]
    pub(super) fn back(
        &self,
        (normal, inverse): (&[f32], &[f32]),
        scale: &[f32],
        gradient: &mut [f32],
        (by_scale, by_shift): (&mut [f32], &mut [f32]),
    ) {
        let c = self.channels;
        let size = (normal.len() / c * self.group) as f32;
        let (inverse, scale) = (&inverse[..c], &scale[..c]);
        let (by_scale, by_shift) = (&mut by_scale[..c], &mut by_shift[..c]);
        by_scale.fill(0.0);
        by_shift.fill(0.0);
        for (g, n) in gradient.chunks_exact(c).zip(normal.chunks_exact(c)) {
            for k in 0..c {
                by_scale[k] = g[k].mul_add(n[k], by_scale[k]);
                by_shift[k] += g[k];
            }
        }
        // What the size of the group takes away.
        let mut along: Vec<f32> = by_scale.iter().zip(scale).map(|(g, s)| g * s).collect();
        self.shared(&mut along, |sum| sum / size);
        let along = &along[..c];
        for (g, n) in gradient.chunks_exact_mut(c).zip(normal.chunks_exact(c)) {
            for k in 0..c {
                g[k] = (g[k] * scale[k] - n[k] * along[k]) * inverse[k];
            }
        }
    }
}

/// tanh(scale·v + shift) by channel.
#[inline(always)]
pub(super) fn bent(normal: &[f32], scale: &[f32], shift: &[f32], out: &mut [f32]) {
    let c = scale.len();
    let shift = &shift[..c];
    for (out, normal) in out.chunks_exact_mut(c).zip(normal.chunks_exact(c)) {
        for k in 0..c {
            out[k] = tanh(normal[k].mul_add(scale[k], shift[k]));
        }
    }
}

/// tanh to six digits, without a branch: a ratio of polynomials (that of the Eigen library), the same bits everywhere.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    const ODD: [f32; 7] = [
        -2.760_768_5e-16,
        2.000_188e-13,
        -8.604_672e-11,
        5.122_297e-8,
        1.485_722_4e-5,
        6.372_619e-4,
        4.893_524_6e-3,
    ];
    const EVEN: [f32; 4] = [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3];
    // Beyond, the nearest number to tanh is 1. A NaN stays one.
    let x = x.clamp(-7.905_311, 7.905_311);
    let square = x * x;
    let along = |terms: &[f32]| terms.iter().fold(0.0_f32, |sum, t| sum.mul_add(square, *t));
    x * along(&ODD) / along(&EVEN)
}

/// Means of 2x2 pixels.
#[inline(always)]
pub(super) fn pool(values: &[f32], (side, channels): (usize, usize), out: &mut [f32]) {
    let half = side / 2;
    let line = side * channels;
    for (y, out) in out.chunks_exact_mut(half * channels).enumerate() {
        let (above, below) = values[2 * y * line..][..2 * line].split_at(line);
        for (x, out) in out.chunks_exact_mut(channels).enumerate() {
            let (above, below) = (
                &above[2 * x * channels..][..2 * channels],
                &below[2 * x * channels..][..2 * channels],
            );
            for k in 0..channels {
                out[k] =
                    0.25 * ((above[k] + above[k + channels]) + (below[k] + below[k + channels]));
            }
        }
    }
}

/// The gradient before tanh, from that by the means behind it and from what tanh gave.
#[inline(always)]
pub(super) fn unpool(
    by_means: &[f32],
    (side, channels): (usize, usize),
    bent: &[f32],
    out: &mut [f32],
) {
    let line = side * channels;
    for (y, (out, bent)) in out.chunks_exact_mut(line).zip(bent.chunks_exact(line)).enumerate() {
        let means = &by_means[y / 2 * (line / 2)..][..line / 2];
        let pairs = out.chunks_exact_mut(2 * channels).zip(bent.chunks_exact(2 * channels));
        for ((out, bent), mean) in pairs.zip(means.chunks_exact(channels)) {
            for k in 0..channels {
                let g = 0.25 * mean[k];
                out[k] = g * (1.0 - bent[k] * bent[k]);
                out[k + channels] = g * (1.0 - bent[k + channels] * bent[k + channels]);
            }
        }
    }
}
