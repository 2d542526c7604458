//! Which requests may be answered before the handshake is complete.

use serde::{Deserialize, Serialize};

/// Requests that came as early data (0-RTT), which somebody on the path may have repeated (RFC 8470). Whatever is chosen,
/// those with other methods than GET, HEAD, OPTIONS and TRACE get 425.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyDataUse {
    /// They wait until the handshake is complete.
    Off,
    /// Those that the edge answers by itself, with files, redirects or replies, do not wait; those for upstreams do.
    Files,
    /// None waits. Upstreams are told by `Early-Data: 1`.
    #[default]
    Safe,
}

impl EarlyDataUse {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
