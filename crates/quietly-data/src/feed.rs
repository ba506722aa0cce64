//! What is left to decode, in the order of the rows. One thread at a time takes a piece; all of
//! them decode.
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
    columns, csr, csv,
    damage::guarded,
    ipc::Batches,
    libsvm,
    memory::{self, Slices},
    parquet::{Group, Groups, Step},
    plan::Plan,
    source::{Input, Layout},
    text::{self, Pieces},
};

/// Text is cut into pieces of this size, or less if its rows grow much wider when encoded.
const TEXT: usize = 1 << 20;
/// Batches of columns grow to about this size when encoded.
const BATCH: usize = 4 << 20;
/// A Parquet row group up to this size, encoded, is decoded whole.
const SMALL: usize = 24 << 20;

pub(crate) struct Feed<'a> {
    plan: &'a Plan,
    inputs: std::slice::Iter<'a, Input>,
    current: Option<(&'a Input, Reader)>,
    /// The bytes of the files before the current one.
    before: u64,
    /// Parquet row groups up to this size, encoded, are decoded whole.
    small: usize,
}

enum Reader {
    Text(Pieces, Arc<AtomicU64>),
    Parquet(Groups),
    Ipc(Batches, Arc<AtomicU64>),
    Memory(Slices),
}

/// Something to decode.
pub(crate) struct Piece<'a> {
    input: &'a Input,
    what: What,
    position: u64,
    /// About how much memory the rows may take.
    pub(crate) cost: usize,
}

enum What {
    /// This many bytes of the buffer.
    Text(usize),
    Batch(RecordBatch),
    Group(Group),
}

impl<'a> Feed<'a> {
    pub(crate) fn new(plan: &'a Plan, inputs: &'a [Input]) -> Self {
        Feed { plan, inputs: inputs.iter(), current: None, before: 0, small: SMALL }
    }

    /// The same in small pieces only, which stay in the cache.
    pub(crate) fn in_batches(plan: &'a Plan, inputs: &'a [Input]) -> Self {
        Feed { small: 0, ..Feed::new(plan, inputs) }
    }

    /// Takes the next piece. The bytes of a text go to `buffer`.
    pub(crate) fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Piece<'a>>, Error> {
        loop {
            let Some((input, reader)) = &mut self.current else {
                let Some(input) = self.inputs.next() else { return Ok(None) };
                self.current = Some((input, Reader::new(input, self.plan, self.small)?));
                continue;
            };
            let row = 8 * (self.plan.width + 1);
            let columns = self.plan.cells.len();
            let found = match reader {
                Reader::Text(pieces, count) => {
                    let length = pieces.next(buffer).map_err(|e| failed(input, &e))?;
                    let read = count.load(Ordering::Relaxed);
                    let cost = match input.layout {
                        Layout::Libsvm if self.plan.thin() => 4 * length,
                        // Lines may be much shorter than their rows.
                        Layout::Libsvm => {
                            (memchr2_iter(b'\n', b'\r', &buffer[..length]).count() + 1) * row
                        }
                        _ => length / columns * row,
                    };
                    (length > 0).then_some((What::Text(length), read, cost))
                }
                Reader::Parquet(groups) => {
                    let step = groups.next().map_err(|()| damaged(input))?;
                    step.map(|(step, rows, read)| {
                        let what = match step {
                            Step::Batch(batch) => What::Batch(batch),
                            Step::Group(group) => What::Group(group),
                        };
                        (what, read, rows as usize * row)
                    })
                }
                Reader::Ipc(batches, count) => {
                    let batch = batches.next().map_err(|()| damaged(input))?;
                    let read = count.load(Ordering::Relaxed);
                    batch
                        .map(|batch| (batch.num_rows() * row, batch))
                        .map(|(cost, batch)| (What::Batch(batch), read, cost))
                }
                Reader::Memory(slices) => {
                    let Layout::Memory(memory) = &input.layout else {
                        unreachable!("its own reader")
                    };
                    let batch = slices.next(memory);
                    batch.map(|batch| {
                        let cost = batch.num_rows() * row;
                        (What::Batch(batch), slices.read, cost)
                    })
                }
            };
            if let Some((what, read, cost)) = found {
                let position = self.before + read.min(input.bytes);
                return Ok(Some(Piece { input, what, position, cost }));
            }
            self.before += input.bytes;
            self.current = None;
        }
    }
}

