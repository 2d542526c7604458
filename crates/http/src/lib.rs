//! HTTP/3 server and client on the Posthaste endpoint.
mod handler;
mod static_files;
mod quic_adapter;
pub use handler::*;
pub use static_files::*;
