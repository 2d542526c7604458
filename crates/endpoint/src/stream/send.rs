//! The sending half of a stream.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use posthaste_transport::{Connection, ConnectionHandle, LocalError, Priority, StreamId};
use tokio::io::AsyncWrite;

use crate::connection::ConnectionRef;
use crate::connection_state::{SendFate, StreamState};
use crate::error::WriteError;
use crate::state::{Guard, State};
use crate::wait::wait;
use crate::wakers::{WakerSet, store};

/// Bytes copied from a caller's slice at a time; [`SendStream::write_bytes`] copies nothing.
const COPY: usize = 32 * 1024;

/// Up to this many bytes are copied under the lock, which costs less than to take the lock twice.
const COPY_LOCKED: usize = 2 * 1024;

/// Sends on a stream.
///
/// [`write_bytes`](Self::write_bytes) hands data through without a copy, and [`finish_with`](Self::finish_with) the last
/// of it together with the end; [`write_all_chunks`](Self::write_all_chunks) takes several pieces at once. Writes wait
/// while too much is unsent (`TransportConfig::unsent_limit`) or unacknowledged (`TransportConfig::send_buffer`,
/// `TransportConfig::send_budget`).
///
/// Dropped without [`finish`](Self::finish) or [`reset`](Self::reset), the stream is finished, as a TCP stream is:
/// data that was written arrives, also where generic code (`tokio::io::copy`) drops its writer. Only if the drop is
/// part of a panic is the stream reset with code 0, so that the peer does not take a fragment for the whole. Code
/// that may be cancelled half-way, and whose peer could not tell a fragment from the whole, should call `reset`.
///
/// # Example
/// ```no_run
/// # async fn example(connection: posthaste_endpoint::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let mut send = connection.open_uni().await?;
/// send.write_all(b"header").await?;
/// send.write_bytes(vec![0; 1 << 20].into()).await?;
/// send.finish();
/// send.acknowledged().await?; // The peer's transport has all of it.
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SendStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    /// Finished or reset by this end.
    closed: bool,
    /// A call that ends the stream has not come to its end: dropped now, the stream would look whole and be a part.
    is_partial: bool,
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        Self { connection, id, closed: false, is_partial: false }
    }

    /// A stream that was opened, written to and perhaps finished under one lock.
    pub(crate) fn opened(connection: Arc<ConnectionRef>, id: StreamId, is_finished: bool) -> Self {
        Self { connection, id, closed: is_finished, is_partial: false }
    }

    /// The stream's identifier.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `data`, waiting until there is room for at least a byte; how many bytes were taken, 0 only if
    /// `data` is empty. Cancel safe: a dropped call has written nothing.
    ///
    /// # Errors
    /// The peer has stopped the stream, this end has ended it, or the connection is over.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_copy(cx, data)).await
    }

    /// Writes all of `data`. Not cancel safe: a dropped call may have written a part.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of `data` without copying it. Not cancel safe: a dropped call may have written a part.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn write_bytes(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            poll_fn(|cx| self.poll_write_bytes(cx, &mut data)).await?;
        }
        Ok(())
    }

    /// Writes all of `chunks`, one behind the other, without copying them: what [`write_bytes`](Self::write_bytes) does for
    /// each, under one lock where there is room. What was written is gone from `chunks`, so a dropped call can be
    /// made again with the same chunks.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn write_all_chunks(&mut self, chunks: &mut [Bytes]) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_write_all(cx, chunks, false)).await
    }

    /// Writes all of `data` without copying it, and ends the stream: [`write_bytes`](Self::write_bytes) and
    /// [`finish`](Self::finish) in one, so that the end travels with the last data. Dropped before it has written all, the
    /// call leaves a stream that is reset with code 0 when the handle is dropped, unless [`finish`](Self::finish) is called.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn finish_with(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        self.is_partial = !self.closed;
        let written = poll_fn(|cx| self.poll_write_all(cx, std::slice::from_mut(&mut data), true)).await;
        self.is_partial = false;
        written
    }

    /// [`finish_with`](Self::finish_with) with a copy of `data`: cheaper where they are few, and not in memory of their own.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn finish_with_copy(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        self.is_partial = !self.closed;
        let written = poll_fn(|cx| {
            let (handle, id, is_empty) = (self.connection.handle, self.id, data.is_empty());
            self.poll_whole(cx, is_empty, true, |guard| copy_all(guard, handle, id, &mut data))
        })
        .await;
        self.is_partial = false;
        written
    }

    /// Writes all of `chunks`, and ends the stream behind them if `is_last`.
    fn poll_write_all(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
        is_last: bool,
    ) -> Poll<Result<(), WriteError>> {
        let (handle, id, is_empty) = (self.connection.handle, self.id, chunks.iter().all(Bytes::is_empty));
        self.poll_whole(cx, is_empty, is_last, |guard| write_all(guard, handle, id, chunks, is_last))
    }

    /// Has `write` write what there is room for, until it says that this was all.
    fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        is_empty: bool,
        is_last: bool,
        write: impl FnOnce(&mut Guard<'_>) -> Result<bool, WriteError>,
    ) -> Poll<Result<(), WriteError>> {
        let mut guard = self.connection.shared.lock();
        // The end of a stream needs no room.
        if !is_empty {
            ready!(self.poll_writable(&mut guard, cx))?;
        }
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let is_done = write(&mut guard)?;
        // Something was written, or the peer may be told that its credit is missed.
        guard.wake_driver();
        if !is_done {
            self.wait_writable(&mut guard, cx);
            return Poll::Pending;
        }
        self.closed |= is_last;
        turn.made_progress();
        Poll::Ready(Ok(()))
    }

    /// Takes what there is room for from the front of `data`, without copying it; how many bytes were taken, 0 only
    /// if `data` is empty.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn poll_write_bytes(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        let mut guard = self.connection.shared.lock();
        ready!(self.poll_writable(&mut guard, cx))?;
        self.poll_write(&mut guard, cx, data)
    }

    /// Writes a copy of some of `data`; nothing is copied while the stream is blocked.
    fn poll_copy(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        let data = data.get(..COPY).unwrap_or(data);
        if data.len() <= COPY_LOCKED {
            let mut guard = self.connection.shared.lock();
            ready!(self.poll_writable(&mut guard, cx))?;
            return self.poll_write_with(
                &mut guard,
                cx,
                |connection| connection.write_copy(self.id, data),
                data.is_empty(),
            );
        }
        self.poll_gather(cx, data.len(), || Bytes::copy_from_slice(data))
    }

    /// Writes some of the `length` bytes that `copy` makes, which is not called while the stream is blocked.
    fn poll_gather(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        copy: impl FnOnce() -> Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        let mut guard = self.connection.shared.lock();
        ready!(self.poll_writable(&mut guard, cx))?;
        let mut data = if length <= COPY_LOCKED {
            copy()
        } else {
            drop(guard);
            let data = copy();
            guard = self.connection.shared.lock();
            data
        };
        self.poll_write(&mut guard, cx, &mut data)
    }

    /// The task is woken when the stream has room again.
    fn wait_writable(&self, guard: &mut Guard<'_>, cx: &mut Context<'_>) {
        let state = guard.connection_mut(self.connection.handle);
        if let Some(stream) = state.and_then(|connection| connection.stream(self.id)) {
            stream.write_blocked = true;
            store(&mut stream.writer, cx.waker());
        }
    }

    /// Pending if a write was refused and no event has told of room since.
    fn poll_writable(&self, guard: &mut Guard<'_>, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        if let Some(error) = guard.error(self.connection.handle) {
            return Poll::Ready(Err(error.into()));
        }
        if self.closed {
            return Poll::Ready(Err(WriteError::ClosedStream));
        }
        match guard.connection_mut(self.connection.handle).and_then(|connection| connection.stream(self.id)) {
            Some(stream) if stream.write_blocked => {
                store(&mut stream.writer, cx.waker());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_write(
        &self,
        guard: &mut Guard<'_>,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        let is_empty = data.is_empty();
        self.poll_write_with(guard, cx, |connection| connection.write(self.id, data), is_empty)
    }

    /// Has `write` write what there is room for; how many bytes.
    fn poll_write_with(
        &self,
        guard: &mut Guard<'_>,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut Connection) -> Result<usize, posthaste_transport::WriteError>,
        is_empty: bool,
    ) -> Poll<Result<usize, WriteError>> {
        // A stream that always has room must not keep the task from yielding.
        let turn = ready!(tokio::task::coop::poll_proceed(cx));
        let handle = self.connection.handle;
        let connection = match guard.live(handle) {
            Ok(connection) => connection,
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        match write(connection) {
            Ok(0) if !is_empty => {
                self.wait_writable(guard, cx);
                // The peer may be told that its credit is missed.
                guard.wake_driver();
                Poll::Pending
            }
            Ok(written) => {
                turn.made_progress();
                guard.wake_driver();
                Poll::Ready(Ok(written))
            }
            Err(error) => Poll::Ready(Err(write_error(guard, handle, self.id, error))),
        }
    }

    /// Ends the stream: the peer gets all that was written, and then the end. Does nothing if the stream has ended
    /// already or the connection is over; [`acknowledged`](Self::acknowledged) tells what became of it.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            let mut guard = self.connection.shared.lock();
            if let Ok(connection) = guard.live(self.connection.handle) {
                // It fails only if the stream is over: the peer has stopped it.
                let _ = connection.finish(self.id);
                guard.wake_driver();
            }
        }
    }

    /// Gives the stream up with an application error code (below 2^62): what the peer has not got, it will not get.
    /// Does nothing if the stream is over.
    pub fn reset(&mut self, error_code: u64) {
        self.closed = true;
        let mut guard = self.connection.shared.lock();
        if let Ok(connection) = guard.live(self.connection.handle) {
            // It fails only if the stream is over.
            let _ = connection.reset(self.id, error_code);
            guard.wake_driver();
        }
        let (state, wakes) = guard.parts();
        if let Some(connection) = state.connection_mut(self.connection.handle) {
            connection.decide(self.id, SendFate::Reset, &mut wakes.tasks);
        }
    }

    /// Sets what the stream is sent before and beside; default urgency 3, incremental (RFC 9218 section 4).
    pub fn set_priority(&mut self, priority: Priority) {
        let mut guard = self.connection.shared.lock();
        if let Ok(connection) = guard.live(self.connection.handle) {
            // It fails only if the stream is over, and then its priority is of no account.
            let _ = connection.set_priority(self.id, priority);
        }
    }

    /// Waits until the peer stops the stream, and gives its code; `None` if it acknowledges all of it instead.
    ///
    /// The future is independent of the handle, so that it can be waited for beside a write.
    ///
    /// # Errors
    /// The connection is over, or the stream's handle has been dropped.
    pub fn stopped(&self) -> impl Future<Output = Result<Option<u64>, WriteError>> + Send + use<> {
        let (connection, id) = (Arc::clone(&self.connection), self.id);
        async move { ended(&connection, id).await }
    }

    /// Waits until the peer's transport has acknowledged all data and the end of the stream.
    ///
    /// The future is independent of the handle.
    ///
    /// # Errors
    /// The peer has stopped the stream, this end has reset it, or the connection is over.
    pub fn acknowledged(&self) -> impl Future<Output = Result<(), WriteError>> + Send + use<> {
        let ended = self.stopped();
        async move {
            match ended.await? {
                Some(error_code) => Err(WriteError::Stopped(error_code)),
                None => Ok(()),
            }
        }
    }
}

