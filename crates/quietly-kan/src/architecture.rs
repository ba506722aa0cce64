//! The architecture of a network: public, independent of data.
use serde::{Deserialize, Serialize};

pub use quietly_engine::splines::Input;
use quietly_engine::{
    error::Error,
    splines::{Basis, MAX_DEGREE},
};

/// The most trainable weights: their sum takes 8 bytes each, and noise is drawn for each.
const MOST_WEIGHTS: usize = 1 << 25;
/// The most inputs of any layer.
const MOST_INPUTS: usize = 1 << 16;
/// The most units of a hidden layer, and the most classes.
const MOST_UNITS: usize = 1 << 12;
/// The most spline functions per input: the number of an interval is a byte.
const MOST_FUNCTIONS: usize = 256;

/// What is minimised, and with it how many scores the network has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkLoss {
    /// Two classes, labelled +1 and -1: log(1 + exp(-y f)).
    Logistic,
    /// Several classes, labelled 0, 1, …: a score for each.
    Softmax {
        /// How many classes there are.
        classes: usize,
    },
    /// A number within [-1, 1]: half the squared error up to `width`, linear beyond.
    Huber {
        /// The greatest residual.
        width: f64,
    },
}

impl NetworkLoss {
    /// How many scores a row has.
    pub fn outputs(&self) -> usize {
        match self {
            NetworkLoss::Softmax { classes } => *classes,
            NetworkLoss::Logistic | NetworkLoss::Huber { .. } => 1,
        }
    }

    /// The norm of the derivative by the scores is never more.
    pub(super) fn steepest(&self) -> f64 {
        match self {
            NetworkLoss::Logistic => 1.0,
            NetworkLoss::Softmax { .. } => std::f64::consts::SQRT_2,
            NetworkLoss::Huber { width } => *width,
        }
    }
}

/// Whether the last layer learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastLayer {
    /// Drawn once and public, as published.
    Fixed,
    /// Trained with the others. The published theory does not cover it.
    Trainable,
}

/// A network's inputs, layers, splines and loss.
///
/// ```
/// use quietly_kan::{Input, LastLayer, NetworkLoss, NetworkShape};
///
/// let shape = NetworkShape::new(vec![Input::Spline; 10], NetworkLoss::Logistic);
/// shape.check()?;
/// assert_eq!((shape.hidden.as_slice(), shape.basis, shape.degree), ([64].as_slice(), 6, 3));
/// assert_eq!(shape.weights(), 10 * 6 * 64);
/// # Ok::<(), quietly_engine::error::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkShape {
    /// The inputs, in the order of the columns.
    pub inputs: Vec<Input>,
    /// The units of every hidden layer, from the inputs on: one or more layers.
    pub hidden: Vec<usize>,
    /// How many spline functions an input has: the degree and one more for every interval.
    pub basis: usize,
    /// The degree of the splines.
    pub degree: usize,
    /// What is minimised.
    pub loss: NetworkLoss,
    /// Whether the last layer learns.
    pub last: LastLayer,
}

impl NetworkShape {
    /// One hidden layer of 64 units, cubic splines on 3 intervals, the last layer fixed; for several classes 128 units and 2
    /// intervals.
    pub fn new(inputs: Vec<Input>, loss: NetworkLoss) -> Self {
        let (units, basis) = if loss.outputs() > 1 { (128, 5) } else { (64, 6) };
        Self { inputs, hidden: vec![units], basis, degree: 3, loss, last: LastLayer::Fixed }
    }

