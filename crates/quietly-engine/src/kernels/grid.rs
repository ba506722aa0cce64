//! Counting values between thresholds.

/// How many leading bits of a mantissa choose a cell, besides the exponent.
const CELL_BITS: u32 = 4;

/// Ascending thresholds e_1 < … < e_K, and for every number its bin.
///
/// Bin k, from 0, holds the values in (e_k, e_(k+1)], and bin K all others: those above e_K and
/// those that are not a number. The numbers of e_k and below are prefix sums of the counts.
#[derive(Clone, Debug)]
pub struct Bins {
    thresholds: Vec<f64>,
    /// For cells of numbers with the same leading bits: the first bin a number in it can have.
    cells: Vec<u32>,
    first_cell: u64,
    /// The most thresholds that lie in one cell.
    crowd: usize,
}

impl Bins {
    /// # Panics
    ///
    /// If a threshold is negative, not finite or not above the one before: grids are public.
    pub fn new(mut thresholds: Vec<f64>) -> Self {
        assert!(
            thresholds.iter().all(|e| e.is_finite() && e.is_sign_positive())
                && thresholds.is_sorted_by(|a, b| a < b),
            "thresholds must be finite, not negative, and ascend"
        );
        let first_cell = thresholds.first().map_or(0, |&e| cell(e));
        let last_cell = thresholds.last().map_or(0, |&e| cell(e));
        let mut crowds = vec![0; (last_cell - first_cell) as usize + 2];
        for &e in &thresholds {
            crowds[(cell(e) - first_cell) as usize] += 1;
        }
        let crowd = crowds.iter().copied().max().unwrap_or(0) as usize;
        // Numbers below a cell's own thresholds have at least as many thresholds below them as
        // there are in the cells before it.
        let mut before = 0;
        let cells = crowds
            .into_iter()
            .map(|here| {
                let bin = before;
                before += here;
                bin
            })
            .collect();
        // A fence that no number is above, so that the last bin needs no special case.
        thresholds.push(f64::INFINITY);
        Self { thresholds, cells, first_cell, crowd }
    }

    /// How many bins there are: K + 1.
    pub fn bins(&self) -> usize {
        self.thresholds.len()
    }

    /// The bin of a value that is not negative, without a branch that depends on it.
    #[inline(always)]
    pub fn bin(&self, value: f64) -> usize {
        // What is not a number is above all.
        let value = if value.is_nan() { f64::INFINITY } else { value };
        let index = cell(value).saturating_sub(self.first_cell) as usize;
        let mut bin = self.cells[index.min(self.cells.len() - 1)] as usize;
        for _ in 0..self.crowd {
            bin += usize::from(value > self.thresholds[bin]);
        }
        bin
    }
}

/// Numbers that are not negative are ordered as their bits are.
#[inline(always)]
fn cell(value: f64) -> u64 {
    value.to_bits() >> (52 - CELL_BITS)
}

#[cfg(test)]
mod tests {
    use quietly_core::random::Random;

    use super::*;

    #[test]
    fn bins_are_those_of_a_plain_count() {
        let log = |from: i32, to: i32, per: f64| {
            (from..=to).map(|k| 2f64.powf(f64::from(k) / per)).collect::<Vec<_>>()
        };
        let mut random = Random(5);
        let crowded = (1..=40).map(|k| 1.0 + f64::from(k) * 1e-9).collect();
        let far = vec![0.0, 5e-324, 1e-300, 1.0, f64::MAX];
        for grid in [vec![], vec![1.0], log(-120, 120, 4.0), log(-240, 240, 8.0), crowded, far] {
            let made = Bins::new(grid.clone());
            assert_eq!(made.bins(), grid.len() + 1);
            let near = grid.iter().flat_map(|&e| [e, e.next_up(), e.next_down().max(0.0)]);
            let wild = (0..2000).map(|_| random.size());
            let odd = [0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX];
            for value in near.chain(wild).chain(odd) {
                let plain = grid.iter().filter(|&&e| value > e || value.is_nan()).count();
                assert_eq!(made.bin(value), plain, "{value}");
            }
        }
    }
}
