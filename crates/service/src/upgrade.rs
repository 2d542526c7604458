//! Changes of protocol: a request that becomes bytes both ways (RFC 9110 section 7.8).
//!
//! # The seam
//! A client asks for another protocol by HTTP/1.1's `Upgrade` or by extended CONNECT (RFC 8441 over HTTP/2, RFC 9220 over
//! HTTP/3). The servers give both one form, so that services need not know which it was:
//!
//! - The request is a GET of the same URI without a body, and has an [`Upgrade`] as extension. Its version says how it came.
//! - A service that does not know the extension answers as ever. That response is what the client gets; where it would
//!   mean agreement, which is a 2xx to CONNECT, the client gets 501 instead.
//! - A service that agrees calls [`Upgrade::accept`], which gives it what the client sends as a body, and answers with 101.
//!   The response's body is what the client receives. The server turns 101 into the status of the version.
//!
//! Each direction ends by itself: the end of a body is the end of that direction, an error of a body breaks the tunnel.
//! The receiver sets the pace, as with all bodies. What the client sends comes only after the response's head. Servers put no
//! limit on the silence of the client: the service knows how long silence may last. A client must still take what it gets
//! within the server's stall timeout.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{StatusCode, Version};
use tokio::io::{AsyncRead, ReadBuf};

use crate::{Body, Response, complete, text};

/// Most bytes that are read from a tunnel's stream at once.
pub const TUNNEL_PIECE: usize = 16 * 1024;

/// Reads what has arrived at a tunnel's stream, up to [`TUNNEL_PIECE`]; nothing at the end. While it waits, no buffer is
/// kept.
///
/// # Errors
/// Those of the stream.
pub fn poll_piece(stream: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
    let mut scratch = [0; TUNNEL_PIECE];
    let mut buffer = ReadBuf::new(&mut scratch);
    ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(Bytes::copy_from_slice(buffer.filled())))
}

/// The client asks for another protocol: an extension of the request. Servers of this project add it only if their options
/// say so.
///
/// # Example
/// A service that agrees to everything, and sends back what it receives:
/// ```
/// use posthaste_service::{Body, Request, Upgrade, service_fn, text};
///
/// let echo = service_fn(|request: Request| async move {
///     let asked = request.extensions().get::<Upgrade>();
///     let Some(received) = asked.and_then(Upgrade::accept) else {
///         return text(http::StatusCode::NOT_FOUND, "");
///     };
///     http::Response::builder().status(101).body(received).unwrap()
/// });
/// ```
#[derive(Clone)]
pub struct Upgrade {
    protocol: Arc<str>,
    received: Arc<Mutex<Option<Body>>>,
}

impl Upgrade {
    /// To this protocol; `received` is what the client sends once the service has agreed.
    pub fn new(protocol: impl Into<Arc<str>>, received: Body) -> Self {
        Self { protocol: protocol.into(), received: Arc::new(Mutex::new(Some(received))) }
    }

    /// The name of the protocol as the client wrote it, such as `websocket`. Names are compared without regard to case.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// Agrees: what the client sends. `None` if that has been taken before.
    pub fn accept(&self) -> Option<Body> {
        self.lock().take()
    }

    /// The body is whole after every call.
    fn lock(&self) -> MutexGuard<'_, Option<Body>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For servers: completes the response to the request, which came by `version`. Returns true if the service has agreed:
    /// the response's body then belongs to the tunnel, whose client has yet to be sent the head.
    pub fn conclude(&self, version: Version, response: &mut Response) -> bool {
        let is_http1 = version < Version::HTTP_2;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS || self.lock().is_some() {
            if !is_http1 && response.status().is_success() {
                *response = text(StatusCode::NOT_IMPLEMENTED, "this protocol is not spoken here");
            }
            return false;
        }
        complete::strip(response.headers_mut());
        // There is no content (RFC 9110 sections 8.6 and 9.3.6).
        response.headers_mut().remove(header::CONTENT_LENGTH);
        if is_http1 {
            let fields = response.headers_mut();
            fields.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            if let Ok(protocol) = HeaderValue::from_str(&self.protocol) {
                fields.insert(header::UPGRADE, protocol);
            }
        } else {
            *response.status_mut() = StatusCode::OK;
        }
        true
    }

    /// For servers: true if this response is the agreement that [`Self::conclude`] will find, and no informational response
    /// that nobody asked for.
    pub fn is_agreed(&self, response: &Response) -> bool {
        response.status() == StatusCode::SWITCHING_PROTOCOLS && self.lock().is_none()
    }
}

impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgrade").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concluded(version: Version, status: u16, is_accepted: bool) -> (bool, Response) {
        let upgrade = Upgrade::new("websocket", Body::empty());
        if is_accepted {
            assert!(upgrade.accept().is_some() && upgrade.accept().is_none());
        }
        let response = http::Response::builder().status(status).header("content-length", "4");
        let mut response = response.header("connection", "close").body(Body::from("four")).unwrap();
        (upgrade.conclude(version, &mut response), response)
    }

    #[test]
    fn an_agreement_has_the_form_of_its_version() {
        let (is_tunnel, response) = concluded(Version::HTTP_11, 101, true);
        assert!(is_tunnel && response.status() == 101);
        assert_eq!(response.headers()["connection"], "upgrade");
        assert_eq!(response.headers()["upgrade"], "websocket");
        assert!(!response.headers().contains_key("content-length"));
        for version in [Version::HTTP_2, Version::HTTP_3] {
            let (is_tunnel, response) = concluded(version, 101, true);
            assert!(is_tunnel && response.status() == 200 && response.headers().is_empty());
        }
    }

    #[test]
    fn what_is_no_agreement_does_not_look_like_one() {
        for (version, status, seen) in [
            (Version::HTTP_11, 200, 200),
            (Version::HTTP_11, 403, 403),
            (Version::HTTP_2, 403, 403),
            (Version::HTTP_2, 200, 501),
            (Version::HTTP_3, 204, 501),
            (Version::HTTP_3, 308, 308),
        ] {
            for is_accepted in [false, true] {
                let (is_tunnel, response) = concluded(version, status, is_accepted);
                assert!(!is_tunnel);
                assert_eq!(response.status().as_u16(), seen, "{version:?} {status}");
            }
        }
        assert!(!concluded(Version::HTTP_11, 101, false).0, "nobody took what the client sends");
    }
}
