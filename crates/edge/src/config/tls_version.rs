//! Versions of TLS.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The oldest version of TLS that clients over TCP may use. QUIC always has TLS 1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
pub enum TlsVersion {
    /// For clients from before 2018, too.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// The newest.
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for TlsVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err("must be 1.2 or 1.3".to_owned()),
        }
    }
}
