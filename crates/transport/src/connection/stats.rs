//! Counters and gauges of a connection: what each is, and where it is read.

use posthaste_policy::sample::RttView;
use posthaste_policy::{CongestionState, Jumps};
use posthaste_units::{ByteCount, Rate, Time};

use crate::connection::Connection;
use crate::connection::datagrams::DatagramStats;
use crate::connection::waiting::Waited;
use crate::packet::ecn::EcnState;
use crate::streams::StreamsStats;

/// One connection's statistics. Counters start at zero with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    /// Packets with recovery symbols for the ends of streams (docs/spec/tail-code.md).
    pub packets_coded: u64,
    /// Bytes of these packets.
    pub bytes_coded: ByteCount,
    /// Bytes of stream data that were restored by the peer's recovery symbols instead of received.
    pub bytes_restored: ByteCount,
    /// Packets received and opened.
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Of these, packets that had arrived after all.
    pub packets_spuriously_lost: u64,
    /// Packets that the peer has reported as marked by congestion (ECN-CE).
    pub packets_marked: u64,
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
    /// Where the validation of ECN on the present path stands.
    pub ecn: EcnState,
    /// Increases of the window to what a path's history or a measurement showed.
    pub jumps: Jumps,
    /// What sending waited for.
    pub waited: Waited,
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

impl Connection {
    /// The connection's statistics.
    pub fn stats(&self) -> ConnectionStats {
        let control = &self.path.control;
        let counters = &self.counters;
        ConnectionStats {
            sent: counters.sent,
            received: counters.received,
            packets_sent: counters.packets_sent,
            ack_eliciting_sent: counters.ack_eliciting_sent,
            packets_copied: counters.packets_copied,
            bytes_copied: counters.bytes_copied,
            packets_coded: counters.packets_coded,
            bytes_coded: counters.bytes_coded,
            bytes_restored: ByteCount::new(self.streams.restored()),
            packets_received: counters.packets_received,
            packets_lost: counters.packets_lost,
            packets_spuriously_lost: counters.packets_spuriously_lost,
            packets_marked: counters.packets_marked,
            packets_dropped: counters.packets_dropped,
            probe_timeouts: counters.probe_timeouts,
            acks_sent: counters.acks_sent,
            acks_received: counters.acks_received,
            connected_at: counters.connected_at,
            rtt: control.rtt(),
            congestion: control.state(),
            in_flight: control.bytes_in_flight(),
            pacing_rate: control.pacing().map(|pacing| pacing.rate),
            max_datagram_size: self.path.max_datagram_size(),
            black_holes: counters.black_holes,
            notices: counters.notices,
            ecn: control.ecn.state(),
            jumps: counters.jumps,
            waited: self.waiting.waited(),
            moves: self.roaming.moves,
            streams: self.streams.stats(),
            datagrams: self.datagrams.stats(),
        }
    }
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
    pub(crate) packets_coded: u64,
    pub(crate) bytes_coded: ByteCount,
    pub(crate) packets_received: u64,
    pub(crate) packets_lost: u64,
    pub(crate) packets_spuriously_lost: u64,
    pub(crate) packets_marked: u64,
    pub(crate) packets_dropped: u64,
    pub(crate) probe_timeouts: u64,
    pub(crate) black_holes: u64,
    pub(crate) notices: u64,
    pub(crate) jumps: Jumps,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) connected_at: Option<Time>,
}
