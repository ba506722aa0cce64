use std::{
    fs::File,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use arrow_schema::DataType;

use crate::{
    Encoding, Error, Format, Private, Schema, Table,
    block::Block,
    chunk_reader::{ChunkReader, text_failed},
    column_decoder::{ColumnDecoder, RowDecoder},
    columns, duplicate_files, format,
    header::{self, check_names, difference},
    ipc, libsvm,
    memory::Memory,
    name::visible,
    parallel_decode, parquet,
    schema::MAX_COLUMNS,
    text_chunks,
};

/// How to open files, where it cannot be detected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The format of all files. By default it is detected from the name, or from the first bytes.
    pub format: Option<Format>,
    /// The delimiter of CSV. By default one of `,`, `;`, tab and `|` is detected.
    pub delimiter: Option<u8>,
    /// The number of features of libsvm text: [`Schema::features`](crate::Schema::features).
    pub features: Option<usize>,
    /// Whether the first line of CSV is a header, whatever it looks like: [`Schema::header`].
    pub header: bool,
    /// Names that are public. A first line of CSV without any of them is a row of data.
    pub names: Vec<String>,
}

impl Options {
    /// The options that a schema gives.
    pub fn of_schema(schema: &Schema) -> Self {
        let names = schema.columns.iter().map(|(name, _)| name.clone()).filter(|n| n != "*");
        let (features, header) = (schema.features, schema.header);
        Options { features, header, names: names.collect(), ..Options::default() }
    }

    /// The options that a model gives for prediction. The number of features of libsvm text is the
    /// greatest number among the names of its columns.
    pub fn of_encoding(encoding: &Encoding) -> Self {
        let names: Vec<String> = encoding.predicting().columns().map(Into::into).collect();
        let features = names.iter().filter_map(|name| name.parse().ok()).max();
        Options { features, names, ..Options::default() }
    }

    /// libsvm text, if the number of features is given and all names can be its columns.
    fn libsvm(&self) -> Option<Format> {
        let column = |name: &String| name == "label" || name.parse::<usize>().is_ok();
        (self.features.is_some() && self.names.iter().all(column)).then_some(Format::Libsvm)
    }
}

