//! Rows on disk, sorted by step: how a table larger than memory is read once.
//!
//! The files have no name: they are removed as soon as they are made, so that nothing is left behind
//! whatever ends the process.
use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    ops::ControlFlow,
};

use quietly_data::{Block, Encoding, Private, Source, Table};
use quietly_noise::Stream;

use crate::{error::Error, pass::Labels};

/// Bytes gathered for a step before they are written.
const GATHERED: usize = 1 << 18;
/// Bytes read back at a time.
const BACK: usize = 1 << 24;

/// The rows of every step.
pub(crate) struct Spill {
    width: usize,
    steps: Vec<Step>,
}

struct Step {
    file: File,
    gathered: Vec<u8>,
}

/// Whether files can be made where rows are kept for a while. Nothing stays behind.
pub(crate) fn probe() -> Result<(), Error> {
    tempfile::tempfile().map(drop).map_err(failed)
}

fn failed(error: io::Error) -> Error {
    Error::File {
        path: std::env::temp_dir().display().to_string(),
        why: format!("{error}; rows are kept there for a while: set TMPDIR to where there is room"),
    }
}

impl Spill {
    /// Reads a table once, and gives each record to one of `steps` steps, uniformly and on its own. Null records have steps, too,
    /// but are not kept.
    ///
    /// `watch` is told how many bytes of the table have been read.
    pub(crate) fn new(
        source: &Source,
        encoding: &Encoding,
        steps: usize,
        stream: &Stream,
        threads: usize,
        watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Private<Spill>, Error> {
        let step = |_| {
            let file = tempfile::tempfile().map_err(failed)?;
            Ok(Step { file, gathered: Vec::with_capacity(GATHERED + 4096) })
        };
        let steps: Vec<Step> = (0..steps).map(step).collect::<Result<_, Error>>()?;
        let mut spill = Spill { width: encoding.width(), steps };
        let mut labels = Labels::new(spill.steps.len());
        let (mut trouble, mut stopped) = (None, false);
        source.blocks(&encoding.keeping_places(), threads, &mut |block: &Block| {
            for (row, y) in block.features.chunks_exact(block.width).zip(&block.target) {
                let step = labels.next(stream);
                if y.is_nan() {
                    continue;
                }
                if let Err(error) = spill.add(step, row, *y) {
                    trouble = Some(error);
                    return ControlFlow::Break(());
                }
            }
            let on = watch(block.position);
            stopped = on.is_break();
            on
        })?;
        if stopped {
            return Err(Error::Stopped);
        }
        trouble.map_or(Ok(()), Err).and_then(|()| spill.flush()).map_err(failed)?;
        Ok(Private::new(spill))
    }

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

    /// Shows the rows of a step to `ask`, some at a time.
    pub(crate) fn ask<T>(
        spill: &mut Private<Spill>,
        step: usize,
        start: T,
        mut ask: impl FnMut(&mut T, &Table),
    ) -> Result<Private<T>, Error> {
        let failed = |e: io::Error| Error::File {
            path: std::env::temp_dir().display().to_string(),
            why: format!("{e}; rows that were kept there cannot be read back"),
        };
        let read = spill.as_mut().map(|spill| {
            let mut answer = start;
            spill.rows(step, &mut |table| ask(&mut answer, table)).map(|()| answer)
        });
        read.transpose().map_err(failed)
    }

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
