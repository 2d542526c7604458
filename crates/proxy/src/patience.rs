//! How long an upstream may be silent.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::coop;
use tokio::time::{Instant, Sleep, sleep};

use crate::upload::Upload;

/// Measures an upstream's silence. While the request's body moves, or waits for its client, there is nothing to say.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    upload: Arc<Upload>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Frames of the upload when the timer was set.
    seen: u64,
}

impl Patience {
    pub(crate) fn new(limit: Duration, upload: &Arc<Upload>) -> Self {
        Self { limit, upload: Arc::clone(upload), timer: None, seen: 0 }
    }

    /// The longest silence.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Ready when the upstream has been silent for too long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let frames = self.upload.frames();
            let timer = self.timer.get_or_insert_with(|| {
                self.seen = frames;
                Box::pin(sleep(self.limit))
            });
            // An upstream whose bytes never end, none of which is an answer, uses up the task's budget ahead of each look
            // at the timer.
            ready!(pin!(coop::unconstrained(timer.as_mut())).poll(cx));
            if frames == self.seen && !self.upload.waits_for_client() {
                return Poll::Ready(());
            }
            self.seen = frames;
            timer.as_mut().reset(Instant::now() + self.limit);
        }
    }

    /// The upstream has said something.
    pub(crate) fn renew(&mut self) {
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use posthaste_service::Body;
    use tokio::time::timeout;

    use super::*;
    use crate::framing::Begun;

    #[tokio::test]
    async fn a_task_that_always_has_something_to_read_comes_to_its_timeout() {
        let upload = Upload::new(Begun { first: None, rest: Body::empty() });
        let mut patience = Patience::new(Duration::from_millis(10), &upload);
        let reading = poll_fn(|cx| {
            while let Poll::Ready(read) = coop::poll_proceed(cx) {
                read.made_progress();
            }
            patience.poll(cx)
        });
        timeout(Duration::from_secs(10), reading).await.expect("the timeout does not come");
    }
}
