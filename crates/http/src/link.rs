//! The part of an HTTP/3 connection that is no message: both ends' control streams and QPACK streams.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use posthaste_endpoint::{
    Connection, ConnectionError, Priority, ReadError, RecvStream, SendStream, WriteError,
};
use posthaste_http3::qpack::{Tables, Takes};
use posthaste_http3::{
    Code, DECODER_TABLE, Error, Event, MAX_BLOCKED_STREAMS, MAX_UNIDIRECTIONAL_STREAMS, Next, Peer, Role,
    Settings, UniStream, encode,
};

/// Most bytes taken from a stream at once.
const READ_CHUNK: usize = 16 * 1024;

/// A control stream goes before all messages: what it says is short and often about them.
const CONTROL_PRIORITY: Priority = Priority { urgency: 0, incremental: false };

/// Why a link is over.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LinkError {
    /// The connection is over.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
    /// The peer broke the protocol, and the connection was closed for it.
    #[error(transparent)]
    Broken(#[from] Error),
}

type Opening = Pin<Box<dyn Future<Output = Result<SendStream, ConnectionError>> + Send>>;

/// State of one of this end's critical streams.
enum Stream {
    /// Nothing is to be sent yet.
    Idle,
    /// Waits until the peer permits it.
    Opening(Opening),
    /// It must stay open.
    Open(SendStream),
}

/// One of this end's critical streams, which opens when there is something to send on it.
struct Outgoing {
    stream: Stream,
    /// What waits to be written, and what of it is being written.
    queued: BytesMut,
    writing: Bytes,
    /// Its end is waited for.
    is_watched: bool,
}

impl Outgoing {
    /// A stream that begins with these bytes.
    fn new(first: &Bytes) -> Self {
        let (queued, writing) = (first.as_ref().into(), Bytes::new());
        Self { stream: Stream::Idle, queued, writing, is_watched: false }
    }

    /// What tells of the stream's end, the first time that it is found open: a peer may stop it while there is nothing to
    /// write.
    fn watch(&mut self) -> Option<Waiting> {
        let Stream::Open(stream) = &self.stream else { return None };
        if std::mem::replace(&mut self.is_watched, true) {
            return None;
        }
        let ended = stream.stopped();
        Some(Box::pin(async move { Came::Ended(ended.await) }))
    }

    /// True if all that was to be sent is with the transport.
    fn is_written(&self) -> bool {
        self.queued.is_empty() && self.writing.is_empty()
    }

    /// Opens the stream and writes to it, as far as that goes now.
    fn poll(&mut self, connection: &Connection, cx: &mut Context<'_>) -> Result<(), LinkError> {
        if matches!(self.stream, Stream::Idle) {
            let opener = connection.clone();
            self.stream = Stream::Opening(Box::pin(async move { opener.open_uni().await }));
        }
        if let Stream::Opening(opening) = &mut self.stream {
            let Poll::Ready(opened) = opening.as_mut().poll(cx) else { return Ok(()) };
            let mut stream = opened?;
            stream.set_priority(CONTROL_PRIORITY);
            self.stream = Stream::Open(stream);
        }
        let Stream::Open(stream) = &mut self.stream else { return Ok(()) };
        loop {
            if self.writing.is_empty() {
                if self.queued.is_empty() {
                    break;
                }
                self.writing = self.queued.split().freeze();
            }
            match stream.poll_write_bytes(cx, &mut self.writing) {
                Poll::Pending => break,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(WriteError::ConnectionLost(lost))) => return Err(lost.into()),
                Poll::Ready(Err(WriteError::Stopped(_) | WriteError::ClosedStream)) => {
                    Peer::on_control_stopped()?;
                }
            }
        }
        Ok(())
    }

    /// True if it takes more: nothing that it was given before is left.
    fn takes(&self) -> bool {
        matches!(self.stream, Stream::Idle) || self.is_written()
    }

    /// As [`Self::poll`], for a QPACK stream that gets further `instructions`; it opens with the first of them.
    fn poll_instructions(
        &mut self,
        connection: &Connection,
        cx: &mut Context<'_>,
        instructions: &[u8],
    ) -> Result<(), LinkError> {
        let is_silent = self.takes() && instructions.is_empty();
        self.queued.extend_from_slice(instructions);
        if is_silent { Ok(()) } else { self.poll(connection, cx) }
    }
}

