//! Parquet: small row groups are decoded whole, each by one thread; from large ones batches are
//! read in turn, so that no row group need be held in memory.
use std::{fs::File, path::Path, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
            ParquetRecordBatchReaderBuilder,
        },
    },
    errors::ParquetError,
    file::metadata::RowGroupMetaData,
};

use crate::{Error, Format, block::Block, columns, plan::Plan, positioned::Positioned};

/// A Parquet file that is being read.
pub(crate) struct Groups {
    shared: Arc<Shared>,
    next: usize,
    /// The row group that is being read batch by batch, and how much of it was.
    current: Option<(ParquetRecordBatchReader, u64)>,
    /// A row group of at most this many rows is decoded whole.
    small: u64,
}

struct Shared {
    file: Positioned,
    metadata: ArrowReaderMetadata,
    used: Vec<usize>,
    batch: usize,
}

/// The next thing to decode.
pub(crate) enum Step {
    Batch(RecordBatch),
    Group(Group),
}

/// A row group to be decoded whole.
pub(crate) struct Group {
    shared: Arc<Shared>,
    index: usize,
}

/// The columns of a file and their types.
pub(crate) fn open(path: &Path) -> Result<(Vec<String>, Vec<DataType>), Error> {
    let (_, metadata) = load(path)?;
    let fields = metadata.schema().fields();
    Ok(fields.iter().map(|f| (f.name().clone(), f.data_type().clone())).unzip())
}

fn load(path: &Path) -> Result<(Positioned, ArrowReaderMetadata), Error> {
    let unreadable = |e| Error::unreadable(path, &e);
    let file = Positioned::new(File::open(path).map_err(unreadable)?).map_err(unreadable)?;
    // The types that Parquet itself knows are enough, and fewer.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let damaged = |_| Error::Damaged { path: path.into(), format: Format::Parquet };
    let metadata = ArrowReaderMetadata::load(&file, options).map_err(damaged)?;
    Ok((file, metadata))
}

impl Groups {
    pub(crate) fn new(
        path: &Path,
        used: Vec<usize>,
        batch: usize,
        small: u64,
    ) -> Result<Self, Error> {
        let (file, metadata) = load(path)?;
        let shared = Arc::new(Shared { file, metadata, used, batch });
        Ok(Groups { shared, next: 0, current: None, small })
    }

    /// The next step, how many rows it has at most, and how many bytes have been read with it.
    pub(crate) fn next(&mut self) -> Result<Option<(Step, u64, u64)>, ParquetError> {
        let metadata = self.shared.metadata.metadata();
        loop {
            if let Some((reader, read)) = &mut self.current {
                if let Some(batch) = reader.next().transpose()? {
                    let rows = batch.num_rows() as u64;
                    *read += rows;
                    let group = metadata.row_group(self.next - 1);
                    let all = (group.num_rows() as u64).max(1);
                    let part = size(group) as u128 * u128::from(*read) / u128::from(all);
                    let before: u64 = metadata.row_groups()[..self.next - 1].iter().map(size).sum();
                    return Ok(Some((Step::Batch(batch), rows, before + part as u64)));
                }
                self.current = None;
            }
            if self.next == metadata.num_row_groups() {
                return Ok(None);
            }
            let index = self.next;
            self.next += 1;
            let rows = metadata.row_group(index).num_rows() as u64;
            if rows <= self.small {
                let read = metadata.row_groups()[..self.next].iter().map(size).sum();
                let group = Group { shared: self.shared.clone(), index };
                return Ok(Some((Step::Group(group), rows, read)));
            }
            self.current = Some((self.shared.reader(index)?, 0));
        }
    }
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

impl Group {
    pub(crate) fn decode(&self, plan: &Plan, block: &mut Block) -> Result<(), ParquetError> {
        let rows = self.shared.metadata.metadata().row_group(self.index).num_rows();
        block.reserve(rows.max(0) as usize);
        for batch in self.shared.reader(self.index)? {
            columns::decode(&batch?, &self.shared.used, plan, block);
        }
        Ok(())
    }
}
