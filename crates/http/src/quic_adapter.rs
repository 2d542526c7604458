//! h3's QUIC traits on the endpoint's types: the only file that knows both.
//!
//! Besides forwarding it does three things that h3 0.0.8 leaves open:
//! - body bytes reach the transport without a copy ([`Payload`]);
//! - a frame that h3 would buffer whole has a bounded length ([`FrameGuard`]);
//! - a stream that is dropped half-way is reset or stopped with a code of RFC 9114 section 8.1.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use posthaste_endpoint::{self as endpoint, CloseReason, ConnectionError, ReadError, Side, WriteError};

mod frame_guard;

use frame_guard::FrameGuard;

/// Most bytes taken from a stream at once.
const READ_CHUNK: usize = 64 * 1024;

/// Frames up to this size are sent in one piece with their header; larger payloads go without a copy.
const COPY_LIMIT: usize = 1024;

thread_local! {
    /// The owner of the chunk that [`Payload::chunk`] lent last on this thread.
    static LENT: Cell<Option<Bytes>> = const { Cell::new(None) };
}

/// A piece of a body on its way through h3.
///
/// h3 wraps what it sends in an opaque buffer that lends slices only, so a transport that keeps the bytes until
/// they are acknowledged would have to copy them. Lending a slice therefore leaves its owner in [`LENT`], where
/// the adapter finds it.
#[derive(Debug, Clone)]
pub(crate) struct Payload(Bytes);

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.0.len()
    }

    fn chunk(&self) -> &[u8] {
        LENT.set(Some(self.0.clone()));
        &self.0
    }

    fn advance(&mut self, count: usize) {
        self.0.advance(count);
    }
}

/// The next piece of `data` as bytes of its own, without a copy where it is a body's.
fn next_piece(data: &mut WriteBuf<Payload>) -> Bytes {
    let remaining = data.remaining();
    if remaining <= COPY_LIMIT {
        let piece = data.copy_to_bytes(remaining);
        LENT.set(None);
        return piece;
    }
    LENT.set(None);
    let chunk = data.chunk();
    let length = chunk.len();
    let piece = match LENT.take() {
        Some(owner) if std::ptr::eq(owner.as_ref(), chunk) => owner,
        _ => Bytes::copy_from_slice(chunk),
    };
    data.advance(length);
    piece
}

/// A connection as h3 sees it.
pub(crate) struct QuicConnection {
    connection: endpoint::Connection,
}

impl QuicConnection {
    pub(crate) fn new(connection: endpoint::Connection) -> Self {
        Self { connection }
    }
}

impl quic::Connection<Payload> for QuicConnection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let stream = ready!(self.connection.poll_accept_uni(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(RecvStream::new(stream, &self.connection, FrameGuard::for_uni())))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let (send, recv) = ready!(self.connection.poll_accept_bi(cx)).map_err(connection_error)?;
        Poll::Ready(Ok(BidiStream::new(send, recv, &self.connection)))
    }

    fn opener(&self) -> Self::OpenStreams {
        Opener { connection: self.connection.clone(), opening: None }
    }
}

impl quic::OpenStreams<Payload> for QuicConnection {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let (send, recv) = ready!(self.connection.poll_open_bi(cx)).map_err(lost)?;
        Poll::Ready(Ok(BidiStream::new(send, recv, &self.connection)))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        poll_open_send(&self.connection, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(code.value(), reason);
    }
}

/// Resolves when the peer permits another request.
type Opening = Pin<
    Box<dyn Future<Output = Result<(endpoint::SendStream, endpoint::RecvStream), ConnectionError>> + Send>,
>;

/// Opens request streams. Many clones wait at the same time when the peer's limit is reached, and the endpoint's
/// `poll_*` functions wake the last caller only: each clone therefore waits with a future of its own.
pub(crate) struct Opener {
    connection: endpoint::Connection,
    opening: Option<Opening>,
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), opening: None }
    }
}

