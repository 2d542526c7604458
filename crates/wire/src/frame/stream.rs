//! STREAM, `RESET_STREAM` and `STOP_SENDING` (RFC 9000 sections 19.8, 19.4, 19.5).

use bytes::Bytes;

use crate::StreamId;
use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type of STREAM without any of its three flags.
pub const TYPE: u64 = 0x08;
/// Highest wire type of STREAM: all flags set.
pub const TYPE_LAST: u64 = 0x0f;
/// Wire type of `RESET_STREAM`.
pub const TYPE_RESET: u64 = 0x04;
/// Wire type of `STOP_SENDING`.
pub const TYPE_STOP: u64 = 0x05;

const FIN: u64 = 0x01;
const LEN: u64 = 0x02;
const OFF: u64 = 0x04;

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

impl StreamFrame {
    /// Appends the frame, with its length written out, so that others may follow it.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        write_header(buffer, self.id, self.offset, Some(self.data.len()), self.fin);
        buffer.extend_from_slice(&self.data);
    }

    /// Bytes that [`StreamFrame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        header_len(self.id, self.offset, Some(self.data.len())) + self.data.len()
    }
}

impl ResetStream {
    /// Appends the frame.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.push(TYPE_RESET as u8);
        varint::write(buffer, self.id.to_wire());
        varint::write(buffer, self.error_code);
        varint::write(buffer, self.final_size);
    }

    /// Bytes that [`ResetStream::write`] appends.
    pub const fn encoded_len(&self) -> usize {
        1 + varint::len(self.id.to_wire()) + varint::len(self.error_code) + varint::len(self.final_size)
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let id = StreamId::from_wire(reader.varint()?);
        Ok(Self { id, error_code: reader.varint()?, final_size: reader.varint()? })
    }
}

impl StopSending {
    /// Appends the frame.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.push(TYPE_STOP as u8);
        varint::write(buffer, self.id.to_wire());
        varint::write(buffer, self.error_code);
    }

    /// Bytes that [`StopSending::write`] appends.
    pub const fn encoded_len(&self) -> usize {
        1 + varint::len(self.id.to_wire()) + varint::len(self.error_code)
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self { id: StreamId::from_wire(reader.varint()?), error_code: reader.varint()? })
    }
}

/// Appends everything but the data. With `length`, that many bytes must follow; without, the data are all the
/// rest of the packet, and the frame must be its last.
pub fn write_header(buffer: &mut Vec<u8>, id: StreamId, offset: u64, length: Option<usize>, fin: bool) {
    let mut frame_type = TYPE;
    if offset > 0 {
        frame_type |= OFF;
    }
    if length.is_some() {
        frame_type |= LEN;
    }
    if fin {
        frame_type |= FIN;
    }
    buffer.push(frame_type as u8);
    varint::write(buffer, id.to_wire());
    if offset > 0 {
        varint::write(buffer, offset);
    }
    if let Some(length) = length {
        varint::write(buffer, length as u64);
    }
}

/// Bytes that [`write_header`] appends.
pub const fn header_len(id: StreamId, offset: u64, length: Option<usize>) -> usize {
    let offset_len = if offset > 0 { varint::len(offset) } else { 0 };
    let length_len = match length {
        Some(length) => varint::len(length as u64),
        None => 0,
    };
    1 + varint::len(id.to_wire()) + offset_len + length_len
}

/// A STREAM frame without its data, of which `length` bytes are there.
pub(super) struct StreamHead {
    pub(super) id: StreamId,
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) fin: bool,
}

/// Decodes what follows the type, up to the data.
#[inline]
pub(super) fn decode(reader: &mut Reader<'_>, frame_type: u64) -> Result<StreamHead, Fault> {
    let id = StreamId::from_wire(reader.varint()?);
    let offset = if frame_type & OFF == 0 { 0 } else { reader.varint()? };
    let length = if frame_type & LEN == 0 { reader.remaining() } else { super::data_length(reader)? };
    // spec: rfc9000 19.8 stream-offset-limit
    // Section 19.8: no stream is longer than 2^62 - 1 bytes.
    if offset + length as u64 > varint::MAX {
        return Err(Fault::encoding("STREAM data beyond 2^62 - 1"));
    }
    Ok(StreamHead { id, offset, length, fin: frame_type & FIN != 0 })
}
