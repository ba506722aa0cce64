//! Panics of Arrow and Parquet readers on damaged files become errors.
//!
//! Lengths in a file are compared with its size before a reader allocates that much memory; see
//! `ipc_lengths.rs` and `parquet_lengths.rs`. Any other panic becomes an error that names the file.
//! Its message is not printed, because it may quote a cell.
use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader. `None` if it panics.
pub(crate) fn catch_panic<T>(read: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !READING.get() {
                before(info);
            }
        }));
    });
    let outer = READING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    READING.set(outer);
    result.ok()
}

/// The most bytes that `compressed` bytes can decompress to, at most 2 GB. A greater length means
/// that the file is damaged.
pub(crate) fn max_inflated(compressed: u64, ratio: u64) -> u64 {
    compressed.saturating_mul(ratio).saturating_add(1 << 12).min(1 << 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_and_not_printed() {
        assert_eq!(catch_panic(|| 5), Some(5));
        assert_eq!(catch_panic(|| -> i32 { panic!("about a cell") }), None);
        assert!(!READING.get());
    }
}
