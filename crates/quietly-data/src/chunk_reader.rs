//! Reads files in chunks, in the order of the rows. One thread at a time reads a chunk. All threads
//! decode.
use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use memchr::memchr2_iter;

use crate::{
    Error, Format, Sparse,
    block::Block,
    column_decoder::RowDecoder,
    columns, csr, csv,
    ipc::Batches,
    libsvm,
    memory::{self, Slices},
    panic_guard::catch_panic,
    parquet::{RowGroup, RowGroups, Step},
    source::{Input, Layout},
    text_chunks::{self, TextChunks},
};

/// The bytes of a chunk of text. It is less if encoded rows are much longer than their text.
const TEXT: usize = 1 << 20;
/// The approximate bytes of a batch of columns, encoded.
const BATCH: usize = 4 << 20;
/// A Parquet row group of at most this many bytes, encoded, is decoded whole.
const SMALL: usize = 24 << 20;

pub(crate) struct ChunkReader<'a> {
    decoder: &'a RowDecoder,
    inputs: std::slice::Iter<'a, Input>,
    current: Option<(&'a Input, Reader)>,
    /// The bytes of all files before the current one.
    before: u64,
    /// Parquet row groups of at most this many bytes, encoded, are decoded whole.
    small: usize,
}

enum Reader {
    Text(TextChunks, Arc<AtomicU64>),
    Parquet(RowGroups),
    Ipc(Batches, Arc<AtomicU64>),
    Memory(Slices),
}

/// A chunk that was read, to be decoded.
pub(crate) struct Chunk<'a> {
    input: &'a Input,
    content: Content,
    position: u64,
    /// About how many bytes the decoded rows take.
    pub(crate) cost: usize,
}

enum Content {
    /// The first bytes of the buffer, so many.
    Text(usize),
    Batch(RecordBatch),
    RowGroup(RowGroup),
}

impl<'a> ChunkReader<'a> {
    pub(crate) fn new(decoder: &'a RowDecoder, inputs: &'a [Input]) -> Self {
        ChunkReader { decoder, inputs: inputs.iter(), current: None, before: 0, small: SMALL }
    }

    /// Reads small chunks only, which stay in the cache.
    pub(crate) fn in_batches(decoder: &'a RowDecoder, inputs: &'a [Input]) -> Self {
        ChunkReader { small: 0, ..ChunkReader::new(decoder, inputs) }
    }

    /// Reads the next chunk. The bytes of a text go to `buffer`.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Chunk<'a>>, Error> {
        loop {
            let Some((input, reader)) = &mut self.current else {
                let Some(input) = self.inputs.next() else { return Ok(None) };
                self.current = Some((input, Reader::new(input, self.decoder, self.small)?));
                continue;
            };
            let row = 8 * (self.decoder.width + 1);
            let columns = self.decoder.cells.len();
            let found = match reader {
                Reader::Text(chunks, count) => {
                    let length = chunks.next(buffer).map_err(|e| failed(input, &e))?;
                    let read = count.load(Ordering::Relaxed);
                    let cost = match input.layout {
                        Layout::Libsvm if self.decoder.reads_sparse() => 4 * length,
                        // Lines may be much shorter than encoded rows.
                        Layout::Libsvm => {
                            (memchr2_iter(b'\n', b'\r', &buffer[..length]).count() + 1) * row
                        }
                        _ => length / columns * row,
                    };
                    (length > 0).then_some((Content::Text(length), read, cost))
                }
                Reader::Parquet(groups) => {
                    let step = groups.next().map_err(|()| damaged(input))?;
                    step.map(|(step, rows, read)| {
                        let content = match step {
                            Step::Batch(batch) => Content::Batch(batch),
                            Step::RowGroup(group) => Content::RowGroup(group),
                        };
                        (content, read, rows as usize * row)
                    })
                }
                Reader::Ipc(batches, count) => {
                    let batch = batches.next().map_err(|()| damaged(input))?;
                    let read = count.load(Ordering::Relaxed);
                    batch
                        .map(|batch| (batch.num_rows() * row, batch))
                        .map(|(cost, batch)| (Content::Batch(batch), read, cost))
                }
                Reader::Memory(slices) => {
                    let Layout::Memory(memory) = &input.layout else {
                        unreachable!("a reader of its own layout")
                    };
                    let batch = slices.next(memory);
                    batch.map(|batch| {
                        let cost = batch.num_rows() * row;
                        (Content::Batch(batch), slices.read, cost)
                    })
                }
            };
            if let Some((content, read, cost)) = found {
                let position = self.before + read.min(input.bytes);
                return Ok(Some(Chunk { input, content, position, cost }));
            }
            self.before += input.bytes;
            self.current = None;
        }
    }
}

