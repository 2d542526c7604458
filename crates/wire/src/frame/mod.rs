//! Frames (RFC 9000 section 19), one file per kind; all lists of them are in this one.

use bytes::Bytes;

use crate::error::Fault;
use crate::packet::PacketType;
use crate::varint::{self, Reader};
use crate::{Direction, StreamId};

pub mod ack;
pub mod ack_frequency;
pub mod ack_window;
pub mod cid;
pub mod close;
pub mod crypto;
pub mod flow;
pub mod group;
mod iter;
pub mod path;
pub mod stream;
pub mod tail_code;

pub use ack::{AckFrame, EcnCounts};
pub use ack_frequency::AckFrequency;
pub use ack_window::{AckWindowFrame, WindowUpdate};
pub use cid::NewConnectionId;
pub use close::{CloseFrame, CloseKind};
pub use crypto::CryptoFrame;
pub use iter::Iter;
pub use stream::{ResetStream, StopSending, StreamFrame};
pub use tail_code::{TailCodeFrame, TailCodeHead};

/// Wire type of PADDING.
pub const TYPE_PADDING: u64 = 0x00;
/// Wire type of PING.
pub const TYPE_PING: u64 = 0x01;
/// Wire type of `HANDSHAKE_DONE`.
pub const TYPE_HANDSHAKE_DONE: u64 = 0x1e;
/// Wire type of DATAGRAM without a length (RFC 9221 section 4).
pub const TYPE_DATAGRAM: u64 = 0x30;
/// Wire type of DATAGRAM with a length.
pub const TYPE_DATAGRAM_WITH_LENGTH: u64 = 0x31;

/// Bytes of a DATAGRAM frame, written with its length, that carries this much.
pub const fn datagram_len(data: usize) -> usize {
    1 + varint::len(data as u64) + data
}

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
        /// The new limit, in bytes.
        maximum: u64,
    },
    /// `MAX_STREAMS` (section 19.11).
    MaxStreams {
        /// Direction of the streams.
        direction: Direction,
        /// Total number of streams that the receiver may open.
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
        /// Direction of the streams.
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
    /// `ACK_FREQUENCY` (draft-ietf-quic-ack-frequency section 4).
    AckFrequency(AckFrequency),
    /// `IMMEDIATE_ACK` (draft-ietf-quic-ack-frequency section 5).
    ImmediateAck,
    /// `GROUP_TOKEN`: the name of the group that the connection is in, or is to join.
    GroupToken([u8; group::TOKEN_LEN]),
    /// `ACK_WINDOW` (docs/spec/ack-window.md).
    AckWindow(AckWindowFrame),
    /// `TAIL_CODE` (docs/spec/tail-code.md).
    TailCode(TailCodeFrame),
    /// DATAGRAM (RFC 9221 section 4): what it carries.
    Datagram(Bytes),
}

impl Frame {
    /// The type on the wire; for STREAM and DATAGRAM without its flag bits.
    pub const fn frame_type(&self) -> u64 {
        match self {
            Self::Padding => TYPE_PADDING,
            Self::Ping => TYPE_PING,
            Self::Ack(ack) if ack.ecn.is_some() => ack::TYPE_ECN,
            Self::Ack(_) => ack::TYPE,
            Self::ResetStream(_) => stream::TYPE_RESET,
            Self::StopSending(_) => stream::TYPE_STOP,
            Self::Crypto(_) => crypto::TYPE,
            Self::NewToken(_) => path::TYPE_NEW_TOKEN,
            Self::Stream(_) => stream::TYPE,
            Self::MaxData(_) => flow::TYPE_MAX_DATA,
            Self::MaxStreamData { .. } => flow::TYPE_MAX_STREAM_DATA,
            Self::MaxStreams { direction, .. } => flow::directed(flow::TYPE_MAX_STREAMS, *direction),
            Self::DataBlocked(_) => flow::TYPE_DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => flow::TYPE_STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { direction, .. } => flow::directed(flow::TYPE_STREAMS_BLOCKED, *direction),
            Self::NewConnectionId(_) => cid::TYPE_NEW,
            Self::RetireConnectionId(_) => cid::TYPE_RETIRE,
            Self::PathChallenge(_) => path::TYPE_CHALLENGE,
            Self::PathResponse(_) => path::TYPE_RESPONSE,
            Self::Close(CloseFrame { kind: CloseKind::Transport { .. }, .. }) => close::TYPE_TRANSPORT,
            Self::Close(CloseFrame { kind: CloseKind::Application, .. }) => close::TYPE_APPLICATION,
            Self::HandshakeDone => TYPE_HANDSHAKE_DONE,
            Self::AckFrequency(_) => ack_frequency::TYPE,
            Self::ImmediateAck => ack_frequency::TYPE_IMMEDIATE,
            Self::GroupToken(_) => group::TYPE,
            Self::AckWindow(frame) if frame.ack.ecn.is_some() => ack_window::TYPE_ECN,
            Self::AckWindow(_) => ack_window::TYPE,
            Self::TailCode(_) => tail_code::TYPE,
            Self::Datagram(_) => TYPE_DATAGRAM,
        }
    }