/// The columns of libsvm text, whose number comes from the schema or the model.
fn libsvm_names(path: &Path, options: &Options) -> Result<Vec<String>, Error> {
    match options.features {
        Some(features) if features > MAX_COLUMNS => {
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

/// What opening a file has shown about it.
pub(crate) enum Layout {
    /// Rows start after `start` decompressed bytes.
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
            // A table in memory is never reported as damaged.
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
    /// If a file cannot be read or has no valid header, if the headers differ, or if two files seem
    /// to hold the same rows.
    pub fn open<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut files = Vec::new();
        for path in paths {
            files.extend(format::files(path.as_ref())?);
        }
        duplicate_files::check_files(&files)?;
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

    /// A table of one input.
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

    /// The files, in order. There are none if the table is in memory.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let on_disk = |input: &&Input| !matches!(input.layout, Layout::Memory(_));
        self.inputs.iter().filter(on_disk).map(|input| input.path.as_path())
    }

    /// The names of the files, without their folders, in order; none if the table is in memory. Hidden
    /// characters are written as `\u{1b}`.
    pub fn file_names(&self) -> Vec<String> {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            visible(&name.replace('\n', "\\u{a}")).into_owned()
        };
        self.files().map(name).collect()
    }

    /// Whether the table is sparse: libsvm text, or a sparse column in memory.
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

    /// Reads the whole table into memory. Zero threads means one for every core. The table does not
    /// depend on the number of threads, nor on how its rows are split into files.
    ///
    /// # Errors
    ///
    /// If a column does not exist or has a type that cannot be read, or if a file is damaged. No row
    /// can cause an error.
    pub fn read(&self, encoding: &Encoding, threads: usize) -> Result<Private<Table>, Error> {
        self.read_public(encoding, threads).map(Private::new)
    }

    /// The rows of a **public** table.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn read_public(&self, encoding: &Encoding, threads: usize) -> Result<Table, Error> {
        let mut table = Table::empty(encoding.width());
        self.blocks(encoding, threads, &mut |block| {
            table.append(block);
            ControlFlow::Continue(())
        })?;
        Ok(table)
    }

    /// Passes the rows to `each` in order, block by block, while other threads decode ahead. Memory
    /// does not grow with the size of the files, but Arrow IPC needs that of one record batch.
    ///
    /// The sizes of blocks depend on the format and on the length of lines, so they are private too.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read). Blocks before the damage have been passed on by then.
    pub fn blocks(
        &self,
        encoding: &Encoding,
        threads: usize,
        each: &mut dyn FnMut(&Block) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.for_each_chunk(&RowDecoder::new(encoding, &self.columns)?, threads, each)
    }

    /// Passes the rows to `each` in order, as small tables, on this thread.
    ///
    /// # Errors
    ///
    /// As [`blocks`](Self::blocks).
    pub fn scan(
        &self,
        encoding: &Encoding,
        each: &mut dyn FnMut(&Table) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let decoder = RowDecoder::new(encoding, &self.columns)?;
        self.check_types(&decoder)?;
        let (mut chunks, used) = (ChunkReader::in_batches(&decoder, &self.inputs), decoder.used());
        let (mut buffer, mut block) = (Vec::new(), Block::default());
        let mut table = Table::empty(decoder.width);
        while let Some(chunk) = chunks.next(&mut buffer)? {
            chunk.decode(&buffer, &decoder, &used, &mut block)?;
            table.swap(&mut block);
            if each(&table).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn for_each_chunk<P: parallel_decode::Decoded>(
        &self,
        decoder: &RowDecoder,
        threads: usize,
        each: &mut dyn FnMut(&P) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.check_types(decoder)?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let threads = if threads == 0 { cores } else { threads };
        parallel_decode::run(ChunkReader::new(decoder, &self.inputs), decoder, threads, each)
    }

    /// Refuses columns of types that cannot be read.
    pub(crate) fn check_types(&self, decoder: &RowDecoder) -> Result<(), Error> {
        self.inputs.iter().try_for_each(|input| input.check_types(decoder, &self.columns))
    }
}

impl Input {
    fn open(path: PathBuf, options: &Options) -> Result<(Self, Vec<String>), Error> {
        let unreadable = |e| Error::unreadable(&path, &e);
        let metadata = std::fs::metadata(&path).map_err(unreadable)?;
        if !metadata.is_file() && !metadata.is_dir() {
            let format = options.format.unwrap_or(Format::Csv);
            let (what, instead) = (
                "a pipe or a device",
                "save it as a file first, because a table is read several times",
            );
            return Err(Error::Foreign { path, format, what, instead });
        }
        let bytes = metadata.len();
        let declared = options.format.or_else(|| Format::of_name(&path));
        // libsvm text begins with a row, which must not decide anything: it is not read here.
        if declared.or_else(|| options.libsvm()) == Some(Format::Libsvm) {
            File::open(&path).map_err(unreadable)?;
            let names = libsvm_names(&path, options)?;
            return Ok((Input { path, bytes, layout: Layout::Libsvm }, names));
        }
        if bytes == 0 {
            return Err(Error::NoHeader { path, got: "an empty file" });
        }
        let (mut reader, _) = text_chunks::open(&path).map_err(unreadable)?;
        let mut start = Vec::new();
        let problem = header::read_more(&mut reader, &mut start).err();
        let format = declared.unwrap_or_else(|| Format::of_bytes(&start));
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
            // Neither its name nor the schema declares libsvm, so its columns will be refused.
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

    fn check_types(&self, decoder: &RowDecoder, names: &[String]) -> Result<(), Error> {
        let types = match &self.layout {
            Layout::Parquet { types, .. } | Layout::Ipc(types) => types,
            Layout::Memory(memory) => &memory.types,
            Layout::Csv { .. } | Layout::Libsvm => return Ok(()),
        };
        let bad = decoder.cells.iter().zip(types).enumerate().filter(|(_, (cell, data_type))| {
            !matches!(cell, ColumnDecoder::Skip) && !columns::readable(data_type)
        });
        let described = bad.map(|(place, (_, data_type))| {
            let kind = columns::kind(data_type);
            match decoder.named[place] {
                true => format!("{:?} is {kind}", names[place]),
                false => format!("column {} is {kind}", place + 1),
            }
        });
        let columns: Vec<String> = described.take(20).collect();
        if columns.is_empty() {
            return Ok(());
        }
        Err(Error::Types { path: self.path.clone(), columns })
    }
}
