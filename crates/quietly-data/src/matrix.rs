//! Matrices in memory, row by row: a column of lists of one length, which stands for many columns.
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::DataType;

use crate::{
    columns::Tile,
    near,
    plan::{Cell, Lane, Row, clamp, encoded},
};

/// How many rows ahead memory is asked for those that lie apart: short ones are done sooner.
fn ahead(width: usize) -> usize {
    (256 / width.max(1)).clamp(16, 128)
}

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
        DataType::Float32 => numbers::<Float32Type>(tile, lists, cells, place),
        _ => numbers::<Float64Type>(tile, lists, cells, place),
    }
    true
}

fn numbers<T: ArrowPrimitiveType<Native: Into<f64>>>(
    tile: &mut Tile<'_>,
    lists: &FixedSizeListArray,
    cells: &[Cell],
    place: impl Fn(usize) -> usize,
) {
    let from = lists.value_offset(0) as usize;
    let numbers = &lists.values().as_primitive::<T>().values()[from..];
    if let Some(lanes) = Lanes::new(cells) {
        pulp::Arch::new().dispatch(Features { tile, numbers, lanes, place });
        return;
    }
    let (width, rows) = (cells.len(), tile.kept.len());
    let ahead = ahead(width);
    let call = |i: usize| near::call(numbers, place(i.min(rows - 1)) * width);
    let places = |i: usize| {
        call(i + ahead);
        place(i) * width
    };
    (0..ahead.min(rows)).for_each(call);
    // One column, the target, is what there mostly is beside the features.
    if let [Cell::Target { lo, hi, .. }] = cells {
        for (i, (kept, into)) in tile.kept.iter_mut().zip(&mut *tile.target).enumerate() {
            let y: f64 = numbers[places(i)].into();
            *into = clamp(y, *lo, *hi);
            *kept &= !y.is_nan();
        }
        return;
    }
    for (i, kept) in tile.kept.iter_mut().enumerate() {
        let features = &mut tile.features[i * tile.width..][..tile.width];
        let row = &mut Row { features, target: &mut tile.target[i] };
        for (cell, x) in cells.iter().zip(&numbers[places(i)..]) {
            *kept &= cell.number((*x).into(), row);
        }
    }
}

/// Rows of numbers that are all features, encoded with the best instructions this processor has.
struct Features<'a, 'b, T, P> {
    tile: &'a mut Tile<'b>,
    numbers: &'a [T],
    lanes: Lanes,
    place: P,
}

impl<T: Copy + Into<f64>, P: Fn(usize) -> usize> pulp::NullaryFnOnce for Features<'_, '_, T, P> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Features { tile, numbers, lanes, place } = self;
        let (width, rows) = (lanes.lo.len(), tile.kept.len());
        // A line of the cache holds so many.
        let line = 64 / size_of::<T>();
        let call = |i: usize| {
            let start = place(i.min(rows - 1)) * width;
            (start..start + width).step_by(line).for_each(|start| near::call(numbers, start));
            near::call(numbers, start + width - 1);
        };
        let ahead = ahead(width);
        (0..ahead.min(rows)).for_each(call);
        for i in 0..rows {
            call(i + ahead);
            let row = &numbers[place(i) * width..][..width];
            let into = &mut tile.features[i * tile.width + lanes.first..][..width];
            tile.kept[i] &= match &lanes.inverse {
                Some(inverse) => lanes.encode(row, into, inverse, |x, inverse| x * inverse),
                None => lanes.encode(row, into, &lanes.half_width, |x, half| x / half),
            };
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
    /// 1/half_width, where all of them are powers of two: a product is as exact as a quotient then, and faster.
    inverse: Option<Vec<f64>>,
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
        let all = |of: fn(&Lane) -> f64| -> Vec<f64> { lanes.iter().map(of).collect() };
        let is_power = |x: f64| x.is_normal() && x.to_bits() << 12 == 0;
        let exact = |lane: &Lane| is_power(lane.half_width) && is_power(1.0 / lane.half_width);
        let inverse = lanes.iter().all(exact).then(|| all(|lane| 1.0 / lane.half_width));
        Some(Lanes {
            first,
            lo: all(|lane| lane.lo),
            hi: all(|lane| lane.hi),
            centre: all(|lane| lane.centre),
            half_width: all(|lane| lane.half_width),
            inverse,
            fill: all(|lane| lane.fill),
        })
    }

    /// Encodes the numbers of a row, where `scaled` brings a number to scale; returns whether it is kept.
    #[inline(always)]
    fn encode<T: Copy + Into<f64>>(
        &self,
        numbers: &[T],
        into: &mut [f64],
        scale: &[f64],
        scaled: impl Fn(f64, f64) -> f64,
    ) -> bool {
        let width = numbers.len();
        let into = &mut into[..width];
        let (lo, hi, fill) = (&self.lo[..width], &self.hi[..width], &self.fill[..width]);
        let (centre, scale) = (&self.centre[..width], &scale[..width]);
        // Not in chunks: the optimiser would turn such loops around, and spend its time moving numbers.
        for k in 0..width {
            into[k] = encoded(numbers[k].into(), lo[k], hi[k], centre[k], |x| scaled(x, scale[k]));
        }
        // Missing numbers are rare: a loop without them has no branch.
        if !numbers.iter().fold(false, |found, x| found | (*x).into().is_nan()) {
            return true;
        }
        let missing = into.iter_mut().zip(fill).zip(numbers).filter(|(_, x)| (**x).into().is_nan());
        missing.for_each(|((into, fill), _)| *into = *fill);
        !into.iter().any(|x| x.is_nan())
    }
}
