//! A request's stream: one half writes a message, the other reads one.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use posthaste_endpoint::{
    Connection, ConnectionError, Priority, ReadError, RecvStream, SendStream, Side, WriteError,
};
use posthaste_http3::qpack::Tables;
use posthaste_http3::{Code, MessageError, MessageKind, MessageReader, Part, encode};

/// Most bytes taken from a stream at once.
const READ_CHUNK: usize = 64 * 1024;

/// Content up to this size goes in one piece with what precedes it; larger content goes without a copy.
const COPY_LIMIT: usize = 1024;

/// Bytes that may be held back for what follows: a head with content that is copied, so that a small response and its end
/// are written at once.
const HELD_LIMIT: usize = 2 * COPY_LIMIT;

/// Bytes of the type and length before content that is copied (RFC 9114 section 7.1), at most.
const COPIED_HEADER: usize = 3;

/// Writes a message. Dropped before it is finished, the stream is reset with a code of RFC 9114 section 8.1.
pub(crate) struct MessageSender {
    stream: SendStream,
    /// Frames that are short enough to go together.
    pending: Vec<u8>,
    is_open: bool,
    /// What a drop half-way is for the peer.
    abandoned: Code,
}

impl MessageSender {
    /// A stream on which nothing has been written.
    pub(crate) fn new(stream: SendStream, side: Side) -> Self {
        let abandoned = match side {
            Side::Client => Code::H3_REQUEST_CANCELLED,
            Side::Server => Code::H3_INTERNAL_ERROR,
        };
        Self { stream, pending: Vec::new(), is_open: true, abandoned }
    }

    /// The stream's identifier on the wire.
    pub(crate) fn id(&self) -> u64 {
        self.stream.id().to_wire()
    }

    /// Ranks the stream among the connection's others.
    pub(crate) fn set_priority(&mut self, priority: posthaste_http3::Priority) {
        self.stream.set_priority(transport_priority(priority));
    }

    /// Takes a frame of a head or of trailers, which is sent with the next [`Self::flush`] or content.
    pub(crate) fn frame(&mut self, mut frame: Vec<u8>) {
        if self.pending.is_empty() {
            self.pending = frame;
        } else {
            self.pending.append(&mut frame);
        }
    }

    /// Writes what is held back.
    ///
    /// # Errors
    /// The peer does not want more, or the connection is over.
    pub(crate) async fn flush(&mut self) -> Result<(), WriteError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.stream.write_bytes(std::mem::take(&mut self.pending).into()).await
    }

    /// Sends content in a DATA frame of its own; short content may be held back.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(crate) async fn content(&mut self, content: Bytes) -> Result<(), WriteError> {
        let is_copied = content.len() <= COPY_LIMIT;
        if is_copied {
            self.pending.reserve(COPIED_HEADER + content.len());
        }
        encode::data_header(&mut self.pending, content.len() as u64);
        if is_copied {
            self.pending.extend_from_slice(&content);
            if self.pending.len() <= HELD_LIMIT {
                return Ok(());
            }
            return self.flush().await;
        }
        let head = std::mem::take(&mut self.pending).into();
        self.stream.write_all_chunks(&mut [head, content]).await
    }

    /// Ends the message.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(crate) async fn finish(&mut self) -> Result<(), WriteError> {
        let pending = std::mem::take(&mut self.pending);
        if pending.len() <= COPY_LIMIT {
            self.stream.finish_with_copy(&pending).await?;
        } else {
            self.stream.finish_with(pending.into()).await?;
        }
        self.is_open = false;
        Ok(())
    }

    /// Waits until the peer has acknowledged everything: closing the connection earlier could cut off the tail.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub(crate) async fn acknowledged(&self) -> Result<(), WriteError> {
        self.stream.acknowledged().await
    }

    /// Resolves when the peer wants no more of the message, or cannot have it: the text says why. Never resolves once the
    /// peer has all of it.
    pub(crate) fn unwanted(&self) -> impl Future<Output = String> + Send + use<> {
        let stopped = self.stream.stopped();
        async move {
            match stopped.await {
                Ok(Some(code)) => unwanted(Code(code)),
                Ok(None) => std::future::pending().await,
                Err(error) => error.to_string(),
            }
        }
    }

    /// Gives the message up.
    pub(crate) fn reset(&mut self, code: Code) {
        self.is_open = false;
        self.stream.reset(code.value());
    }
}

impl Drop for MessageSender {
    fn drop(&mut self) {
        if self.is_open {
            self.reset(self.abandoned);
        }
    }
}