/// What a link waits for, which is polled only when it is woken.
type Waiting = Pin<Box<dyn Future<Output = Came> + Send>>;

/// What has come.
enum Came {
    /// Data, or the end, of one of the peer's unidirectional streams.
    Read(RecvStream, UniStream, Result<Option<Bytes>, ReadError>),
    /// What became of one of this end's critical streams.
    Ended(Result<Option<u64>, WriteError>),
}

/// The settings that are the same for all connections: the dynamic table that this end keeps for its peer. They are
/// constants, so a server that accepts early data repeats those that the client relied on.
pub(crate) fn settings() -> Settings {
    // spec: rfc9204 3.2.3 early-maximum-repeated
    Settings {
        qpack_max_table_capacity: DECODER_TABLE,
        qpack_blocked_streams: MAX_BLOCKED_STREAMS,
        ..Settings::default()
    }
}

/// Drives the control streams of one connection. Dropped, it closes the connection: a control stream must not end
/// before that (RFC 9114 section 6.2.1).
pub(crate) struct Link {
    connection: Connection,
    role: Role,
    peer: Peer,
    tables: Tables,
    control: Outgoing,
    encoder: Outgoing,
    decoder: Outgoing,
    /// What the tables know of the encoder stream.
    is_encoder_writable: bool,
    /// A message is about to be sent.
    is_sending: bool,
    /// A read on each of the peer's unidirectional streams, and the ends of those of this end that are `watched`.
    waiting: FuturesUnordered<Waiting>,
    watched: usize,
    events: VecDeque<Event>,
}

impl Link {
    /// A link on a fresh connection; nothing happens before [`Self::poll_event`] is called.
    pub(crate) fn new(connection: Connection, role: Role, settings: &Settings) -> Self {
        // spec: rfc9114 6.2.1 one-control-stream, 7.2.4.2 settings-wait-for-nothing, 7.2.4.2 settings-at-once
        // A different reserved setting for each peer.
        let reserved = connection.remote_address().port();
        let control = Outgoing::new(&encode::control_stream(settings, Some(reserved.into())));
        // spec: rfc9204 4.2 one-of-each, 4.2 not-closed
        let (encoder, decoder) =
            (Outgoing::new(&encode::encoder_stream()), Outgoing::new(&encode::decoder_stream()));
        let (waiting, events) = (FuturesUnordered::new(), VecDeque::new());
        let tables = Tables::new(role, settings);
        let peer = Peer::with_tables(role, tables.clone());
        let (is_encoder_writable, is_sending, watched) = (false, false, 0);
        Self {
            connection,
            role,
            peer,
            tables,
            control,
            encoder,
            decoder,
            is_encoder_writable,
            is_sending,
            waiting,
            watched,
            events,
        }
    }

    /// The dynamic tables of the connection.
    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Announces that requests on `stream` and later ones will not be processed (RFC 9114 section 5.2).
    pub(crate) fn go_away(&mut self, stream: u64) {
        self.control.queued.extend_from_slice(&encode::go_away(stream));
    }

    /// A message is about to be sent: what the next [`Self::poll_event`] sends can go into its packet.
    pub(crate) fn send_with_message(&mut self) {
        self.is_sending = true;
    }

