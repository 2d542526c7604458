//! How the command ends: exit codes, and messages that say what to do.

use std::fmt;
use std::process::ExitCode;

/// Something was transferred badly, or the command cannot run.
pub(crate) const FAILED: u8 = 1;

/// The command is used wrongly; clap uses the same.
pub(crate) const USAGE: u8 = 2;

/// Ctrl-C ended the command, which has shown or kept what there was; shells use the same (128 + SIGINT).
pub(crate) const INTERRUPTED: u8 = 130;

/// An emulated run whose figures are worthless. Programs that run others use the same for faults of their own
/// (`env`, `timeout`).
#[cfg(target_os = "linux")]
pub(crate) const VOID: u8 = 125;

/// The program to be run is none, or may not be run; shells report the same.
#[cfg(target_os = "linux")]
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// There is no such program; shells report the same.
#[cfg(target_os = "linux")]
pub(crate) const NOT_FOUND: u8 = 127;

/// Why the command cannot do what it was asked to.
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

    /// Prints it and gives its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        crate::printer::error(self);
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "\n  {hint}"))
    }
}
