//! HTTP/3 server and client on the Posthaste endpoint.
//!
//! - [`server`]: [`serve`] runs a [`Handler`] on an endpoint.
//! - [`StaticFiles`]: a handler that serves the files below a directory.
//! - [`client`]: a [`Client`] that shares one connection an origin between parallel requests.
//!
//! QUIC comes from `posthaste-endpoint`, framing and QPACK from the h3 crate; one file, `quic_adapter.rs`, knows both.

pub mod client;
pub mod server;

mod handler;
mod quic_adapter;
mod static_files;
mod uri;

pub use client::{Client, ClientError, ClientOptions, ConnectionReport};
pub use handler::{Body, Handler, HandlerFuture, Response};
pub use server::{ALPN, AccessLog, AccessRecord, Ended, Outcome, ServerOptions, serve};
pub use static_files::{FileBody, StaticFiles};
pub use uri::{Origin, UriError, parse as parse_url};
