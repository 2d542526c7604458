//! Flow control: `MAX_DATA`, `MAX_STREAM_DATA`, `MAX_STREAMS` and the frames that report being blocked by them
//! (RFC 9000 sections 19.9 to 19.14). They have no types of their own beyond [`Frame`]'s variants.

use super::Frame;
use crate::error::Fault;
use crate::varint::Reader;
use crate::{Direction, StreamId};

/// Wire type of `MAX_DATA`.
pub const TYPE_MAX_DATA: u64 = 0x10;
/// Wire type of `MAX_STREAM_DATA`.
pub const TYPE_MAX_STREAM_DATA: u64 = 0x11;
/// Wire type of `MAX_STREAMS` for bidirectional streams; the next is for unidirectional ones.
pub const TYPE_MAX_STREAMS: u64 = 0x12;
/// Wire type of `DATA_BLOCKED`.
pub const TYPE_DATA_BLOCKED: u64 = 0x14;
/// Wire type of `STREAM_DATA_BLOCKED`.
pub const TYPE_STREAM_DATA_BLOCKED: u64 = 0x15;
/// Wire type of `STREAMS_BLOCKED` for bidirectional streams; the next is for unidirectional ones.
pub const TYPE_STREAMS_BLOCKED: u64 = 0x16;

/// The last wire type of the six kinds.
pub(super) const LAST: u64 = TYPE_STREAMS_BLOCKED + 1;

/// Most streams of one direction that an end may ever open (RFC 9000 section 4.6): more would not fit an ID.
pub const MAX_STREAMS: u64 = 1 << 60;

/// Decodes a stream count. More than 2^60 is an encoding error (sections 19.11 and 19.14).
fn decode_stream_count(reader: &mut Reader<'_>) -> Result<u64, Fault> {
    let count = reader.varint()?;
    // spec: rfc9000 4.6 impossible-count-closes, 19.11 count-limit, 19.14 blocked-count-limit
    if count > MAX_STREAMS {
        return Err(Fault::encoding("more than 2^60 streams"));
    }
    Ok(count)
}

/// The wire type of `direction`, where `base` is the bidirectional one.
pub(super) const fn directed(base: u64, direction: Direction) -> u64 {
    base | direction.index() as u64
}

/// The direction that the lowest bit of a wire type stands for.
const fn direction_of(frame_type: u64) -> Direction {
    if frame_type & 1 == 0 { Direction::Bidirectional } else { Direction::Unidirectional }
}

/// Decodes the body of a frame of this type, up to [`LAST`].
pub(super) fn decode(reader: &mut Reader<'_>, frame_type: u64) -> Result<Frame, Fault> {
    let direction = direction_of(frame_type);
    Ok(match frame_type {
        TYPE_MAX_DATA => Frame::MaxData(reader.varint()?),
        TYPE_MAX_STREAM_DATA => {
            Frame::MaxStreamData { id: StreamId::from_wire(reader.varint()?), maximum: reader.varint()? }
        }
        TYPE_DATA_BLOCKED => Frame::DataBlocked(reader.varint()?),
        TYPE_STREAM_DATA_BLOCKED => {
            Frame::StreamDataBlocked { id: StreamId::from_wire(reader.varint()?), limit: reader.varint()? }
        }
        ..TYPE_DATA_BLOCKED => Frame::MaxStreams { direction, maximum: decode_stream_count(reader)? },
        _ => Frame::StreamsBlocked { direction, limit: decode_stream_count(reader)? },
    })
}
