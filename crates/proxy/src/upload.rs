//! A request's body on its way to the upstream.

use std::cmp::Ordering::{Equal, Greater, Less};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use posthaste_service::BodyError;

use crate::framing::{Begun, Framing};

/// What the two directions of one exchange know of the upload.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    /// The body, until somebody begins to read it.
    unread: Mutex<Option<Begun>>,
    /// Why it is not whole, if so.
    fault: Mutex<Option<BodyError>>,
    frames: AtomicU64,
    waits_for_client: AtomicBool,
    /// Nothing of it is left to send.
    is_over: AtomicBool,
    stage: AtomicU8,
    waker: AtomicWaker,
}

/// The upload goes on.
const RUNS: u8 = 0;
/// Nothing more is sent, and the connection stays as it is: the upstream has refused the request.
const HELD: u8 = 1;
/// The exchange is over.
const OVER: u8 = 2;

impl Upload {
    /// Of this body.
    pub(crate) fn new(body: Begun) -> Arc<Self> {
        Arc::new(Self { unread: Mutex::new(Some(body)), ..Self::default() })
    }

    /// Whether nothing of the body has been read.
    pub(crate) fn is_untouched(&self) -> bool {
        lock(&self.unread).is_some()
    }

    /// Why the body is not whole, if it is not.
    pub(crate) fn fault(&self) -> Option<BodyError> {
        lock(&self.fault).take()
    }

