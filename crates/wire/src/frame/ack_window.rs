//! `ACK_WINDOW`: an ACK with the receiver's flow-control limits (extension, see docs/spec/ack-window.md).
//!
//! The limits come first, so that the ranges may fill the rest of the packet:
//!
//! ```text
//! ACK_WINDOW {
//!   Type (i) = 0x2b1c (without ECN counts) or 0x2b1d (with them),
//!   Maximum Data (i), in units of 1024 bytes,
//!   Stream Count (i),
//!   { Stream ID (i), Maximum Stream Data (i), in units of 1024 bytes } ...,
//!   ACK fields as in section 19.3, from Largest Acknowledged on,
//! }
//! ```

use std::ops::RangeInclusive;

use super::ack::{self, AckFrame, EcnCounts};
use crate::StreamId;
use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type without ECN counts.
pub const TYPE: u64 = 0x2b1c;
/// Wire type with ECN counts.
pub const TYPE_ECN: u64 = 0x2b1d;

/// Unit of the limits in bytes, rounded down; most limits then take two bytes instead of four.
pub const UNIT: u64 = 1024;

/// Most streams that one frame may name; a frame that names more is malformed.
pub const MAX_STREAMS: usize = 64;

/// The credit that a receiver grants, as it stands: limits as in `MAX_DATA` and `MAX_STREAM_DATA`, in bytes. They are
/// told rounded down to whole units of [`UNIT`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowUpdate {
    /// The connection's limit, in bytes.
    pub max_data: u64,
    /// Limits of streams, in bytes; at most [`MAX_STREAMS`].
    pub streams: Vec<(StreamId, u64)>,
}

impl WindowUpdate {
    /// Bytes that the update takes in a frame.
    pub fn encoded_len(&self) -> usize {
        let streams: usize = self.streams.iter().map(|(id, maximum)| Self::stream_len(*id, *maximum)).sum();
        varint::len(self.max_data / UNIT) + varint::len(self.streams.len() as u64) + streams
    }

    /// Bytes that one stream's limit takes.
    pub const fn stream_len(id: StreamId, maximum: u64) -> usize {
        varint::len(id.to_wire()) + varint::len(maximum / UNIT)
    }

    fn write(&self, buffer: &mut Vec<u8>) {
        varint::write(buffer, self.max_data / UNIT);
        varint::write(buffer, self.streams.len() as u64);
        for (id, maximum) in &self.streams {
            varint::write(buffer, id.to_wire());
            varint::write(buffer, *maximum / UNIT);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let max_data = decode_limit(reader)?;
        let count = usize::try_from(reader.varint()?).ok().filter(|count| *count <= MAX_STREAMS);
        let count = count.ok_or(Fault::encoding("ACK_WINDOW names more than 64 streams"))?;
        let streams = (0..count).map(|_| Ok((StreamId::from_wire(reader.varint()?), decode_limit(reader)?)));
        Ok(Self { max_data, streams: streams.collect::<Result<_, Fault>>()? })
    }
}

fn decode_limit(reader: &mut Reader<'_>) -> Result<u64, Fault> {
    let limit = reader.varint()?.checked_mul(UNIT).filter(|limit| *limit <= varint::MAX);
    limit.ok_or(Fault::encoding("ACK_WINDOW with a limit above 2^62"))
}

/// `ACK_WINDOW`: which packets have arrived, and what may be sent from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckWindowFrame {
    /// The acknowledgement.
    pub ack: AckFrame,
    /// The credit.
    pub update: WindowUpdate,
}

impl AckWindowFrame {
    /// Appends the frame with all its ranges. Nothing is written if there are none.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        let ranges = self.ack.ranges.iter().cloned();
        write(buffer, &self.update, self.ack.delay, ranges, self.ack.ecn, usize::MAX);
    }

    /// Bytes that [`AckWindowFrame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        match self.ack.encoded_len() {
            0 => 0,
            // An ACK's type takes one byte.
            ack => varint::len(TYPE) + self.update.encoded_len() + ack - 1,
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>, has_ecn: bool) -> Result<Self, Fault> {
        let update = WindowUpdate::decode(reader)?;
        Ok(Self { ack: ack::decode(reader, has_ecn)?, update })
    }
}

/// Appends an `ACK_WINDOW` frame with as many of the highest ranges as fit in `limit` bytes, and returns how many that
/// are. If not even the first fits, or there is none, nothing is written and the result is 0.
///
/// `ranges` come as for [`ack::write`].
pub fn write(
    buffer: &mut Vec<u8>,
    update: &WindowUpdate,
    delay: u64,
    ranges: impl Iterator<Item = RangeInclusive<u64>>,
    ecn: Option<EcnCounts>,
    limit: usize,
) -> usize {
    debug_assert!(update.streams.len() <= MAX_STREAMS, "ACK_WINDOW for more streams than it may name");
    let start = buffer.len();
    let head = varint::len(TYPE) + update.encoded_len();
    let Some(room) = limit.checked_sub(head) else { return 0 };
    varint::write(buffer, if ecn.is_some() { TYPE_ECN } else { TYPE });
    update.write(buffer);
    let count = ack::write_body(buffer, delay, ranges, ecn, room);
    if count == 0 {
        buffer.truncate(start);
    }
    count
}
