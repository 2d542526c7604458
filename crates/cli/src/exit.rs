//! Exit codes and error messages with hints.

use std::fmt;
use std::process::ExitCode;

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
