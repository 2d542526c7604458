//! Results as JSON.

use serde::Serialize;

/// Plain structures with text keys, into memory: nothing that can fail.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
