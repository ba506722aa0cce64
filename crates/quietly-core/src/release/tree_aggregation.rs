//! Tree aggregation: prefix sums released by the nodes of a binary tree.
//!
//! # Proof: tree aggregation
//!
//! *Statement.* Step t adds a leaf; the sum of all leaves so far is a function of what was released. If a unit is in one leaf
//! and adds at most the bound of that leaf, all releases of T steps together are 1/m-GDP for a unit that is there or not.
//!
//! *Conditions.* The plan has Gaussian noise of multiplier √D·m, D = ⌊log₂ T⌋ + 1 ([`depth`]). All leaves are on one
//! lattice.
//!
//! *Steps.*
//!
//! 1. Leaves are merged as a binary counter carries: after step t the stored nodes are the ones in t + 1, and their noisy
//!    sums add up to the prefix. Only nodes that close are released, one in each step; a unit lies in one leaf and so in
//!    at most D of them, one for each level.
//! 2. A node's noise is √D·m times the largest bound of its leaves, known when it closes. Given what was released before,
//!    each node is 1/(m√D)-GDP, and D of them compose to 1/m-GDP. Units of other leaves are not charged.
//! 3. Exact sums of nodes stay private and are dropped when they are merged.
//!
//! *Not covered.* A run that is resumed: open nodes are private and in no checkpoint.
use quietly_private::Private;

use super::{BoundedSum, Released, Releaser, Sensitivity};
use crate::error::Error;

/// In how many nodes a unit can be.
pub fn depth(steps: u64) -> u64 {
    u64::from(steps.max(1).ilog2()) + 1
}

/// The nodes of the counter, by level.
#[derive(Default)]
pub(super) struct TreeAggregation {
    levels: Vec<Option<Node>>,
    /// The last prefix.
    prefix: Vec<f64>,
}

struct Node {
    sum: Private<Vec<i64>>,
    noisy: Vec<f64>,
    bound: f64,
}

impl TreeAggregation {
    /// Adds a leaf; returns what it adds to the noisy sum of all leaves, and that sum.
    pub(super) fn add(
        &mut self,
        releaser: &mut Releaser,
        purpose: &str,
        leaf: BoundedSum,
    ) -> Result<Released, Error> {
        let BoundedSum { values: mut sum, sensitivity } = leaf;
        let mut bound = sensitivity.bound;
        let mut level = 0;
        while let Some(node) = self.levels.get_mut(level).and_then(Option::take) {
            let both = |(mut a, b): (Vec<i64>, Vec<i64>)| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a = a.saturating_add(b));
                a
            };
            (sum, bound) = (sum.zip(node.sum).map(both), bound.max(node.bound));
            level += 1;
        }
        let (kept, released) = sum.map(|sum| (sum.clone(), sum)).split();
        let sensitivity = Sensitivity { bound, ..sensitivity };
        let (noisy, std) = releaser.sum(purpose, BoundedSum::new(released, sensitivity))?;
        self.levels.resize_with(self.levels.len().max(level + 1), || None);
        self.levels[level] = Some(Node { sum: kept, noisy, bound });
        let mut prefix = Vec::new();
        for node in self.levels.iter().flatten() {
            prefix.resize(node.noisy.len(), 0.0);
            prefix.iter_mut().zip(&node.noisy).for_each(|(p, x)| *p += x);
        }
        self.prefix.resize(prefix.len(), 0.0);
        let values = prefix.iter().zip(&self.prefix).map(|(now, last)| now - last).collect();
        self.prefix.clone_from(&prefix);
        Ok(Released { values, std, prefix: Some(prefix) })
    }
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;
    use crate::mechanism::{PlannedRelease, Stage};

    /// Every prefix is the sum of its leaves, up to noise, and each step has what it adds; each release is counted, and no row is in
    /// more nodes than it is charged for.
    #[test]
    fn prefixes_add_up_and_rows_are_in_few_nodes() {
        for steps in [1_u64, 2, 3, 7, 8, 15, 31, 33] {
            let mut charge = PlannedRelease::sum("gradient", 0.5);
            charge.times = depth(steps);
            let stage = Stage::new("steps", steps, vec![charge]);
            let mut releaser = Releaser::new(Key::from_seed(1), &[stage], 1);
            releaser.aggregate_by_tree("gradient");
            let mut inside = vec![0_u64; steps as usize];
            for t in 0..steps {
                let leaf = 1_000_000_i64 << (t % 5);
                let sum = BoundedSum::new(Private::new(vec![leaf]), Sensitivity::l2(1.0, 1.0));
                let released = releaser.release("gradient", sum).unwrap();
                let exact: f64 = (0..=t).map(|t| (1_000_000_i64 << (t % 5)) as f64).sum();
                assert!((released.prefix.unwrap()[0] - exact).abs() < 100.0, "{steps} {t}");
                assert!((released.values[0] - leaf as f64).abs() < 100.0, "{steps} {t}");
                // The node that closed covers as many leaves as the lowest bit of t + 1 says.
                let covers = 1 << (t + 1).trailing_zeros();
                inside[(t + 1 - covers) as usize..=t as usize].iter_mut().for_each(|n| *n += 1);
            }
            assert_eq!(inside.iter().copied().max(), Some(depth(steps)), "{steps}");
        }
    }
}
