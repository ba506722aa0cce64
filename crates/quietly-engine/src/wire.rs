//! Messages between the process that adds noise and the workers that read rows.
//!
//! A worker of another build may clip, round or encode rows in another way. Its sums would break the sensitivity that the noise is
//! made for, and nothing would show it. So every message, there and back, begins with a line that names the build that wrote it:
//! `quietly 3 0.1.0 9f86d081884c7d65` is the protocol, the version, and a hash of the sources that decide sums (`build.rs`). A message
//! of another build is refused before it is parsed.
use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// The number of this protocol. Any change of what travels has a new one.
const PROTOCOL: u32 = 3;
/// No line that names a build is longer.
const LINE: usize = 200;

/// Which build of quietly wrote a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    protocol: u32,
    version: String,
    sources: String,
}

impl Build {
    /// This build.
    pub fn this() -> Self {
        let (version, sources) = (env!("CARGO_PKG_VERSION"), env!("QUIETLY_SOURCES"));
        Build { protocol: PROTOCOL, version: version.into(), sources: sources.into() }
    }

    /// The line that messages begin with, without its end.
    pub fn line(&self) -> String {
        format!("quietly {} {} {}", self.protocol, self.version, self.sources)
    }

    /// From such a line; none if it is something else. The words are short and plain, so that they may be quoted.
    pub fn from_line(line: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let mut words = line.split(' ');
        let (Some("quietly"), Some(protocol), Some(version), Some(sources), None) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        else {
            return None;
        };
        let good = |word: &str| (1..=64).contains(&word.len()) && word.chars().all(plain);
        let build = || Build {
            protocol: protocol.parse().unwrap_or(0),
            version: version.into(),
            sources: sources.into(),
        };
        (good(version) && good(sources)).then(build)
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Build { protocol, version, sources } = self;
        write!(f, "quietly {version} (protocol {protocol}, sources {sources})")
    }
}

/// Why a message is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Foreign {
    /// Another build wrote it.
    #[error("this is {this}, but the other side is {0}: all parts must be of one build", this = Build::this())]
    Build(Build),
    /// It is not a message, or not the one that was expected.
    #[error("this is not a message for {this}", this = Build::this())]
    Bytes,
}

/// A message with this body. It may hold secrets: keep it from logs.
pub fn sealed(body: &[u8]) -> Vec<u8> {
    [Build::this().line().as_bytes(), b"\n", body].concat()
}

/// The body of a message.
///
/// # Errors
///
/// [`Foreign`] unless this build wrote it.
pub fn opened(message: &[u8]) -> Result<&[u8], Foreign> {
    let end = message.iter().take(LINE).position(|byte| *byte == b'\n').ok_or(Foreign::Bytes)?;
    let line = std::str::from_utf8(&message[..end]).map_err(|_| Foreign::Bytes)?;
    match Build::from_line(line).ok_or(Foreign::Bytes)? {
        build if build == Build::this() => Ok(&message[end + 1..]),
        other => Err(Foreign::Build(other)),
    }
}

/// A value as a message. It may hold secrets: keep it from logs.
pub fn to_bytes(what: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::new();
    ciborium::into_writer(what, &mut body).expect("plain fields");
    sealed(&body)
}

/// The value of a message.
///
/// # Errors
///
/// [`Foreign`] unless this build wrote it, and it is such a value.
pub fn from_bytes<T: DeserializeOwned>(message: &[u8]) -> Result<T, Foreign> {
    ciborium::from_reader(opened(message)?).map_err(|_| Foreign::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a build that differs in one word would send.
    fn of_another(message: &[u8], from: &str, to: &str) -> Vec<u8> {
        let line = Build::this().line();
        let body = message.strip_prefix(line.as_bytes()).unwrap();
        assert!(line.contains(from));
        [line.replacen(from, to, 1).as_bytes(), body].concat()
    }

    #[test]
    fn a_message_of_another_build_is_refused_by_version_and_sources() {
        let message = to_bytes(&vec![4711_u64, 7]);
        assert_eq!(from_bytes::<Vec<u64>>(&message), Ok(vec![4711, 7]));
        let Build { sources, version, .. } = Build::this();
        assert_eq!(sources.len(), 16);
        for (from, to) in [(&*sources, "00000000deadbeef"), (&version, "0.0.9"), ("ly 3", "ly 4")] {
            let error = from_bytes::<Vec<u64>>(&of_another(&message, from, to)).unwrap_err();
            let Foreign::Build(other) = &error else { panic!("{error}") };
            assert_eq!(other.line(), Build::this().line().replacen(from, to, 1));
            let said = error.to_string();
            assert!(said.contains(&format!("this is quietly {version}")), "{said}");
            assert!(said.contains(&format!("the other side is {other}")), "{said}");
        }
    }

    /// What older versions sent, cut or damaged messages, and names that are no names: nothing of them is quoted.
    #[test]
    fn other_bytes_are_no_message() {
        let mut bare = Vec::new();
        ciborium::into_writer(&vec![4711_u64], &mut bare).unwrap();
        let message = to_bytes(&vec![4711_u64]);
        let long = format!("quietly 3 {} 1\n", "9".repeat(300));
        let bad: [&[u8]; 7] = [
            &bare,
            b"",
            b"quietly",
            b"quietly 3 0.1.0\n",
            b"quietly 3 \x1b[31m 1\n",
            long.as_bytes(),
            &message[..message.len() - 1],
        ];
        for bytes in bad {
            assert_eq!(from_bytes::<Vec<u64>>(bytes), Err(Foreign::Bytes));
        }
    }
}
