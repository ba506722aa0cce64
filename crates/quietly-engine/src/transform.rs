//! Public maps of rows: from the features of a table to those that a query sums.
use quietly_data::Table;
use serde::{Deserialize, Serialize};

use crate::{
    bends::{Base, Bender, Bends},
    column_map::Standardise,
    kernels::{Affine, Bent, Linear, WhitenedRows},
};

/// A public map of rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowTransform {
    /// What is done with single features before the map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<Standardise>,
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
    /// A matrix times the bent row. The target is what the base leaves over of it.
    Bent { bends: Bends, matrix: Vec<f64>, base: Option<Base> },
}

impl RowTransform {
    /// Rows as they are, with a constant feature, read once.
    pub fn plain(width: usize, constant: f64) -> Self {
        RowTransform::shifted(vec![0.0; width], vec![1.0; width], constant)
    }

    /// Features shifted and scaled, with a constant feature, read once.
    pub fn shifted(shift: Vec<f64>, scale: Vec<f64>, constant: f64) -> Self {
        RowTransform { columns: None, map: Map::Affine { shift, scale, constant }, single: false }
    }

    /// All features scaled alike, with a constant feature, cached.
    pub fn scaled(width: usize, scale: f64, constant: f64) -> Self {
        let (shift, scale) = (vec![0.0; width], vec![scale; width]);
        RowTransform { columns: None, map: Map::Affine { shift, scale, constant }, single: true }
    }

    /// A matrix, whose rows lie one after the other, times a row of `width` features and 1, cached.
    pub fn linear(matrix: Vec<f64>, width: usize) -> Self {
        RowTransform { columns: None, map: Map::Linear { matrix, width }, single: true }
    }

    /// A matrix, whose rows lie one after the other, times a bent row, cached. The target is what `base` leaves over of it.
    pub fn bent(bends: Bends, matrix: Vec<f64>, base: Option<Base>) -> Self {
        RowTransform { columns: None, map: Map::Bent { bends, matrix, base }, single: true }
    }

    /// The same map of features that are first winsorised and standardised, with tails behind them: it is a map of as many features
    /// as come out of that.
    ///
    /// # Panics
    ///
    /// If there are tails, and rows are not cached.
    #[must_use]
    pub fn after(self, columns: Option<Standardise>) -> Self {
        let tails = columns.as_ref().is_some_and(|columns| !columns.tails.is_empty());
        assert!(self.single || !tails, "rows with tails are cached");
        RowTransform { columns, ..self }
    }

    /// How many features a transformed row has.
    pub fn width(&self) -> usize {
        match &self.map {
            Map::Affine { shift, .. } => shift.len() + 1,
            Map::Linear { matrix, width } => matrix.len() / (width + 1),
            Map::Bent { bends, matrix, .. } => matrix.len() / bends.width(),
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
        match (&self.map, &self.columns) {
            (Map::Affine { shift, scale, constant }, None) => {
                WhitenedRows::again(spare, table, &Affine::new(shift, scale, *constant), threads)
            }
            (Map::Affine { shift, scale, constant }, Some(columns)) => {
                let map = columns.then(Affine::new(shift, scale, *constant));
                WhitenedRows::again(spare, table, &map, threads)
            }
            (Map::Linear { matrix, width }, None) => {
                WhitenedRows::again(spare, table, &Linear::new(*width, matrix), threads)
            }
            (Map::Linear { matrix, width }, Some(columns)) => {
                let map = columns.then(Linear::new(*width, matrix));
                WhitenedRows::again(spare, table, &map, threads)
            }
            (Map::Bent { .. }, Some(_)) => unreachable!("bends have a map of columns"),
            (Map::Bent { bends, matrix, base }, None) => {
                let bender = Bender::new(bends);
                let rows = WhitenedRows::again(spare, table, &Bent::new(&bender, matrix), threads);
                match base {
                    Some(base) => rows.with_targets(base.left_over(table, threads)),
                    None => rows,
                }
            }
        }
    }

    /// The map of rows that are not cached.
    pub fn affine(&self) -> Affine {
        match (&self.map, &self.columns) {
            (Map::Affine { shift, scale, constant }, None) => Affine::new(shift, scale, *constant),
            (Map::Affine { shift, scale, constant }, Some(columns)) => {
                columns.affine(shift, scale, *constant)
            }
            (Map::Linear { .. } | Map::Bent { .. }, _) => {
                unreachable!("rows under a matrix are cached")
            }
        }
    }
}
