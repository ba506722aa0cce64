//! A table: files, or columns that are in memory. It cannot be printed.
use std::{path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, LargeStringArray, RecordBatch};
use arrow_schema::{Field, Schema};
use pyo3::{
    prelude::*,
    types::{PyList, PyTuple},
};
use quietly::{Encoding, Key, ReadOptions, Source};

use crate::{
    borrow,
    errors::{exception, guard, raise},
    tune::split,
};

/// A private table.
#[pyclass(frozen, module = "quietly._quietly")]
pub(crate) struct Table {
    pub(crate) source: Source,
    rows: Option<usize>,
    /// Whether all types were declared, by files or Arrow: texts are no numbers then.
    typed: bool,
}

#[pymethods]
impl Table {
    /// Files that make one table.
    ///
    /// `names` are public names, of a schema or a model: a first line of CSV with none of them is a row of data. `header` insists
    /// that the first line has names.
    #[staticmethod]
    #[pyo3(signature = (paths, features=None, names=None, header=false))]
    fn open(
        paths: Vec<PathBuf>,
        features: Option<usize>,
        names: Option<Vec<String>>,
        header: bool,
    ) -> PyResult<Self> {
        let names = names.unwrap_or_default();
        let options = ReadOptions { features, header, names, ..ReadOptions::default() };
        guard(|| {
            let source = Source::open(&paths, &options).map_err(raise)?;
            Ok(Table { source, rows: None, typed: true })
        })
    }

    /// Parts side by side, each with its names: a matrix, a list of texts, the (starts, indices, values) of a sparse matrix, or
    /// (without names) an Arrow stream.
    #[staticmethod]
    fn of(parts: Vec<(Option<Vec<String>>, Bound<'_, PyAny>)>) -> PyResult<Self> {
        guard(|| Table::side_by_side(parts))
    }

    /// The names of the columns of an Arrow stream, of which nothing else is read.
    #[staticmethod]
    fn names(stream: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        guard(|| Ok(borrow::Stream::of(stream)?.names()))
    }

    /// Two tables, each row being in one of them by a coin of its own.
    #[pyo3(signature = (seed=None))]
    fn halves(&self, seed: Option<u64>) -> PyResult<(Self, Self)> {
        let key = seed.map_or_else(Key::from_os, |seed| Ok(Key::from_seed(seed)));
        let (first, second) = split(self, 0.5, &key.map_err(raise)?)?;
        let table = |source| Table { source, rows: None, typed: self.typed };
        Ok((table(first), table(second)))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.source.columns().to_vec()
    }

    /// How many rows there are, if that is known without reading.
    #[getter]
    fn rows(&self) -> Option<usize> {
        self.rows
    }
}

impl Table {
    /// Whether the columns have types that can be read and can hold what the schema says of them: types are public, and refused before a
    /// charge. Objects of Python may hold numbers, and are texts here: for them only the first is asked.
    pub(crate) fn check(
        &self,
        encoding: &Encoding,
        schema: &crate::schema::Schema,
    ) -> PyResult<()> {
        let schema = self.typed.then_some(&schema.inner);
        self.source.check(encoding, schema).map_err(raise)
    }

    fn side_by_side(parts: Vec<(Option<Vec<String>>, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let mut columns = Vec::new();
        let mut all = Vec::new();
        let typed = parts.iter().all(|(names, _)| names.is_none());
        for (names, data) in parts {
            let (names, batches) = match names {
                None => borrow::stream(&data)?,
                Some(names) => (names, vec![batch(arrays(&data)?)?]),
            };
            columns.extend(names);
            all.push(batches);
        }
        let (rows, batches) = side_by_side(&all)?;
        let source = Source::in_memory(columns, batches).map_err(raise)?;
        Ok(Table { source, rows: Some(rows), typed })
    }
}

fn arrays(data: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    match data.cast::<PyList>() {
        Ok(texts) => {
            let texts: Vec<Option<String>> = texts.extract()?;
            Ok(vec![Arc::new(LargeStringArray::from(texts))])
        }
        Err(_) => match data.cast::<PyTuple>() {
            Ok(parts) => Ok(vec![borrow::sparse(parts)?]),
            Err(_) => borrow::matrix(data),
        },
    }
}

fn batch(columns: Vec<ArrayRef>) -> PyResult<RecordBatch> {
    let field = |(k, column): (usize, &ArrayRef)| {
        Field::new(k.to_string(), column.data_type().clone(), true)
    };
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
    batch.map_err(|_| exception("DataError", "columns of one table have as many rows each", None))
}

/// One list of batches from several, cut wherever one of them is.
fn side_by_side(parts: &[Vec<RecordBatch>]) -> PyResult<(usize, Vec<RecordBatch>)> {
    let mut cuts = std::collections::BTreeSet::new();
    let mut totals = Vec::new();
    for part in parts {
        let mut total = 0;
        for batch in part {
            cuts.insert(total);
            total += batch.num_rows();
        }
        cuts.insert(total);
        totals.push(total);
    }
    let rows = totals.first().copied().unwrap_or(0);
    if totals.iter().any(|total| *total != rows) {
        let message = "X and y must have as many rows each, but one of them has more";
        return Err(exception("DataError", message, None));
    }
    let cuts: Vec<usize> = cuts.into_iter().collect();
    // Without rows there is one batch, of none: it says which columns there are.
    let spans: Vec<(usize, usize)> = match rows {
        0 => vec![(0, 0)],
        _ => cuts.windows(2).map(|cut| (cut[0], cut[1])).collect(),
    };
    let mut places = vec![(0, 0); parts.len()];
    let mut all = Vec::new();
    for (start, end) in spans {
        let mut columns = Vec::new();
        for (part, (next, before)) in parts.iter().zip(&mut places) {
            while *next + 1 < part.len() && *before + part[*next].num_rows() <= start {
                *before += part[*next].num_rows();
                *next += 1;
            }
            if let Some(batch) = part.get(*next) {
                columns.extend(batch.slice(start - *before, end - start).columns().to_vec());
            }
        }
        all.push(batch(columns)?);
    }
    Ok((rows, all))
}
