//! What the driver and all handles of an endpoint share, behind one lock.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;
use posthaste_transport::{
    CloseReason, ConnectionHandle, ConnectionStats, Event, Side, StreamEvent, StreamId,
};
use posthaste_units::{Duration, Time};

use crate::concurrency::{Mutex, MutexGuard};
use crate::connection_state::{ConnectionState, Ended, Wait};
use crate::error::ConnectionError;
use crate::socket::Socket;
use crate::wakers::WakerSet;

/// Connections that may wait to be accepted; beyond, new ones are not answered until one is taken.
const ACCEPT_BACKLOG: usize = 1024;

/// Bytes that may be read before the driver is told, so that it can renew the peer's credit.
const READ_BEFORE_WAKE: usize = 64 * 1024;

/// What the driver and the handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Replaced when the endpoint is rebound; the driver has its own hold of it.
    socket: Mutex<Arc<Socket>>,
}

impl Shared {
    pub(crate) fn new(transport: posthaste_transport::Endpoint, socket: Socket, accepting: bool) -> Self {
        Self { state: Mutex::new(State::new(transport, accepting)), socket: Mutex::new(Arc::new(socket)) }
    }

    /// The socket.
    pub(crate) fn socket(&self) -> Arc<Socket> {
        Arc::clone(&self.socket.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The socket is another from now on.
    pub(crate) fn set_socket(&self, socket: &Arc<Socket>) {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(socket);
    }

    /// Takes the lock; when the guard goes, the tasks that it collected are woken, after unlocking.
    pub(crate) fn lock(&self) -> Guard<'_> {
        // A panic under the lock ends the driver, which ends the connections; handles must still be able to see that.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { state, wakes: Wakes::default() }
    }
}

/// The locked state.
///
/// The order of the fields matters: the lock goes first, then the tasks are woken.
pub(crate) struct Guard<'a> {
    state: MutexGuard<'a, State>,
    pub(crate) wakes: Wakes,
}

impl Deref for Guard<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Guard<'_> {
    /// The state and the list of tasks to wake, to be used side by side.
    pub(crate) fn parts(&mut self) -> (&mut State, &mut Wakes) {
        (&mut self.state, &mut self.wakes)
    }

    /// Something may have to be sent: wakes the driver if it sleeps.
    pub(crate) fn wake_driver(&mut self) {
        self.state.unsent = true;
        if let Some(driver) = self.state.driver.take() {
            self.wakes.driver = Some(driver);
        }
    }

    /// `bytes` were read. `caught_up`: nothing more is there, so that the peer may wait for credit.
    pub(crate) fn note_read(&mut self, bytes: usize, caught_up: bool) {
        self.state.unreported_reads += bytes;
        if self.state.unreported_reads >= READ_BEFORE_WAKE || caught_up && self.state.unreported_reads > 0 {
            self.state.unreported_reads = 0;
            self.wake_driver();
        }
    }
}

/// Tasks to be woken when this is dropped.
#[derive(Default)]
pub(crate) struct Wakes {
    driver: Option<Waker>,
    pub(crate) tasks: Vec<Waker>,
}

impl Wakes {
    /// Apart from `drop`, because most locks wake nobody.
    #[inline(never)]
    fn wake(&mut self) {
        self.tasks.drain(..).for_each(Waker::wake);
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        if !self.tasks.is_empty() || self.driver.is_some() {
            self.wake();
        }
    }
}

/// The state of an endpoint.
pub(crate) struct State {
    pub(crate) transport: posthaste_transport::Endpoint,
    /// In boxes: the map's nodes have room for eleven, and are half empty.
    connections: BTreeMap<ConnectionHandle, Box<ConnectionState>>,
    /// Connections that wait to be accepted.
    backlog: VecDeque<ConnectionHandle>,
    /// Tasks that wait to accept one.
    pub(crate) acceptors: WakerSet,
    /// Tasks that wait until all is over.
    pub(crate) idlers: WakerSet,
    /// New connections are welcome.
    accepting: bool,
    /// Handles of the endpoint exist.
    held: bool,
    /// Connections that were accepted by the transport and whose handshakes are under way.
    handshaking: usize,
    /// Connections that are not over.
    open: usize,
    /// Something may have to be sent that is not with the system yet.
    pub(crate) unsent: bool,
    /// The socket that the driver is to go on with.
    pub(crate) rebound: Option<Arc<Socket>>,
    /// The driver's waker while it sleeps.
    pub(crate) driver: Option<Waker>,
    /// Bytes read since the driver was last told.
    unreported_reads: usize,
    /// The socket is broken or the driver is gone.
    failure: Option<Arc<io::Error>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("open", &self.open)
            .field("accepting", &self.accepting)
            .finish_non_exhaustive()
    }
}

