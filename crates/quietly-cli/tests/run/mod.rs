//! Runs the built command: `quietly`, or `quietly-lab` in the tests of that crate.
#![allow(dead_code, reason = "each test file uses its part")]
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;

/// Cargo names the binary of the package under test.
pub(crate) const BINARY: &str =
    match (option_env!("CARGO_BIN_EXE_quietly"), option_env!("CARGO_BIN_EXE_quietly-lab")) {
        (Some(path), _) | (None, Some(path)) => path,
        (None, None) => panic!("no binary under test"),
    };

/// What a command left behind.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// `quietly` with these arguments.
pub(crate) fn quietly(arguments: &str) -> Done {
    quietly_in(Path::new("."), arguments)
}

fn quietly_in(folder: &Path, arguments: &str) -> Done {
    let output = Command::new(BINARY)
        .args(arguments.split_whitespace())
        .current_dir(folder)
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

/// What is public about [`table`].
pub(crate) const SCHEMA: &str = "\
rows = 3000
unit = \"person\"
[columns]
a = { range = [0, 10] }
b = { range = [-1, 1], missing = 0 }
c = { values = [\"u\", \"v\"] }
y = { range = [0, 40] }
";

/// y = 3a + 5b + 2 [c = v] + 5 and a little, with a column that no schema describes: no randomness, no real person.
pub(crate) fn table(rows: usize) -> String {
    let mut text = String::from("a,b,c,y,name\n");
    for i in 0..rows {
        let fraction = |m: usize| (i * m % 1009) as f64 / 1009.0;
        let (a, b, c) = (10.0 * fraction(331), 2.0 * fraction(577) - 1.0, i % 3 == 0);
        let y = 3.0 * a + 5.0 * b + if c { 7.0 } else { 5.0 } + fraction(97) - 0.5;
        let c = if c { "v" } else { "u" };
        text += &format!("{a:.3},{b:.3},{c},{y:.3},p{i}\n");
    }
    text
}

/// A model file but for the names of the files that it was fitted on, and the digest of it all.
pub(crate) fn but_for_files(model: &str) -> Value {
    let mut model: Value = serde_json::from_str(model).expect("a model");
    model.as_object_mut().expect("an object").remove("digest").expect("a digest");
    let public = model["certificate"]["public"].as_array_mut().expect("a list");
    let before = public.len();
    public.retain(|line| !line.as_str().is_some_and(|l| l.starts_with("the files that were read")));
    assert_eq!(public.len() + 1, before);
    model
}

/// An empty folder that goes away again.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("a folder for tests");
        Folder(path)
    }

    /// A folder with `train.csv`, `test.csv` and `s.toml`.
    pub(crate) fn with_tables() -> Folder {
        let folder = Folder::new();
        folder.write("train.csv", table(3000));
        folder.write("test.csv", table(200));
        folder.write("s.toml", SCHEMA);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect(name);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    /// The names of everything in it, sorted.
    pub(crate) fn list(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder");
        let name = |e: fs::DirEntry| e.file_name().into_string().expect("a name");
        let mut names: Vec<String> = entries.map(|e| name(e.expect("an entry"))).collect();
        names.sort();
        names
    }

    /// `quietly` with these arguments, in the folder.
    pub(crate) fn quietly(&self, arguments: &str) -> Done {
        quietly_in(&self.0, arguments)
    }

    /// A line as pasted, in the folder.
    pub(crate) fn console(&self, line: &str) -> Done {
        self.quietly(line.strip_prefix("quietly").expect(line))
    }

    /// A command that must succeed; gives what it says.
    pub(crate) fn good(&self, arguments: &str) -> String {
        let done = self.quietly(arguments);
        assert_eq!(done.code, 0, "{arguments}\n{}", done.stderr);
        assert_eq!(done.stderr, "", "{arguments}");
        done.stdout
    }

    /// The same, for programs.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        let arguments = format!("{arguments} --json");
        serde_json::from_str(&self.good(&arguments)).expect(&arguments)
    }

    /// A command that must fail, with this code and exit status, and leave the folder as it was. Gives the message.
    pub(crate) fn bad(&self, arguments: &str, code: &str, exit: i32) -> String {
        let before = self.list();
        let done = self.quietly(arguments);
        let said = format!("{arguments}\n{}{}", done.stdout, done.stderr);
        assert_eq!(done.code, exit, "{said}");
        assert!(done.stderr.starts_with(&format!("error[{code}]: ")), "{said}");
        assert!(done.stderr.contains("\n  hint: "), "{said}");
        assert!(!said.contains("saved"), "{said}");
        assert_eq!(self.list(), before, "{said}");
        let json = self.quietly(&format!("{arguments} --json"));
        let value: Value = serde_json::from_str(&json.stderr).expect(&json.stderr);
        assert_eq!((&value["error"]["code"], json.code), (&code.into(), exit), "{said}");
        assert_eq!(json.stdout, "", "{said}");
        assert_eq!(self.list(), before, "{said}");
        done.stderr
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether every tag of an SVG text that opens also closes, in order.
pub(crate) fn well_formed(text: &str) -> bool {
    let mut open: Vec<&str> = vec![];
    for part in text.split('<').skip(1) {
        let Some((tag, _)) = part.split_once('>') else { return false };
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or_default());
        }
    }
    open.is_empty()
}
