//! The server: a task per connection.

use std::convert::Infallible;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_service::{Alternative, AnyService, Connections, Ended, Request, erase};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tower_service::Service;

use crate::accept::accept;
use crate::budget::Budget;
use crate::connection;
use crate::options::TcpOptions;

/// What the tasks of a server share.
pub(crate) struct Shared {
    pub(crate) options: TcpOptions,
    pub(crate) tls: TlsAcceptor,
    pub(crate) budget: Budget,
    pub(crate) alternative: Option<Alternative>,
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
        budget: None,
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
    budget: Option<Budget>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Serve {
    /// Sets the server's limits.
    pub fn options(mut self, options: TcpOptions) -> Self {
        self.options = options;
        self
    }

    /// Bounds connections and requests together with all servers that get a clone of `budget`; [`Self::options`] then does
    /// not bound them.
    pub fn within(self, budget: Budget) -> Self {
        Self { budget: Some(budget), ..self }
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
        let Self { listener, tls, service, options, budget, mut stop, cut } = self;
        let budget = budget.unwrap_or_else(|| Budget::new(&options));
        let port = listener.local_addr().ok().map(|address| address.port());
        let alternative = port.zip(options.alt_svc).map(|(port, max_age)| Alternative::new(port, max_age));
        let shared = Arc::new(Shared { options, tls, budget, alternative });
        let mut connections = Connections::default();
        loop {
            tokio::select! {
                () = &mut stop => break,
                (stream, client) = accept(&listener) => {
                    let Some(admitted) = shared.budget.admit(client.ip()) else { continue };
                    let (shared, service) = (Arc::clone(&shared), service.another());
                    let phases = connections.phases();
                    connections.serve(async move {
                        let cut_off = connection::serve(shared, service, (stream, client), phases).await;
                        drop(admitted);
                        cut_off
                    });
                }
                Some(()) = connections.ended() => {}
            }
        }
        drop(listener);
        connections.end(shared.options.grace, cut).await
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
