//! A request's body as it arrives.
//!
//! The body owns the receiving half of the stream while the service reads it; then what is left of it goes back to the
//! exchange, which sees to the rest. So nothing is copied or kept between the transport and the service: data that the
//! service does not ask for is data that the client has no credit for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http_body::{Frame, SizeHint};
use posthaste_http3::{Code, MessageError, Part};
use posthaste_service::PolledFrame;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::visitor::Visitor;
use crate::message_stream::{MessageReceiver, ReceiveError};
use crate::service::{Body, BodyError};

/// What a body leaves to its exchange.
pub(super) enum Rest {
    /// The service read the whole message, or it will not become whole for a reason that is not the client's text.
    Over,
    /// The service did not read to the end.
    Unread(Box<MessageReceiver>),
    /// The client broke the protocol.
    Malformed(MessageError),
}

/// A request's body, and what its exchange learns of it.
pub(super) struct Begun {
    pub(super) body: Body,
    pub(super) rest: Left,
    /// The service waits for a body that the client sends only when it is told to.
    pub(super) wanted: Wanted,
}

/// `None` if the request has no body of which anything could be left.
pub(super) type Left = Option<oneshot::Receiver<Rest>>;

/// `None` if the client does not wait for a word.
pub(super) type Wanted = Option<oneshot::Receiver<()>>;

/// The body of a request whose head has been read, and `first` what was found behind it. A service that waits for more
/// of it waits up to `stall`, or for any time.
///
/// # Errors
/// What follows the head is not what HTTP/3 permits.
pub(super) fn body(
    receiver: MessageReceiver,
    first: Poll<Result<Option<Part>, ReceiveError>>,
    visitor: &Arc<Visitor>,
    head: &HeaderMap,
    stall: Option<Duration>,
) -> Result<Begun, MessageError> {
    let first = match first {
        Poll::Pending => None,
        Poll::Ready(Ok(None)) => {
            return Ok(Begun { body: Body::empty(), rest: None, wanted: None });
        }
        Poll::Ready(Err(ReceiveError::Message(error))) => return Err(error),
        Poll::Ready(Ok(Some(part))) => Some(Ok(part)),
        Poll::Ready(Err(error)) => Some(Err(error)),
    };
    let announced = receiver.announced();
    let visitor = Arc::clone(visitor);
    let (rest, left) = oneshot::channel();
    let (want, wanted) = expects(head).then(oneshot::channel).unzip();
    let incoming = Incoming {
        receiver: Some(receiver),
        first,
        announced,
        received: 0,
        rest: Some(rest),
        want,
        patience: Patience { visitor, stall, timer: None, seen: 0 },
    };
    Ok(Begun { body: Body::new(incoming), rest: Some(left), wanted })
}

/// Whether the client waits for 100 before it sends the body (RFC 9110 section 10.1.1).
fn expects(head: &HeaderMap) -> bool {
    head.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

struct Incoming {
    /// `None` behind the end.
    receiver: Option<MessageReceiver>,
    /// What came together with the head.
    first: Option<Result<Part, ReceiveError>>,
    announced: Option<u64>,
    received: u64,
    rest: Option<oneshot::Sender<Rest>>,
    /// Until the first wait, if the client waits, too.
    want: Option<oneshot::Sender<()>>,
    patience: Patience,
}

/// How long the service waits for a client that sends nothing.
struct Patience {
    visitor: Arc<Visitor>,
    stall: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The connection's progress when the timer was set.
    seen: u64,
}

impl Patience {
    /// Ready, with the limit, when nothing has moved on the connection for the whole time. A client may send its bodies one
    /// after the other.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(stall) = self.stall else { return Poll::Pending };
        let progress = &self.visitor.progress;
        loop {
            let timer = self.timer.get_or_insert_with(|| {
                self.seen = progress.count();
                Box::pin(sleep(stall))
            });
            ready!(timer.as_mut().poll(cx));
            if progress.count() == self.seen {
                return Poll::Ready(stall);
            }
            self.seen = progress.count();
            timer.as_mut().reset(Instant::now() + stall);
        }
    }

    /// Something came.
    fn renew(&mut self) {
        self.visitor.progress.note();
        self.timer = None;
    }
}

impl Incoming {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Part>, BodyError>> {
        let Some(receiver) = &mut self.receiver else { return Poll::Ready(Ok(None)) };
        let next = match self.first.take() {
            Some(first) => first.map(Some),
            None => match receiver.poll_next(cx) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    if let Some(want) = self.want.take() {
                        // An exchange that is over has answered.
                        let _ = want.send(());
                    }
                    let stall = ready!(self.patience.poll(cx));
                    receiver.stop(Code::H3_REQUEST_CANCELLED);
                    self.end(Rest::Over);
                    return Poll::Ready(Err(BodyError::Stalled(stall)));
                }
            },
        };
        self.patience.renew();
        Poll::Ready(match next {
            Ok(Some(part)) => Ok(Some(part)),
            Ok(None) => {
                self.end(Rest::Over);
                Ok(None)
            }
            Err(error) => Err(self.fail(error)),
        })
    }

    fn fail(&mut self, error: ReceiveError) -> BodyError {
        let (rest, error) = match error {
            ReceiveError::Reset(code) => (Rest::Over, BodyError::Reset(code.value())),
            ReceiveError::Lost(lost) => (Rest::Over, BodyError::Lost(Box::new(lost))),
            ReceiveError::Message(error) => {
                let told = match &error {
                    MessageError::Length { announced, received } => {
                        BodyError::Length { announced: *announced, received: *received }
                    }
                    other => BodyError::Malformed(other.to_string()),
                };
                (Rest::Malformed(error), told)
            }
        };
        self.end(rest);
        error
    }

    fn end(&mut self, rest: Rest) {
        self.receiver = None;
        if let Some(exchange) = self.rest.take() {
            // An exchange that is over needs to know nothing.
            let _ = exchange.send(rest);
        }
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        loop {
            return Poll::Ready(match ready!(this.poll_part(cx)) {
                Ok(None) => None,
                Ok(Some(Part::Data(data))) => {
                    this.received += data.len() as u64;
                    Some(Ok(Frame::data(data)))
                }
                Ok(Some(Part::Trailers(trailers))) => Some(Ok(Frame::trailers(trailers))),
                // No head comes behind a head.
                Ok(Some(Part::Request(_) | Part::Response(_))) => continue,
                Err(error) => Some(Err(error)),
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.receiver.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.announced {
            Some(announced) => SizeHint::with_exact(announced.saturating_sub(self.received)),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let Some(receiver) = self.receiver.take() else { return };
        let rest = match self.first.take() {
            Some(Err(_)) => Rest::Over,
            _ => Rest::Unread(Box::new(receiver)),
        };
        if let Some(exchange) = self.rest.take() {
            // If the exchange is over, the receiver is dropped with this, and the client asked to stop.
            let _ = exchange.send(rest);
        }
    }
}
