//! What an endpoint and its connections are built with.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use posthaste_policy::Profile;
use posthaste_units::{ByteCount, Duration};
use posthaste_wire::packet::version;
use posthaste_wire::{ConnectionId, Side};

/// Settings of a connection's transport, shared by all connections made from one configuration.
#[derive(Clone)]
pub struct TransportConfig {
    /// Decides how fast: congestion control, credit, acks.
    pub profile: Profile,
    /// Time without traffic after which the connection is dropped silently; zero for never. The lesser of
    /// both ends' values holds (RFC 9000 section 10.1). Default 30 s.
    pub max_idle_timeout: Duration,
    /// Interval of PINGs that keep an idle connection alive; `None` sends none. Default `None`.
    pub keep_alive: Option<Duration>,
    /// Bidirectional streams that the peer may have open at once. Default 256, at most 65,536.
    pub max_concurrent_bidi_streams: u64,
    /// Unidirectional streams that the peer may have open at once. Default 32, at most 65,536.
    pub max_concurrent_uni_streams: u64,
    /// Bytes of stream data that a connection keeps until they are acknowledged. Default 16 MiB.
    pub send_buffer: ByteCount,
    /// Bytes of one stream that may wait unsent before writes block. Default 256 KiB.
    pub unsent_limit: ByteCount,
    /// Assumed RTT before the first sample. Default 333 ms (RFC 9002 section 6.2.2).
    pub initial_rtt: Duration,
    /// Size of the largest UDP payloads sent, 1200 to 65,527. Default 1452, which fits an Ethernet path and IPv6.
    pub max_datagram_size: usize,
    /// Path MTU discovery (RFC 8899): datagrams begin at 1252 bytes, which fits an IPv6 path of 1300 and every common
    /// tunnel, grow up to [`Self::max_datagram_size`] as far as the path carries them, and shrink to 1200 where it
    /// ceases to. Without it, all full datagrams have that size from the first on. Default true.
    pub mtu_discovery: bool,
    /// On a server: clients may move to other addresses (RFC 9000 section 18.2, `disable_active_migration`). One
    /// that the network moves is followed whatever this says. Default true.
    pub active_migration: bool,
    /// Sends reserved transport parameters so that peers keep ignoring what they do not know, and takes and sends
    /// packets with either fixed bit (RFC 9287) so that the network does. Default true.
    pub grease: bool,
    /// Where qlog traces go; `None` writes none.
    pub qlog: Option<Arc<dyn QlogSink>>,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            max_idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            max_concurrent_bidi_streams: 256,
            max_concurrent_uni_streams: 32,
            send_buffer: ByteCount::new(16 << 20),
            unsent_limit: ByteCount::new(256 << 10),
            initial_rtt: Duration::from_millis(333),
            max_datagram_size: 1452,
            mtu_discovery: true,
            active_migration: true,
            grease: true,
            qlog: None,
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// Opens a qlog trace for each connection.
pub trait QlogSink: Send + Sync {
    /// Where the trace of the connection with this original destination ID goes, or `None` for no trace.
    /// A sink that cannot open its file logs that and returns `None`: tracing never disturbs a connection.
    ///
    /// Asked once a connection, at a server with the first authentic packet. What is written are blocks of whole
    /// records, each followed by a flush: at the latest with the first event a second after the last block, and when
    /// the connection closes and when it is dropped. So the trace is valid whenever the process ends, though it may
    /// lack the last second. The first error ends the trace.
    fn open(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Write + Send + Sync>>;
}

/// What a server's connections are made from.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// TLS settings; must offer TLS 1.3 and an ALPN protocol.
    pub tls: Arc<rustls::ServerConfig>,
    /// Handshakes that may be in progress at once; further Initials are dropped. Default 4096.
    pub max_pending_handshakes: usize,
}

impl ServerConfig {
    /// A server with default transport settings.
    pub fn new(tls: Arc<rustls::ServerConfig>) -> Self {
        Self { transport: Arc::default(), tls, max_pending_handshakes: 4096 }
    }

    /// The same with these transport settings.
    pub fn with_transport(mut self, transport: Arc<TransportConfig>) -> Self {
        self.transport = transport;
        self
    }
}

/// A version of QUIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// Version 1 (RFC 9000).
    #[default]
    V1,
    /// Version 2 (RFC 9369): the same under other numbers and keys, for paths that ossify on version 1.
    V2,
}

impl Version {
    /// Its number on the wire.
    pub const fn number(self) -> u32 {
        match self {
            Self::V1 => version::V1,
            Self::V2 => version::V2,
        }
    }
}

/// What a client's connections are made from.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The version that the client begins with, and keeps. Default version 1.
    pub version: Version,
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// TLS settings; must offer TLS 1.3 and an ALPN protocol.
    pub tls: Arc<rustls::ClientConfig>,
}

impl ClientConfig {
    /// A client with default transport settings.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Self {
        Self { version: Version::default(), transport: Arc::default(), tls }
    }

    /// The same with this version.
    pub fn with_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// The same with these transport settings.
    pub fn with_transport(mut self, transport: Arc<TransportConfig>) -> Self {
        self.transport = transport;
        self
    }
}

/// Exponent of the ACK Delay field in ACK frames sent: units of 8 microseconds (RFC 9000 section 18.2).
pub(crate) const ACK_DELAY_EXPONENT: u8 = 3;
