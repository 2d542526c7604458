//! A response's body as the upstream sends it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::SizeHint;
use hyper::body::Incoming;
use posthaste_service::{BodyError, PolledFrame};

use crate::driven::Driven;
use crate::http1::Kept;

/// A body, and the connection by which it comes if that is for nobody else to drive. Dropped before its end, the
/// connection is closed.
pub(crate) struct Received {
    body: Incoming,
    link: Option<(Driven, Arc<Kept>)>,
}

impl Received {
    /// Its connection is driven by a task.
    pub(crate) fn driven_elsewhere(body: Incoming) -> Self {
        Self { body, link: None }
    }

    /// Drives its connection, and leaves it to `kept` behind the end.
    pub(crate) fn driven_by(link: Driven, body: Incoming, kept: Arc<Kept>) -> Self {
        Self { body, link: Some((link, kept)) }
    }

    /// Leaves the connection to a task: it changes its protocol.
    pub(crate) fn detach(&mut self) {
        if let Some((link, _)) = self.link.take() {
            link.detach();
        }
    }

    /// The exchange has ended.
    fn end(&mut self) {
        if let Some((link, kept)) = self.link.take() {
            kept.put(link);
        }
    }
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = &mut *self;
        let mut body = Pin::new(&mut this.body);
        let next = match &mut this.link {
            None => ready!(body.poll_frame(cx)),
            Some((link, _)) => {
                let Some(next) = ready!(link.poll_until(cx, |cx| body.as_mut().poll_frame(cx))) else {
                    this.link = None;
                    return Poll::Ready(Some(Err(BodyError::Unfinished)));
                };
                next
            }
        };
        if next.is_none() {
            this.end();
        }
        Poll::Ready(next.map(|next| next.map_err(|error| BodyError::Source(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        if http_body::Body::is_end_stream(&self.body) {
            self.end();
        }
    }
}

impl std::fmt::Debug for Received {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.body.fmt(f)
    }
}
