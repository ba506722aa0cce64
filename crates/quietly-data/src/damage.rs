//! Damaged files: what a reader of Arrow or Parquet makes of them must not end the process.
//!
//! Lengths in a file are compared with its size before a reader allocates what they say; see
//! `frames.rs` and `pages.rs`. A panic that is left becomes an error that names the file. What the
//! panic says is not printed, for it may quote a cell.
use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a reader; `None` if it panics.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
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

/// The most bytes that a compressor could have made of so many: a length beyond is damage. None
/// may be above 2 GB.
pub(crate) fn inflated(compressed: u64, ratio: u64) -> u64 {
    compressed.saturating_mul(ratio).saturating_add(1 << 12).min(1 << 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_answer() {
        assert_eq!(guarded(|| 5), Some(5));
        assert_eq!(guarded(|| -> i32 { panic!("about a cell") }), None);
        assert!(!READING.get());
    }
}
