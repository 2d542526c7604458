//! Frames (RFC 9114 section 7.1): a type, a length, a payload.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{Code, Error};
use crate::varint::{self, PartialInteger};

/// Body bytes (RFC 9114 section 7.2.1).
pub const DATA: u64 = 0x00;
/// A field section (RFC 9114 section 7.2.2).
pub const HEADERS: u64 = 0x01;
/// Cancels a push (RFC 9114 section 7.2.3).
pub const CANCEL_PUSH: u64 = 0x03;
/// Settings of an end (RFC 9114 section 7.2.4).
pub const SETTINGS: u64 = 0x04;
/// Announces a push (RFC 9114 section 7.2.5).
pub const PUSH_PROMISE: u64 = 0x05;
/// Starts the shutdown of a connection (RFC 9114 section 7.2.6).
pub const GOAWAY: u64 = 0x07;
/// Permits pushes (RFC 9114 section 7.2.7).
pub const MAX_PUSH_ID: u64 = 0x0d;
/// Sets the priority of a request (RFC 9218 section 7.2).
pub const PRIORITY_UPDATE_REQUEST: u64 = 0x0f_0700;
/// Sets the priority of a push (RFC 9218 section 7.2).
pub const PRIORITY_UPDATE_PUSH: u64 = 0x0f_0701;

/// Returns true for HTTP/2 frame types that HTTP/3 reserves (RFC 9114 section 7.2.8).
pub(crate) const fn is_of_http2(frame_type: u64) -> bool {
    matches!(frame_type, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Appends a complete frame.
pub fn write(buffer: &mut Vec<u8>, frame_type: u64, payload: &[u8]) {
    varint::write(buffer, frame_type);
    varint::write(buffer, payload.len() as u64);
    buffer.extend_from_slice(payload);
}

/// Appends the type and the length of a DATA frame; `length` bytes of body must follow.
pub fn write_data_header(buffer: &mut Vec<u8>, length: u64) {
    varint::write(buffer, DATA);
    varint::write(buffer, length);
}

/// Treatment of a frame, decided when its type and length are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Buffer it until it is complete.
    Whole,
    /// Pass its payload on as it arrives.
    Pieces,
    /// Skip it.
    Skip,
}

/// Output of a [`FrameReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A complete, buffered frame.
    Whole {
        /// Its type.
        frame_type: u64,
        /// Its complete payload.
        payload: Bytes,
    },
    /// The next bytes of a frame that is passed on as it arrives; never empty.
    Piece(Bytes),
}

/// Splits the bytes of a stream into frames, independent of how they were segmented.
///
/// It buffers complete frames only if `judge` asks for it; `judge` must bound their length.
#[derive(Debug, Default)]
pub struct FrameReader {
    state: State,
    integer: PartialInteger,
    /// What has arrived of a frame that is kept until it is whole.
    kept: BytesMut,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Type,
    Length {
        frame_type: u64,
    },
    Payload {
        frame_type: u64,
        admission: Admission,
        remaining: u64,
    },
}

impl FrameReader {
    /// Consumes `input` up to the next output; `None` if it is used up. Calls `judge` once per frame, as soon as type
    /// and length are known.
    ///
    /// # Errors
    /// The errors of `judge`.
    pub fn next(
        &mut self,
        input: &mut Bytes,
        mut judge: impl FnMut(u64, u64) -> Result<Admission, Error>,
    ) -> Result<Option<Item>, Error> {
        loop {
            match self.state {
                State::Type => {
                    let Some(frame_type) = self.read_integer(input) else { return Ok(None) };
                    self.state = State::Length { frame_type };
                }
                State::Length { frame_type } => {
                    let Some(length) = self.read_integer(input) else { return Ok(None) };
                    let admission = judge(frame_type, length)?;
                    self.state = State::Payload { frame_type, admission, remaining: length };
                }
                State::Payload { frame_type, admission, remaining } => {
                    let taken = usize::try_from(remaining).map_or(input.len(), |most| most.min(input.len()));
                    let remaining = remaining - taken as u64;
                    self.state = if remaining == 0 {
                        State::Type
                    } else {
                        State::Payload { frame_type, admission, remaining }
                    };
                    let payload = input.split_to(taken);
                    if let Some(item) = self.take(frame_type, admission, remaining == 0, payload) {
                        return Ok(Some(item));
                    }
                    if remaining > 0 {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The next bytes of a payload; what is to be handed on now.
    fn take(&mut self, frame_type: u64, admission: Admission, is_last: bool, payload: Bytes) -> Option<Item> {
        match admission {
            Admission::Skip => None,
            Admission::Pieces => (!payload.is_empty()).then_some(Item::Piece(payload)),
            Admission::Whole if is_last && self.kept.is_empty() => Some(Item::Whole { frame_type, payload }),
            Admission::Whole => {
                self.kept.extend_from_slice(&payload);
                is_last.then(|| Item::Whole { frame_type, payload: self.kept.split().freeze() })
            }
        }
    }

    fn read_integer(&mut self, input: &mut Bytes) -> Option<u64> {
        while let Some(byte) = input.first() {
            let value = self.integer.push(*byte);
            input.advance(1);
            if value.is_some() {
                return value;
            }
        }
        None
    }

    /// Bytes buffered for an incomplete frame.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Reports the end of the stream.
    ///
    /// # Errors
    /// The stream ended within a frame (RFC 9114 section 7.1).
    pub fn end(&self) -> Result<(), Error> {
        match self.state {
            // spec: rfc9114 7.1 truncated-closes
            State::Type if !self.integer.is_partial() => Ok(()),
            _ => Err(Error::frame("the stream ends within a frame")),
        }
    }
}

/// Keeps a frame that is no longer than `limit`.
pub(crate) fn whole_up_to(length: u64, limit: u64) -> Result<Admission, Error> {
    if length > limit {
        return Err(Error::new(Code::H3_EXCESSIVE_LOAD, "a frame is larger than this end will keep"));
    }
    Ok(Admission::Whole)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
