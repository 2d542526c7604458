//! What a sent packet carried, in just the detail that its acknowledgement or loss needs.

use posthaste_wire::{Direction, StreamId};
use smallvec::SmallVec;

/// One frame of a sent packet. Frames that need nothing on ack or loss (PING, PADDING, CLOSE) leave no record.
///
/// Limits are not recorded by value: on loss the owner sends the newest one (RFC 9000 section 13.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentFrame {
    /// ACK up to this packet number: once acknowledged, older ranges may be forgotten.
    Ack {
        largest: u64,
    },
    /// The same, with the limits of the edition `edition`.
    AckWindow {
        largest: u64,
        edition: u64,
    },
    /// CRYPTO bytes `start..end` of the packet's space.
    Crypto {
        start: u64,
        end: u64,
    },
    /// STREAM bytes `start..end`, with or without FIN.
    Stream {
        id: StreamId,
        start: u64,
        end: u64,
        fin: bool,
    },
    ResetStream(StreamId),
    StopSending(StreamId),
    MaxData,
    MaxStreamData(StreamId),
    MaxStreams(Direction),
    DataBlocked,
    StreamDataBlocked(StreamId),
    StreamsBlocked(Direction),
    /// `NEW_CONNECTION_ID` with this sequence number.
    NewConnectionId(u64),
    /// `RETIRE_CONNECTION_ID` of this sequence number.
    RetireConnectionId(u64),
    HandshakeDone,
    /// `NEW_TOKEN` with this number.
    NewToken(u64),
    /// `ACK_FREQUENCY` with this sequence number.
    AckFrequency(u64),
    /// `GROUP_TOKEN`: on loss the newest goes again.
    GroupToken,
    /// No frame: the packet is of this size to see whether the path `path` carries that (RFC 9000 section 14.4).
    MtuProbe {
        path: u32,
        size: u16,
    },
}

/// The frames of one packet; bulk packets carry one or two.
pub(crate) type SentFrames = SmallVec<[SentFrame; 2]>;
