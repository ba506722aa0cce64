//! Reads Parquet. Small row groups are decoded whole, each by one thread. Large ones are read in
//! batches, so that no row group need be held in memory.
use std::{fs::File, io, path::Path, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::interleave::interleave;
use parquet::{
    arrow::{
        ArrowWriter, ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
            ParquetRecordBatchReaderBuilder,
        },
    },
    basic::Compression,
    errors::ParquetError,
    file::{
        metadata::RowGroupMetaData,
        properties::{EnabledStatistics, WriterProperties},
    },
    schema::types::ColumnPath,
};

use crate::{
    AtomicFile, Error, Format, TablePart, block::Block, column_decoder::RowDecoder, columns,
    lenient_types, panic_guard::catch_panic, parquet_lengths, shared_file::SharedFile,
};

/// A Parquet file that is being read.
pub(crate) struct RowGroups {
    shared: Arc<Shared>,
    /// The row groups to read, and how many of them were taken.
    these: Vec<usize>,
    next: usize,
    /// The bytes of those that were taken.
    taken: u64,
    /// The row group that is read in batches, and how many of its rows were read.
    current: Option<(ParquetRecordBatchReader, u64)>,
    /// A row group of at most this many rows is decoded whole.
    small: u64,
}

struct Shared {
    file: SharedFile,
    metadata: ArrowReaderMetadata,
    used: Vec<usize>,
    batch: usize,
}

/// What to decode next.
pub(crate) enum Step {
    Batch(RecordBatch),
    RowGroup(RowGroup),
}

/// A row group to be decoded whole.
pub(crate) struct RowGroup {
    shared: Arc<Shared>,
    index: usize,
}

/// The columns of a file and their types.
pub(crate) fn open(path: &Path) -> Result<(Vec<String>, Vec<DataType>), Error> {
    let (file, metadata) = load(path)?;
    if let Some(codec) = parquet_lengths::unknown_codec(metadata.metadata()) {
        let why = format!(
            "its pages are compressed with {codec}; snappy, gzip, lz4 and zstd can be read"
        );
        return Err(Error::unreadable(path, &io::Error::new(io::ErrorKind::Unsupported, why)));
    }
    // Once, and before a ledger is charged.
    if catch_panic(|| parquet_lengths::pages_fit(&file, metadata.metadata())).flatten().is_none() {
        return Err(Error::Damaged { path: path.into(), format: Format::Parquet });
    }
    let fields = metadata.schema().fields();
    Ok(fields.iter().map(|f| (f.name().clone(), f.data_type().clone())).unzip())
}

fn load(path: &Path) -> Result<(SharedFile, ArrowReaderMetadata), Error> {
    let unreadable = |e| Error::unreadable(path, &e);
    let file = SharedFile::new(File::open(path).map_err(unreadable)?).map_err(unreadable)?;
    // The types of Parquet itself suffice, and there are fewer of them.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = catch_panic(|| {
        parquet_lengths::footer_fits(&file)?;
        let loaded = ArrowReaderMetadata::load(&file, options.clone()).ok()?;
        let metadata = lenient_types::parquet_texts_as_bytes(loaded.metadata()).ok()?;
        ArrowReaderMetadata::try_new(Arc::new(metadata), options).ok()
    });
    match metadata.flatten() {
        Some(metadata) => Ok((file, metadata)),
        None => Err(Error::Damaged { path: path.into(), format: Format::Parquet }),
    }
}

impl RowGroups {
    /// Reads all row groups, or these.
    pub(crate) fn new(
        path: &Path,
        these: Option<&[usize]>,
        used: Vec<usize>,
        batch: usize,
        small: u64,
    ) -> Result<Self, Error> {
        let (file, metadata) = load(path)?;
        let all = metadata.metadata().num_row_groups();
        let these = these.map_or_else(|| (0..all).collect(), <[usize]>::to_vec);
        if these.iter().any(|group| *group >= all) {
            return Err(Error::Damaged { path: path.into(), format: Format::Parquet });
        }
        let shared = Arc::new(Shared { file, metadata, used, batch });
        Ok(RowGroups { shared, these, next: 0, taken: 0, current: None, small })
    }

    /// The next step, the most rows that it has, and the bytes that are read up to its end. An error
    /// if the file is damaged.
    pub(crate) fn next(&mut self) -> Result<Option<(Step, u64, u64)>, ()> {
        catch_panic(|| self.step()).and_then(Result::ok).ok_or(())
    }

