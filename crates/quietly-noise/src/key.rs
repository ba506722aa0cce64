//! The root key, and named streams derived from it.
//!
//! A [`Key`] is 32 bytes. A [`Stream`] is 32 bytes more, derived from the key
//! and a name with HKDF-SHA256 (RFC 5869; the root key is the pseudo-random
//! key, the name is the info), so streams with different names are independent
//! unless HMAC-SHA256 is broken. Nothing here can be printed, and all
//! key bytes are wiped on drop.
use std::fmt;

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::Error;

/// Says which construction a key belongs to, so that the same bytes used
/// elsewhere never give the same streams.
const STREAM_LABEL: &[u8] = b"quietly-noise/1 stream: ";
const BOUND_LABEL: &[u8] = b"quietly-noise/1 key for: ";
const SEED_LABEL: &[u8] = b"quietly-noise/1 seed, not private";

/// Where a key came from. A certificate prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Fresh from the operating system: fit for a release.
    OperatingSystem,
    /// A chosen number: repeatable, **not private**, for tests and research.
    Seed(u64),
}

impl Source {
    /// Whether noise from this source may protect data.
    pub fn is_private(&self) -> bool {
        matches!(self, Self::OperatingSystem)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OperatingSystem => write!(f, "ChaCha20, key from the operating system"),
            Self::Seed(seed) => write!(f, "ChaCha20, fixed seed {seed}: NOT PRIVATE"),
        }
    }
}

/// The root of all randomness of a run.
pub struct Key {
    root: Zeroizing<[u8; 32]>,
    source: Source,
}

impl Key {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    ///
    /// [`Error::OperatingSystem`] if it has none to give.
    pub fn from_os() -> Result<Self, Error> {
        let mut root = Zeroizing::new([0; 32]);
        getrandom::fill(root.as_mut_slice())
            .map_err(|e| Error::OperatingSystem { reason: e.to_string() })?;
        Ok(Self { root, source: Source::OperatingSystem })
    }

    /// A repeatable key, **not private**: anyone who guesses the seed can
    /// subtract the noise. The key remembers it, see [`Key::source`].
    pub fn from_seed(seed: u64) -> Self {
        let (root, _) = Hkdf::<Sha256>::extract(Some(SEED_LABEL), &seed.to_le_bytes());
        Self { root: Zeroizing::new(root.into()), source: Source::Seed(seed) }
    }

    /// A key bound to these parts. Other parts give another key, and all noise is independent.
    ///
    /// A key that is used again, when an interrupted run resumes, must never meet other sums: the
    /// difference of two releases with the same noise is the difference of the sums. Bind the key
    /// to everything that the sums depend on.
    pub fn bound_to<B: AsRef<[u8]>>(&self, parts: impl IntoIterator<Item = B>) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            // With its length: what is one part is never two.
            digest.update((part.as_ref().len() as u64).to_le_bytes());
            digest.update(part.as_ref());
        }
        let mut root = Zeroizing::new([0; 32]);
        // As in `stream`.
        Hkdf::<Sha256>::from_prk(self.root.as_slice())
            .expect("32 bytes are a key")
            .expand_multi_info(&[BOUND_LABEL, &digest.finalize()], root.as_mut_slice())
            .expect("32 bytes are not too many");
        Self { root, source: self.source }
    }

    /// The key as bytes, for a run that may be resumed. **They allow all noise to be removed**:
    /// keep them as confidential as the data, and delete them after the run.
    pub fn secret(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(41));
        let (kind, seed) = match self.source {
            Source::OperatingSystem => (0, 0),
            Source::Seed(seed) => (1, seed),
        };
        bytes.push(kind);
        bytes.extend(seed.to_le_bytes());
        bytes.extend_from_slice(self.root.as_slice());
        bytes
    }

    /// The key that [`secret`](Self::secret) wrote; `None` for other bytes.
    pub fn from_secret(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (seed, root) = rest.split_first_chunk::<8>()?;
        let root = Zeroizing::new(<[u8; 32]>::try_from(root).ok()?);
        let source = match (kind, u64::from_le_bytes(*seed)) {
            (0, 0) => Source::OperatingSystem,
            (1, seed) if Self::from_seed(seed).root == root => Source::Seed(seed),
            _ => return None,
        };
        Some(Self { root, source })
    }

    /// Where this key came from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The stream of this name. The same name gives the same stream: give
    /// every use its own, or its noise can be subtracted from another's.
    pub fn stream(&self, name: &str) -> Stream {
        let mut key = Zeroizing::new([0; 32]);
        // Both can fail only by length: 32 bytes are what HKDF-SHA256 wants
        // and fewer than the 8160 it can give.
        Hkdf::<Sha256>::from_prk(self.root.as_slice())
            .expect("32 bytes are a key")
            .expand_multi_info(&[STREAM_LABEL, name.as_bytes()], key.as_mut_slice())
            .expect("32 bytes are not too many");
        Stream { key, source: self.source, name: name.to_owned() }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("source", &self.source).finish_non_exhaustive()
    }
}

