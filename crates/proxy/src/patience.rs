//! How long an upstream may be silent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

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
            ready!(timer.as_mut().poll(cx));
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
