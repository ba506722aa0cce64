//! Runs the built command.
#![allow(dead_code, reason = "each test file uses its part")]
use std::process::{Command, Stdio};

/// What a command left behind.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `quietly` with these arguments.
pub(crate) fn quietly(arguments: &str) -> Done {
    let output = Command::new(env!("CARGO_BIN_EXE_quietly"))
        .args(arguments.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .expect("the command is built");
    Done {
        code: output.status.code().expect("no signal"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A line as pasted: `quietly account ...`.
pub(crate) fn console(line: &str) -> Done {
    quietly(line.strip_prefix("quietly").expect(line))
}
