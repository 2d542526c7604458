//! Decoding of a packet's payload into frames.

use bytes::{Buf, Bytes};

use super::{CloseFrame, CryptoFrame, Decoded, Frame, StreamFrame, TailCodeFrame, decode_body};
use crate::error::{DecodeError, Fault};
use crate::varint::{self, Reader};

/// The frames of one decrypted packet, in order. It ends after the first error.
#[derive(Debug, Clone)]
pub struct Iter {
    payload: Bytes,
    position: usize,
    /// True until the first frame: a packet without any is a protocol violation (section 12.4).
    is_fresh: bool,
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
            Decoded::TailCode { head, length } => {
                Frame::TailCode(TailCodeFrame { head, symbols: self.cut(length) })
            }
            Decoded::Data { length, frame } => frame(self.cut(length)),
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
