//! The part of an HTTP/3 connection that is no message: both ends' control streams and the peer's QPACK streams.

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
use posthaste_http3::{
    Code, Error, Event, MAX_UNIDIRECTIONAL_STREAMS, Next, Peer, Role, Settings, UniStream, encode,
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
type Stopped = Pin<Box<dyn Future<Output = Result<Option<u64>, WriteError>> + Send>>;

/// This end's control stream.
enum Control {
    /// Waits until the peer permits it.
    Opening(Opening),
    /// It must stay open; the future resolves if the peer stops it.
    Open(SendStream, Stopped),
}

/// A read that is under way on one of the peer's unidirectional streams.
type Reading =
    Pin<Box<dyn Future<Output = (RecvStream, UniStream, Result<Option<Bytes>, ReadError>)> + Send>>;

/// Drives the control streams of one connection. Dropped, it closes the connection: a control stream must not end
/// before that (RFC 9114 section 6.2.1).
pub(crate) struct Link {
    connection: Connection,
    role: Role,
    peer: Peer,
    control: Control,
    /// What waits to be written to the control stream, and what of it is being written.
    queued: BytesMut,
    writing: Bytes,
    readings: FuturesUnordered<Reading>,
    events: VecDeque<Event>,
}

impl Link {
    /// A link on a fresh connection; nothing happens before [`Self::poll_event`] is called.
    pub(crate) fn new(connection: Connection, role: Role, settings: &Settings) -> Self {
        let opener = connection.clone();
        // spec: rfc9114 6.2.1 one-control-stream, 7.2.4.2 settings-wait-for-nothing, 7.2.4.2 settings-at-once
        let control = Control::Opening(Box::pin(async move { opener.open_uni().await }));
        // A different reserved setting for each peer.
        let reserved = connection.remote_address().port();
        let queued = encode::control_stream(settings, Some(reserved.into())).as_ref().into();
        let (readings, events) = (FuturesUnordered::new(), VecDeque::new());
        let peer = Peer::new(role);
        Self { connection, role, peer, control, queued, writing: Bytes::new(), readings, events }
    }

    /// Announces that requests on `stream` and later ones will not be processed (RFC 9114 section 5.2).
    pub(crate) fn go_away(&mut self, stream: u64) {
        self.queued.extend_from_slice(&encode::go_away(stream));
    }

    /// Waits until this end's settings are on their way.
    ///
    /// # Errors
    /// As [`Self::poll_event`].
    pub(crate) async fn ready(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| match self.poll_control(cx) {
            Err(error) => Poll::Ready(Err(self.end_for(error))),
            Ok(()) if self.queued.is_empty() && self.writing.is_empty() => Poll::Ready(Ok(())),
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
        self.poll_control(cx)?;
        if self.role == Role::Client && self.connection.poll_accept_bi(cx)?.is_ready() {
            Peer::on_server_request()?;
        }
        loop {
            if let Some(event) = self.events.pop_front() {
                return Poll::Ready(Ok(event));
            }
            // Those that have come are read before they are judged: their types may be there.
            while self.readings.len() <= MAX_UNIDIRECTIONAL_STREAMS
                && let Poll::Ready(accepted) = self.connection.poll_accept_uni(cx)
            {
                self.readings.push(read(accepted?, UniStream::default()));
            }
            match self.readings.poll_next_unpin(cx) {
                Poll::Ready(Some((stream, state, data))) => self.on_read(stream, state, data)?,
                Poll::Pending if self.readings.len() > MAX_UNIDIRECTIONAL_STREAMS => {
                    let reason = "too many unidirectional streams";
                    return Poll::Ready(Err(Error { code: Code::H3_EXCESSIVE_LOAD, reason }.into()));
                }
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Opens the control stream and writes to it, as far as that goes now.
    fn poll_control(&mut self, cx: &mut Context<'_>) -> Result<(), LinkError> {
        if let Control::Opening(opening) = &mut self.control {
            let Poll::Ready(opened) = opening.as_mut().poll(cx) else { return Ok(()) };
            let mut stream = opened?;
            stream.set_priority(CONTROL_PRIORITY);
            let stopped = Box::pin(stream.stopped());
            self.control = Control::Open(stream, stopped);
        }
        let Control::Open(stream, stopped) = &mut self.control else { return Ok(()) };
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
        if let Poll::Ready(Ok(Some(_))) = stopped.as_mut().poll(cx) {
            Peer::on_control_stopped()?;
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
                    Next::Read => self.readings.push(read(stream, state)),
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

fn read(mut stream: RecvStream, state: UniStream) -> Reading {
    Box::pin(async move {
        let data = stream.read_chunk(READ_CHUNK).await;
        (stream, state, data)
    })
}
