//! Comparisons that are known to fail, with what was measured when they were listed. Each still runs, and its line says so.

/// The name of a comparison, and its numbers.
pub(crate) const KNOWN: &[(&str, &str)] = &[];
