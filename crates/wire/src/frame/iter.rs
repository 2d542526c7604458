//! Decoding of a packet's payload into frames.

use bytes::{Buf, Bytes};

use super::{
    AckFrequency, AckWindowFrame, CloseFrame, CryptoFrame, Frame, NewConnectionId, ResetStream, StopSending,
    StreamFrame,
};
use super::{ack, ack_frequency, ack_window, cid, close, crypto, flow, group, path, stream};
use crate::error::{DecodeError, Fault};
use crate::varint::{self, Reader};
use crate::{StreamId, frame};

/// The frames of one decrypted packet, in order. It ends after the first error.
#[derive(Debug, Clone)]
pub struct Iter {
    payload: Bytes,
    position: usize,
    /// True until the first frame: a packet without any is a protocol violation (section 12.4).
    is_fresh: bool,
}

/// A decoded frame whose data is still to be cut from the payload: so that decoding borrows the payload, and
/// cutting may take it.
enum Decoded {
    Whole(Frame),
    Crypto { offset: u64, length: usize },
    Stream(stream::StreamHead),
    NewToken { length: usize },
    Datagram { length: usize },
    Close { error_code: u64, kind: close::CloseKind, length: usize },
}

impl Iter {
    /// The frames of `payload`, a packet's decrypted payload.
    pub const fn new(payload: Bytes) -> Self {
        Self { payload, position: 0, is_fresh: true }
    }

    /// Bytes of the payload that are not decoded yet; what it falls by is the length of the frame.
    pub fn remaining(&self) -> usize {
        self.payload.len().saturating_sub(self.position)
    }

    /// Cuts the next `length` bytes, which are known to be there, out of the payload.
    fn cut(&mut self, length: usize) -> Bytes {
        let start = self.position;
        let end = start.saturating_add(length).min(self.payload.len());
        if end == self.payload.len() {
            // The last frame, mostly a STREAM that fills the packet: it takes the payload's own reference.
            let mut data = std::mem::take(&mut self.payload);
            data.advance(start);
            self.position = 0;
            return data;
        }
        self.position = end;
        self.payload.slice(start..end)
    }

    fn finish(&mut self, decoded: Decoded) -> Frame {
        match decoded {
            Decoded::Whole(frame) => frame,
            Decoded::Crypto { offset, length } => {
                Frame::Crypto(CryptoFrame { offset, data: self.cut(length) })
            }
            Decoded::Stream(head) => Frame::Stream(StreamFrame {
                id: head.id,
                offset: head.offset,
                data: self.cut(head.length),
                fin: head.fin,
            }),
            Decoded::NewToken { length } => Frame::NewToken(self.cut(length)),
            Decoded::Datagram { length } => Frame::Datagram(self.cut(length)),
            Decoded::Close { error_code, kind, length } => {
                Frame::Close(CloseFrame { error_code, kind, reason: self.cut(length) })
            }
        }
    }
}

impl Iterator for Iter {
    type Item = Result<Frame, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = Reader::new(self.payload.get(self.position..)?);
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if reader.is_empty() {
            // spec: rfc9000 12.4 empty-packet-closes
            return is_fresh.then(|| Err(Fault::violation("packet without frames").in_frame(0)));
        }
        match decode(&mut reader) {
            Ok(decoded) => {
                self.position += reader.position();
                Some(Ok(self.finish(decoded)))
            }
            Err(error) => {
                self.payload = Bytes::new();
                self.position = 0;
                Some(Err(error))
            }
        }
    }
}

impl std::iter::FusedIterator for Iter {}

fn decode(reader: &mut Reader<'_>) -> Result<Decoded, DecodeError> {
    let start = reader.position();
    let frame_type = reader.varint().map_err(|truncated| Fault::from(truncated).in_frame(0))?;
    // Section 12.4: a frame type is written in the fewest bytes.
    if reader.position() - start != varint::len(frame_type) {
        return Err(Fault::violation("frame type not in its shortest encoding").in_frame(frame_type));
    }
    decode_body(reader, frame_type).map_err(|fault| fault.in_frame(frame_type))
}