    /// Returns true if the frame is ack-eliciting: all but PADDING, ACK and `CONNECTION_CLOSE`
    /// (RFC 9002 section 2), and `ACK_WINDOW`.
    pub const fn is_ack_eliciting(&self) -> bool {
        // spec: rfc9000 19.21 extension-controlled, 19.21 extension-acked
        !matches!(self, Self::Padding | Self::Ack(_) | Self::AckWindow(_) | Self::Close(_))
    }

    /// Returns true for a probing frame, which does not move the connection to its path (RFC 9000 section 9.1).
    pub const fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::Padding | Self::NewConnectionId(_) | Self::PathChallenge(_) | Self::PathResponse(_)
        )
    }

    /// Appends the frame: PADDING as a single byte, STREAM and DATAGRAM with their length written out.
    ///
    /// Integers above 2^62 - 1 are the caller's mistake: debug builds assert, others write 2^62 - 1.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Ack(ack) => return ack.write(buffer),
            Self::ResetStream(reset) => return reset.write(buffer),
            Self::StopSending(stop) => return stop.write(buffer),
            Self::Crypto(crypto) => return crypto.write(buffer),
            Self::Stream(stream) => return stream.write(buffer),
            Self::NewConnectionId(new) => return new.write(buffer),
            Self::Close(close) => return close.write(buffer),
            Self::AckFrequency(request) => return request.write(buffer),
            Self::GroupToken(token) => {
                varint::write(buffer, group::TYPE);
                buffer.extend_from_slice(token);
                return;
            }
            Self::AckWindow(frame) => return frame.write(buffer),
            Self::TailCode(frame) => return frame.write(buffer),
            Self::Datagram(data) => {
                varint::write(buffer, TYPE_DATAGRAM_WITH_LENGTH);
                varint::write(buffer, data.len() as u64);
                buffer.extend_from_slice(data);
                return;
            }
            _ => {}
        }
        // spec: rfc9000 12.4 shortest-type
        // Every type below 0x40 is one byte, and all of these are.
        buffer.push(self.frame_type() as u8);
        match self {
            Self::NewToken(token) => {
                // spec: rfc9000 19.7 token-not-empty
                debug_assert!(!token.is_empty(), "NEW_TOKEN with an empty token");
                varint::write(buffer, token.len() as u64);
                buffer.extend_from_slice(token);
            }
            Self::PathChallenge(data) | Self::PathResponse(data) => buffer.extend_from_slice(data),
            _ => self.integers().into_iter().flatten().for_each(|value| varint::write(buffer, value)),
        }
    }

    /// Bytes that [`Frame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Ack(ack) => ack.encoded_len(),
            Self::ResetStream(reset) => reset.encoded_len(),
            Self::StopSending(stop) => stop.encoded_len(),
            Self::Crypto(crypto) => crypto.encoded_len(),
            Self::Stream(stream) => stream.encoded_len(),
            Self::NewConnectionId(new) => new.encoded_len(),
            Self::Close(close) => close.encoded_len(),
            Self::AckFrequency(request) => request.encoded_len(),
            Self::GroupToken(token) => varint::len(group::TYPE) + token.len(),
            Self::AckWindow(frame) => frame.encoded_len(),
            Self::TailCode(frame) => frame.encoded_len(),
            Self::Datagram(data) => datagram_len(data.len()),
            Self::NewToken(token) => 1 + varint::len(token.len() as u64) + token.len(),
            Self::PathChallenge(data) | Self::PathResponse(data) => 1 + data.len(),
            _ => 1 + self.integers().into_iter().flatten().map(varint::len).sum::<usize>(),
        }
    }

    /// The body of a frame that is nothing but up to two integers.
    const fn integers(&self) -> [Option<u64>; 2] {
        match self {
            Self::MaxStreamData { id, maximum: value } | Self::StreamDataBlocked { id, limit: value } => {
                [Some(id.to_wire()), Some(*value)]
            }
            Self::MaxData(value)
            | Self::MaxStreams { maximum: value, .. }
            | Self::DataBlocked(value)
            | Self::StreamsBlocked { limit: value, .. }
            | Self::RetireConnectionId(value) => [Some(*value), None],
            _ => [None, None],
        }
    }
}

/// A decoded frame whose data is still to be cut from the payload: so that decoding borrows the payload, and
/// cutting may take it.
enum Decoded {
    Whole(Frame),
    Crypto {
        offset: u64,
        length: usize,
    },
    Stream(stream::StreamHead),
    TailCode {
        head: TailCodeHead,
        length: usize,
    },
    /// A frame that is nothing but its data.
    Data {
        length: usize,
        frame: fn(Bytes) -> Frame,
    },
    Close {
        error_code: u64,
        kind: close::CloseKind,
        length: usize,
    },
}

