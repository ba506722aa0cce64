//! Fuzzing on the stable toolchain: a seeded mutator, a watchdog and a memory limit.
//!
//! A target is an ordinary test that calls [`check`] with a property of bytes. In `make test` it
//! runs a fixed number of inputs from a fixed seed, so that it gives the same answer each time.
//! `make fuzz SECONDS=60` runs every target for so long, from another seed each time.
//!
//! Inputs start from `corpus/TARGET`: one good file of each format, and every input that ever
//! broke us. What fails is written to `corpus/TARGET/found-HASH`; commit it with the repair.
//! `QUIETLY_FUZZ_INPUT=FILE` runs that one input, and the watchdog lets it finish.
#![forbid(unsafe_code)]

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use arbitrary;

mod mutate;

/// More than this in one process is a finding: the allocation fails, and the process aborts.
const MEMORY: usize = 1 << 30;

/// An input that takes longer is a finding.
const LONGEST: Duration = Duration::from_secs(10);

#[global_allocator]
static LIMITED: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, MEMORY);

/// Does some work in so many bytes. More is a finding: the process aborts, and the input stays in
/// the file that the watchdog keeps.
pub fn within<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let _ = LIMITED.set_limit((LIMITED.allocated() + bytes).min(MEMORY));
    let result = work();
    let _ = LIMITED.set_limit(MEMORY);
    result
}

/// Runs `property` on mutated inputs: `runs` of them, or for `QUIETLY_FUZZ_SECONDS`.
///
/// A property fails by returning a sentence, or by a panic.
///
/// # Panics
///
/// If an input breaks the property. It was then written to the corpus.
pub fn check(target: &str, runs: u64, property: impl Fn(&[u8]) -> Result<(), String>) {
    if let Ok(path) = env::var("QUIETLY_FUZZ_INPUT") {
        return replay(target, Path::new(&path), &property);
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let seeds = seeds(&corpus);
    let seconds: Option<u64> = env::var("QUIETLY_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let seed = if seconds.is_some() { rand::rng().random() } else { 7 };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let until = seconds.map(|s| Instant::now() + Duration::from_secs(s));
    let watchdog = Watchdog::start(target);

    let started = Instant::now();
    let mut done = 0;
    for (name, input) in &seeds {
        watchdog.begin(input);
        if let Err(why) = attempt(&property, input) {
            panic!("{target}: corpus file {name}: {why}");
        }
        done += 1;
    }
    while until.map_or(done < runs, |until| Instant::now() < until) {
        let input = mutate::next(&seeds, &mut rng);
        watchdog.begin(&input);
        if let Err(why) = attempt(&property, &input) {
            let path = keep(&corpus, &input);
            panic!("{target}, seed {seed}, input {done}: {why}\nkept as {}", path.display());
        }
        done += 1;
    }
    println!("{target}: {done} inputs in {:.0} s, no finding", started.elapsed().as_secs_f64());
}

/// One input, to see what it does.
fn replay(target: &str, path: &Path, property: &impl Fn(&[u8]) -> Result<(), String>) {
    let input = fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let started = Instant::now();
    let result = attempt(property, &input);
    let took = started.elapsed();
    assert!(took <= LONGEST, "{target}: {took:?}, {result:?}");
    assert!(result.is_ok(), "{target}: {}", result.unwrap_err());
}

/// The files of a corpus in the order of their names.
fn seeds(corpus: &Path) -> Vec<(String, Vec<u8>)> {
    let entries: Vec<fs::DirEntry> =
        fs::read_dir(corpus).map(|all| all.flatten().collect()).unwrap_or_default();
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        fs::read(entry.path()).ok().map(|bytes| (name, bytes))
    };
    let mut seeds: Vec<_> = entries.into_iter().filter_map(read).collect();
    seeds.sort();
    seeds
}

fn attempt(property: &impl Fn(&[u8]) -> Result<(), String>, input: &[u8]) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| property(input))) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("without a text")))
        }
    }
}

fn keep(corpus: &Path, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = corpus.join(format!("found-{:016x}", hasher.finish()));
    // A corpus that cannot be written must not hide the finding itself.
    let _ = fs::create_dir_all(corpus).and_then(|()| fs::write(&path, input));
    path
}

/// Ends the process when one input takes too long, and leaves the input that ran when the process
/// aborted in a file for temporary files.
struct Watchdog {
    began: Instant,
    /// Milliseconds after `began` at which the current input started.
    at: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    file: PathBuf,
}

impl Watchdog {
    fn start(target: &str) -> Self {
        let began = Instant::now();
        let (at, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let file = env::temp_dir().join(format!("quietly-fuzz-{target}-{}", process::id()));
        let (name, seen, stop, kept) = (target.to_string(), at.clone(), over.clone(), file.clone());
        thread::spawn(move || {
            while !stop.load(Relaxed) {
                thread::sleep(Duration::from_millis(100));
                let since = began.elapsed().as_millis() as u64 - seen.load(Relaxed);
                if since > LONGEST.as_millis() as u64 && !stop.load(Relaxed) {
                    eprintln!("{name}: an input took over {LONGEST:?}: {}", kept.display());
                    process::abort();
                }
            }
        });
        Watchdog { began, at, over, file }
    }

    fn begin(&self, input: &[u8]) {
        let _ = fs::write(&self.file, input);
        self.at.store(self.began.elapsed().as_millis() as u64, Relaxed);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The control: a property that a few bytes break is broken within the runs of a test.
    #[test]
    fn a_broken_property_is_found() {
        let found = catch_unwind(|| {
            check("control", 100_000, |bytes| match bytes {
                [b'q', 0..16, ..] => Err("found".into()),
                _ => Ok(()),
            });
        });
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/control");
        let kept = seeds(&corpus);
        let _ = fs::remove_dir_all(&corpus);
        assert!(found.is_err());
        assert!(kept.iter().any(|(_, bytes)| bytes.first() == Some(&b'q')));
    }
}