/// Writes chunks as far as there is room, and ends the stream behind them if `is_last`; true if that is done.
///
/// # Errors
/// The stream or the connection is over.
pub(crate) fn write_all(
    guard: &mut Guard<'_>,
    handle: ConnectionHandle,
    id: StreamId,
    chunks: &mut [Bytes],
    is_last: bool,
) -> Result<bool, WriteError> {
    let connection = guard.live(handle)?;
    let attempt = || {
        for chunk in chunks {
            while !chunk.is_empty() {
                if connection.write(id, chunk)? == 0 {
                    return Ok(false);
                }
            }
        }
        if is_last {
            connection.finish(id)?;
        }
        Ok(true)
    };
    attempt().map_err(|error| write_error(guard, handle, id, error))
}

/// Writes a copy of `data` as far as there is room, and ends the stream behind them; true if that is done.
fn copy_all(
    guard: &mut Guard<'_>,
    handle: ConnectionHandle,
    id: StreamId,
    data: &mut &[u8],
) -> Result<bool, WriteError> {
    let connection = guard.live(handle)?;
    let mut attempt = || {
        while !data.is_empty() {
            match connection.write_copy(id, data)? {
                0 => return Ok(false),
                written => *data = data.get(written..).unwrap_or_default(),
            }
        }
        connection.finish(id).map(|()| true)
    };
    attempt().map_err(|error| write_error(guard, handle, id, error))
}

