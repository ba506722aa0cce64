//! Decodes Arrow columns to rows.
use arrow_array::{
    Array, ArrowPrimitiveType, RecordBatch,
    cast::AsArray,
    types::{
        Decimal32Type, Decimal64Type, Decimal128Type, Float16Type, Float32Type, Float64Type,
        Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::DataType;

use crate::{
    Notation,
    block::Block,
    column_decoder::{ColumnDecoder, DenseRow, RowDecoder, number_or_nan},
};

/// Numbers that are transposed at a time, so that they stay in the L1 cache.
const TILE: usize = 3 << 10;

/// Whether cells of this type can be decoded.
pub(crate) fn readable(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        Dictionary(_, values) => readable(values),
        Decimal32(..) | Decimal64(..) | Decimal128(..) => true,
        Null | Boolean | Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => true,
        Float16 | Float32 | Float64 => true,
        other => other.is_integer(),
    }
}

/// A type in plain words. Its Arrow name may contain names of nested columns, which are not public.
pub(crate) fn kind(data_type: &DataType) -> &'static str {
    use DataType::*;
    match data_type {
        // Text in files is read as bytes.
        Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => "text",
        Boolean => "true or false",
        Dictionary(_, values) => kind(values),
        numeric if numeric.is_numeric() => "a number",
        Timestamp(..) | Date32 | Date64 => "a date or time",
        Time32(_) | Time64(_) | Duration(_) | Interval(_) => "a time",
        List(_) | LargeList(_) | FixedSizeList(..) | ListView(_) | LargeListView(_) => "a list",
        Struct(_) => "a structure",
        Map(..) => "a map",
        Decimal256(..) => "a decimal of 256 bits",
        FixedSizeBinary(_) => "bytes of a fixed length",
        _ => "of another type",
    }
}

/// Decodes a batch that holds the columns `used` of the table.
pub(crate) fn decode(batch: &RecordBatch, used: &[usize], decoder: &RowDecoder, block: &mut Block) {
    in_tiles(batch.num_rows(), decoder, block, |tile, start, count| {
        for (column, index) in batch.columns().iter().zip(used) {
            tile.fill(&column.slice(start, count), &decoder.cells[*index]);
        }
    });
}

/// Adds `rows` rows to a block, tile by tile. `fill` gets the first row of a tile and its size.
pub(crate) fn in_tiles(
    rows: usize,
    decoder: &RowDecoder,
    block: &mut Block,
    fill: impl Fn(&mut Tile<'_>, usize, usize),
) {
    let width = decoder.width;
    block.reserve(rows);
    let step = (TILE / width).clamp(64, 1024);
    let mut all_kept = vec![true; step.min(rows)];
    for start in (0..rows).step_by(step) {
        let count = step.min(rows - start);
        let kept = &mut all_kept[..count];
        kept.fill(true);
        let (features, target) = block.grow(count);
        fill(&mut Tile { width, features, target, kept }, start, count);
        if all_kept[..count].contains(&false) {
            block.retain_last(&all_kept[..count], decoder.nulls);
        }
    }
}

/// A few rows that are filled column by column.
pub(crate) struct Tile<'a> {
    pub(crate) width: usize,
    pub(crate) features: &'a mut [f64],
    pub(crate) target: &'a mut [f64],
    pub(crate) kept: &'a mut [bool],
}

