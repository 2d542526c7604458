//! Compresses responses while they pass (RFC 9110 section 8.4).
//!
//! [`Compression`] has the codings that a server is willing to use. [`Compression::negotiate`] reads a request;
//! what it returns is applied to the response:
//! ```
//! use posthaste_content_coding::Compression;
//! use posthaste_service::{Body, Coding, Request, Response};
//!
//! let compression = Compression::new(&[Coding::Zstd, Coding::Gzip]);
//! let mut request = Request::new(Body::empty());
//! request.headers_mut().insert("accept-encoding", "gzip, br".parse().unwrap());
//! let negotiated = compression.negotiate(&request);
//!
//! let mut response = Response::new(Body::from("<p>Hello.".repeat(100)));
//! response.headers_mut().insert("content-type", "text/html".parse().unwrap());
//! negotiated.apply(&mut response);
//! assert_eq!(response.headers()["content-encoding"], "gzip");
//! ```

mod body;
mod encoder;
mod negotiated;
mod suitable;

pub use negotiated::{Compression, ENCODERS, Negotiated};
