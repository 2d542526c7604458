//! An HTTP/3 server: a task per connection, a task per request.

use std::convert::Infallible;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_endpoint::{Connection, Endpoint};
use posthaste_http3::{Code, Settings};
use posthaste_service::{Alternative, Connections};
use tokio::time::timeout;
use tower_service::Service;

use crate::link;
use crate::service::{AccessLog, AnyService, Ended, Request, erase};

mod budget;
mod connection;
mod connections;
mod date;
mod early;
mod exchange;
mod incoming;
mod outgoing;
mod ranking;
mod slots;
mod visitor;

pub use crate::service::Early;
pub use budget::Budget;

/// The ALPN protocol of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

/// How long the connections may take to say goodbye once the server has closed them.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a server bounds what its clients may ask of it.
#[derive(Clone)]
pub struct ServerOptions {
    /// Connections served at once; a further one is closed with `H3_EXCESSIVE_LOAD`. Default 10,000.
    pub max_connections: usize,
    /// Requests worked on at once over all connections; further ones wait. A request whose response waits for its client
    /// does not count. Default 4096.
    pub max_requests: usize,
    /// Of these, requests of one client, which is an IPv4 address or the /64 of an IPv6 address. Default 1024.
    pub max_requests_per_client: usize,
    /// Responses that wait for their clients. Where one more would, the one that has waited longest is reset with
    /// `H3_EXCESSIVE_LOAD`, if that was 5 s or more, or as soon as it is. At least 1, default 4096.
    pub max_stalled: usize,
    /// Size of a request's header section (RFC 9114 section 4.2.2), in bytes. Default 32 KiB.
    pub max_header_size: u64,
    /// Time that a request's headers may take to arrive. Default 10 s.
    pub header_timeout: Duration,
    /// Time in which a client must take the next 64 KiB of its responses, or send the next bytes of a request's body that
    /// its service waits for; while others of its messages move, one may wait for its turn. Default 60 s.
    pub stall_timeout: Duration,
    /// Time that requests in progress are given to end once the server stops, and clients to read what they have
    /// acknowledged. Default 10 s.
    pub grace: Duration,
    /// How often a client is asked whether it is still there while a request of it is open (PING): a response may be silent
    /// for longer than QUIC's idle timeout. A client that is gone is noticed by that timeout, and one that takes nothing by
    /// [`Self::stall_timeout`]. Must be shorter than the idle timeout of both ends. Default 10 s.
    pub keep_alive: Duration,
    /// How long clients may remember that an origin at the endpoint's own port speaks HTTP/3: its responses say so in
    /// `Alt-Svc` (RFC 7838), in whole seconds, unless the service sets that field. Chromium sends no more than six requests
    /// at a time to an origin that has not said it. `None`: nothing is said. Default a day.
    pub alt_svc: Option<Duration>,
    /// Offers changes of protocol to the service ([`Upgrade`](posthaste_service::Upgrade)) by extended CONNECT (RFC 9220), which
    /// clients are told of. To be set only if the service agrees to some. Default no.
    pub upgrades: bool,
    /// Ranks responses by their media types for a client that has ranked none of its requests (RFC 9218): documents, styles
    /// and scripts before data, these before images, media and downloads. Default no.
    pub rank_by_type: bool,
    /// Told of each request when it is over. Default none.
    pub access_log: Option<Arc<dyn AccessLog>>,
    /// Told of each connection when it begins and when it is over. Default none.
    pub connection_log: Option<Arc<dyn ConnectionLog>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_requests: 4096,
            max_requests_per_client: 1024,
            max_stalled: 4096,
            max_header_size: 32 * 1024,
            header_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            keep_alive: Duration::from_secs(10),
            alt_svc: Some(Duration::from_secs(24 * 60 * 60)),
            upgrades: false,
            rank_by_type: false,
            access_log: None,
            connection_log: None,
        }
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("max_connections", &self.max_connections)
            .field("max_requests", &self.max_requests)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// Is told of each connection that a server serves, and of its end.
pub trait ConnectionLog: Send + Sync {
    /// A connection was accepted. An observer that keeps it must drop it when it is [`closed`](Self::closed).
    fn opened(&self, connection: &Connection);

    /// The server has finished with it: its [`stats`](Connection::stats) are the last ones.
    fn closed(&self, connection: &Connection);
}

impl ServerOptions {
    /// What clients are told of these limits.
    fn settings(&self) -> Settings {
        Settings {
            max_field_section_size: self.max_header_size,
            enable_connect_protocol: self.upgrades,
            ..link::settings()
        }
    }
}

/// What the tasks of a server share.
struct Shared {
    options: ServerOptions,
    date: date::Date,
    budget: Budget,
    alternative: Option<Alternative>,
}

