//! The peer's unidirectional streams (RFC 9114 section 6.2).

use bytes::{Buf, Bytes};

use crate::control::{ControlFrame, ControlStream};
use crate::error::{Code, Error};
use crate::priority::Priority;
use crate::qpack::Tables;
use crate::settings::Settings;
use crate::varint::PartialInteger;

/// Type of a control stream (RFC 9114 section 6.2.1).
pub(crate) const CONTROL_STREAM: u64 = 0x00;
/// Type of a push stream (RFC 9114 section 6.2.2).
const PUSH_STREAM: u64 = 0x01;
/// Type of a QPACK encoder's stream (RFC 9204 section 4.2).
pub(crate) const ENCODER_STREAM: u64 = 0x02;
/// Type of a QPACK decoder's stream (RFC 9204 section 4.2).
pub(crate) const DECODER_STREAM: u64 = 0x03;

/// Role of this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends requests.
    Client,
    /// Answers requests.
    Server,
}

/// An event on the peer's control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The peer's settings; reported once.
    Settings(Settings),
    /// The peer shuts the connection down (RFC 9114 section 5.2). From a server: requests on this stream and later ones
    /// are not processed. From a client: pushes with this ID and later ones are not wanted.
    GoAway(u64),
    /// A client sets the priority of a request (RFC 9218 section 7.2).
    PriorityUpdate {
        /// The request's stream.
        stream: u64,
        /// The new priority.
        priority: Priority,
    },
}

/// Next step for a unidirectional stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Pass on the next bytes.
    Read,
    /// Ask the peer to stop with this code and drop the stream: its type is unknown.
    Stop(Code),
}

/// State of one of the peer's unidirectional streams.
#[derive(Debug, Default)]
pub struct UniStream(Kind);

#[derive(Debug)]
enum Kind {
    /// Its type has not arrived.
    Unknown(PartialInteger),
    Control(ControlStream),
    Encoder,
    Decoder,
}

impl Default for Kind {
    fn default() -> Self {
        Self::Unknown(PartialInteger::default())
    }
}

/// State of the peer, from its unidirectional streams.
#[derive(Debug)]
pub struct Peer {
    role: Role,
    tables: Tables,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
    /// Of its last GOAWAY.
    leaving: Option<u64>,
    max_push_id: Option<u64>,
}

impl Peer {
    /// Creates the peer of an end in `role` that has no dynamic tables.
    pub fn new(role: Role) -> Self {
        Self::with_tables(role, Tables::new(role, &Settings::default()))
    }

    /// Creates the peer of an end in `role`; its settings and its QPACK streams go to `tables`.
    pub const fn with_tables(role: Role, tables: Tables) -> Self {
        Self {
            role,
            tables,
            has_control: false,
            has_encoder: false,
            has_decoder: false,
            leaving: None,
            max_push_id: None,
        }
    }

    /// Reads the next bytes of a unidirectional stream of the peer and calls `event` for each event.
    ///
    /// # Errors
    /// A violation that ends the connection.
    pub fn on_data(
        &mut self,
        stream: &mut UniStream,
        mut data: Bytes,
        mut event: impl FnMut(Event),
    ) -> Result<Next, Error> {
        while let (Kind::Unknown(integer), Some(byte)) = (&mut stream.0, data.first()) {
            let stream_type = integer.push(*byte);
            data.advance(1);
            if let Some(stream_type) = stream_type {
                match self.begin(stream_type)? {
                    Some(kind) => stream.0 = kind,
                    None => return Ok(Next::Stop(Code::H3_STREAM_CREATION_ERROR)),
                }
            }
        }
        match &mut stream.0 {
            Kind::Unknown(_) => {}
            Kind::Encoder => self.tables.on_encoder_stream(&data)?,
            Kind::Decoder => self.tables.on_decoder_stream(&data)?,
            Kind::Control(control) => {
                while let Some(frame) = control.next(self.role, &mut data)? {
                    if let Some(said) = self.on_frame(frame)? {
                        event(said);
                    }
                }
            }
        }
        Ok(Next::Read)
    }

