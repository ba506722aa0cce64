//! The little dense algebra that fits need: of public numbers, but for [`solve`].
use nalgebra::{DMatrix, DVector, SymmetricEigen};

/// A positive definite matrix, ready to be solved for.
pub struct Factor(nalgebra::Cholesky<f64, nalgebra::Dyn>);

impl Factor {
    /// None unless the matrix, given row by row, is positive definite.
    pub fn new(matrix: Vec<f64>, size: usize) -> Option<Factor> {
        DMatrix::from_vec(size, size, matrix).cholesky().map(Factor)
    }

    /// Turns b into the x with matrix · x = b.
    pub fn solve(&self, b: &mut [f64]) {
        let mut x = DVector::from_column_slice(b);
        self.0.solve_mut(&mut x);
        b.copy_from_slice(x.as_slice());
    }
}

/// A square matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Square {
    pub size: usize,
    pub entries: Vec<f64>,
}

impl Square {
    pub fn identity(size: usize) -> Self {
        Square::new(size, |row, column| if row == column { 1.0 } else { 0.0 })
    }

    pub fn new(size: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries = (0..size * size).map(|at| entry(at / size, at % size)).collect();
        Square { size, entries }
    }

    /// A symmetric matrix from its upper triangle, row by row.
    pub fn symmetric(size: usize, upper: &[f64]) -> Self {
        let place = |row: usize, column: usize| row * size - row * (row + 1) / 2 + column;
        Square::new(size, |row, column| upper[place(row.min(column), row.max(column))])
    }

    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row * self.size + column]
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.entries[row * self.size..][..self.size]
    }

    /// self · other
    pub fn times(&self, other: &Square) -> Square {
        let mut product = Square { size: self.size, entries: vec![0.0; self.entries.len()] };
        for (into, row) in product.entries.chunks_mut(self.size).zip(self.entries.chunks(self.size))
        {
            for (factor, line) in row.iter().zip(other.entries.chunks(self.size)) {
                into.iter_mut().zip(line).for_each(|(p, x)| *p += factor * x);
            }
        }
        product
    }

    pub fn transposed(&self) -> Square {
        Square::new(self.size, |row, column| self.at(column, row))
    }

    /// Turns the first `columns` columns among themselves, by Householder's reflections, until none reaches above the diagonal.
    /// The rows of `along` are turned likewise: self · along stays what it was.
    pub fn lower(&mut self, columns: usize, mut along: Option<&mut Square>) {
        let size = self.size;
        for j in 0..columns {
            let mut v = self.row(j)[j..columns].to_vec();
            if v[1..].iter().all(|x| *x == 0.0) {
                continue;
            }
            let length = -dot(&v, &v).sqrt().copysign(v[0]);
            v[0] -= length;
            let factor = 2.0 / dot(&v, &v);
            // Squares that are too small or too large for a number: not turned is right too, only slower.
            if !factor.is_normal() {
                continue;
            }
            for row in self.entries.chunks_mut(size) {
                let part = &mut row[j..columns];
                let shadow = dot(&v, part);
                add(part, &v, -factor * shadow);
            }
            self.entries[j * size + j..][..columns - j].fill(0.0);
            self.entries[j * size + j] = length;
            if let Some(along) = &mut along {
                let rows = &mut along.entries[j * size..columns * size];
                let mut shadow = vec![0.0; size];
                rows.chunks(size).zip(&v).for_each(|(row, v)| add(&mut shadow, row, *v));
                rows.chunks_mut(size).zip(&v).for_each(|(row, v)| add(row, &shadow, -factor * v));
            }
        }
    }

    /// self · x
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.entries.chunks(self.size).map(|row| dot(row, x)).collect()
    }
}

pub fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// An inner product in eight parts, always in the same order: the same bits alone and among others.
#[inline(always)]
pub fn dot_in_eight(a: &[f64], b: &[f64]) -> f64 {
    let mut parts = [0.0; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for (part, (a, b)) in parts.iter_mut().zip(a.iter().zip(b)) {
            *part += a * b;
        }
    }
    parts.iter().sum::<f64>() + rest
}

/// The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, row after row.
///
/// A matrix with a number that is not finite has no eigenvalues worth having: zeros and unit vectors.
pub fn eigen(matrix: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
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
pub fn solve(matrix: &Square, right: &[f64]) -> Option<Vec<f64>> {
    let matrix = DMatrix::from_row_slice(matrix.size, matrix.size, &matrix.entries);
    let root = matrix.cholesky()?;
    Some(root.solve(&DVector::from_column_slice(right)).iter().copied().collect())
}

/// Cholesky's upper triangle U with UᵀU = `matrix`, if that is positive definite.
pub fn root(matrix: &Square) -> Option<Square> {
    let d = matrix.size;
    let mut u = matrix.clone();
    for k in 0..d {
        let (done, below) = u.entries.split_at_mut((k + 1) * d);
        let line = &mut done[k * d + k..];
        let length = line[0].sqrt();
        if !(length.is_finite() && length > 0.0) {
            return None;
        }
        line.iter_mut().for_each(|x| *x /= length);
        for (i, below) in below.chunks_exact_mut(d).enumerate() {
            let line = &line[i + 1..];
            add(&mut below[k + 1 + i..], line, -line[0]);
        }
    }
    Some(u)
}

/// The inverse of a positive definite matrix: V·Vᵀ, where V is the inverse of its root.
pub fn inverse(matrix: &Square) -> Option<Square> {
    let d = matrix.size;
    let root = root(matrix)?;
    // The rows of Vᵀ, one after the other.
    let mut back = Square::identity(d);
    for i in 0..d {
        let (done, line) = back.entries.split_at_mut(i * d);
        let line = &mut line[..=i];
        for (k, done) in done.chunks_exact(d).enumerate() {
            add(&mut line[..=k], &done[..=k], -root.at(k, i));
        }
        line.iter_mut().for_each(|x| *x /= root.at(i, i));
    }
    let mut inverse = Square { size: d, entries: vec![0.0; d * d] };
    for (k, line) in back.entries.chunks_exact(d).enumerate() {
        for (i, into) in inverse.entries.chunks_exact_mut(d).take(k + 1).enumerate() {
            add(&mut into[..=i], &line[..=i], line[i]);
        }
    }
    for i in 0..d {
        for j in 0..i {
            inverse.entries[j * d + i] = inverse.entries[i * d + j];
        }
    }
    inverse.entries.iter().all(|x| x.is_finite()).then_some(inverse)
}

/// x += factor·y
pub fn add(x: &mut [f64], y: &[f64], factor: f64) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += factor * y);
}

/// The matrix whose eigenvalues are those of a symmetric `matrix`, or zero where they are negative, plus `blur`.
pub fn regular(matrix: &Square, blur: f64) -> Square {
    let d = matrix.size;
    let mut regular = matrix.clone();
    // Eigenvalues cost ten times what it costs to see that none of them is negative.
    if root(matrix).is_none() {
        let (values, vectors) = eigen(&matrix.entries, d);
        regular.entries.fill(0.0);
        for (value, vector) in values.iter().zip(vectors.chunks_exact(d)) {
            for (line, v) in regular.entries.chunks_exact_mut(d).zip(vector) {
                add(line, vector, value.max(0.0) * v);
            }
        }
    }
    (0..d).for_each(|k| regular.entries[k * (d + 1)] += blur);
    regular
}

/// ⟨a, a⟩ weighted by `h`.
pub fn weighted(h: &[f64], a: &[f64]) -> f64 {
    dot(&h.iter().zip(a).map(|(h, a)| h * a).collect::<Vec<_>>(), a)
}

#[cfg(test)]
mod tests;
