//! Prefix sums by the binary tree, in strategy form: the sums go in, noisy nodes come out.
//!
//! Dwork, Naor, Pitassi and Rothblum, *Differential privacy under continual observation*, STOC
//! 2010, and Chan, Shi and Song, *Private and continual release of statistics*, 2011. Step t = 0,
//! 1, … closes one node: the sum of the last 2^l steps, 2^l the largest power of two that divides
//! t + 1. Nodes of lower level that end at t are not needed for any prefix and get no noise. As a
//! matrix, V = CX + round(sZ) with C of zeros and ones; X is an integer, so V = round(CX + sZ), a
//! function of the ideal mechanism. A step lies in at most [`Tree::depth`] nodes.
//!
//! The prefix sum up to t is the sum of the popcount(t + 1) nodes that tile it: [`Prefix`], from
//! released values alone.
use std::fmt;

use zeroize::Zeroizing;

use crate::{error::Error, fill::LIMIT, key::Stream, layout::STEPS, normal::RoundedNormal};

/// The tree mechanism: secret sums in, noisy node sums out. The secret state has no getter.
///
/// ```
/// use quietly_noise::{Key, Prefix, Tree};
///
/// let stream = Key::from_seed(1).stream("tree");
/// let (mut tree, mut prefix) = (Tree::new(stream, 2, 100)?, Prefix::new(2));
/// for _ in 0..100 {
///     let released = tree.release(&[7, -1], 10.0)?;
///     let estimate = prefix.next(&released); // near 7(t + 1), -(t + 1)
/// }
/// assert_eq!(tree.depth(), 7);
/// # Ok::<(), quietly_noise::Error>(())
/// ```
pub struct Tree {
    stream: Stream,
    width: usize,
    steps: u64,
    step: u64,
    /// The closed nodes that no larger one has swallowed, largest first.
    open: Vec<Node>,
}

struct Node {
    sum: Zeroizing<Vec<i64>>,
    /// The largest scale of the steps below.
    scale: f64,
}

impl Tree {
    /// A tree for at most `steps` sums of `width` coordinates. It owns its stream, so no noise is
    /// used twice.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] unless 1 ≤ `steps` ≤ 2⁶¹.
    pub fn new(stream: Stream, width: usize, steps: u64) -> Result<Self, Error> {
        Error::unless((1..=STEPS).contains(&steps), "steps", "from 1 to 2^61", steps)?;
        Ok(Self { stream, width, steps, step: 0, open: Vec::new() })
    }

    /// How many nodes a step can lie in: ⌊log2 steps⌋ + 1.
    pub fn depth(&self) -> u32 {
        self.steps.ilog2() + 1
    }