    /// Reports that the peer has finished or reset the stream.
    ///
    /// # Errors
    /// The stream is critical (RFC 9114 section 6.2.1, RFC 9204 section 4.2).
    pub fn on_end(&self, stream: &UniStream) -> Result<(), Error> {
        match stream.0 {
            // spec: rfc9114 6.2 end-before-type-tolerated
            Kind::Unknown(_) => Ok(()),
            Kind::Control(_) | Kind::Encoder | Kind::Decoder => Self::on_control_stopped(),
        }
    }

    /// Reports that the peer asks to stop this end's control stream.
    ///
    /// # Errors
    /// Always: it must not (RFC 9114 section 6.2.1).
    pub fn on_control_stopped() -> Result<(), Error> {
        // spec: rfc9114 6.2.1 closed-closes
        // spec: rfc9204 4.2 closed-closes
        Err(Error::new(Code::H3_CLOSED_CRITICAL_STREAM, "a critical stream was closed"))
    }

    /// Reports that a server has opened a bidirectional stream.
    ///
    /// # Errors
    /// Always: no extension that would permit it is in use (RFC 9114 section 6.1).
    pub fn on_server_request() -> Result<(), Error> {
        // spec: rfc9114 6.1 server-request-closes
        Err(Error::new(Code::H3_STREAM_CREATION_ERROR, "the server opened a bidirectional stream"))
    }

    /// Maps a stream type to its kind; `None` for unknown types.
    fn begin(&mut self, stream_type: u64) -> Result<Option<Kind>, Error> {
        let (seen, kind) = match stream_type {
            CONTROL_STREAM => (&mut self.has_control, Kind::Control(ControlStream::default())),
            ENCODER_STREAM => (&mut self.has_encoder, Kind::Encoder),
            DECODER_STREAM => (&mut self.has_decoder, Kind::Decoder),
            PUSH_STREAM => {
                return Err(match self.role {
                    // spec: rfc9114 6.2.2 client-push-closes
                    Role::Server => Error::new(Code::H3_STREAM_CREATION_ERROR, "a push from a client"),
                    // spec: rfc9114 4.6 unpermitted-push-closes
                    // No MAX_PUSH_ID was sent (RFC 9114 section 4.6).
                    Role::Client => Error::new(Code::H3_ID_ERROR, "a push that was not permitted"),
                });
            }
            // spec: rfc9114 6.2 unknown-type-no-error, 6.2.3 reserved-streams-mean-nothing
            _ => return Ok(None),
        };
        // spec: rfc9114 6.2.1 second-closes
        // spec: rfc9204 4.2 second-closes
        if std::mem::replace(seen, true) {
            return Err(Error::new(Code::H3_STREAM_CREATION_ERROR, "a second stream of a critical type"));
        }
        Ok(Some(kind))
    }

    fn on_frame(&mut self, frame: ControlFrame) -> Result<Option<Event>, Error> {
        match frame {
            ControlFrame::Settings(settings) => {
                self.tables.on_settings(&settings);
                Ok(Some(Event::Settings(settings)))
            }
            ControlFrame::GoAway(id) => {
                // spec: rfc9114 5.2 larger-goaway-closes
                if self.leaving.is_some_and(|last| id > last) {
                    return Err(Error::new(Code::H3_ID_ERROR, "GOAWAY takes back an earlier one"));
                }
                self.leaving = Some(id);
                Ok(Some(Event::GoAway(id)))
            }
            ControlFrame::MaxPushId(id) => {
                // spec: rfc9114 7.2.7 reduced-closes
                if self.max_push_id.is_some_and(|last| id < last) {
                    return Err(Error::new(Code::H3_ID_ERROR, "MAX_PUSH_ID goes back"));
                }
                self.max_push_id = Some(id);
                Ok(None)
            }
            ControlFrame::PriorityUpdate { stream, parameters } => {
                // What an update leaves out has its default (RFC 9218 section 7).
                let priority = parameters.over(Priority::default());
                Ok(Some(Event::PriorityUpdate { stream, priority }))
            }
        }
    }
}

#[cfg(test)]
#[path = "peer_tests.rs"]
mod tests;
