//! A body that is compressed while it is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame};
use posthaste_service::{Body, BodyError, PolledFrame};
use tokio::sync::OwnedSemaphorePermit;

use crate::encoder::Encoder;

/// Bytes that are compressed at a time: a frame of a file in memory is longer, and output goes out before all of it is done.
const PIECE: usize = 32 * 1024;

/// Bytes of output that are sent without waiting for more: about six datagrams.
const ENOUGH: usize = 8 * 1024;

pub(crate) struct CompressedBody {
    source: Body,
    state: State,
}

enum State {
    Content(Content),
    /// The content is complete; its last bytes may be left, and the trailers.
    Ended {
        rest: Bytes,
        trailers: Option<HeaderMap>,
    },
}

struct Content {
    encoder: Encoder,
    /// What is left of the source's last frame.
    input: Bytes,
    /// The encoder may hold back something of what it has taken.
    holds_back: bool,
    /// Returned when the content is complete: encoders are bounded.
    _permit: OwnedSemaphorePermit,
}

impl CompressedBody {
    pub(crate) fn new(source: Body, encoder: Encoder, permit: OwnedSemaphorePermit) -> Self {
        let content = Content { encoder, input: Bytes::new(), holds_back: false, _permit: permit };
        Self { source, state: State::Content(content) }
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<(), BodyError> {
        let ended = State::Ended { rest: Bytes::new(), trailers };
        if let State::Content(content) = std::mem::replace(&mut self.state, ended)
            && let State::Ended { rest, .. } = &mut self.state
        {
            *rest = content.encoder.finish()?;
        }
        Ok(())
    }

    /// The next data, or `None` if the source has ended.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            let State::Content(content) = &mut self.state else { return Poll::Ready(Ok(None)) };
            if let Some(output) = content.compress()? {
                return Poll::Ready(Ok(Some(output)));
            }
            let Poll::Ready(frame) = Pin::new(&mut self.source).poll_frame(cx) else {
                // Nobody knows when more comes: what is there goes out. The source wakes the task all the same.
                return content.flush()?.map_or(Poll::Pending, |output| Poll::Ready(Ok(Some(output))));
            };
            match frame.transpose()?.map(Frame::into_data) {
                Some(Ok(data)) => content.input = data,
                Some(Err(other)) => self.end(other.into_trailers().ok())?,
                None => self.end(None)?,
            }
        }
    }
}

impl Content {
    /// Compresses what the source has given, until there is enough to send.
    fn compress(&mut self) -> Result<Option<Bytes>, BodyError> {
        while !self.input.is_empty() {
            let piece = self.input.split_to(self.input.len().min(PIECE));
            self.encoder.write(&piece)?;
            self.holds_back = true;
            if self.encoder.ready() >= ENOUGH {
                return Ok(Some(self.encoder.take()));
            }
        }
        Ok(None)
    }

    /// All that was compressed; `None` if that is nothing.
    fn flush(&mut self) -> Result<Option<Bytes>, BodyError> {
        if std::mem::take(&mut self.holds_back) {
            self.encoder.flush()?;
        }
        Ok(Some(self.encoder.take()).filter(|output| !output.is_empty()))
    }
}

impl http_body::Body for CompressedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        if let Some(data) = ready!(self.poll_content(cx)?) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let State::Ended { rest, trailers } = &mut self.state else { return Poll::Ready(None) };
        if !rest.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(rest)))));
        }
        Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.state, State::Ended { rest, trailers: None } if rest.is_empty())
    }
}
