//! The peer's control stream (RFC 9114 sections 6.2.1 and 7.2).

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Code, Error};
use crate::frame::{self, Admission, FrameReader, Item, whole_up_to};
use crate::limits::MAX_CONTROL_FRAME;
use crate::peer::Role;
use crate::priority::PriorityParameters;
use crate::settings::Settings;

/// A message on a control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlFrame {
    Settings(Settings),
    GoAway(u64),
    MaxPushId(u64),
    PriorityUpdate { stream: u64, parameters: PriorityParameters },
}

/// Reads the frames of a control stream.
#[derive(Debug, Default)]
pub(crate) struct ControlStream {
    frames: FrameReader,
    /// The first frame, which must be SETTINGS, has begun.
    has_settings: bool,
}

impl ControlStream {
    /// Returns the next frame that matters to an end in this role; `None` when `input` is used up.
    pub(crate) fn next(&mut self, role: Role, input: &mut Bytes) -> Result<Option<ControlFrame>, Error> {
        loop {
            let has_settings = &mut self.has_settings;
            let item = self.frames.next(input, |frame_type, length| {
                let is_first = !std::mem::replace(has_settings, true);
                judge(role, is_first, frame_type, length)
            })?;
            match item {
                None => return Ok(None),
                Some(Item::Whole { frame_type, payload }) => {
                    if let Some(frame) = parse(role, frame_type, &payload)? {
                        return Ok(Some(frame));
                    }
                }
                // No frame of this stream is admitted in pieces.
                Some(Item::Piece(_)) => {}
            }
        }
    }
}

/// Checks that a frame is permitted here and has a permitted size.
fn judge(role: Role, is_first: bool, frame_type: u64, length: u64) -> Result<Admission, Error> {
    if is_first != (frame_type == frame::SETTINGS) {
        // spec: rfc9114 6.2.1 missing-settings-closes, 7.2.4 second-closes
        return Err(if is_first {
            Error::new(Code::H3_MISSING_SETTINGS, "the control stream does not begin with SETTINGS")
        } else {
            Error::unexpected("a second SETTINGS frame")
        });
    }
    match frame_type {
        frame::SETTINGS => whole_up_to(length, MAX_CONTROL_FRAME),
        // spec: rfc9114 7.2.1 data-on-control-closes, 7.2.2 headers-on-control-closes
        // spec: rfc9114 7.2.5 promise-on-control-closes
        frame::DATA | frame::HEADERS | frame::PUSH_PROMISE => {
            Err(Error::unexpected("a message's frame on the control stream"))
        }
        // spec: rfc9218 7.2 from-server-closes
        // spec: rfc9114 7.2.7 from-server-closes
        frame::MAX_PUSH_ID | frame::PRIORITY_UPDATE_REQUEST | frame::PRIORITY_UPDATE_PUSH
            if role == Role::Client =>
        {
            Err(Error::unexpected("a client's frame from the server"))
        }
        // spec: rfc9114 7.1 payload-is-its-fields, 7.1 wrong-length-closes, 7.1 lengths-agree
        // spec: rfc9114 10.8 frame-lengths-match
        frame::GOAWAY | frame::MAX_PUSH_ID | frame::CANCEL_PUSH => match length {
            1 | 2 | 4 | 8 => Ok(Admission::Whole),
            _ => Err(Error::frame("a frame's payload is not one identifier")),
        },
        frame::PRIORITY_UPDATE_REQUEST | frame::PRIORITY_UPDATE_PUSH => {
            whole_up_to(length, MAX_CONTROL_FRAME)
        }
        // spec: rfc9114 7.2.8 http2-closes
        _ if frame::is_of_http2(frame_type) => Err(Error::unexpected("a frame of HTTP/2")),
        // spec: rfc9114 7.2.8 reserved-mean-nothing, 9 unknown-ignored
        _ => Ok(Admission::Skip),
    }
}

fn parse(role: Role, frame_type: u64, payload: &[u8]) -> Result<Option<ControlFrame>, Error> {
    let mut input = Cursor::new(payload);
    if frame_type == frame::SETTINGS {
        return Settings::parse(payload).map(|settings| Some(ControlFrame::Settings(settings)));
    }
    let identifier = input.varint().ok_or(Error::frame("a frame ends within its identifier"))?;
    let is_update = matches!(frame_type, frame::PRIORITY_UPDATE_REQUEST | frame::PRIORITY_UPDATE_PUSH);
    if !is_update && !input.is_empty() {
        return Err(Error::frame("a frame's payload is more than one identifier"));
    }
    let wrong = |reason| Err(Error::new(Code::H3_ID_ERROR, reason));
    match frame_type {
        // spec: rfc9114 7.2.6 goaway-of-no-request-closes
        frame::GOAWAY if role == Role::Client && identifier % 4 != 0 => wrong("GOAWAY names no request"),
        frame::GOAWAY => Ok(Some(ControlFrame::GoAway(identifier))),
        frame::MAX_PUSH_ID => Ok(Some(ControlFrame::MaxPushId(identifier))),
        // spec: rfc9114 7.2.3 cancel-beyond-closes, 7.2.3 cancel-of-no-promise-closes
        // A client has permitted no push, a server has promised none (RFC 9114 section 7.2.3).
        frame::CANCEL_PUSH => wrong("CANCEL_PUSH for a push that there is not"),
        // spec: rfc9218 7.2 no-promise-closes, 7.2 no-request-closes
        frame::PRIORITY_UPDATE_PUSH => wrong("a priority for a push that there is not"),
        _ if identifier % 4 != 0 => wrong("a priority for what is no request"),
        // What cannot be parsed may be an error (RFC 9218 section 7); it is of so little weight that it is none here.
        _ => Ok(PriorityParameters::parse(input.rest())
            .map(|parameters| ControlFrame::PriorityUpdate { stream: identifier, parameters })),
    }
}
