//! Rows through bends and then a matrix.
use super::{
    LANES,
    cached::Map,
    transform::{Linear, TOGETHER},
};
use crate::bends::Bender;

/// A matrix times the bent row.
pub struct Bent<'a> {
    bender: &'a Bender,
    /// Its last column, which is for a constant, is zero.
    linear: Linear,
}

impl<'a> Bent<'a> {
    /// # Panics
    ///
    /// If the rows of the matrix, one after the other, do not fit.
    pub fn new(bender: &'a Bender, matrix: &[f64]) -> Self {
        let (width, zero) = (bender.width(), [0.0]);
        let rows = matrix.chunks_exact(width).flat_map(|row| row.iter().chain(&zero));
        let matrix: Vec<f64> = rows.copied().collect();
        Bent { bender, linear: Linear::new(width, &matrix) }
    }
}

impl Map for Bent<'_> {
    fn table_width(&self) -> usize {
        self.bender.inputs()
    }

    fn width(&self) -> usize {
        self.linear.width()
    }

    #[inline(always)]
    fn fill(&self, rows: &[f64], into: &mut [[f32; LANES]], stride: usize) {
        let width = self.bender.width();
        let (mut columns, mut bent) = (vec![[0.0; TOGETHER]; width + 1], vec![0.0; width]);
        let mut rows = rows.chunks_exact(self.table_width());
        for into in into.chunks_mut(TOGETHER * stride) {
            // In the place of rows behind the last one an earlier one is multiplied again, and not written.
            for (r, row) in (0..into.len() / stride).zip(&mut rows) {
                self.bender.fill(row, &mut bent);
                columns.iter_mut().zip(&bent).for_each(|(column, z)| column[r] = *z as f32);
            }
            self.linear.multiply(&columns, into, stride);
        }
    }
}
