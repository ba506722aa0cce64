//! Reads Parquet and Arrow files with types that every cell fits.
//!
//! Both formats declare that text is Unicode, and an Arrow field may declare that no cell is null.
//! Their readers fail at the first cell that is neither, so one cell would decide whether a fit
//! succeeds. The declared types are therefore changed before the reader gets them. A cell that is
//! not Unicode is then an undeclared value, as in CSV, and a null is a missing value.
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

/// The same metadata with bytes instead of text. Nested columns are not changed, because none is
/// read.
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

/// An Arrow file or stream whose schema declares bytes instead of text, and allows nulls in every
/// field.
///
/// The type of a field is one byte, with a table that is empty for text and for bytes, so changing
/// the byte changes the type and nothing else. Whether a field may be null is one byte too. It may
/// be absent, which means that it may not. Then the vtable of the field, which is shared only with
/// fields that omit it as well, is changed to point to the byte of the type, which is never zero.
pub(crate) struct PatchedReader<R> {
    inner: R,
    at: u64,
    /// Positions in the file, and the bytes to read there.
    changes: Vec<(u64, u8)>,
}

impl<R> PatchedReader<R> {
    pub(crate) fn new(inner: R, changes: Vec<(u64, u8)>) -> Self {
        PatchedReader { inner, at: 0, changes }
    }
}

impl<R: Read> Read for PatchedReader<R> {
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

impl<R: Seek> Seek for PatchedReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.inner.seek(to)?;
        Ok(self.at)
    }
}

/// The positions where an Arrow file or stream declares text or fields without nulls, and the bytes
/// to read there instead. Empty if the schema cannot be read: the reader then reports the error.
/// Rewinds the file.
pub(crate) fn arrow_patches(file: &mut File) -> io::Result<Vec<(u64, u8)>> {
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
    // Streams before version 0.15 have no marker.
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
        let (layout, place) = (field._tab.vtable(), start + field._tab.loc() as u64);
        let kind = layout.get(Field::VT_TYPE_TYPE);
        match layout.get(Field::VT_NULLABLE) {
            _ if field.nullable() || kind == 0 => {}
            0 => {
                let Some(slot) =
                    layout_of(&field).map(|at| start + at + u64::from(Field::VT_NULLABLE))
                else {
                    continue;
                };
                changes.extend([(slot, kind.to_le_bytes()[0]), (slot + 1, kind.to_le_bytes()[1])]);
            }
            within => changes.push((place + u64::from(within), 1)),
        }
        let bytes = match field.type_type() {
            Type::Utf8 => Type::Binary,
            Type::LargeUtf8 => Type::LargeBinary,
            Type::Utf8View => Type::BinaryView,
            _ => continue,
        };
        changes.push((place + u64::from(kind), bytes.0));
    }
    changes
}

/// The position of the vtable of a field: its first word is the distance back to it.
fn layout_of(field: &Field<'_>) -> Option<u64> {
    let at = field._tab.loc();
    let word = field._tab.buf().get(at..at + 4)?.try_into().ok()?;
    u64::try_from(at as i64 - i64::from(i32::from_le_bytes(word))).ok()
}
