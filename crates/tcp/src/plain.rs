//! HTTP/1.1 without TLS, for answers that need no time: redirects, figures for operators.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::accept::accept;

/// Connections at once.
const MAX_CONNECTIONS: usize = 1024;

/// Time for a connection's one request and its answer.
const LIFETIME: Duration = Duration::from_secs(10);

/// Bytes of a head.
const MAX_HEAD: usize = 16 * 1024;

/// Answers each request on `listener` by a function, without its body. One request per connection, which may take 10 s;
/// 1024 connections at once, further ones are closed. Runs until it is dropped.
pub async fn plain<F>(listener: TcpListener, answer: F)
where
    F: Fn(&http::Request<()>) -> http::Response<Bytes> + Clone + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            (stream, _) = accept(&listener) => {
                if connections.len() >= MAX_CONNECTIONS {
                    continue;
                }
                let answer = answer.clone();
                connections.spawn(timeout(LIFETIME, async move {
                    let service = service_fn(move |request: http::Request<Incoming>| {
                        let response = answer(&request.map(drop)).map(Full::new);
                        std::future::ready(Ok::<_, Infallible>(response))
                    });
                    let mut builder = http1::Builder::new();
                    builder.timer(TokioTimer::new()).keep_alive(false).max_buf_size(MAX_HEAD);
                    // Whatever ends it, it is over.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
