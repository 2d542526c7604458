//! A connection to an upstream, whatever it is made of.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use crate::observer::Counted;

/// Bytes to and from an upstream.
pub(crate) struct Link {
    stream: Stream,
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

/// Calls a method of the stream within.
macro_rules! on_stream {
    ($link:expr, $stream:ident => $call:expr) => {
        match &mut $link.get_mut().stream {
            Stream::Tcp($stream) => $call,
            #[cfg(unix)]
            Stream::Unix($stream) => $call,
        }
    };
}

impl Link {
    pub(crate) fn new(stream: Stream, counted: Option<Counted>) -> Self {
        Self { stream, _counted: counted }
    }
}

impl Read for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl Write for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        on_stream!(self, stream => Pin::new(stream).poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_stream!(self, stream => Pin::new(stream).poll_write_vectored(cx, data))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => Pin::new(stream).poll_shutdown(cx))
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
