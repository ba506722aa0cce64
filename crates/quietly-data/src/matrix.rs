//! Matrices in memory, row by row: a column of lists of one length, which stands for many columns.
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::DataType;
use prefetch_index::prefetch_index;

use crate::{
    columns::Tile,
    plan::{Cell, Lane, Row, encoded},
};

/// How many rows ahead memory is asked for those that lie apart.
const AHEAD: usize = 16;

/// How many columns a list stands for, and what they hold.
pub(crate) fn shape(field: &DataType) -> Option<(usize, DataType)> {
    match field {
        DataType::FixedSizeList(item, width) => {
            let fine = matches!(item.data_type(), DataType::Float32 | DataType::Float64);
            fine.then(|| (*width as usize, item.data_type().clone()))
        }
        _ => None,
    }
}

/// Fills a tile with rows of a matrix, where `place` says which is the i-th; false if the column is none.
pub(crate) fn fill(
    tile: &mut Tile<'_>,
    column: &ArrayRef,
    cells: &[Cell],
    place: impl Fn(usize) -> usize,
) -> bool {
    let Some(lists) = column.as_fixed_size_list_opt() else { return false };
    match lists.value_type() {
        DataType::Float32 => numbers::<Float32Type>(tile, lists, cells, place, f64::from),
        _ => numbers::<Float64Type>(tile, lists, cells, place, |x| x),
    }
    true
}

fn numbers<T: ArrowPrimitiveType>(
    tile: &mut Tile<'_>,
    lists: &FixedSizeListArray,
    cells: &[Cell],
    place: impl Fn(usize) -> usize,
    number: impl Fn(T::Native) -> f64,
) {
    let from = lists.value_offset(0) as usize;
    let numbers = &lists.values().as_primitive::<T>().values()[from..];
    let (width, rows) = (cells.len(), tile.kept.len());
    let lanes = Lanes::new(cells);
    // A line of the cache holds so many.
    let line = 64 / size_of::<T::Native>();
    for i in 0..rows {
        let soon = place((i + AHEAD).min(rows - 1)) * width;
        for start in (soon..soon + width + line - 1).step_by(line) {
            prefetch_index(numbers, start);
        }
        let numbers = &numbers[place(i) * width..][..width];
        let features = &mut tile.features[i * tile.width..][..tile.width];
        if let Some(lanes) = &lanes {
            tile.kept[i] &= lanes.encode(numbers, features, &number);
        } else {
            let row = &mut Row { features, target: &mut tile.target[i] };
            for (cell, x) in cells.iter().zip(numbers) {
                tile.kept[i] &= cell.number(number(*x), row);
            }
        }
    }
}

/// What to do with the numbers of a row that are all features, one after the other: many are encoded abreast.
struct Lanes {
    /// Where the first goes.
    first: usize,
    lo: Vec<f64>,
    hi: Vec<f64>,
    centre: Vec<f64>,
    half_width: Vec<f64>,
    fill: Vec<f64>,
}

impl Lanes {
    fn new(cells: &[Cell]) -> Option<Self> {
        let first = cells.first()?.slots().start;
        let lane = |(k, cell): (usize, &Cell)| match cell {
            Cell::Number(number) if number.slot == first + k => Some(number.lane),
            _ => None,
        };
        let lanes: Option<Vec<Lane>> = cells.iter().enumerate().map(lane).collect();
        let lanes = lanes?;
        let all = |of: fn(&Lane) -> f64| lanes.iter().map(of).collect();
        Some(Lanes {
            first,
            lo: all(|lane| lane.lo),
            hi: all(|lane| lane.hi),
            centre: all(|lane| lane.centre),
            half_width: all(|lane| lane.half_width),
            fill: all(|lane| lane.fill),
        })
    }

    /// Encodes the numbers of a row; returns whether it is kept.
    #[inline(always)]
    fn encode<T: Copy>(
        &self,
        numbers: &[T],
        features: &mut [f64],
        number: &impl Fn(T) -> f64,
    ) -> bool {
        let width = numbers.len();
        let into = &mut features[self.first..][..width];
        let (lo, hi, fill) = (&self.lo[..width], &self.hi[..width], &self.fill[..width]);
        let (centre, half_width) = (&self.centre[..width], &self.half_width[..width]);
        for k in 0..width {
            into[k] = encoded(number(numbers[k]), lo[k], hi[k], centre[k], half_width[k]);
        }
        // Missing numbers are rare: a loop without them has no branch.
        if !numbers.iter().fold(false, |found, x| found | number(*x).is_nan()) {
            return true;
        }
        let missing = into.iter_mut().zip(fill).zip(numbers).filter(|(_, x)| number(**x).is_nan());
        missing.for_each(|((into, fill), _)| *into = *fill);
        !into.iter().any(|x| x.is_nan())
    }
}