/// Serves HTTP/3 on `endpoint`: each request goes to a clone of `service`. Await the result to run the server; set
/// [`Serve::options`] and [`Serve::until`] before.
///
/// # Bodies
/// A request's body goes to the service as it comes, trailers included; the response's body leaves as the service makes
/// it. Both ways the receiver sets the pace:
/// - Data that the service does not read stays with the client. What the server holds for one request is at most the
///   stream's receive window (by the profile of the endpoint's configuration) and 96 KiB that are on their way to the
///   service.
/// - The service's response is asked for its next frame when the transport has taken the one before:
///   `TransportConfig::unsent_limit` bytes of a stream wait there at most.
/// - Of a body that the service drops, at most 64 KiB are read and thrown away. The client is asked to stop sending the
///   rest when the response is complete.
///
/// # Failures
/// - A request's body that does not come whole ends with a [`BodyError`](crate::BodyError). If the client broke the
///   protocol, no response is sent, and the stream is reset with the code for that.
/// - A client that gives a request up, by asking the server to stop its response or by closing the connection, ends the
///   service's work: its future, or the response's body, is dropped.
/// - A service that panics before it has answered makes a response with status 500; a response's body that fails or panics
///   resets the stream with `H3_INTERNAL_ERROR`. The connection goes on.
///
/// # Example
/// ```no_run
/// # async fn example(config: posthaste_endpoint::ServerConfig) -> std::io::Result<()> {
/// use posthaste_endpoint::Endpoint;
/// use posthaste_http::{Request, serve, service_fn};
///
/// let endpoint = Endpoint::server("0.0.0.0:443".parse().unwrap(), config)?;
/// let echo = service_fn(|request: Request| async { http::Response::new(request.into_body()) });
/// serve(endpoint, echo).await;
/// # Ok(())
/// # }
/// ```
pub fn serve<S, B>(endpoint: Endpoint, service: S) -> Serve
where
    S: Service<Request, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Serve {
        endpoint,
        service: erase(service),
        options: ServerOptions::default(),
        budget: None,
        stop: Box::pin(std::future::pending()),
        cut: Box::pin(std::future::pending()),
    }
}

/// A server that is ready to run: see [`serve`].
#[must_use = "a server runs when it is awaited"]
pub struct Serve {
    endpoint: Endpoint,
    service: Box<dyn AnyService>,
    options: ServerOptions,
    budget: Option<Budget>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Serve {
    /// Sets the server's limits.
    pub fn options(mut self, options: ServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Shares the bounds on connections and requests with all servers that get a clone of `budget`, in place of those of
    /// [`Self::options`].
    pub fn within(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Serves until `stop` resolves, and then ends in order: no new connections, GOAWAY on the open ones (RFC 9114
    /// section 5.2), the requests in progress finish within [`ServerOptions::grace`]. As long lives a connection whose
    /// client has acknowledged a response's last byte, and may not have read it: an end of the connection would take it
    /// away. A client that needs nothing more closes its connection when it is told of the end.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// Once the server stops, ends the grace early when `cut` resolves: connections are closed, requests cut off.
    pub fn cut(mut self, cut: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cut = Box::pin(cut);
        self
    }

    /// Runs the server. Dropping the future ends it at once, without a word to the clients.
    pub async fn run(self) -> Ended {
        let Self { endpoint, service, options, budget, mut stop, cut } = self;
        // Requests that come early rely on the settings of an earlier connection.
        // spec: rfc9114 7.2.4.2 unsure-refuses-early, 7.2.4.2 early-not-reduced
        endpoint.set_early_data_context(&options.settings().payload(None));
        let budget = budget.unwrap_or_else(|| Budget::new(&options));
        let port = endpoint.local_addr().ok().map(|address| address.port());
        let alternative = port.zip(options.alt_svc).map(|(port, max_age)| Alternative::new(port, max_age));
        let shared = Arc::new(Shared { options, date: date::Date::default(), budget, alternative });
        let mut connections = Connections::default();
        loop {
            tokio::select! {
                () = &mut stop => break,
                accepted = endpoint.accept() => match accepted {
                    Some(quic) => {
                        let Some(admitted) = shared.budget.admit() else {
                            quic.close(Code::H3_EXCESSIVE_LOAD.value(), b"too many connections");
                            continue;
                        };
                        let shared = Arc::clone(&shared);
                        let service = service.another();
                        let phases = connections.phases();
                        connections.serve(async move {
                            let cut_off = connection::serve(shared, service, quic, phases).await;
                            drop(admitted);
                            cut_off
                        });
                    }
                    None => break,
                },
                Some(()) = connections.ended() => {}
            }
        }
        endpoint.stop_accepting();
        let ended = connections.end(shared.options.grace, cut).await;
        endpoint.close(Code::H3_NO_ERROR.value(), connection::STOPPED);
        if timeout(FAREWELL, endpoint.wait_idle()).await.is_err() {
            tracing::debug!("some connections were still closing when the server ended");
        }
        ended
    }
}

impl IntoFuture for Serve {
    type Output = Ended;
    type IntoFuture = Pin<Box<dyn Future<Output = Ended> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl std::fmt::Debug for Serve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve").field("options", &self.options).finish_non_exhaustive()
    }
}
