//! The endpoint: a socket and the connections over it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::task::Poll;

use posthaste_transport::{ClientConfig, EndpointStats, ServerConfig};

use crate::clock;
use crate::concurrency;
use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::ConnectionError;
use crate::socket::{Socket, SocketStats};
use crate::state::Shared;
use crate::wait::wait;
use crate::workers::{self, Seat, Worker};

/// A UDP socket and the QUIC connections over it: those made with [`connect`](Self::connect), and at a server those
/// got from [`accept`](Self::accept).
///
/// Clones share the endpoint. It runs on a task of the tokio runtime that it was made in, and goes on for as long as
/// there are handles of it or of its connections. When the last handle of the endpoint itself is dropped, it takes
/// no new connections and closes those that nobody has accepted.
///
/// # Example
/// ```no_run
/// # async fn example(config: posthaste_endpoint::ServerConfig) -> std::io::Result<()> {
/// use posthaste_endpoint::Endpoint;
///
/// let endpoint = Endpoint::server("0.0.0.0:4433".parse().unwrap(), config)?;
/// while let Some(connection) = endpoint.accept().await {
///     tokio::spawn(async move {
///         while let Ok((mut send, mut recv)) = connection.accept_bi().await {
///             let request = recv.read_to_end(64 * 1024).await;
///             if let Ok(request) = request {
///                 let _ = send.write_bytes(request.into()).await;
///             }
///         }
///     });
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Endpoint(pub(crate) Arc<EndpointRef>);

/// The one thing that all clones of an endpoint share; with it goes the right to accept.
#[derive(Debug)]
pub(crate) struct EndpointRef {
    pub(crate) shared: Arc<Shared>,
    /// It was made to accept connections.
    pub(crate) is_server: bool,
}

impl Drop for EndpointRef {
    fn drop(&mut self) {
        self.shared.lock().release_endpoint(clock::now());
    }
}

impl Endpoint {
    /// An endpoint that only makes connections, bound to `local` (port 0 for any).
    ///
    /// Bound to `[::]`, it reaches IPv4 addresses too where the system permits that.
    ///
    /// # Errors
    /// The socket cannot be bound, or there is no tokio runtime around the call.
    pub fn client(local: SocketAddr) -> io::Result<Self> {
        Self::run(Socket::bind(local)?, None, Seat::alone())
    }

    /// An endpoint that accepts connections, bound to `local` (port 0 for any); it can make connections too.
    ///
    /// # Errors
    /// The socket cannot be bound, or there is no tokio runtime around the call.
    pub fn server(local: SocketAddr, config: ServerConfig) -> io::Result<Self> {
        Self::run(Socket::bind(local)?, Some(config), Seat::alone())
    }

    /// The same on a UDP socket that is bound already: one that a service manager has opened, or with options of its own.
    ///
    /// # Errors
    /// It is no UDP socket over IP, or is not bound, or is connected to one peer; or there is no tokio runtime around the
    /// call.
    pub fn server_on(socket: UdpSocket, config: ServerConfig) -> io::Result<Self> {
        Self::run(Socket::adopt(socket, false)?, Some(config), Seat::alone())
    }

    /// Prepares `count` endpoints that share the address `local` (port 0 for any), so that a server uses as many cores. Each
    /// is to be started in a runtime of its own, best on a thread of its own, and served there. A connection belongs to one
    /// endpoint, also after its client has moved to another address.
    ///
    /// All have `config`: stores of sessions, path histories and budgets are shared, what it bounds by number each endpoint
    /// counts for itself. Connections of one client are coordinated as a group only if they meet the same endpoint. A
    /// stateless reset that a client sends ends a connection only if it happens to meet its endpoint; others end by their
    /// idle timeout.
    ///
    /// # Errors
    /// The address cannot be bound; or `count` is above 1 and the system is not Linux.
    ///
    /// # Example
    /// ```no_run
    /// # fn example(config: posthaste_endpoint::ServerConfig) -> std::io::Result<()> {
    /// use posthaste_endpoint::Endpoint;
    ///
    /// let count = 4.try_into().unwrap();
    /// for worker in Endpoint::workers("0.0.0.0:443".parse().unwrap(), count, config)? {
    ///     std::thread::spawn(move || {
    ///         let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    ///         runtime.block_on(async {
    ///             let endpoint = worker.start()?;
    ///             while let Some(connection) = endpoint.accept().await {
    ///                 tokio::spawn(async move { connection.closed().await });
    ///             }
    ///             std::io::Result::Ok(())
    ///         })
    ///     });
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn workers(local: SocketAddr, count: NonZeroU16, config: ServerConfig) -> io::Result<Vec<Worker>> {
        workers::prepare(local, count, config)
    }

    pub(crate) fn of_worker(worker: Worker) -> io::Result<Self> {
        let Worker { socket, config, seat } = worker;
        Self::run(Socket::adopt(socket, seat.is_shared())?, Some(config), seat)
    }

    fn run(socket: Socket, mut server: Option<ServerConfig>, seat: Seat) -> io::Result<Self> {
        if let Some(config) = server.as_mut().filter(|config| config.clock_offset.is_zero()) {
            config.clock_offset = clock::offset();
        }
        let accepting = server.is_some();
        let transport = posthaste_transport::Endpoint::new(random_bytes()?, server);
        let shared = Arc::new(Shared::new(transport, socket, accepting));
        concurrency::spawn(Driver::new(Arc::clone(&shared), seat));
        Ok(Self(Arc::new(EndpointRef { shared, is_server: accepting })))
    }

