//! Core files: a copy of a process's memory, which the system writes when the process crashes or gets SIGQUIT. Ours would hold rows.

/// Turns core files off for this process and for those that it starts, unless the variable `QUIETLY_DEBUG` is 1. To be called at
/// the start of a program that reads tables.
///
/// The limit of 0 is for systems that write core files themselves. Where they are piped to a crash service the limit does not count,
/// and the process must not be dumpable. That also keeps debuggers of the same user away.
pub fn forbid_core_files() {
    if std::env::var_os("QUIETLY_DEBUG").is_some_and(|value| value == "1") {
        return;
    }
    // Neither fails: a limit may always be lowered.
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
