//! One request and its response.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{HeaderValue, Method, StatusCode, header};
use tokio::time::{Instant, timeout};

use super::Shared;
use crate::handler::{Body, Response};
use crate::quic_adapter::{BidiStream, Payload, QuicConnection};

/// Bytes of one DATA frame, and what a client must take within the stall timeout.
const FRAME: usize = 64 * 1024;

/// Time in which the client must acknowledge what the transport has buffered of a response when all of it is
/// written; that may be a whole congestion window of a slow path.
const TAIL_TIMEOUT: Duration = Duration::from_secs(300);

/// Is told of each request when it is over.
pub trait AccessLog: Send + Sync {
    /// Called once a request, from many tasks; must not block for long.
    fn record(&self, record: &AccessRecord<'_>);
}

/// One request and what became of it.
#[derive(Debug, Clone)]
pub struct AccessRecord<'a> {
    /// Where it came from.
    pub client: SocketAddr,
    /// Its method.
    pub method: &'a Method,
    /// Its target; the client's text, which may contain anything that a URI may.
    pub target: &'a http::Uri,
    /// The response's status.
    pub status: StatusCode,
    /// Bytes of the body that were handed to the transport.
    pub body_bytes: u64,
    /// From the request's first byte to the acknowledgement of the response's last.
    pub duration: Duration,
    /// How it ended.
    pub outcome: &'a Outcome,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The client has the whole response, or has closed the connection without an error after it was sent.
    Complete,
    /// The client, or the connection, gave up; why.
    Aborted(String),
    /// The body's source failed and the response was reset; why.
    Failed(String),
}

/// What a task that serves a request leaves behind.
pub(super) enum Served {
    /// The request was answered, or died while it was.
    Answered,
    /// It never became a request.
    Abandoned,
}

type Stream = RequestStream<BidiStream, Payload>;

/// Reads a request, has it answered and sends the answer.
pub(super) async fn run(
    shared: Arc<Shared>,
    client: SocketAddr,
    resolver: RequestResolver<QuicConnection, Payload>,
) -> Served {
    let started = Instant::now();
    let (request, mut stream) = match timeout(shared.options.header_timeout, resolver.resolve_request()).await
    {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => {
            tracing::debug!(%client, %error, "no request");
            return Served::Abandoned;
        }
        Err(_) => {
            tracing::debug!(%client, "a request's headers did not arrive in time");
            return Served::Abandoned;
        }
    };
    skip_request_body(&mut stream).await;
    // The semaphore is never closed.
    let Ok(_permit) = shared.requests.acquire().await else { return Served::Answered };
    let mut response = shared.handler.handle(&request).await;
    if request.method() == Method::HEAD {
        response.body = Body::Empty;
    }
    response.head.headers_mut().entry(header::DATE).or_insert_with(date);
    let status = response.head.status();
    let mut body_bytes = 0;
    let outcome = send(&shared, &mut stream, response, &mut body_bytes).await;
    if let Some(log) = &shared.options.access_log {
        log.record(&AccessRecord {
            client,
            method: request.method(),
            target: request.uri(),
            status,
            body_bytes,
            duration: started.elapsed(),
            outcome: &outcome,
        });
    }
    Served::Answered
}

#[expect(
    clippy::disallowed_methods,
    reason = "the field is a wall-clock time; nothing below the endpoint sees it"
)]
fn date() -> HeaderValue {
    let now = httpdate::fmt_http_date(std::time::SystemTime::now());
    HeaderValue::from_str(&now).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Sees the end of a request that is complete, as nearly all are. A body is not read: when the stream is dropped
/// the client is asked to stop sending it.
async fn skip_request_body(stream: &mut Stream) {
    poll_fn(|cx| {
        let _ = stream.poll_recv_data(cx).is_ready();
        Poll::Ready(())
    })
    .await;
}

async fn send(shared: &Shared, stream: &mut Stream, response: Response, body_bytes: &mut u64) -> Outcome {
    let Response { head, mut body } = response;
    let stall = shared.options.stall_timeout;
    if let Err(aborted) = in_time(stall, stream.send_response(head)).await {
        return aborted;
    }
    loop {
        let mut chunk = match body.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                // What was sent is not the whole, and must not look like it.
                stream.stop_stream(Code::H3_INTERNAL_ERROR);
                return Outcome::Failed(error.to_string());
            }
        };
        while !chunk.is_empty() {
            let frame: Bytes = chunk.split_to(chunk.len().min(FRAME));
            let length = frame.len() as u64;
            if let Err(aborted) = in_time(stall, stream.send_data(frame.into())).await {
                stream.stop_stream(Code::H3_REQUEST_CANCELLED);
                return aborted;
            }
            *body_bytes += length;
        }
    }
    // A client that has what it wanted often closes in peace before it acknowledges the last bytes.
    let finish = async {
        match stream.finish().await {
            Err(error) if error.is_h3_no_error() => Ok(()),
            other => other,
        }
    };
    match in_time(TAIL_TIMEOUT, finish).await {
        Ok(()) => Outcome::Complete,
        Err(aborted) => aborted,
    }
}

async fn in_time(
    limit: Duration,
    operation: impl Future<Output = Result<(), StreamError>>,
) -> Result<(), Outcome> {
    match timeout(limit, operation).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Outcome::Aborted(error.to_string())),
        Err(_) => Err(Outcome::Aborted(format!("the client took nothing for {} s", limit.as_secs()))),
    }
}
