//! Timeouts that bear with a connection as long as it moves.
//!
//! Responses go one after the other where the client asked for that (RFC 9218 section 10), so one that stands still
//! may only be waiting for its turn. What counts against a peer is a connection on which nothing moves.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;

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

    /// The operation's result, or `None` if for `limit` neither it nor anything else on the connection moved.
    pub(crate) async fn wait<T>(&self, limit: Duration, operation: impl Future<Output = T>) -> Option<T> {
        let mut operation = pin!(operation);
        loop {
            let before = self.0.load(Ordering::Relaxed);
            match timeout(limit, operation.as_mut()).await {
                Ok(result) => return Some(result),
                Err(_) if self.0.load(Ordering::Relaxed) == before => return None,
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silence_has_a_limit() {
        let progress = Progress::default();
        progress.note();
        assert_eq!(progress.wait(Duration::from_millis(20), std::future::pending::<()>()).await, None);
        assert_eq!(progress.wait(Duration::from_millis(20), async { 7 }).await, Some(7));
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
        assert_eq!(progress.wait(Duration::from_millis(400), others).await, Some(()));
    }
}