impl Tile<'_> {
    pub(crate) fn fill(&mut self, column: &dyn Array, cell: &ColumnDecoder) {
        match column.data_type() {
            DataType::Float64 => self.numbers::<Float64Type>(column, cell, |x| x),
            DataType::Float32 => self.numbers::<Float32Type>(column, cell, f64::from),
            DataType::Float16 => self.numbers::<Float16Type>(column, cell, |x| x.to_f64()),
            DataType::Int8 => self.numbers::<Int8Type>(column, cell, f64::from),
            DataType::Int16 => self.numbers::<Int16Type>(column, cell, f64::from),
            DataType::Int32 => self.numbers::<Int32Type>(column, cell, f64::from),
            DataType::Int64 => self.numbers::<Int64Type>(column, cell, |x| x as f64),
            DataType::UInt8 => self.numbers::<UInt8Type>(column, cell, f64::from),
            DataType::UInt16 => self.numbers::<UInt16Type>(column, cell, f64::from),
            DataType::UInt32 => self.numbers::<UInt32Type>(column, cell, f64::from),
            DataType::UInt64 => self.numbers::<UInt64Type>(column, cell, |x| x as f64),
            DataType::Decimal32(_, scale) => {
                self.numbers::<Decimal32Type>(column, cell, |x| decimal(x, *scale));
            }
            DataType::Decimal64(_, scale) => {
                self.numbers::<Decimal64Type>(column, cell, |x| decimal(x, *scale));
            }
            DataType::Decimal128(_, scale) => {
                self.numbers::<Decimal128Type>(column, cell, |x| decimal(x, *scale));
            }
            DataType::Boolean => {
                let word = |b| if b { "true" } else { "false" };
                self.texts(column.as_boolean().iter().map(|b| b.map(word)), cell);
            }
            DataType::Utf8 => self.texts(column.as_string::<i32>().iter(), cell),
            DataType::LargeUtf8 => self.texts(column.as_string::<i64>().iter(), cell),
            DataType::Utf8View => self.texts(column.as_string_view().iter(), cell),
            DataType::Binary => self.texts(column.as_binary::<i32>().iter(), cell),
            DataType::LargeBinary => self.texts(column.as_binary::<i64>().iter(), cell),
            DataType::BinaryView => self.texts(column.as_binary_view().iter(), cell),
            DataType::Dictionary(..) => {
                let dictionary = column.as_any_dictionary();
                match arrow_select::take::take(dictionary.values(), dictionary.keys(), None) {
                    Ok(plain) => self.fill(&plain, cell),
                    Err(_) => self.texts(self.kept.to_vec().iter().map(|_| None::<&str>), cell),
                }
            }
            // A column of nulls. Other types were refused when the file was opened.
            _ => self.texts(self.kept.to_vec().iter().map(|_| None::<&str>), cell),
        }
    }

    fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        column: &dyn Array,
        cell: &ColumnDecoder,
        number: impl Fn(T::Native) -> f64,
    ) {
        let column = column.as_primitive::<T>();
        let width = self.width;
        match (cell, column.nulls().filter(|nulls| nulls.null_count() > 0)) {
            // A separate loop for the common case.
            (ColumnDecoder::Number(place), None) => {
                let features = self.features.chunks_exact_mut(width);
                for ((row, kept), x) in features.zip(&mut *self.kept).zip(column.values()) {
                    match place.encode(number(*x)) {
                        Some(encoded) => row[place.slot] = encoded,
                        None => *kept = false,
                    }
                }
            }
            (_, nulls) => {
                let rows = self.features.chunks_exact_mut(width).zip(&mut *self.target);
                let all = rows.zip(&mut *self.kept).zip(column.values());
                for (i, (((features, target), kept), x)) in all.enumerate() {
                    let null = nulls.is_some_and(|nulls| nulls.is_null(i));
                    let x = if null { f64::NAN } else { number(*x) };
                    *kept &= cell.number(x, &mut DenseRow { features, target });
                }
            }
        }
    }

    fn texts<T: AsRef<[u8]>>(
        &mut self,
        texts: impl Iterator<Item = Option<T>>,
        cell: &ColumnDecoder,
    ) {
        let rows = self.features.chunks_exact_mut(self.width).zip(&mut *self.target);
        for (((features, target), kept), text) in rows.zip(&mut *self.kept).zip(texts) {
            let row = &mut DenseRow { features, target };
            *kept &= match text {
                Some(text) => cell.text(text.as_ref(), row),
                None => cell.number(f64::NAN, row),
            };
        }
    }
}

/// `x` · 10^-`scale`, rounded once.
fn decimal(x: impl std::fmt::Display, scale: i8) -> f64 {
    number_or_nan(format!("{x}e{}", -i32::from(scale)).as_bytes(), Notation::default())
}
