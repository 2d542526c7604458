//! A connection to an upstream, whatever it is made of.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};

use crate::observer::Counted;

/// For how long writes wait once an upstream has closed, before they fail. An upstream that answers before it has read the
/// whole upload may close at once: what it has sent before can still be read, but not once a write has failed.
const GRACE: Duration = Duration::from_secs(1);

/// Bytes to and from an upstream.
pub(crate) struct Link {
    stream: Stream,
    /// It has closed: how writes fail, and when.
    closed: Option<(ErrorKind, Pin<Box<Sleep>>)>,
    _counted: Option<Counted>,
}

/// What they pass by.
pub(crate) enum Stream {
    /// Over TCP, with or without TLS.
    Tcp(Box<MaybeHttpsStream<TokioIo<TcpStream>>>),
    /// A socket of this machine.
    #[cfg(unix)]
    Unix(TokioIo<UnixStream>),
}

/// Calls a method of the stream.
macro_rules! on_stream {
    ($within:expr, $stream:ident => $call:expr) => {
        match $within {
            Stream::Tcp($stream) => $call,
            #[cfg(unix)]
            Stream::Unix($stream) => $call,
        }
    };
}

impl Link {
    pub(crate) fn new(stream: Stream, counted: Option<Counted>) -> Self {
        Self { stream, closed: None, _counted: counted }
    }

    /// Writes by `call`, as long as the upstream takes something.
    fn poll_sending<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Stream, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let (kind, grace) = match &mut self.closed {
            Some(closed) => closed,
            None => match call(&mut self.stream, cx) {
                Poll::Ready(Err(error)) if is_end(&error) => {
                    self.closed.insert((error.kind(), Box::pin(sleep(GRACE))))
                }
                outcome => return outcome,
            },
        };
        ready!(grace.as_mut().poll(cx));
        Poll::Ready(Err((*kind).into()))
    }
}

/// True if the upstream has closed.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

impl Read for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        on_stream!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl Write for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_sending(
            cx,
            |stream, cx| on_stream!(stream, stream => Pin::new(stream).poll_write(cx, data)),
        )
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_sending(
            cx,
            |stream, cx| on_stream!(stream, stream => Pin::new(stream).poll_write_vectored(cx, data)),
        )
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut()
            .poll_sending(cx, |stream, cx| on_stream!(stream, stream => Pin::new(stream).poll_flush(cx)))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(&mut self.get_mut().stream, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

impl Connection for Link {
    fn connected(&self) -> Connected {
        match &self.stream {
            Stream::Tcp(stream) => stream.connected(),
            #[cfg(unix)]
            Stream::Unix(_) => Connected::new(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_an_upstream_sent_before_it_closed_is_read_before_writes_fail() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"answer").await.unwrap();
        drop(far);
        let mut link = TokioIo::new(Link::new(Stream::Unix(TokioIo::new(near)), None));
        let written = timeout(GRACE / 10, link.write_all(b"more")).await;
        assert!(written.is_err(), "{written:?} at once");
        let mut answer = Vec::new();
        link.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, b"answer");
        let failure = link.write_all(b"more").await.unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::BrokenPipe);
    }
}
