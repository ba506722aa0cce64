use std::{
    collections::HashSet,
    io::Read,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use arrow_schema::DataType;

use crate::{
    Encoding, Error, Format, Private, Table,
    block::Block,
    columns, csv,
    error::quoted,
    feed::{Feed, text_failed},
    format, ipc, libsvm,
    memory::Memory,
    parquet,
    plan::{Cell, Plan},
    stream, text,
};

/// How to open files, where the files do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The format of all files; by default that of their name, or else of their first bytes.
    pub format: Option<Format>,
    /// What separates the fields of CSV; by default one of `,`, `;`, tab and `|`.
    pub delimiter: Option<u8>,
    /// How many features libsvm text has: [`Schema::features`](crate::Schema::features).
    pub features: Option<usize>,
}

/// One or more files that hold one table, or a table in memory. Only headers have been read.
pub struct Source {
    inputs: Vec<Input>,
    columns: Vec<String>,
}

/// A file, and how to read it.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) layout: Layout,
}

/// What was found out about a file when it was opened.
pub(crate) enum Layout {
    /// Rows start after so many bytes, unpacked.
    Csv {
        delimiter: u8,
        start: u64,
    },
    Libsvm,
    /// These row groups, or all.
    Parquet {
        types: Vec<DataType>,
        groups: Option<Vec<usize>>,
    },
    Ipc(Vec<DataType>),
    Memory(Memory),
}

impl Layout {
    pub(crate) fn format(&self) -> Format {
        match self {
            Layout::Csv { .. } => Format::Csv,
            Layout::Libsvm => Format::Libsvm,
            Layout::Parquet { .. } => Format::Parquet,
            // Nothing in memory is damaged.
            Layout::Ipc(_) | Layout::Memory(_) => Format::Ipc,
        }
    }
}

