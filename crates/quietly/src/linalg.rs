//! The little dense algebra that fits need: of public numbers, but for [`solve`].
use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// A square matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Square {
    pub(crate) size: usize,
    pub(crate) entries: Vec<f64>,
}

impl Square {
    pub(crate) fn identity(size: usize) -> Self {
        Square::new(size, |row, column| if row == column { 1.0 } else { 0.0 })
    }

    pub(crate) fn new(size: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries = (0..size * size).map(|at| entry(at / size, at % size)).collect();
        Square { size, entries }
    }

    /// A symmetric matrix from its upper triangle, row by row.
    pub(crate) fn symmetric(size: usize, upper: &[f64]) -> Self {
        let place = |row: usize, column: usize| row * size - row * (row + 1) / 2 + column;
        Square::new(size, |row, column| upper[place(row.min(column), row.max(column))])
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row * self.size + column]
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.entries[row * self.size..][..self.size]
    }

    /// self · other
    pub(crate) fn times(&self, other: &Square) -> Square {
        let mut product = Square { size: self.size, entries: vec![0.0; self.entries.len()] };
        for (into, row) in product.entries.chunks_mut(self.size).zip(self.entries.chunks(self.size))
        {
            for (factor, line) in row.iter().zip(other.entries.chunks(self.size)) {
                into.iter_mut().zip(line).for_each(|(p, x)| *p += factor * x);
            }
        }
        product
    }

    pub(crate) fn transposed(&self) -> Square {
        Square::new(self.size, |row, column| self.at(column, row))
    }

    /// self · x
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.entries.chunks(self.size).map(|row| dot(row, x)).collect()
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, row after row.
///
/// A matrix with a number that is not finite has no eigenvalues worth having: zeros and unit vectors.
pub(crate) fn eigen(matrix: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
    if matrix.iter().any(|x| !x.is_finite()) {
        return (vec![0.0; size], Square::identity(size).entries);
    }
    let found = SymmetricEigen::new(DMatrix::from_row_slice(size, size, matrix));
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&a, &b| found.eigenvalues[a].total_cmp(&found.eigenvalues[b]));
    let values = order.iter().map(|&k| found.eigenvalues[k]).collect();
    let vectors = order
        .iter()
        .flat_map(|&k| found.eigenvectors.column(k).iter().copied().collect::<Vec<_>>());
    (values, vectors.collect())
}

/// The x with matrix · x = right, for a positive definite matrix.
pub(crate) fn solve(matrix: &Square, right: &[f64]) -> Option<Vec<f64>> {
    let matrix = DMatrix::from_row_slice(matrix.size, matrix.size, &matrix.entries);
    let root = matrix.cholesky()?;
    Some(root.solve(&DVector::from_column_slice(right)).iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        let upper = [4.0, 1.0, -2.0, 3.0, 0.5, 5.0];
        let matrix = Square::symmetric(3, &upper);
        let (values, vectors) = eigen(&matrix.entries, 3);
        assert!(values.is_sorted());
        let v = Square { size: 3, entries: vectors };
        let d = Square::new(3, |r, c| if r == c { values[r] } else { 0.0 });
        let back = v.transposed().times(&d).times(&v);
        let worst = back.entries.iter().zip(&matrix.entries).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f64::max) < 1e-12, "{back:?}");
    }
}
