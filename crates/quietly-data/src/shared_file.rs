//! A file that several threads read, each at its own position.
use std::{
    fs::File,
    io::{self, BufReader, Read},
    sync::Arc,
};

use bytes::Bytes;
use parquet::file::reader::{ChunkReader, Length};

/// A shared file of known size.
#[derive(Clone)]
pub(crate) struct SharedFile {
    file: Arc<File>,
    size: u64,
}

impl SharedFile {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        Ok(SharedFile { file: Arc::new(file), size })
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<FileCursor>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        // Only page headers are read this way, and they are small.
        Ok(BufReader::with_capacity(1 << 10, FileCursor { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // A damaged file may declare any length.
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = Vec::with_capacity(length);
        FileCursor { file: self.file.clone(), at: start }
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// A position in a shared file, which advances as it is read.
pub(crate) struct FileCursor {
    file: Arc<File>,
    at: u64,
}

impl Read for FileCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.file, buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

/// On other systems a file has one position, which this lock protects.
#[cfg(not(any(unix, windows)))]
fn read_at(mut file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::{
        io::{Seek, SeekFrom},
        sync::{Mutex, PoisonError},
    };
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(at))?;
    file.read(buffer)
}
