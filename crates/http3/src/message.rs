//! Reader for a request or response on its stream (RFC 9114 section 4.1): heads, content, trailers.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::error::{Code, Error, MessageError};
use crate::fields;
use crate::frame::{self, Admission, FrameReader, Item, whole_up_to};
use crate::limits::MAX_FRAME_PAYLOAD;
use crate::qpack::{DecodeError, Field, Tables, decode};

/// Kind of message that this end receives on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A request, at a server.
    Request,
    /// A response, at a client.
    Response {
        /// True for the response to a HEAD request, which announces a length without content.
        to_head: bool,
    },
}

/// A part of a message.
#[derive(Debug)]
pub enum Part {
    /// The head of a request.
    Request(http::Request<()>),
    /// The head of a response. Informational ones (RFC 9110 section 15.2) may come before the final one.
    Response(http::Response<()>),
    /// Bytes of the content, as received; never empty.
    Data(Bytes),
    /// The trailers, after the content.
    Trailers(HeaderMap),
}

/// Reads the message of one stream.
#[derive(Debug)]
pub struct MessageReader {
    kind: MessageKind,
    frames: FrameReader,
    max_field_section_size: u64,
    state: State,
    content: Content,
    received: u64,
    permits_protocol: bool,
    /// The connection's dynamic tables, and the stream's ID; `None` once nothing more is decoded.
    tables: Option<(Tables, u64)>,
    /// A section that waits for the dynamic table.
    waiting: Option<Box<Bytes>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The (final) head has not arrived.
    Head,
    /// Content may come, or trailers.
    Content,
    /// The trailers have come.
    Trailers,
    /// The request was CONNECT: only content may come (RFC 9114 section 4.4).
    Tunnel,
}

/// Length of a message's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Unknown.
    Any,
    /// As announced.
    Announced(u64),
    /// None, whatever is announced (RFC 9110 section 6.4.1).
    Never,
}

impl MessageReader {
    /// Creates a reader for a new stream. A field section may have `max_field_section_size` bytes, as RFC 9114
    /// section 4.2.2 counts them.
    pub fn new(kind: MessageKind, max_field_section_size: u64) -> Self {
        Self {
            kind,
            frames: FrameReader::default(),
            max_field_section_size,
            state: State::Head,
            content: Content::Any,
            received: 0,
            permits_protocol: false,
            tables: None,
            waiting: None,
        }
    }

    /// The same for the stream with this ID of a connection that has announced a dynamic table. Dropped before the end of
    /// its message, it tells the encoder (RFC 9204 section 2.2.2.2).
    #[must_use]
    pub fn with_tables(mut self, tables: Tables, stream: u64) -> Self {
        self.tables = Some((tables, stream));
        self
    }

    /// Permits extended CONNECT in a request, which this end must have announced in
    /// [`Settings::enable_connect_protocol`](crate::Settings); its head has a [`ConnectProtocol`](crate::ConnectProtocol) as
    /// extension. Otherwise such a request is malformed.
    pub fn permit_extended_connect(&mut self) {
        self.permits_protocol = true;
    }

