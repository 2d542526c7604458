//! What people and programs read.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

/// Prints text and a line end to stdout. Colours are taken out where nobody would see them.
///
/// # Errors
/// What writing reports; that nobody reads any more is one of it, see [`unless_reader_left`].
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout().lock(), "{text}")
}

/// Prints a value as one line of JSON to stdout.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(value)?;
    line(text)
}

/// Prints a value as JSON for people and programs to stdout.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    line(text)
}

/// Prints an error to stderr. If that is closed there is no one to tell.
pub(crate) fn error(message: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "\x1b[1;31mposthaste:\x1b[0m {message}");
}

/// Prints a remark to stderr.
pub(crate) fn note(message: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "posthaste: {message}");
}

/// A reader that has gone (`posthaste profiles | head -1`) has got what it wanted.
pub(crate) fn unless_reader_left(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// `text` as one line that cannot play tricks with a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            printable.extend(character.escape_unicode());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// Characters that turn the direction of text, or have no width.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A duration with three digits: `812 us`, `12.3 ms`, `4.56 s`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.001 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// `text` as one argument of a POSIX shell.
pub(crate) fn shell_quote(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (micros, expected) in [(0, "0 us"), (812, "812 us"), (12_345, "12.3 ms"), (4_560_000, "4.56 s")] {
            assert_eq!(duration(Duration::from_micros(micros)), expected);
        }
    }

    #[test]
    fn arguments_survive_the_shell() {
        assert_eq!(shell_quote("/a-b_c.d"), "/a-b_c.d");
        assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_quote("https://[::1]:1/"), "'https://[::1]:1/'");
        assert_eq!(shell_quote(""), "''");
    }

    #[test]
    fn a_logged_path_stays_on_its_line() {
        assert_eq!(printable("/é\n\u{1b}[31m\u{202e}"), "/é\\u{a}\\u{1b}[31m\\u{202e}");
    }
}
