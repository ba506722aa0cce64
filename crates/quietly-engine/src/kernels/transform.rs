//! Public maps from the rows of a table to the rows that are learnt from.
use super::{LANES, in_lanes};

/// Beyond this a parameter could make the square of a feature overflow, and the row count as zero.
const LARGEST: f64 = 1e100;

/// Every feature shifted and scaled, x'_j = (x_j - shift_j)·scale_j, and a constant one after them.
#[derive(Clone, Debug)]
pub struct Affine {
    /// How many features the table has.
    width: usize,
    pub(super) constant: f64,
    /// Shifts and scales, in lanes.
    pub(super) columns: Vec<Columns>,
}

/// The parameters of as many columns as there are lanes; zero where there is no column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) shift: [f64; LANES],
    pub(super) scale: [f64; LANES],
    /// What features are held to first.
    low: [f64; LANES],
    high: [f64; LANES],
}

impl Affine {
    /// # Panics
    ///
    /// Unless there is one shift for every scale and all numbers are within ±1e100: the map is
    /// public.
    pub fn new(shift: &[f64], scale: &[f64], constant: f64) -> Self {
        assert_eq!(shift.len(), scale.len(), "a shift for every scale");
        for number in shift.iter().chain(scale).chain([&constant]) {
            assert!(number.abs() <= LARGEST, "a map must be finite, and within 1e100");
        }
        let columns = in_lanes(shift)
            .into_iter()
            .zip(in_lanes(scale))
            .map(|(shift, scale)| {
                let (low, high) = ([f64::NEG_INFINITY; LANES], [f64::INFINITY; LANES]);
                Columns { shift, scale, low, high }
            })
            .collect();
        Self { width: shift.len(), constant, columns }
    }

    /// The same of features that are first held to these intervals.
    ///
    /// # Panics
    ///
    /// Unless there is an interval for every feature, and none is empty.
    #[must_use]
    pub fn within(mut self, low: &[f64], high: &[f64]) -> Self {
        assert!(low.len() == self.width && high.len() == self.width, "an interval for each");
        assert!(low.iter().zip(high).all(|(low, high)| low <= high), "no interval is empty");
        let ends = in_lanes(low).into_iter().zip(in_lanes(high));
        for (columns, (low, high)) in self.columns.iter_mut().zip(ends) {
            (columns.low, columns.high) = (low, high);
        }
        self
    }

    /// Rows as they are, with a constant feature.
    pub fn identity(width: usize, constant: f64) -> Self {
        Self::new(&vec![0.0; width], &vec![1.0; width], constant)
    }

    /// How many features the table has.
    pub fn table_width(&self) -> usize {
        self.width
    }

    /// How many features a transformed row has.
    pub fn width(&self) -> usize {
        self.width + 1
    }
}

impl Columns {
    #[inline(always)]
    pub(super) fn apply(&self, x: &[f64; LANES]) -> [f64; LANES] {
        std::array::from_fn(|lane| {
            let x = if x[lane] < self.low[lane] { self.low[lane] } else { x[lane] };
            let x = if x > self.high[lane] { self.high[lane] } else { x };
            (x - self.shift[lane]) * self.scale[lane]
        })
    }
}

/// z = P·[x; 1] for a matrix P, in single precision.
#[derive(Clone, Debug)]
pub struct Linear {
    table_width: usize,
    width: usize,
    pub(super) tiles: Vec<Tile>,
}

/// [`TILE`] rows of P, zero where P has ended.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    /// How many columns at its start are zero: what they would add is nothing, and is not added.
    pub(super) zeros: usize,
    /// The columns after them, one after the other, up to those at its end that are zero.
    pub(super) columns: Vec<[f32; TILE]>,
}

/// As many outputs are made at once as fit in registers for [`TOGETHER`] rows.
pub(super) const TILE: usize = 8;

/// How many rows are multiplied together.
pub(super) const TOGETHER: usize = 8;

impl Linear {
    /// The map of rows of so many features with this matrix, whose rows have one entry more and lie one after the other.
    ///
    /// # Panics
    ///
    /// If the shape does not fit or a number is not within ±1e100: the map is public.
    pub fn new(table_width: usize, matrix: &[f64]) -> Self {
        let columns = table_width + 1;
        assert!(matrix.len().is_multiple_of(columns), "matrix must have a column per feature");
        for number in matrix {
            assert!(number.abs() <= LARGEST, "a map must be finite, and within 1e100");
        }
        let rows: Vec<_> = matrix.chunks_exact(columns).collect();
        let entry = |row: usize, j: usize| rows.get(row).map_or(0.0, |row| row[j] as f32);
        let tiles = (0..rows.len().div_ceil(TILE))
            .map(|tile| {
                let column = |j| std::array::from_fn(|i| entry(tile * TILE + i, j));
                let is_zero = |j: &usize| column(*j) == [0.0; TILE];
                let zeros = (0..columns).take_while(is_zero).count();
                let end = columns - (zeros..columns).rev().take_while(is_zero).count();
                Tile { zeros, columns: (zeros..end).map(column).collect() }
            })
            .collect();
        Self { table_width, width: rows.len(), tiles }
    }

    /// How many features the table has.
    pub fn table_width(&self) -> usize {
        self.table_width
    }

    /// How many features a transformed row has.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl Tile {
    /// The product with several rows, which are given column by column; every entry is added up in that order.
    #[inline(always)]
    pub(super) fn times(&self, columns: &[[f32; TOGETHER]]) -> [[f32; TILE]; TOGETHER] {
        let mut sums = [[0.0; TILE]; TOGETHER];
        for (p, x) in self.columns.iter().zip(&columns[self.zeros..]) {
            for r in 0..TOGETHER {
                for i in 0..TILE {
                    sums[r][i] += x[r] * p[i];
                }
            }
        }
        sums
    }
}