/// One named stream of randomness, in which every (step, coordinate) has bits of its own.
///
/// [`Stream::bits`] reads it in order; noise is drawn from it by the types of this crate.
pub struct Stream {
    key: Zeroizing<[u8; 32]>,
    source: Source,
    name: String,
}

impl Stream {
    /// Where the root key came from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The name of this stream.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stream as bytes, for a worker in another process. **They determine all its random
    /// bits.**
    pub fn secret(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.key.to_vec())
    }

    /// The stream that [`secret`](Self::secret) wrote, with the given name and source; `None` for
    /// other bytes.
    pub fn from_secret(bytes: &[u8], name: &str, source: Source) -> Option<Self> {
        let key = Zeroizing::new(<[u8; 32]>::try_from(bytes).ok()?);
        Some(Stream { key, source, name: name.to_owned() })
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("name", &self.name)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_seeds_separate_streams() {
        let key = Key::from_seed(1);
        assert_eq!(key.stream("noise").key(), key.stream("noise").key());
        assert_ne!(key.stream("noise").key(), key.stream("noisf").key());
        assert_ne!(key.stream("").key(), key.stream("\0").key());
        assert_ne!(key.stream("noise").key(), Key::from_seed(2).stream("noise").key());
        assert_ne!(key.stream("noise").key(), key.root.as_ref());
    }

    #[test]
    fn the_operating_system_gives_fresh_keys() {
        let (a, b) = (Key::from_os().unwrap(), Key::from_os().unwrap());
        assert_ne!(a.root, b.root);
        assert_ne!(a.root, Zeroizing::new([0; 32]));
        assert!(a.source().is_private());
        assert!(!Key::from_seed(0).source().is_private());
    }

    #[test]
    fn a_bound_key_is_another_for_other_parts() {
        let key = Key::from_seed(1);
        let bound = |parts: &[&str]| *key.bound_to(parts).root;
        assert_eq!(bound(&["a", "b"]), bound(&["a", "b"]));
        let all = [bound(&[]), bound(&["a"]), bound(&["ab"]), bound(&["a", "b"]), *key.root];
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other != one), "{at}");
        }
        assert_eq!(key.bound_to(["a"]).source(), Source::Seed(1));
    }

    #[test]
    fn a_secret_is_read_back_and_nothing_else_is() {
        for key in [Key::from_os().unwrap(), Key::from_seed(9)] {
            let secret = key.secret();
            let back = Key::from_secret(&secret).unwrap();
            assert_eq!((back.root.as_ref(), back.source), (key.root.as_ref(), key.source));
            assert!(Key::from_secret(&secret[1..]).is_none());
            // A seed cannot pass for the operating system's key, nor for another seed.
            let mut other = secret.to_vec();
            other[1] ^= 1;
            assert!(Key::from_secret(&other).is_none());
        }
        assert!(Key::from_secret(&[]).is_none());
    }

    /// HKDF by hand, from its definition with one HMAC block of output:
    /// T(1) = HMAC(PRK, info ‖ 0x01). Guards against a silent change of the
    /// derivation, which would change every seeded result.
    #[test]
    fn derivation_is_rfc_5869() {
        use hkdf::hmac::{Hmac, KeyInit, Mac};
        let key = Key::from_seed(7);
        let mut mac = Hmac::<Sha256>::new_from_slice(key.root.as_slice()).unwrap();
        mac.update(b"quietly-noise/1 stream: noise\x01");
        assert_eq!(key.stream("noise").key().as_slice(), mac.finalize().into_bytes().as_slice());
    }

    #[test]
    fn debug_prints_no_key_bytes() {
        let key = Key::from_seed(5);
        let text = format!("{key:?} {:?}", key.stream("noise"));
        assert_eq!(
            text,
            "Key { source: Seed(5), .. } Stream { name: \"noise\", source: Seed(5), .. }"
        );
        assert!(key.source().to_string().contains("NOT PRIVATE"));
    }
}
