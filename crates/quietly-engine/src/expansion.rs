//! Many features from few, so that a model of weighted sums can bend: the convex twin of networks.
//!
//! An expansion is a map of one row, fixed before any data is read. Whatever it does, one row stays one row, every expanded
//! feature is brought into [-1, 1], and methods bound the expanded rows themselves: privacy hangs on nothing here.
use std::collections::HashSet;

use quietly_data::{Encoding, Kind};
use serde::{Deserialize, Serialize};

use crate::{
    error::Error,
    splines::{Basis, Input, MAX_DEGREE},
};

pub use self::rows::{CachedExpander, Expander};

mod rows;

/// The most numbers that are drawn for waves: 8 bytes each.
const MOST_DRAWS: usize = 1 << 25;
/// The most spline functions of a feature.
const MOST_FUNCTIONS: usize = 256;
/// The most waves.
const MOST_WAVES: usize = 1 << 16;

/// What is made of the features of a row. Public; none of it depends on data.
///
/// ```
/// use quietly_data::{Encoding, Schema};
/// use quietly_engine::expansion::Expansion;
///
/// let schema = "rows = 5000\n[columns]\nage = { range = [0, 100] }\nsick = { values = [0, 1] }";
/// let columns = ["age", "sick"].map(String::from);
/// let encoding = Encoding::new(&Schema::parse(schema)?, &columns, None, Some("sick"))?;
///
/// let splines = Expansion::splines(&encoding, 6);
/// assert_eq!((splines.inputs(), splines.width()), (1, 6));
/// # Ok::<(), quietly_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Expansion {
    /// Every number becomes B-splines on uniform knots, everything else stays: sums of functions of one feature each.
    Splines {
        /// The features, in order.
        inputs: Vec<Input>,
        /// How many functions a number becomes.
        functions: usize,
        /// The degree of the splines.
        degree: usize,
    },
    /// √(2/D)·cos(⟨w, x⟩ + b) for D random w and b: Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*, NIPS
    /// 2007. Their inner products are near exp(-‖x - x'‖²/(2·width²)).
    #[serde(rename = "fourier")]
    RandomFourier {
        /// How many features there are.
        inputs: usize,
        /// D.
        count: usize,
        /// How far apart rows must be to look different: w is drawn from N(0, 1/width²).
        width: f64,
        /// The public seed of w and b.
        seed: u64,
    },
}

impl Expansion {
    /// So many cubic splines for every number of an encoding; categories stay as they are.
    pub fn splines(encoding: &Encoding, functions: usize) -> Self {
        let input = |kind: &Kind| match kind {
            Kind::Number { .. } => Input::Spline,
            _ => Input::Plain,
        };
        let inputs = encoding.features().iter().map(|f| input(&f.kind)).collect();
        Expansion::Splines { inputs, functions, degree: 3 }
    }

    /// So many waves, each of all features of an encoding, as wide as half of the longest row.
    pub fn waves(encoding: &Encoding, count: usize) -> Self {
        let width = WAVE_WIDTH * longest(encoding, 1.0);
        Expansion::RandomFourier { inputs: encoding.width(), count, width, seed: 0 }
    }

    /// Its keyword.
    pub fn name(&self) -> &'static str {
        match self {
            Expansion::Splines { .. } => "splines",
            Expansion::RandomFourier { .. } => "fourier",
        }
    }

    /// How many features a row has before.
    pub fn inputs(&self) -> usize {
        match self {
            Expansion::Splines { inputs, .. } => inputs.len(),
            Expansion::RandomFourier { inputs, .. } => *inputs,
        }
    }

    /// How many features a row has after.
    pub fn width(&self) -> usize {
        match self {
            Expansion::Splines { inputs, functions, .. } => inputs
                .iter()
                .map(|input| if *input == Input::Spline { *functions } else { 1 })
                .sum(),
            Expansion::RandomFourier { count, .. } => *count,
        }
    }

    /// What no expanded row exceeds in norm, of rows of this encoding.
    ///
    /// Splines: those of one number are never negative and have squares that add up to at most ½ for cubics
    /// (`Basis::square_range`), and a category is one 1 at most. RandomFourier: D squares of at most 2/D each.
    pub fn longest(&self, encoding: &Encoding) -> f64 {
        match self {
            Expansion::Splines { functions, degree, .. } => {
                longest(encoding, Basis::new(*functions, *degree).square_range().1)
            }
            Expansion::RandomFourier { .. } => std::f64::consts::SQRT_2,
        }
    }

    /// Names for the features after, from those before: `age #1`, `age #2`, …, or `wave #1` and so on.
    ///
    /// # Panics
    ///
    /// If there are not as many names as features before.
    pub fn names(&self, names: &[String]) -> Vec<String> {
        assert_eq!(names.len(), self.inputs(), "a name for every feature");
        let numbered = |name: &str, count: usize| -> Vec<String> {
            (1..=count).map(|k| format!("{name} #{k}")).collect()
        };
        match self {
            Expansion::Splines { inputs, functions, .. } => {
                let each = names.iter().zip(inputs);
                each.flat_map(|(name, input)| match input {
                    Input::Spline => numbered(name, *functions),
                    Input::Plain => vec![name.clone()],
                })
                .collect()
            }
            Expansion::RandomFourier { count, .. } => numbered("wave", *count),
        }
    }

    /// What it makes of public rows, row after row: what the weights of [`Plan::fit`] go with.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    ///
    /// # Panics
    ///
    /// If the features are not whole rows.
    pub fn rows(&self, features: &[f64]) -> Result<Vec<f64>, Error> {
        let expander = Expander::new(self)?;
        assert_eq!(features.len() % self.inputs(), 0, "whole rows");
        Ok(features.chunks_exact(self.inputs()).flat_map(|row| expander.apply(row)).collect())
    }

    /// Whether there is such an expansion.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] with what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Expansion::Splines { inputs, functions, degree } => {
                Error::ensure(!inputs.is_empty(), "features of splines", "at least 1", 0)?;
                let fine = (1..=MAX_DEGREE).contains(degree);
                Error::ensure(fine, "degree of splines", "from 1 to 5", degree)?;
                let fine = functions > degree && *functions <= MOST_FUNCTIONS;
                let want = "more than their degree and at most 256 for each number";
                Error::ensure(fine, "splines", want, functions)
            }
            Expansion::RandomFourier { inputs, count, width, .. } => {
                Error::ensure(*inputs > 0, "features of fourier", "at least 1", inputs)?;
                let fine = (2..=MOST_WAVES).contains(count);
                Error::ensure(fine, "fourier", "from 2 to 65536", count)?;
                let fine = inputs.saturating_mul(*count) <= MOST_DRAWS;
                Error::ensure(fine, "fourier", "at most 2^25 over the number of features", count)?;
                let fine = *width >= 1e-6 && *width <= 1e6;
                Error::ensure(fine, "width of fourier", "from 1e-6 to 1e6", width)
            }
        }
    }
}

/// The default width of waves, over the longest row.
const WAVE_WIDTH: f64 = 0.5;

/// What no row exceeds in norm if a number adds `square` to the square of it: a category adds one 1 at most, in however many
/// features.
fn longest(encoding: &Encoding, square: f64) -> f64 {
    let (mut numbers, mut categories) = (0, HashSet::new());
    for feature in encoding.features() {
        match feature.kind {
            Kind::Number { .. } => numbers += 1,
            _ => _ = categories.insert(&feature.column),
        }
    }
    (f64::from(numbers) * square + categories.len() as f64).sqrt()
}
