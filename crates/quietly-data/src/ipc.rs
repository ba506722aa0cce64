//! Reads Arrow IPC files and streams.
use std::{
    fs::File,
    io::{BufReader, Read, Seek},
    path::Path,
    sync::{Arc, atomic::AtomicU64},
};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::{
    Error, Format, ipc_lengths,
    lenient_types::{PatchedReader, arrow_patches},
    panic_guard::catch_panic,
    text_chunks::CountingFile,
};

/// The batches of a file, in slices.
pub(crate) struct Batches {
    reader: Reader,
    /// The rest of the last batch.
    rest: Option<RecordBatch>,
    rows: usize,
}

type Reader = Box<dyn RecordBatchReader<Item = Result<RecordBatch, ArrowError>> + Send>;

/// The columns of a file and their types.
pub(crate) fn open(path: &Path) -> Result<(Vec<String>, Vec<DataType>), Error> {
    let unreadable = |e| Error::unreadable(path, &e);
    let mut file = File::open(path).map_err(unreadable)?;
    let fits =
        catch_panic(|| ipc_lengths::fit(&mut file)).unwrap_or(Ok(false)).map_err(unreadable)?;
    if !fits {
        return Err(damaged(path));
    }
    let schema: SchemaRef = reader(path, None)?.0.schema();
    Ok(schema.fields().iter().map(|f| (f.name().clone(), f.data_type().clone())).unzip())
}

fn damaged(path: &Path) -> Error {
    Error::Damaged { path: path.into(), format: Format::Ipc }
}

fn reader(path: &Path, used: Option<Vec<usize>>) -> Result<(Reader, Arc<AtomicU64>), Error> {
    let unreadable = |e| Error::unreadable(path, &e);
    let mut file = File::open(path).map_err(unreadable)?;
    let mut magic = Vec::new();
    Read::by_ref(&mut file).take(6).read_to_end(&mut magic).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let changes = catch_panic(|| arrow_patches(&mut file)).unwrap_or(Ok(vec![]));
    let changes = changes.map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let (counted, count) = CountingFile::new(file);
    let buffered = BufReader::with_capacity(1 << 17, PatchedReader::new(counted, changes));
    let open = || -> Result<Reader, ArrowError> {
        Ok(match magic == b"ARROW1" {
            true => Box::new(FileReader::try_new(buffered, used)?),
            false => Box::new(StreamReader::try_new(buffered, used)?),
        })
    };
    match catch_panic(open) {
        Some(Ok(reader)) => Ok((reader, count)),
        _ => Err(damaged(path)),
    }
}

impl Batches {
    pub(crate) fn new(
        path: &Path,
        used: Vec<usize>,
        rows: usize,
    ) -> Result<(Self, Arc<AtomicU64>), Error> {
        let (reader, count) = reader(path, Some(used))?;
        Ok((Batches { reader, rest: None, rows }, count))
    }

    /// The next rows, at most `self.rows`. An error if the file is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>, ()> {
        loop {
            let Some(batch) = self.rest.take() else {
                match catch_panic(|| self.reader.next()) {
                    Some(Some(Ok(batch))) => self.rest = Some(batch),
                    Some(None) => return Ok(None),
                    Some(Some(Err(_))) | None => return Err(()),
                }
                continue;
            };
            if batch.num_rows() > self.rows {
                self.rest = Some(batch.slice(self.rows, batch.num_rows() - self.rows));
            }
            if batch.num_rows() > 0 {
                return Ok(Some(batch.slice(0, self.rows.min(batch.num_rows()))));
            }
        }
    }
}
