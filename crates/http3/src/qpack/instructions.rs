//! The peer's QPACK streams (RFC 9204 sections 4.3 and 4.4). Nearly every instruction is an error, because there is no
//! dynamic table.

use super::integer::Prefixed;
use crate::error::{Code, Error};

/// The only valid instruction: Set Dynamic Table Capacity to 0 (RFC 9204 section 4.3.1).
const SET_CAPACITY_ZERO: u8 = 0x20;

/// Checker for the peer's encoder stream.
#[derive(Debug, Default)]
pub struct EncoderStream;

impl EncoderStream {
    /// Checks the next bytes of the stream.
    ///
    /// # Errors
    /// An instruction sets a capacity above the announced 0, or inserts into the table.
    pub fn on_data(&mut self, data: &[u8]) -> Result<(), Error> {
        match data.iter().find(|byte| **byte != SET_CAPACITY_ZERO) {
            None => Ok(()),
            // spec: rfc9204 4.3.1 capacity-beyond-closes
            Some(0x20..=0x3f) => Err(Self::error("a capacity of the dynamic table exceeds 0")),
            // spec: rfc9204 2.2.3 evicted-in-instruction-closes, 3.1 static-index-in-instruction-closes
            // spec: rfc9204 3.2.2 entry-too-large-closes
            Some(_) => Err(Self::error("an insertion into a dynamic table without room")),
        }
    }

    fn error(reason: &'static str) -> Error {
        Error::new(Code::QPACK_ENCODER_STREAM_ERROR, reason)
    }
}

/// Checker for the peer's decoder stream.
#[derive(Debug, Default)]
pub struct DecoderStream {
    /// Incomplete stream ID of a Stream Cancellation.
    cancelled: Option<Prefixed>,
}

impl DecoderStream {
    /// Checks the next bytes of the stream.
    ///
    /// # Errors
    /// They acknowledge what was never sent, or are no instruction at all.
    pub fn on_data(&mut self, data: &[u8]) -> Result<(), Error> {
        for byte in data {
            let cancelled = match self.cancelled {
                Some(partial) => partial.push(*byte),
                // Stream Cancellation (RFC 9204 section 4.4.2) is of no interest without a table, but permitted.
                None if byte >> 6 == 0b01 => Prefixed::begin(*byte, 6),
                // spec: rfc9204 4.4.3 wrong-increment-closes
                None if *byte == 0 => return Err(Self::error("an Insert Count Increment of 0")),
                None if byte >> 6 == 0 => {
                    return Err(Self::error("an acknowledged insertion that was not sent"));
                }
                // spec: rfc9204 4.4.1 needless-acknowledgment-closes
                None => return Err(Self::error("an acknowledged section that refers to nothing")),
            };
            self.cancelled = match cancelled {
                Prefixed::Whole(_) => None,
                Prefixed::Partial { .. } => Some(cancelled),
                Prefixed::TooLarge => return Err(Self::error("a stream ID is too large")),
            };
        }
        Ok(())
    }

    fn error(reason: &'static str) -> Error {
        Error::new(Code::QPACK_DECODER_STREAM_ERROR, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_capacity_of_zero_is_obeyed() {
        // spec: rfc9204 4.3.1 capacity-beyond-closes, 2.2.3 evicted-in-instruction-closes
        // spec: rfc9204 3.1 static-index-in-instruction-closes, 3.2.2 entry-too-large-closes
        EncoderStream.on_data(&[0x20, 0x20]).unwrap();
        EncoderStream.on_data(&[]).unwrap();
        // Capacity 1 and 4096; an insertion with a static name, with a literal one; a duplicate.
        for bytes in [&[0x21_u8][..], &[0x3f, 0xe1, 0x1f], &[0xc0, 0x00], &[0x41, b'a', 0x00], &[0x20, 0x00]]
        {
            let error = EncoderStream.on_data(bytes).unwrap_err();
            assert_eq!(error.code, Code::QPACK_ENCODER_STREAM_ERROR, "{bytes:?}");
        }
    }

    #[test]
    fn only_cancellations_are_believed() {
        // spec: rfc9204 4.4.1 needless-acknowledgment-closes, 4.4.3 wrong-increment-closes
        let mut stream = DecoderStream::default();
        stream.on_data(&[0x40, 0x7f]).unwrap();
        stream.on_data(&[0x80]).unwrap();
        stream.on_data(&[0x01, 0x44]).unwrap();
        // An increment of 0 and of 1, an acknowledged section.
        for byte in [0x00, 0x01, 0x3f, 0x80, 0xff] {
            let error = DecoderStream::default().on_data(&[byte]).unwrap_err();
            assert_eq!(error.code, Code::QPACK_DECODER_STREAM_ERROR, "{byte:#x}");
        }
        let mut endless = vec![0x7f];
        endless.extend([0xff; 12]);
        assert!(DecoderStream::default().on_data(&endless).is_err());
    }
}
