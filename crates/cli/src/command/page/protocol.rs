//! What a page comes by.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What a page must come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub(crate) enum Protocol {
    /// HTTP/3, forced: the browser has no time to find out
    #[serde(rename = "h3")]
    H3,
    /// HTTP/2 over TCP, QUIC switched off
    #[serde(rename = "h2")]
    H2,
    /// HTTP/1.1 over TCP, QUIC and HTTP/2 switched off
    #[serde(rename = "h1")]
    #[value(name = "h1")]
    H1,
}

impl Protocol {
    /// As browsers name it.
    pub(crate) fn alpn(self) -> &'static str {
        match self {
            Self::H3 => "h3",
            Self::H2 => "h2",
            Self::H1 => "http/1.1",
        }
    }
}
