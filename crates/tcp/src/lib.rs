//! HTTP/1.1 and HTTP/2 over TLS for the services of `posthaste-service`.
//!
//! [`serve`] is to a TCP listener what `posthaste_http::serve` is to a QUIC endpoint: the same services, the same bodies,
//! the same end in order. A service sees the same request whichever way it came, apart from the request's version and
//! [`Peer::protocol`](posthaste_service::Peer): the URI is absolute, cookies are one field, and requests that name no host,
//! or two, have been refused.
//!
//! hyper speaks the protocols; the version is what the client and the server agree on by ALPN. [`redirect`] is for port 80, [`plain`] for operators.
//!
//! # Requests that are refused
//! | status | when |
//! |---|---|
//! | 400 | no `Host`, two, or one that differs from the target's authority (RFC 9112 section 3.2); a scheme other than `https`; a message that hyper cannot parse |
//! | 425 | `Early-Data` on a request whose method is not safe (RFC 8470 section 5.2) |
//! | 431 | a head larger than [`TcpOptions::max_header_size`] |
//! | 501 | CONNECT without a protocol, or with one that the service does not agree to; a transfer coding other than `chunked` |
//!
//! # Example
//! ```no_run
//! # async fn example(tls: std::sync::Arc<tokio_rustls::rustls::ServerConfig>) -> std::io::Result<()> {
//! use posthaste_service::{Request, service_fn};
//!
//! // `tls` offers the protocols of `posthaste_tcp::ALPN`.
//! let listener = tokio::net::TcpListener::bind("0.0.0.0:443").await?;
//! let echo = service_fn(|request: Request| async { http::Response::new(request.into_body()) });
//! posthaste_tcp::serve(listener, tls, echo).await;
//! # Ok(())
//! # }
//! ```

mod accept;
mod activity;
mod budget;
mod clients;
mod connection;
mod exchange;
mod io;
mod options;
mod plain;
mod record;
mod redirect;
mod request_body;
mod response_body;
mod server;
mod silence;
mod target;
mod upgrade;

pub use budget::Budget;
pub use options::TcpOptions;
pub use plain::plain;
pub use redirect::{redirect, redirection};
pub use server::{Serve, serve};

/// Protocols to offer by ALPN (RFC 7301), in the order of preference: HTTP/2 (RFC 9113 section 3.2), HTTP/1.1.
pub const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];
