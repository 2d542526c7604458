//! One end of a connection, whatever the stack: the seam between the world, the stacks and the applications.
//!
//! A stack is driven as a sans-IO endpoint is: after each call that takes `&mut self`, the world takes out all
//! packets and events, then waits for a packet or for [`Peer::next_timeout`]. Applications see streams of bytes
//! and nothing else, so that requests, responses and reading are the same for every stack.

use bytes::Bytes;
use posthaste_units::{ByteCount, Duration, Rate, Time};
use serde::{Deserialize, Serialize};

use crate::packet::Packet;

/// A bidirectional stream. Both ends of a connection know it by the same number; of several connections, each end
/// counts for itself which is which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(pub u64);

/// What a stack tells its application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// The handshake is complete: streams can be opened (a client) or will come (a server).
    Connected,
    /// The other end has opened a stream.
    Opened(StreamKey),
    /// A stream on which the last read found nothing has data, its end, or a reset.
    Readable(StreamKey),
    /// A stream on which the last write took not everything has room.
    Writable(StreamKey),
    /// A stream can be opened after [`Peer::open`] gave none.
    Available,
    /// The connection is over. `None`: as the application wished.
    Closed(Option<String>),
}

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes in order, never empty.
    Data(Bytes),
    /// Nothing yet: [`PeerEvent::Readable`] follows.
    Blocked,
    /// The stream's end: everything has been read.
    Finished,
    /// The other end gave up, or the stream is unknown.
    Reset,
}

/// A transport stack at one end of one connection (a TCP model at one end of one host's connections).
pub trait Peer {
    /// A client begins its handshake; nothing on a server. Called once.
    fn connect(&mut self, now: Time);

    /// Takes in a packet.
    fn on_packet(&mut self, now: Time, packet: Packet);

    /// Lets the stack act once [`Self::next_timeout`] has come.
    fn on_timeout(&mut self, now: Time);

    /// When [`Self::on_timeout`] must be called, if nothing happens before.
    fn next_timeout(&mut self) -> Option<Time>;

    /// The next packet to send now; call until `None`.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;

    /// The next event; call until `None`.
    fn poll_event(&mut self) -> Option<PeerEvent>;

    /// Opens a bidirectional stream, unless the peer permits none now.
    fn open(&mut self, now: Time) -> Option<StreamKey>;

    /// Connections between the two ends that streams can be opened on; those of a stack that has one are all on it.
    fn legs(&self) -> usize {
        1
    }

    /// Opens a bidirectional stream on one of them, counted from 0.
    fn open_on(&mut self, now: Time, leg: usize) -> Option<StreamKey> {
        if leg == 0 { self.open(now) } else { None }
    }

    /// Takes bytes from the front of `data`; what is left had no room, and [`PeerEvent::Writable`] follows.
    fn write(&mut self, now: Time, stream: StreamKey, data: &mut Bytes);

    /// Ends this end's half of the stream after what has been written.
    fn finish(&mut self, now: Time, stream: StreamKey);

    /// At most `max` bytes of what has arrived next, in order.
    fn read(&mut self, now: Time, stream: StreamKey, max: usize) -> Read;

    /// Closes the connection.
    fn close(&mut self, now: Time);

    /// What the stack can tell about itself now. Called for time series, so it should be cheap.
    fn snapshot(&self) -> Snapshot;

    /// What the stack has counted up to `now`.
    fn counters(&self, now: Time) -> Counters;
}

/// A sender's state at one moment; `None` where a stack does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Congestion window.
    pub window: Option<ByteCount>,
    /// Pacing rate, where the controller paces.
    pub pacing: Option<Rate>,
    /// Smoothed RTT.
    pub rtt: Option<Duration>,
    /// Bytes in flight.
    pub in_flight: Option<ByteCount>,
    /// Bytes that the receiver still permits on the whole connection.
    pub credit: Option<ByteCount>,
    /// True if only flow control keeps data back.
    pub is_blocked: Option<bool>,
}

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
