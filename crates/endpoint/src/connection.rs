//! A connection's handle.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use posthaste_transport::{
    CloseReason, ConnectionHandle, ConnectionStats, Direction, Event, GroupToken, LocalError, Priority, Side,
    StreamId,
};
use posthaste_units::Rate;
use rustls::pki_types::CertificateDer;

use crate::clock;
use crate::connection_state::{Ended, Identity, Wait};
use crate::error::{ConnectionError, WriteError};
use crate::state::{Guard, Shared};
use crate::stream::{RecvStream, SendStream, write_all};
use crate::wait::wait;

/// A QUIC connection.
///
/// Clones share the connection, as do its streams. When the last of them is dropped, the connection is closed with
/// code 0: nobody could use it any more. To end it with a code of the application's, call [`close`](Self::close).
///
/// # Example
/// ```no_run
/// # async fn example(connection: posthaste_endpoint::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let (mut send, mut recv) = connection.open_bi().await?;
/// send.write_all(b"question").await?;
/// send.finish();
/// let answer = recv.read_to_end(1 << 20).await?;
/// println!("{} bytes after {:?}", answer.len(), connection.rtt());
/// connection.close(0, b"done");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Connection(pub(crate) Arc<ConnectionRef>);

/// What became of what a client has sent before the handshake was complete (0-RTT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyData {
    /// Nothing could be sent so; on a server, nothing of it came.
    None,
    /// The server has read it.
    Accepted,
    /// The server has dropped it, and all of it was sent again.
    Rejected,
}

/// What the clones of a connection and its streams share; with it the connection closes.
#[derive(Debug)]
pub(crate) struct ConnectionRef {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: ConnectionHandle,
    side: Side,
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        self.shared.lock().release_connection(clock::now(), self.handle);
    }
}

impl Connection {
    /// Takes over a reference that the state has counted.
    pub(crate) fn new(shared: Arc<Shared>, handle: ConnectionHandle) -> Self {
        let side = shared.lock().connection(handle).map_or(Side::Client, |state| state.side);
        Self(Arc::new(ConnectionRef { shared, handle, side }))
    }

