//! What a server reports: one record per request, and its own end.

use std::net::SocketAddr;
use std::time::Duration;

use http::{Method, StatusCode, Uri};

use crate::{Protocol, Remarks};

/// Is told of each request when it is over.
pub trait AccessLog: Send + Sync {
    /// Called once per request, from many tasks; must not block for long.
    fn record(&self, record: &AccessRecord<'_>);
}

/// One request and what became of it.
#[derive(Debug, Clone)]
pub struct AccessRecord<'a> {
    /// Where it came from.
    pub client: SocketAddr,
    /// The version of HTTP that it came by.
    pub protocol: Protocol,
    /// Its method.
    pub method: &'a Method,
    /// Its target; the client's text, which may contain anything that a URI may.
    pub target: &'a Uri,
    /// The response's status; `None` if the client gave up before there was a response.
    pub status: Option<StatusCode>,
    /// From the request's first byte to the response's head; `None` without a response.
    pub first_byte: Option<Duration>,
    /// Bytes of the body that were handed to the transport.
    pub body_bytes: u64,
    /// From the request's first byte to the acknowledgement of the response's last byte. Over TCP, where the kernel keeps
    /// acknowledgements to itself: from the end of the request's head until the kernel has the response's last byte.
    pub duration: Duration,
    /// The response tells the client of HTTP/3 (`Alt-Svc`, which only servers over TCP send).
    pub tells_http3: bool,
    /// Over HTTP/3: the urgency of the response when its head was sent, 0 (first) to 7 (RFC 9218); the default, 3, without a
    /// response. `None` over TCP.
    pub urgency: Option<u8>,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// What the service has said of it.
    pub remarks: &'a Remarks,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The client has the whole response, or has closed the connection without an error after it was sent.
    Complete,
    /// The client, or the connection, gave up; why.
    Aborted(String),
    /// The service or its response's body failed: the response was reset, or is one with status 500; why.
    Failed(String),
}

/// How a server came to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Connections that were cut off because their requests were not over in time.
    pub cut_off: usize,
    /// Requests on them that were not over.
    pub requests_cut_off: usize,
}

impl std::ops::Add for Ended {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cut_off: self.cut_off + other.cut_off,
            requests_cut_off: self.requests_cut_off + other.requests_cut_off,
        }
    }
}
