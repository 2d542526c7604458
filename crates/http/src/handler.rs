//! What answers requests: a handler is given a request's head and returns a response.

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::static_files::FileBody;

/// A future that a [`Handler`] returns.
pub type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Response> + Send + 'a>>;

/// Answers requests.
///
/// The server adds `date`; it drops the body of a response that can have none: one to HEAD, or with status 204 or 304.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request; called once a request, from many tasks at a time.
    fn handle<'a>(&'a self, request: &'a http::Request<()>) -> HandlerFuture<'a>;
}

/// A response: its head, where its body comes from, and what follows that.
#[derive(Debug)]
pub struct Response {
    /// Status and header fields.
    pub head: http::Response<()>,
    /// The body, not counting framing.
    pub body: Body,
    /// Trailers (RFC 9110 section 6.5), sent behind the body; default none.
    pub trailers: HeaderMap,
}

impl Response {
    /// An empty response with this status.
    pub fn new(status: StatusCode) -> Self {
        let mut head = http::Response::new(());
        *head.status_mut() = status;
        Self { head, body: Body::Empty, trailers: HeaderMap::new() }
    }

    /// A short text for people, with the status's name as its first line.
    pub fn text(status: StatusCode, detail: &str) -> Self {
        let text = format!("{status}\n{detail}{}", if detail.is_empty() { "" } else { "\n" });
        Self::new(status)
            .with_header(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
            .with_header(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
            .with_body(Bytes::from(text))
    }

    /// The same with this header field instead of any of its name.
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.head.headers_mut().insert(name, value);
        self
    }

    /// The same with this body and its `content-length`.
    pub fn with_body(mut self, body: Bytes) -> Self {
        self.head.headers_mut().insert(http::header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        self.body = Body::Bytes(body);
        self
    }
}

/// Where a response's body comes from.
#[derive(Debug)]
pub enum Body {
    /// There is none.
    Empty,
    /// It is in memory.
    Bytes(Bytes),
    /// It is a file, or a part of one, read while it is sent.
    File(FileBody),
    /// Another task feeds it: an error resets the response, the channel's end completes it.
    Channel(tokio::sync::mpsc::Receiver<io::Result<Bytes>>),
}

impl Body {
    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// When the source fails: the response must then be reset, for what was sent is not the whole.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self {
            Self::Empty => Ok(None),
            Self::Bytes(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            Self::File(file) => file.next().await,
            Self::Channel(pieces) => pieces.recv().await.transpose(),
        }
    }
}
