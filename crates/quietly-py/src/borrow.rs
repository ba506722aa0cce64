//! Memory of other libraries, borrowed without a copy: the one file with `unsafe`.
#![expect(unsafe_code, reason = "the buffer and Arrow protocols hand out pointers")]
use std::{ptr::NonNull, sync::Arc};

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, FixedSizeListArray, PrimitiveArray, RecordBatch,
    RecordBatchReader,
    ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream},
};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
use arrow_schema::Field;
use pyo3::{
    buffer::{Element, PyBuffer},
    prelude::*,
    types::PyCapsule,
};

use crate::errors::exception;

/// All batches of an object that speaks the Arrow stream protocol, and the names of its columns.
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<(Vec<String>, Vec<RecordBatch>)> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds a valid stream (the Arrow PyCapsule protocol); it is moved out, and the capsule's
    // own destructor then finds it released.
    let reader = unsafe {
        ArrowArrayStreamReader::from_raw(pointer.cast::<FFI_ArrowArrayStream>().as_ptr())
    };
    // What Arrow complains about may quote cells, so none of it is passed on.
    let wrong = |_| exception("DataError", "the Arrow stream cannot be read to its end", None);
    let reader = reader.map_err(wrong)?;
    let names = reader.schema().fields().iter().map(|f| f.name().clone()).collect();
    let batches: Result<Vec<RecordBatch>, _> = reader.collect();
    Ok((names, batches.map_err(wrong)?))
}

/// A matrix of 32 or 64 bit floating-point numbers, in C or Fortran order: one column of rows, or its columns.
pub(crate) fn matrix(object: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    use arrow_array::types::{Float32Type, Float64Type};
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
    let bytes = buffer.len_bytes();
    let start =
        NonNull::new(buffer.buf_ptr().cast::<u8>()).unwrap_or(NonNull::<T>::dangling().cast());
    // SAFETY: `buffer` holds these bytes and keeps them where they are for as long as the owner lives; `PyBuffer::get` has
    // checked type and alignment. As everywhere in numpy's world, nobody may write to an array while it is being read.
    let all = unsafe { Buffer::from_custom_allocation(start, bytes, Arc::new(Owner(buffer))) };
    let numbers = ScalarBuffer::<T>::new(all, 0, rows * width);
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

/// Keeps an array of Python where it is.
struct Owner<T: Element>(#[expect(dead_code, reason = "it is there to be dropped")] PyBuffer<T>);

// A buffer that somebody panicked over is as good as before: it is only read.
impl<T: Element> std::panic::RefUnwindSafe for Owner<T> {}
