//! An HTTP/3 client: one connection an origin, shared by parallel requests.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use posthaste_endpoint::{
    ClientConfig, Connection, ConnectionStats, EarlyData, Endpoint, GroupToken, Rate, RebindError,
};
use tokio::time::{Instant, timeout};

use crate::service::Body;
use crate::uri::{Origin, resolve};

mod connect;
mod earlier;
mod error;
mod made;
mod ports;
mod response;
mod split;
mod upload;

pub use error::ClientError;
pub use made::MAX_ENDED_CONNECTIONS;
pub use response::Response;
pub use split::{ConnectionGains, Download, MAX_CONNECTIONS, Piece, Single, SplitOptions, SplitReport};

use connect::Live;
use earlier::{Earlier, MAX_ORIGINS};
use made::Connections;
use ports::Ports;

/// How often to look whether the network has changed, from Wi-Fi to cellular say. A download whose path has gone waits at
/// most so long, if nothing that the client was about to send finds out first; to look costs a look at the routes.
const LOOK_AT_NETWORK: Duration = Duration::from_millis(250);

/// Time that is spent on seeing closed connections off: enough for the datagrams that say so to leave.
const FAREWELL: Duration = Duration::from_millis(50);

/// What requests say unless the caller says otherwise. Responses are used as they come, so parallel ones are wanted
/// side by side (RFC 9218 section 4.2).
const DEFAULT_FIELDS: [(HeaderName, &str); 3] = [
    (header::USER_AGENT, concat!("posthaste/", env!("CARGO_PKG_VERSION"))),
    (header::ACCEPT, "*/*"),
    (HeaderName::from_static("priority"), "i"),
];

/// Settings of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Transport and TLS settings; the latter must offer [`crate::ALPN`].
    pub quic: ClientConfig,
    /// Time for name resolution and handshake together. Default 10 s.
    pub connect_timeout: Duration,
    /// Time from a request to the first byte of its response; while other responses of the connection arrive, one may
    /// wait for its turn. Default 30 s.
    pub first_byte_timeout: Duration,
    /// Time in which a response's next bytes, or another's of the connection, must arrive. Default 30 s.
    pub idle_timeout: Duration,
    /// Redirects that are followed for one request; with 0 a redirect is a response like any other. Default 10.
    pub max_redirects: usize,
    /// Size of a response's header section (RFC 9114 section 4.2.2), in bytes. Default 64 KiB.
    pub max_header_size: u64,
    /// The rate of the link by which responses arrive, and the round-trip time of its paths if that is known, for the
    /// receive windows of each connection ([`Connection::path_hint`](posthaste_endpoint::Connection::path_hint)). Default
    /// `None`.
    pub path_hint: Option<(Rate, Option<Duration>)>,
    /// What adaptive downloads have found out about numbers of connections, and go by. Default: what this client's have.
    pub connection_gains: Arc<ConnectionGains>,
}

impl ClientOptions {
    /// Default settings on these of QUIC's.
    pub fn new(quic: ClientConfig) -> Self {
        Self {
            quic,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            max_redirects: 10,
            max_header_size: 64 * 1024,
            path_hint: None,
            connection_gains: Arc::default(),
        }
    }
}

/// Fetches over HTTP/3. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

/// A connection's place in the pool: its origin, and its number (0, or that beside the first).
type Place = (Origin, usize);

type Pool = BTreeMap<Place, Arc<Slot>>;

