//! The receiving half of a stream.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use posthaste_transport::{ConnectionHandle, LocalError, Read, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

use crate::clock;
use crate::connection::ConnectionRef;
use crate::error::ReadError;
use crate::state::Guard;
use crate::wakers::store;

/// Bytes taken from the transport at once when chunks are read, so that the lock and the clock are not paid for each
/// datagram. They count as read: the peer's credit runs ahead of the application by at most this.
const READ_AHEAD: usize = 32 * 1024;

/// Chunks that are put together at once when a stream is read to its end.
const CHUNKS_AT_ONCE: usize = 4;

/// Room for what follows the first data of a stream that is read to its end, if the end has not come with them: mostly that
/// is in the next datagram.
const NEXT_DATAGRAM: usize = 1500;

/// Receives on a stream.
///
/// [`read_chunk`](Self::read_chunk) hands received data through without a copy. What is not read is not made room
/// for: a reader that is slow slows its peer.
///
/// Dropped before the end was read, the stream is stopped with code 0: the peer need not send the rest.
///
/// # Example
/// ```no_run
/// # async fn example(connection: posthaste_endpoint::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let mut recv = connection.accept_uni().await?;
/// let mut bytes = 0;
/// while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
///     bytes += chunk.len();
/// }
/// println!("{bytes} bytes");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RecvStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    end: End,
    /// Chunks taken from the transport that have not been asked for yet.
    ahead: Ahead,
}

/// A queue of chunks that keeps its first in place: most streams have one at a time, and that needs no memory of its own.
#[derive(Debug, Default)]
struct Ahead {
    /// `None` only if `rest` is empty.
    first: Option<Bytes>,
    rest: VecDeque<Bytes>,
}

impl Ahead {
    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn push_back(&mut self, chunk: Bytes) {
        if self.first.is_none() {
            self.first = Some(chunk);
        } else {
            self.rest.push_back(chunk);
        }
    }

    /// The next chunk, cut to `max` bytes.
    fn take(&mut self, max: usize) -> Option<Bytes> {
        let first = self.first.as_mut()?;
        if first.len() > max {
            return Some(first.split_to(max));
        }
        std::mem::replace(&mut self.first, self.rest.pop_front())
    }
}

