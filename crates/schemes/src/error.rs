//! Why there is no such profile.

use posthaste_policy::BuildError;

/// Why there is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile has the name.
    #[error(
        "there is no profile `{name}`; there are: {}; forms for comparison: {}",
        .valid.join(", "),
        crate::comparison_names().join(", ")
    )]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        valid: &'static [&'static str],
    },
    /// The TOML text is not a profile.
    #[error("profile `{name}`{}: {message}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// The profile's name.
        name: String,
        /// The line, counted from 1, where the fault is at one place.
        line: Option<usize>,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A parameter is missing, or is given and is not valid.
    #[error("profile `{name}`: {message}")]
    Parameter {
        /// The profile's name.
        name: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The profile's file cannot be read.
    #[error("cannot read the profile {path}: {message}")]
    File {
        /// The file's path.
        path: String,
        /// What the operating system says.
        message: String,
    },
}

impl From<BuildError> for ProfileError {
    fn from(error: BuildError) -> Self {
        let (name, message) = match error {
            BuildError::Missing { ref name, .. } => (name.clone(), error.to_string()),
            BuildError::Windows { name, message } => (name, message),
        };
        Self::Invalid { name, line: None, message }
    }
}