    /// Waits until this end's settings are on their way.
    ///
    /// # Errors
    /// As [`Self::poll_event`].
    pub(crate) async fn ready(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| match self.control.poll(&self.connection, cx) {
            Err(error) => Poll::Ready(Err(self.end_for(error))),
            Ok(()) if self.control.is_written() => Poll::Ready(Ok(())),
            Ok(()) => Poll::Pending,
        })
        .await
    }

    /// What the peer has said, as it comes. Cancel safe.
    ///
    /// # Errors
    /// The connection is over, or the peer broke the protocol and the connection is now closed.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, LinkError>> {
        self.poll_all(cx).map_err(|error| self.end_for(error))
    }

    /// Closes the connection for what the peer has said.
    pub(crate) fn fail(&self, error: Error) -> LinkError {
        self.end_for(error.into())
    }

    /// Closes the connection if the peer broke the protocol.
    fn end_for(&self, error: LinkError) -> LinkError {
        if let LinkError::Broken(breach) = &error {
            self.connection.close(breach.code.value(), breach.reason.as_bytes());
        }
        error
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, LinkError>> {
        self.control.poll(&self.connection, cx)?;
        self.watch();
        if self.role == Role::Client && self.connection.poll_accept_bi(cx)?.is_ready() {
            Peer::on_server_request()?;
        }
        loop {
            if let Some(event) = self.events.pop_front() {
                return Poll::Ready(Ok(event));
            }
            // Those that have come are read before they are judged: their types may be there.
            let most = MAX_UNIDIRECTIONAL_STREAMS + self.watched;
            while self.waiting.len() <= most
                && let Poll::Ready(accepted) = self.connection.poll_accept_uni(cx)
            {
                self.waiting.push(read(accepted?, UniStream::default()));
            }
            match self.waiting.poll_next_unpin(cx) {
                Poll::Ready(Some(Came::Read(stream, state, data))) => self.on_read(stream, state, data)?,
                Poll::Ready(Some(Came::Ended(Ok(Some(_))))) => Peer::on_control_stopped()?,
                // The connection is over, as whatever is done with it next will tell.
                Poll::Ready(Some(Came::Ended(_))) => {}
                Poll::Pending if self.waiting.len() > most => {
                    let reason = "too many unidirectional streams";
                    return Poll::Ready(Err(Error { code: Code::H3_EXCESSIVE_LOAD, reason }.into()));
                }
                Poll::Ready(None) | Poll::Pending => {
                    // What has been read may call for instructions, and their streams open with the first.
                    self.poll_qpack(cx)?;
                    if !self.watch() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Waits for the ends of this end's streams that have opened, too; true if any has, which is then to be polled.
    fn watch(&mut self) -> bool {
        let Self { control, encoder, decoder, waiting, .. } = self;
        let before = self.watched;
        for ended in [control, encoder, decoder].into_iter().filter_map(Outgoing::watch) {
            waiting.push(ended);
            self.watched += 1;
        }
        self.watched > before
    }

    /// Sends the QPACK instructions that are due, and has this woken for later ones.
    fn poll_qpack(&mut self, cx: &mut Context<'_>) -> Result<(), LinkError> {
        let Self { connection, tables, encoder, decoder, is_sending, .. } = self;
        let is_sending = std::mem::take(is_sending);
        let takes = Takes { encoder: encoder.takes(), decoder: decoder.takes(), is_sending };
        let due = tables.due(cx.waker(), takes)?;
        encoder.poll_instructions(connection, cx, &due.encoder)?;
        decoder.poll_instructions(connection, cx, &due.decoder)?;
        let is_writable = matches!(encoder.stream, Stream::Open(_)) && encoder.is_written();
        if is_writable != self.is_encoder_writable {
            self.is_encoder_writable = is_writable;
            tables.set_encoder_writable(is_writable);
        }
        Ok(())
    }

    /// Judges what came of one of the peer's streams, and reads on if it is of interest.
    fn on_read(
        &mut self,
        mut stream: RecvStream,
        mut state: UniStream,
        data: Result<Option<Bytes>, ReadError>,
    ) -> Result<(), LinkError> {
        match data {
            Ok(Some(data)) => {
                let events = &mut self.events;
                match self.peer.on_data(&mut state, data, |event| events.push_back(event))? {
                    // spec: rfc9114 6.2.1 not-stopped
                    Next::Read => self.waiting.push(read(stream, state)),
                    // spec: rfc9114 6.2 unknown-type-not-read, 9 unknown-streams-not-read
                    Next::Stop(code) => stream.stop(code.value()),
                }
            }
            Err(ReadError::ConnectionLost(lost)) => return Err(lost.into()),
            Ok(None) | Err(_) => self.peer.on_end(&state)?,
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // spec: rfc9114 6.2.1 not-closed
        self.connection.close(Code::H3_NO_ERROR.value(), b"");
    }
}

fn read(mut stream: RecvStream, state: UniStream) -> Waiting {
    Box::pin(async move {
        let data = stream.read_chunk(READ_CHUNK).await;
        Came::Read(stream, state, data)
    })
}
