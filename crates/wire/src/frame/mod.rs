//! Frames (RFC 9000 section 19), one kind a file.

use bytes::Bytes;
use std::ops::RangeInclusive;

use crate::{ConnectionId, Direction, ResetToken, StreamId};

/// A decoded frame. Data is a slice of the decrypted packet, never a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// One or more PADDING bytes (section 19.1).
    Padding,
    /// PING (section 19.2).
    Ping,
    /// ACK (section 19.3).
    Ack(AckFrame),
    /// `RESET_STREAM` (section 19.4).
    ResetStream(ResetStream),
    /// `STOP_SENDING` (section 19.5).
    StopSending(StopSending),
    /// CRYPTO (section 19.6).
    Crypto(CryptoFrame),
    /// `NEW_TOKEN` (section 19.7).
    NewToken(Bytes),
    /// STREAM (section 19.8).
    Stream(StreamFrame),
    /// `MAX_DATA` (section 19.9): the connection's new limit, in bytes.
    MaxData(u64),
    /// `MAX_STREAM_DATA` (section 19.10).
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// Its new limit, in bytes.
        maximum: u64,
    },
    /// `MAX_STREAMS` (section 19.11).
    MaxStreams {
        /// Which streams.
        direction: Direction,
        /// How many the receiver may open in all.
        maximum: u64,
    },
    /// `DATA_BLOCKED` (section 19.12): the limit that blocks.
    DataBlocked(u64),
    /// `STREAM_DATA_BLOCKED` (section 19.13).
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks it, in bytes.
        limit: u64,
    },
    /// `STREAMS_BLOCKED` (section 19.14).
    StreamsBlocked {
        /// Which streams.
        direction: Direction,
        /// The limit that blocks.
        limit: u64,
    },
    /// `NEW_CONNECTION_ID` (section 19.15).
    NewConnectionId(NewConnectionId),
    /// `RETIRE_CONNECTION_ID` (section 19.16): the sequence number.
    RetireConnectionId(u64),
    /// `PATH_CHALLENGE` (section 19.17).
    PathChallenge([u8; 8]),
    /// `PATH_RESPONSE` (section 19.18).
    PathResponse([u8; 8]),
    /// `CONNECTION_CLOSE` (section 19.19).
    Close(CloseFrame),
    /// `HANDSHAKE_DONE` (section 19.20).
    HandshakeDone,
}

/// ACK: which packets have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckFrame {
    /// The ACK Delay field as sent: units of 2^`ack_delay_exponent` microseconds.
    pub delay: u64,
    /// Packet numbers that have arrived, highest range first, disjoint and not adjacent; never empty.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// ECN counts, if the frame carries them (type 0x03).
    pub ecn: Option<EcnCounts>,
}

/// Cumulative ECN counts of one packet number space (section 19.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets that arrived with ECT(0).
    pub ect0: u64,
    /// Packets that arrived with ECT(1).
    pub ect1: u64,
    /// Packets that arrived with CE.
    pub ce: u64,
}

/// `RESET_STREAM`: the sender gives a stream up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub error_code: u64,
    /// Bytes that the stream has in all; must agree with every other final size.
    pub final_size: u64,
}

/// `STOP_SENDING`: the receiver wants no more of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's reason.
    pub error_code: u64,
}

/// CRYPTO: handshake bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CryptoFrame {
    /// Position of `data` in the level's handshake stream.
    pub offset: u64,
    /// The bytes; `offset + data.len()` is at most 2^62 - 1.
    pub data: Bytes,
}

/// STREAM: application bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFrame {
    /// The stream.
    pub id: StreamId,
    /// Position of `data` in the stream.
    pub offset: u64,
    /// The bytes; `offset + data.len()` is at most 2^62 - 1.
    pub data: Bytes,
    /// True if the stream ends after `data`.
    pub fin: bool,
}

/// `NEW_CONNECTION_ID`: another name for the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewConnectionId {
    /// Sequence number of the ID.
    pub sequence: u64,
    /// IDs below this sequence number are to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The ID, 1 to 20 bytes.
    pub id: ConnectionId,
    /// The token of a stateless reset for this ID.
    pub reset_token: ResetToken,
}

/// `CONNECTION_CLOSE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseFrame {
    /// The error code, of the space that `kind` names.
    pub error_code: u64,
    /// Who closes.
    pub kind: CloseKind,
    /// A reason for people; meant to be UTF-8, not checked.
    pub reason: Bytes,
}

/// Whether the transport (0x1c) or the application (0x1d) closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// The transport, because of a frame of this type (0 if unknown).
    Transport {
        /// Type of the offending frame.
        frame_type: u64,
    },
    /// The application.
    Application,
}
