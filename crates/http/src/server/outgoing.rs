//! A response on its way to the client.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use posthaste_endpoint::{CloseReason, ConnectionError, WriteError};
use posthaste_http3::{Code, encode};

use super::Shared;
use super::slots::{Seat, Waited};
use super::visitor::{RequestStream, Visitor};
use crate::message_stream::{MessageSender, unwanted};
use crate::service::{Body, BodyError, Outcome};

/// Bytes of one DATA frame, and what a client must take within the stall timeout.
const FRAME: usize = 64 * 1024;

/// Time in which the client must acknowledge what the transport has buffered of a response when all of it is
/// written; that may be a whole congestion window of a slow path, and others may go first.
const TAIL_TIMEOUT: Duration = Duration::from_secs(300);

/// Sends one response.
pub(super) struct Outgoing<'a, 's> {
    visitor: &'a Visitor,
    sender: &'a mut MessageSender,
    seat: &'a mut Seat<'s>,
    /// Time in which the client must take the next frame.
    stall: Duration,
    /// What a response that breaks off is for the client.
    broken: Code,
}

impl<'a, 's> Outgoing<'a, 's> {
    pub(super) fn new(shared: &Shared, stream: &'a mut RequestStream, seat: &'a mut Seat<'s>) -> Self {
        let stall = shared.options.stall_timeout;
        let broken = Code::H3_INTERNAL_ERROR;
        Self { visitor: &stream.visitor, sender: &mut stream.sender, seat, stall, broken }
    }

    /// The response is a tunnel: if it breaks, a TCP connection was reset (RFC 9220 section 3).
    pub(super) fn of_tunnel(self) -> Self {
        Self { broken: Code::H3_REQUEST_CANCELLED, ..self }
    }

    /// Sends an informational response ahead of the response.
    ///
    /// # Errors
    /// The client does not take it, and gets no response.
    pub(super) async fn ahead(&mut self, head: &http::Response<()>) -> Result<(), Outcome> {
        self.frame_head(head);
        let sent = in_time(self.visitor, self.seat, self.stall, pin!(self.sender.flush())).await;
        sent.map_err(|(code, outcome)| {
            if let Some(code) = code {
                self.sender.reset(code);
            }
            outcome
        })
    }

    /// Takes a response's head, which leaves with what follows.
    pub(super) fn frame_head(&mut self, head: &http::Response<()>) {
        let tables = (&self.visitor.tables, self.sender.id());
        self.sender.frame(encode::response_with(head, Some(tables)));
    }

    /// Sends the response to its end, behind its head; counts what of the body the transport has taken. A frame is asked of
    /// the body when the one before it is with the transport, which takes so much as the client leaves room for.
    pub(super) async fn send(&mut self, body: &mut Body, body_bytes: &mut u64) -> Outcome {
        let sent = self.try_send(body, body_bytes).await;
        sent.map_or_else(
            |(code, outcome)| {
                // What was sent is not the whole, and must not look like it.
                if let Some(code) = code {
                    self.sender.reset(code);
                }
                outcome
            },
            |()| Outcome::Complete,
        )
    }

    async fn try_send(&mut self, body: &mut Body, body_bytes: &mut u64) -> Result<(), Cut> {
        while let Some(frame) = self.next_frame(body).await? {
            match frame.into_data() {
                Ok(data) => self.data(data, body_bytes).await?,
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    if !trailers.is_empty() {
                        self.sender.frame(encode::trailers(&trailers));
                    }
                    // Nothing may come behind them (RFC 9114 section 4.1).
                    break;
                }
            }
        }
        *body = Body::empty();
        self.seat.give_back();
        // spec: rfc9114 4.1 server-ends-stream
        in_time(self.visitor, self.seat, self.stall, pin!(self.sender.finish())).await?;
        // A client that has what it wanted often closes in peace before it acknowledges the last bytes.
        let acknowledged = async {
            match self.sender.acknowledged().await {
                Err(WriteError::ConnectionLost(lost)) if is_in_peace(&lost) => Ok(()),
                other => other,
            }
        };
        let tail = in_time(self.visitor, self.seat, TAIL_TIMEOUT, pin!(acknowledged)).await;
        // All of it is on its way, and only its place can be needed more.
        tail.map_err(|(code, outcome)| (code.filter(|code| *code == Code::H3_EXCESSIVE_LOAD), outcome))
    }

    async fn data(&mut self, mut data: Bytes, body_bytes: &mut u64) -> Result<(), Cut> {
        while !data.is_empty() {
            let frame: Bytes = data.split_to(data.len().min(FRAME));
            let length = frame.len() as u64;
            in_time(self.visitor, self.seat, self.stall, pin!(self.sender.content(frame))).await?;
            *body_bytes += length;
        }
        Ok(())
    }

    /// The body's next frame. If that takes time, what precedes it goes ahead, and a client that gives up is noticed.
    async fn next_frame(&mut self, body: &mut Body) -> Result<Option<Frame<Bytes>>, Cut> {
        let mut next = poll_fn(|cx| poll_body(body, cx));
        let polled = futures::poll!(&mut next);
        let frame = match polled {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                in_time(self.visitor, self.seat, self.stall, pin!(self.sender.flush())).await?;
                tokio::select! {
                    biased;
                    frame = next => frame,
                    reason = self.sender.unwanted() => return Err(cancelled(Outcome::Aborted(reason))),
                }
            }
        };
        let failed = |reason| (Some(self.broken), Outcome::Failed(reason));
        frame.map_err(failed)
    }
}

fn cancelled(outcome: Outcome) -> Cut {
    (Some(Code::H3_REQUEST_CANCELLED), outcome)
}

/// The body's next frame, or what went wrong, a panic included.
fn poll_body(body: &mut Body, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, String>> {
    let poll = AssertUnwindSafe(|| http_body::Body::poll_frame(Pin::new(body), cx));
    match catch_unwind(poll) {
        Ok(polled) => polled.map(|frame| frame.transpose().map_err(|error: BodyError| error.to_string())),
        Err(_) => Poll::Ready(Err("the response's body panicked".to_owned())),
    }
}

fn is_in_peace(error: &ConnectionError) -> bool {
    let no_error = Code::H3_NO_ERROR.value();
    matches!(error, ConnectionError::Closed(CloseReason::PeerApplication { error_code, .. }) if *error_code == no_error)
}

/// What ends a response before it is whole: the code of the reset, unless the client needs none, and the outcome.
type Cut = (Option<Code>, Outcome);

/// Waits until the client has taken what `operation` is about.
async fn in_time(
    visitor: &Visitor,
    seat: &mut Seat<'_>,
    limit: Duration,
    operation: Pin<&mut impl Future<Output = Result<(), WriteError>>>,
) -> Result<(), Cut> {
    let done = match seat.wait(pin!(visitor.progress.wait(limit, operation))).await {
        Waited::Done(done) => done,
        Waited::Evicted => {
            let reason = "the client took nothing for long, and others needed its place".to_owned();
            return Err((Some(Code::H3_EXCESSIVE_LOAD), Outcome::Aborted(reason)));
        }
    };
    match done {
        Some(Ok(())) => {
            visitor.progress.note();
            Ok(())
        }
        Some(Err(WriteError::Stopped(code))) => Err(cancelled(Outcome::Aborted(unwanted(Code(code))))),
        Some(Err(error)) => Err(cancelled(Outcome::Aborted(error.to_string()))),
        None => {
            Err(cancelled(Outcome::Aborted(format!("the client took nothing for {} s", limit.as_secs()))))
        }
    }
}
