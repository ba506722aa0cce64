//! Rows as small integers, quantized once.
//!
//! A spline input is the number of its interval and o + 1 bytes, a plain input one byte; 255 is
//! one. The network is a function of these bytes: it learns and predicts with them, so that no
//! gradient is off because they are rounded. The scale is public; nothing is measured on the rows.
use quietly_engine::splines::{Basis, Locals};

use super::architecture::{Input, NetworkLoss, NetworkShape};

/// What stands for one.
pub(super) const ONE: f64 = 255.0;

/// Rows of a table in the form in which a network reads them.
pub struct QuantizedRows {
    splines: usize,
    active: usize,
    width: usize,
    bytes: Vec<u8>,
    squares: Vec<u64>,
    labels: Vec<f32>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// The interval of every spline input.
    pub(super) intervals: &'a [u8],
    /// The splines that are not zero there, input after input.
    pub(super) words: &'a [u8],
    /// The plain inputs.
    pub(super) plain: &'a [u8],
    /// The sum of the squares of all words.
    pub(super) squares: u64,
    /// +1 or -1, the number of a class, or a number within [-1, 1].
    pub(super) label: f32,
}

impl QuantizedRows {
    /// Rows of one number per input, one after the other, and a label for each.
    ///
    /// Numbers outside the range of an input count as its end. One that is missing (not a number)
    /// has no splines at all. A row without a label counts as nothing in a gradient.
    ///
    /// # Panics
    ///
    /// If there are not as many rows as labels, or 2³² rows.
    pub fn new(shape: &NetworkShape, features: &[f64], labels: &[f64]) -> Self {
        let inputs = shape.inputs.len();
        assert_eq!(features.len(), labels.len() * inputs, "a row for every label");
        assert!(u32::try_from(labels.len()).is_ok(), "fewer than 2^32 rows");
        let basis = shape.basis();
        let plain = shape.inputs.iter().filter(|input| **input == Input::Plain).count();
        let (splines, active) = (inputs - plain, basis.active());
        let width = splines * (1 + active) + plain;
        let mut bytes = Vec::with_capacity(width * labels.len());
        let mut squares = Vec::with_capacity(labels.len());
        for row in features.chunks_exact(inputs) {
            let start = bytes.len();
            let of = |kind| {
                row.iter().zip(&shape.inputs).filter(move |(_, k)| **k == kind).map(|(x, _)| *x)
            };
            bytes.extend(of(Input::Spline).map(|x| basis.locate(x).0 as u8));
            for x in of(Input::Spline) {
                bytes.extend_from_slice(&words(basis, x)[..active]);
            }
            // A clamp keeps what is not a number, and the cast makes zero of it.
            bytes.extend(of(Input::Plain).map(|x| (x.clamp(0.0, 1.0) * ONE + 0.5) as u8));
            squares.push(bytes[start + splines..].iter().map(|w| u64::from(*w).pow(2)).sum());
        }
        let labels = labels.iter().map(|y| label(shape.loss, *y)).collect();
        Self { splines, active, width, bytes, squares, labels }
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// The interval of one spline input of a row.
    #[inline(always)]
    pub(super) fn interval(&self, row: u32, input: usize) -> u8 {
        self.bytes[row as usize * self.width + input]
    }

    /// Its splines that are not zero.
    #[inline(always)]
    pub(super) fn words<const Q: usize>(&self, row: u32, input: usize) -> &[u8; Q] {
        let start = row as usize * self.width + self.splines + input * Q;
        self.bytes[start..].first_chunk().expect("splines of every input")
    }

    #[inline(always)]
    pub(super) fn row(&self, row: u32) -> Row<'_> {
        let row = row as usize;
        let bytes = &self.bytes[row * self.width..][..self.width];
        let (intervals, rest) = bytes.split_at(self.splines);
        let (words, plain) = rest.split_at(self.splines * self.active);
        Row { intervals, words, plain, squares: self.squares[row], label: self.labels[row] }
    }
}

/// The splines at x, 255 for one; none if x is missing.
fn words(basis: Basis, x: f64) -> [u8; size_of::<Locals>() / size_of::<f64>()] {
    basis.at(x).values.map(|b| (b * ONE + 0.5) as u8)
}

fn label(loss: NetworkLoss, y: f64) -> f32 {
    match loss {
        NetworkLoss::Logistic if y.is_nan() => f32::NAN,
        NetworkLoss::Logistic => {
            if y > 0.0 {
                1.0
            } else {
                -1.0
            }
        }
        NetworkLoss::Softmax { classes } => {
            let known = y >= 0.0 && y < classes as f64 && y.fract() == 0.0;
            if known { y as f32 } else { f32::NAN }
        }
        NetworkLoss::Huber { .. } => y.clamp(-1.0, 1.0) as f32,
    }
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    fn shape() -> NetworkShape {
        let inputs = vec![Input::Plain, Input::Spline, Input::Plain, Input::Spline];
        NetworkShape::new(inputs, NetworkLoss::Softmax { classes: 3 })
    }

    #[test]
    fn words_are_the_splines_rounded() {
        let (shape, basis) = (shape(), shape().basis());
        let mut random = Random(1);
        let features: Vec<f64> = (0..400).map(|_| random.number()).collect();
        let rows = QuantizedRows::new(&shape, &features, &[0.0; 100]);
        for (i, x) in features.chunks_exact(4).enumerate() {
            let row = rows.row(i as u32);
            for (j, x) in [x[1], x[3]].into_iter().enumerate() {
                let point = basis.at(x);
                assert_eq!(usize::from(row.intervals[j]), point.interval);
                for k in 0..4 {
                    let error = f64::from(row.words[4 * j + k]) / ONE - point.values[k];
                    assert!(error.abs() <= 0.5 / ONE + 1e-12);
                }
            }
            for (word, x) in row.plain.iter().zip([x[0], x[2]]) {
                assert!((f64::from(*word) / ONE - x.max(0.0)).abs() <= 0.5 / ONE + 1e-12);
            }
            let squares = row.words.iter().chain(row.plain).map(|w| u64::from(*w).pow(2));
            assert_eq!(row.squares, squares.sum::<u64>());
        }
    }

    #[test]
    fn no_value_can_do_more_than_the_ends() {
        let shape = shape();
        let one = |x: [f64; 4]| {
            let rows = QuantizedRows::new(&shape, &x, &[1.0]);
            let row = rows.row(0);
            (row.intervals.to_vec(), row.words.to_vec(), row.plain.to_vec())
        };
        let huge = one([9.0, 1e300, f64::NEG_INFINITY, f64::NEG_INFINITY]);
        assert_eq!(huge, one([1.0, 1.0, 0.0, -1.0]));
        let missing = one([f64::NAN; 4]);
        assert_eq!(missing, (vec![0; 2], vec![0; 8], vec![0; 2]));
        assert_ne!(huge, missing);
    }

    #[test]
    fn labels_that_mean_nothing_are_no_numbers() {
        let softmax = NetworkLoss::Softmax { classes: 3 };
        for y in [3.0, -1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(label(softmax, y).is_nan());
        }
        assert_eq!(label(softmax, 2.0), 2.0);
        assert!(label(NetworkLoss::Logistic, f64::NAN).is_nan());
        assert_eq!([0.0, 1.0, -1.0].map(|y| label(NetworkLoss::Logistic, y)), [-1.0, 1.0, -1.0]);
        assert_eq!(label(NetworkLoss::Huber { width: 1.0 }, 7.0), 1.0);
    }
}
