//! Sparse rows in memory: a column of lists of (index, value), as in scipy's CSR matrices. An index
//! that is not listed means 0, which is a value like any other.
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, OffsetSizeTrait, RecordBatch,
    cast::AsArray,
    types::{Float32Type, Float64Type, Int32Type, Int64Type},
};
use arrow_schema::DataType;

use crate::{
    Sparse,
    column_decoder::{ColumnDecoder, DenseRow, RowDecoder, RowWriter},
    columns::Tile,
    encoding::NullRows,
    memory,
    sparse::SparseRow,
};

/// The most numbers that are held while the columns beside the sparse one are transposed.
const TILE: usize = 1 << 18;

/// The type of the values, if this is the type of a sparse column.
pub(crate) fn values(field: &DataType) -> Option<DataType> {
    let (DataType::List(item) | DataType::LargeList(item)) = field else { return None };
    let DataType::Struct(pair) = item.data_type() else { return None };
    let [index, value] = &pair[..] else { return None };
    let index = matches!(index.data_type(), DataType::Int32 | DataType::Int64);
    let value = value.data_type();
    let fine = index && matches!(value, DataType::Float32 | DataType::Float64);
    fine.then(|| value.clone())
}

/// Calls `each` with every row of a column: its number, and its pairs of index and value in order.
fn rows(column: &ArrayRef, each: impl FnMut(usize, &mut dyn Iterator<Item = (usize, f64)>)) {
    match column.data_type() {
        DataType::List(_) => with_offsets::<i32>(column, each),
        _ => with_offsets::<i64>(column, each),
    }
}

fn with_offsets<O: OffsetSizeTrait>(
    column: &ArrayRef,
    each: impl FnMut(usize, &mut dyn Iterator<Item = (usize, f64)>),
) {
    let list = column.as_list::<O>();
    let pairs = list.values().as_struct();
    let offsets = list.value_offsets();
    match (pairs.column(0).data_type(), pairs.column(1).data_type()) {
        (DataType::Int32, DataType::Float32) => {
            walk::<O, Int32Type, Float32Type>(
                offsets,
                pairs.columns(),
                each,
                |i| i.into(),
                |x| x.into(),
            );
        }
        (DataType::Int32, _) => {
            walk::<O, Int32Type, Float64Type>(offsets, pairs.columns(), each, |i| i.into(), |x| x);
        }
        (_, DataType::Float32) => {
            walk::<O, Int64Type, Float32Type>(offsets, pairs.columns(), each, |i| i, |x| x.into());
        }
        _ => walk::<O, Int64Type, Float64Type>(offsets, pairs.columns(), each, |i| i, |x| x),
    }
}

fn walk<O: OffsetSizeTrait, I: ArrowPrimitiveType, V: ArrowPrimitiveType>(
    offsets: &[O],
    pairs: &[ArrayRef],
    mut each: impl FnMut(usize, &mut dyn Iterator<Item = (usize, f64)>),
    place: impl Fn(I::Native) -> i64,
    number: impl Fn(V::Native) -> f64,
) {
    let index = pairs[0].as_primitive::<I>().values();
    let values = pairs[1].as_primitive::<V>().values();
    for (row, ends) in offsets.windows(2).enumerate() {
        let range = ends[0].as_usize()..ends[1].as_usize();
        // A negative index is outside the table, like one that is too large.
        let places =
            index[range.clone()].iter().map(|i| usize::try_from(place(*i)).unwrap_or(usize::MAX));
        each(row, &mut places.zip(values[range].iter().map(|x| number(*x))));
    }
}

