//! What the commands that measure through `posthaste race` share.

use std::process::{Command, Stdio};

use posthaste_campaign::raced::Race;

use crate::Result;

/// Runs `posthaste race --json` and reads what it reports. It has run if it does, also if downloads have failed.
pub(crate) fn race(command: &mut Command) -> Result<Race> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let failed = |error| format!("{command:?}: {}: {error}", output.status);
    Ok(serde_json::from_slice(&output.stdout).map_err(failed)?)
}
