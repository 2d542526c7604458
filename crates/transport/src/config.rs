//! What an endpoint and its connections are built with.

use std::fmt;
#[cfg(feature = "qlog")]
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use posthaste_policy::Profile;
use posthaste_units::{ByteCount, Rate};
use posthaste_wire::TransportParameters;
use posthaste_wire::packet::version;
#[cfg(feature = "qlog")]
use posthaste_wire::{ConnectionId, Side};
use rustls::client::Resumption;

use crate::crypto::KeyLimits;
use crate::flow::receive_budget::ReceiveBudget;
use crate::flow::send_budget::SendBudget;
use crate::path::history::{PathMemory, PathStore};
use crate::steering::Steering;
use crate::streams::LONGEST_BLOCK;
use crate::tokens::address::TokenTimes;
use crate::tokens::new_token::TokenStore;

/// Settings of a connection's transport, shared by all connections made from one configuration.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings, each of which is on or off")]
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
    /// What all peers together may send without any of it having been read: of one budget are all connections whose
    /// configurations share it, as clones of one configuration do. Default 1 GiB, for this configuration alone.
    pub receive_budget: ReceiveBudget,
    /// Takes `ACK_WINDOW` frames (docs/spec/ack-window.md), and sends them where the profile's credit policy says so and the
    /// peer takes them. Default true.
    pub ack_window: bool,
    /// Largest DATAGRAM frame that the peer may send (RFC 9221), type and length included: 65,535 takes every one that
    /// fits into a packet, 0 none. Default 0.
    pub max_datagram_frame_size: u64,
    /// What all connections together keep of stream data until it is acknowledged, and 64 KiB for each more: of one budget
    /// are all connections whose configurations share it. Default 1 GiB, for this configuration alone.
    pub send_budget: SendBudget,
    /// Bytes of stream data that a connection may keep until they are acknowledged while its congestion window is small;
    /// later four windows. Either as far as the budget has it. Default 16 MiB.
    pub send_buffer: ByteCount,
    /// Bytes of one stream that may wait unsent before writes block; 8 KiB beyond the peer's credit where more than 16
    /// streams have unsent data. Default 256 KiB.
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
    /// How much a key may be used for, if less than its cipher permits.
    pub key_limits: KeyLimits,
    /// Where qlog traces go; `None` writes none. Part of the feature `qlog`.
    #[cfg(feature = "qlog")]
    pub qlog: Option<Arc<dyn QlogSink>>,
}

impl TransportConfig {
    /// Settings with this profile, everything else at its default.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            max_idle_timeout: Duration::from_secs(30),
            keep_alive: None,
            max_concurrent_bidi_streams: 256,
            // spec: rfc9114 6.2 three-streams-at-least
            // spec: rfc9204 4.2 permitted-always
            max_concurrent_uni_streams: 32,
            receive_budget: ReceiveBudget::default(),
            ack_window: true,
            max_datagram_frame_size: 0,
            send_budget: SendBudget::default(),
            send_buffer: ByteCount::new(16 << 20),
            unsent_limit: ByteCount::new(256 << 10),
            initial_rtt: Duration::from_millis(333),
            max_datagram_size: 1452,
            mtu_discovery: true,
            active_migration: true,
            grease: true,
            key_limits: KeyLimits::default(),
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }
}