impl quic::OpenStreams<Payload> for Opener {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let opening = self.opening.get_or_insert_with(|| {
            let connection = self.connection.clone();
            Box::pin(async move { connection.open_bi().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening = None;
        let (send, recv) = opened.map_err(lost)?;
        Poll::Ready(Ok(BidiStream::new(send, recv, &self.connection)))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        poll_open_send(&self.connection, cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(code.value(), reason);
    }
}

fn poll_open_send(
    connection: &endpoint::Connection,
    cx: &mut Context<'_>,
) -> Poll<Result<SendStream, StreamErrorIncoming>> {
    let stream = ready!(connection.poll_open_uni(cx)).map_err(lost)?;
    Poll::Ready(Ok(SendStream::new(stream, None)))
}

/// A request stream, both halves.
pub(crate) struct BidiStream {
    send: SendStream,
    recv: RecvStream,
}

impl BidiStream {
    fn new(
        send: endpoint::SendStream,
        recv: endpoint::RecvStream,
        connection: &endpoint::Connection,
    ) -> Self {
        Self {
            send: SendStream::new(send, Some(connection.side())),
            recv: RecvStream::new(recv, connection, FrameGuard::for_request()),
        }
    }
}

impl quic::BidiStream<Payload> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.recv)
    }
}

impl quic::SendStream<Payload> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Payload>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// Resolves when the peer has acknowledged the whole stream, or will not.
type Acknowledged = Pin<Box<dyn Future<Output = Result<(), WriteError>> + Send>>;

enum SendState {
    Open(endpoint::SendStream),
    /// Finished; a server then waits for the client to have everything. The stream stays: without it there would
    /// be nothing to wait for, or to reset.
    Finished(endpoint::SendStream, Acknowledged),
    Over,
}

/// The sending half of a stream.
pub(crate) struct SendStream {
    state: SendState,
    id: StreamId,
    writing: Option<WriteBuf<Payload>>,
    /// What was taken from `writing` and is not yet written.
    piece: Bytes,
    /// For a request stream, which end this is; `None` for a unidirectional stream.
    request_side: Option<Side>,
}

impl SendStream {
    fn new(stream: endpoint::SendStream, request_side: Option<Side>) -> Self {
        let id = stream_id(stream.id());
        Self { state: SendState::Open(stream), id, writing: None, piece: Bytes::new(), request_side }
    }
}

impl quic::SendStream<Payload> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let Some(data) = &mut self.writing else { return Poll::Ready(Ok(())) };
        let SendState::Open(stream) = &mut self.state else { return Poll::Ready(Err(misuse())) };
        loop {
            if self.piece.is_empty() {
                if !data.has_remaining() {
                    break;
                }
                self.piece = next_piece(data);
            }
            ready!(stream.poll_write_bytes(cx, &mut self.piece)).map_err(write_error)?;
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Payload>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(misuse());
        }
        self.writing = Some(data.into());
        Ok(())
    }

    /// A server's response is finished when the client has acknowledged it: closing the connection earlier would
    /// cut off its tail. A client's request needs no such wait, the response shows that it arrived.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let SendState::Open(_) = &self.state
            && let SendState::Open(mut stream) = std::mem::replace(&mut self.state, SendState::Over)
        {
            stream.finish();
            let acknowledged = Box::pin(stream.acknowledged());
            self.state = SendState::Finished(stream, acknowledged);
        }
        let SendState::Finished(_, acknowledged) = &mut self.state else { return Poll::Ready(Ok(())) };
        if self.request_side != Some(Side::Server) {
            return Poll::Ready(Ok(()));
        }
        let result = ready!(acknowledged.as_mut().poll(cx)).map_err(write_error);
        self.state = SendState::Over;
        Poll::Ready(result)
    }

    fn reset(&mut self, reset_code: u64) {
        if let SendState::Open(mut stream) | SendState::Finished(mut stream, _) =
            std::mem::replace(&mut self.state, SendState::Over)
        {
            stream.reset(reset_code);
        }
    }

    fn send_id(&self) -> StreamId {
        self.id
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        // A control stream must never be reset (RFC 9114 section 6.2.1); it ends with the connection.
        let Some(side) = self.request_side else { return };
        let code = match (&self.state, side) {
            (SendState::Open(_), Side::Client) => Code::H3_REQUEST_CANCELLED,
            (SendState::Open(_), Side::Server) => Code::H3_INTERNAL_ERROR,
            (SendState::Finished(..) | SendState::Over, _) => return,
        };
        quic::SendStream::reset(self, code.value());
    }
}

