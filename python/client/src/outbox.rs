//! The body of a request between Python and the network.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http_body::{Frame, SizeHint};
use posthaste_endpoint::Bytes;
use pyo3::prelude::*;
use tokio::sync::Notify;

use crate::completions::{Completions, Outcome};
use crate::fault::{Fault, lock};
use crate::process::Owned;

/// Bytes of a request that may wait for the network, and one piece beyond; with more, the program waits.
const SEND_AHEAD: usize = 256 * 1024;

/// What is to be sent and has not been taken by the connection yet.
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Wakes those who wait for the end of the upload.
    gone: Notify,
    completions: Arc<Completions>,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// What the body announces, if its length is known.
    length: Option<u64>,
    /// How it ends; a failure's text makes the server see that it is not whole.
    end: Option<Result<(), String>>,
    /// The task that sends it.
    sender: Option<Waker>,
    /// Who waits for room.
    waiting: Option<u64>,
    /// Nobody takes more: it is sent, or given up.
    is_gone: bool,
}

impl Outbox {
    /// For a body that comes in pieces.
    pub(crate) fn new(completions: Arc<Completions>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), gone: Notify::new(), completions })
    }

    /// With the whole body.
    pub(crate) fn full(completions: Arc<Completions>, content: &[u8]) -> Arc<Self> {
        let outbox = Self::new(completions);
        let mut state = lock(&outbox.state);
        state.length = Some(content.len() as u64);
        state.push(content);
        state.end = Some(Ok(()));
        drop(state);
        outbox
    }

    /// Waits until the body is sent or given up.
    pub(crate) async fn gone(&self) {
        loop {
            if lock(&self.state).is_gone {
                return;
            }
            self.gone.notified().await;
        }
    }

    fn end(&self, end: Result<(), String>) {
        let mut state = lock(&self.state);
        if state.end.is_none() {
            state.end = Some(end);
            state.wake_sender();
        }
    }
}

impl State {
    fn push(&mut self, piece: &[u8]) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(Bytes::copy_from_slice(piece));
        }
        self.wake_sender();
    }

    fn wake_sender(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.wake();
        }
    }
}

/// The network's end of an [`Outbox`].
pub(crate) struct OutboxBody(pub(crate) Arc<Outbox>);

impl OutboxBody {
    /// Tells the program that there is room, if it waits.
    fn wake_program(&self, state: &mut State) {
        if let Some(operation) = state.waiting.take() {
            self.0.completions.complete(operation, Outcome::Ready);
        }
    }
}

impl http_body::Body for OutboxBody {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        let mut state = lock(&self.0.state);
        if let Some(piece) = state.pieces.pop_front() {
            state.bytes -= piece.len();
            if state.bytes < SEND_AHEAD {
                self.wake_program(&mut state);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &state.end {
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(reason)) => Poll::Ready(Some(Err(reason.clone()))),
            None => {
                state.sender = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = lock(&self.0.state);
        state.bytes == 0 && matches!(state.end, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0.state).length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for OutboxBody {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_gone = true;
        state.pieces.clear();
        state.bytes = 0;
        self.wake_program(&mut state);
        self.0.gone.notify_one();
    }
}

/// The body of a request that comes in pieces. Dropped before its end, the request is reset.
#[pyclass(frozen, module = "posthaste._native")]
pub(crate) struct Outgoing {
    pub(crate) outbox: Owned<Unfinished>,
}

/// Ends an outbox that is not ended otherwise.
pub(crate) struct Unfinished(pub(crate) Arc<Outbox>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.end(Err("it was given up half-way".to_owned()));
    }
}

#[pymethods]
impl Outgoing {
    /// Takes a piece. False if nobody wants it: the server has all that it needs, or the request has failed.
    fn send(&self, piece: &[u8]) -> Result<bool, Fault> {
        let mut state = lock(&self.outbox.get()?.0.state);
        if state.is_gone {
            return Ok(false);
        }
        state.push(piece);
        Ok(true)
    }

    /// `None` if there is room for another piece; else an operation that completes when there is.
    fn room(&self) -> Result<Option<u64>, Fault> {
        let outbox = &self.outbox.get()?.0;
        let mut state = lock(&outbox.state);
        if state.bytes < SEND_AHEAD || state.is_gone {
            return Ok(None);
        }
        let operation = outbox.completions.begin();
        state.waiting = Some(operation);
        Ok(Some(operation))
    }

    /// Ends the body, whole.
    fn finish(&self) -> Result<(), Fault> {
        self.outbox.get()?.0.end(Ok(()));
        Ok(())
    }

    /// Ends the body half-way.
    fn fail(&self, reason: String) -> Result<(), Fault> {
        self.outbox.get()?.0.end(Err(reason));
        Ok(())
    }
}