impl TransportConfig {
    /// The transport parameters that say what these settings are (RFC 9000 section 18.2); a connection adds its own.
    pub(crate) fn parameters(&self) -> TransportParameters {
        TransportParameters {
            max_idle_timeout: posthaste_units::Duration::from(self.max_idle_timeout).as_millis(),
            ack_delay_exponent: u64::from(ACK_DELAY_EXPONENT),
            max_ack_delay: self.profile.max_ack_delay().as_millis(),
            disable_active_migration: !self.active_migration,
            grease_quic_bit: self.grease,
            ack_window: self.ack_window,
            tail_code: if self.profile.repair().codes() { LONGEST_BLOCK } else { 0 },
            max_datagram_frame_size: self.max_datagram_frame_size,
            ..TransportParameters::default()
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// Opens a qlog trace for each connection.
#[cfg(feature = "qlog")]
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

/// When a server asks a new client by a Retry to show that it receives at its address, before it keeps anything of it
/// (RFC 9000 section 8.1.2). That costs the client a round trip, unless it has a token of an earlier connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    /// Every client without a token.
    Always,
    /// Only while more handshakes than this are in progress.
    UnderLoad {
        /// Handshakes in progress without a Retry.
        handshakes: usize,
    },
    /// Never: then a flood from false addresses can take all places of handshakes.
    Never,
}

impl Default for RetryPolicy {
    /// Under load: from 1024 handshakes in progress on, a quarter of the places.
    fn default() -> Self {
        Self::UnderLoad { handshakes: 1024 }
    }
}

/// 32 random bytes that nobody else knows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a server's connections are made from.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// TLS settings; must offer TLS 1.3 and an ALPN protocol.
    pub tls: Arc<rustls::ServerConfig>,
    /// Handshakes that may be in progress at once; for a further one the oldest goes whose client has not proved its
    /// address, if there is one. Default 4096.
    pub max_pending_handshakes: usize,
    /// When to ask clients for a proof of their address. Default under load.
    pub retry: RetryPolicy,
    /// Address tokens that each client is given for its next connections, at most 4. Default 1.
    pub new_tokens: usize,
    /// How long address tokens are good for.
    pub token_times: TokenTimes,
    /// Where what is learnt of clients' paths is kept for their next connections, if the profile's start makes use of
    /// it. Default nowhere.
    pub path_memory: PathMemory,
    /// What stateless resets and address tokens are made with. Kept beyond the process's end, resets reach the
    /// clients of the process before, and their tokens stay good. `None`, the default, draws a new one.
    pub secret: Option<Secret>,
    /// The time since the Unix epoch at [`Time::ZERO`](posthaste_units::Time::ZERO), by which tokens are dated.
    /// Default zero, which will do where `secret` is not kept.
    pub clock_offset: Duration,
    /// This endpoint's place among several that share a port. They need the same `secret`. Default none.
    pub steering: Option<Steering>,
}

impl ServerConfig {
    /// A server with these settings of TLS and of the transport.
    pub fn new(tls: Arc<rustls::ServerConfig>, transport: impl Into<Arc<TransportConfig>>) -> Self {
        Self {
            transport: transport.into(),
            tls,
            max_pending_handshakes: 4096,
            retry: RetryPolicy::default(),
            new_tokens: 1,
            token_times: TokenTimes::default(),
            path_memory: PathMemory::default(),
            secret: None,
            clock_offset: Duration::ZERO,
            steering: None,
        }
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

/// Sessions in the store of a client that is given another version; one or more for each server.
const SESSIONS: usize = 256;

/// What a client's connections are made from.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The version that the client begins with, and keeps. Default version 1.
    pub version: Version,
    /// Transport settings.
    pub transport: Arc<TransportConfig>,
    /// TLS settings; must offer TLS 1.3 and an ALPN protocol. Sessions are of one version: do not share a session
    /// store between configurations of different [`Self::version`] (RFC 9369 section 5).
    /// [`Self::with_version`] gives the other version a store of its own.
    pub tls: Arc<rustls::ClientConfig>,
    /// Where address tokens are kept for later connections; `None`, the default, keeps none.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// Connections that the client means to open to the server at once, each included, for the server to coordinate
    /// if it can ([`Connection::join_group`](crate::Connection::join_group)): each begins with its part of the initial
    /// window. With 1 others may join later. Default 0: nothing is asked for.
    pub group_size: usize,
    /// The rate on the wire, IP and UDP headers included, that the client's network guarantees it, to be stated to the
    /// server; above zero. A server takes note of it only if its profile allows it ([docs/spec/guaranteed-rate.md]).
    /// Default `None`: what the profile states ([`Profile::stated_rate`]), mostly nothing.
    ///
    pub guaranteed_rate: Option<Rate>,
    /// Where what is learnt of the paths to servers is kept for the client's next uploads, if the profile's start makes use
    /// of it ([`Profile::history_rules`]). An endpoint has one: that of its server, else the first that it connects with.
    /// A path is named by both ends ([`path_to_server`](crate::path_to_server)). Default `None`: nothing is kept.
    pub path_store: Option<Arc<dyn PathStore>>,
    /// As [`ServerConfig::clock_offset`], for `path_store`; of an endpoint without a server. Default zero.
    pub clock_offset: Duration,
}

impl ClientConfig {
    /// A client with these settings of TLS and of the transport.
    pub fn new(tls: Arc<rustls::ClientConfig>, transport: impl Into<Arc<TransportConfig>>) -> Self {
        Self {
            version: Version::default(),
            transport: transport.into(),
            tls,
            tokens: None,
            group_size: 0,
            guaranteed_rate: None,
            path_store: None,
            clock_offset: Duration::ZERO,
        }
    }

    /// The same with this version. If that is another than before, TLS sessions are kept in memory, in a new store that
    /// has none yet: those of one version are not for the other (RFC 9369 section 5).
    pub fn with_version(mut self, version: Version) -> Self {
        if version != self.version {
            // spec: rfc9369 5 clients-sessions
            let mut tls = rustls::ClientConfig::clone(&self.tls);
            tls.resumption = Resumption::in_memory_sessions(SESSIONS);
            self.tls = Arc::new(tls);
        }
        self.version = version;
        self
    }

    /// The same with these transport settings.
    pub fn with_transport(mut self, transport: Arc<TransportConfig>) -> Self {
        self.transport = transport;
        self
    }

    /// The same for one of so many connections that the server may coordinate; 0 for one that it may not.
    pub fn with_group_size(mut self, group_size: usize) -> Self {
        self.group_size = group_size;
        self
    }

    /// The same with this guaranteed rate stated to servers.
    pub fn with_guaranteed_rate(mut self, rate: Option<Rate>) -> Self {
        self.guaranteed_rate = rate;
        self
    }

    /// The same with what is learnt of the paths to servers kept there.
    pub fn with_path_store(mut self, store: Arc<dyn PathStore>) -> Self {
        self.path_store = Some(store);
        self
    }

    /// The same with address tokens kept there.
    pub fn with_tokens(mut self, tokens: Arc<dyn TokenStore>) -> Self {
        self.tokens = Some(tokens);
        self
    }
}

/// Exponent of the ACK Delay field in ACK frames sent: units of 8 microseconds (RFC 9000 section 18.2).
pub(crate) const ACK_DELAY_EXPONENT: u8 = 3;
