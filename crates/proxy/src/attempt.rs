//! One request sent to an upstream, and once more where that is safe.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::{HeaderValue, Method, Version, header};
use posthaste_service::{EARLY_DATA, EarlyHints};
use tokio::time::Instant;

use crate::balance::{Group, Lease};
use crate::failure::Failure;
use crate::framing::Framing;
use crate::from_upstream;
use crate::patience::Patience;
use crate::received::Received;
use crate::to_upstream::Outline;
use crate::upload::{Outgoing, Upload};

/// What is sent to the upstream.
pub(crate) struct Attempt<'a> {
    pub(crate) group: &'a Arc<Group>,
    pub(crate) outline: &'a Outline,
    pub(crate) framing: Framing,
    pub(crate) upload: &'a Arc<Upload>,
    /// The client's way for early hints.
    pub(crate) hints: Option<&'a EarlyHints>,
    /// Longest silence of the upstream.
    pub(crate) patience: Duration,
}

impl Attempt<'_> {
    /// Sends the request. If that fails before any of its body was read, and the request may be repeated (RFC 9110
    /// section 9.2.2), sends it once more: to another upstream if there is one, else by another connection. Whatever it is,
    /// another upstream gets it if there was no connection to send it by.
    ///
    /// # Errors
    /// There is no response.
    pub(crate) async fn make(&self, is_early: bool) -> Result<(http::Response<Received>, Lease), Failure> {
        let first = self.group.choose(Instant::now()).ok_or(Failure::NoneWell)?;
        let failure = match self.once(&first, is_early).await {
            Ok(response) => return Ok((response, first)),
            Err(failure) => failure,
        };
        let may_have_arrived = !failure.is_of_connecting();
        if (may_have_arrived && !self.is_repeatable()) || !self.upload.is_untouched() {
            return Err(failure);
        }
        let other = self.group.choose_other(Instant::now(), &first);
        let next = match other {
            Some(other) if failure.may_pass_elsewhere() => other,
            _ if failure.may_pass() && self.is_repeatable() => first,
            _ => return Err(failure),
        };
        tracing::debug!(failure = failure.detail(), upstream = %next.upstream(), "asking once more");
        self.once(&next, is_early).await.map(|response| (response, next))
    }

    fn is_repeatable(&self) -> bool {
        matches!(
            self.outline.method,
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        )
    }

    async fn once(&self, lease: &Lease, is_early: bool) -> Result<http::Response<Received>, Failure> {
        let began = Instant::now();
        let sent = self.send(lease, is_early).await;
        match &sent {
            Ok(_) => {
                lease.connected();
                lease.answered(began.elapsed());
            }
            Err(failure) => {
                if failure.is_of_connecting() {
                    lease.not_connected(Instant::now());
                }
                lease.failed(failure.reason());
            }
        }
        sent
    }

    async fn send(&self, lease: &Lease, is_early: bool) -> Result<http::Response<Received>, Failure> {
        let mut sending = pin!(lease.pool().request(self.request(lease, is_early)));
        let mut patience = Patience::new(self.patience, self.upload);
        let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Some(sent)),
            Poll::Pending => patience.poll(cx).map(|()| None),
        })
        .await;
        let sent = sent.ok_or(Failure::HeadTimeout(self.patience))?;
        // Whose fault it is decides.
        sent.map_err(|failure| self.upload.fault().map_or(failure, Failure::Body))
    }

    fn request(&self, lease: &Lease, is_early: bool) -> http::Request<Outgoing> {
        let mut request = http::Request::new(Outgoing::new(self.upload, self.framing));
        *request.method_mut() = self.outline.method.clone();
        *request.uri_mut() = lease.upstream().target(&self.outline.authority, self.outline.path.clone());
        let is_http2 = lease.upstream().is_http2();
        *request.version_mut() = if is_http2 { Version::HTTP_2 } else { Version::HTTP_11 };
        let fields = request.headers_mut();
        fields.clone_from(&self.outline.fields);
        self.framing.write(fields, &self.outline.trailers);
        if is_http2 {
            // RFC 9113 section 8.2.2; the URI says what `Host` says.
            for name in [header::CONNECTION, header::HOST, header::TRANSFER_ENCODING] {
                fields.remove(name);
            }
        }
        if let Some(hints) = self.hints.filter(|_| !is_http2).cloned() {
            hyper::ext::on_informational(&mut request, move |head| {
                from_upstream::hint(head.status(), head.headers(), &hints);
            });
        }
        if is_early {
            request.headers_mut().insert(EARLY_DATA, HeaderValue::from_static("1"));
        }
        request
    }
}
