//! HTTP/3 server and client on the Posthaste endpoint.
//!
//! - [`service`]: the interface to applications. They are tower services that take and return HTTP messages, with bodies
//!   that stream both ways; an axum `Router` is one.
//! - [`server`]: [`serve`] runs a service on an endpoint.
//! - [`StaticFiles`]: a service of the files below a directory.
//! - [`client`]: a [`Client`] that shares one connection an origin between parallel requests, or fetches one object over
//!   several ([`Client::download`]).
//!
//! # Example
//! A server of a directory, and a client that fetches a file of it:
//! ```
//! use posthaste_http::endpoint::{ClientConfig, Endpoint, ServerConfig, default_transport, rustls, tls};
//! use posthaste_http::{ALPN, Client, ClientOptions, StaticFiles, serve};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! # let directory = tempfile::tempdir()?;
//! # std::fs::write(directory.path().join("hello.txt"), "hello")?;
//! // A certificate that both ends know.
//! let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! let mut roots = rustls::RootCertStore::empty();
//! roots.add(identity.cert.der().clone())?;
//! let key = identity.signing_key.serialize_der().try_into()?;
//!
//! let tls = tls::server_config(vec![identity.cert.into()], key, &[ALPN])?;
//! let config = ServerConfig::new(tls, default_transport());
//! let endpoint = Endpoint::server("127.0.0.1:0".parse()?, config)?;
//! let port = endpoint.local_addr()?.port();
//! let files = StaticFiles::new(directory.path(), false)?;
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let server = serve(endpoint, files).until(async { stopped.await.unwrap_or_default() });
//! let server = tokio::spawn(server.run());
//!
//! let quic = ClientConfig::new(tls::client_config_with_roots(roots, &[ALPN])?, default_transport());
//! let client = Client::new(ClientOptions::new(quic));
//! let uri = posthaste_http::parse_url(&format!("https://localhost:{port}/hello.txt"))?;
//! let mut response = client.get(&uri).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(response.chunk().await?.as_deref(), Some(b"hello".as_slice()));
//! assert_eq!(response.chunk().await?, None, "the end, and the length is right");
//! client.close().await;
//!
//! // In order: GOAWAY, requests in progress finish, then the end.
//! stop.send(()).ok();
//! assert_eq!(server.await?.cut_off, 0);
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Priorities
//! The server sends responses as RFC 9218 says: by the `priority` field of requests and by `PRIORITY_UPDATE` frames, and
//! a service may change what the client asked for with a `priority` field in its response. The client asks for its
//! responses side by side (`priority: i`), unless the caller gives a field of their own.
//!
//! QUIC comes from `posthaste-endpoint`, framing and QPACK from `posthaste-http3`, which knows no QUIC.

pub mod client;
pub mod server;

mod link;
mod message_stream;
mod patience;
mod static_files;
mod uri;

/// The interface to applications, of the crate `posthaste-service`: it knows no transport.
pub mod service {
    #[doc(inline)]
    pub use posthaste_service::{
        AccessLog, AccessRecord, Body, BodyError, BodyGone, BodySender, Early, EarlyHints, Ended, Handshake,
        HandshakeFailed, Outcome, Peer, Protocol, Remarks, Request, RequestBody, Response, ResponseBody,
        ServiceFn, Upgrade, host_field, service_fn, text,
    };
    pub(crate) use posthaste_service::{AnyService, Coding, accepted_codings, erase};
}

pub use client::{Client, ClientError, ClientOptions, ConnectionReport, MAX_ENDED_CONNECTIONS, SplitOptions};
pub use server::{ALPN, Budget, ConnectionLog, Early, Serve, ServerOptions, serve};
#[doc(no_inline)]
pub use service::{
    AccessLog, AccessRecord, Body, BodyError, BodyGone, BodySender, Ended, Outcome, Peer, Protocol, Remarks,
    Request, RequestBody, Response, ResponseBody, ServiceFn, service_fn, text,
};
pub use static_files::StaticFiles;
pub use uri::{Origin, UriError, parse as parse_url, resolve as resolve_reference};

/// The types of requests and responses.
pub use ::http;
/// The QUIC endpoint below, with everything that its configuration needs.
pub use posthaste_endpoint as endpoint;

/// The examples of the package's README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
