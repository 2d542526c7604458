//! A response's body on its way to the client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use posthaste_service::{Body, BodyError, Outcome, PolledFrame};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

use crate::activity::Open;
use crate::record::Record;

/// Bytes of one frame: what a client must take within the stall timeout.
const FRAME: usize = 64 * 1024;

/// How long an error waits. When a body fails, hyper and h2 throw away what they have not sent, be it the head: a client that
/// was answered 200 and a part would see a request that nobody has answered.
const LAST_SENDS: Duration = Duration::from_millis(20);

/// The service's body, in frames of a bounded size. With it end the request's slot and its record.
pub(crate) struct ResponseBody {
    body: Body,
    /// What is left of a frame that was too large.
    rest: Bytes,
    /// How the body has failed, until what came before has left.
    failed: Option<(BodyError, Pin<Box<Sleep>>)>,
    record: Record,
    open: Open,
    _slot: Option<OwnedSemaphorePermit>,
}

impl ResponseBody {
    pub(crate) fn new(body: Body, record: Record, open: Open, slot: Option<OwnedSemaphorePermit>) -> Self {
        // Until the first frame is asked for, the client is what the response waits for.
        open.set_waiting(true);
        Self { body, rest: Bytes::new(), failed: None, record, open, _slot: slot }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(self.piece()))));
        }
        let body = &mut self.body;
        let poll = AssertUnwindSafe(|| http_body::Body::poll_frame(Pin::new(body), cx));
        let polled = catch_unwind(poll);
        let next = match polled {
            Ok(polled) => ready!(polled),
            Err(_) => Some(Err(BodyError::Source("the response's body panicked".into()))),
        };
        Poll::Ready(next.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Frame::data(self.piece())
                }
                Err(other) => other,
            })
        }))
    }

    fn piece(&mut self) -> Bytes {
        let piece = self.rest.split_to(self.rest.len().min(FRAME));
        self.record.body_bytes += piece.len() as u64;
        piece
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        this.open.set_waiting(false);
        if this.failed.is_none() {
            match ready!(this.poll_body(cx)) {
                Some(Ok(frame)) => {
                    this.open.set_waiting(true);
                    return Poll::Ready(Some(Ok(frame)));
                }
                Some(Err(error)) => {
                    this.record.outcome = Some(Outcome::Failed(error.to_string()));
                    this.failed = Some((error, Box::pin(sleep(LAST_SENDS))));
                }
                None => {
                    complete(&mut this.record);
                    return Poll::Ready(None);
                }
            }
        }
        if let Some((_, timer)) = &mut this.failed {
            ready!(timer.as_mut().poll(cx));
        }
        Poll::Ready(this.failed.take().map(|(error, _)| Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.failed.is_none() && self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        match hint.exact() {
            Some(exact) => SizeHint::with_exact(exact + rest),
            None => SizeHint::default(),
        }
    }
}

/// A failure that the service has had before stays.
fn complete(record: &mut Record) {
    record.outcome.get_or_insert(Outcome::Complete);
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        // A body that says with its last frame that this is the last one is not asked again.
        if http_body::Body::is_end_stream(self) {
            complete(&mut self.record);
        }
    }
}
