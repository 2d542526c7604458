//! Exit codes and error messages with hints.

#[cfg(not(feature = "full"))]
use std::ffi::OsString;
use std::fmt;
use std::process::ExitCode;

use crate::printer;

/// A transfer failed, or the command cannot run.
pub(crate) const FAILED: u8 = 1;

/// Usage error; clap uses the same code.
pub(crate) const USAGE: u8 = 2;

/// Ctrl-C ended the command, which has shown or kept what there was; shells use the same (128 + SIGINT).
pub(crate) const INTERRUPTED: u8 = 130;

/// Void emulated run. Programs that run others use the same for faults of their own
/// (`env`, `timeout`).
#[cfg(target_os = "linux")]
pub(crate) const VOID: u8 = 125;

/// The program cannot be executed; shells use the same code.
#[cfg(target_os = "linux")]
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// The program does not exist; shells use the same code.
#[cfg(target_os = "linux")]
pub(crate) const NOT_FOUND: u8 = 127;

/// A failed command: message, hint and exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// The arguments are wrong.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: USAGE, message: message.to_string(), hint: None }
    }

    /// The arguments are right, the circumstances are not.
    pub(crate) fn runtime(message: impl fmt::Display) -> Self {
        Self { code: FAILED, message: message.to_string(), hint: None }
    }

    /// The same with what to do next.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// The same with the place in a file to which it is due.
    #[cfg(feature = "edge")]
    pub(crate) fn at(mut self, place: Option<String>) -> Self {
        if let Some(place) = place {
            self.message = format!("{place}: {}", self.message);
        }
        self
    }

    /// Prints it and gives its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        printer::error(self);
        ExitCode::from(self.code)
    }
}

/// The command is right, but this build lacks `what` (a feature of the package).
pub(crate) fn not_built(what: impl fmt::Display) -> Failure {
    let words = std::env::args_os().skip(1).map(|word| printer::shell_quote(&word.to_string_lossy()));
    let words: Vec<String> = words.collect();
    Failure::usage(format!("this program was built without {what}"))
        .hint(format!("the complete program has it: cargo run --release -- {}", words.join(" ")))
}

/// Commands that a build can lack.
#[cfg(not(feature = "full"))]
const OPTIONAL_COMMANDS: [&str; 8] = ["race", "serve", "edge", "get", "history", "lab", "emulate", "page"];

/// The command line begins with a command that is not in this build, or in none.
#[cfg(not(feature = "full"))]
pub(crate) fn no_command(words: &[OsString]) -> Failure {
    let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if OPTIONAL_COMMANDS.contains(&&*name) {
        return not_built(format_args!("the command `{name}`"));
    }
    Failure::usage(format!("there is no command `{}`", printer::printable(&name)))
        .hint("`posthaste --help` lists the commands")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  {hint}"))
    }
}
