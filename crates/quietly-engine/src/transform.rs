//! Public maps of rows: from the features of a table to those that a query sums.
use quietly_data::Table;
use serde::{Deserialize, Serialize};

use crate::kernels::{Affine, Linear, WhitenedRows};

/// A public map of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowTransform {
    map: Map,
    /// Whether transformed rows are rounded to single precision, as cached rows are.
    single: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Map {
    /// Features shifted and scaled, and a constant after them.
    Affine { shift: Vec<f64>, scale: Vec<f64>, constant: f64 },
    /// A matrix times the row and 1.
    Linear { matrix: Vec<f64>, width: usize },
}

impl RowTransform {
    /// Rows as they are, with a constant feature, read once.
    pub fn plain(width: usize, constant: f64) -> Self {
        RowTransform::shifted(vec![0.0; width], vec![1.0; width], constant)
    }

    /// Features shifted and scaled, with a constant feature, read once.
    pub fn shifted(shift: Vec<f64>, scale: Vec<f64>, constant: f64) -> Self {
        RowTransform { map: Map::Affine { shift, scale, constant }, single: false }
    }

    /// All features scaled alike, with a constant feature, cached.
    pub fn scaled(width: usize, scale: f64, constant: f64) -> Self {
        let (shift, scale) = (vec![0.0; width], vec![scale; width]);
        RowTransform { map: Map::Affine { shift, scale, constant }, single: true }
    }

    /// A matrix, whose rows lie one after the other, times a row of `width` features and 1, cached.
    pub fn linear(matrix: Vec<f64>, width: usize) -> Self {
        RowTransform { map: Map::Linear { matrix, width }, single: true }
    }

    /// How many features a transformed row has.
    pub fn width(&self) -> usize {
        match &self.map {
            Map::Affine { shift, .. } => shift.len() + 1,
            Map::Linear { matrix, width } => matrix.len() / (width + 1),
        }
    }

    /// Whether transformed rows are cached.
    pub fn is_cached(&self) -> bool {
        self.single
    }

    /// The transformed rows of a table, in the memory of others that are no longer needed.
    pub fn cached(
        &self,
        spare: Option<WhitenedRows>,
        table: &Table,
        threads: usize,
    ) -> WhitenedRows {
        match &self.map {
            Map::Affine { shift, scale, constant } => {
                WhitenedRows::again(spare, table, &Affine::new(shift, scale, *constant), threads)
            }
            Map::Linear { matrix, width } => {
                let map = Linear::new(*width, matrix);
                WhitenedRows::again(spare, table, &map, threads)
            }
        }
    }

    /// The map of rows that are not cached.
    pub fn affine(&self) -> Affine {
        match &self.map {
            Map::Affine { shift, scale, constant } => Affine::new(shift, scale, *constant),
            Map::Linear { .. } => unreachable!("rows under a matrix are cached"),
        }
    }
}