impl Reader {
    fn new(input: &Input, decoder: &RowDecoder, small: usize) -> Result<Self, Error> {
        let path: &Path = &input.path;
        let unreadable = |e: io::Error| failed(input, &e);
        let columns = decoder.cells.len();
        let size = (TEXT / decoder.width.max(1)).saturating_mul(columns).clamp(1 << 12, TEXT);
        let rows = (BATCH / 8 / decoder.width).clamp(64, 1 << 13);
        match &input.layout {
            &Layout::Csv { delimiter, start } => {
                let (reader, count) = text_chunks::open(path).map_err(unreadable)?;
                // One field too many.
                let mut unreadable_row = vec![delimiter; columns];
                unreadable_row.push(b'\n');
                let mut chunks = TextChunks::new(reader, size, Some(delimiter), unreadable_row);
                chunks.skip(start).map_err(unreadable)?;
                Ok(Reader::Text(chunks, count))
            }
            Layout::Libsvm => {
                let (reader, count) = text_chunks::open_by_name(path).map_err(unreadable)?;
                let width = if decoder.reads_sparse() { 1 } else { decoder.width };
                let size = (TEXT / width).clamp(1 << 12, TEXT);
                Ok(Reader::Text(TextChunks::new(reader, size, None, b"0 ?\n".to_vec()), count))
            }
            Layout::Parquet { groups, .. } => {
                let small = (small / 8 / decoder.width) as u64;
                Ok(Reader::Parquet(RowGroups::new(
                    path,
                    groups.as_deref(),
                    decoder.used(),
                    rows,
                    small,
                )?))
            }
            Layout::Ipc(_) => {
                let (batches, count) = Batches::new(path, decoder.used(), rows)?;
                Ok(Reader::Ipc(batches, count))
            }
            Layout::Memory(_) => Ok(Reader::Memory(Slices::new(rows))),
        }
    }
}

impl Chunk<'_> {
    /// Decodes a sparse chunk to sparse rows. Returns false if the chunk is not sparse.
    pub(crate) fn decode_sparse(
        &self,
        buffer: &[u8],
        decoder: &RowDecoder,
        rows: &mut Sparse,
    ) -> bool {
        match (&self.content, &self.input.layout) {
            (Content::Text(length), Layout::Libsvm) if decoder.reads_sparse() => {
                libsvm::decode_sparse(&buffer[..*length], decoder, rows);
                true
            }
            (Content::Batch(batch), Layout::Memory(memory))
                if memory.sparse && decoder.reads_sparse() =>
            {
                csr::decode_sparse(batch, decoder, rows);
                true
            }
            _ => false,
        }
    }

    /// Decodes the rows of this chunk into `block`. Only a damaged file is an error, never a row.
    pub(crate) fn decode(
        &self,
        buffer: &[u8],
        decoder: &RowDecoder,
        used: &[usize],
        block: &mut Block,
    ) -> Result<(), Error> {
        block.restart(decoder.width, self.position);
        match (&self.content, &self.input.layout) {
            (Content::Text(length), Layout::Csv { delimiter, .. }) => {
                csv::decode(&buffer[..*length], *delimiter, decoder, block);
            }
            (Content::Text(length), _) => libsvm::decode(&buffer[..*length], decoder, block),
            (Content::Batch(batch), Layout::Memory(_)) => memory::decode(batch, decoder, block),
            (Content::Batch(batch), _) => {
                let decoded = catch_panic(|| columns::decode(batch, used, decoder, block));
                return decoded.ok_or_else(|| damaged(self.input));
            }
            (Content::RowGroup(group), _) => {
                let decoded = catch_panic(|| group.decode(decoder, block));
                return match decoded {
                    Some(Ok(())) => Ok(()),
                    _ => Err(damaged(self.input)),
                };
            }
        }
        Ok(())
    }
}

fn damaged(input: &Input) -> Error {
    Error::Damaged { path: input.path.clone(), format: input.layout.format() }
}

/// The error of a text that cannot be read. Errors of gzip mean that it is damaged.
pub(crate) fn failed(input: &Input, problem: &io::Error) -> Error {
    text_failed(&input.path, input.layout.format(), problem)
}

pub(crate) fn text_failed(path: &Path, format: Format, problem: &io::Error) -> Error {
    match problem.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::Damaged { path: path.into(), format }
        }
        _ => Error::unreadable(path, problem),
    }
}
