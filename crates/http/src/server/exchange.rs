//! One request and its response.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header};
use posthaste_endpoint::{CloseReason, ConnectionError, WriteError};
use posthaste_http3::{Code, MessageError, Part, encode};
use tokio::time::{Instant, timeout};

use super::Shared;
use super::visitor::{Request, Visitor};
use crate::handler::{Body, Response};
use crate::message_stream::{MessageReceiver, MessageSender, ReceiveError};

/// Bytes of one DATA frame, and what a client must take within the stall timeout.
const FRAME: usize = 64 * 1024;

/// Bytes of a request's body that are read and thrown away while it is answered; the rest stays where it is.
const MAX_DISCARDED: u64 = 64 * 1024;

/// Time in which the client must acknowledge what the transport has buffered of a response when all of it is
/// written; that may be a whole congestion window of a slow path, and others may go first.
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

/// Says that a request has come as early data to an intermediary; any value means that (RFC 8470 section 5.1).
const EARLY_DATA: &str = "early-data";

/// Reads a request, has it answered and sends the answer.
pub(super) async fn run(shared: Arc<Shared>, mut stream: Request) -> Served {
    let started = Instant::now();
    let client = stream.visitor.address;
    let request = match timeout(shared.options.header_timeout, head(&mut stream.receiver)).await {
        Ok(Ok(request)) => request,
        Ok(Err(error)) => {
            tracing::debug!(%client, %error, "no request");
            decline(&shared, stream, &error).await;
            return Served::Abandoned;
        }
        Err(_) => {
            tracing::debug!(%client, "a request's headers did not arrive in time");
            stream.receiver.stop(Code::H3_REQUEST_CANCELLED);
            stream.sender.reset(Code::H3_REQUEST_CANCELLED);
            return Served::Abandoned;
        }
    };
    stream.prioritize(request.headers(), None);
    // The semaphore is never closed.
    let Ok(_permit) = shared.requests.acquire().await else { return Served::Answered };
    let is_early = stream.visitor.is_handshaking() || request.headers().contains_key(EARLY_DATA);
    let mut response = if is_early && !request.method().is_safe() {
        // Somebody on the path may have repeated it: the client is to ask again after the handshake (RFC 8470
        // section 5.2).
        Response::text(StatusCode::TOO_EARLY, "ask again when the handshake is complete")
    } else {
        shared.handler.handle(&request).await
    };
    if request.method() == Method::HEAD || has_no_content(response.head.status()) {
        response.body = Body::Empty;
    }
    response.head.headers_mut().entry(header::DATE).or_insert_with(date);
    if response.head.headers().contains_key("priority") {
        stream.prioritize(request.headers(), Some(response.head.headers()));
    }
    let status = response.head.status();
    let mut body_bytes = 0;
    let outcome = answer(&shared, &mut stream, response, &mut body_bytes).await;
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

/// The request's head, which comes first or not at all.
async fn head(receiver: &mut MessageReceiver) -> Result<http::Request<()>, ReceiveError> {
    match receiver.next().await? {
        Some(Part::Request(request)) => Ok(request),
        _ => Err(MessageError::Incomplete.into()),
    }
}

/// Ends a stream that brought no request.
async fn decline(shared: &Shared, mut stream: Request, error: &ReceiveError) {
    match error {
        ReceiveError::Message(MessageError::TooLarge { .. }) => {
            // RFC 9114 section 4.2.2 leaves the choice; this says what is wrong.
            let response = Response::text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "");
            send(shared, &stream.visitor, &mut stream.sender, response, &mut 0).await;
        }
        ReceiveError::Message(error) => stream.sender.reset(error.code()),
        ReceiveError::Reset(_) => stream.sender.reset(Code::H3_REQUEST_CANCELLED),
        ReceiveError::Lost(_) => {}
    }
}