    /// Opens a bidirectional stream, waiting until the peer permits another. The peer learns of it with the first
    /// data.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.open(Direction::Bidirectional).await.map(|id| self.both(id))
    }

    /// Opens a unidirectional stream, waiting until the peer permits another. The peer learns of it with the first
    /// data.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        self.open(Direction::Unidirectional).await.map(|id| self.sending(id))
    }

    /// Opens a bidirectional stream, writes all of `data` to it and ends this end's half: a whole request in one step, whose
    /// end travels with its last data. Waits until the peer permits another stream and until there is room. Dropped before
    /// all was written, the call resets the stream.
    ///
    /// # Errors
    /// The connection is over, or the peer has stopped the stream.
    ///
    /// # Example
    /// ```no_run
    /// # async fn example(connection: posthaste_endpoint::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// let (_, mut recv) = connection.open_bi_with("request".into()).await?;
    /// let response = recv.read_to_end(1 << 20).await?;
    /// println!("{} bytes", response.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_bi_with(&self, data: Bytes) -> Result<(SendStream, RecvStream), WriteError> {
        let send = self.open_with(Direction::Bidirectional, data).await?;
        let recv = self.receiving(send.id());
        Ok((send, recv))
    }

    /// Opens a unidirectional stream, writes all of `data` to it and ends it, as [`open_bi_with`](Self::open_bi_with) does.
    ///
    /// # Errors
    /// The connection is over, or the peer has stopped the stream.
    pub async fn open_uni_with(&self, data: Bytes) -> Result<SendStream, WriteError> {
        self.open_with(Direction::Unidirectional, data).await
    }

    /// Waits for a bidirectional stream that the peer opens. Streams come in the order of their numbers.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.accept(Direction::Bidirectional).await.map(|id| self.both(id))
    }

    /// Waits for a unidirectional stream that the peer opens. Streams come in the order of their numbers.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        self.accept(Direction::Unidirectional).await.map(|id| self.receiving(id))
    }

    /// [`open_bi`](Self::open_bi) for code that polls: the task of the last call is woken.
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_open(Direction::Bidirectional, cx).map_ok(|id| self.both(id))
    }

    /// [`open_uni`](Self::open_uni) for code that polls: the task of the last call is woken.
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        self.poll_open(Direction::Unidirectional, cx).map_ok(|id| self.sending(id))
    }

    /// [`accept_bi`](Self::accept_bi) for code that polls: the task of the last call is woken.
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_accept(Direction::Bidirectional, cx).map_ok(|id| self.both(id))
    }

    /// [`accept_uni`](Self::accept_uni) for code that polls: the task of the last call is woken.
    ///
    /// # Errors
    /// The connection is over.
    pub fn poll_accept_uni(&self, cx: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionError>> {
        self.poll_accept(Direction::Unidirectional, cx).map_ok(|id| self.receiving(id))
    }

    /// Ranks a stream that this end sends on, by its identifier: as [`SendStream::set_priority`], for whoever does not
    /// hold the stream. Does nothing if the stream or the connection is over.
    pub fn set_priority(&self, stream: StreamId, priority: Priority) {
        let mut guard = self.0.shared.lock();
        if let Ok(connection) = guard.live(self.0.handle) {
            // It fails only if the stream is over, and then its priority is of no account.
            let _ = connection.set_priority(stream, priority);
        }
    }

    /// Has the peer acknowledge a packet (PING, RFC 9000 section 10.1.2): a connection on which something is waited for does
    /// not end by its idle timeout, as long as the peer is there. Does nothing if the connection is over.
    pub fn ping(&self) {
        let mut guard = self.0.shared.lock();
        if let Ok(connection) = guard.live(self.0.handle) {
            connection.ping();
            guard.wake_driver();
        }
    }

    /// The link by which data arrive has this rate, as the link layer or an operator says, and the path this round-trip
    /// time (`None`: what is measured counts): no receive window is then less than what arrives in two round trips, up to
    /// 64 MiB and within the receive budget. A rate of zero takes it back. Does nothing if the connection is over.
    pub fn path_hint(&self, rate: Rate, round_trip: Option<std::time::Duration>) {
        let mut guard = self.0.shared.lock();
        if let Ok(connection) = guard.live(self.0.handle) {
            connection.path_hint(rate, round_trip.map(posthaste_units::Duration::from));
        }
    }

    /// Closes the connection with an application error code (below 2^62). Streams are abandoned: what the peer has
    /// not acknowledged may be lost, so wait for [`SendStream::acknowledged`] first where that matters. `reason` is
    /// for people; what does not fit into a packet of it is cut off. Does nothing if the connection is over.
    pub fn close(&self, error_code: u64, reason: &[u8]) {
        self.0.shared.lock().close(clock::now(), self.0.handle, error_code, reason);
    }

    /// Waits until the connection is over, and tells why.
    pub async fn closed(&self) -> CloseReason {
        let handle = self.0.handle;
        let closed = wait(
            &self.0.shared,
            |state| state.waiting(handle, Wait::Closed),
            |guard| reason(guard, handle).map_or(Poll::Pending, Poll::Ready),
        );
        closed.await
    }

    /// Waits until the handshake is complete, and tells what became of early data (0-RTT), if there were any.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn handshake(&self) -> Result<EarlyData, ConnectionError> {
        let handle = self.0.handle;
        let connected = wait(
            &self.0.shared,
            |state| state.waiting(handle, Wait::event(&Event::Connected)),
            |guard| match guard.connection(handle) {
                Some(state) => match &state.ended {
                    Some(ended) => Poll::Ready(Err(Ended::error(ended))),
                    None => state.early_data().map_or(Poll::Pending, |early| Poll::Ready(Ok(early))),
                },
                None => Poll::Ready(Err(guard.no_connection())),
            },
        );
        connected.await
    }

    /// On a client that asked for coordination ([`ClientConfig::group_size`](crate::ClientConfig)): the most connections
    /// that the server treats as one sender. `None` before the handshake is complete, and if the server forms no groups.
    pub fn group_limit(&self) -> Option<u64> {
        self.0.shared.lock().transport.connection(self.0.handle)?.group_limit()
    }

    /// On a client: the name of the group that the server has put the connection into; it comes with the server's first
    /// packets after the handshake. `None` if the server forms no groups, or none was asked for.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn group_token(&self) -> Result<Option<GroupToken>, ConnectionError> {
        self.handshake().await?;
        let handle = self.0.handle;
        let grouped = wait(
            &self.0.shared,
            |state| state.waiting(handle, Wait::event(&Event::Grouped)),
            |guard| match guard.live(handle) {
                Ok(connection) if connection.group_limit().is_none() => Poll::Ready(Ok(None)),
                Ok(connection) => {
                    connection.group_token().map_or(Poll::Pending, |token| Poll::Ready(Ok(Some(token))))
                }
                Err(error) => Poll::Ready(Err(error)),
            },
        );
        grouped.await
    }

    /// On a server: connections that are coordinated with this one, itself included; 1 outside groups.
    pub fn group_members(&self) -> usize {
        self.0.shared.lock().transport.group_members(self.0.handle)
    }

    /// On a client: has the server put this connection into the group of another one, whose [`Self::group_token`] this
    /// is. Nothing tells whether the server has done it: tokens that are not good are passed over.
    ///
    /// # Errors
    /// [`ConnectionError::Closed`] if the connection is over; [`ConnectionError::NotNow`] on a server, before the handshake
    /// is complete, or if the server forms no groups.
    pub fn join_group(&self, token: GroupToken) -> Result<(), ConnectionError> {
        let mut guard = self.0.shared.lock();
        let joined = guard.live(self.0.handle)?.join_group(token);
        guard.wake_driver();
        joined.map_err(|_| ConnectionError::NotNow)
    }

    /// What became of early data, or `None` until the handshake is complete.
    pub fn early_data(&self) -> Option<EarlyData> {
        self.0.shared.lock().connection(self.0.handle)?.early_data()
    }

    /// True if the handshake is complete and went on from an earlier session, without certificates.
    pub fn is_resumed(&self) -> bool {
        self.identity(posthaste_transport::Connection::is_resumed, |kept| kept.is_resumed).unwrap_or(false)
    }

    /// True until the handshake is complete. On a server that takes early data, all that has been read until then may
    /// be somebody's repetition of what the client once said (RFC 8446 section 8).
    pub fn is_handshaking(&self) -> bool {
        let guard = self.0.shared.lock();
        guard.connection(self.0.handle).is_some_and(|state| state.connected_at.is_none())
    }

    /// On a client: true while what is sent leaves before the handshake is complete.
    pub fn may_send_early(&self) -> bool {
        let guard = self.0.shared.lock();
        guard.transport.connection(self.0.handle).is_some_and(posthaste_transport::Connection::may_send_early)
    }

    /// On a server: gives the client a token with which it is known at its next connection, and in it, sealed, a
    /// payload of at most 64 bytes. One without a payload is given by itself.
    ///
    /// # Errors
    /// [`ConnectionError::Closed`] if the connection is over; [`ConnectionError::NotNow`] on a client, before the
    /// handshake is complete, for a longer payload, or while four tokens are on their way.
    pub fn offer_token(&self, payload: &[u8]) -> Result<(), ConnectionError> {
        let mut guard = self.0.shared.lock();
        let offered = guard.live(self.0.handle)?.offer_token(payload);
        guard.wake_driver();
        offered.map_err(|_| ConnectionError::NotNow)
    }

    /// On a server: the payload of the token by which the client was known; `None` if it showed none.
    pub fn token_payload(&self) -> Option<Vec<u8>> {
        let guard = self.0.shared.lock();
        Some(guard.transport.connection(self.0.handle)?.token_payload()?.to_vec())
    }

    /// Why the connection is over, or `None` if it is not.
    pub fn close_reason(&self) -> Option<CloseReason> {
        reason(&self.0.shared.lock(), self.0.handle)
    }

    /// The connection's statistics; the last ones if it is over.
    #[expect(clippy::missing_panics_doc, reason = "a handle keeps the statistics of its connection alive")]
    pub fn stats(&self) -> ConnectionStats {
        self.0.shared.lock().stats(self.0.handle).expect("a connection with a handle is known")
    }

    /// The smoothed round-trip time (RFC 9002 section 5.3); before the first sample, the one that is assumed.
    pub fn rtt(&self) -> std::time::Duration {
        self.stats().rtt.smoothed.into()
    }

    /// The peer's address.
    pub fn remote_address(&self) -> SocketAddr {
        let remote = self.identity(posthaste_transport::Connection::remote, |kept| kept.remote);
        let remote = remote.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0)));
        // Over an IPv6 socket, IPv4 peers have mapped addresses.
        SocketAddr::new(remote.ip().to_canonical(), remote.port())
    }

    /// The application protocol that both ends agreed on.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.identity(|live| live.alpn().map(<[u8]>::to_vec), |kept| kept.alpn.clone()).flatten()
    }

    /// The name by which the client asked for the server (SNI).
    pub fn server_name(&self) -> Option<String> {
        self.identity(|live| live.server_name().map(str::to_owned), |kept| kept.server_name.clone()).flatten()
    }

    /// The certificates that the peer presented, its own first.
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.identity(|live| live.peer_certificates().map(<[_]>::to_vec), |kept| kept.certificates.clone())
            .flatten()
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.0.side
    }

    /// From the first datagram to the complete handshake.
    pub fn handshake_time(&self) -> Option<std::time::Duration> {
        self.0.shared.lock().handshake_time(self.0.handle).map(Into::into)
    }

    /// A handle's number, unique among the connections of its endpoint and never used again: for logs.
    pub fn id(&self) -> ConnectionHandle {
        self.0.handle
    }

    /// Asks the live connection, or what is kept of one that is over.
    fn identity<T>(
        &self,
        live: impl FnOnce(&posthaste_transport::Connection) -> T,
        kept: impl FnOnce(&Identity) -> T,
    ) -> Option<T> {
        let guard = self.0.shared.lock();
        match guard.transport.connection(self.0.handle) {
            Some(connection) => Some(live(connection)),
            None => guard.connection(self.0.handle)?.identity.as_deref().map(kept),
        }
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        let handle = self.0.handle;
        let attempt = |guard: &mut Guard<'_>| try_open(guard, handle, direction);
        wait(&self.0.shared, |state| state.waiting(handle, Wait::Open(direction)), attempt).await
    }

    async fn open_with(&self, direction: Direction, mut data: Bytes) -> Result<SendStream, WriteError> {
        let handle = self.0.handle;
        let attempt = |guard: &mut Guard<'_>| {
            let id = ready!(try_open(guard, handle, direction))?;
            // An error is told by the rest of the writing, once there is a handle to be dropped.
            let chunks = std::slice::from_mut(&mut data);
            let is_done = write_all(guard, handle, id, chunks, true).unwrap_or(false);
            guard.wake_driver();
            Poll::Ready(Ok::<_, ConnectionError>((id, is_done)))
        };
        let opening = wait(&self.0.shared, |state| state.waiting(handle, Wait::Open(direction)), attempt);
        let (id, is_done) = opening.await?;
        let mut send = SendStream::opened(Arc::clone(&self.0), id, is_done);
        if !is_done {
            send.finish_with(data).await?;
        }
        Ok(send)
    }

    async fn accept(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        let handle = self.0.handle;
        let attempt = |guard: &mut Guard<'_>| try_accept(guard, handle, direction);
        wait(&self.0.shared, |state| state.waiting(handle, Wait::Accept(direction)), attempt).await
    }

    fn poll_open(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        let mut guard = self.0.shared.lock();
        let outcome = try_open(&mut guard, self.0.handle, direction);
        self.register(&mut guard, outcome.is_pending(), Wait::Open(direction), cx);
        outcome
    }

    fn poll_accept(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        let mut guard = self.0.shared.lock();
        let outcome = try_accept(&mut guard, self.0.handle, direction);
        self.register(&mut guard, outcome.is_pending(), Wait::Accept(direction), cx);
        outcome
    }

    fn register(&self, guard: &mut Guard<'_>, pending: bool, wait: Wait, cx: &mut Context<'_>) {
        if pending && let Some(set) = guard.waiting(self.0.handle, wait) {
            set.register_polled(cx.waker());
        }
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        (self.sending(id), self.receiving(id))
    }

    fn sending(&self, id: StreamId) -> SendStream {
        SendStream::new(Arc::clone(&self.0), id)
    }

    fn receiving(&self, id: StreamId) -> RecvStream {
        RecvStream::new(Arc::clone(&self.0), id)
    }
}

