//! `NEW_CONNECTION_ID` and `RETIRE_CONNECTION_ID` (RFC 9000 sections 19.15 and 19.16).

use crate::error::Fault;
use crate::varint::{self, Reader};
use crate::{ConnectionId, ResetToken};

/// Wire type of `NEW_CONNECTION_ID`.
pub const TYPE_NEW: u64 = 0x18;
/// Wire type of `RETIRE_CONNECTION_ID`.
pub const TYPE_RETIRE: u64 = 0x19;

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

impl NewConnectionId {
    /// Appends the frame.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        debug_assert!(!self.id.is_empty() && self.retire_prior_to <= self.sequence);
        buffer.push(TYPE_NEW as u8);
        varint::write(buffer, self.sequence);
        varint::write(buffer, self.retire_prior_to);
        buffer.push(self.id.len() as u8);
        buffer.extend_from_slice(self.id.as_slice());
        buffer.extend_from_slice(&self.reset_token.0);
    }

    /// Bytes that [`NewConnectionId::write`] appends.
    pub const fn encoded_len(&self) -> usize {
        let numbers = varint::len(self.sequence) + varint::len(self.retire_prior_to);
        1 + numbers + 1 + self.id.len() + self.reset_token.0.len()
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        // spec: rfc9000 19.15 retires-itself-closes
        if retire_prior_to > sequence {
            return Err(Fault::encoding("NEW_CONNECTION_ID retires itself"));
        }
        let length = usize::from(reader.byte()?);
        // spec: rfc9000 19.15 id-length-checked
        if length == 0 {
            return Err(Fault::encoding("NEW_CONNECTION_ID with an empty ID"));
        }
        // The length is judged before the bytes: 21 is wrong even where the packet ends.
        if length > crate::connection_id::MAX_CONNECTION_ID_LEN {
            return Err(Fault::encoding("NEW_CONNECTION_ID with an ID of more than 20 bytes"));
        }
        let id = ConnectionId::new(reader.take(length)?).unwrap_or_default();
        Ok(Self { sequence, retire_prior_to, id, reset_token: ResetToken(reader.array()?) })
    }
}
