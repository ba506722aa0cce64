//! From the noisy counts of a tree to the mass of its cells.
//!
//! Hay, Rastogi, Miklau and Suciu, *Boosting the Accuracy of Differentially Private Histograms Through Consistency*, VLDB
//! 2010: of all trees whose counts add up, the one nearest to the released counts.
use crate::query::column_tree::{BRANCHES, CELLS, LEVELS, NODES};

/// Counts below so many standard deviations of the noise are taken for none.
const SEEN: f64 = 1.5;

/// The mass of every cell: none is negative, and all add up to one.
pub(super) fn cells(counts: &[f64], sd: f64) -> Vec<f64> {
    assert_eq!(counts.len(), NODES, "a count for every interval of a tree");
    let (first, rest) = counts.split_at(BRANCHES);
    let (second, third) = rest.split_at(BRANCHES * BRANCHES);
    let mut levels = [first.to_vec(), second.to_vec(), third.to_vec()];
    make_consistent(&mut levels);
    // Rounding is no row.
    let least = (SEEN * sd).max(1e-6);
    let mut mass = kept(&levels[0], least, 1.0);
    for level in &levels[1..] {
        let children = mass.iter().zip(level.chunks_exact(BRANCHES));
        mass = children.flat_map(|(mass, counts)| kept(counts, least, *mass)).collect();
    }
    debug_assert_eq!(mass.len(), CELLS);
    mass
}

/// Least squares: from the leaves up each count is a weighted mean of itself and of what its children say; from the top down
/// children take equal parts of what they differ by.
fn make_consistent(levels: &mut [Vec<f64>; LEVELS as usize]) {
    let k = BRANCHES as f64;
    for level in (0..levels.len() - 1).rev() {
        // Leaves have height 1.
        let height = (levels.len() - level) as i32;
        let (all, below) = (k.powi(height), k.powi(height - 1));
        let (upper, lower) = levels.split_at_mut(level + 1);
        for (count, children) in upper[level].iter_mut().zip(lower[0].chunks_exact(BRANCHES)) {
            let said: f64 = children.iter().sum();
            *count = (all - below) / (all - 1.0) * *count + (below - 1.0) / (all - 1.0) * said;
        }
    }
    for level in 1..levels.len() {
        let (upper, lower) = levels.split_at_mut(level);
        let children = lower[0].chunks_exact_mut(BRANCHES);
        for (count, children) in upper[level - 1].iter().zip(children) {
            let off = (count - children.iter().sum::<f64>()) / k;
            children.iter_mut().for_each(|child| *child += off);
        }
    }
}

/// `mass` in proportion to the counts that can be seen; in equal parts if none can.
fn kept(counts: &[f64], least: f64, mass: f64) -> Vec<f64> {
    if mass == 0.0 {
        return vec![0.0; counts.len()];
    }
    let seen = |count: &f64| if *count >= least { *count } else { 0.0 };
    let total: f64 = counts.iter().map(seen).sum();
    match total > 0.0 {
        true => counts.iter().map(|count| mass * (seen(count) / total)).collect(),
        false => vec![mass / counts.len() as f64; counts.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of trees whose counts add up, none is nearer to the given counts: the residual is orthogonal to every such tree,
    /// those of one cell span them.
    #[test]
    fn consistent_counts_are_the_nearest() {
        let counts: Vec<f64> = (0..NODES).map(|k| ((k * 7919 % 1009) as f64).sqrt()).collect();
        let (first, rest) = counts.split_at(BRANCHES);
        let (second, third) = rest.split_at(BRANCHES * BRANCHES);
        let given = [first.to_vec(), second.to_vec(), third.to_vec()];
        let mut made = given.clone();
        make_consistent(&mut made);
        for cell in 0..CELLS {
            let path = [cell / 256, cell / 16, cell];
            let off: f64 = (0..3).map(|l| given[l][path[l]] - made[l][path[l]]).sum();
            assert!(off.abs() < 1e-9, "{cell}: {off}");
        }
        for (upper, lower) in [(0, 1), (1, 2)] {
            let sums = made[lower].chunks_exact(BRANCHES).map(|c| c.iter().sum::<f64>());
            assert!(sums.zip(&made[upper]).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }
}