/// The text for a peer that has stopped a message's stream.
pub(crate) fn unwanted(code: Code) -> String {
    format!("the client wants no more ({code})")
}

pub(crate) fn transport_priority(priority: posthaste_http3::Priority) -> Priority {
    Priority { urgency: priority.urgency, incremental: priority.incremental }
}

/// Why a message does not arrive.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// It is not what HTTP/3 permits; if that ends the connection, it has been closed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The peer gave it up, with this code.
    #[error("the peer reset the stream ({0})")]
    Reset(Code),
    /// The connection is over.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Reads a message. Dropped before its end, the peer is asked to stop with a code of RFC 9114 section 8.1.
pub(crate) struct MessageReceiver {
    stream: RecvStream,
    connection: Connection,
    reader: MessageReader,
    /// What has arrived and is not read yet.
    input: Bytes,
    /// Something has arrived.
    has_begun: bool,
    /// Nothing more will arrive, because the peer has ended the stream in order.
    is_ended: bool,
    is_over: bool,
}

impl MessageReceiver {
    /// A stream of which nothing has been read.
    pub(crate) fn new(
        stream: RecvStream,
        connection: &Connection,
        kind: MessageKind,
        max_field_section_size: u64,
        tables: &Tables,
    ) -> Self {
        let id = stream.id().to_wire();
        let reader = MessageReader::new(kind, max_field_section_size).with_tables(tables.clone(), id);
        let (connection, input) = (connection.clone(), Bytes::new());
        Self { stream, connection, reader, input, has_begun: false, is_ended: false, is_over: false }
    }

    /// Permits extended CONNECT (RFC 9220), which this end has announced.
    pub(crate) fn permit_extended_connect(&mut self) {
        self.reader.permit_extended_connect();
    }

    /// The next part, or `None` when the message is whole. Cancel safe.
    ///
    /// # Errors
    /// It will not become whole.
    pub(crate) async fn next(&mut self) -> Result<Option<Part>, ReceiveError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`Self::next`] for code that polls.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Part>, ReceiveError>> {
        loop {
            match self.reader.next(&mut self.input) {
                Ok(None) if self.is_over => return Poll::Ready(Ok(None)),
                Ok(None) => {}
                Ok(part) => return Poll::Ready(Ok(part)),
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
            if self.reader.is_blocked() {
                if self.reader.poll_unblocked(cx).is_ready() {
                    continue;
                }
                // One chunk is read behind a section that waits, so that a reset is seen, and no more than is bounded.
                if self.is_ended || !self.input.is_empty() {
                    return Poll::Pending;
                }
            } else if self.is_ended {
                return Poll::Ready(self.end());
            }
            match ready!(self.stream.poll_read_chunk(cx, READ_CHUNK)) {
                Ok(Some(data)) => {
                    self.has_begun = true;
                    self.input = data;
                }
                Ok(None) if self.reader.is_blocked() => self.is_ended = true,
                Ok(None) => return Poll::Ready(self.end()),
                Err(ReadError::Reset(code)) => {
                    self.is_over = true;
                    return Poll::Ready(Err(ReceiveError::Reset(Code(code))));
                }
                Err(ReadError::ConnectionLost(lost)) => return Poll::Ready(Err(lost.into())),
                // This end has stopped the stream: it wants no more.
                Err(ReadError::ClosedStream | ReadError::TooLong { .. }) => return Poll::Ready(Ok(None)),
            }
        }
    }

    /// The peer has ended the stream, and all of it has been read.
    fn end(&mut self) -> Result<Option<Part>, ReceiveError> {
        self.is_over = true;
        self.reader.end().map(|()| None).map_err(|error| self.fail(error))
    }

    /// Length of the content, if it is announced and there will be any.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.reader.announced()
    }

    /// Whether any byte of the message has been read.
    pub(crate) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Asks the peer to stop.
    pub(crate) fn stop(&mut self, code: Code) {
        if !self.is_over {
            self.is_over = true;
            self.stream.stop(code.value());
        }
    }

    /// Tells the peer what it did wrong.
    fn fail(&mut self, error: MessageError) -> ReceiveError {
        match error {
            MessageError::Connection(breach) => {
                self.connection.close(breach.code.value(), breach.reason.as_bytes());
            }
            _ => self.stop(error.code()),
        }
        error.into()
    }
}

impl Drop for MessageReceiver {
    fn drop(&mut self) {
        self.stop(match self.connection.side() {
            // A server that has answered needs nothing more of the request (RFC 9114 section 4.1).
            Side::Server => Code::H3_NO_ERROR,
            Side::Client => Code::H3_REQUEST_CANCELLED,
        });
    }
}
