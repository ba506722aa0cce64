//! Texts of Parquet and Arrow files read as bytes.
//!
//! Both formats promise that texts are Unicode, and their readers fail at the first cell that is not: one
//! cell would decide whether a fit succeeds. So the types that a file declares are changed before the
//! reader sees them. A cell that is not Unicode is then a value that no schema declares, as in CSV.
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    sync::Arc,
};

use arrow_ipc::{Field, Schema, Type, reader::read_footer_length, root_as_footer, root_as_message};
use parquet::{
    basic::{ConvertedType, LogicalType, Type as Physical},
    errors::ParquetError,
    file::metadata::{FileMetaData, ParquetMetaData},
    schema::types::{SchemaDescriptor, Type as Node, TypePtr},
};

/// The same metadata with bytes in place of texts. Columns within columns stay as they are: none is read.
pub(crate) fn parquet_texts_as_bytes(
    metadata: &ParquetMetaData,
) -> Result<ParquetMetaData, ParquetError> {
    let file = metadata.file_metadata();
    let root = file.schema_descr().root_schema();
    let fields = root.get_fields().iter().map(as_bytes).collect::<Result<Vec<_>, _>>()?;
    let root = Node::group_type_builder(root.name()).with_fields(fields).build()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(Into::into),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    );
    Ok(ParquetMetaData::new(file, metadata.row_groups().to_vec()))
}

fn as_bytes(node: &TypePtr) -> Result<TypePtr, ParquetError> {
    let info = node.get_basic_info();
    let text = info.converted_type() == ConvertedType::UTF8
        || info.logical_type_ref() == Some(&LogicalType::String);
    if !node.is_primitive() || node.get_physical_type() != Physical::BYTE_ARRAY || !text {
        return Ok(node.clone());
    }
    let bytes = Node::primitive_type_builder(node.name(), Physical::BYTE_ARRAY)
        .with_repetition(info.repetition())
        .with_id(info.has_id().then(|| info.id()))
        .build()?;
    Ok(Arc::new(bytes))
}

/// An Arrow file or stream whose schema declares bytes in place of texts.
///
/// The type of a field is one byte, beside a table that is empty for texts and for bytes: changing the byte
/// changes the type and nothing else.
pub(crate) struct Untyped<R> {
    inner: R,
    at: u64,
    /// Places in the file, and what to read there.
    changes: Vec<(u64, u8)>,
}

impl<R> Untyped<R> {
    pub(crate) fn new(inner: R, changes: Vec<(u64, u8)>) -> Self {
        Untyped { inner, at: 0, changes }
    }
}

impl<R: Read> Read for Untyped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for (place, byte) in &self.changes {
            if let Some(within) = place.checked_sub(self.at).filter(|i| *i < read as u64) {
                buffer[within as usize] = *byte;
            }
        }
        self.at += read as u64;
        Ok(read)
    }
}

impl<R: Seek> Seek for Untyped<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.inner.seek(to)?;
        Ok(self.at)
    }
}

/// Where the types of texts stand in an Arrow file or stream, and those of bytes; none where it cannot be
/// read, which its reader then says. Leaves the file at its beginning.
pub(crate) fn arrow_texts_as_bytes(file: &mut File) -> io::Result<Vec<(u64, u8)>> {
    let size = file.metadata()?.len();
    let magic = bytes(file, 0, 6)?;
    let changes = match magic == b"ARROW1" {
        true => of_file(file, size)?,
        false => of_stream(file, size)?,
    };
    file.rewind()?;
    Ok(changes.unwrap_or_default())
}

fn bytes(file: &mut File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

type Changes = io::Result<Option<Vec<(u64, u8)>>>;

fn of_file(file: &mut File, size: u64) -> Changes {
    let Some(tail) = size.checked_sub(10) else { return Ok(None) };
    let Ok(last) = <[u8; 10]>::try_from(bytes(file, tail, 10)?) else { return Ok(None) };
    let Ok(length) = read_footer_length(last) else { return Ok(None) };
    let Some(start) = tail.checked_sub(length as u64) else { return Ok(None) };
    let footer = bytes(file, start, length as u64)?;
    let footer = root_as_footer(&footer).ok();
    Ok(footer.and_then(|footer| footer.schema()).map(|schema| of_schema(schema, start)))
}

fn of_stream(file: &mut File, size: u64) -> Changes {
    let start = bytes(file, 0, 8)?;
    let Some((mark, length)) = start.split_at_checked(4) else { return Ok(None) };
    // Streams before version 0.15 have no mark.
    let (length, at) = if mark == [0xFF; 4] { (length, 8) } else { (mark, 4) };
    let Ok(length) = <[u8; 4]>::try_from(length) else { return Ok(None) };
    let message = bytes(file, at, u64::from(u32::from_le_bytes(length)).min(size))?;
    let message = root_as_message(&message).ok();
    let schema = message.and_then(|message| message.header_as_schema());
    Ok(schema.map(|schema| of_schema(schema, at)))
}

fn of_schema(schema: Schema<'_>, start: u64) -> Vec<(u64, u8)> {
    let mut changes = Vec::new();
    let mut fields: Vec<Field<'_>> = schema.fields().into_iter().flatten().collect();
    while let Some(field) = fields.pop() {
        fields.extend(field.children().into_iter().flatten());
        let bytes = match field.type_type() {
            Type::Utf8 => Type::Binary,
            Type::LargeUtf8 => Type::LargeBinary,
            Type::Utf8View => Type::BinaryView,
            _ => continue,
        };
        let within = field._tab.vtable().get(Field::VT_TYPE_TYPE);
        let place = start + field._tab.loc() as u64 + u64::from(within);
        changes.push((place, bytes.0));
    }
    changes
}