struct Inner {
    options: ClientOptions,
    /// The sockets of each address family, made when they are first needed.
    v4: Ports,
    v6: Ports,
    /// The connections that are there for requests: one for each origin, and those beside it that downloads in parts use.
    pool: Mutex<Pool>,
    /// Where connections have stood before: there, early data may be sent.
    met: Mutex<BTreeMap<Origin, SocketAddr>>,
    /// What their servers said in their settings.
    earlier: Arc<Earlier>,
    /// For [`Client::connections`].
    made: Mutex<Connections>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A connection of an origin. Locked while it is being made, so that parallel requests wait for the same one.
#[derive(Default)]
struct Slot {
    attempts: std::sync::atomic::AtomicU64,
    state: tokio::sync::Mutex<SlotState>,
}

#[derive(Default)]
enum SlotState {
    #[default]
    Empty,
    Live(Arc<Live>),
    /// The attempt with this number failed: whoever waited for it gets its error.
    Failed(u64, ClientError),
}

/// A connection that a client has made.
#[derive(Debug, Clone)]
pub struct ConnectionReport {
    /// How many connections the client had made before it.
    pub index: usize,
    /// Whose it is.
    pub origin: Origin,
    /// The server's address.
    pub remote: SocketAddr,
    /// Time that the name took to resolve.
    pub resolution: Duration,
    /// Time of the handshake.
    pub handshake: Option<Duration>,
    /// Whether its handshake went on from an earlier connection's session.
    pub is_resumed: bool,
    /// What became of requests sent before the handshake was complete; `None` until it is.
    pub early_data: Option<EarlyData>,
    /// Whether a new request may go on it: it is open, and the server is not leaving (RFC 9114 section 5.2).
    pub takes_requests: bool,
    /// Its statistics so far.
    pub stats: ConnectionStats,
}

impl Client {
    /// A client; it opens sockets when they are needed.
    pub fn new(options: ClientOptions) -> Self {
        let inner = Inner {
            options,
            v4: Ports::default(),
            v6: Ports::default(),
            pool: Mutex::default(),
            met: Mutex::default(),
            earlier: Arc::default(),
            made: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Requests `uri` with GET and returns the response when its headers are here; follows redirects.
    ///
    /// # Errors
    /// If no response arrives. A response with an error status is a response.
    pub async fn get(&self, uri: &Uri) -> Result<Response, ClientError> {
        self.request(&Method::GET, uri, &HeaderMap::new()).await
    }

    /// Requests `uri` with HEAD; as [`Self::get`], without the body.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn head(&self, uri: &Uri) -> Result<Response, ClientError> {
        self.request(&Method::HEAD, uri, &HeaderMap::new()).await
    }

    /// Requests `uri` with a method that needs no body and with further header fields (RFC 9110: a range,
    /// preconditions); the fields are sent again where redirects lead.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn request(
        &self,
        method: &Method,
        uri: &Uri,
        fields: &HeaderMap,
    ) -> Result<Response, ClientError> {
        let started = Instant::now();
        let mut uri = uri.clone();
        for _ in 0..=self.inner.options.max_redirects {
            let response = self.send_once(method, &uri, fields, started).await?;
            if self.inner.options.max_redirects == 0 || !is_redirect(response.status()) {
                return Ok(response);
            }
            let Some(location) = response.headers().get(header::LOCATION) else { return Ok(response) };
            let location = String::from_utf8_lossy(location.as_bytes());
            let next = resolve(&uri, &location)
                .map_err(|source| ClientError::Redirect { from: uri.to_string(), source })?;
            tracing::debug!(from = %uri, to = %next, "redirected");
            uri = next;
        }
        Err(ClientError::TooManyRedirects { limit: self.inner.options.max_redirects })
    }

    /// Sends a request with a body, and returns the response when its headers are here. The body is sent as the server
    /// takes it, its trailers included, also while the response is read; dropping the response gives the rest of it up.
    ///
    /// The request waits for the handshake, and is sent once: a redirect is a response like any other, and a request that
    /// the server has not processed ([`ClientError::NotProcessed`]) is for the caller to repeat. If the length of the body
    /// is known, it is announced.
    ///
    /// # Errors
    /// If no response arrives; [`ClientError::Body`] if the body's source fails.
    ///
    /// # Example
    /// ```no_run
    /// # async fn example(client: posthaste_http::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let (feed, body) = posthaste_http::Body::channel();
    /// tokio::spawn(async move {
    ///     for line in ["one\n", "two\n"] {
    ///         feed.send(line).await?;
    ///     }
    ///     feed.finish().await
    /// });
    /// let response = client.send(http::Request::put("https://localhost/lines").body(body)?).await?;
    /// assert!(response.status().is_success());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, request: http::Request<Body>) -> Result<Response, ClientError> {
        let started = Instant::now();
        let live = self.connection(&(Origin::of(request.uri())?, 0)).await?;
        live.handshake().await?;
        let mut request = request;
        let length = http_body::Body::size_hint(request.body()).exact();
        let is_meant = |length: &u64| *length > 0 || !request.method().is_safe();
        if let Some(length) = length.filter(is_meant) {
            request.headers_mut().entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
        }
        Response::receive(live, complete(request), &self.inner.options, started).await
    }

