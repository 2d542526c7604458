//! `ACK_FREQUENCY` and `IMMEDIATE_ACK` (draft-ietf-quic-ack-frequency sections 4 and 5).

use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type of `ACK_FREQUENCY`.
pub const TYPE: u64 = 0xaf;
/// Wire type of `IMMEDIATE_ACK`.
pub const TYPE_IMMEDIATE: u64 = 0x1f;

/// A sender's request for the acknowledgements of its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckFrequency {
    /// Ascends; only the highest holds.
    pub sequence: u64,
    /// Ack-eliciting packets that may arrive without an ack being sent: 0 asks for an ack for each.
    pub ack_eliciting_threshold: u64,
    /// Maximum delay of an acknowledgement, in microseconds.
    pub max_ack_delay: u64,
    /// Packet numbers by which a packet must be missing before that calls for an ack at once: 1 for any
    /// reordering, 0 for never.
    pub reordering_threshold: u64,
}

impl AckFrequency {
    const fn fields(&self) -> [u64; 4] {
        [self.sequence, self.ack_eliciting_threshold, self.max_ack_delay, self.reordering_threshold]
    }

    pub(super) fn write(&self, buffer: &mut Vec<u8>) {
        varint::write(buffer, TYPE);
        self.fields().into_iter().for_each(|field| varint::write(buffer, field));
    }

    pub(super) fn encoded_len(&self) -> usize {
        varint::len(TYPE) + self.fields().into_iter().map(varint::len).sum::<usize>()
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self {
            sequence: reader.varint()?,
            ack_eliciting_threshold: reader.varint()?,
            max_ack_delay: reader.varint()?,
            reordering_threshold: reader.varint()?,
        })
    }
}
