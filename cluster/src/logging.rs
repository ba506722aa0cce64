//! What the engine says: warnings, or everything.
use std::time::Instant;

struct Stderr(Instant);

impl log::Log for Stderr {
    fn enabled(&self, about: &log::Metadata<'_>) -> bool {
        about.target().starts_with("ballista") || about.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let (at, target) = (self.0.elapsed().as_secs_f64(), record.target());
            eprintln!("{at:9.3} {} {target}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// To be called once.
pub(crate) fn start(verbose: bool) {
    let level = if verbose { log::LevelFilter::Info } else { log::LevelFilter::Error };
    if log::set_logger(Box::leak(Box::new(Stderr(Instant::now())))).is_ok() {
        log::set_max_level(level);
    }
}