impl State {
    fn new(transport: posthaste_transport::Endpoint, accepting: bool) -> Self {
        Self {
            transport,
            connections: BTreeMap::new(),
            backlog: VecDeque::new(),
            acceptors: WakerSet::default(),
            idlers: WakerSet::default(),
            accepting,
            held: true,
            handshaking: 0,
            open: 0,
            unsent: false,
            rebound: None,
            driver: None,
            unreported_reads: 0,
            failure: None,
        }
    }

    /// Connections that are not over.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// No connection is left, and all that had to be said is with the system.
    pub(crate) fn is_idle(&self) -> bool {
        self.failure.is_some() || self.open == 0 && !self.unsent
    }

    /// Nobody can use the endpoint any more and the transport has nothing left to do.
    pub(crate) fn is_abandoned(&self) -> bool {
        !self.held
            && self.transport.connections() == 0
            && !self.unsent
            && self.connections.values().all(|connection| connection.references == 0)
    }

    /// The driver has handed everything to the system and sleeps until `driver` is woken. The tasks that wait for
    /// that, if nothing is left to do, are moved to `wakes`.
    pub(crate) fn sleep_driver(&mut self, driver: &Waker, wakes: &mut Vec<Waker>) {
        self.unreported_reads = 0;
        crate::wakers::store(&mut self.driver, driver);
        if self.is_idle() {
            self.idlers.take(wakes);
        }
    }

    pub(crate) fn connection(&self, handle: ConnectionHandle) -> Option<&ConnectionState> {
        self.connections.get(&handle).map(|connection| &**connection)
    }

    pub(crate) fn connection_mut(&mut self, handle: ConnectionHandle) -> Option<&mut ConnectionState> {
        self.connections.get_mut(&handle).map(|connection| &mut **connection)
    }

    /// The tasks that wait for `wait` of a connection.
    pub(crate) fn waiting(&mut self, handle: ConnectionHandle, wait: Wait) -> Option<&mut WakerSet> {
        self.connections.get_mut(&handle).map(|connection| connection.waiting(wait))
    }

    /// Why a connection cannot be used, if so.
    pub(crate) fn error(&self, handle: ConnectionHandle) -> Option<ConnectionError> {
        match self.connections.get(&handle) {
            Some(connection) => connection.ended.as_ref().map(Ended::error),
            None => Some(self.no_connection()),
        }
    }

    /// The error of a connection that is not there, which can only be if everything has ended.
    pub(crate) fn no_connection(&self) -> ConnectionError {
        gone(self.failure.as_ref())
    }

    /// The live connection, or the error of one that is over.
    pub(crate) fn live(
        &mut self,
        handle: ConnectionHandle,
    ) -> Result<&mut posthaste_transport::Connection, ConnectionError> {
        if let Some(error) = self.error(handle) {
            return Err(error);
        }
        self.transport.connection_mut(handle).ok_or_else(|| gone(self.failure.as_ref()))
    }