    /// Whether such a network can be made.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] or [`Error::TooLarge`], with what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let within = |n: usize, most: usize| (1..=most).contains(&n);
        let inputs = self.inputs.len();
        Error::ensure(within(inputs, MOST_INPUTS), "inputs", "from 1 to 65536", inputs)?;
        let hidden = "at least one layer, of 1 to 4096 units each";
        let good = !self.hidden.is_empty() && self.hidden.iter().all(|m| within(*m, MOST_UNITS));
        Error::ensure(good, "hidden_layer_sizes", hidden, format!("{:?}", self.hidden))?;
        Error::ensure(
            within(self.degree, MAX_DEGREE),
            "spline_degree",
            "from 1 to 5",
            self.degree,
        )?;
        let good = self.basis > self.degree && self.basis <= MOST_FUNCTIONS;
        Error::ensure(good, "spline_basis", "more than the degree and at most 256", self.basis)?;
        match self.loss {
            NetworkLoss::Logistic => {}
            NetworkLoss::Softmax { classes } => {
                let good = (2..=MOST_UNITS).contains(&classes);
                Error::ensure(good, "classes", "from 2 to 4096", classes)?;
            }
            NetworkLoss::Huber { width } => {
                let good = (1e-6..=1e6).contains(&width);
                Error::ensure(good, "width", "from 1e-6 to 1e6", width)?;
            }
        }
        let all: usize = self.layers().iter().map(|layer| layer.rows * layer.outputs).sum();
        if all > MOST_WEIGHTS {
            return Err(Error::TooLarge {
                what: "the network",
                needed: format!("{all} weights"),
                instead: "take fewer units, a smaller basis or fewer inputs: 2^25 weights is the limit",
            });
        }
        Ok(())
    }

    /// D: how many weights are trained.
    pub fn weights(&self) -> usize {
        self.layers().iter().filter(|l| l.trainable).map(|l| l.rows * l.outputs).sum()
    }

    pub(super) fn basis(&self) -> Basis {
        Basis::new(self.basis, self.degree)
    }

    /// The layers in order; trainable weights lie one layer after the other.
    pub(super) fn layers(&self) -> Vec<LayerShape> {
        let mut layers = vec![];
        let mut inputs = self.inputs.len();
        let plain = self.inputs.iter().filter(|input| **input == Input::Plain).count();
        let mut rows = (inputs - plain) * self.basis + plain;
        let mut offset = 0;
        for outputs in &self.hidden {
            layers.push(LayerShape { inputs, rows, outputs: *outputs, offset, trainable: true });
            offset += rows * outputs;
            (inputs, rows) = (*outputs, outputs * self.basis);
        }
        let trainable = self.last == LastLayer::Trainable;
        layers.push(LayerShape { inputs, rows, outputs: self.loss.outputs(), offset, trainable });
        layers
    }
}

/// One layer: weights [input][function][output].
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerShape {
    pub(super) inputs: usize,
    /// How many functions all inputs have together.
    pub(super) rows: usize,
    pub(super) outputs: usize,
    /// Where its weights start among the trainable ones.
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference in tests looks weights up"))]
    pub(super) offset: usize,
    pub(super) trainable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> NetworkShape {
        let inputs = vec![Input::Plain, Input::Spline, Input::Spline, Input::Plain];
        let loss = NetworkLoss::Softmax { classes: 3 };
        NetworkShape { basis: 8, ..NetworkShape::new(inputs, loss) }
    }

    #[test]
    fn weights_are_counted_layer_by_layer() {
        let mut shape = mixed();
        shape.hidden = vec![7, 5];
        assert_eq!(shape.weights(), (2 * 8 + 2) * 7 + 7 * 8 * 5);
        shape.last = LastLayer::Trainable;
        assert_eq!(shape.weights(), (2 * 8 + 2) * 7 + 7 * 8 * 5 + 5 * 8 * 3);
        let offsets: Vec<usize> = shape.layers().iter().map(|l| l.offset).collect();
        assert_eq!(offsets, [0, 126, 126 + 280]);
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        assert!(mixed().check().is_ok());
        let refused = |change: fn(&mut NetworkShape), word: &str| {
            let mut shape = mixed();
            change(&mut shape);
            let error = shape.check().expect_err(word).to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(|s| s.inputs.clear(), "inputs");
        refused(|s| s.hidden.clear(), "hidden_layer_sizes");
        refused(|s| s.hidden = vec![3, 0], "hidden_layer_sizes");
        refused(|s| s.basis = 3, "spline_basis");
        refused(|s| s.basis = 257, "spline_basis");
        refused(|s| s.degree = 0, "spline_degree");
        refused(|s| s.degree = 6, "spline_degree");
        refused(|s| s.loss = NetworkLoss::Softmax { classes: 1 }, "classes");
        refused(|s| s.loss = NetworkLoss::Huber { width: f64::NAN }, "width");
        refused(|s| s.hidden = vec![4096, 4096], "weights");
    }

    #[test]
    fn a_shape_is_read_as_it_was_written() {
        let shape = mixed();
        let text = serde_json::to_string(&shape).unwrap();
        assert!(text.contains("\"plain\"") && text.contains("\"softmax\""), "{text}");
        assert_eq!(serde_json::from_str::<NetworkShape>(&text).unwrap(), shape);
    }
}
