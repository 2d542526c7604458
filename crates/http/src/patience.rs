//! Timeouts that bear with a connection as long as it moves.
//!
//! Responses go one after the other where the client asked for that (RFC 9218 section 10), so one that stands still
//! may only be waiting for its turn. What counts against a peer is a connection on which nothing moves.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Counts what moves on a connection.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    /// Something moved.
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How much has moved so far; only whether it is another than before says something.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The operation's result, or `None` if for `limit` neither it nor anything else on the connection moved. Most
    /// operations are ready at once, so there is a timer only for those that are not. The operation is pinned by the
    /// caller because an `async fn` keeps room for an argument twice: as it came, and as it is awaited.
    pub(crate) async fn wait<T>(
        &self,
        limit: Duration,
        mut operation: Pin<&mut impl Future<Output = T>>,
    ) -> Option<T> {
        let mut timer = pin!(None::<Sleep>);
        let mut before = self.count();
        poll_fn(|cx| {
            if let Poll::Ready(result) = operation.as_mut().poll(cx) {
                return Poll::Ready(Some(result));
            }
            if timer.is_none() {
                timer.set(Some(sleep(limit)));
            }
            while let Some(mut timer) = timer.as_mut().as_pin_mut() {
                ready!(timer.as_mut().poll(cx));
                if self.count() == before {
                    break;
                }
                before = self.count();
                timer.reset(Instant::now() + limit);
            }
            Poll::Ready(None)
        })
        .await
    }
}

/// The operation's result, or `None` if it takes longer than `limit`; as [`Progress::wait`], with nothing to bear with.
pub(crate) async fn in_time<T>(limit: Duration, operation: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    Progress::default().wait(limit, operation).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silence_has_a_limit() {
        let progress = Progress::default();
        progress.note();
        assert_eq!(progress.wait(Duration::from_millis(20), pin!(std::future::pending::<()>())).await, None);
        assert_eq!(progress.wait(Duration::from_millis(20), pin!(async { 7 })).await, Some(7));
    }

    #[tokio::test]
    async fn what_is_late_ends() {
        assert_eq!(in_time(Duration::from_millis(20), pin!(std::future::pending::<()>())).await, None);
        assert_eq!(in_time(Duration::ZERO, pin!(async { 7 })).await, Some(7), "what is ready is in time");
    }

    #[tokio::test]
    async fn who_waits_for_others_is_borne_with() {
        let progress = Progress::default();
        let others = async {
            for _ in 0..12 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                progress.note();
            }
        };
        // Its turn comes after more than the limit.
        assert_eq!(progress.wait(Duration::from_millis(400), pin!(others)).await, Some(()));
    }
}
