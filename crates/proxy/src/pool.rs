//! Connections to the upstream, and which of them are kept.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{DefaultServerNameResolver, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::failure::BoxError;
use crate::limits::{RESPONSE_FIELDS, RESPONSE_HEAD};
use crate::options::ProxyOptions;
use crate::upload::Outgoing;
use crate::upstream::Upstream;

/// The connections to one upstream.
pub(crate) type Pool = Client<Connector, Outgoing>;

/// A pool without connections.
pub(crate) fn pool(upstream: &Upstream, options: &ProxyOptions) -> Pool {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let dial = Dial { tcp, address: upstream.address() };
    let way = match upstream.tls() {
        None => Way::Plain(dial),
        Some(tls) => {
            let name = Arc::new(DefaultServerNameResolver::default());
            Way::Tls(HttpsConnector::new(dial, Arc::clone(tls), true, name))
        }
    };
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(options.keep_timeout)
        .pool_max_idle_per_host(options.max_idle)
        .http1_max_buf_size(RESPONSE_HEAD)
        .http1_max_headers(RESPONSE_FIELDS)
        .set_host(false)
        .build(Connector { way, limit: options.connect_timeout })
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
}

/// Connects in time, TLS included.
#[derive(Clone)]
pub(crate) struct Connector {
    way: Way,
    limit: Duration,
}

/// A connection was not made in time.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {} s", .0.as_secs_f64())]
pub(crate) struct TooSlow(pub(crate) Duration);

type Connecting =
    Pin<Box<dyn Future<Output = Result<MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>> + Send>>;

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.way {
            Way::Plain(dial) => dial.poll_ready(cx).map_err(Into::into),
            Way::Tls(tls) => tls.poll_ready(cx),
        }
    }

    fn call(&mut self, target: Uri) -> Connecting {
        let limit = self.limit;
        let connecting: Connecting = match &mut self.way {
            Way::Plain(dial) => {
                let connecting = dial.call(target);
                Box::pin(async { connecting.await.map(MaybeHttpsStream::Http).map_err(BoxError::from) })
            }
            Way::Tls(tls) => tls.call(target),
        };
        Box::pin(async move { timeout(limit, connecting).await.map_err(|_| TooSlow(limit))? })
    }
}
