//! `CONNECTION_CLOSE` (RFC 9000 section 19.19).

use bytes::Bytes;

use crate::error::Fault;
use crate::varint::{self, Reader};

/// Wire type of a close by the transport.
pub const TYPE_TRANSPORT: u64 = 0x1c;
/// Wire type of a close by the application.
pub const TYPE_APPLICATION: u64 = 0x1d;

/// `CONNECTION_CLOSE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseFrame {
    /// The error code, of the space that `kind` names.
    pub error_code: u64,
    /// The layer that closes.
    pub kind: CloseKind,
    /// A reason for people; meant to be UTF-8, not checked.
    pub reason: Bytes,
}

/// The layer that closes: transport (0x1c) or application (0x1d).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseKind {
    /// The transport, because of a frame of this type (0 if unknown).
    Transport {
        /// Type of the offending frame.
        frame_type: u64,
    },
    /// The application.
    Application,
}

impl CloseFrame {
    /// Appends the frame, with the whole reason: shorten that before to what has room.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        match self.kind {
            CloseKind::Transport { frame_type } => {
                buffer.push(TYPE_TRANSPORT as u8);
                varint::write(buffer, self.error_code);
                varint::write(buffer, frame_type);
            }
            CloseKind::Application => {
                buffer.push(TYPE_APPLICATION as u8);
                varint::write(buffer, self.error_code);
            }
        }
        varint::write(buffer, self.reason.len() as u64);
        buffer.extend_from_slice(&self.reason);
    }

    /// Bytes that [`CloseFrame::write`] appends.
    pub fn encoded_len(&self) -> usize {
        let cause = match self.kind {
            CloseKind::Transport { frame_type } => varint::len(frame_type),
            CloseKind::Application => 0,
        };
        1 + varint::len(self.error_code) + cause + varint::len(self.reason.len() as u64) + self.reason.len()
    }
}

/// Decodes what follows the type, up to the reason: error code, kind, and the reason's length, which is all there.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    is_application: bool,
) -> Result<(u64, CloseKind, usize), Fault> {
    let error_code = reader.varint()?;
    let kind = if is_application {
        CloseKind::Application
    } else {
        CloseKind::Transport { frame_type: reader.varint()? }
    };
    Ok((error_code, kind, super::data_length(reader)?))
}