impl Source {
    /// Opens files, folders, or patterns with a `*` in their last part, as one table in that order.
    /// Reads headers and footers only.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or has no usable header, or if the headers differ.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut inputs = Vec::new();
        let mut columns: Option<Vec<String>> = None;
        for path in paths {
            for file in format::files(path.as_ref())? {
                let (input, names) = Input::open(file, options)?;
                check_names(&input.path, &names)?;
                match (&columns, inputs.first()) {
                    (Some(first), Some(Input { path, .. })) if *first != names => {
                        let (first, second) = (path.clone(), input.path);
                        let difference = difference(columns.as_deref().unwrap_or(&[]), &names);
                        return Err(Error::DifferentColumns { first, second, difference });
                    }
                    _ => columns = Some(names),
                }
                inputs.push(input);
            }
        }
        match columns {
            Some(columns) => Ok(Source { inputs, columns }),
            None => Err(Error::NoFiles { place: "an empty list of paths".into() }),
        }
    }

    /// One input, which is there.
    pub(crate) fn of(input: Input, columns: Vec<String>) -> Self {
        Source { inputs: vec![input], columns }
    }

    pub(crate) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The names of the columns, in the order of the files.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The files, in order; none if the table is in memory.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let on_disk = |input: &&Input| !matches!(input.layout, Layout::Memory(_));
        self.inputs.iter().filter(on_disk).map(|input| input.path.as_path())
    }

    /// Whether the files leave zeros out, as libsvm text does, or the table in memory.
    pub fn is_sparse(&self) -> bool {
        self.inputs.iter().all(|input| match &input.layout {
            Layout::Memory(memory) => memory.sparse,
            layout => layout.format() == Format::Libsvm,
        })
    }

    /// The size of all files, or of the table in memory.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.bytes).sum()
    }

    /// Reads the whole table into memory. Zero threads means one for every core. The table does
    /// not depend on their number, nor on how its rows are split into files.
    ///
    /// # Errors
    ///
    /// If a column is not there or has a type that cannot be read, or if a file is damaged. No row
    /// can cause an error.
    pub fn read(&self, encoding: &Encoding, threads: usize) -> Result<Private<Table>, Error> {
        let mut table = Table::empty(encoding.width());
        self.blocks(encoding, threads, &mut |block| {
            table.append(block);
            ControlFlow::Continue(())
        })?;
        Ok(Private::new(table))
    }

    /// Hands the rows to `each` in order, block by block, while other threads decode ahead. Memory
    /// stays bounded whatever the size of the files (of Arrow IPC, one record batch is held).
    ///
    /// The sizes of blocks depend on the format and on the length of lines, so they are private
    /// like everything else about a block.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); blocks before the damage have been handed out by then.
    pub fn blocks(
        &self,
        encoding: &Encoding,
        threads: usize,
        each: &mut dyn FnMut(&Block) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.pieces(&Plan::new(encoding, &self.columns)?, threads, each)
    }

    /// Hands the rows to `each` in order, as small tables, all on this thread.
    ///
    /// # Errors
    ///
    /// As [`blocks`](Self::blocks).
    pub fn scan(
        &self,
        encoding: &Encoding,
        each: &mut dyn FnMut(&Table) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let plan = Plan::new(encoding, &self.columns)?;
        self.check_types(&plan)?;
        let (mut feed, used) = (Feed::in_batches(&plan, &self.inputs), plan.used());
        let (mut buffer, mut block) = (Vec::new(), Block::default());
        let mut table = Table::empty(plan.width);
        while let Some(piece) = feed.next(&mut buffer)? {
            piece.decode(&buffer, &plan, &used, &mut block)?;
            table.swap(&mut block);
            if each(&table).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn pieces<P: stream::Part>(
        &self,
        plan: &Plan,
        threads: usize,
        each: &mut dyn FnMut(&P) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.check_types(plan)?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = if threads == 0 { cores } else { threads };
        stream::run(Feed::new(plan, &self.inputs), plan, threads, each)
    }

    /// Refuses columns of types that cannot be read.
    pub(crate) fn check_types(&self, plan: &Plan) -> Result<(), Error> {
        self.inputs.iter().try_for_each(|input| input.check_types(plan, &self.columns))
    }
}

impl Input {
    fn open(path: PathBuf, options: &Options) -> Result<(Self, Vec<String>), Error> {
        let unreadable = |e| Error::unreadable(&path, &e);
        let bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
        if bytes == 0 {
            return Err(Error::NoHeader { path, got: "an empty file" });
        }
        let (mut reader, _) = text::open(&path).map_err(unreadable)?;
        let mut start = Vec::new();
        let problem = read_more(&mut reader, &mut start).err();
        let format = options.format.unwrap_or_else(|| Format::of_file(&path, &start));
        if let Some(problem) = problem {
            return Err(text_failed(&path, format, &problem));
        }
        let (layout, names) = match format {
            Format::Csv => csv_layout(&path, reader, start, options)?,
            Format::Libsvm => match options.features {
                Some(features) => (Layout::Libsvm, libsvm::columns(features)),
                None => return Err(Error::Features { path }),
            },
            Format::Parquet => {
                let (names, types) = parquet::open(&path)?;
                (Layout::Parquet { types, groups: None }, names)
            }
            Format::Ipc => {
                let (names, types) = ipc::open(&path)?;
                (Layout::Ipc(types), names)
            }
        };
        Ok((Input { path, bytes, layout }, names))
    }

    fn check_types(&self, plan: &Plan, names: &[String]) -> Result<(), Error> {
        let types = match &self.layout {
            Layout::Parquet { types, .. } | Layout::Ipc(types) => types,
            Layout::Memory(memory) => &memory.types,
            Layout::Csv { .. } | Layout::Libsvm => return Ok(()),
        };
        let cells = plan.cells.iter().zip(types).zip(names);
        let bad =
            cells.filter(|((cell, t), _)| !matches!(cell, Cell::Skip) && !columns::readable(t));
        let columns: Vec<String> = bad.map(|((_, t), name)| format!("{name:?} is {t}")).collect();
        if columns.is_empty() {
            return Ok(());
        }
        Err(Error::Types { path: self.path.clone(), columns })
    }
}

/// Reads up to 64 kB more.
fn read_more(reader: &mut dyn Read, start: &mut Vec<u8>) -> std::io::Result<usize> {
    reader.take(1 << 16).read_to_end(start)
}

fn csv_layout(
    path: &Path,
    mut reader: Box<dyn Read + Send>,
    mut start: Vec<u8>,
    options: &Options,
) -> Result<(Layout, Vec<String>), Error> {
    if let Some(delimiter) = options.delimiter.filter(|d| b"\"\r\n".contains(d)) {
        return Err(Error::Delimiter { delimiter: delimiter as char });
    }
    let (mut delimiter, mut end);
    loop {
        let skip = if start.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let blank = start[skip..].iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let text = &start[skip + blank..];
        // The delimiter says which quotes count; the first line says which delimiter.
        let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
        delimiter = options.delimiter.unwrap_or_else(|| csv::sniff(line));
        end = text::skip_record(text, 0, delimiter);
        let whole = end < text.len() || text.ends_with(b"\n");
        let read = if whole {
            0
        } else {
            read_more(&mut reader, &mut start).map_err(|e| text_failed(path, Format::Csv, &e))?
        };
        if read == 0 {
            end += skip + blank;
            let text = &start[skip + blank..end];
            let no_header = |got| Error::NoHeader { path: path.into(), got };
            if text.trim_ascii().is_empty() {
                return Err(no_header("only blank lines"));
            }
            // Some names of columns stand in brackets.
            let (first, next) = (text.first(), text[1..].trim_ascii_start().first());
            let inside = next.is_none_or(|next| b"\"{[".contains(next));
            if matches!(first, Some(b'{' | b'[')) && inside {
                return Err(no_header("what looks like JSON, which is not read"));
            }
            let names = csv::header(text, delimiter);
            // Names are told where something is wrong with them; cells must not be.
            let mut seen = HashSet::new();
            let mut twice = names.iter().filter(|name| !seen.insert(name.as_str()));
            if csv::is_data(&names) || twice.any(|name| name.trim().parse::<f64>().is_ok()) {
                return Err(no_header("numbers, which look like a row of data"));
            }
            return Ok((Layout::Csv { delimiter, start: end as u64 }, names));
        }
    }
}

pub(crate) fn check_names(path: &Path, names: &[String]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let twice: HashSet<&String> = names.iter().filter(|n| !seen.insert(*n)).collect();
    if twice.is_empty() {
        return Ok(());
    }
    let mut names: Vec<String> = twice.into_iter().cloned().collect();
    names.sort();
    Err(Error::DuplicateColumns { path: path.into(), names })
}

fn difference(first: &[String], second: &[String]) -> String {
    let only = |a: &[String], b: &[String]| -> Vec<String> {
        let b: HashSet<&String> = b.iter().collect();
        a.iter().filter(|name| !b.contains(name)).cloned().collect()
    };
    let parts = [("first", only(first, second)), ("second", only(second, first))];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(which, names)| format!("only the {which} has {}", quoted(names)))
        .collect();
    if parts.is_empty() {
        "they have the same columns in another order".into()
    } else {
        parts.join(", ")
    }
}