/// The receiving half of a stream.
pub(crate) struct RecvStream {
    stream: endpoint::RecvStream,
    connection: endpoint::Connection,
    guard: FrameGuard,
    /// Nothing more is to come, or nothing more is wanted.
    over: bool,
}

impl RecvStream {
    fn new(stream: endpoint::RecvStream, connection: &endpoint::Connection, guard: FrameGuard) -> Self {
        Self { stream, connection: connection.clone(), guard, over: false }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if self.over {
            return Poll::Ready(Ok(None));
        }
        let data = ready!(self.stream.poll_read_chunk(cx, READ_CHUNK)).map_err(|error| {
            self.over = true;
            read_error(error)
        })?;
        let Some(data) = data else {
            self.over = true;
            return Poll::Ready(Ok(None));
        };
        if let Err(oversized) = self.guard.inspect(&data) {
            let reason = oversized.to_string();
            self.connection.close(Code::H3_EXCESSIVE_LOAD.value(), reason.as_bytes());
            let connection_error = ConnectionErrorIncoming::Undefined(Arc::new(oversized));
            return Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error }));
        }
        Poll::Ready(Ok(Some(data)))
    }

    fn stop_sending(&mut self, error_code: u64) {
        if !self.over {
            self.over = true;
            self.stream.stop(error_code);
        }
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let code = match (self.guard.is_request(), self.connection.side()) {
            // A server that has answered needs nothing more of the request (RFC 9114 section 4.1).
            (true, Side::Server) => Code::H3_NO_ERROR,
            (true, Side::Client) => Code::H3_REQUEST_CANCELLED,
            (false, _) => Code::H3_STREAM_CREATION_ERROR,
        };
        quic::RecvStream::stop_sending(self, code.value());
    }
}

fn stream_id(id: endpoint::StreamId) -> StreamId {
    StreamId::try_from(id.to_wire()).expect("a stream ID of the transport's is a variable-length integer")
}

/// h3 broke its own contract.
fn misuse() -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: ConnectionErrorIncoming::InternalError(
            "a stream was written while it was not ready".to_owned(),
        ),
    }
}

fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::Closed(CloseReason::PeerApplication { error_code, .. }) => {
            ConnectionErrorIncoming::ApplicationClose { error_code }
        }
        ConnectionError::Closed(CloseReason::IdleTimeout) => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        WriteError::ConnectionLost(error) => lost(error),
        WriteError::ClosedStream => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error_code) => StreamErrorIncoming::StreamTerminated { error_code },
        ReadError::ConnectionLost(error) => lost(error),
        other @ (ReadError::ClosedStream | ReadError::TooLong { .. }) => {
            StreamErrorIncoming::Unknown(Box::new(other))
        }
    }
}

#[cfg(test)]
mod tests {
    use h3::proto::frame::Frame;

    use super::*;

    fn pieces(body: &Bytes) -> Vec<Bytes> {
        let mut data: WriteBuf<Payload> = Frame::Data(Payload::from(body.clone())).into();
        let mut pieces = Vec::new();
        while data.has_remaining() {
            pieces.push(next_piece(&mut data));
        }
        pieces
    }

    #[test]
    fn a_body_is_lent_and_not_copied() {
        let body = Bytes::from(vec![7; COPY_LIMIT + 1]);
        let pieces = pieces(&body);
        assert_eq!(pieces.len(), 2, "the frame's header, and the body");
        assert_eq!(pieces[0].as_ref(), [0x00, 0x44, 0x01]);
        assert_eq!(pieces[1].as_ptr(), body.as_ptr());
        assert_eq!(pieces[1].len(), body.len());
    }

    #[test]
    fn a_small_frame_is_one_piece() {
        let body = Bytes::from_static(b"small");
        assert_eq!(pieces(&body), [Bytes::from_static(b"\x00\x05small")]);
        assert!(LENT.take().is_none(), "nothing is left for a later piece to be taken for");
    }
}
