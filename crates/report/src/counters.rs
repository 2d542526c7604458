//! The counts of a transport stack.

use serde::{Deserialize, Serialize};

/// Counts since the start; `None` where a stack does not tell. Packets and bytes on the wire are counted by the
/// world, the same for all stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets declared lost.
    pub lost: Option<u64>,
    /// Of these, packets that had arrived after all.
    pub spuriously_lost: Option<u64>,
    /// Stream bytes sent again.
    pub resent_bytes: Option<u64>,
    /// Packets (segments) sent that carry an acknowledgement and nothing that must be acknowledged.
    pub pure_acks_sent: Option<u64>,
    /// ACK frames sent (TCP: segments that acknowledge).
    pub acks_sent: Option<u64>,
    /// Packets sent that must be acknowledged.
    pub ack_eliciting_sent: Option<u64>,
    /// Probe timeouts (TCP: retransmission timeouts).
    pub probe_timeouts: Option<u64>,
    /// Reductions of the congestion window.
    pub congestion_events: Option<u64>,
    /// Nanoseconds during which flow control alone kept data back.
    pub blocked_nanos: Option<u64>,
    /// The same from four round trips after the first stream data on.
    #[serde(default)]
    pub late_blocked_nanos: Option<u64>,
    /// Nanoseconds from there to the end.
    #[serde(default)]
    pub late_nanos: Option<u64>,
    /// Packets sent when slow start first ended; none if it has not.
    pub slow_start_packets: Option<u64>,
    /// Bytes of the congestion window then.
    pub slow_start_window: Option<u64>,
    /// Most bytes at a time that this end had permitted the other to send, and not read.
    #[serde(default)]
    pub granted_bytes: Option<u64>,
}

impl Counters {
    /// The sum over two connections; unknown where either does not tell.
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Self {
            lost: sum(self.lost, other.lost),
            spuriously_lost: sum(self.spuriously_lost, other.spuriously_lost),
            resent_bytes: sum(self.resent_bytes, other.resent_bytes),
            pure_acks_sent: sum(self.pure_acks_sent, other.pure_acks_sent),
            acks_sent: sum(self.acks_sent, other.acks_sent),
            ack_eliciting_sent: sum(self.ack_eliciting_sent, other.ack_eliciting_sent),
            probe_timeouts: sum(self.probe_timeouts, other.probe_timeouts),
            congestion_events: sum(self.congestion_events, other.congestion_events),
            blocked_nanos: sum(self.blocked_nanos, other.blocked_nanos),
            late_blocked_nanos: sum(self.late_blocked_nanos, other.late_blocked_nanos),
            late_nanos: sum(self.late_nanos, other.late_nanos),
            slow_start_packets: sum(self.slow_start_packets, other.slow_start_packets),
            slow_start_window: sum(self.slow_start_window, other.slow_start_window),
            granted_bytes: sum(self.granted_bytes, other.granted_bytes),
        }
    }
}
