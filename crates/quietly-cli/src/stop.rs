//! Ctrl-C: the run stops at the next step, and what it was writing is removed.
use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on ctrl-C asks; asked twice, it ends the process at once.
pub(crate) fn listen() {
    // Without a handler ctrl-C ends the process, which is no worse.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// Whether somebody asked.
pub(crate) fn asked() -> ControlFlow<()> {
    if ASKED.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
