//! Requests that cannot be forwarded, and the answers to them.

use std::time::Duration;

use http::StatusCode;
use posthaste_service::{BodyError, Response, text};

use crate::observer::UpstreamFailure;

/// Why a request has no response of an upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It is not a request that can be forwarded.
    #[error("{1}")]
    Refused(StatusCode, &'static str),
    /// Its body broke off.
    #[error("the request's body is not whole: {0}")]
    Body(BodyError),
    /// Health checks have found all upstreams down.
    #[error("no server behind this one is well")]
    NoneWell,
    /// No connection could be made.
    #[error("the server behind this one cannot be reached")]
    Connect(#[source] BoxError),
    /// None was made in time.
    #[error("the server behind this one did not accept a connection within {} s", .0.as_secs_f64())]
    ConnectTimeout(Duration),
    /// The upstream was silent.
    #[error("the server behind this one did not answer within {} s", .0.as_secs_f64())]
    HeadTimeout(Duration),
    /// The upstream left, or what it sent is not a response.
    #[error("the server behind this one sent no valid response")]
    NoResponse(#[source] BoxError),
    /// The upstream speaks another protocol from now on, for which nobody asked it.
    #[error("the server behind this one changed its protocol")]
    Switched,
    /// The upstream answers as if it had not been asked for another protocol, and the client cannot be told so.
    #[error("the server behind this one did not change its protocol")]
    NotSwitched,
}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(status, _) => *status,
            Self::Body(BodyError::Stalled(_)) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Connect(_) | Self::NoResponse(_) | Self::Switched | Self::NotSwitched => {
                StatusCode::BAD_GATEWAY
            }
            Self::NoneWell => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout(_) | Self::HeadTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// What the client is told. Names and addresses of upstreams are for the log.
    pub(crate) fn response(&self) -> Response {
        text(self.status(), &self.to_string())
    }

    /// For the log: with all causes.
    pub(crate) fn detail(&self) -> String {
        let mut detail = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            detail.push_str(": ");
            detail.push_str(&error.to_string());
            cause = error.source();
        }
        detail
    }

    /// What the upstream that was asked has failed at, if it has.
    pub(crate) fn reason(&self) -> Option<UpstreamFailure> {
        match self {
            Self::Refused(..) | Self::Body(_) | Self::NoneWell | Self::NotSwitched => None,
            Self::Connect(_) => Some(UpstreamFailure::Connect),
            Self::ConnectTimeout(_) => Some(UpstreamFailure::ConnectTimeout),
            Self::HeadTimeout(_) => Some(UpstreamFailure::HeadTimeout),
            Self::NoResponse(_) | Self::Switched => Some(UpstreamFailure::Response),
        }
    }

    /// True if the upstream is at fault, and not the request.
    pub(crate) fn is_of_upstream(&self) -> bool {
        !matches!(self, Self::Refused(..) | Self::Body(_))
    }

    /// True if there was no connection, so that nothing of the request was sent.
    pub(crate) fn is_of_connecting(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout(_))
    }

    /// True if another upstream may be reached where this one was not.
    pub(crate) fn may_pass_elsewhere(&self) -> bool {
        self.may_pass() || matches!(self, Self::ConnectTimeout(_))
    }

    /// True if another attempt may go better. What was slow will not be faster.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::NoResponse(_))
    }
}