    /// Consumes `input` up to the next part; `None` if it is used up, or [`Self::is_blocked`].
    ///
    /// # Errors
    /// What is wrong with the stream. There is no reading on behind an error.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Part>, MessageError> {
        if let Some(section) = self.waiting.take() {
            return self.on_section(*section);
        }
        let judge = |frame_type, length| {
            judge(self.kind, self.state, self.max_field_section_size, frame_type, length)
        };
        match self.frames.next(input, judge)? {
            None => Ok(None),
            Some(Item::Piece(data)) => self.on_data(data).map(Some),
            Some(Item::Whole { payload, .. }) => self.on_section(payload),
        }
    }

    /// True if a field section waits for the dynamic table: until [`Self::poll_unblocked`] is ready, no input is used.
    pub const fn is_blocked(&self) -> bool {
        self.waiting.is_some()
    }

    /// Ready when [`Self::next`] gets on: either no section waits, or the entries that it needs have arrived.
    pub fn poll_unblocked(&self, cx: &Context<'_>) -> Poll<()> {
        match &self.tables {
            Some((tables, stream)) if self.is_blocked() => tables.poll_unblocked(*stream, cx),
            _ => Poll::Ready(()),
        }
    }

    /// The stream has ended in order.
    ///
    /// # Errors
    /// The message is incomplete.
    pub fn end(&mut self) -> Result<(), MessageError> {
        self.frames.end()?;
        if self.waiting.is_none() {
            self.tables = None;
        }
        match (self.state, self.kind, self.content) {
            (State::Head, MessageKind::Request, _) => Err(MessageError::Incomplete),
            (State::Head, MessageKind::Response { .. }, _) => {
                Err(MessageError::Malformed("the stream ended without a response"))
            }
            (_, _, Content::Announced(announced)) if announced != self.received => {
                Err(MessageError::Length { announced, received: self.received })
            }
            _ => Ok(()),
        }
    }

    /// Announced length of the content in bytes, if the message has content.
    pub fn announced(&self) -> Option<u64> {
        match self.content {
            Content::Announced(length) => Some(length),
            Content::Any | Content::Never => None,
        }
    }

    /// Returns true if the request's method or the response's status excludes content.
    pub fn is_without_content(&self) -> bool {
        self.content == Content::Never
    }

    fn on_data(&mut self, data: Bytes) -> Result<Part, MessageError> {
        self.received = self.received.saturating_add(data.len() as u64);
        match self.content {
            Content::Announced(announced) if self.received > announced => {
                Err(MessageError::Length { announced, received: self.received })
            }
            Content::Never => Err(MessageError::Malformed("content where there can be none")),
            Content::Any | Content::Announced(_) => Ok(Part::Data(data)),
        }
    }

    fn on_section(&mut self, section: Bytes) -> Result<Option<Part>, MessageError> {
        let limit = self.max_field_section_size;
        let decoded = match &self.tables {
            Some((tables, stream)) => tables.decode(*stream, &section, limit),
            None => decode(&section, limit).map(Some),
        };
        let decoded = decoded.map_err(|error| match error {
            DecodeError::Invalid(error) => MessageError::Connection(error),
            DecodeError::TooLarge => MessageError::TooLarge { limit },
        })?;
        let Some(fields) = decoded else {
            self.waiting = Some(Box::new(section));
            return Ok(None);
        };
        self.on_fields(fields).map(Some)
    }

    fn on_fields(&mut self, fields: Vec<Field>) -> Result<Part, MessageError> {
        // spec: rfc9114 4.1 further-message-malformed
        if self.state == State::Content {
            self.state = State::Trailers;
            let trailers = fields::trailers(fields).map_err(MessageError::Malformed)?;
            if matches!(self.kind, MessageKind::Request) {
                fields::check_blanks(&trailers).map_err(MessageError::Malformed)?;
            }
            return Ok(Part::Trailers(trailers));
        }
        match self.kind {
            MessageKind::Request => {
                let request =
                    fields::request(fields, self.permits_protocol).map_err(MessageError::Malformed)?;
                self.begin_content(request.headers(), false)?;
                if request.method() == Method::CONNECT {
                    self.state = State::Tunnel;
                }
                Ok(Part::Request(request))
            }
            MessageKind::Response { to_head } => {
                let response = fields::response(fields).map_err(MessageError::Malformed)?;
                let status = response.status();
                if !status.is_informational() {
                    let is_bare = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
                    self.begin_content(response.headers(), to_head || is_bare)?;
                }
                Ok(Part::Response(response))
            }
        }
    }

    fn begin_content(&mut self, headers: &HeaderMap, is_never: bool) -> Result<(), MessageError> {
        let announced = fields::content_length(headers).map_err(MessageError::Malformed)?;
        self.state = State::Content;
        self.content = match announced {
            _ if is_never => Content::Never,
            Some(length) => Content::Announced(length),
            None => Content::Any,
        };
        Ok(())
    }
}

impl Drop for MessageReader {
    fn drop(&mut self) {
        if let Some((tables, stream)) = self.tables.take() {
            tables.cancel(stream);
        }
    }
}

/// Checks that a frame is permitted now (RFC 9114 sections 4.1 and 7.2).
fn judge(
    kind: MessageKind,
    state: State,
    max_field_section_size: u64,
    frame_type: u64,
    length: u64,
) -> Result<Admission, Error> {
    match (frame_type, state, kind) {
        (frame::DATA, State::Content | State::Tunnel, _) => Ok(Admission::Pieces),
        (frame::HEADERS, State::Head | State::Content, _) => {
            whole_up_to(length, max_field_section_size.max(MAX_FRAME_PAYLOAD))
        }
        // spec: rfc9114 4.1 wrong-order-closes, 7.2.1 data-of-messages
        (frame::DATA, ..) => Err(Error::unexpected("DATA before HEADERS or behind trailers")),
        // spec: rfc9114 4.4 only-data-in-tunnels
        (frame::HEADERS, State::Tunnel, _) => Err(Error::unexpected("HEADERS behind those of CONNECT")),
        (frame::HEADERS, ..) => Err(Error::unexpected("HEADERS behind trailers")),
        // spec: rfc9114 7.2.5 promise-beyond-closes
        // A client that has permitted no push treats the promise of one so (RFC 9114 section 7.2.5).
        (frame::PUSH_PROMISE, _, MessageKind::Response { .. }) => {
            Err(Error::new(Code::H3_ID_ERROR, "a push that was not permitted"))
        }
        (
            frame::PUSH_PROMISE
            // spec: rfc9114 7.2.3 cancel-elsewhere-closes, 7.2.4 elsewhere-closes, 7.2.5 clients-promise-closes
            // spec: rfc9114 7.2.6 goaway-elsewhere-closes, 7.2.7 max-push-elsewhere-closes
            | frame::CANCEL_PUSH
            | frame::SETTINGS
            | frame::GOAWAY
            | frame::MAX_PUSH_ID
            // spec: rfc9218 7.2 elsewhere-closes
            | frame::PRIORITY_UPDATE_REQUEST
            | frame::PRIORITY_UPDATE_PUSH,
            ..,
        ) => Err(Error::unexpected("a frame that does not belong on a request's stream")),
        // spec: rfc9114 7.2.8 http2-closes
        _ if frame::is_of_http2(frame_type) => Err(Error::unexpected("a frame of HTTP/2")),
        // spec: rfc9114 7.2.8 reserved-mean-nothing, 9 unknown-ignored
        _ => Ok(Admission::Skip),
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
