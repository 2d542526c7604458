//! Which form of a scheme runs: the paper's, or the one that could be deployed.

use serde::{Deserialize, Serialize};

/// The form of a scheme: `variant = "safe"` (the default) or `variant = "paper"` in a profile.
///
/// The profile `<scheme>` runs the safe form, `<scheme>-paper` the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// What one could deploy: harmless where the scheme's assumptions do not hold.
    #[default]
    Safe,
    /// What the paper describes, to the last constant, for comparison.
    Paper,
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Safe => "safe",
            Self::Paper => "paper",
        })
    }
}