/// Halves that an end has of a stream.
fn halves(direction: Direction) -> u8 {
    match direction {
        Direction::Bidirectional => 2,
        Direction::Unidirectional => 1,
    }
}

fn reason(guard: &Guard<'_>, handle: ConnectionHandle) -> Option<CloseReason> {
    guard.connection(handle)?.ended.as_ref().map(Ended::reason)
}

/// Opens a stream; pending while the peer permits none.
fn try_open(
    guard: &mut Guard<'_>,
    handle: ConnectionHandle,
    direction: Direction,
) -> Poll<Result<StreamId, ConnectionError>> {
    let connection = guard.live(handle)?;
    match connection.open(direction) {
        Ok(id) => {
            guard.add_stream(handle, id, halves(direction));
            Poll::Ready(Ok(id))
        }
        Err(LocalError::StreamLimit | LocalError::TooEarly) => {
            // The peer may be told that more streams are wanted.
            guard.wake_driver();
            Poll::Pending
        }
        Err(_) => Poll::Ready(Err(guard.no_connection())),
    }
}

/// Takes the next stream that the peer has opened.
fn try_accept(
    guard: &mut Guard<'_>,
    handle: ConnectionHandle,
    direction: Direction,
) -> Poll<Result<StreamId, ConnectionError>> {
    let connection = guard.live(handle)?;
    match connection.accept(direction) {
        Some(id) => {
            guard.add_stream(handle, id, halves(direction));
            Poll::Ready(Ok(id))
        }
        None => Poll::Pending,
    }
}