impl Reader {
    fn new(input: &Input, plan: &Plan, small: usize) -> Result<Self, Error> {
        let path: &Path = &input.path;
        let unreadable = |e: io::Error| failed(input, &e);
        let columns = plan.cells.len();
        let size = (TEXT / plan.width.max(1)).saturating_mul(columns).clamp(1 << 12, TEXT);
        let rows = (BATCH / 8 / plan.width).clamp(64, 1 << 13);
        match &input.layout {
            &Layout::Csv { delimiter, start } => {
                let (reader, count) = text::open(path).map_err(unreadable)?;
                // One field too many.
                let mut broken = vec![delimiter; columns];
                broken.push(b'\n');
                let mut pieces = Pieces::new(reader, size, Some(delimiter), broken);
                pieces.skip(start).map_err(unreadable)?;
                Ok(Reader::Text(pieces, count))
            }
            Layout::Libsvm => {
                let (reader, count) = text::open_by_name(path).map_err(unreadable)?;
                let width = if plan.thin() { 1 } else { plan.width };
                let size = (TEXT / width).clamp(1 << 12, TEXT);
                Ok(Reader::Text(Pieces::new(reader, size, None, b"0 ?\n".to_vec()), count))
            }
            Layout::Parquet { groups, .. } => {
                let small = (small / 8 / plan.width) as u64;
                Ok(Reader::Parquet(Groups::new(path, groups.as_deref(), plan.used(), rows, small)?))
            }
            Layout::Ipc(_) => {
                let (batches, count) = Batches::new(path, plan.used(), rows)?;
                Ok(Reader::Ipc(batches, count))
            }
            Layout::Memory(_) => Ok(Reader::Memory(Slices::new(rows))),
        }
    }
}

impl Piece<'_> {
    /// Encodes rows that came without their zeros, as libsvm text does; false if this is something else.
    pub(crate) fn decode_thin(&self, buffer: &[u8], plan: &Plan, rows: &mut Sparse) -> bool {
        match (&self.what, &self.input.layout) {
            (What::Text(length), Layout::Libsvm) if plan.thin() => {
                libsvm::decode_thin(&buffer[..*length], plan, rows);
                true
            }
            (What::Batch(batch), Layout::Memory(memory)) if memory.sparse && plan.thin() => {
                csr::decode_thin(batch, plan, rows);
                true
            }
            _ => false,
        }
    }

    /// Encodes the rows of this piece into `block`. Only a damaged file can fail, never a row.
    pub(crate) fn decode(
        &self,
        buffer: &[u8],
        plan: &Plan,
        used: &[usize],
        block: &mut Block,
    ) -> Result<(), Error> {
        block.restart(plan.width, self.position);
        match (&self.what, &self.input.layout) {
            (What::Text(length), Layout::Csv { delimiter, .. }) => {
                csv::decode(&buffer[..*length], *delimiter, plan, block);
            }
            (What::Text(length), _) => libsvm::decode(&buffer[..*length], plan, block),
            (What::Batch(batch), Layout::Memory(_)) => memory::decode(batch, plan, block),
            (What::Batch(batch), _) => {
                let decoded = guarded(|| columns::decode(batch, used, plan, block));
                return decoded.ok_or_else(|| damaged(self.input));
            }
            (What::Group(group), _) => {
                let decoded = guarded(|| group.decode(plan, block));
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

/// Why a text could not be read: what gzip complains about is damage.
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
