//! `[edge.limits]`: bounds on what clients may ask for.

use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use posthaste_endpoint::ByteCount;
use posthaste_http::ServerOptions;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Config, ConfigError, Span};

/// A value with its place in the file, if it is there.
type Given<T> = Option<Spanned<T>>;

/// `[edge.limits]`. What is not given is as the servers have it: `posthaste_tcp::TcpOptions` and
/// `posthaste_http::ServerOptions`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Limits {
    /// Connections at once, over TCP and over UDP each. 1 to 1,000,000. Default 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Given<i64>,
    /// Of these over TCP, connections of one client (IPv4 address or IPv6 /64); at most `connections`. Default 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections_per_client: Given<i64>,
    /// Requests worked on at once, over TCP and over UDP each; further ones wait. 1 to 1,000,000. Default 4096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Given<i64>,
    /// Of these over HTTP/3, requests of one client; at most `requests`. Default 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_client: Given<i64>,
    /// Requests at once on one HTTP/2 connection. 1 to 10,000. Default 128.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2_streams: Given<i64>,
    /// A request's head. 8 kB to 1 MB. Default 32 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Given<ByteCount>,
    /// A request's body; a longer one gets 413. Default: any length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Given<ByteCount>,
    /// For the TLS handshake over TCP. 100 ms to 10 min. Default 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_timeout: Given<Span>,
    /// For a request's head to come. 100 ms to 10 min. Default 20 s over TCP, the silence before it included, 10 s over
    /// HTTP/3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_timeout: Given<Span>,
    /// For which a TCP connection without a request is kept. 100 ms to 1 h. Default 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Given<Span>,
    /// In which a client must take the next 64 KiB of a response, or send the next bytes of a body. 1 s to 1 h. Default
    /// 60 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_timeout: Given<Span>,
}

/// Connections and requests.
const COUNT: RangeInclusive<i64> = 1..=1_000_000;

/// Requests of one HTTP/2 connection.
const STREAMS: RangeInclusive<i64> = 1..=10_000;

impl Limits {
    /// Nothing is said.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// # Errors
    /// A value is out of its range, or above what it is a part of.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let check = Check(config);
        let defaults = ServerOptions::default();
        let most = |all: Option<&Spanned<i64>>, default: usize| {
            all.map_or(i64::try_from(default).unwrap_or(i64::MAX), |all| *all.get_ref())
        };
        check.within("connections", self.connections.as_ref(), &COUNT)?;
        check.within("requests", self.requests.as_ref(), &COUNT)?;
        check.within("http2-streams", self.http2_streams.as_ref(), &STREAMS)?;
        let connections = 1..=most(self.connections.as_ref(), defaults.max_connections);
        check.within("connections-per-client", self.connections_per_client.as_ref(), &connections)?;
        let requests = 1..=most(self.requests.as_ref(), defaults.max_requests);
        check.within("requests-per-client", self.requests_per_client.as_ref(), &requests)?;
        check.within("head", self.head.as_ref(), &(ByteCount::new(8000)..=ByteCount::new(1_000_000)))?;
        let times = |least, most| Span::from_millis(least)..=Span::from_millis(most);
        check.within("handshake-timeout", self.handshake_timeout.as_ref(), &times(100, 600_000))?;
        check.within("head-timeout", self.head_timeout.as_ref(), &times(100, 600_000))?;
        check.within("idle-timeout", self.idle_timeout.as_ref(), &times(100, 3_600_000))?;
        check.within("stall-timeout", self.stall_timeout.as_ref(), &times(1000, 3_600_000))
    }
}

struct Check<'a>(&'a Config);

impl Check<'_> {
    fn within<T: PartialOrd + Display>(
        &self,
        key: &str,
        value: Option<&Spanned<T>>,
        range: &RangeInclusive<T>,
    ) -> Result<(), ConfigError> {
        let Some(value) = value else { return Ok(()) };
        if range.contains(value.get_ref()) {
            return Ok(());
        }
        let span: Range<usize> = value.span();
        let reason = format!("is not within {} and {}", range.start(), range.end());
        Err(self.0.fault(key, &value.get_ref().to_string(), span, reason))
    }
}
