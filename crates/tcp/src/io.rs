//! A connection's bytes, with an end that does not wait for the peer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Sleep, sleep};

/// Bytes read and thrown away behind the end, and the time for that: a socket that is closed while bytes are unread
/// resets the connection, and with it a response that the client has not read yet (RFC 9112 section 9.6).
const LINGER_BYTES: usize = 256 * 1024;
const LINGER: Duration = Duration::from_secs(2);

/// Ends a [`Guarded`] stream from elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    is_cut: AtomicBool,
    /// Another protocol is spoken: an end of writing is no end of reading.
    is_tunnel: AtomicBool,
    happened: Notify,
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Cut {
    /// Reads and writes fail from now on.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.reader.wake();
        self.writer.wake();
        self.happened.notify_waiters();
    }

    /// Resolves when the stream is cut.
    pub(crate) async fn happened(&self) {
        // Told of every cut from here on.
        let happened = self.happened.notified();
        if !self.is_cut.load(Ordering::Acquire) {
            happened.await;
        }
    }

    /// The stream is another protocol's from now on.
    pub(crate) fn becomes_tunnel(&self) {
        self.is_tunnel.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.is_cut.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the server has stopped"));
        }
        Ok(())
    }
}

/// A stream whose writes fail when the peer takes nothing for too long, and that can be cut.
pub(crate) struct Guarded<S> {
    stream: S,
    cut: Arc<Cut>,
    stall: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    linger: Option<(Pin<Box<Sleep>>, usize)>,
    /// Dropped with this.
    _alive: oneshot::Sender<()>,
}

impl<S> Guarded<S> {
    /// The stream; what ends it; and what resolves, with an error, when it is dropped.
    pub(crate) fn new(stream: S, stall: Duration) -> (Self, Arc<Cut>, oneshot::Receiver<()>) {
        let (alive, gone) = oneshot::channel();
        let cut = Arc::<Cut>::default();
        let guarded = Self { stream, cut: Arc::clone(&cut), stall, timer: None, linger: None, _alive: alive };
        (guarded, cut, gone)
    }

    /// Measures the peer's silence while a write waits.
    fn in_time<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        self.cut.writer.register(cx.waker());
        self.cut.check()?;
        let stall = self.stall;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(stall)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.cut.reader.register(cx.waker());
        self.cut.check()?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.cut.check()?;
        let written = Pin::new(&mut self.stream).poll_write(cx, data);
        self.in_time(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.cut.check()?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, data);
        self.in_time(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.cut.check()?;
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.in_time(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.cut.check()?;
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(cx);
            ready!(this.in_time(shut, cx))?;
        }
        if this.cut.is_tunnel.load(Ordering::Acquire) {
            return Poll::Ready(Ok(()));
        }
        let (timer, read) = this.linger.get_or_insert_with(|| (Box::pin(sleep(LINGER)), 0));
        let mut scratch = [0; 4096];
        while *read < LINGER_BYTES && timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            // Whatever ends it, it is over.
            let Ok(()) = ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer)) else { break };
            if buffer.filled().is_empty() {
                break;
            }
            *read += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (ours, theirs) = tokio::io::duplex(16);
        let (mut guarded, _, gone) = Guarded::new(ours, Duration::from_millis(20));
        guarded.write_all(&[0; 16]).await.unwrap();
        let error = guarded.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop((guarded, theirs));
        assert!(gone.await.is_err());
    }

    #[tokio::test]
    async fn a_cut_ends_what_waits() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let (mut guarded, cut, _gone) = Guarded::new(ours, Duration::from_secs(600));
        let reading = tokio::spawn(async move { guarded.read_u8().await });
        tokio::task::yield_now().await;
        cut.cut();
        assert_eq!(reading.await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }

    #[tokio::test]
    async fn what_the_peer_still_sends_is_read_for_a_while() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 20);
        let (mut guarded, ..) = Guarded::new(ours, Duration::from_secs(600));
        theirs.write_all(&[0; 10_000]).await.unwrap();
        drop(theirs);
        guarded.shutdown().await.unwrap();
        assert_eq!(guarded.linger.unwrap().1, 10_000);
    }
}