/// Decodes what follows a frame's type.
fn decode_body(reader: &mut Reader<'_>, frame_type: u64) -> Result<Decoded, Fault> {
    let data = |length, frame: fn(Bytes) -> Frame| Decoded::Data { length, frame };
    let frame = match frame_type {
        stream::TYPE..=stream::TYPE_LAST => {
            return stream::decode(reader, frame_type).map(Decoded::Stream);
        }
        // spec: rfc9000 19.3 both-ack-types
        ack::TYPE | ack::TYPE_ECN => Frame::Ack(ack::decode(reader, frame_type == ack::TYPE_ECN)?),
        TYPE_PADDING => {
            let rest = reader.rest();
            let run = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
            reader.take(run)?;
            Frame::Padding
        }
        TYPE_PING => Frame::Ping,
        stream::TYPE_RESET => Frame::ResetStream(ResetStream::decode(reader)?),
        stream::TYPE_STOP => Frame::StopSending(StopSending::decode(reader)?),
        crypto::TYPE => {
            let (offset, length) = crypto::decode(reader)?;
            return Ok(Decoded::Crypto { offset, length });
        }
        // spec: rfc9221 4 no-length-to-the-end
        TYPE_DATAGRAM => return Ok(data(reader.remaining(), Frame::Datagram)),
        TYPE_DATAGRAM_WITH_LENGTH => {
            return Ok(data(data_length(reader)?, Frame::Datagram));
        }
        path::TYPE_NEW_TOKEN => return Ok(data(path::decode_token_length(reader)?, Frame::NewToken)),
        flow::TYPE_MAX_DATA..=flow::LAST => flow::decode(reader, frame_type)?,
        ack_frequency::TYPE => Frame::AckFrequency(AckFrequency::decode(reader)?),
        ack_frequency::TYPE_IMMEDIATE => Frame::ImmediateAck,
        group::TYPE => Frame::GroupToken(reader.array()?),
        ack_window::TYPE | ack_window::TYPE_ECN => {
            Frame::AckWindow(AckWindowFrame::decode(reader, frame_type == ack_window::TYPE_ECN)?)
        }
        tail_code::TYPE => {
            let (head, length) = TailCodeHead::decode(reader)?;
            return Ok(Decoded::TailCode { head, length });
        }
        cid::TYPE_NEW => Frame::NewConnectionId(NewConnectionId::decode(reader)?),
        cid::TYPE_RETIRE => Frame::RetireConnectionId(reader.varint()?),
        path::TYPE_CHALLENGE => Frame::PathChallenge(reader.array()?),
        path::TYPE_RESPONSE => Frame::PathResponse(reader.array()?),
        close::TYPE_TRANSPORT | close::TYPE_APPLICATION => {
            let (error_code, kind, length) = close::decode(reader, frame_type == close::TYPE_APPLICATION)?;
            return Ok(Decoded::Close { error_code, kind, length });
        }
        TYPE_HANDSHAKE_DONE => Frame::HandshakeDone,
        // spec: rfc9000 12.4 unknown-frame-closes
        _ => return Err(Fault::encoding("unknown frame type")),
    };
    Ok(Decoded::Whole(frame))
}

/// Checks that a packet of this type may contain `frame` (RFC 9000 section 12.4, table 3). If not, that is a
/// `PROTOCOL_VIOLATION`.
pub const fn is_allowed_in(frame: &Frame, packet: PacketType) -> bool {
    let (in_handshake, in_early, in_short) = match frame {
        Frame::Padding | Frame::Ping => (true, true, true),
        Frame::Ack(_) | Frame::Crypto(_) => (true, false, true),
        // An application's reason could give away what only 1-RTT keys protect.
        Frame::Close(close) => (matches!(close.kind, CloseKind::Transport { .. }), true, true),
        Frame::NewToken(_)
        | Frame::PathResponse(_)
        | Frame::HandshakeDone
        | Frame::GroupToken(_)
        | Frame::AckWindow(_)
        | Frame::TailCode(_) => (false, false, true),
        Frame::ResetStream(_)
        | Frame::StopSending(_)
        | Frame::Stream(_)
        | Frame::MaxData(_)
        | Frame::MaxStreamData { .. }
        | Frame::MaxStreams { .. }
        | Frame::DataBlocked(_)
        | Frame::StreamDataBlocked { .. }
        | Frame::StreamsBlocked { .. }
        | Frame::NewConnectionId(_)
        | Frame::RetireConnectionId(_)
        | Frame::AckFrequency(_)
        | Frame::ImmediateAck
        // spec: rfc9221 4 only-protected
        | Frame::Datagram(_)
        | Frame::PathChallenge(_) => (false, true, true),
    };
    match packet {
        PacketType::Initial | PacketType::Handshake => in_handshake,
        PacketType::ZeroRtt => in_early,
        PacketType::Short => in_short,
        PacketType::Retry | PacketType::VersionNegotiation => false,
    }
}

/// Reads a length and makes sure that as many bytes follow, without reading them.
#[inline]
fn data_length(reader: &mut Reader<'_>) -> Result<usize, Fault> {
    let length = reader.varint()?;
    usize::try_from(length)
        .ok()
        .filter(|length| *length <= reader.remaining())
        .ok_or(Fault::encoding("frame announces more data than the packet holds"))
}

#[cfg(test)]
mod tests;
