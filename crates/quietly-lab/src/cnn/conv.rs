//! A convolution of 3x3 pixels, its answer and its gradients, for one picture.
//!
//! Pictures are lists of pixels, row by row, each with all of its channels. The three pixels that a row of the kernel sees are
//! then neighbours in memory, and every product is one of [`add_product`].
use super::matmul::{Into, Left, add_product};

/// How wide and high a kernel is.
const KERNEL: usize = 3;

/// A convolution: weights are in the order (row, column, channel in, channel out). There is no constant: a
/// [group norm](super::group_norm) follows, which has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Conv {
    /// The side of the picture that comes in.
    pub(super) side: usize,
    /// Channels in and out.
    pub(super) channels: (usize, usize),
    /// How many pixels apart the kernels are.
    pub(super) stride: usize,
    /// How many pixels of zeros are put around.
    pub(super) padding: usize,
}

impl Conv {
    /// The side of what comes in, with zeros around.
    pub(super) fn padded(&self) -> usize {
        self.side + 2 * self.padding
    }

    /// The side of what comes out.
    pub(super) fn out(&self) -> usize {
        (self.padded() - KERNEL) / self.stride + 1
    }

    pub(super) fn weights(&self) -> usize {
        KERNEL * KERNEL * self.channels.0 * self.channels.1
    }

    /// Writes a picture between zeros that are there already.
    #[inline(always)]
    pub(super) fn pad(&self, picture: &[f32], padded: &mut [f32]) {
        let line = self.side * self.channels.0;
        for (y, from) in picture.chunks_exact(line).enumerate() {
            padded[self.inside(y)..][..line].copy_from_slice(from);
        }
    }

    /// Where line y begins in a padded picture.
    fn inside(&self, y: usize) -> usize {
        ((y + self.padding) * self.padded() + self.padding) * self.channels.0
    }

    /// The answer, from a padded picture.
    #[inline(always)]
    pub(super) fn answer(&self, padded: &[f32], weights: &[f32], out: &mut [f32]) {
        let (ins, outs) = self.channels;
        let (line, side) = (self.padded() * ins, self.out());
        out.fill(0.0);
        for y in 0..side {
            let left = Left {
                start: y * self.stride * line,
                row: self.stride * ins,
                outer: (KERNEL, line),
                inner: (KERNEL * ins, 1),
            };
            let into = Into { start: y * side * outs, row: outs, rows: side };
            add_product((padded, left), (weights, outs), (&mut *out, into));
        }
    }

    /// The gradient by weights, from a padded picture and the gradient by the answer.
    #[inline(always)]
    pub(super) fn by_weights(&self, padded: &[f32], by_answer: &[f32], gradient: &mut [f32]) {
        let (ins, outs) = self.channels;
        let (line, side) = (self.padded() * ins, self.out());
        gradient.fill(0.0);
        for ky in 0..KERNEL {
            let left = Left {
                start: ky * line,
                row: 1,
                outer: (side, self.stride * line),
                inner: (side, self.stride * ins),
            };
            let rows = KERNEL * ins;
            let into = Into { start: ky * rows * outs, row: outs, rows };
            add_product((padded, left), (by_answer, outs), (&mut *gradient, into));
        }
    }

    /// Weights in the order (row, channel out, column, channel in), for [`by_picture`](Self::by_picture).
    pub(super) fn turned(&self, weights: &[f32], turned: &mut [f32]) {
        let (rows, outs) = (KERNEL * self.channels.0, self.channels.1);
        for ky in 0..KERNEL {
            let place = ky * rows * outs;
            for at in 0..rows * outs {
                turned[place + at] = weights[place + at % rows * outs + at / rows];
            }
        }
    }

    /// The gradient by the picture that came in, from [`turned`](Self::turned) weights. `padded` is room to work in.
    #[inline(always)]
    pub(super) fn by_picture(
        &self,
        turned: &[f32],
        by_answer: &[f32],
        padded: &mut [f32],
        picture: &mut [f32],
    ) {
        let (ins, outs) = self.channels;
        let (line, side, columns) = (self.padded() * ins, self.out(), KERNEL * ins);
        padded.fill(0.0);
        for y in 0..side {
            for ky in 0..KERNEL {
                let left =
                    Left { start: y * side * outs, row: outs, outer: (1, 0), inner: (outs, 1) };
                let start = (y * self.stride + ky) * line;
                let into = Into { start, row: self.stride * ins, rows: side };
                let right = &turned[ky * columns * outs..][..columns * outs];
                add_product((by_answer, left), (right, columns), (&mut *padded, into));
            }
        }
        let line = self.side * ins;
        for (y, to) in picture.chunks_exact_mut(line).enumerate() {
            to.copy_from_slice(&padded[self.inside(y)..][..line]);
        }
    }
}
