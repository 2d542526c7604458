//! One end of a connection, whatever the stack: the seam between the world, the stacks and the applications.
//!
//! A stack is driven as a sans-IO endpoint is: after each call that takes `&mut self`, the world takes out all
//! packets and events, then waits for a packet or for [`Peer::next_timeout`]. Applications see streams of bytes
//! and nothing else, so that requests, responses and reading are the same for every stack.

use bytes::Bytes;
pub use posthaste_report::counters::Counters;
use posthaste_report::result::CreditUpdate;
use posthaste_units::{ByteCount, Duration, Rate, Time};

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

    /// True on a client that has begun its handshake, and whose streams may be used before that is complete (0-RTT).
    fn may_send_early(&self) -> bool {
        false
    }

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

    /// How the limits of the streams have moved that this end has granted; `None` where a stack does not tell.
    fn credit_moves(&self) -> Option<CreditMoves> {
        None
    }
}

/// The first moves of the limits of all streams, and when windows were reached.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CreditMoves {
    /// The first few.
    pub updates: Vec<CreditUpdate>,
    /// When the largest stream window first was 128 and 512 KiB, in seconds as [`CreditUpdate::at`].
    pub reached: [Option<f64>; 2],
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

/// The two ends of one connection.
pub struct Pair {
    /// Begins the handshake.
    pub client: Box<dyn Peer>,
    /// Answers it.
    pub server: Box<dyn Peer>,
}
