//! A request's body as it arrives.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::SizeHint;
use hyper::body::Incoming;
use posthaste_service::{BodyError, PolledFrame};
use tokio::time::{Sleep, sleep};

/// hyper's body, with a limit for the client's silence. What the service does not read stays with the client.
pub(crate) struct RequestBody {
    body: Incoming,
    stall: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl RequestBody {
    pub(crate) fn new(body: Incoming, stall: Duration) -> Self {
        Self { body, stall, timer: None, is_over: false }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        if self.is_over {
            return Poll::Ready(None);
        }
        let next = loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                // Nothing, where a body without a length would begin (RFC 9113 section 6.1).
                Poll::Ready(Some(Ok(frame))) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                next => break next,
            }
        };
        match next {
            Poll::Ready(next) => {
                self.timer = None;
                self.is_over = !matches!(next, Some(Ok(_)));
                Poll::Ready(next.map(|next| next.map_err(|error| BodyError::Lost(Box::new(error)))))
            }
            Poll::Pending => {
                let stall = self.stall;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(stall)));
                ready!(timer.as_mut().poll(cx));
                self.is_over = true;
                Poll::Ready(Some(Err(BodyError::Stalled(stall))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
