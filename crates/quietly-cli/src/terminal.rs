//! The terminal: results on stdout, progress and errors on stderr.
use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc, Mutex,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use quietly::{is_hidden, visible};

/// The number of columns that text is wrapped to.
pub const WIDTH: usize = 80;

/// The only escape sequences that are written.
const STYLES: [&str; 3] = ["\x1b[1m", "\x1b[36m", "\x1b[0m"];

/// JSON whose texts have hidden characters as escapes.
pub(crate) fn json_text(value: &serde_json::Value) -> String {
    let mut text = String::new();
    for c in format!("{value:#}").chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
        } else {
            text.push(c);
        }
    }
    text
}

/// Stdout, with or without colour.
pub struct Screen {
    out: io::StdoutLock<'static>,
    colour: bool,
}

impl Screen {
    /// Colour only on a terminal, and not under `NO_COLOR` or `TERM=dumb`.
    pub(crate) fn new() -> Screen {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let out = io::stdout().lock();
        Screen { colour: out.is_terminal() && !set("NO_COLOR") && !dumb, out }
    }

    /// Prints one line, or several.
    ///
    /// A closed pipe, as in `quietly ... | head`, is no error, and the work continues.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        let text = self.safe(text);
        let said = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
        said.or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) })
    }

    /// Prints a JSON document.
    pub fn say_json(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.say(&json_text(value))
    }

    /// The text without hidden characters, our own colours excepted.
    fn safe(&self, text: &str) -> String {
        if !self.colour || !text.contains('\x1b') {
            return visible(text).into_owned();
        }
        let ours = |part: &str| STYLES.iter().copied().find(|style| part.starts_with(*style));
        let (mut safe, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('\x1b') {
            safe += &visible(&rest[..at]);
            let style = ours(&rest[at..]);
            safe += style.unwrap_or("\\u{1b}");
            rest = &rest[at + style.map_or(1, str::len)..];
        }
        safe + &visible(rest)
    }

    /// The same text, bold where there is colour.
    pub fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// The same text, cyan where there is colour.
    pub(crate) fn tint(&self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{style}m{text}\x1b[0m") } else { text.into() }
    }
}

/// A line on stderr about work that takes longer than a second. Dropping it removes the line.
pub struct Progress {
    doing: Arc<Mutex<String>>,
    done: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts to report what is being done. Prints nothing unless stderr is a terminal.
    pub fn new(doing: &str) -> Progress {
        let doing = Arc::new(Mutex::new(doing.to_string()));
        if !io::stderr().is_terminal() {
            return Progress { doing, done: None };
        }
        let now = Arc::clone(&doing);
        let (send, stop) = mpsc::channel();
        let start = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut wait = Duration::from_secs(1);
            let mut shown = false;
            while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(wait) {
                let doing = now.lock().map(|d| d.clone()).unwrap_or_default();
                let doing = visible(&doing);
                let _ = write!(io::stderr(), "\r\x1b[K{doing} ... {} s", start.elapsed().as_secs());
                (wait, shown) = (Duration::from_millis(500), true);
            }
            if shown {
                // Wipes the line, so that the result stands where the progress stood.
                let _ = write!(io::stderr(), "\r\x1b[K");
            }
        });
        Progress { doing, done: Some((send, thread)) }
    }

    /// Replaces the text about what is being done.
    pub fn say(&self, doing: &str) {
        if let Ok(mut now) = self.doing.lock() {
            *now = doing.into();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((send, thread)) = self.done.take() {
            drop(send);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_escape_sequences_are_written() {
        let out = io::stdout().lock();
        let mut screen = Screen { out, colour: true };
        let text = format!("{} \x1b[2J\u{202e}\n\t", screen.bold("a"));
        assert_eq!(screen.safe(&text), "\x1b[1ma\x1b[0m \\u{1b}[2J\\u{202e}\n\\u{9}");
        screen.colour = false;
        assert_eq!(screen.safe("\x1b[1ma"), "\\u{1b}[1ma");
    }

    #[test]
    fn json_stays_json_and_has_no_hidden_character() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}[2J\u{202e}\u{e0001} \u{feff}é" });
        let text = json_text(&value);
        assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
