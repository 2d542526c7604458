//! How connections to an upstream are made.

use std::future::Future;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::failure::BoxError;
use crate::link::{Link, Stream};
use crate::observer::{Counted, UpstreamLog};
use crate::upstream::Upstream;

fn way(upstream: &Upstream) -> Way {
    #[cfg(unix)]
    if let Some(socket) = upstream.socket() {
        return Way::Unix(Arc::clone(socket));
    }
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let dial = Dial { tcp, address: upstream.address() };
    match upstream.tls() {
        None => Way::Plain(dial),
        Some(tls) => {
            let name = Arc::new(DefaultServerNameResolver::default());
            Way::Tls(HttpsConnector::new(dial, Arc::clone(tls), true, name))
        }
    }
}

/// Connects to the upstream, whatever the URI's host is.
#[derive(Clone)]
struct Dial {
    tcp: HttpConnector,
    address: Uri,
}

impl Service<Uri> for Dial {
    type Response = TokioIo<TcpStream>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = <HttpConnector as Service<Uri>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(cx)
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        self.tcp.call(self.address.clone())
    }
}

#[derive(Clone)]
enum Way {
    Plain(Dial),
    /// The URI's host is the name that the certificate must have.
    Tls(HttpsConnector<Dial>),
    #[cfg(unix)]
    Unix(Arc<Path>),
}

/// Connects in time, TLS included.
#[derive(Clone)]
pub(crate) struct Connector {
    way: Way,
    limit: Duration,
    log: Option<Arc<dyn UpstreamLog>>,
}

impl Connector {
    /// Of this upstream; a connection takes up to `limit`.
    pub(crate) fn new(upstream: &Upstream, limit: Duration) -> Self {
        Self { way: way(upstream), limit, log: upstream.log().cloned() }
    }
}

/// A connection was not made in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {} s", .0.as_secs_f64())]
pub(crate) struct TooSlow(pub(crate) Duration);

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

impl Service<Uri> for Connector {
    type Response = Link;
    type Error = BoxError;
    type Future = Connecting<Link>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.way {
            Way::Plain(dial) => dial.poll_ready(cx).map_err(Into::into),
            Way::Tls(tls) => tls.poll_ready(cx),
            #[cfg(unix)]
            Way::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, target: Uri) -> Connecting<Link> {
        let (limit, log, began) = (self.limit, self.log.clone(), Instant::now());
        let connecting: Connecting<Stream> = match &mut self.way {
            Way::Plain(dial) => {
                let connecting = dial.call(target);
                Box::pin(async { Ok(Stream::Tcp(Box::new(MaybeHttpsStream::Http(connecting.await?)))) })
            }
            Way::Tls(tls) => {
                let connecting = tls.call(target);
                Box::pin(async { connecting.await.map(|stream| Stream::Tcp(Box::new(stream))) })
            }
            #[cfg(unix)]
            Way::Unix(socket) => {
                let socket = Arc::clone(socket);
                Box::pin(async move { Ok(Stream::Unix(TokioIo::new(UnixStream::connect(socket).await?))) })
            }
        };
        Box::pin(async move {
            let stream = timeout(limit, connecting).await.map_err(|_| TooSlow(limit))??;
            let counted = log.as_ref().map(|log| Counted::connected(log, began.elapsed()));
            Ok(Link::new(stream, counted))
        })
    }
}
