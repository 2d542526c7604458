//! The interface between servers and applications: tower services that take and return HTTP messages.
//!
//! Nothing here knows a transport. A service is a
//! `tower_service::Service<http::Request<RequestBody>, Response = http::Response<B>, Error = Infallible>`, where `B` is any
//! `http_body::Body<Data = Bytes>`: an axum `Router`, a tower stack, the static files of `posthaste-http`, or an
//! async function ([`service_fn`]).

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderValue, StatusCode, header};
use tower_service::Service;

mod accepted;
mod access;
mod alternative;
mod body;
mod channel;
mod coding;
mod complete;
mod connections;
mod early;
mod erased;
mod error;
mod hints;
mod host;
mod list;
mod remarks;
mod upgrade;

pub use accepted::accepted_codings;
pub use access::{AccessLog, AccessRecord, Ended, Outcome};
pub use alternative::Alternative;
pub use body::{Body, PolledFrame};
pub use channel::{BodyGone, BodySender};
pub use coding::{Coding, UnknownCoding};
pub use complete::complete;
pub use connections::{Connections, Phase};
pub use early::{EARLY_DATA, Early, Handshake, HandshakeFailed, TOO_EARLY, refuse_early};
pub use erased::{Answer, AnyService, erase};
pub use error::BodyError;
pub use hints::{EarlyHints, HintsReceiver};
pub use host::{host_field, names_host};
pub use list::list_members;
pub use remarks::Remarks;
pub use upgrade::{TUNNEL_PIECE, Upgrade, poll_piece};

/// A request's body as a service gets it.
///
/// What is not read stays with the client: a slow service slows the upload. A body that does not come whole
/// ends with a [`BodyError`], never like one that is complete.
pub type RequestBody = Body;

/// A response's body. The server asks for the next frame when the client has room for it.
pub type ResponseBody = Body;

/// A request as a service gets it. Its extensions hold a [`Peer`], an [`Early`] if it came as early data, an [`Upgrade`] if
/// the client asks for another protocol, and [`Remarks`] where requests are logged.
pub type Request = http::Request<RequestBody>;

/// A response with the body type of this crate. Services may return other bodies.
pub type Response = http::Response<ResponseBody>;

/// The client of a request: an extension of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// The client's address when the request arrived.
    pub address: SocketAddr,
    /// The version of HTTP that the request came by.
    pub protocol: Protocol,
    /// The name by which the client asked for the server (SNI), if it gave one.
    pub server_name: Option<Arc<str>>,
}

impl Peer {
    /// A client at this address that speaks this version and gave this name.
    pub fn new(address: SocketAddr, protocol: Protocol, server_name: Option<Arc<str>>) -> Self {
        Self { address, protocol, server_name }
    }
}

/// A version of HTTP as one speaks of it: HTTP/1.0 counts as HTTP/1.1, whose syntax it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112) over TCP.
    Http1,
    /// HTTP/2 (RFC 9113) over TCP.
    Http2,
    /// HTTP/3 (RFC 9114) over QUIC.
    Http3,
}

impl Protocol {
    /// A short name for logs and metrics: `h1`, `h2` or `h3`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "h1",
            Self::Http2 => "h2",
            Self::Http3 => "h3",
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A short text for people, with the status's name as its first line. Caches do not store it.
pub fn text(status: StatusCode, detail: &str) -> Response {
    let text = format!("{status}\n{detail}{}", if detail.is_empty() { "" } else { "\n" });
    let length = text.len();
    let mut response = http::Response::new(Body::from(text));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A service made of an async function.
///
/// # Example
/// A service that sends back what it receives, as it comes:
/// ```
/// use posthaste_service::{Request, service_fn};
///
/// let echo = service_fn(|request: Request| async { http::Response::new(request.into_body()) });
/// ```
pub fn service_fn<F>(function: F) -> ServiceFn<F> {
    ServiceFn(function)
}

/// See [`service_fn`].
#[derive(Debug, Clone, Copy)]
pub struct ServiceFn<F>(F);

impl<F, Fut, B> Service<Request> for ServiceFn<F>
where
    F: FnMut(Request) -> Fut,
    Fut: Future<Output = http::Response<B>> + Send + 'static,
{
    type Response = http::Response<B>;
    type Error = Infallible;
    type Future = ServiceFnFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let answer = (self.0)(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

/// The future of a [`ServiceFn`].
type ServiceFnFuture<B> = Pin<Box<dyn Future<Output = Result<http::Response<B>, Infallible>> + Send>>;

#[cfg(test)]
mod tests;
