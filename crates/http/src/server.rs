//! An HTTP/3 server: a task per connection, a task per request.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use posthaste_endpoint::{Connection, Endpoint, RecvStream, SendStream};
use posthaste_http3::{Code, Event, Role, Settings};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::handler::Handler;
use crate::link::Link;

mod exchange;
mod visitor;

use visitor::{Request, Visitor};

pub use exchange::{AccessLog, AccessRecord, Outcome};

/// The ALPN protocol of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

/// Requests that a client may abandon before they are readable, on one connection; more is an attack.
const MAX_ABANDONED_REQUESTS: usize = 1000;

/// How long the connections may take to say goodbye once the server has closed them.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a server bounds what its clients may ask of it.
#[derive(Clone)]
pub struct ServerOptions {
    /// Connections served at once; a further one is closed with `H3_EXCESSIVE_LOAD`. Default 10,000.
    pub max_connections: usize,
    /// Requests served at once over all connections; further ones wait. Default 4096.
    pub max_requests: usize,
    /// Size of a request's header section (RFC 9114 section 4.2.2), in bytes. Default 32 KiB.
    pub max_header_size: u64,
    /// Time that a request's headers may take to arrive. Default 10 s.
    pub header_timeout: Duration,
    /// Time in which a client must take the next 64 KiB of its responses; while it takes others, one may wait for its
    /// turn. Default 60 s.
    pub stall_timeout: Duration,
    /// Time that requests in progress are given to end once the server stops. Default 10 s.
    pub grace: Duration,
    /// Told of each request when it is over. Default none.
    pub access_log: Option<Arc<dyn AccessLog>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_connections: 10_000,
            max_requests: 4096,
            max_header_size: 32 * 1024,
            header_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            access_log: None,
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

/// How a server came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Connections that were cut off because their requests were not over in time.
    pub cut_off: usize,
}

/// What the tasks of a server share.
struct Shared {
    handler: Arc<dyn Handler>,
    options: ServerOptions,
    requests: Semaphore,
}

/// Serves HTTP/3 on `endpoint` until `stop` resolves, and then ends in order: no new connections, GOAWAY on the
/// open ones (RFC 9114 section 5.2), the requests in progress finish within [`ServerOptions::grace`].
///
/// Dropping the future ends at once, without a word to the clients.
pub async fn serve(
    endpoint: Endpoint,
    handler: Arc<dyn Handler>,
    options: ServerOptions,
    stop: impl Future<Output = ()>,
) -> Ended {
    let requests = Semaphore::new(options.max_requests.min(Semaphore::MAX_PERMITS));
    let shared = Arc::new(Shared { handler, options, requests });
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = endpoint.accept() => match accepted {
                Some(quic) if connections.len() >= shared.options.max_connections => {
                    quic.close(Code::H3_EXCESSIVE_LOAD.value(), b"too many connections");
                }
                Some(quic) => {
                    connections.spawn(connection(Arc::clone(&shared), quic, stopped.clone()));
                }
                None => break,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    endpoint.stop_accepting();
    stopping.send_replace(true);
    let all_over = async { while connections.join_next().await.is_some() {} };
    let cut_off = match timeout(shared.options.grace, all_over).await {
        Ok(()) => 0,
        Err(_) => connections.len(),
    };
    endpoint.close(Code::H3_NO_ERROR.value(), b"the server has stopped");
    connections.abort_all();
    if timeout(FAREWELL, endpoint.wait_idle()).await.is_err() {
        tracing::debug!("some connections were still closing when the server ended");
    }
    Ended { cut_off }
}

/// Serves one connection to its end.
async fn connection(shared: Arc<Shared>, quic: Connection, mut stopped: watch::Receiver<bool>) {
    let client = quic.remote_address();
    let settings = Settings { max_field_section_size: shared.options.max_header_size, ..Settings::default() };
    let mut link = Link::new(quic.clone(), Role::Server, &settings);
    let visitor = Arc::new(Visitor::new(quic.clone()));
    let mut requests = JoinSet::new();
    let mut abandoned = 0;
    // The stream of the first request that has not come.
    let mut next_stream = 0;
    let mut stopping = false;
    while !(stopping && requests.is_empty()) {
        tokio::select! {
            // New requests last: a priority that came before its request is known by then, and no flood of requests
            // keeps the rest from being seen.
            biased;
            event = poll_fn(|cx| link.poll_event(cx)) => match event {
                Ok(Event::PriorityUpdate { stream, priority }) => visitor.update_priority(stream, priority),
                // A client that takes no more pushes never got any, and its settings bind encoders with a table.
                Ok(Event::GoAway(_) | Event::Settings(_)) => {}
                Err(reason) => {
                    tracing::debug!(%client, %reason, "connection ended");
                    break;
                }
            },
            Some(over) = requests.join_next() => {
                abandoned += usize::from(matches!(over, Ok(exchange::Served::Abandoned)));
                if abandoned > MAX_ABANDONED_REQUESTS {
                    quic.close(Code::H3_EXCESSIVE_LOAD.value(), b"too many requests given up");
                    break;
                }
            }
            _ = stopped.changed(), if !stopping => {
                stopping = true;
                link.go_away(next_stream);
            }
            accepted = quic.accept_bi() => match accepted {
                Ok((send, recv)) if stopping => reject(send, recv),
                Ok((send, recv)) => {
                    next_stream = send.id().to_wire() + 4;
                    let request = Request::arrived(Arc::clone(&visitor), send, recv, &shared.options);
                    requests.spawn(exchange::run(Arc::clone(&shared), request));
                }
                Err(reason) => {
                    tracing::debug!(%client, %reason, "connection ended");
                    break;
                }
            },
        }
    }
    // Their streams are answered, or lost with the connection; either way the tasks come to their end.
    while requests.join_next().await.is_some() {}
}

/// The client did not know of the end yet: it may ask again elsewhere (RFC 9114 section 5.2).
fn reject(mut send: SendStream, mut recv: RecvStream) {
    send.reset(Code::H3_REQUEST_REJECTED.value());
    recv.stop(Code::H3_REQUEST_REJECTED.value());
}
