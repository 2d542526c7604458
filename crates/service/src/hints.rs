//! Early hints: what a client can fetch while it waits for the response.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use http::HeaderMap;

/// Hints of a request that its server has not taken yet, at most; further ones are dropped.
const PENDING: usize = 4;

/// The way for informational responses with status 103 (RFC 8297), ahead of the response: an extension of the request.
/// Servers add it where the version of HTTP carries them. What comes with the response or behind it is dropped.
///
/// # Example
/// ```
/// use http::header::{HeaderMap, HeaderValue, LINK};
/// use posthaste_service::{EarlyHints, Request};
///
/// fn hint(request: &Request) {
///     let Some(hints) = request.extensions().get::<EarlyHints>() else { return };
///     let link = HeaderValue::from_static("</style.css>; rel=preload; as=style");
///     hints.send(HeaderMap::from_iter([(LINK, link)]));
/// }
/// ```
#[derive(Debug, Clone)]
pub struct EarlyHints(Arc<Pending>);

/// A server's end of [`EarlyHints`].
#[derive(Debug)]
pub struct HintsReceiver(Arc<Pending>);

/// What the server has not taken. Every request has one and few use it: a channel of tokio's would take a block of memory
/// for 32 hints.
#[derive(Debug, Default)]
struct Pending(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    hints: VecDeque<HeaderMap>,
    /// The server, if it waits.
    server: Option<Waker>,
}

impl Pending {
    /// All is whole after every call.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EarlyHints {
    /// The two ends of a request's way.
    pub fn channel() -> (Self, HintsReceiver) {
        let pending = Arc::<Pending>::default();
        (Self(Arc::clone(&pending)), HintsReceiver(pending))
    }

    /// Sends a 103 with these fields, which should be `Link` fields. It never waits: hints that the client is too slow for
    /// are dropped.
    pub fn send(&self, fields: HeaderMap) {
        let mut waiting = self.0.lock();
        if waiting.hints.len() < PENDING {
            waiting.hints.push_back(fields);
            if let Some(server) = waiting.server.take() {
                server.wake();
            }
        }
    }
}

impl HintsReceiver {
    /// The fields of the next 103, if it is there.
    pub fn try_next(&mut self) -> Option<HeaderMap> {
        self.0.lock().hints.pop_front()
    }

    /// The fields of the next 103. Never resolves when there will be none. Cancel safe.
    pub async fn next(&mut self) -> HeaderMap {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<HeaderMap> {
        let mut waiting = self.0.lock();
        if let Some(fields) = waiting.hints.pop_front() {
            return Poll::Ready(fields);
        }
        if !waiting.server.as_ref().is_some_and(|server| server.will_wake(cx.waker())) {
            waiting.server = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn link(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::header::LINK, http::HeaderValue::from_static(text))])
    }

    #[tokio::test]
    async fn hints_arrive_in_order_and_too_many_are_dropped() {
        let (hints, mut receiver) = EarlyHints::channel();
        assert_eq!(receiver.try_next(), None);
        let texts = ["<1>", "<2>", "<3>", "<4>", "<5>"];
        for text in &texts {
            hints.send(link(text));
        }
        for text in &texts[..PENDING] {
            assert_eq!(receiver.next().await, link(text));
        }
        assert_eq!(receiver.try_next(), None);
    }

    #[tokio::test]
    async fn a_server_waits_for_hints_that_never_come() {
        let (hints, mut receiver) = EarlyHints::channel();
        drop(hints);
        assert!(futures::poll!(pin!(receiver.next())).is_pending());
    }
}