/// Responses that never have content (RFC 9110 section 6.4.1).
fn has_no_content(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the field is a wall-clock time; nothing below the endpoint sees it"
)]
fn date() -> HeaderValue {
    let now = httpdate::fmt_http_date(std::time::SystemTime::now());
    HeaderValue::from_str(&now).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Sends the response, and sees to the rest of the request meanwhile: what breaks the protocol there counts too.
async fn answer(shared: &Shared, stream: &mut Request, response: Response, body_bytes: &mut u64) -> Outcome {
    let malformed = {
        let mut sending = pin!(send(shared, &stream.visitor, &mut stream.sender, response, body_bytes));
        let discarded = tokio::select! {
            biased;
            discarded = discard(&mut stream.receiver) => discarded,
            outcome = &mut sending => return outcome,
        };
        match discarded {
            Err(ReceiveError::Message(error)) => error,
            // A request that is cut off may have been answered all the same.
            Ok(()) | Err(ReceiveError::Reset(_) | ReceiveError::Lost(_)) => return sending.await,
        }
    };
    stream.sender.reset(malformed.code());
    Outcome::Aborted(malformed.to_string())
}

/// Reads what follows a request's head, and throws it away. A long body is left where it is: flow control keeps the
/// client from sending more of it, and when the stream is dropped it is asked to stop.
async fn discard(receiver: &mut MessageReceiver) -> Result<(), ReceiveError> {
    let mut discarded = 0;
    while let Some(part) = receiver.next().await? {
        if let Part::Data(data) = part {
            discarded += data.len() as u64;
        }
        if discarded > MAX_DISCARDED {
            break;
        }
    }
    Ok(())
}

async fn send(
    shared: &Shared,
    visitor: &Visitor,
    sender: &mut MessageSender,
    response: Response,
    body_bytes: &mut u64,
) -> Outcome {
    let Response { head, mut body, trailers } = response;
    let stall = shared.options.stall_timeout;
    sender.frame(&encode::response(&head));
    loop {
        let chunk = match next_chunk(visitor, stall, sender, &mut body).await {
            Ok(chunk) => chunk,
            Err(aborted) => return aborted,
        };
        let mut chunk = match chunk {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                // What was sent is not the whole, and must not look like it.
                sender.reset(Code::H3_INTERNAL_ERROR);
                return Outcome::Failed(error.to_string());
            }
        };
        while !chunk.is_empty() {
            let frame: Bytes = chunk.split_to(chunk.len().min(FRAME));
            let length = frame.len() as u64;
            if let Err(aborted) = in_time(visitor, stall, sender.content(frame)).await {
                sender.reset(Code::H3_REQUEST_CANCELLED);
                return aborted;
            }
            *body_bytes += length;
        }
    }
    if !trailers.is_empty() {
        sender.frame(&encode::trailers(&trailers));
    }
    if let Err(aborted) = in_time(visitor, stall, sender.finish()).await {
        sender.reset(Code::H3_REQUEST_CANCELLED);
        return aborted;
    }
    // A client that has what it wanted often closes in peace before it acknowledges the last bytes.
    let acknowledged = async {
        match sender.acknowledged().await {
            Err(WriteError::ConnectionLost(lost)) if is_in_peace(&lost) => Ok(()),
            other => other,
        }
    };
    match in_time(visitor, TAIL_TIMEOUT, acknowledged).await {
        Ok(()) => Outcome::Complete,
        Err(aborted) => aborted,
    }
}

/// The body's next piece. If that takes time, what precedes it goes ahead.
async fn next_chunk(
    visitor: &Visitor,
    stall: Duration,
    sender: &mut MessageSender,
    body: &mut Body,
) -> Result<std::io::Result<Option<Bytes>>, Outcome> {
    let mut next = pin!(body.next());
    if let std::task::Poll::Ready(chunk) = futures::poll!(next.as_mut()) {
        return Ok(chunk);
    }
    if let Err(aborted) = in_time(visitor, stall, sender.flush()).await {
        sender.reset(Code::H3_REQUEST_CANCELLED);
        return Err(aborted);
    }
    Ok(next.await)
}

fn is_in_peace(error: &ConnectionError) -> bool {
    let no_error = Code::H3_NO_ERROR.value();
    matches!(error, ConnectionError::Closed(CloseReason::PeerApplication { error_code, .. }) if *error_code == no_error)
}

async fn in_time(
    visitor: &Visitor,
    limit: Duration,
    operation: impl Future<Output = Result<(), WriteError>>,
) -> Result<(), Outcome> {
    match visitor.progress.wait(limit, operation).await {
        Some(Ok(())) => {
            visitor.progress.note();
            Ok(())
        }
        Some(Err(WriteError::Stopped(code))) => {
            Err(Outcome::Aborted(format!("the client wants no more ({})", Code(code))))
        }
        Some(Err(error)) => Err(Outcome::Aborted(error.to_string())),
        None => Err(Outcome::Aborted(format!("the client took nothing for {} s", limit.as_secs()))),
    }
}
