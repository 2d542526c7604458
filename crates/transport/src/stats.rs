//! Counters and gauges of one connection and of an endpoint.

use posthaste_policy::CongestionState;
use posthaste_policy::sample::RttView;
use posthaste_units::{ByteCount, Rate, Time};

use crate::datagrams::DatagramStats;
use crate::streams::StreamsStats;

/// One connection's statistics. Counters start at zero with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Datagrams and bytes sent (UDP payloads).
    pub sent: Traffic,
    /// Datagrams and bytes received (UDP payloads).
    pub received: Traffic,
    /// Packets sent.
    pub packets_sent: u64,
    /// Of these, packets that the peer must acknowledge.
    pub ack_eliciting_sent: u64,
    /// Of these, copies of packets that were not known to be lost, those of the handshake included.
    pub packets_copied: u64,
    /// Bytes of these copies.
    pub bytes_copied: ByteCount,
    /// Packets received and opened.
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Of these, packets that had arrived after all.
    pub packets_spuriously_lost: u64,
    /// Packets that were dropped: not opened, duplicate, or not meant for the state of the connection.
    pub packets_dropped: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
    /// ACK frames sent.
    pub acks_sent: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// When the handshake was complete.
    pub connected_at: Option<Time>,
    /// The round-trip time estimate.
    pub rtt: RttView,
    /// The congestion controller.
    pub congestion: CongestionState,
    /// Bytes in flight.
    pub in_flight: ByteCount,
    /// The pacing rate, where the policy paces.
    pub pacing_rate: Option<Rate>,
    /// Size of the datagrams sent, in bytes of UDP payload.
    pub max_datagram_size: usize,
    /// Times that datagrams became smaller because the path had ceased to carry them, or seemed to.
    pub black_holes: u64,
    /// Moves to another network path, by either end.
    pub moves: u64,
    /// Notices of policies ([`crate::Event::Notice`]).
    pub notices: u64,
    /// The streams.
    pub streams: StreamsStats,
    /// Messages of DATAGRAM frames.
    pub datagrams: DatagramStats,
}

/// Datagrams and the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// UDP datagrams.
    pub datagrams: u64,
    /// UDP payload bytes.
    pub bytes: ByteCount,
}

/// An endpoint's counters: what was dropped before it reached a connection, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointStats {
    /// Connections accepted in all.
    pub accepted: u64,
    /// Datagrams whose header could not be parsed.
    pub malformed: u64,
    /// Datagrams for no connection, and not worth an answer.
    pub unroutable: u64,
    /// Datagrams of 0-RTT packets that were kept because they came before the Initial that begins their connection.
    pub early_kept: u64,
    /// Initials dropped: too small, or too many handshakes in progress, or not accepting.
    pub refused: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Initials answered with `INVALID_TOKEN`.
    pub invalid_tokens: u64,
    /// Connections accepted from clients that showed a good token.
    pub validated_by_token: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Version negotiation packets sent.
    pub version_negotiations_sent: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, len: usize) {
        self.datagrams += 1;
        self.bytes += ByteCount::from(len);
    }
}

/// What a connection counts as it goes; see [`ConnectionStats`] for each.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent: Traffic,
    pub(crate) received: Traffic,
    pub(crate) packets_sent: u64,
    pub(crate) ack_eliciting_sent: u64,
    pub(crate) packets_copied: u64,
    pub(crate) bytes_copied: ByteCount,
    pub(crate) packets_received: u64,
    pub(crate) packets_lost: u64,
    pub(crate) packets_spuriously_lost: u64,
    pub(crate) packets_dropped: u64,
    pub(crate) probe_timeouts: u64,
    pub(crate) black_holes: u64,
    pub(crate) notices: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) connected_at: Option<Time>,
}
