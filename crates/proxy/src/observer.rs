//! What is told of an upstream to those who count.

use std::sync::Arc;
use std::time::Duration;

/// Is told what happens with an [`Upstream`](crate::Upstream). Called from many tasks; must not block for long.
pub trait UpstreamLog: Send + Sync {
    /// A connection was made, TLS included, in this time.
    fn connected(&self, time: Duration);

    /// A connection that was [made](Self::connected) has ended.
    fn disconnected(&self);

    /// The head of a response has come. The time is from the moment at which the request was ready to be sent: a
    /// connection that had to be made and the request's body are parts of it.
    fn answered(&self, time: Duration);

    /// A request got no whole response, or none from this upstream.
    fn failed(&self, reason: UpstreamFailure);
}

/// What an upstream has failed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UpstreamFailure {
    /// No connection could be made.
    Connect,
    /// No connection was made in time.
    ConnectTimeout,
    /// It was silent before its response.
    HeadTimeout,
    /// It left, or what it sent is no valid response.
    Response,
    /// The body of its response broke off, or it was silent within it.
    Body,
}

impl UpstreamFailure {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Connect, Self::ConnectTimeout, Self::HeadTimeout, Self::Response, Self::Body];

    /// A short name for metrics: `connect`, `connect_timeout`, `head_timeout`, `response` or `body`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::HeadTimeout => "head_timeout",
            Self::Response => "response",
            Self::Body => "body",
        }
    }
}

/// Whether an upstream gets requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum UpstreamHealth {
    /// It does.
    Well,
    /// Not for a while, because connections to it have failed.
    LeftOut,
    /// Not until a health check succeeds.
    Down,
}

/// How an upstream is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamState {
    /// Its URL.
    pub url: String,
    /// Requests whose responses have not ended.
    pub open: usize,
    /// Whether it gets requests.
    pub health: UpstreamHealth,
}

/// A connection that is counted: its end is told when this is dropped.
pub(crate) struct Counted(Arc<dyn UpstreamLog>);

impl Counted {
    pub(crate) fn connected(log: &Arc<dyn UpstreamLog>, time: Duration) -> Self {
        log.connected(time);
        Self(Arc::clone(log))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.disconnected();
    }
}
