//! What `rivals.py` has measured.
use serde::Deserialize;

/// A line that it printed.
#[derive(Deserialize)]
pub(crate) struct Rival {
    /// An accounting scheme, or a library.
    pub(crate) scheme: String,
    /// The scheme's parameters, or rows and columns of a table.
    pub(crate) parameters: Vec<f64>,
    /// The bounds on ε that an accountant gave.
    pub(crate) lower: Option<f64>,
    pub(crate) upper: Option<f64>,
    /// The file that was read.
    pub(crate) path: Option<String>,
    pub(crate) seconds: f64,
}

pub(crate) fn read(path: &str) -> Vec<Rival> {
    let text = std::fs::read_to_string(path).expect("the file that rivals.py wrote");
    text.lines().map(|row| serde_json::from_str(row).expect("a line of rivals.py")).collect()
}

/// The one for a library and a table.
pub(crate) fn find<'a>(
    rivals: &'a [Rival],
    scheme: &str,
    (rows, width): (usize, usize),
) -> Option<&'a Rival> {
    let shape = [rows as f64, width as f64];
    rivals.iter().find(|r| r.scheme == scheme && r.parameters == shape)
}
