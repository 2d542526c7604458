//! What can go wrong with a request, in words that say what to do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use posthaste_endpoint::{CloseReason, ConnectionError};

use crate::uri::{Origin, UriError};

/// Why a request has no (whole) response.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URI cannot be fetched over HTTP/3.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The host's name has no address.
    #[error("cannot find the host `{host}`: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says.
        source: Arc<io::Error>,
    },
    /// No UDP socket could be opened.
    #[error("cannot open a UDP socket: {0}")]
    Socket(Arc<io::Error>),
    /// Nothing came back from any of the host's addresses.
    #[error(
        "nothing answered on UDP {} within {} s; is an HTTP/3 server running there, and does UDP get through?",
        list(.addresses), .waited.as_secs_f64()
    )]
    NoAnswer {
        /// Who was asked for.
        origin: Origin,
        /// The addresses that were tried.
        addresses: Vec<SocketAddr>,
        /// For how long.
        waited: Duration,
    },
    /// The server's certificate is not acceptable.
    #[error("the certificate of {origin} was not accepted: {reason}")]
    Certificate {
        /// Whose certificate.
        origin: Origin,
        /// What is wrong with it.
        reason: String,
    },
    /// The handshake failed.
    #[error("cannot connect to {origin} ({address}): {source}")]
    Connect {
        /// Who was asked for.
        origin: Origin,
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: ConnectionError,
    },
    /// The server speaks QUIC, but no HTTP/3.
    #[error("{origin} does not speak HTTP/3: {reason}")]
    NoHttp3 {
        /// Who was asked for.
        origin: Origin,
        /// What it does instead.
        reason: String,
    },
    /// The connection was lost before the response was complete.
    #[error("the connection to {origin} was lost: {reason}")]
    Lost {
        /// Whose connection.
        origin: Origin,
        /// Why.
        reason: CloseReason,
    },
    /// The server broke HTTP/3.
    #[error("{origin} broke the HTTP/3 protocol: {reason}")]
    Protocol {
        /// Who.
        origin: Origin,
        /// How.
        reason: String,
    },
    /// The server gave the response up.
    #[error("the server reset the response ({code})")]
    Reset {
        /// The HTTP/3 error code's name.
        code: String,
    },
    /// The server is leaving and has not touched the request, nor that on a new connection.
    #[error("{origin} is shutting down and takes no requests; try again later")]
    NotProcessed {
        /// Who.
        origin: Origin,
    },
    /// The source of the request's body failed, so the request was given up.
    #[error("the request's body could not be read: {reason}")]
    Body {
        /// What the source says.
        reason: String,
    },
    /// The response did not begin in time.
    #[error("no response within {} s", .0.as_secs_f64())]
    FirstByteTimeout(Duration),
    /// The response stopped coming.
    #[error("nothing more arrived for {} s", .0.as_secs_f64())]
    IdleTimeout(Duration),
    /// The response's body is shorter or longer than its `content-length`.
    #[error("the response has {received} bytes instead of the {expected} that it announced")]
    Length {
        /// What was announced.
        expected: u64,
        /// What came (so far, if it is more).
        received: u64,
    },
    /// An object that changed while it was fetched in parts, and then could not be fetched again.
    #[error("{uri} changed while it was fetched in parts, and now the server answers {status}")]
    Changed {
        /// The object.
        uri: String,
        /// What the server answers.
        status: http::StatusCode,
    },
    /// The server serves no more parts of an object, of which it has served some.
    #[error(
        "the server answers {status} to requests for parts of it, of which it has served some; \
             try again, or with one connection"
    )]
    Part {
        /// What the server answers.
        status: http::StatusCode,
    },
    /// A redirect that cannot be followed.
    #[error("{from} redirects to something that cannot be fetched: {source}")]
    Redirect {
        /// Who redirects.
        from: String,
        /// Why it is not followed.
        source: UriError,
    },
    /// Redirects without end.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit.
        limit: usize,
    },
}

impl ClientError {
    /// Sorts out why no connection came about.
    pub(super) fn connect(origin: &Origin, address: SocketAddr, error: ConnectionError) -> Self {
        let origin = origin.clone();
        match error {
            ConnectionError::Closed(CloseReason::Tls { alert, reason })
                if is_about_certificate(alert, &reason) =>
            {
                Self::Certificate { origin, reason }
            }
            ConnectionError::Closed(CloseReason::IdleTimeout) => {
                Self::NoAnswer { origin, addresses: vec![address], waited: Duration::ZERO }
            }
            source => Self::Connect { origin, address, source },
        }
    }
}

/// Alerts that a client sends about a certificate (RFC 8446 section 6.2): from `bad_certificate` to `unknown_ca`
/// except `illegal_parameter`, and `bad_certificate_status_response`. A certificate that another key has signed is
/// a `decrypt_error` like others, which only the text tells apart.
fn is_about_certificate(alert: u8, reason: &str) -> bool {
    matches!(alert, 42..=46 | 48 | 113) || alert == 51 && reason.contains("certificate")
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
