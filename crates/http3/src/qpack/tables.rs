//! The QPACK state of a connection, which the tasks of its streams share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::decode::{self, DecodeError, Field};
use super::decoder::Decoder;
use super::encode;
use super::encoder::Encoder;
use crate::error::Error;
use crate::peer::Role;
use crate::settings::Settings;

/// Says which of this end's QPACK streams take instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// The encoder stream has sent what it was given.
    pub encoder: bool,
    /// The decoder stream has.
    pub decoder: bool,
    /// A message follows, in whose packet acknowledgements of sections cost nothing. Alone they wait until they are many.
    pub is_sending: bool,
}

/// Instructions for this end's QPACK streams; empty if nothing is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// For the encoder stream (RFC 9204 section 4.3).
    pub encoder: Vec<u8>,
    /// For the decoder stream (RFC 9204 section 4.4).
    pub decoder: Vec<u8>,
}

/// Both dynamic tables of a connection. Clones share them: one goes to each [`MessageReader`](crate::MessageReader) and
/// to [`Peer`](crate::Peer); the owner of the connection's unidirectional streams sends what
/// is [`due`](Self::due).
///
/// A section that refers to neither table takes no lock to be read.
#[derive(Debug, Clone)]
pub struct Tables(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    decoder: Decoder,
    encoder: Encoder,
    /// Woken when there are new instructions to send.
    sender: Option<Waker>,
}

impl Tables {
    /// The tables of a new connection on which this end has `role` and announces `settings`. Nothing is inserted into the peer's table
    /// before its own settings have come.
    pub fn new(role: Role, settings: &Settings) -> Self {
        let decoder = Decoder::new(settings.qpack_max_table_capacity, settings.qpack_blocked_streams);
        let encoder = Encoder::new(role == Role::Client);
        Self(Arc::new(Mutex::new(State { decoder, encoder, sender: None })))
    }

    /// The state behind the lock is whole after every call, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer's settings have come.
    pub(crate) fn on_settings(&self, settings: &Settings) {
        self.state().encoder.on_settings(settings);
    }

    pub(crate) fn on_encoder_stream(&self, data: &[u8]) -> Result<(), Error> {
        let ready = self.state().decoder.on_encoder_stream(data)?;
        ready.into_iter().for_each(Waker::wake);
        Ok(())
    }

    pub(crate) fn on_decoder_stream(&self, data: &[u8]) -> Result<(), Error> {
        self.state().encoder.on_decoder_stream(data)
    }

    /// Decodes a section of `stream`; `None` if it has to wait for the encoder stream.
    pub(crate) fn decode(
        &self,
        stream: u64,
        section: &[u8],
        limit: u64,
    ) -> Result<Option<Vec<Field>>, DecodeError> {
        // A Required Insert Count of 0: the section stands for itself.
        if section.first() == Some(&0) {
            return decode::decode(section, limit).map(Some);
        }
        let mut state = self.state();
        let decoded = state.decoder.decode(stream, section, limit)?;
        let sender = if state.decoder.is_due() { state.sender.take() } else { None };
        drop(state);
        wake(sender);
        Ok(decoded)
    }

    /// Ready when the section of `stream` that waits can be decoded.
    pub(crate) fn poll_unblocked(&self, stream: u64, cx: &Context<'_>) -> Poll<()> {
        let (ready, _former) = self.state().decoder.poll_unblocked(stream, cx);
        ready
    }

    /// Nothing more of `stream` will be read.
    pub(crate) fn cancel(&self, stream: u64) {
        let mut state = self.state();
        let _waiting = state.decoder.cancel(stream);
        let sender = state.sender.take();
        drop(state);
        wake(sender);
    }

    /// Has `write` encode a section of `stream` at the end of `buffer`: its lines, then the prefix that belongs before
    /// them. Returns where the lines end.
    pub(crate) fn encode(
        &self,
        stream: u64,
        buffer: &mut Vec<u8>,
        write: impl FnOnce(&mut encode::Encoder<'_>),
    ) -> usize {
        let mut state = self.state();
        let had_instructions = state.encoder.has_instructions();
        let mut section = if state.encoder.is_useful() {
            encode::Encoder::dynamic_lines(buffer, state.encoder.begin(stream))
        } else {
            encode::Encoder::lines(buffer)
        };
        write(&mut section);
        let end = section.finish();
        let is_new = !had_instructions && state.encoder.has_instructions();
        let sender = if is_new { state.sender.take() } else { None };
        drop(state);
        wake(sender);
        end
    }

    /// Takes the instructions that are due, on the streams that take some now, and has `waker` woken when there are more.
    ///
    /// # Errors
    /// The peer has not taken this end's instructions for too long.
    pub fn due(&self, waker: &Waker, takes: Takes) -> Result<Due, Error> {
        let mut state = self.state();
        let is_same = state.sender.as_ref().is_some_and(|registered| registered.will_wake(waker));
        let _former = if is_same { None } else { state.sender.replace(waker.clone()) };
        let checked = state.decoder.check();
        let encoder = if takes.encoder { state.encoder.take_instructions() } else { Vec::new() };
        let decoder =
            if takes.decoder { state.decoder.take_instructions(takes.is_sending) } else { Vec::new() };
        drop(state);
        checked.map(|()| Due { encoder, decoder })
    }

    /// Says whether the encoder stream takes what is given to it: it is open, and the peer leaves room on it. While it
    /// does not, nothing is inserted; so it is at first.
    pub fn set_encoder_writable(&self, is_writable: bool) {
        self.state().encoder.set_writable(is_writable);
    }
}

/// Wakes what sends instructions; without the lock, because a waker may drop a stream's reader.
fn wake(sender: Option<Waker>) {
    if let Some(sender) = sender {
        sender.wake();
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