    /// Connects; the new connection belongs to the caller.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        config: &posthaste_transport::ClientConfig,
        remote: std::net::SocketAddr,
        server_name: &str,
    ) -> Result<ConnectionHandle, ConnectionError> {
        if let Some(error) = &self.failure {
            return Err(ConnectionError::Socket(Arc::clone(error)));
        }
        let handle = self.transport.connect(now, config, remote, server_name)?;
        self.insert(now, handle, Side::Client);
        match self.connections.get_mut(&handle) {
            Some(connection) => connection.references += 1,
            None => return Err(self.no_connection()),
        }
        Ok(handle)
    }

    fn insert(&mut self, now: Time, handle: ConnectionHandle, side: Side) {
        if self.transport.connection(handle).is_none() {
            return;
        }
        self.connections.insert(handle, Box::new(ConnectionState::new(now, side)));
        self.open += 1;
    }

    /// The connections that are not over.
    pub(crate) fn open_handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.connections.iter().filter(|(_, state)| state.ended.is_none()).map(|(handle, _)| *handle)
    }

    /// Handles all events that the transport has. True if something has begun that applications will answer.
    pub(crate) fn drain_events(&mut self, now: Time, wakes: &mut Vec<Waker>) -> bool {
        let mut is_answer_due = false;
        while let Some((handle, event)) = self.transport.poll_event() {
            is_answer_due |= calls_for_answer(&event);
            match event {
                Event::Incoming => {
                    self.insert(now, handle, Side::Server);
                    self.handshaking += 1;
                }
                Event::EarlyDataAccepted => self.on_early(now, handle, true, wakes),
                Event::EarlyDataRejected => self.on_early(now, handle, false, wakes),
                Event::Connected => self.on_connected(now, handle, wakes),
                Event::Notice(notice) => {
                    tracing::warn!(?handle, policy = notice.policy, "{}", notice.text);
                }
                Event::Stream(event) => {
                    if let Some(connection) = self.connections.get_mut(&handle) {
                        connection.on_stream_event(event, wakes);
                    }
                }
                Event::Closed(reason) => self.end(handle, &Ended::Closed(reason), wakes),
                Event::Drained => self.on_drained(handle, wakes),
                event => {
                    if let Some(connection) = self.connections.get_mut(&handle) {
                        connection.wake(Wait::event(&event), wakes);
                    }
                }
            }
        }
        is_answer_due
    }

    fn on_connected(&mut self, now: Time, handle: ConnectionHandle, wakes: &mut Vec<Waker>) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.on_connected(now, wakes);
        self.offer(now, handle, wakes);
    }

    /// What a client has sent early is read by the server, or is not. A server can be at work on it before the
    /// handshake is complete.
    fn on_early(&mut self, now: Time, handle: ConnectionHandle, is_accepted: bool, wakes: &mut Vec<Waker>) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.is_early_accepted = Some(is_accepted);
        // Without early data there is nothing to read before the handshake is complete.
        if is_accepted {
            self.offer(now, handle, wakes);
        }
    }

    /// Puts a server's connection into the queue for `accept`, once.
    fn offer(&mut self, now: Time, handle: ConnectionHandle, wakes: &mut Vec<Waker>) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        if connection.side == Side::Client || std::mem::replace(&mut connection.is_offered, true) {
            return;
        }
        self.handshaking = self.handshaking.saturating_sub(1);
        if !self.held {
            // Nobody is left to accept it.
            self.close_connection(now, handle, 0, Bytes::new());
            return;
        }
        self.backlog.push_back(handle);
        if self.backlog.len() >= ACCEPT_BACKLOG {
            self.transport.set_accepting(false);
        }
        self.acceptors.take(wakes);
    }

    fn on_drained(&mut self, handle: ConnectionHandle, wakes: &mut Vec<Waker>) {
        self.end(handle, &Ended::Closed(CloseReason::Local { error_code: 0 }), wakes);
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.drained = true;
        if connection.references == 0 {
            self.connections.remove(&handle);
        }
    }

    /// Records that a connection is over, unless it is known to be.
    fn end(&mut self, handle: ConnectionHandle, ended: &Ended, wakes: &mut Vec<Waker>) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        if connection.ended.is_some() {
            return;
        }
        connection.end(ended.clone(), self.transport.connection(handle), wakes);
        self.open = self.open.saturating_sub(1);
        if connection.side == Side::Server && connection.references == 0 {
            if connection.is_offered {
                self.backlog.retain(|waiting| *waiting != handle);
                self.resume_accepting();
            } else {
                self.handshaking = self.handshaking.saturating_sub(1);
            }
            // `accept` may have to answer that none is left.
            self.acceptors.take(wakes);
        }
    }

    /// Everything is over: the socket is broken, or the driver is gone.
    pub(crate) fn fail(&mut self, error: io::Error, wakes: &mut Vec<Waker>) {
        if self.failure.is_some() {
            return;
        }
        let error = Arc::new(error);
        self.failure = Some(Arc::clone(&error));
        self.accepting = false;
        let handles: Vec<_> = self.connections.keys().copied().collect();
        for handle in handles {
            self.end(handle, &Ended::Socket(Arc::clone(&error)), wakes);
        }
        self.acceptors.take(wakes);
        self.idlers.take(wakes);
    }

    /// Closes a connection that is not over.
    fn close_connection(&mut self, now: Time, handle: ConnectionHandle, error_code: u64, reason: Bytes) {
        if self.connections.get(&handle).is_some_and(|connection| connection.ended.is_none())
            && let Some(connection) = self.transport.connection_mut(handle)
        {
            connection.close(now, error_code, reason);
        }
    }

    /// Takes no further connections.
    pub(crate) fn stop_accepting(&mut self, wakes: &mut Vec<Waker>) {
        self.accepting = false;
        self.transport.set_accepting(false);
        self.acceptors.take(wakes);
    }

    fn resume_accepting(&mut self) {
        if self.accepting && self.backlog.len() < ACCEPT_BACKLOG {
            self.transport.set_accepting(true);
        }
    }

    /// The next connection for `accept`: `None` if there will be none.
    pub(crate) fn next_accepted(&mut self) -> Poll<Option<ConnectionHandle>> {
        while let Some(handle) = self.backlog.pop_front() {
            self.resume_accepting();
            if let Some(connection) = self.connections.get_mut(&handle)
                && connection.ended.is_none()
            {
                connection.references += 1;
                return Poll::Ready(Some(handle));
            }
        }
        if self.accepting || self.handshaking > 0 && self.failure.is_none() {
            return Poll::Pending;
        }
        Poll::Ready(None)
    }
}