/// Fills a tile with the rows of a sparse column. Each row is made dense first, so that it equals
/// the row of a dense matrix bit for bit. Of two values with one index the last counts. A row with
/// an index outside the table cannot be read.
pub(crate) fn fill(
    tile: &mut Tile<'_>,
    column: &ArrayRef,
    cells: &[ColumnDecoder],
    nulls: NullRows,
) {
    let mut dense = vec![0.0; cells.len()];
    let mut touched = Vec::new();
    rows(column, |row, pairs| {
        let features = &mut tile.features[row * tile.width..(row + 1) * tile.width];
        let into = &mut DenseRow { features, target: &mut tile.target[row] };
        let mut readable = true;
        for (index, x) in pairs {
            match dense.get_mut(index) {
                Some(cell) => *cell = x,
                None => readable = false,
            }
            touched.push(index);
        }
        let kept = match readable {
            true => cells.iter().zip(&dense).all(|(cell, x)| cell.number(*x, into)),
            false => unreadable(cells, nulls, into),
        };
        tile.kept[row] &= kept;
        for index in touched.drain(..) {
            if let Some(cell) = dense.get_mut(index) {
                *cell = 0.0;
            }
        }
    });
}

/// Fills a row that cannot be read: all its cells are missing in prediction. Otherwise it is a null
/// row.
fn unreadable(cells: &[ColumnDecoder], nulls: NullRows, row: &mut impl RowWriter) -> bool {
    nulls == NullRows::Fill && cells.iter().all(|cell| cell.number(f64::NAN, row))
}

/// Decodes a batch with one sparse column to sparse rows. Cells that are not listed take no time.
/// They must be encoded as 0.
pub(crate) fn decode_sparse(batch: &RecordBatch, decoder: &RowDecoder, out: &mut Sparse) {
    let step = (TILE / decoder.width).clamp(1, 1024);
    let (mut features, mut target) = (vec![0.0; step * decoder.width], vec![0.0; step]);
    let (mut kept, mut sparse_row) = (vec![true; step], SparseRow::default());
    let widths = memory::widths(batch, decoder.cells.len());
    for start in (0..batch.num_rows()).step_by(step) {
        let count = step.min(batch.num_rows() - start);
        kept[..count].fill(true);
        target[..count].fill(0.0);
        let tile = &mut Tile {
            width: decoder.width,
            features: &mut features[..count * decoder.width],
            target: &mut target[..count],
            kept: &mut kept[..count],
        };
        let (mut rest, mut slots, mut sparse) = (&decoder.cells[..], Vec::new(), None);
        for (column, width) in batch.columns().iter().zip(&widths) {
            let (cells, after) = rest.split_at(*width);
            let part = column.slice(start, count);
            if values(part.data_type()).is_some() {
                sparse = Some((part, cells, decoder.cells.len() - rest.len()));
            } else {
                memory::fill_column(tile, &part, cells);
                slots.extend(cells.iter().flat_map(ColumnDecoder::slots));
            }
            rest = after;
        }
        let Some((column, cells, first)) = sparse else { return };
        let nulls =
            decoder.zero_row.null[first..first + cells.len()].iter().filter(|n| **n).count();
        let mut there = Vec::new();
        rows(&column, |row, pairs| {
            there.clear();
            there.extend(pairs);
            if !there.is_sorted_by(|a, b| a.0 < b.0) {
                there.reverse();
                there.sort_by_key(|(index, _)| *index);
                there.dedup_by_key(|(index, _)| *index);
            }
            let dense = &mut tile.features[row * tile.width..(row + 1) * tile.width];
            sparse_row.add(out, decoder.nulls, |into| {
                into.target(tile.target[row]);
                for slot in slots.iter().filter(|slot| dense[**slot] != 0.0) {
                    into.feature(*slot, dense[*slot]);
                }
                if there.last().is_some_and(|(index, _)| *index >= cells.len()) {
                    return unreadable(cells, decoder.nulls, into) && tile.kept[row];
                }
                let met =
                    there.iter().filter(|(index, _)| decoder.zero_row.null[first + index]).count();
                tile.kept[row]
                    && met == nulls
                    && there.iter().all(|(index, x)| cells[*index].number(*x, into))
            });
            for slot in &slots {
                dense[*slot] = 0.0;
            }
        });
    }
}
