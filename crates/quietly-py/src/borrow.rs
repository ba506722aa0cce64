//! Memory of other libraries, borrowed without a copy: the one file with `unsafe`.
#![expect(unsafe_code, reason = "the buffer and Arrow protocols hand out pointers")]
use std::{ptr::NonNull, sync::Arc};

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, FixedSizeListArray, GenericListArray, OffsetSizeTrait,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StructArray,
    cast::AsArray,
    ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type},
    ffi_stream::FFI_ArrowArrayStream,
    types::{Float32Type, Float64Type, Int32Type, Int64Type},
};
use arrow_buffer::{ArrowNativeType, Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use pyo3::{
    buffer::{Element, PyBuffer},
    prelude::*,
    types::{PyCapsule, PyTuple},
};

use crate::errors::exception;

/// All batches of an object that speaks the Arrow stream protocol, and the names of its columns.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<(Vec<String>, Vec<RecordBatch>)> {
    let mut stream = Stream::of(object)?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next()? {
        batches.push(batch);
    }
    if batches.is_empty() {
        // A table without rows has columns all the same.
        batches.push(RecordBatch::new_empty(stream.schema.clone()));
    }
    Ok((stream.names(), batches))
}

// What Arrow complains about may quote cells, so none of it is passed on.
fn wrong<E>(_: E) -> PyErr {
    exception("DataError", "the Arrow stream cannot be read to its end", None)
}

/// An Arrow stream, read with types that every cell fits, as files are: texts as bytes, and nulls in every column. A cell that is not Unicode,
/// or a null where the stream promises none, then decides nothing.
pub(crate) struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

impl Stream {
    /// The stream of an object that hands one out.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let capsule = capsule.cast::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        // SAFETY: a capsule of this name holds a valid stream (the Arrow PyCapsule protocol); it is moved out, and the capsule's
        // own destructor then finds it released.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        let get_schema = stream.get_schema.ok_or(()).map_err(wrong)?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is valid and not yet released, and the schema is there to be written.
        if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
            return Err(wrong(()));
        }
        let schema = Schema::try_from(&schema).map_err(wrong)?;
        let fits_all = |field: &FieldRef| {
            let kind = bytes_for_texts(field.data_type());
            Field::new(field.name(), kind, true)
        };
        let fields: Vec<Field> = schema.fields().iter().map(fits_all).collect();
        Ok(Stream { stream, schema: Arc::new(Schema::new(fields)) })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn next(&mut self) -> PyResult<Option<RecordBatch>> {
        let get_next = self.stream.get_next.ok_or(()).map_err(wrong)?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is valid, and the array is there to be written.
        if unsafe { get_next(&mut self.stream, &mut array) } != 0 {
            return Err(wrong(()));
        }
        if array.is_released() {
            return Ok(None);
        }
        let kind = DataType::Struct(self.schema.fields().clone());
        // SAFETY: the array has the stream's types, and texts lie in memory as bytes do.
        let data = unsafe { from_ffi_and_data_type(array, kind) }.map_err(wrong)?;
        let rows = RecordBatchOptions::new().with_row_count(Some(data.len()));
        let columns = StructArray::from(data).into_parts().1;
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &rows);
        batch.map(Some).map_err(wrong)
    }
}

/// The type of bytes that lies in memory as a type of texts does; every other type as it is.
fn bytes_for_texts(kind: &DataType) -> DataType {
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), Box::new(bytes_for_texts(values)))
        }
        kind => kind.clone(),
    }
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
    // checked type and alignment. As everywhere in numpy, an array must not be written to while it is being read.
    let all = unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(Owner(buffer))) };
    ScalarBuffer::<T>::new(all, 0, count)
}

/// Keeps an array of Python where it is.
struct Owner<T: Element>(#[expect(dead_code, reason = "it is there to be dropped")] PyBuffer<T>);

// A panic of another reader leaves the buffer as it was: it is only read.
impl<T: Element> std::panic::RefUnwindSafe for Owner<T> {}
