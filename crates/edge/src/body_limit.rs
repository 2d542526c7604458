//! A bound on requests' bodies.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{StatusCode, header};
use http_body::{Body as _, SizeHint};
use posthaste_service::{Body, BodyError, PolledFrame, Request, Response, text};

/// Becomes true when a body was too long.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exceeded(Arc<AtomicBool>);

impl Exceeded {
    /// The response that tells the client of it, if that is why there is an error.
    pub(crate) fn instead_of(&self, response: Response) -> Response {
        let is_error = response.status().is_server_error() || response.status() == StatusCode::BAD_REQUEST;
        if is_error && self.0.load(Ordering::Relaxed) { too_long() } else { response }
    }
}

/// The response to a request whose body is too long.
pub(crate) fn too_long() -> Response {
    text(StatusCode::PAYLOAD_TOO_LARGE, "the request's body is longer than this site takes")
}

/// Bounds a request's body to `most` bytes: what comes behind them ends it with an error. `None` if the announced length is
/// above that.
pub(crate) fn bound(request: Request, most: u64) -> Option<(Request, Exceeded)> {
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most) {
        return None;
    }
    let exceeded = Exceeded::default();
    let limited = |body: Body| {
        if body.is_end_stream() {
            return body;
        }
        let bounded = usize::try_from(most).unwrap_or(usize::MAX);
        Body::new(Limited { body, most: bounded, left: most, exceeded: exceeded.clone() })
    };
    Some((request.map(limited), exceeded))
}

struct Limited {
    body: Body,
    most: usize,
    left: u64,
    exceeded: Exceeded,
}

impl http_body::Body for Limited {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            _ => 0,
        };
        let Some(left) = self.left.checked_sub(length) else {
            self.left = 0;
            self.exceeded.0.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(BodyError::TooLong { limit: self.most })));
        };
        self.left = left;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
