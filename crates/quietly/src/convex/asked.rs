//! What the sums of a convex method are asked of rows, wherever they are.
use quietly_data::Table;
use serde::{Deserialize, Serialize};

use super::{
    coins::Coins,
    examples::{Examples, Features, Shape},
    program::Program,
    run::target,
};
use crate::{counts::tally, lattice::Lattice, pass::Grid};

/// A question about the rows of a convex problem: all of it is public, but for coins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) program: Program,
    /// Features, without the constant.
    pub(crate) width: usize,
    /// The public range of the target.
    pub(crate) range: (f64, f64),
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum What {
    /// How many rows are not null records.
    Rows,
    /// How many norms of rows lie between these.
    Norms(Vec<f64>),
    /// Σ of gradients at these weights, of rows held to `radius`, each held to `clip`: of all, or of those that coins choose.
    Gradients { weights: Vec<f64>, radius: f64, clip: f64, coins: Option<Coins> },
}

impl Asked {
    pub(crate) fn length(&self) -> usize {
        match &self.what {
            What::Rows => 1,
            What::Norms(radii) => radii.len() + 1,
            What::Gradients { weights, .. } => weights.len(),
        }
    }

    /// Sums and counts, of records that come after so many others.
    ///
    /// # Panics
    ///
    /// If gradients have no bound: plans were checked for that.
    pub(crate) fn of(&self, table: &Table, place: u64, threads: usize) -> (Vec<i64>, Vec<u64>) {
        let Asked { program, width, range, what } = self;
        let Program { constant, l1, longest, loss, .. } = *program;
        let shape = Shape { width: *width, constant, l1, radius: longest };
        let targets: Vec<f64> = table.target().iter().map(|&y| target(loss, y, *range)).collect();
        let features = Features::Dense(table.features());
        match what {
            What::Rows => (vec![], vec![targets.iter().filter(|y| !y.is_nan()).count() as u64]),
            What::Norms(radii) => {
                let examples = Examples::new(shape, features, targets, threads);
                let grid = Grid::new(radii.clone());
                (vec![], tally(examples.measures(), grid.bins(), |m| grid.bin(m.norm), threads))
            }
            What::Gradients { weights, radius, clip, coins } => {
                let shape = Shape { radius: *radius, ..shape };
                let examples = Examples::for_one_pass(shape, features, targets, threads)
                    .without(table.nulls().to_vec());
                let chosen = coins
                    .as_ref()
                    .map(|coins| examples.at_places(&coins.places(place, examples.records())));
                let glm = program.slopes(*width, *radius).expect("a plan that was checked");
                let lattice = Lattice::for_sums(*clip, weights.len());
                (examples.clipped(glm, weights, &lattice, chosen.as_deref()), vec![])
            }
        }
    }
}