    /// Sends one request. A connection that the server is leaving is replaced once: what it says about a request
    /// is then that it was not processed (RFC 9114 sections 5.2 and 4.1.1).
    async fn send_once(
        &self,
        method: &Method,
        uri: &Uri,
        fields: &HeaderMap,
        started: Instant,
    ) -> Result<Response, ClientError> {
        let place = (Origin::of(uri)?, 0);
        let mut may_retry = true;
        loop {
            let live = self.connection(&place).await?;
            if !method.is_safe() {
                // RFC 8470 section 4: what must not happen twice waits for the handshake.
                live.handshake().await?;
            }
            let is_early = live.quic().is_handshaking();
            let asked = ask(method, uri, fields);
            match Response::receive(live.clone(), asked, &self.inner.options, started).await {
                Ok(response) if response.status() == StatusCode::TOO_EARLY && is_early => {
                    // RFC 8470 section 5.2; then it is not early any more.
                    drop(response);
                    live.handshake().await?;
                }
                Err(ClientError::NotProcessed { .. }) if may_retry => {
                    live.leave();
                    may_retry = false;
                }
                other => return other,
            }
        }
    }

    /// The origin's connection; makes it if there is none that can be used.
    async fn connection(&self, place: &Place) -> Result<Arc<Live>, ClientError> {
        match self.usable(place) {
            Some(live) => Ok(live),
            // Rare, and much larger than all that a request needs: in a box it is no part of every request.
            None => Box::pin(self.pooled(place, connect::connect(&self.inner, &place.0))).await,
        }
    }

    /// The connection at a place of the pool, if it can be used and nobody is making it anew.
    fn usable(&self, place: &Place) -> Option<Arc<Live>> {
        let pool = lock(&self.inner.pool);
        match &*pool.get(place)?.state.try_lock().ok()? {
            SlotState::Live(live) if live.is_usable() => Some(Arc::clone(live)),
            _ => None,
        }
    }

    /// The origin's connection number `leg` (from 1 on) beside the `first`; made, if need be, to the same address, and
    /// put into the group of so many connections.
    async fn beside(
        &self,
        first: &Live,
        leg: usize,
        group: Option<(usize, GroupToken)>,
    ) -> Result<Arc<Live>, ClientError> {
        let address = first.quic().remote_address();
        let making = connect::beside(&self.inner, first.origin(), address, group);
        self.pooled(&(first.origin().clone(), leg), making).await
    }

    /// The connection at a place of the pool, or the one that `making` makes.
    async fn pooled(
        &self,
        place: &Place,
        making: impl Future<Output = Result<Live, ClientError>>,
    ) -> Result<Arc<Live>, ClientError> {
        use std::sync::atomic::Ordering;

        let slot = {
            let mut pool = lock(&self.inner.pool);
            let known = pool.get(place).map(Arc::clone);
            known.unwrap_or_else(|| Arc::clone(pool.entry(place.clone()).or_default()))
        };
        let attempts_before = slot.attempts.load(Ordering::Relaxed);
        // Mostly nobody is making the connection.
        let mut state = match slot.state.try_lock() {
            Ok(state) => state,
            Err(_) => slot.state.lock().await,
        };
        match &*state {
            SlotState::Live(live) if live.is_usable() => return Ok(Arc::clone(live)),
            SlotState::Live(over) => {
                let remote = over.quic().remote_address();
                *state = SlotState::Empty;
                self.inner.ports(remote).leave();
                // What is held of connections that are over keeps their sockets open.
                let ended = lock(&self.inner.made).let_go();
                drop(ended);
            }
            SlotState::Failed(attempt, error) if *attempt > attempts_before => return Err(error.clone()),
            _ => {}
        }
        let attempt = slot.attempts.load(Ordering::Relaxed) + 1;
        let result = making.await.map(|live| self.inner.take_up(live));
        slot.attempts.store(attempt, Ordering::Relaxed);
        match &result {
            Ok(live) => *state = SlotState::Live(Arc::clone(live)),
            Err(error) => *state = SlotState::Failed(attempt, error.clone()),
        }
        result
    }

    /// Closes the connections that are there; later requests make new ones. Those go on from the sessions of these, and
    /// if the TLS configuration enables early data, requests with safe methods leave with their first packets.
    pub fn hang_up(&self) {
        let slots = std::mem::take(&mut *lock(&self.inner.pool));
        for live in lock(&self.inner.made).open() {
            live.close();
        }
        drop(slots);
    }

    /// Closes the connection with this [`ConnectionReport::index`], if it is open. Requests in progress on it fail;
    /// downloads in parts go on over the others.
    pub fn hang_up_one(&self, index: usize) {
        if let Some(live) = lock(&self.inner.made).open().find(|live| live.index == index) {
            live.close();
        }
    }

