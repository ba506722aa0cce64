//! Resuming: an interrupted run, by `kill -9` too, resumes at no extra cost.
//!
//! # Proof: resuming a CNN run costs nothing
//!
//! A step that was taken after the last entry was written, and before the interruption, is taken again. With fresh noise
//! that would be one more release, to be paid for. Here the noise is the same: it is a function of (key, purpose, step), and
//! so are the coins of the samples. The notebook keeps the key. Weights come from the page; gradients on the lattice are a
//! function of (picture, weights), in fixed orders of exactly defined operations, for any number of threads; their sums are
//! exact. By induction over steps, everything that is released after the break is what an unbroken run with this key releases,
//! bit for bit. All that is visible, repetitions included, is therefore a function of what one uninterrupted run
//! shows, and costs what that costs.
//!
//! # Proof: the kept key serves one run
//!
//! The same noise on other sums would be a disaster: the difference of two releases would be the difference of the sums,
//! without any noise. So the key of the run is not the one that is kept, but that one bound to every picture with its label and its place,
//! to the plan and to this crate's version ([`Key::bound_to`]). Whatever of these is changed between two sittings, the noise is then
//! independent, and the page is that of another run. A page that was itself changed would lead to other weights and so to other sums
//! under the same noise. Every page therefore has a seal: words drawn from the bound key, bound once more to all that the page says. What
//! the seal does not fit is refused. It is pseudo-random, and without the secret it reveals nothing about the pictures. That a run
//! is refused tells that something was changed, to the one who changed it. (An older page of the same run has its seal, and leads to
//! the same sums again.)
//!
//! Two runs at once would write one page: a lock on `lock` lets one of them in.
//!
//! # What is kept
//!
//! * `secret`: the key, readable by its owner alone (mode 0600). **Anyone who has it can remove the noise from all that this run releases.** It
//!   is on the disk, flushed, before the first step, and is deleted by [`Notebook::finish`]. A deleted file may be found again by
//!   anyone who gets the disk: keep the notebook where the pictures are.
//! * `page`: the step, weights and momentum, all of it released already. A new page takes the place of the last at once or not
//!   at all.
//!
//! [`finish`](Notebook::finish) deletes the page first: a secret without a page is a run at its beginning, which gives the same bits again; a
//! page without a secret cannot be continued, and is refused.
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
};

use quietly_engine::error::Error;
use quietly_noise::Key;

use super::network::ConvNet;

/// How the first line of a page begins.
const MAGIC: &[u8; 16] = b"quietly page 2.\n";

/// Where a run is kept while it is not finished.
pub struct Notebook {
    folder: PathBuf,
    every: u64,
    key: Key,
    /// Held until this is dropped.
    _lock: File,
}

impl Notebook {
    /// Opens the notebook in `folder`, or begins one there with a `fresh` key, which for a release is [`Key::from_os`]. A page is written
    /// after every `every` steps.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if that cannot be done, another run has it open, or there is a page whose key is missing.
    pub fn open(
        folder: &Path,
        every: u64,
        fresh: impl FnOnce() -> Result<Key, quietly_noise::Error>,
    ) -> Result<Notebook, Error> {
        fs::create_dir_all(folder).map_err(|e| told(folder, &e))?;
        let lock = locked(&folder.join("lock"))?;
        let secret = folder.join("secret");
        let kept = match fs::read(&secret) {
            Ok(bytes) => {
                let bad = || told(&secret, &"this is not the key of a run");
                Some(Key::from_secret(&bytes).ok_or_else(bad)?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(told(&secret, &error)),
        };
        let key = match kept {
            Some(key) => key,
            None if folder.join("page").exists() => {
                let why = "the key of this run is gone, so it cannot be resumed; delete the folder, and count what it released";
                return Err(told(folder, &why));
            }
            None => {
                let key = fresh()?;
                replace(&secret, &key.secret()).map_err(|e| told(&secret, &e))?;
                key
            }
        };
        Ok(Notebook { folder: folder.into(), every: every.max(1), key, _lock: lock })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.every)
    }

    /// The last page, if there is one.
    pub(super) fn read(&self, bound: &Key, width: usize) -> Result<Option<Page>, Error> {
        let path = self.folder.join("page");
        match fs::read(&path) {
            Ok(bytes) => {
                let why = "this page was changed, or is of another run: other pictures, another plan or another version; \
                           delete the folder to begin anew, and count both runs";
                Page::read(&bytes, bound, width)?.map(Some).ok_or_else(|| told(&path, &why))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(told(&path, &error)),
        }
    }

    pub(super) fn write(&self, bound: &Key, page: &Page) -> Result<(), Error> {
        let path = self.folder.join("page");
        replace(&path, &page.bytes(bound)?).map_err(|e| told(&path, &e))
    }

    /// Deletes page and secret: to be called when the result is safe.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if the secret may still be there.
    pub fn finish(self) -> Result<(), Error> {
        for name in ["page", "page.new", "secret.new", "secret", "lock"] {
            let path = self.folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(told(&path, &error));
                }
                _ => {}
            }
        }
        // Whatever else is in there is not ours.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }
}

fn told(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.display().to_string(), why: why.to_string() }
}

