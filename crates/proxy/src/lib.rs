//! A reverse proxy as a service: one request in, one request to an upstream out, by HTTP/1.1 or by HTTP/2 without TLS.
//!
//! [`Proxy`] is a `tower_service::Service` on the types of `posthaste-service`. It knows neither where requests come from
//! nor files of configuration.
//!
//! # Messages
//! - Bodies stream both ways, and the receiver sets the pace. Trailers of responses are forwarded; those of requests if a
//!   `trailer` field announces them.
//! - A request goes to the upstream with its announced length, in chunks, or without a body; which of these, is decided
//!   when its body begins or ends. Of an announced length the last bytes wait for the end of the request: an upstream
//!   never gets a whole request of a message that is not whole.
//! - A response that breaks off ends with an error, never like one that is whole.
//! - After any error, and when the client gives up, the connection to the upstream is closed.
//! - The upstream gets exactly one `Host`, the site that was asked for; `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`
//!   written anew, unless the client is [trusted](ProxyOptions::trusted); `Via`; and no field that speaks of the client's
//!   connection.
//! - WebSocket (RFC 6455) passes by HTTP/1.1's upgrade and by extended CONNECT (RFC 8441, RFC 9220), if the server in front
//!   offers [`Upgrade`](posthaste_service::Upgrade); the upstream gets the upgrade of HTTP/1.1. Bytes then pass both ways as
//!   they are. Other protocols are not offered to upstreams, and upstreams over HTTP/2 get no WebSocket.
//!
//! # Several upstreams
//! - The upstream with the fewest open requests gets the next; of several, the first. The choice depends on nothing else.
//! - A request that may be repeated, and of whose body nothing was read, is sent once more where it failed: to another
//!   upstream if there is one.
//! - An upstream to which three connections in a row fail is left out for a second, then for two, four, up to a minute, until
//!   a connection succeeds. If all are left out, the one whose time ends first is asked.
//! - [Health checks](HealthCheck) keep requests from upstreams that they find down.
//!
//! # Answers of its own
//! | status | when |
//! |---|---|
//! | 400 | the request cannot be forwarded as it is, or its body is not whole |
//! | 408 | the client stalls in its body |
//! | 501 | CONNECT, but for WebSocket; WebSocket to an upstream over HTTP/2 |
//! | 502 | no connection, no valid response, a change of protocol that nobody asked for, or a success without the change that extended CONNECT asked for |
//! | 503 | health checks have found all upstreams down |
//! | 504 | no connection or no response in time |
//! | 508 | the request has passed a proxy of this name |
//!
//! # Example
//! ```no_run
//! use posthaste_proxy::{Proxy, ProxyOptions, Upstream};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let upstream = Upstream::new(&"http://127.0.0.1:3000".parse()?, None)?;
//! let proxy = Proxy::new(upstream, ProxyOptions::default())?;
//! // posthaste_http::serve(endpoint, proxy).await;
//! # Ok(())
//! # }
//! ```

mod attempt;
mod balance;
mod connector;
mod download;
mod driven;
mod failure;
mod forwarded;
mod framing;
mod from_upstream;
mod health;
mod http1;
mod limits;
mod link;
mod observer;
mod options;
mod patience;
mod pool;
mod proxy;
mod received;
mod to_upstream;
mod tunnel;
mod upload;
mod upstream;
mod websocket;

pub use health::HealthCheck;
pub use observer::{UpstreamFailure, UpstreamHealth, UpstreamLog, UpstreamState};
pub use options::ProxyOptions;
pub use proxy::{InvalidName, Proxy};
pub use upstream::{Upstream, UpstreamError};

/// Networks, for [`ProxyOptions::trusted`].
pub use ipnet;