    /// Moves all connections to servers of `local`'s family of addresses to a new socket that is bound to `local`
    /// (port 0 for any); see [`Endpoint::rebind`]. Requests in progress go on. Of itself a client does so when the
    /// network changes.
    ///
    /// # Errors
    /// As [`Endpoint::rebind`]; nothing has changed then.
    pub fn rebind(&self, local: SocketAddr) -> Result<(), RebindError> {
        self.inner.ports(local).rebind(local)
    }

    /// The connections that are open, and at least the last [`MAX_ENDED_CONNECTIONS`] that are over, in the order in which
    /// they were made. A connection's place in this list is its [`ConnectionReport::index`] until earlier ones have gone.
    pub fn connections(&self) -> Vec<ConnectionReport> {
        lock(&self.inner.made).reports()
    }

    /// Closes all connections, and gives the word of it a moment to leave.
    pub async fn close(&self) {
        for live in lock(&self.inner.made).open() {
            live.close();
        }
        let all = [&self.inner.v4, &self.inner.v6].into_iter().flat_map(Ports::all);
        let all = all.map(|endpoint| async move { endpoint.wait_idle().await });
        // Whoever is not gone by then drains in silence.
        let _ = timeout(FAREWELL, futures::future::join_all(all)).await;
    }
}

impl Inner {
    /// A connection to the origin stands here.
    fn remember(&self, origin: &Origin, address: SocketAddr) {
        let mut met = lock(&self.met);
        if met.len() >= MAX_ORIGINS {
            met.pop_first();
        }
        met.insert(origin.clone(), address);
    }

    /// Makes a connection one of the client's, and lets go of those that are over when there are many.
    fn take_up(&self, live: Live) -> Arc<Live> {
        let mut made = lock(&self.made);
        let live = made.add(live);
        if !made.is_look_due() {
            return live;
        }
        // The pool, too, holds connections that are over, of origins that are not asked any more. A slot that others hold
        // is in use: nobody gets at one without the pool's lock.
        let mut pool = lock(&self.pool);
        let is_over = |state: &SlotState| !matches!(state, SlotState::Live(live) if live.is_usable());
        let mut unused = Vec::new();
        pool.retain(|_, slot| {
            let goes =
                Arc::strong_count(slot) == 1 && slot.state.try_lock().is_ok_and(|state| is_over(&state));
            unused.extend(goes.then(|| Arc::clone(slot)));
            !goes
        });
        drop(pool);
        let ended = made.let_go();
        drop(made);
        drop((unused, ended));
        live
    }

    /// The sockets for this family of addresses.
    fn ports(&self, address: SocketAddr) -> &Ports {
        if address.is_ipv4() { &self.v4 } else { &self.v6 }
    }

    /// The endpoint for new connections to this address.
    fn endpoint(&self, remote: SocketAddr) -> Result<Endpoint, ClientError> {
        let any: IpAddr =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        self.ports(remote).present(any)
    }
}

/// A request without a body.
fn ask(method: &Method, uri: &Uri, fields: &HeaderMap) -> http::Request<Body> {
    let mut request = http::Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.clone();
    request.headers_mut().clone_from(fields);
    complete(request)
}

/// The same request with the fields that all requests have, unless it has its own.
fn complete(mut request: http::Request<Body>) -> http::Request<Body> {
    /// Most requests have no others, and a copy costs less than to look each of them up.
    static ALONE: LazyLock<HeaderMap> = LazyLock::new(|| {
        DEFAULT_FIELDS.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    });
    if request.headers().is_empty() {
        request.headers_mut().clone_from(&ALONE);
        return request;
    }
    for (name, value) in DEFAULT_FIELDS {
        request.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    request
}

/// Redirects that name where the same thing is (RFC 9110 section 15.4); the others need a choice.
fn is_redirect(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}

/// The data behind these locks is whole after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    fn report(&self) -> ConnectionReport {
        let quic: &Connection = self.quic();
        ConnectionReport {
            index: self.index,
            origin: self.origin().clone(),
            remote: quic.remote_address(),
            resolution: self.resolution(),
            handshake: quic.handshake_time(),
            is_resumed: quic.is_resumed(),
            early_data: quic.early_data(),
            takes_requests: self.is_usable(),
            stats: quic.stats(),
        }
    }
}
