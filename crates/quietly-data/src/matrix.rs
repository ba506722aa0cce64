//! Row-major matrices in memory: a column of lists of one length, which represents many columns.
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_schema::DataType;

use crate::{
    column_decoder::{ColumnDecoder, DenseRow, Scaling, clamp, encoded},
    columns::Tile,
    prefetch::prefetch,
};

/// How many rows ahead to prefetch rows that are not adjacent. Short rows are decoded sooner.
fn ahead(width: usize) -> usize {
    (256 / width.max(1)).clamp(16, 128)
}

/// The number of columns that a list represents, and their type.
pub(crate) fn shape(field: &DataType) -> Option<(usize, DataType)> {
    match field {
        DataType::FixedSizeList(item, width) => {
            let fine = matches!(item.data_type(), DataType::Float32 | DataType::Float64);
            fine.then(|| (*width as usize, item.data_type().clone()))
        }
        _ => None,
    }
}

/// Fills a tile with rows of a matrix, where `place(i)` is the position of the i-th row. Returns
/// false if the column is not a matrix.
pub(crate) fn fill(
    tile: &mut Tile<'_>,
    column: &ArrayRef,
    cells: &[ColumnDecoder],
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
    cells: &[ColumnDecoder],
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
    let call = |i: usize| prefetch(numbers, place(i.min(rows - 1)) * width);
    let places = |i: usize| {
        call(i + ahead);
        place(i) * width
    };
    (0..ahead.min(rows)).for_each(call);
    // The common case beside a matrix of features: one column, the target.
    if let [ColumnDecoder::Target { lo, hi, .. }] = cells {
        for (i, (kept, into)) in tile.kept.iter_mut().zip(&mut *tile.target).enumerate() {
            let y: f64 = numbers[places(i)].into();
            *into = clamp(y, *lo, *hi);
            *kept &= !y.is_nan();
        }
        return;
    }
    for (i, kept) in tile.kept.iter_mut().enumerate() {
        let features = &mut tile.features[i * tile.width..][..tile.width];
        let row = &mut DenseRow { features, target: &mut tile.target[i] };
        for (cell, x) in cells.iter().zip(&numbers[places(i)..]) {
            *kept &= cell.number((*x).into(), row);
        }
    }
}

/// Encodes rows that are all numeric features, with the widest instructions of this processor.
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
        // The numbers of a cache line.
        let line = 64 / size_of::<T>();
        let call = |i: usize| {
            let start = place(i.min(rows - 1)) * width;
            (start..start + width).step_by(line).for_each(|start| prefetch(numbers, start));
            prefetch(numbers, start + width - 1);
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

/// The scaling of adjacent numeric features, as arrays for SIMD.
struct Lanes {
    /// The first feature.
    first: usize,
    lo: Vec<f64>,
    hi: Vec<f64>,
    centre: Vec<f64>,
    half_width: Vec<f64>,
    /// 1/half_width, if all of them are powers of two: then a product is as exact as a quotient, and
    /// faster.
    inverse: Option<Vec<f64>>,
    fill: Vec<f64>,
}

impl Lanes {
    fn new(cells: &[ColumnDecoder]) -> Option<Self> {
        let first = cells.first()?.slots().start;
        let scaling = |(k, cell): (usize, &ColumnDecoder)| match cell {
            ColumnDecoder::Number(number) if number.slot == first + k => Some(number.scaling),
            _ => None,
        };
        let lanes: Option<Vec<Scaling>> = cells.iter().enumerate().map(scaling).collect();
        let lanes = lanes?;
        let all = |of: fn(&Scaling) -> f64| -> Vec<f64> { lanes.iter().map(of).collect() };
        let is_power = |x: f64| x.is_normal() && x.to_bits() << 12 == 0;
        let exact =
            |scaling: &Scaling| is_power(scaling.half_width) && is_power(1.0 / scaling.half_width);
        let inverse = lanes.iter().all(exact).then(|| all(|scaling| 1.0 / scaling.half_width));
        Some(Lanes {
            first,
            lo: all(|scaling| scaling.lo),
            hi: all(|scaling| scaling.hi),
            centre: all(|scaling| scaling.centre),
            half_width: all(|scaling| scaling.half_width),
            inverse,
            fill: all(|scaling| scaling.fill),
        })
    }

    /// Encodes the numbers of a row, where `scaled` divides by the half width. Returns false for a
    /// null row.
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
        // Not in chunks: the optimiser would interchange such loops and shuffle numbers.
        for k in 0..width {
            into[k] = encoded(numbers[k].into(), lo[k], hi[k], centre[k], |x| scaled(x, scale[k]));
        }
        // Missing numbers are rare, so the loop above has no branch for them.
        if !numbers.iter().fold(false, |found, x| found | (*x).into().is_nan()) {
            return true;
        }
        let missing = into.iter_mut().zip(fill).zip(numbers).filter(|(_, x)| (**x).into().is_nan());
        missing.for_each(|((into, fill), _)| *into = *fill);
        !into.iter().any(|x| x.is_nan())
    }
}