impl Guard<'_> {
    /// Closes one connection with an application error code.
    pub(crate) fn close(&mut self, now: Time, handle: ConnectionHandle, error_code: u64, reason: &[u8]) {
        let (state, wakes) = self.parts();
        state.close_connection(now, handle, error_code, Bytes::copy_from_slice(reason));
        state.drain_events(now, &mut wakes.tasks);
        self.wake_driver();
    }

    /// Closes all connections.
    pub(crate) fn close_all(&mut self, now: Time, error_code: u64, reason: &[u8]) {
        let (state, wakes) = self.parts();
        state.stop_accepting(&mut wakes.tasks);
        let reason = Bytes::copy_from_slice(reason);
        let handles: Vec<_> = state.connections.keys().copied().collect();
        for handle in handles {
            state.close_connection(now, handle, error_code, reason.clone());
        }
        state.drain_events(now, &mut wakes.tasks);
        self.wake_driver();
    }

    /// The last handle of the endpoint is gone: nobody can accept any more.
    pub(crate) fn release_endpoint(&mut self, now: Time) {
        let (state, wakes) = self.parts();
        state.held = false;
        state.stop_accepting(&mut wakes.tasks);
        for handle in std::mem::take(&mut state.backlog) {
            state.close_connection(now, handle, 0, Bytes::new());
        }
        state.drain_events(now, &mut wakes.tasks);
        self.wake_driver();
    }

    /// The last handle of a connection is gone: it is closed, as nobody can use it any more.
    pub(crate) fn release_connection(&mut self, now: Time, handle: ConnectionHandle) {
        let Some(connection) = self.connection_mut(handle) else { return };
        connection.references = connection.references.saturating_sub(1);
        if connection.references > 0 {
            return;
        }
        if connection.drained || self.failure.is_some() {
            self.connections.remove(&handle);
        } else {
            self.close(now, handle, 0, b"");
        }
        self.wake_driver();
    }

    /// Makes the record of a stream that the application gets.
    pub(crate) fn add_stream(&mut self, handle: ConnectionHandle, id: StreamId, halves: u8) {
        if let Some(connection) = self.connection_mut(handle) {
            connection.add_stream(id, halves);
        }
    }

    /// The statistics of a connection, the last ones if it is over.
    pub(crate) fn stats(&self, handle: ConnectionHandle) -> Option<ConnectionStats> {
        let live = self.transport.connection(handle).map(posthaste_transport::Connection::stats);
        live.or_else(|| Some(self.connection(handle)?.last_stats.as_deref().copied().unwrap_or_default()))
    }

    /// From the first Initial to the complete handshake.
    pub(crate) fn handshake_time(&self, handle: ConnectionHandle) -> Option<Duration> {
        let connection = self.connection(handle)?;
        Some(connection.connected_at?.since(connection.started))
    }
}

/// The error of a connection that is not there.
fn gone(failure: Option<&Arc<io::Error>>) -> ConnectionError {
    match failure {
        Some(error) => ConnectionError::Socket(Arc::clone(error)),
        None => ConnectionError::Closed(CloseReason::Local { error_code: 0 }),
    }
}

/// True if an event is the beginning of something, which applications answer at once: with a request, settings, a response.
fn calls_for_answer(event: &Event) -> bool {
    matches!(
        event,
        Event::Connected
            | Event::EarlyDataAccepted
            | Event::EarlyDataRejected
            | Event::Stream(StreamEvent::Opened { .. })
    )
}
