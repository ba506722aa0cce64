//! Prefix sums released by the nodes of a binary tree.
//!
//! Step t adds a leaf. Leaves are merged as a binary counter carries: after step t the stored nodes are the ones in
//! t + 1, and their noisy sums add up to the prefix. Only nodes that close are released, one in each step; a row lies in
//! one leaf and in at most D = ⌊log2 T⌋ + 1 of them.
//!
//! *Privacy.* A node's noise is √D·m times the largest bound of its leaves, known when it closes. Given what was released
//! before, each node is 1/(m√D)-GDP for a row that is there or not, and D of them are 1/m-GDP; rows in other leaves do
//! not pay. True sums of nodes stay private and are dropped when merged.
use quietly_data::Private;

use crate::{
    error::Error,
    release::{Door, LatticeSum},
};

/// In how many nodes a row can be.
pub(crate) fn depth(steps: u64) -> u64 {
    u64::from(steps.max(1).ilog2()) + 1
}

/// The nodes of the counter, by level.
#[derive(Default)]
pub(crate) struct Tree {
    levels: Vec<Option<Node>>,
}

struct Node {
    sum: Private<Vec<i64>>,
    noisy: Vec<f64>,
    bound: f64,
}

impl Tree {
    /// Adds a leaf whose rows measure at most `bound`; returns the noisy sum of all leaves so far.
    ///
    /// All leaves must be on one lattice, whose unit is `unit`.
    pub(crate) fn add(
        &mut self,
        door: &mut Door,
        purpose: &str,
        mut sum: Private<Vec<i64>>,
        mut bound: f64,
        unit: f64,
    ) -> Result<Vec<f64>, Error> {
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
        let (noisy, _) = door.sum(purpose, LatticeSum { sum: released, bound, unit })?;
        self.levels.resize_with(self.levels.len().max(level + 1), || None);
        self.levels[level] = Some(Node { sum: kept, noisy, bound });
        let mut prefix = Vec::new();
        for node in self.levels.iter().flatten() {
            prefix.resize(node.noisy.len(), 0.0);
            prefix.iter_mut().zip(&node.noisy).for_each(|(p, x)| *p += x);
        }
        Ok(prefix)
    }
}

#[cfg(test)]
mod tests {
    use quietly_noise::Key;

    use super::*;
    use crate::{
        charge::{Charge, Stage},
        recipes::GRADIENT,
    };

    /// Every prefix is the sum of its leaves, up to noise; each release is counted, and no row is in more nodes than
    /// it is charged for.
    #[test]
    fn prefixes_add_up_and_rows_are_in_few_nodes() {
        for steps in [1_u64, 2, 3, 7, 8, 15, 31, 33] {
            let mut charge = Charge::sum(GRADIENT, 0.5);
            charge.times = depth(steps);
            let stage = Stage::new("steps", steps, vec![charge]);
            let mut door = Door::new(Key::from_seed(1), &[stage], 1);
            let mut tree = Tree::default();
            let mut inside = vec![0_u64; steps as usize];
            for t in 0..steps {
                let leaf = 1_000_000_i64 << (t % 5);
                let prefix =
                    tree.add(&mut door, GRADIENT, Private::new(vec![leaf]), 1.0, 1.0).unwrap();
                let exact: f64 = (0..=t).map(|t| (1_000_000_i64 << (t % 5)) as f64).sum();
                assert!((prefix[0] - exact).abs() < 100.0, "{steps} {t}");
                // The node that closed covers as many leaves as the lowest bit of t + 1 says.
                let covers = 1 << (t + 1).trailing_zeros();
                inside[(t + 1 - covers) as usize..=t as usize].iter_mut().for_each(|n| *n += 1);
            }
            assert_eq!(inside.iter().copied().max(), Some(depth(steps)), "{steps}");
        }
    }
}