/// The lock of a folder, held.
fn locked(path: &Path) -> Result<File, Error> {
    let busy = || told(path, &"another run is at work here");
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(path);
    let lock = open.map_err(|e| told(path, &e))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(busy()),
        Err(TryLockError::Error(error)) => return Err(told(path, &error)),
    }
    // A run that has just finished deletes its lock: what is locked may be no longer what is there.
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let held = lock.metadata().map_err(|e| told(path, &e))?;
        let there = fs::metadata(path).map_err(|_| busy())?;
        if (held.dev(), held.ino()) != (there.dev(), there.ino()) {
            return Err(busy());
        }
    }
    Ok(lock)
}

/// Puts a file there, whole, flushed and readable by its owner alone.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    // One that was left by a broken run may have any mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The name itself must be on the disk too, where folders can be flushed.
    #[cfg(unix)]
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(())
}

/// Where a training stands: public.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Page {
    pub(super) step: u64,
    pub(super) weights: Vec<f32>,
    pub(super) velocity: Vec<f64>,
}

impl Page {
    /// Before the first step.
    pub(super) fn first(network: &ConvNet) -> Page {
        let weights = network.weights().to_vec();
        Page { step: 0, velocity: vec![0.0; weights.len()], weights }
    }

    /// What tells this page of this run from all others.
    fn seal(bound: &Key, page: &[u8]) -> Result<[u8; 32], Error> {
        let mut bits = bound.bound_to([page]).stream("the seal of a page").bits(0)?;
        let mut seal = [0; 32];
        for part in seal.as_chunks_mut::<8>().0 {
            *part = bits.word()?.to_le_bytes();
        }
        Ok(seal)
    }

    fn bytes(&self, bound: &Key) -> Result<Vec<u8>, Error> {
        let mut page = self.step.to_le_bytes().to_vec();
        page.extend(self.weights.iter().flat_map(|w| w.to_le_bytes()));
        page.extend(self.velocity.iter().flat_map(|v| v.to_le_bytes()));
        Ok([&MAGIC[..], &Page::seal(bound, &page)?, &page].concat())
    }

    /// None for what has no seal of this run.
    fn read(bytes: &[u8], bound: &Key, width: usize) -> Result<Option<Page>, Error> {
        let sealed = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk::<32>());
        let Some((seal, page)) = sealed.filter(|(_, page)| page.len() == 8 + 12 * width) else {
            return Ok(None);
        };
        if *seal != Page::seal(bound, page)? {
            return Ok(None);
        }
        let (step, rest) = page.split_first_chunk::<8>().expect("was measured");
        let (weights, velocity) = rest.split_at(4 * width);
        let weights = weights.as_chunks().0.iter().map(|w| f32::from_le_bytes(*w)).collect();
        let velocity = velocity.as_chunks().0.iter().map(|v| f64::from_le_bytes(*v)).collect();
        Ok(Some(Page { step: u64::from_le_bytes(*step), weights, velocity }))
    }
}