    /// Whether nothing of it is left to send.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Frames so far; another number than before says that the upload moves.
    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether it is the client's turn to send.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed)
    }

    /// Holds the rest back: a write to an upstream that reads no more would cost its response.
    pub(crate) fn hold(&self) {
        let _ = self.stage.compare_exchange(RUNS, HELD, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Gives the rest up, and with it the connection.
    pub(crate) fn give_up(&self) {
        self.stage.store(OVER, Ordering::Release);
        self.waker.wake();
    }
}

/// The data behind the locks is whole after every call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body that is sent to the upstream.
///
/// What would end it for the upstream, which is the last byte of an announced length or the trailers, is held back until
/// the client has ended it: an upstream never gets a whole request of a message that is not whole.
#[derive(Debug)]
pub(crate) struct Outgoing {
    upload: Arc<Upload>,
    framing: Framing,
    body: Option<Begun>,
    sent: u64,
    /// What ends the body for the upstream: the last bytes of the announced length, or trailers.
    last: Option<Frame<Bytes>>,
    is_over: bool,
}

/// What hyper learns of an upload that ends early; it closes the connection then.
#[derive(Debug, thiserror::Error)]
#[error("the request was given up")]
pub(crate) struct GivenUp;

impl Outgoing {
    pub(crate) fn new(upload: &Arc<Upload>, framing: Framing) -> Self {
        let is_over = matches!(framing, Framing::None | Framing::Length(0));
        upload.is_over.store(is_over, Ordering::Release);
        Self { upload: Arc::clone(upload), framing, body: None, sent: 0, last: None, is_over }
    }

    /// What it is a part of.
    pub(crate) fn upload(&self) -> &Arc<Upload> {
        &self.upload
    }

    /// The next frame of the client's body, or its end.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, GivenUp>> {
        if self.body.is_none() {
            self.body = lock(&self.upload.unread).take();
        }
        let Some(body) = &mut self.body else { return Poll::Ready(Err(GivenUp)) };
        if let Some(first) = body.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        let next = http_body::Body::poll_frame(Pin::new(&mut body.rest), cx);
        self.upload.waits_for_client.store(next.is_pending(), Ordering::Relaxed);
        Poll::Ready(ready!(next).transpose().map_err(|error| self.fail(error)))
    }

    fn fail(&self, error: BodyError) -> GivenUp {
        *lock(&self.upload.fault) = Some(error);
        GivenUp
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, GivenUp>> {
        self.upload.waker.register(cx.waker());
        match self.upload.stage.load(Ordering::Acquire) {
            RUNS => {}
            HELD => return Poll::Pending,
            _ => return Poll::Ready(Err(GivenUp)),
        }
        loop {
            let frame = ready!(self.poll_client(cx))?;
            self.upload.frames.fetch_add(1, Ordering::Relaxed);
            let Some(frame) = frame else { return Poll::Ready(self.end()) };
            match (frame.into_data(), self.framing) {
                (Ok(data), Framing::Length(announced)) => {
                    self.sent += data.len() as u64;
                    match self.sent.cmp(&announced) {
                        Less => return Poll::Ready(Ok(Some(Frame::data(data)))),
                        // Empty ones behind it change nothing.
                        Equal if data.is_empty() && self.last.is_some() => {}
                        Equal => self.last = Some(Frame::data(data)),
                        Greater => return Poll::Ready(Err(self.contradicts(announced))),
                    }
                }
                (Ok(data), _) => return Poll::Ready(Ok(Some(Frame::data(data)))),
                // A length leaves no place for trailers.
                (Err(_), Framing::Length(_)) => {}
                (Err(trailers), _) => self.last = Some(trailers),
            }
        }
    }

    /// The client has ended the body.
    fn end(&mut self) -> Result<Option<Frame<Bytes>>, GivenUp> {
        match self.framing {
            Framing::Length(announced) if self.sent < announced => Err(self.contradicts(announced)),
            _ => {
                self.is_over = true;
                Ok(self.last.take())
            }
        }
    }

    fn contradicts(&self, announced: u64) -> GivenUp {
        self.fail(BodyError::Length { announced, received: self.sent })
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = GivenUp;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, GivenUp>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        let next = ready!(this.poll_next(cx)).transpose();
        if !matches!(next, Some(Ok(_))) {
            this.is_over = true;
        }
        if this.is_over {
            // Nothing more is read of it; the client learns that now.
            this.body = None;
            this.upload.is_over.store(true, Ordering::Release);
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::None => SizeHint::with_exact(0),
            Framing::Length(length) => SizeHint::with_exact(length - self.sent.min(length)),
            Framing::Chunked => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_service::Body;

    use super::*;

    /// What the upstream would get, and whether that is all.
    async fn sent(framing: Framing, pieces: &[&'static str]) -> (String, bool) {
        let (feed, rest) = Body::channel();
        let upload = Upload::new(Begun { first: None, rest });
        let feeding = async move {
            for piece in pieces {
                if feed.send(*piece).await.is_err() {
                    return;
                }
            }
            let _ = feed.finish().await;
        };
        let reading = async {
            let (mut text, mut body) = (String::new(), Outgoing::new(&upload, framing));
            loop {
                match std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await {
                    Some(Ok(frame)) => {
                        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
                    }
                    Some(Err(GivenUp)) => return (text, false),
                    None => return (text, true),
                }
            }
        };
        tokio::join!(feeding, reading).1
    }

    #[tokio::test]
    async fn an_announced_length_is_sent_whole_or_not_to_its_end() {
        assert_eq!(sent(Framing::Length(4), &["fo", "ur"]).await, ("four".to_owned(), true));
        assert_eq!(sent(Framing::Length(4), &["fo", "ur", ""]).await, ("four".to_owned(), true));
        assert_eq!(sent(Framing::Length(4), &["fo", "u"]).await, ("fou".to_owned(), false));
        assert_eq!(sent(Framing::Length(4), &["fo", "urs"]).await, ("fo".to_owned(), false));
        // The whole length has come, but not the whole message.
        assert_eq!(sent(Framing::Length(4), &["fo", "ur", "s"]).await, ("fo".to_owned(), false));
        assert_eq!(sent(Framing::Chunked, &["fo", "ur", "s"]).await, ("fours".to_owned(), true));
    }

    #[tokio::test]
    async fn a_body_that_is_read_is_not_there_for_another_attempt() {
        let upload = Upload::new(Begun { first: None, rest: "four".into() });
        let mut body = Outgoing::new(&upload, Framing::Chunked);
        assert!(upload.is_untouched());
        let frame = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await;
        assert_eq!(frame.unwrap().unwrap().into_data().unwrap(), "four");
        assert!(!upload.is_untouched());
        upload.give_up();
        let frame = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await;
        assert!(matches!(frame, Some(Err(GivenUp))));
    }
}