fn decode_body(reader: &mut Reader<'_>, frame_type: u64) -> Result<Decoded, Fault> {
    let frame = match frame_type {
        stream::TYPE..=stream::TYPE_LAST => {
            return stream::decode(reader, frame_type).map(Decoded::Stream);
        }
        // spec: rfc9000 19.3 both-ack-types
        ack::TYPE | ack::TYPE_ECN => Frame::Ack(ack::decode(reader, frame_type == ack::TYPE_ECN)?),
        frame::TYPE_PADDING => {
            let rest = reader.rest();
            let run = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
            reader.take(run)?;
            Frame::Padding
        }
        frame::TYPE_PING => Frame::Ping,
        stream::TYPE_RESET => Frame::ResetStream(ResetStream::decode(reader)?),
        stream::TYPE_STOP => Frame::StopSending(StopSending::decode(reader)?),
        crypto::TYPE => {
            let (offset, length) = crypto::decode(reader)?;
            return Ok(Decoded::Crypto { offset, length });
        }
        // spec: rfc9221 4 no-length-to-the-end
        frame::TYPE_DATAGRAM => return Ok(Decoded::Datagram { length: reader.remaining() }),
        frame::TYPE_DATAGRAM_WITH_LENGTH => {
            return Ok(Decoded::Datagram { length: frame::data_length(reader)? });
        }
        path::TYPE_NEW_TOKEN => return Ok(Decoded::NewToken { length: path::decode_token_length(reader)? }),
        flow::TYPE_MAX_DATA..=FLOW_LAST => decode_flow(reader, frame_type)?,
        ack_frequency::TYPE => Frame::AckFrequency(AckFrequency::decode(reader)?),
        ack_frequency::TYPE_IMMEDIATE => Frame::ImmediateAck,
        group::TYPE => Frame::GroupToken(reader.array()?),
        ack_window::TYPE | ack_window::TYPE_ECN => {
            Frame::AckWindow(AckWindowFrame::decode(reader, frame_type == ack_window::TYPE_ECN)?)
        }
        cid::TYPE_NEW => Frame::NewConnectionId(NewConnectionId::decode(reader)?),
        cid::TYPE_RETIRE => Frame::RetireConnectionId(reader.varint()?),
        path::TYPE_CHALLENGE => Frame::PathChallenge(reader.array()?),
        path::TYPE_RESPONSE => Frame::PathResponse(reader.array()?),
        close::TYPE_TRANSPORT | close::TYPE_APPLICATION => {
            let (error_code, kind, length) = close::decode(reader, frame_type == close::TYPE_APPLICATION)?;
            return Ok(Decoded::Close { error_code, kind, length });
        }
        frame::TYPE_HANDSHAKE_DONE => Frame::HandshakeDone,
        // spec: rfc9000 12.4 unknown-frame-closes
        _ => return Err(Fault::encoding("unknown frame type")),
    };
    Ok(Decoded::Whole(frame))
}

/// The last of the six kinds of flow-control frames.
const FLOW_LAST: u64 = flow::TYPE_STREAMS_BLOCKED + 1;

fn decode_flow(reader: &mut Reader<'_>, frame_type: u64) -> Result<Frame, Fault> {
    let direction = flow::direction_of(frame_type);
    Ok(match frame_type {
        flow::TYPE_MAX_DATA => Frame::MaxData(reader.varint()?),
        flow::TYPE_MAX_STREAM_DATA => {
            Frame::MaxStreamData { id: StreamId::from_wire(reader.varint()?), maximum: reader.varint()? }
        }
        flow::TYPE_DATA_BLOCKED => Frame::DataBlocked(reader.varint()?),
        flow::TYPE_STREAM_DATA_BLOCKED => {
            Frame::StreamDataBlocked { id: StreamId::from_wire(reader.varint()?), limit: reader.varint()? }
        }
        ..flow::TYPE_DATA_BLOCKED => {
            Frame::MaxStreams { direction, maximum: flow::decode_stream_count(reader)? }
        }
        _ => Frame::StreamsBlocked { direction, limit: flow::decode_stream_count(reader)? },
    })
}
