//! Bytes both ways between a client and an upstream that have left HTTP.
//!
//! A task writes to the upstream what the client sends; the response's body reads what the upstream sends. Each direction
//! may end first: the other end is told, and may go on. A direction that breaks ends both, and the connection with them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use posthaste_service::{Body, BodyError, PolledFrame, poll_piece};
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::balance::Lease;

type Stream = TokioIo<Upgraded>;

/// The tunnel between what a client sends and an upstream's connection, as the body that the client receives. It ends with
/// an error when nothing has moved either way for `idle`, and when the client's half breaks.
pub(crate) fn tunnel(received: Body, upstream: Upgraded, idle: Duration, lease: Lease) -> Body {
    let (reading, writing) = split(TokioIo::new(upstream));
    let moves = Arc::<AtomicU64>::default();
    let mut sending = JoinSet::new();
    sending.spawn(send(received, writing, Arc::clone(&moves), idle));
    Body::new(Tunnel { stream: Some(reading), sending, moves, idle, timer: None, seen: 0, _lease: lease })
}

/// Brings the upstream what the client sends; whether all of it.
async fn send(
    mut received: Body,
    mut upstream: WriteHalf<Stream>,
    moves: Arc<AtomicU64>,
    idle: Duration,
) -> Result<(), BodyError> {
    loop {
        let Some(data) = next(&mut received, &moves, idle).await? else {
            return Ok(upstream.shutdown().await?);
        };
        moves.fetch_add(1, Ordering::Relaxed);
        let written = async {
            upstream.write_all(&data).await?;
            upstream.flush().await
        };
        // Nothing ends a tunnel whose response has ended but its own silence.
        timeout(idle, written).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        moves.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the client sends next. Its silence is none while the upstream speaks.
async fn next(received: &mut Body, moves: &AtomicU64, idle: Duration) -> Result<Option<Bytes>, BodyError> {
    loop {
        let seen = moves.load(Ordering::Relaxed);
        match timeout(idle, received.chunk()).await {
            Ok(data) => return data,
            Err(_) if moves.load(Ordering::Relaxed) == seen => return Err(BodyError::Stalled(idle)),
            Err(_) => {}
        }
    }
}

/// What the upstream sends.
struct Tunnel {
    /// `None` behind the end.
    stream: Option<ReadHalf<Stream>>,
    /// The other direction. Dropped before the end, it ends at once, and the connection with it.
    // spec: rfc9114 4.4 error-ends-tcp, 4.4 reset-ends-tcp
    sending: JoinSet<Result<(), BodyError>>,
    /// Grows with all that moves.
    moves: Arc<AtomicU64>,
    idle: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// The moves when the timer was set.
    seen: u64,
    /// The upstream is at work until the end.
    _lease: Lease,
}

impl Tunnel {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
        if let Poll::Ready(Some(sent)) = self.sending.poll_join_next(cx) {
            sent.unwrap_or(Err(BodyError::Unfinished))?;
        }
        match poll_piece(stream, cx) {
            Poll::Ready(piece) => {
                self.moves.fetch_add(1, Ordering::Relaxed);
                self.timer = None;
                let piece = piece?;
                if piece.is_empty() {
                    // The client may still have something to say.
                    self.stream = None;
                    self.sending.detach_all();
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Ok(Some(piece)))
            }
            Poll::Pending => self.poll_silence(cx).map(|()| Err(BodyError::Stalled(self.idle))),
        }
    }

    /// Ready when nothing has moved for the whole time.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let moves = self.moves.load(Ordering::Relaxed);
            let timer = self.timer.get_or_insert_with(|| {
                self.seen = moves;
                Box::pin(sleep(self.idle))
            });
            ready!(timer.as_mut().poll(cx));
            if moves == self.seen {
                return Poll::Ready(());
            }
            self.seen = moves;
            timer.as_mut().reset(Instant::now() + self.idle);
        }
    }
}

impl http_body::Body for Tunnel {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        let next = ready!(this.poll_next(cx));
        if next.is_err() {
            // Both halves: the connection is closed now.
            this.stream = None;
            this.sending.abort_all();
        }
        Poll::Ready(next.map(|piece| piece.map(Frame::data)).transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }
}