fn write_error(
    guard: &mut Guard<'_>,
    handle: ConnectionHandle,
    id: StreamId,
    error: posthaste_transport::WriteError,
) -> WriteError {
    let fate = guard.connection_mut(handle).and_then(|state| state.stream(id)).map(|stream| stream.fate);
    match (error, guard.error(handle)) {
        (posthaste_transport::WriteError::Stopped(error_code), _) => WriteError::Stopped(error_code),
        (_, Some(lost)) => lost.into(),
        (posthaste_transport::WriteError::Local(LocalError::Closed), None) => guard.no_connection().into(),
        (posthaste_transport::WriteError::Local(_), None) => match fate {
            // The peer has acknowledged the reset that answers its STOP_SENDING, and the transport has forgotten the stream.
            Some(SendFate::Stopped(error_code)) => WriteError::Stopped(error_code),
            _ => WriteError::ClosedStream,
        },
    }
}

/// Waits until the peer has stopped the stream (its code) or has acknowledged all of it (`None`).
async fn ended(connection: &ConnectionRef, id: StreamId) -> Result<Option<u64>, WriteError> {
    let handle = connection.handle;
    let attempt = |guard: &mut Guard<'_>| {
        let error = guard.error(handle);
        match guard.connection_mut(handle).and_then(|state| state.stream(id)) {
            Some(stream) if stream.fate == SendFate::Complete => Poll::Ready(Ok(None)),
            Some(StreamState { fate: SendFate::Stopped(error_code), .. }) => {
                Poll::Ready(Ok(Some(*error_code)))
            }
            Some(stream) if stream.fate == SendFate::Open && error.is_none() => Poll::Pending,
            _ => Poll::Ready(Err(error.map_or(WriteError::ClosedStream, WriteError::ConnectionLost))),
        }
    };
    wait(&connection.shared, |state| enders(state, connection, id), attempt).await
}

fn enders<'a>(state: &'a mut State, connection: &ConnectionRef, id: StreamId) -> Option<&'a mut WakerSet> {
    state.connection_mut(connection.handle)?.stream(id).map(StreamState::enders)
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.closed {
            if self.is_partial || std::thread::panicking() {
                self.reset(0);
            } else {
                self.finish();
            }
        }
        let mut guard = self.connection.shared.lock();
        let (state, wakes) = guard.parts();
        if let Some(connection) = state.connection_mut(self.connection.handle) {
            connection.release_half(self.id, &mut wakes.tasks);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_copy(cx, data).map_err(Into::into)
    }

    /// Copies of all slices, up to 32 KiB, at once.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum::<usize>().min(COPY);
        let copy = || {
            let mut all = Vec::with_capacity(length);
            for slice in slices {
                let rest = length - all.len();
                all.extend_from_slice(slice.get(..rest).unwrap_or(slice));
            }
            all.into()
        };
        self.get_mut().poll_gather(cx, length, copy).map_err(Into::into)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: data is sent as soon as it may be.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; does not wait for the peer's acknowledgement.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().finish();
        Poll::Ready(Ok(()))
    }
}