/// How far a receiving half has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// More may come.
    Open,
    /// The end was read.
    Finished,
    /// The peer has given the stream up with this code.
    Reset(u64),
    /// This end has stopped the stream.
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        Self { connection, id, end: End::Open, ahead: Ahead::default() }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads into `buffer`, waiting until there is something; how many bytes were read, `None` at the end of the
    /// stream. Cancel safe.
    ///
    /// # Errors
    /// The peer has reset the stream, this end has stopped it, or the connection is over.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| {
            let mut buffer = ReadBuf::new(buffer);
            self.poll_copy(cx, &mut buffer).map_ok(|more| more.then_some(buffer.filled().len()))
        })
        .await
    }

    /// Reads the next data, at most `max` bytes, without copying it; `None` at the end of the stream. Cancel safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Reads what is there into the front of `chunks`, without copying it, and waits until that is at least one; how many
    /// were filled, `None` at the end of the stream. One call with 32 empty `Bytes` costs little more than
    /// [`read_chunk`](Self::read_chunk). Chunks mostly have the size of a datagram. Cancel safe.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Example
    /// ```no_run
    /// # async fn example(mut recv: posthaste_endpoint::RecvStream) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut chunks = [const { bytes::Bytes::new() }; 32];
    /// let mut bytes = 0;
    /// while let Some(filled) = recv.read_chunks(&mut chunks).await? {
    ///     bytes += chunks[..filled].iter().map(bytes::Bytes::len).sum::<usize>();
    /// }
    /// println!("{bytes} bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_chunks(cx, chunks)).await
    }

    /// [`read_chunks`](Self::read_chunks) for code that polls.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn poll_read_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        let (mut slots, mut filled) = (chunks.iter_mut(), 0);
        if slots.len() == 0 {
            return Poll::Ready(Ok(Some(0)));
        }
        let more = self.poll_take(cx, usize::MAX, |chunk| {
            if let Some(slot) = slots.next() {
                *slot = chunk;
                filled += 1;
            }
            if slots.len() == 0 { 0 } else { usize::MAX }
        });
        more.map_ok(|more| more.then_some(filled))
    }

    /// [`read_chunk`](Self::read_chunk) for code that polls.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        if self.ahead.is_empty() {
            let mut ahead = std::mem::take(&mut self.ahead);
            let mut bytes = 0;
            let fetched = self.poll_fetch(cx, usize::MAX, |chunk| {
                bytes += chunk.len();
                ahead.push_back(chunk);
                if bytes < READ_AHEAD { usize::MAX } else { 0 }
            });
            self.ahead = ahead;
            ready!(fetched)?;
        }
        Poll::Ready(Ok(self.take_ahead(max)))
    }

    /// The next of the chunks taken ahead, cut to `max` bytes.
    fn take_ahead(&mut self, max: usize) -> Option<Bytes> {
        self.ahead.take(max.max(1))
    }

    /// Reads everything to the end of the stream.
    ///
    /// # Errors
    /// [`ReadError::TooLong`] as soon as there are more than `limit` bytes; otherwise as [`read`](Self::read).
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        while poll_fn(|cx| self.poll_append(cx, limit, &mut all)).await? {}
        Ok(all)
    }

    /// Appends what is there to `all`, which may take `limit` bytes in the end; false at the end of the stream. What comes at
    /// once, or mostly so, takes memory once.
    fn poll_append(
        &mut self,
        cx: &mut Context<'_>,
        limit: usize,
        all: &mut Vec<u8>,
    ) -> Poll<Result<bool, ReadError>> {
        let mut chunks = [const { Bytes::new() }; CHUNKS_AT_ONCE];
        let mut free = chunks.iter_mut();
        // One byte more than allowed is asked for, to see whether there is one.
        let mut left = (limit - all.len()).saturating_add(1);
        let more = ready!(self.poll_take(cx, left, |chunk| {
            left -= chunk.len().min(left);
            if let Some(slot) = free.next() {
                *slot = chunk;
            }
            if free.len() == 0 { 0 } else { left }
        }))?;
        let bytes: usize = chunks.iter().map(Bytes::len).sum();
        if bytes > limit - all.len() {
            return Poll::Ready(Err(ReadError::TooLong { limit }));
        }
        let is_over = !more || self.end == End::Finished && self.ahead.is_empty();
        if is_over {
            all.reserve_exact(bytes);
        } else if all.is_empty() {
            all.reserve((bytes + NEXT_DATAGRAM).min(limit));
        }
        for chunk in &chunks {
            all.extend_from_slice(chunk);
        }
        Poll::Ready(Ok(!is_over))
    }

    /// Tells the peer that the rest of the stream is of no interest, with an application error code (below 2^62).
    /// Does nothing if the stream is over.
    pub fn stop(&mut self, error_code: u64) {
        if self.end != End::Open {
            return;
        }
        self.end = End::Stopped;
        self.ahead = Ahead::default();
        let mut guard = self.connection.shared.lock();
        if let Ok(connection) = guard.live(self.connection.handle) {
            // It fails only if the stream is over.
            let _ = connection.stop_sending(self.id, error_code);
            guard.wake_driver();
        }
    }

    /// Copies what is there into `buffer`; false at the end of the stream.
    fn poll_copy(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<bool, ReadError>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(true));
        }
        self.poll_take(cx, buffer.remaining(), |chunk| {
            buffer.put_slice(&chunk);
            buffer.remaining()
        })
    }

    /// Hands chunks of at most `max` bytes in all to `take`, which answers how many more bytes it wants. False at the
    /// end of the stream; pending if there is nothing yet.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        mut take: impl FnMut(Bytes) -> usize,
    ) -> Poll<Result<bool, ReadError>> {
        if self.ahead.is_empty() {
            return self.poll_fetch(cx, max, take);
        }
        let mut wanted = max;
        while wanted > 0
            && let Some(chunk) = self.take_ahead(wanted)
        {
            wanted = take(chunk);
        }
        Poll::Ready(Ok(true))
    }

    /// [`poll_take`](Self::poll_take) from the transport, under one lock.
    fn poll_fetch(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        mut take: impl FnMut(Bytes) -> usize,
    ) -> Poll<Result<bool, ReadError>> {
        match self.end {
            End::Open => {}
            End::Finished => return Poll::Ready(Ok(false)),
            End::Reset(error_code) => return Poll::Ready(Err(ReadError::Reset(error_code))),
            End::Stopped => return Poll::Ready(Err(ReadError::ClosedStream)),
        }
        // A stream that always has data must not keep the task from yielding.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let mut wanted = max.max(1);
        let mut taken = 0;
        let now = clock::now();
        let mut guard = self.connection.shared.lock();
        let outcome = loop {
            // A connection that is over still yields what had arrived, for as long as the transport keeps it.
            let Some(connection) = guard.transport.connection_mut(self.connection.handle) else {
                break Err(LocalError::Closed.into());
            };
            match connection.read(now, self.id, wanted) {
                Ok(Read::Data(chunk)) => {
                    taken += chunk.len();
                    wanted = take(chunk);
                    if wanted == 0 {
                        turn.made_progress();
                        guard.note_read(taken, false);
                        return Poll::Ready(Ok(true));
                    }
                }
                outcome => break outcome,
            }
        };
        guard.note_read(taken, true);
        match outcome {
            Ok(Read::Finished) => {
                self.end = End::Finished;
                // The end of a stream may be what the peer waits for to open another.
                guard.wake_driver();
            }
            Err(posthaste_transport::ReadError::Reset(error_code)) => self.end = End::Reset(error_code),
            _ => {}
        }
        if taken > 0 {
            turn.made_progress();
        }
        match outcome {
            _ if taken > 0 => Poll::Ready(Ok(true)),
            Ok(Read::Finished) => Poll::Ready(Ok(false)),
            Ok(_) => self.wait_readable(&mut guard, cx),
            Err(posthaste_transport::ReadError::Reset(error_code)) => {
                Poll::Ready(Err(ReadError::Reset(error_code)))
            }
            Err(posthaste_transport::ReadError::Local(error)) => {
                Poll::Ready(Err(local_error(&guard, self.connection.handle, error)))
            }
        }
    }

    /// Nothing is there yet: the task is woken when there is, unless nothing can come any more.
    fn wait_readable(&self, guard: &mut Guard<'_>, cx: &mut Context<'_>) -> Poll<Result<bool, ReadError>> {
        if let Some(error) = guard.error(self.connection.handle) {
            return Poll::Ready(Err(error.into()));
        }
        if let Some(stream) =
            guard.connection_mut(self.connection.handle).and_then(|state| state.stream(self.id))
        {
            store(&mut stream.reader, cx.waker());
        }
        Poll::Pending
    }
}

fn local_error(guard: &Guard<'_>, handle: ConnectionHandle, error: LocalError) -> ReadError {
    match guard.error(handle) {
        Some(lost) => lost.into(),
        None if error == LocalError::Closed => guard.no_connection().into(),
        None => ReadError::ClosedStream,
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
        let mut guard = self.connection.shared.lock();
        let (state, wakes) = guard.parts();
        if let Some(connection) = state.connection_mut(self.connection.handle) {
            connection.release_half(self.id, &mut wakes.tasks);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The end is told by leaving the buffer as it is.
        self.get_mut().poll_copy(cx, buffer).map_ok(|_| ()).map_err(Into::into)
    }
}
