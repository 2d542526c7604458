//! Settings of a proxy.

use std::time::Duration;

use ipnet::IpNet;

use crate::health::HealthCheck;

/// How a proxy presents itself, whom it believes, and how long it waits.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// Its name in `Via`, a token (RFC 9110 section 7.6.3). A request that has passed a proxy of this name is answered
    /// with 508. Default `posthaste`.
    pub name: String,
    /// Networks of clients that are proxies themselves: what they say in `X-Forwarded-*` and `Forwarded` counts. Default
    /// none.
    pub trusted: Vec<IpNet>,
    /// Also writes `Forwarded` (RFC 7239). Default no.
    pub forwarded: bool,
    /// Time for a connection to the upstream, TLS included. Default 2 s.
    pub connect_timeout: Duration,
    /// Longest silence of an upstream before its response. While the request's body moves, or the client has yet to send
    /// more of it, the upstream is not expected to speak. Default 60 s.
    pub head_timeout: Duration,
    /// Longest silence of an upstream within a response's body, other than `text/event-stream`, where silence is usual.
    /// Default 60 s.
    pub idle_timeout: Duration,
    /// Time for which a request is held back until its body begins or ends: a request without a body is then forwarded as
    /// one, and one whose body breaks the protocol at once is not forwarded at all. Default 10 s.
    pub first_frame_timeout: Duration,
    /// Longest silence of both ends of a WebSocket; it ends after up to twice this time. Default 10 min.
    pub tunnel_timeout: Duration,
    /// How upstreams are asked whether they are well. Default not at all: an upstream is left out for a while when it cannot be
    /// reached three times in a row, if there are others.
    pub health: Option<HealthCheck>,
    /// Time for which an idle connection to the upstream is kept. Default 30 s.
    pub keep_timeout: Duration,
    /// Idle connections that are kept per upstream. Default 256.
    pub max_idle: usize,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            name: "posthaste".to_owned(),
            trusted: Vec::new(),
            forwarded: false,
            connect_timeout: Duration::from_secs(2),
            head_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            first_frame_timeout: Duration::from_secs(10),
            tunnel_timeout: Duration::from_secs(600),
            health: None,
            keep_timeout: Duration::from_secs(30),
            max_idle: 256,
        }
    }
}
