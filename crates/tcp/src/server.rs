//! The server: a task per connection.

use std::convert::Infallible;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header};
use posthaste_service::{AnyService, Ended, Request, erase};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tower_service::Service;

use crate::accept::accept;
use crate::clients::Clients;
use crate::connection::{self, Phase};
use crate::options::TcpOptions;

/// How long connections may take to end once the server's time is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// The port of an `https` URI that names none.
const HTTPS: u16 = 443;

/// What the tasks of a server share.
pub(crate) struct Shared {
    pub(crate) options: TcpOptions,
    pub(crate) tls: TlsAcceptor,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) alternative: Option<Alternative>,
}

/// That an origin's own port speaks HTTP/3 over UDP.
pub(crate) struct Alternative {
    port: u16,
    field: HeaderValue,
}

impl Alternative {
    fn new(listener: &TcpListener, max_age: Duration) -> Option<Self> {
        let port = listener.local_addr().ok()?.port();
        let field = format!("h3=\":{port}\"; ma={}", max_age.as_secs());
        Some(Self { port, field: HeaderValue::try_from(field).ok()? })
    }

    /// Adds the field unless the service has said something else. Where a client came to another port, an address was
    /// translated on the way, and the port seen here is not the one to come back to.
    pub(crate) fn tell(&self, origin: &Uri, fields: &mut HeaderMap) {
        if origin.port_u16().unwrap_or(HTTPS) == self.port {
            fields.entry(header::ALT_SVC).or_insert_with(|| self.field.clone());
        }
    }
}

/// Serves HTTP/1.1 and HTTP/2 over TLS on `listener`: each request goes to a clone of `service`. Await the result to run
/// the server; set [`Serve::options`] and [`Serve::until`] before. `tls` should offer [`ALPN`](crate::ALPN); clients that
/// choose nothing get HTTP/1.1.
///
/// # Bodies
/// They stream as with `posthaste_http::serve`: what a service does not read stays with the client, and a response's body
/// is asked for its next frame when there is room for it. Trailers of HTTP/1.1 responses need a `trailer` field.
///
/// # Failures
/// - A request's body that does not come whole ends with a [`BodyError`](posthaste_service::BodyError).
/// - A client that gives a request up ends the service's work: its future, or the response's body, is dropped.
/// - A service that panics makes a response with status 500; a response's body that fails resets the stream, or ends the
///   connection of HTTP/1.1 without the end of the message. (HTTP/1.0 has no way to tell, if the length is unknown.)
pub fn serve<S, B>(listener: TcpListener, tls: Arc<ServerConfig>, service: S) -> Serve
where
    S: Service<Request, Response = http::Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Serve {
        listener,
        tls: tls.into(),
        service: erase(service),
        options: TcpOptions::default(),
        stop: Box::pin(std::future::pending()),
        cut: Box::pin(std::future::pending()),
    }
}

/// A server that is ready to run: see [`serve`].
#[must_use = "a server runs when it is awaited"]
pub struct Serve {
    listener: TcpListener,
    tls: TlsAcceptor,
    service: Box<dyn AnyService>,
    options: TcpOptions,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Serve {
    /// Sets the server's limits.
    pub fn options(mut self, options: TcpOptions) -> Self {
        self.options = options;
        self
    }

    /// Serves until `stop` resolves, and then ends in order: the listener is closed, clients get GOAWAY (RFC 9113 section
    /// 6.8) or `Connection: close`, and the requests in progress finish within [`TcpOptions::grace`].
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// Once the server stops, ends the grace early when `cut` resolves: connections are closed, requests cut off.
    pub fn cut(mut self, cut: impl Future<Output = ()> + Send + 'static) -> Self {
        self.cut = Box::pin(cut);
        self
    }

    /// Runs the server. Dropping the future ends it at once.
    pub async fn run(self) -> Ended {
        let Self { listener, tls, service, options, mut stop, cut } = self;
        let slots = Arc::new(Semaphore::new(options.max_requests.clamp(1, Semaphore::MAX_PERMITS)));
        let alternative = options.alt_svc.and_then(|max_age| Alternative::new(&listener, max_age));
        let shared = Arc::new(Shared { options, tls, slots, alternative });
        let clients = Arc::<Clients>::default();
        let (phase, phases) = watch::channel(Phase::Serving);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut stop => break,
                (stream, client) = accept(&listener) => {
                    let options = &shared.options;
                    if connections.len() >= options.max_connections {
                        continue;
                    }
                    let Some(admitted) = clients.admit(client.ip(), options.max_connections_per_client) else {
                        continue;
                    };
                    let (shared, service, phases) = (Arc::clone(&shared), service.another(), phases.clone());
                    connections.spawn(async move {
                        let cut_off = connection::serve(shared, service, (stream, client), phases).await;
                        drop(admitted);
                        cut_off
                    });
                }
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        phase.send_replace(Phase::Stopping);
        tokio::select! {
            () = async { while connections.join_next().await.is_some() {} } => {}
            () = sleep(shared.options.grace) => {}
            () = cut => {}
        }
        phase.send_replace(Phase::Over);
        cut_off(&mut connections).await
    }
}

/// The end of the connections that are left, each of which says how many requests it has lost.
async fn cut_off(connections: &mut JoinSet<usize>) -> Ended {
    let mut ended = Ended::default();
    let all = async {
        while let Some(over) = connections.join_next().await {
            let requests = over.unwrap_or(0);
            ended.cut_off += usize::from(requests > 0);
            ended.requests_cut_off += requests;
        }
    };
    if timeout(FAREWELL, all).await.is_err() {
        // Services that do not end.
        ended.cut_off += connections.len();
        ended.requests_cut_off += connections.len();
        connections.abort_all();
    }
    ended
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
