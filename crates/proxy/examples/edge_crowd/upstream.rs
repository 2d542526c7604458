//! The application behind the edge: plain HTTP/1.1.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use posthaste_service::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::lasting::now;
use crate::{Result, check, content};

/// Bytes of a response that are written at once.
const PIECE: u64 = 16 * 1024;

/// Events of a stream, and the time between two.
pub(crate) const EVENTS: u64 = 10;
const EVENT_EVERY: Duration = Duration::from_millis(50);

/// Serves until the process ends.
pub(crate) async fn run(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    println!("listening {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) {
    // Responses come in small writes.
    let _ = stream.set_nodelay(true);
    let service = service_fn(async |request| Ok::<_, Infallible>(answer(request).await));
    // The edge closes connections when it likes.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn answer(request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if request.headers().contains_key(header::UPGRADE) {
        return echo(request);
    }
    if let Some(key) = path.strip_prefix("/held/") {
        return hold(request, key);
    }
    if let Some(seconds) = path.strip_prefix("/silence/").and_then(|number| number.parse().ok()) {
        return events(["data: before\n\n", "data: after\n\n"], Duration::from_secs(seconds));
    }
    match (request.method(), path.as_str()) {
        (&Method::POST, _) => count(request.into_body()).await,
        (_, "/events") => events((0..EVENTS).map(|number| format!("data: {number}\n\n")), EVENT_EVERY),
        (_, path) => match path.strip_prefix("/bytes/").and_then(|number| number.parse().ok()) {
            Some(bytes) => file(bytes),
            None => refuse("there is no such path"),
        },
    }
}

fn refuse(why: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(why));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// A file of this many bytes.
fn file(bytes: u64) -> Response<Body> {
    let (feed, body) = Body::channel();
    tokio::spawn(async move {
        let mut offset = 0;
        while offset < bytes {
            let end = bytes.min(offset + PIECE);
            if feed.send(content(offset, end)).await.is_err() {
                return;
            }
            offset = end;
        }
        // An error says that the edge has left.
        let _ = feed.finish().await;
    });
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
    response
}

/// Reads a body to its end; how long it was.
async fn count(mut body: Incoming) -> Response<Body> {
    let mut offset = 0;
    while let Some(frame) = body.frame().await {
        // The client has given up.
        let Ok(frame) = frame else { return refuse("the body is not whole") };
        let Some(data) = frame.data_ref() else { continue };
        match check(data, offset) {
            Ok(next) => offset = next,
            Err(_) => return refuse("the body is WRONG"),
        }
    }
    Response::new(Body::from(offset.to_string()))
}

/// A stream of events with pauses between them.
fn events<E>(
    events: impl IntoIterator<Item = E, IntoIter: Send> + Send + 'static,
    pause: Duration,
) -> Response<Body>
where
    E: Into<Bytes> + Send,
{
    let (feed, body) = Body::channel();
    tokio::spawn(async move {
        let mut events = events.into_iter();
        let mut next = events.next();
        while let Some(event) = next {
            if feed.send(event).await.is_err() {
                return;
            }
            next = events.next();
            if next.is_some() {
                tokio::time::sleep(pause).await;
            }
        }
        let _ = feed.finish().await;
    });
    let mut response = Response::new(body);
    let kind = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response that never ends. When it is given up, it prints `dropped KEY MILLISECONDS`.
struct Held(String);

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        println!("dropped {} {}", self.0, now());
    }
}

/// Begins to answer, and reads the request's body; if that is given up, it prints the same line.
fn hold(request: Request<Incoming>, key: &str) -> Response<Body> {
    let (held, key) = (Held(key.to_owned()), key.to_owned());
    tokio::spawn(async move {
        let mut body = request.into_body();
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                println!("dropped {key} {}", now());
                break;
            }
        }
    });
    Response::new(Body::new(held))
}

/// Agrees to WebSocket, and sends the bytes back, whatever frames they are.
fn echo(mut request: Request<Incoming>) -> Response<Body> {
    let Some(key) = request.headers().get(header::SEC_WEBSOCKET_KEY) else { return refuse("no key") };
    let accept = derive_accept_key(key.as_bytes());
    tokio::spawn(async move {
        let Ok(stream) = hyper::upgrade::on(&mut request).await else { return };
        let (mut reading, mut writing) = tokio::io::split(TokioIo::new(stream));
        // Ends when the other side does, or when it is cut off.
        if tokio::io::copy(&mut reading, &mut writing).await.is_ok() {
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut writing).await;
        }
    });
    let agreed = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    let agreed = agreed.header(header::CONNECTION, "upgrade").header(header::UPGRADE, "websocket");
    agreed
        .header(header::SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty())
        .unwrap_or_else(|_| refuse("no value for a field"))
}