    /// Connects to `remote` and waits until the handshake is complete: the server is authenticated for
    /// `server_name`. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// [`ConnectionError::Connect`] if the name or the configuration is unusable,
    /// [`ConnectionError::UnusableAddress`] if the address is, [`ConnectionError::Closed`] if the attempt failed
    /// (TLS, refused, nobody answered within the idle timeout).
    pub async fn connect(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectionError> {
        let connection = self.begin(config, remote, server_name)?;
        connection.handshake().await?;
        Ok(connection)
    }

    /// The same, but returns at once if the server was met before and permits early data (0-RTT): what is sent until
    /// [`Connection::handshake`] is over leaves with the first packets. **Whoever is on the path can make the server
    /// read it again**: send nothing that must not happen twice (RFC 8446 section 8). If the server does not take it,
    /// it is sent again; nothing need be done.
    ///
    /// The configuration must enable early data ([`tls::client_with_early_data`](crate::tls::client_with_early_data)).
    /// [`Connection::may_send_early`] tells whether it came to that; if not, the handshake is over.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_early(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectionError> {
        let connection = self.begin(config, remote, server_name)?;
        if !connection.may_send_early() {
            connection.handshake().await?;
        }
        Ok(connection)
    }

    fn begin(
        &self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connection, ConnectionError> {
        let shared = &self.0.shared;
        let reachable = shared.socket().reachable(remote).ok_or(ConnectionError::UnusableAddress(remote))?;
        let mut config = config.clone();
        if config.clock_offset.is_zero() {
            config.clock_offset = clock::offset();
        }
        let connection = {
            let mut guard = shared.lock();
            let handle = guard.connect(clock::now(), &config, reachable, server_name)?;
            guard.wake_driver();
            handle
        };
        // From here on, dropping the future drops the connection, which closes it.
        Ok(Connection::new(Arc::clone(shared), connection))
    }

    /// The next connection whose handshake is complete. Where the TLS configuration permits early data, also one that has
    /// sent such: until its [`Connection::handshake`] is over, all that it has said may be somebody's repetition.
    ///
    /// `None` once the endpoint takes no more connections and none
    /// is left; at once for an endpoint made with [`client`](Self::client).
    ///
    /// Up to 1,024 connections wait to be accepted; beyond, new ones are not answered until there is room.
    pub async fn accept(&self) -> Option<Connection> {
        let shared = &self.0.shared;
        let accepted = wait(shared, |state| Some(&mut state.acceptors), |guard| guard.next_accepted());
        accepted.await.map(|handle| Connection::new(Arc::clone(shared), handle))
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// What the system reported.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.0.shared.socket().local_addr())
    }

    /// Counters of the transport: what was accepted, and what was dropped before it reached a connection.
    pub fn stats(&self) -> EndpointStats {
        self.0.shared.lock().transport.stats()
    }

    /// Counters of the socket.
    pub fn socket_stats(&self) -> SocketStats {
        self.0.shared.socket().stats()
    }

    /// Connections that are not over, those in their handshakes included.
    pub fn open_connections(&self) -> usize {
        self.0.shared.lock().open()
    }

    /// Binds the TLS sessions of a server to what the application has promised its clients, beyond the transport's own
    /// parameters: HTTP/3's settings, say. Sessions issued under one promise resume under no other, so that early data
    /// which rely on it are rejected once it has changed; the client makes a full handshake (RFC 9114 section 7.2.4.2).
    ///
    /// Connections from now on are bound; call this before clients connect. Any number of bytes: a hash is kept. Empty,
    /// the default, binds to nothing.
    pub fn set_early_data_context(&self, promised: &[u8]) {
        self.0.shared.lock().transport.set_early_data_context(promised);
    }

    /// Takes no new connections. Those that are there, and handshakes under way, go on.
    ///
    /// A graceful end of a server: `stop_accepting`, let the streams finish, then [`wait_idle`](Self::wait_idle)
    /// with a deadline, then [`close`](Self::close) what is left.
    pub fn stop_accepting(&self) {
        let mut guard = self.0.shared.lock();
        let (state, wakes) = guard.parts();
        state.stop_accepting(&mut wakes.tasks);
    }

    /// Takes no new connections and closes all that are there with this application error code. `reason` is for
    /// people; what does not fit into a packet of it is cut off.
    pub fn close(&self, error_code: u64, reason: &[u8]) {
        self.0.shared.lock().close_all(clock::now(), error_code, reason);
    }

    /// Waits until no connection is open and all that had to be said, closes above all, is with the system. A
    /// process may end then: peers are told; only if that datagram is lost must they find out by their timeouts.
    pub async fn wait_idle(&self) {
        let idle = wait(
            &self.0.shared,
            |state| Some(&mut state.idlers),
            |guard| if guard.is_idle() { Poll::Ready(()) } else { Poll::Pending },
        );
        idle.await;
    }
}

/// Random bytes of the operating system.
pub(crate) fn random_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes)
}