    /// Takes the sum of the next step and returns the node it closes, with noise.
    ///
    /// `scale` is the noise this step asks for; a node has the largest scale of its steps. Sums
    /// of nodes stop at ±2⁶², which no promise-keeping data reaches and which brings no two sums
    /// further apart.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if the scale is not from 1/4 to 2⁴⁵ or all steps are done, or as
    /// [`RoundedNormal::fill`]. Nothing has changed then.
    ///
    /// # Panics
    ///
    /// If `sum` is not `width` long, which is a bug in the caller.
    pub fn release(&mut self, sum: &[i64], scale: f64) -> Result<Vec<i64>, Error> {
        assert_eq!(sum.len(), self.width, "width of the sum");
        Error::unless(self.step < self.steps, "step", "below the tree's steps", self.step)?;
        RoundedNormal::new(scale)?;
        let mut node = Node { sum: Zeroizing::new(sum.to_vec()), scale };
        node.sum.iter_mut().for_each(|x| *x = (*x).clamp(-LIMIT, LIMIT));
        let merged = (self.step + 1).trailing_zeros() as usize;
        let left = self.open.len() - merged;
        for earlier in self.open[left..].iter().rev() {
            node.scale = node.scale.max(earlier.scale);
            for (x, y) in node.sum.iter_mut().zip(earlier.sum.iter()) {
                // Two numbers of size 2⁶² may just not fit: saturate, then cut as all sums are cut.
                *x = x.saturating_add(*y).clamp(-LIMIT, LIMIT);
            }
        }
        let mut released = node.sum.to_vec();
        RoundedNormal::new(node.scale)?.add(&self.stream, self.step, &mut released)?;
        self.open.truncate(left);
        self.open.push(node);
        self.step += 1;
        Ok(released)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("width", &self.width)
            .field("steps", &self.steps)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

/// Prefix sums from released nodes. Post-processing: it sees nothing secret.
#[derive(Clone, Debug)]
pub struct Prefix {
    width: usize,
    step: u64,
    open: Vec<Vec<i64>>,
}

impl Prefix {
    /// For nodes of `width` coordinates.
    pub fn new(width: usize) -> Self {
        Self { width, step: 0, open: Vec::new() }
    }

    /// Takes what [`Tree::release`] returned and gives the estimated sum of all steps so far.
    ///
    /// # Panics
    ///
    /// If `released` is not `width` long, which is a bug in the caller.
    pub fn next(&mut self, released: &[i64]) -> Vec<i128> {
        assert_eq!(released.len(), self.width, "width of the node");
        self.step += 1;
        let merged = self.step.trailing_zeros() as usize;
        self.open.truncate(self.open.len() - merged);
        self.open.push(released.to_vec());
        (0..self.width).map(|i| self.open.iter().map(|node| i128::from(node[i])).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn sums(step: u64) -> [i64; 3] {
        let s = step as i64;
        [s * s - 40, 1 << (s % 50), -3 * s]
    }

    /// Released nodes are CX + noise with C from its definition, and prefixes add up: the noise
    /// is taken off with the known seed, and what is left must be the true prefix sum.
    #[test]
    fn nodes_and_prefixes_are_what_the_matrix_says() {
        let key = Key::from_seed(4);
        let mut tree = Tree::new(key.stream("tree"), 3, 37).unwrap();
        let mut prefix = Prefix::new(3);
        let mut quiet = Prefix::new(3);
        // A larger scale at step 2 must reach every node above it.
        let scale = |t: u64| if t == 2 { 900.0 } else { 20.0 };
        let mut truth = [0i128; 3];
        for t in 0..37u64 {
            let released = tree.release(&sums(t), scale(t)).unwrap();
            let from = t + 1 - (1 << (t + 1).trailing_zeros());
            let largest = (from..=t).map(scale).fold(0.0, f64::max);
            let mut noise = [0; 3];
            RoundedNormal::new(largest).unwrap().fill(&key.stream("tree"), t, &mut noise).unwrap();
            let node: Vec<i64> = (0..3).map(|i| released[i] - noise[i]).collect();
            let want: Vec<i64> = (0..3).map(|i| (from..=t).map(|u| sums(u)[i]).sum()).collect();
            assert_eq!(node, want, "{t}");
            truth.iter_mut().zip(sums(t)).for_each(|(sum, x)| *sum += i128::from(x));
            assert_eq!(quiet.next(&node), truth);
            assert_ne!(prefix.next(&released), truth);
        }
        assert_eq!(tree.open.len() as u32, 37u64.count_ones());
        assert!(tree.release(&sums(0), 20.0).is_err());
    }

    #[test]
    fn extreme_sums_neither_panic_nor_wrap() {
        let mut tree = Tree::new(Key::from_seed(4).stream("tree"), 2, 4).unwrap();
        for _ in 0..4 {
            let node = tree.release(&[i64::MAX, i64::MIN], 2f64.powi(45)).unwrap();
            assert!(node[0] > 1 << 61 && node[1] < -1 << 61);
        }
    }

    #[test]
    fn the_secret_state_is_not_printed() {
        let mut tree = Tree::new(Key::from_seed(4).stream("tree"), 1, 4).unwrap();
        tree.release(&[123_456_789], 1.0).unwrap();
        assert_eq!(format!("{tree:?}"), "Tree { width: 1, steps: 4, step: 1, .. }");
        assert!(tree.release(&[1], f64::NAN).is_err());
        assert_eq!(tree.step, 1);
        assert!(Tree::new(Key::from_seed(4).stream("tree"), 1, 0).is_err());
    }
}
