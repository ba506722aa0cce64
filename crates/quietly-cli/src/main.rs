//! The `quietly` command.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    quietly_cli::main()
}
