//! Bodies that another task feeds.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::mpsc;

use super::body::PolledFrame;
use super::error::{BodyError, BoxError};

/// Frames that wait in a channel between the task that feeds a body and the one that reads it.
const CHANNEL_FRAMES: usize = 1;

/// Feeds the body that [`Body::channel`](super::Body::channel) has made with it.
///
/// Dropped without [`finish`](Self::finish), the body ends with [`BodyError::Unfinished`]: a task that fails half-way does
/// not make a fragment look like the whole.
#[derive(Debug)]
pub struct BodySender(mpsc::Sender<Item>);

#[derive(Debug)]
enum Item {
    Data(Bytes),
    /// They are the end, too.
    Trailers(HeaderMap),
    Error(BodyError),
    End,
}

/// Nobody reads the body any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody reads the body any more")]
pub struct BodyGone;

impl BodySender {
    /// Sends data; waits while the reader is not ready for it.
    ///
    /// # Errors
    /// The reader has left.
    pub async fn send(&self, data: impl Into<Bytes>) -> Result<(), BodyGone> {
        self.item(Item::Data(data.into())).await
    }

    /// Ends the body, whole.
    ///
    /// # Errors
    /// The reader has left.
    pub async fn finish(self) -> Result<(), BodyGone> {
        self.item(Item::End).await
    }

    /// Ends the body, whole, with trailers (RFC 9110 section 6.5).
    ///
    /// # Errors
    /// The reader has left.
    pub async fn finish_with(self, trailers: HeaderMap) -> Result<(), BodyGone> {
        self.item(Item::Trailers(trailers)).await
    }

    /// Ends the body with an error: what was sent is not the whole.
    ///
    /// # Errors
    /// The reader has left.
    pub async fn fail(self, error: impl Into<BoxError>) -> Result<(), BodyGone> {
        self.item(Item::Error(BodyError::of_source(error.into()))).await
    }

    /// Waits until the reader has left.
    pub async fn closed(&self) {
        self.0.closed().await;
    }

    async fn item(&self, item: Item) -> Result<(), BodyGone> {
        self.0.send(item).await.map_err(|_| BodyGone)
    }
}

/// The reader's end.
pub(crate) struct ChannelBody {
    /// `None` behind the end.
    items: Option<mpsc::Receiver<Item>>,
}

pub(crate) fn channel() -> (BodySender, ChannelBody) {
    let (sender, items) = mpsc::channel(CHANNEL_FRAMES);
    (BodySender(sender), ChannelBody { items: Some(items) })
}

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let Some(items) = &mut self.items else { return Poll::Ready(None) };
        let end = match ready!(items.poll_recv(cx)) {
            Some(Item::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Item::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Item::End) => None,
            Some(Item::Error(error)) => Some(Err(error)),
            None => Some(Err(BodyError::Unfinished)),
        };
        self.items = None;
        Poll::Ready(end)
    }

    fn is_end_stream(&self) -> bool {
        self.items.is_none()
    }
}
