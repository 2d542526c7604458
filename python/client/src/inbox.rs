//! The body of a response between the network and Python.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use posthaste_endpoint::Bytes;
use posthaste_http::http::HeaderMap;
use tokio::sync::Notify;

use crate::completions::{Completions, Outcome};
use crate::fault::{Fault, lock};

/// Bytes of a response that may wait for the program; with more, nothing is read from the connection, and flow control
/// stops the server.
pub(crate) const READ_AHEAD: usize = 1 << 20;

/// What has arrived and is not yet read.
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// Wakes the task that fills it.
    room: Notify,
    completions: Arc<Completions>,
}

struct State {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    /// Bytes that may wait.
    bound: usize,
    /// How the body ended, with its trailers.
    end: Option<Result<Option<HeaderMap>, Fault>>,
    /// Who waits, and for how many bytes.
    waiting: Option<(u64, usize)>,
}

/// What there is for a reader.
pub(crate) enum Available {
    /// Bytes, in the pieces in which they came.
    Bytes(VecDeque<Bytes>),
    /// The body is complete.
    End,
    /// Nothing yet; this operation completes when there is.
    Wait(u64),
}

impl Inbox {
    pub(crate) fn new(completions: Arc<Completions>) -> Self {
        let state = State { pieces: VecDeque::new(), bytes: 0, bound: READ_AHEAD, end: None, waiting: None };
        Self { state: Mutex::new(state), room: Notify::new(), completions }
    }

    /// Waits until there is room for more.
    pub(crate) async fn room(&self) {
        loop {
            if self.has_room() {
                return;
            }
            self.room.notified().await;
        }
    }

    fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.bytes < state.bound
    }

    /// Takes what has arrived.
    pub(crate) fn push(&self, piece: Bytes) {
        let mut state = lock(&self.state);
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        self.wake(&mut state);
    }

    /// Nothing more comes.
    pub(crate) fn end(&self, end: Result<Option<HeaderMap>, Fault>) {
        let mut state = lock(&self.state);
        state.end = Some(end);
        self.wake(&mut state);
    }

    fn wake(&self, state: &mut State) {
        let is_over = state.end.is_some();
        if let Some((operation, _)) = state.waiting.take_if(|(_, bytes)| is_over || state.bytes >= *bytes) {
            self.completions.complete(operation, Outcome::Ready);
        }
    }

    /// The next bytes, at most `max`.
    pub(crate) fn read(&self, max: usize) -> Result<Available, Fault> {
        let mut state = lock(&self.state);
        if state.bytes == 0 {
            return self.end_or_wait(&mut state, 1);
        }
        let mut taken = VecDeque::new();
        let mut left = max;
        while left > 0
            && let Some(mut piece) = state.pieces.pop_front()
        {
            if piece.len() > left {
                let rest = piece.split_off(left);
                state.pieces.push_front(rest);
            }
            left -= piece.len();
            taken.push_back(piece);
        }
        state.bytes -= max - left;
        self.room.notify_one();
        Ok(Available::Bytes(taken))
    }

    /// All bytes, once the last is here; a failure as soon as there are more than `limit`.
    pub(crate) fn read_all(&self, limit: usize) -> Result<Available, Fault> {
        let mut state = lock(&self.state);
        if state.bytes > limit {
            return Err(Fault::too_large(limit));
        }
        if state.end.is_none() || matches!(state.end, Some(Err(_))) {
            let beyond = limit.saturating_add(1);
            state.bound = beyond.max(READ_AHEAD);
            self.room.notify_one();
            return self.end_or_wait(&mut state, beyond);
        }
        state.bytes = 0;
        Ok(Available::Bytes(std::mem::take(&mut state.pieces)))
    }

    /// Takes the permission of [`Self::read_all`] back: nobody waits for the whole any more.
    pub(crate) fn restrain(&self) {
        lock(&self.state).bound = READ_AHEAD;
    }

    fn end_or_wait(&self, state: &mut State, bytes: usize) -> Result<Available, Fault> {
        match &state.end {
            Some(Ok(_)) => Ok(Available::End),
            Some(Err(fault)) => Err(fault.clone()),
            None => {
                let operation = self.completions.begin();
                // Who waited before has been cancelled.
                state.waiting = Some((operation, bytes));
                Ok(Available::Wait(operation))
            }
        }
    }

    /// True once the last byte has arrived.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(lock(&self.state).end, Some(Ok(_)))
    }

    /// The trailers, once the last byte has arrived, if there are any.
    pub(crate) fn trailers(&self) -> Option<HeaderMap> {
        lock(&self.state).end.as_ref()?.as_ref().ok()?.clone()
    }
}
