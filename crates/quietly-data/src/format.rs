use std::{
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
};

use crate::Error;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Text with a header line and a delimiter, possibly compressed with gzip.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, files or streams. Feather version 2 is the same format.
    Ipc,
    /// `label index:value …` text, possibly compressed with gzip.
    Libsvm,
}

/// The endings of the names of tables in a folder.
pub(crate) const ENDINGS: [&str; 11] = [
    ".csv",
    ".tsv",
    ".parquet",
    ".pq",
    ".arrow",
    ".arrows",
    ".ipc",
    ".feather",
    ".libsvm",
    ".svm",
    ".svmlight",
];

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Csv => "CSV",
            Format::Parquet => "Parquet",
            Format::Ipc => "Arrow IPC",
            Format::Libsvm => "libsvm text",
        })
    }
}

impl Format {
    /// The format of a file by its name.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let bare = name.strip_suffix(".gz").unwrap_or(&name);
        let ending = ENDINGS.into_iter().find(|ending| bare.ends_with(ending))?;
        let format = match ending {
            ".csv" | ".tsv" => Format::Csv,
            ".parquet" | ".pq" => Format::Parquet,
            ".libsvm" | ".svm" | ".svmlight" => Format::Libsvm,
            _ => Format::Ipc,
        };
        let text = matches!(format, Format::Csv | Format::Libsvm);
        (text || bare.len() == name.len()).then_some(format)
    }

    /// The format of a file by its first bytes, decompressed if it is gzip.
    pub(crate) fn of_bytes(start: &[u8]) -> Self {
        if start.starts_with(b"PAR1") {
            return Format::Parquet;
        }
        if start.starts_with(b"ARROW1") || start.starts_with(&[0xFF; 4]) {
            return Format::Ipc;
        }
        let line = start.split(|b| matches!(b, b'\n' | b'\r')).next().unwrap_or_default();
        if crate::libsvm::looks_like(line) { Format::Libsvm } else { Format::Csv }
    }
}

/// The name of an unsupported format and what to do about it, by the first bytes of a file,
/// decompressed if it is gzip. Without this check an uncompressed archive would be read as text.
pub(crate) fn foreign(start: &[u8]) -> Option<(&'static str, &'static str)> {
    const UNPACK: &str = "decompress it first";
    const SIGNS: [(&[u8], &str, &str); 13] = [
        (b"PAR1", "Parquet", "rename it to end in .parquet"),
        (b"ARROW1", "Arrow IPC", "rename it to end in .arrow"),
        (b"\x28\xB5\x2F\xFD", "compressed with zstd", UNPACK),
        (b"\xFD7zXZ\0", "compressed with xz", UNPACK),
        (b"\x04\x22\x4D\x18", "compressed with lz4", UNPACK),
        (b"7z\xBC\xAF\x27\x1C", "a 7z archive", UNPACK),
        (b"Rar!\x1A\x07", "a rar archive", UNPACK),
        (b"SQLite format 3\0", "an SQLite database", "export the table as CSV"),
        (b"\xD0\xCF\x11\xE0", "an old Excel or Word document", "save the sheet as CSV"),
        (b"%PDF-", "a PDF document", "export the table as CSV"),
        (b"\xFF\xFE", "text in UTF-16", "save it as UTF-8"),
        (b"\xFE\xFF", "text in UTF-16", "save it as UTF-8"),
        (b"\x1F\x8B", "compressed twice with gzip", UNPACK),
    ];
    let holds = |word: &[u8]| memchr::memmem::find(start, word).is_some();
    if start.starts_with(b"PK\x03\x04") && (holds(b"[Content_Types].xml") || holds(b"xl/")) {
        return Some(("an Excel workbook (xlsx)", "save the sheet as CSV"));
    }
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return Some(("a zip archive", UNPACK));
    }
    if matches!(start, [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]) {
        return Some(("compressed with bzip2", UNPACK));
    }
    let found = SIGNS.into_iter().find(|(sign, ..)| start.starts_with(sign));
    found.map(|(_, what, instead)| (what, instead))
}

/// The files of a path: the file itself, those of a folder, or those that match a `*`.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    // If a file of this name exists, the star is part of its name.
    let pattern = path.file_name().and_then(OsStr::to_str).filter(|name| name.contains('*'));
    let pattern = pattern.filter(|_| !path.exists());
    if pattern.is_none() && !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let folder = match (pattern, path.parent()) {
        (Some(_), Some(parent)) if !parent.as_os_str().is_empty() => parent,
        (Some(_), _) => Path::new("."),
        (None, _) => path,
    };
    let wanted = |name: &str| match pattern {
        Some(pattern) => glob(pattern, name),
        None => Format::of_name(Path::new(name)).is_some(),
    };
    let unreadable = |e: std::io::Error| Error::unreadable(folder, &e);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let visible = |name: &str| !name.starts_with(['.', '_']) && wanted(name);
        if name.to_str().is_some_and(visible) && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    if found.is_empty() {
        return Err(Error::NoFiles { place: path.display().to_string() });
    }
    found.sort();
    crate::duplicate_files::check_folder(&found)?;
    Ok(found)
}

/// Whether `name` matches `pattern`, where each star matches any text, also none.
fn glob(pattern: &str, name: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(tail) = name.strip_prefix(before) else { return false };
    let ends = tail.char_indices().map(|(i, _)| i).chain([tail.len()]);
    ends.into_iter().any(|i| glob(rest, &tail[i..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, name, want) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("part-*-of-*.csv", "part-1-of-2.csv", true),
            ("part-*-of-*.csv", "part-1.csv", false),
            ("a*", "a", true),
            ("*é*", "café!", true),
        ] {
            assert_eq!(glob(pattern, name), want, "{pattern} {name}");
        }
    }

    #[test]
    fn formats_are_detected_by_name() {
        let of = |name: &str| Format::of_name(Path::new(name));
        assert_eq!(of("a.CSV"), Some(Format::Csv));
        assert_eq!(of("a.tsv.gz"), Some(Format::Csv));
        assert_eq!(of("a.svm.gz"), Some(Format::Libsvm));
        assert_eq!(of("a.feather"), Some(Format::Ipc));
        assert_eq!(of("a.parquet.gz"), None);
        assert_eq!(of("a.txt"), None);
    }
}
