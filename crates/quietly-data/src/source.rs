use std::{
    fs::File,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use arrow_schema::DataType;

use crate::{
    Encoding, Error, Format, Private, Schema, Table,
    block::Block,
    columns,
    feed::{Feed, text_failed},
    format,
    header::{self, check_names, difference},
    ipc, libsvm,
    memory::Memory,
    parquet,
    plan::{Cell, Plan},
    repeated,
    schema::MOST_COLUMNS,
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
    /// The first line of CSV holds names, whatever it looks like: [`Schema::header`].
    pub header: bool,
    /// Names that are public: a first line of CSV that has none of them is a row of data.
    pub names: Vec<String>,
}

impl Options {
    /// What a schema says about files.
    pub fn of_schema(schema: &Schema) -> Self {
        let names = schema.columns.iter().map(|(name, _)| name.clone()).filter(|n| n != "*");
        let (features, header) = (schema.features, schema.header);
        Options { features, header, names: names.collect(), ..Options::default() }
    }

    /// What a model says about files that it predicts. libsvm text has as many features as the
    /// model has columns with a number for a name.
    pub fn of_encoding(encoding: &Encoding) -> Self {
        let names: Vec<String> = encoding.predicting().columns().map(Into::into).collect();
        let features = names.iter().filter_map(|name| name.parse().ok()).max();
        Options { features, names, ..Options::default() }
    }

    /// libsvm text, if the number of features is given and all names are those of its columns.
    fn libsvm(&self) -> Option<Format> {
        let column = |name: &String| name == "label" || name.parse::<usize>().is_ok();
        (self.features.is_some() && self.names.iter().all(column)).then_some(Format::Libsvm)
    }
}

/// The columns of libsvm text. Only the schema or the model says how many there are.
fn libsvm_names(path: &Path, options: &Options) -> Result<Vec<String>, Error> {
    match options.features {
        Some(features) if features > MOST_COLUMNS => {
            let problem = "features must be a count of at most a million".into();
            Err(Error::Schema { problems: vec![problem] })
        }
        Some(features) => Ok(libsvm::columns(features)),
        None => Err(Error::Features { path: path.into() }),
    }
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
    /// If a file cannot be read or has no usable header, if the headers differ, or if the same
    /// rows seem to be there twice.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in paths {
            files.extend(format::files(path.as_ref())?);
        }
        repeated::check_files(&files)?;
        let mut inputs: Vec<Input> = Vec::new();
        let mut columns: Option<Vec<String>> = None;
        for file in files {
            let (input, names) = Input::open(file, options)?;
            check_names(&input.path, &names)?;
            match (&columns, inputs.first()) {
                (Some(columns), Some(Input { path, .. })) if *columns != names => {
                    let difference = difference(columns, &names);
                    let (first, second) = (path.clone(), input.path);
                    return Err(Error::DifferentColumns { first, second, difference });
                }
                _ => columns = Some(names),
            }
            inputs.push(input);
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

    /// The names of the files, without their folders, in order; none if the table is in memory.
    pub fn file_names(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into();
        self.files().map(name).collect()
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
        let metadata = std::fs::metadata(&path).map_err(unreadable)?;
        if !metadata.is_file() && !metadata.is_dir() {
            let format = options.format.unwrap_or(Format::Csv);
            let (what, instead) =
                ("a pipe or a device", "save it as a file first: a table is read several times");
            return Err(Error::Foreign { path, format, what, instead });
        }
        let bytes = metadata.len();
        let said = options.format.or_else(|| Format::of_name(&path));
        // libsvm text begins with a row, which must not decide anything: nothing of it is looked at.
        if said.or_else(|| options.libsvm()) == Some(Format::Libsvm) {
            File::open(&path).map_err(unreadable)?;
            let names = libsvm_names(&path, options)?;
            return Ok((Input { path, bytes, layout: Layout::Libsvm }, names));
        }
        if bytes == 0 {
            return Err(Error::NoHeader { path, got: "an empty file" });
        }
        let (mut reader, _) = text::open(&path).map_err(unreadable)?;
        let mut start = Vec::new();
        let problem = header::read_more(&mut reader, &mut start).err();
        let format = said.unwrap_or_else(|| Format::of_bytes(&start));
        if let Some(problem) = problem {
            return Err(text_failed(&path, format, &problem));
        }
        if format == Format::Csv
            && let Some((what, instead)) = format::foreign(&start)
        {
            return Err(Error::Foreign { path, format, what, instead });
        }
        let (layout, names) = match format {
            Format::Csv => header::csv_layout(&path, reader, start, options)?,
            // Neither its name nor the schema said so: its columns are not those of the schema, which is refused.
            Format::Libsvm => (Layout::Libsvm, libsvm_names(&path, options)?),
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
        let bad = plan.cells.iter().zip(types).enumerate().filter(|(_, (cell, data_type))| {
            !matches!(cell, Cell::Skip) && !columns::readable(data_type)
        });
        let told = bad.map(|(place, (_, data_type))| {
            let kind = columns::kind(data_type);
            match plan.named[place] {
                true => format!("{:?} is {kind}", names[place]),
                false => format!("column {} is {kind}", place + 1),
            }
        });
        let columns: Vec<String> = told.take(20).collect();
        if columns.is_empty() {
            return Ok(());
        }
        Err(Error::Types { path: self.path.clone(), columns })
    }
}
