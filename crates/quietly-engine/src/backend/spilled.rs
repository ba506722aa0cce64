//! Rows on disk, grouped by step: how a table larger than memory is read once.
//!
//! The files have no name: they are removed as soon as they are made, so that nothing is left behind
//! whatever ends the process.
use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    ops::ControlFlow,
};

use quietly_core::batch_sampling::BatchDraw;
use quietly_data::{Block, Encoding, Private, Source, Table};

use super::{Backend, Batch, check_groups};
use crate::{
    error::Error,
    query::{Cache, Dataset, Query, QuerySum, Rows},
};

/// Bytes gathered for a step before they are written.
const GATHERED: usize = 1 << 18;
/// Bytes read back at a time.
const BACK: usize = 1 << 24;

/// The rows of every step, on disk.
pub struct Spilled {
    files: Private<Files>,
    steps: usize,
    threads: usize,
}

struct Files {
    width: usize,
    steps: Vec<Step>,
    /// Null records among them.
    records: u64,
}

struct Step {
    file: File,
    gathered: Vec<u8>,
}

/// Whether files can be made where rows are kept for a while. Nothing stays behind.
pub fn probe() -> Result<(), Error> {
    tempfile::tempfile().map(drop).map_err(failed)
}

fn failed(error: io::Error) -> Error {
    Error::File {
        path: std::env::temp_dir().display().to_string(),
        why: format!("{error}; rows are kept there for a while: set TMPDIR to where there is room"),
    }
}

impl Spilled {
    /// Reads a table once, and gives each record to the step that it is drawn for. Null records have steps, too,
    /// but are not kept.
    ///
    /// `watch` is told how many bytes of the table have been read.
    pub fn new(
        source: &Source,
        encoding: &Encoding,
        draw: &BatchDraw,
        threads: usize,
        watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        let step = |_| {
            let file = tempfile::tempfile().map_err(failed)?;
            Ok(Step { file, gathered: Vec::with_capacity(GATHERED + 4096) })
        };
        let steps: Vec<Step> =
            (0..draw.groups().unwrap_or(1)).map(step).collect::<Result<_, Error>>()?;
        let (count, width) = (steps.len(), encoding.width());
        let mut files = Files { width, steps, records: 0 };
        let mut steps = draw.assignments(0);
        let (mut trouble, mut stopped) = (None, false);
        source.blocks(&encoding.keeping_null_rows(), threads, &mut |block: &Block| {
            let rows = block.features.chunks_exact(block.width).zip(&block.target);
            for ((row, y), step) in rows.zip(&mut steps) {
                files.records += 1;
                if y.is_nan() {
                    continue;
                }
                if let Err(error) = files.add(step, row, *y) {
                    trouble = Some(error);
                    return ControlFlow::Break(());
                }
            }
            let on = watch(block.position);
            stopped = on.is_break();
            on
        })?;
        if stopped {
            return Err(Error::Interrupted);
        }
        trouble.map_or(Ok(()), Err).and_then(|()| files.flush()).map_err(failed)?;
        Ok(Spilled { files: Private::new(files), steps: count, threads })
    }
}

impl Backend for Spilled {
    fn begin(&mut self, draw: &BatchDraw) -> Result<(), Error> {
        check_groups(draw, self.steps)
    }

    fn sum(&mut self, batch: &Batch, query: &dyn Query) -> Result<QuerySum, Error> {
        let failed = |e: io::Error| Error::File {
            path: std::env::temp_dir().display().to_string(),
            why: format!("{e}; rows that were kept there cannot be read back"),
        };
        let (threads, mut totals) = (self.threads, query.zeros());
        let read = self.files.as_mut().map(|files| {
            for step in batch.groups(files.steps.len()) {
                files.rows(step, &mut |table| {
                    let rows = Rows::all(Dataset::Dense(table), 0, threads);
                    query.add(&rows, &mut Cache::once(), &mut totals);
                })?;
            }
            Ok::<_, io::Error>(totals)
        });
        Ok(QuerySum::new(query, read.transpose().map_err(failed)?))
    }

    fn count(&mut self) -> Result<Private<u64>, Error> {
        Ok(self.files.as_ref().map(|files| files.records))
    }
}

impl Files {
    fn add(&mut self, step: usize, row: &[f64], target: f64) -> io::Result<()> {
        let step = &mut self.steps[step];
        row.iter().chain([&target]).for_each(|x| step.gathered.extend(x.to_le_bytes()));
        if step.gathered.len() >= GATHERED {
            step.file.write_all(&step.gathered)?;
            step.gathered.clear();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        for step in &mut self.steps {
            step.file.write_all(&step.gathered)?;
            step.gathered = Vec::new();
        }
        Ok(())
    }

    /// Shows the rows of a step to `each`, some at a time.
    fn rows(&mut self, step: usize, each: &mut dyn FnMut(&Table)) -> io::Result<()> {
        let numbers = self.width + 1;
        let file = &mut self.steps[step].file;
        file.rewind()?;
        let mut bytes = vec![0; (BACK / (8 * numbers)).max(1) * 8 * numbers];
        loop {
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read(&mut bytes[filled..])? {
                    0 => break,
                    more => filled += more,
                }
            }
            if filled == 0 {
                return Ok(());
            }
            let rows = filled / (8 * numbers);
            let mut features = Vec::with_capacity(rows * self.width);
            let mut target = Vec::with_capacity(rows);
            for row in bytes[..filled].chunks_exact(8 * numbers) {
                let number = |x: &[u8]| f64::from_le_bytes(x.try_into().expect("eight bytes"));
                features.extend(row[..8 * self.width].chunks_exact(8).map(number));
                target.push(number(&row[8 * self.width..]));
            }
            each(&Table::new(self.width, features, target));
        }
    }
}
