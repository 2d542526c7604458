//! Settings of a server.

use std::sync::Arc;
use std::time::Duration;

use posthaste_service::AccessLog;

/// How a server bounds what its clients may ask of it.
#[derive(Clone)]
pub struct TcpOptions {
    /// Connections at once, handshakes included; further ones are closed unanswered. Default 10,000.
    pub max_connections: usize,
    /// Of these, connections of one client, which is an IPv4 address or the /64 of an IPv6 address. Default 1000.
    pub max_connections_per_client: usize,
    /// Requests worked on at once over all connections; further ones wait. Default 4096.
    pub max_requests: usize,
    /// Requests at once on one HTTP/2 connection (RFC 9113 section 5.1.2). Default 128.
    pub max_streams: u32,
    /// Streams of one HTTP/2 connection that the client has opened and reset before they were read; with more the
    /// connection ends (CVE-2023-44487). Default 64.
    pub max_reset_streams: usize,
    /// Size of a request's head, in bytes; at least 8 KiB. Default 32 KiB.
    pub max_header_size: u32,
    /// Fields of an HTTP/1.1 request's head. Default 256.
    pub max_fields: usize,
    /// Time for the TLS handshake. Default 10 s.
    pub handshake_timeout: Duration,
    /// Time for the head of an HTTP/1.1 connection's next request, the silence before it included. Default 20 s.
    pub header_timeout: Duration,
    /// Time for which a connection without a request is kept. Default 60 s.
    pub idle_timeout: Duration,
    /// Time in which a client must take the next 64 KiB of a response, and must send the next bytes of a request's body
    /// that its service waits for. Default 60 s.
    pub stall_timeout: Duration,
    /// Time that requests in progress are given to end once the server stops. Default 10 s.
    pub grace: Duration,
    /// How long clients may remember that their origin speaks HTTP/3 on the UDP port of the same number: responses say so
    /// in `Alt-Svc` (RFC 7838), in whole seconds, where that is the origin's port and unless the service sets the field. To
    /// be set only where HTTP/3 is served. Default `None`.
    pub alt_svc: Option<Duration>,
    /// Offers changes of protocol to the service ([`Upgrade`](posthaste_service::Upgrade)): by HTTP/1.1's `Upgrade`, and by
    /// extended CONNECT (RFC 8441), which HTTP/2 clients are told of. To be set only if the service agrees to some. Default
    /// no.
    pub upgrades: bool,
    /// Told of each request when it is over. Default none.
    pub access_log: Option<Arc<dyn AccessLog>>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_connections_per_client: 1000,
            max_requests: 4096,
            max_streams: 128,
            max_reset_streams: 64,
            max_header_size: 32 * 1024,
            max_fields: 256,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            alt_svc: None,
            upgrades: false,
            access_log: None,
        }
    }
}

impl std::fmt::Debug for TcpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpOptions")
            .field("max_connections", &self.max_connections)
            .field("max_requests", &self.max_requests)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
