//! Memory that is asked early.

/// Asks memory for the number at a place, which will be wanted soon; what lies beyond the end is not asked for.
///
/// It is brought to the second cache: the first waits for few lines at a time, and rows that lie apart would arrive three times as slowly.
/// On processors other than x86-64 nothing is done.
#[inline(always)]
pub fn call<T>(data: &[T], index: usize) {
    if let Some(number) = data.get(index) {
        #[cfg(target_arch = "x86_64")]
        safe_arch::prefetch_t1(number);
        #[cfg(not(target_arch = "x86_64"))]
        let _ = number;
    }
}
