//! Early hints: what a client can fetch while it waits for the response.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

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

/// What lies between the two. Every request has one and hardly any uses it, so it is no more than an allocation.
#[derive(Debug, Default)]
struct Pending(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    fields: VecDeque<HeaderMap>,
    /// The task that waits for more.
    receiver: Option<Waker>,
    /// Nobody takes hints any more.
    is_over: bool,
}

impl Pending {
    /// The state is whole after every statement, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
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
        let mut state = self.0.lock();
        if state.is_over || state.fields.len() >= PENDING {
            return;
        }
        state.fields.push_back(fields);
        let receiver = state.receiver.take();
        drop(state);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }
}

impl HintsReceiver {
    /// The fields of the next 103, if it is there.
    pub fn try_next(&mut self) -> Option<HeaderMap> {
        self.0.lock().fields.pop_front()
    }

    /// The fields of the next 103. Never resolves when there will be none. Cancel safe.
    pub async fn next(&mut self) -> HeaderMap {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(fields) = state.fields.pop_front() {
                return Poll::Ready(fields);
            }
            match &mut state.receiver {
                Some(receiver) => receiver.clone_from(cx.waker()),
                receiver => *receiver = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }
}

impl Drop for HintsReceiver {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over = true;
        state.fields.clear();
        state.receiver = None;
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
    async fn a_waiting_server_is_woken() {
        let (hints, mut receiver) = EarlyHints::channel();
        let mut next = pin!(receiver.next());
        assert!(futures::poll!(&mut next).is_pending());
        let sender = tokio::spawn(async move { hints.send(link("<1>")) });
        assert_eq!(next.await, link("<1>"));
        sender.await.unwrap();
    }

    #[test]
    fn what_nobody_takes_is_not_kept() {
        let (hints, receiver) = EarlyHints::channel();
        hints.send(link("<1>"));
        drop(receiver);
        hints.send(link("<2>"));
        assert!(hints.0.lock().fields.is_empty());
    }
}
