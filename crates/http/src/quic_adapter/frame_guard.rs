//! Bounds what a peer can make h3 buffer: every frame but DATA is kept until it is whole.

/// Largest payload of a frame other than DATA that is accepted: headers, settings, and frames of unknown types.
pub(super) const MAX_FRAME_PAYLOAD: u64 = 128 * 1024;

/// DATA frames are handed on as they arrive (RFC 9114 section 7.2.1).
const DATA: u64 = 0x00;

/// The control stream, the only unidirectional one whose frames are read (RFC 9114 section 6.2.1).
const CONTROL_STREAM: u64 = 0x00;

/// A frame is larger than this end is willing to buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame of type {frame_type:#x} is {length} bytes long, more than {MAX_FRAME_PAYLOAD}")]
pub(super) struct OversizedFrame {
    frame_type: u64,
    length: u64,
}

/// Follows the frames of one stream without keeping their payloads.
#[derive(Debug)]
pub(super) struct FrameGuard {
    state: State,
    integer: PartialInteger,
    request: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    StreamType,
    FrameType,
    Length { frame_type: u64 },
    Payload { remaining: u64 },
    Ignored,
}

impl FrameGuard {
    /// For a bidirectional stream, which begins with a frame.
    pub(super) fn for_request() -> Self {
        Self { state: State::FrameType, integer: PartialInteger::default(), request: true }
    }

    /// For a unidirectional stream, which begins with its type.
    pub(super) fn for_uni() -> Self {
        Self { state: State::StreamType, integer: PartialInteger::default(), request: false }
    }

    pub(super) fn is_request(&self) -> bool {
        self.request
    }

    /// Follows the next bytes of the stream; an error as soon as a frame's length is known to be too large.
    pub(super) fn inspect(&mut self, mut data: &[u8]) -> Result<(), OversizedFrame> {
        while !data.is_empty() {
            if let State::Ignored = self.state {
                return Ok(());
            }
            if let State::Payload { remaining } = &mut self.state {
                let skipped = usize::try_from(*remaining).unwrap_or(usize::MAX).min(data.len());
                *remaining -= skipped as u64;
                data = &data[skipped..];
                if *remaining == 0 {
                    self.state = State::FrameType;
                }
                continue;
            }
            let byte = data[0];
            data = &data[1..];
            if let Some(value) = self.integer.push(byte) {
                self.state = self.after(value)?;
            }
        }
        Ok(())
    }

    /// The state after the integer that the present state waits for.
    fn after(&self, value: u64) -> Result<State, OversizedFrame> {
        Ok(match self.state {
            State::StreamType if value == CONTROL_STREAM => State::FrameType,
            State::StreamType | State::Ignored => State::Ignored,
            State::FrameType => State::Length { frame_type: value },
            State::Length { frame_type } if frame_type != DATA && value > MAX_FRAME_PAYLOAD => {
                return Err(OversizedFrame { frame_type, length: value });
            }
            State::Length { .. } | State::Payload { .. } if value == 0 => State::FrameType,
            State::Length { .. } | State::Payload { .. } => State::Payload { remaining: value },
        })
    }
}

/// A variable-length integer of which not all bytes have arrived (RFC 9000 section 16).
#[derive(Debug, Default)]
struct PartialInteger {
    value: u64,
    missing: u8,
}

impl PartialInteger {
    fn push(&mut self, byte: u8) -> Option<u64> {
        if self.missing == 0 {
            self.missing = 1 << (byte >> 6);
            self.value = u64::from(byte & 0x3f);
        } else {
            self.value = (self.value << 8) | u64::from(byte);
        }
        self.missing -= 1;
        (self.missing == 0).then_some(self.value)
    }
}

#[cfg(test)]
mod tests;