    fn step(&mut self) -> Result<Option<(Step, u64, u64)>, ParquetError> {
        let metadata = self.shared.metadata.metadata();
        loop {
            if let Some((reader, read)) = &mut self.current {
                let group = metadata.row_group(self.these[self.next - 1]);
                if let Some(batch) = reader.next().transpose()? {
                    let rows = batch.num_rows() as u64;
                    *read += rows;
                    let all = (group.num_rows() as u64).max(1);
                    let part = size(group) as u128 * u128::from(*read) / u128::from(all);
                    return Ok(Some((Step::Batch(batch), rows, self.taken + part as u64)));
                }
                self.taken += size(group);
                self.current = None;
            }
            let Some(&index) = self.these.get(self.next) else { return Ok(None) };
            self.next += 1;
            let group = metadata.row_group(index);
            let rows = group.num_rows() as u64;
            if rows <= self.small {
                self.taken += size(group);
                let group = RowGroup { shared: self.shared.clone(), index };
                return Ok(Some((Step::RowGroup(group), rows, self.taken)));
            }
            self.current = Some((self.shared.reader(index)?, 0));
        }
    }
}

/// The size of a row group.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// The sizes of all row groups of a file.
pub(crate) fn sizes(path: &Path) -> Result<Vec<Size>, Error> {
    let (_, metadata) = load(path)?;
    let of = |group: &RowGroupMetaData| Size {
        rows: group.num_rows().max(0) as u64,
        bytes: size(group),
    };
    Ok(metadata.metadata().row_groups().iter().map(of).collect())
}

fn size(group: &RowGroupMetaData) -> u64 {
    group.compressed_size().max(0) as u64
}

impl Shared {
    fn reader(&self, group: usize) -> Result<ParquetRecordBatchReader, ParquetError> {
        let roots = self.used.iter().copied();
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots);
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(self.batch)
            .build()
    }
}

impl RowGroup {
    pub(crate) fn decode(
        &self,
        decoder: &RowDecoder,
        block: &mut Block,
    ) -> Result<(), ParquetError> {
        let rows = self.shared.metadata.metadata().row_group(self.index).num_rows();
        block.reserve(rows.max(0) as usize);
        for batch in self.shared.reader(self.index)? {
            columns::decode(&batch?, &self.shared.used, decoder, block);
        }
        Ok(())
    }
}

/// All rows of a part, with all columns.
pub(crate) fn batches(part: &TablePart) -> Result<Vec<RecordBatch>, Error> {
    let (file, metadata) = load(&part.path)?;
    let read = || -> Result<Vec<RecordBatch>, ParquetError> {
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_row_groups(part.groups.clone())
            .with_batch_size(1 << 16)
            .build()?;
        Ok(reader.collect::<Result<_, _>>()?)
    };
    let damaged = || Error::Damaged { path: part.path.clone(), format: Format::Parquet };
    catch_panic(read).and_then(Result::ok).ok_or_else(damaged)
}

/// The name of the writer in files of [`write_groups`].
pub(crate) const PROGRAM: &str = "quietly";

/// The name of the writer in a file.
pub(crate) fn written_by(path: &Path) -> Option<String> {
    let (_, metadata) = load(path).ok()?;
    metadata.metadata().file_metadata().created_by().map(Into::into)
}

/// Writes a row group for every list of rows that is not empty. A row is a batch and a position
/// there.
pub(crate) fn write_groups(
    to: &Path,
    batches: &[RecordBatch],
    groups: &[Vec<(usize, usize)>],
) -> Result<AtomicFile, Error> {
    let failed = |_: ParquetError| Error::unreadable(to, &std::io::Error::other("not written"));
    let Some(first) = batches.first() else {
        return Err(Error::Damaged { path: to.into(), format: Format::Parquet });
    };
    let file = AtomicFile::create(to).map_err(|e| Error::unreadable(to, &e))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(None)
        .set_created_by(PROGRAM.into());
    for field in first.schema().fields().iter().filter(|f| f.data_type().is_numeric()) {
        let column = ColumnPath::new(vec![field.name().clone()]);
        properties = properties.set_column_dictionary_enabled(column, false);
    }
    let mut writer =
        ArrowWriter::try_new(file, first.schema(), Some(properties.build())).map_err(failed)?;
    for rows in groups.iter().filter(|rows| !rows.is_empty()) {
        let column = |k: usize| {
            let all: Vec<&dyn Array> = batches.iter().map(|b| b.column(k).as_ref()).collect();
            interleave(&all, rows)
        };
        let columns: Result<Vec<_>, _> = (0..first.num_columns()).map(column).collect();
        let group = columns.and_then(|columns| RecordBatch::try_new(first.schema(), columns));
        let group = group.map_err(|e| failed(e.into()))?;
        writer.write(&group).and_then(|()| writer.flush()).map_err(failed)?;
    }
    writer.into_inner().map_err(failed)
}
