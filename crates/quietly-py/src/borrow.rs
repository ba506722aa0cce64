//! Memory of other libraries, borrowed without a copy: the one file with `unsafe`.
#![expect(unsafe_code, reason = "the buffer and Arrow protocols hand out pointers")]
use std::{ptr::NonNull, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, RecordBatchReader, StructArray,
    cast::AsArray,
    ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream},
    types::{Float32Type, Float64Type, Int32Type, Int64Type},
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Fields};
use pyo3::{
    buffer::{Element, PyBuffer},
    prelude::*,
    types::{PyCapsule, PyTuple},
};

use crate::errors::exception;

/// All batches of an object that speaks the Arrow stream protocol, and the names of its columns.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<(Vec<String>, Vec<RecordBatch>)> {
    let reader = reader(object)?;
    let (names, schema) = (names(&reader), reader.schema());
    let batches: Result<Vec<RecordBatch>, _> = reader.collect();
    let mut batches = batches.map_err(wrong)?;
    if batches.is_empty() {
        // A table without rows has columns all the same.
        batches.push(RecordBatch::new_empty(schema));
    }
    Ok((names, batches))
}

/// The names of the columns of a stream.
pub(crate) fn names(reader: &ArrowArrayStreamReader) -> Vec<String> {
    reader.schema().fields().iter().map(|f| f.name().clone()).collect()
}

// What Arrow complains about may quote cells, so none of it is passed on.
fn wrong<E>(_: E) -> PyErr {
    exception("DataError", "the Arrow stream cannot be read to its end", None)
}

/// A stream of an object that hands one out.
pub(crate) fn reader(object: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds a valid stream (the Arrow PyCapsule protocol); it is moved out, and the capsule's
    // own destructor then finds it released.
    let reader = unsafe {
        ArrowArrayStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr())
    };
    reader.map_err(wrong)
}

/// A matrix of 32 or 64 bit floating-point numbers, in C or Fortran order: one column of rows, or its columns.
pub(crate) fn matrix(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    match PyBuffer::<f64>::get(object) {
        Ok(buffer) => arrays::<f64, Float64Type>(buffer),
        Err(_) => arrays::<f32, Float32Type>(PyBuffer::get(object)?),
    }
}

fn arrays<T, A>(buffer: PyBuffer<T>) -> PyResult<Vec<ArrayRef>>
where
    T: Element + ArrowNativeType,
    A: ArrowPrimitiveType<Native = T>,
{
    let shape = buffer.shape().to_vec();
    let (c, fortran) = (buffer.is_c_contiguous(), buffer.is_fortran_contiguous());
    let [rows, width] = shape[..] else {
        return Err(exception("DataError", "a table has two dimensions", None));
    };
    if !(c || fortran) {
        return Err(exception("DataError", "a matrix must lie in one piece", None));
    }
    let numbers = borrowed(buffer, rows * width);
    if c {
        let values: ArrayRef = Arc::new(PrimitiveArray::<A>::new(numbers, None));
        let item = Arc::new(Field::new("item", A::DATA_TYPE, true));
        let rows = FixedSizeListArray::try_new_with_length(item, width as i32, values, None, rows);
        let rows =
            rows.map_err(|_| exception("DataError", "a matrix has at most 2^31 columns", None))?;
        return Ok(vec![Arc::new(rows)]);
    }
    let column = |k: usize| -> ArrayRef {
        Arc::new(PrimitiveArray::<A>::new(numbers.slice(k * rows, rows), None))
    };
    Ok((0..width).map(column).collect())
}

/// Rows without their zeros: where each row starts, the columns of its values, and the values.
pub(crate) fn sparse(parts: &Bound<'_, PyTuple>) -> PyResult<ArrayRef> {
    let (starts, index, values): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
        parts.extract()?;
    let index = match PyBuffer::<i64>::get(&index) {
        Ok(buffer) => line::<i64, Int64Type>(buffer)?,
        Err(_) => line::<i32, Int32Type>(PyBuffer::get(&index)?)?,
    };
    let values = match PyBuffer::<f64>::get(&values) {
        Ok(buffer) => line::<f64, Float64Type>(buffer)?,
        Err(_) => line::<f32, Float32Type>(PyBuffer::get(&values)?)?,
    };
    let field = |name, array: &ArrayRef| Field::new(name, array.data_type().clone(), true);
    let fields = Fields::from(vec![field("index", &index), field("value", &values)]);
    let pairs = StructArray::try_new(fields, vec![index, values], None).map_err(no_rows)?;
    match PyBuffer::<i64>::get(&starts) {
        Ok(buffer) => lists::<i64, Int64Type>(buffer, pairs),
        Err(_) => lists::<i32, Int32Type>(PyBuffer::get(&starts)?, pairs),
    }
}

fn lists<O, A>(starts: PyBuffer<O>, pairs: StructArray) -> PyResult<ArrayRef>
where
    O: Element + OffsetSizeTrait,
    A: ArrowPrimitiveType<Native = O>,
{
    let starts = line::<O, A>(starts)?;
    let starts = starts.as_primitive::<A>().values().clone();
    let inside = starts.first().is_some_and(|first| *first >= O::zero());
    if !inside || !starts.is_sorted() {
        return Err(exception("DataError", NO_ROWS, None));
    }
    let item = Arc::new(Field::new("item", pairs.data_type().clone(), true));
    let rows = GenericListArray::try_new(item, OffsetBuffer::new(starts), Arc::new(pairs), None);
    Ok(Arc::new(rows.map_err(no_rows)?))
}

const NO_ROWS: &str = "the sparse matrix is not what scipy makes: its indptr, indices and data do not belong together";

fn no_rows<E>(_: E) -> PyErr {
    exception("DataError", NO_ROWS, None)
}

/// Numbers in one piece.
fn line<T, A>(buffer: PyBuffer<T>) -> PyResult<ArrayRef>
where
    T: Element + ArrowNativeType,
    A: ArrowPrimitiveType<Native = T>,
{
    if buffer.dimensions() != 1 || !buffer.is_c_contiguous() {
        return Err(exception("DataError", NO_ROWS, None));
    }
    let count = buffer.item_count();
    Ok(Arc::new(PrimitiveArray::<A>::new(borrowed(buffer, count), None)))
}

/// The numbers of a buffer that lies in one piece, where they are.
fn borrowed<T: Element + ArrowNativeType>(buffer: PyBuffer<T>, count: usize) -> ScalarBuffer<T> {
    let bytes = buffer.len_bytes();
    let start =
        NonNull::new(buffer.buf_ptr().cast::<u8>()).unwrap_or(NonNull::<T>::dangling().cast());
    // SAFETY: `buffer` holds these bytes and keeps them where they are for as long as the owner lives; `PyBuffer::get` has
    // checked type and alignment. As everywhere in numpy's world, nobody may write to an array while it is being read.
    let all = unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(Owner(buffer))) };
    ScalarBuffer::<T>::new(all, 0, count)
}

/// Keeps an array of Python where it is.
struct Owner<T: Element>(#[expect(dead_code, reason = "it is there to be dropped")] PyBuffer<T>);

// A buffer that somebody panicked over is as good as before: it is only read.
impl<T: Element> std::panic::RefUnwindSafe for Owner<T> {}
