//! What is public about a table, checked before a fit is charged.
use quietly_data::{Encoding, Schema, Source};
use quietly_engine::{backend::spilled, error::Error};

use super::Plan;
use crate::any_algorithm::AnyAlgorithm;

impl Plan {
    /// Whether a fit of this table can fail only by what is in its rows, or by the machine: names and types of columns fit
    /// the schema, the target suits the model, and there is a place for the rows that one pass keeps on disk.
    ///
    /// All of that is public. To be called before anything is charged; no row is read.
    ///
    /// # Errors
    ///
    /// [`Error::Data`], [`Error::Parameter`] or [`Error::File`], as [`fit`](Self::fit) would fail with later.
    pub fn check_source(
        &self,
        source: &Source,
        encoding: &Encoding,
        schema: &Schema,
    ) -> Result<(), Error> {
        self.check_dense(source)?;
        self.target(encoding)?;
        source.check(encoding, Some(schema))?;
        match self.algorithm {
            AnyAlgorithm::OnePass(_) => spilled::probe(),
            _ => Ok(()),
        }
    }

    /// About how many bytes the file of a model will have, rather more than fewer: a function of what is public.
    pub fn model_bytes(&self, encoding: &Encoding) -> u64 {
        /// A number of 17 digits with sign, exponent, spaces and comma, twice.
        const NUMBER: u64 = 64;
        /// A certificate and its curve.
        const REST: u64 = 64 << 10;
        let length = |value: serde_json::Result<String>| value.map_or(0, |text| text.len() as u64);
        let classes = encoding.target().map_or(1, |target| target.class_count().max(1)) as u64;
        let linear = (self.width() as u64 + 1).saturating_mul(classes.saturating_add(2));
        let more = match &self.algorithm {
            AnyAlgorithm::Kan(training) => training.shape.weights() as u64,
            // Ranks of cells, and weights.
            AnyAlgorithm::Additive(additive) => {
                additive.linear.numbers.len() as u64 * 4097 + additive.most_features() as u64
            }
            _ => 0,
        };
        let numbers = linear.saturating_add(more).saturating_mul(NUMBER);
        let plan = length(serde_json::to_string_pretty(self));
        let columns = length(serde_json::to_string_pretty(encoding));
        numbers.saturating_add(2 * plan + 2 * columns + REST)
    }
}
