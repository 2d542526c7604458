//! An HTTP/3 server: a task per connection, a task per request.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use h3::error::Code;
use posthaste_endpoint::{Connection, Endpoint};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::handler::Handler;
use crate::quic_adapter::{Payload, QuicConnection};

mod exchange;

pub use exchange::{AccessLog, AccessRecord, Outcome};

/// The ALPN protocol of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

/// Requests that a client may abandon before they are readable, on one connection; more is an attack.
const MAX_ABANDONED_REQUESTS: usize = 1000;

/// How long the connections may take to say goodbye once the server has closed them.
const FAREWELL: Duration = Duration::from_secs(1);

/// h3's view of a server's connection.
type H3Connection = h3::server::Connection<QuicConnection, Payload>;

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
    /// Time in which a client must take the next 64 KiB of a response. Default 60 s.
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
    let mut builder = h3::server::builder();
    builder.max_field_section_size(shared.options.max_header_size);
    let mut h3: H3Connection = match builder.build(QuicConnection::new(quic)).await {
        Ok(h3) => h3,
        Err(error) => return tracing::debug!(%client, %error, "no HTTP/3 connection"),
    };
    let mut requests = JoinSet::new();
    let mut abandoned = 0;
    let mut stopping = false;
    while !(stopping && requests.is_empty()) {
        tokio::select! {
            accepted = h3.accept() => match accepted {
                Ok(Some(resolver)) => {
                    requests.spawn(exchange::run(Arc::clone(&shared), client, resolver));
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%client, %error, "connection ended");
                    break;
                }
            },
            Some(over) = requests.join_next() => {
                abandoned += usize::from(matches!(over, Ok(exchange::Served::Abandoned)));
                if abandoned > MAX_ABANDONED_REQUESTS {
                    h3.inner.close_connection(Code::H3_EXCESSIVE_LOAD, "too many requests given up".to_owned());
                    break;
                }
            }
            _ = stopped.changed(), if !stopping => {
                stopping = true;
                go_away(&mut h3, client).await;
            }
        }
    }
    // Their streams are answered, or lost with the connection; either way the tasks come to their end.
    while requests.join_next().await.is_some() {}
}

/// Says that no further request will be answered. h3 sends the ID of the last request that it accepted plus as
/// many requests as it is told: one, for the frame names the first that is *not* answered (RFC 9114 section 5.2).
async fn go_away(h3: &mut H3Connection, client: SocketAddr) {
    if let Err(error) = h3.shutdown(1).await {
        tracing::debug!(%client, %error, "cannot announce the end");
    }
}
