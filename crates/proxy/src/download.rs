//! A response's body on its way from the upstream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use posthaste_service::{BodyError, PolledFrame};

use crate::balance::Lease;
use crate::from_upstream;
use crate::observer::UpstreamFailure;
use crate::patience::Patience;
use crate::received::Received;
use crate::upload::Upload;

/// The body that the client gets. Its end, whole or not, is the end of the exchange: what is left of the upload is given
/// up. One that breaks off ends with an error, never like one that is whole.
#[derive(Debug)]
pub(crate) struct Download {
    body: Received,
    upload: Arc<Upload>,
    /// How long the upstream may be silent; `None` for any time.
    patience: Option<Patience>,
    /// The upstream is at work until the end.
    lease: Lease,
}

impl Download {
    pub(crate) fn new(body: Received, upload: Arc<Upload>, patience: Option<Patience>, lease: Lease) -> Self {
        Self { body, upload, patience, lease }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> PolledFrame {
        let next = http_body::Body::poll_frame(Pin::new(&mut self.body), cx);
        let Some(patience) = &mut self.patience else { return next.map(|next| next.map(frame)) };
        match next {
            Poll::Ready(next) => {
                patience.renew();
                Poll::Ready(next.map(frame))
            }
            Poll::Pending => patience.poll(cx).map(|()| Some(Err(BodyError::Stalled(patience.limit())))),
        }
    }
}

impl http_body::Body for Download {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let next = self.next(cx);
        if matches!(next, Poll::Ready(Some(Err(_)))) {
            self.lease.failed(Some(UpstreamFailure::Body));
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.body)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.body)
    }
}

fn frame(next: Result<Frame<Bytes>, BodyError>) -> Result<Frame<Bytes>, BodyError> {
    match next?.into_trailers() {
        Ok(trailers) => Ok(Frame::trailers(from_upstream::trailers(trailers))),
        Err(frame) => Ok(frame),
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.upload.give_up();
    }
}
