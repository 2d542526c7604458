//! What the application does with streams.

use bytes::Bytes;
use posthaste_policy::sample::CreditMoment;
use posthaste_units::ByteCount;
use posthaste_wire::{Direction, StreamId, varint};

use super::map::{Found, StreamMap};
use super::recv::RecvHalf;
use super::send::SendHalf;
use super::{Priority, Read, ReadError, Streams, WriteError};
use crate::error::LocalError;
use crate::flow::CreditContext;
use crate::limits::MAX_CONCURRENT_STREAMS;

impl Streams {
    /// Opens a stream. Before the peer's limits are known that always works, but such streams may have to
    /// wait until the peer permits them.
    pub(crate) fn open(&mut self, direction: Direction) -> Result<StreamId, LocalError> {
        let is_limits_known = self.is_limits_known;
        let local = self.local_mut(direction);
        // spec: rfc9000 4.6 opener-keeps-limit, 19.11 within-count
        let is_permitted = if is_limits_known {
            local.window.available() > 0
        } else {
            local.window.used() < MAX_CONCURRENT_STREAMS
        };
        if !is_permitted {
            local.is_opener_waiting = true;
            if is_limits_known {
                local.window.mark_blocked();
            }
            return Err(LocalError::StreamLimit);
        }
        local.window.take(1);
        let table = self.map.table(self.side, direction);
        // spec: rfc9000 2.1 id-names-one-stream
        let index = table.next();
        table.open_below(index + 1);
        Ok(StreamId::new(self.side, direction, index))
    }

    /// The next stream that the peer has opened, in order.
    pub(crate) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let peer = self.side.peer();
        let opened = self.map.table(peer, direction).next();
        let remote = self.remote_mut(direction);
        if remote.accepted >= opened {
            return None;
        }
        let index = remote.accepted;
        remote.accepted += 1;
        Some(StreamId::new(peer, direction, index))
    }

    /// The congestion window, by which it goes how much is kept for all streams.
    pub(crate) fn set_congestion_window(&mut self, window: ByteCount) {
        self.send_memory.set_window(window);
    }

    /// Takes data from the front of `data`, as much as there is room for, without copying large pieces. If that
    /// is nothing, a `Writable` event follows.
    pub(crate) fn write(&mut self, id: StreamId, data: &mut Bytes) -> Result<usize, WriteError> {
        self.write_with(id, data.len(), |send, count| send.push(data.split_to(count)))
    }

    /// The same with a copy of what is taken.
    pub(crate) fn write_copy(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        self.write_with(id, data.len(), |send, count| send.push_copy(data.get(..count).unwrap_or(data)))
    }

    /// Has `push` take as many of `length` bytes as there is room for.
    fn write_with(
        &mut self,
        id: StreamId,
        length: usize,
        push: impl FnOnce(&mut SendHalf, usize),
    ) -> Result<usize, WriteError> {
        let unsent = self.unsent_bound();
        let send = self.map.writable_half(id)?;
        if length == 0 {
            return Ok(0);
        }
        // The last bound is that of offsets (RFC 9000 section 4.5), which no real stream reaches.
        let own = unsent.of(send).saturating_sub(send.unsent()).min(varint::MAX - send.written());
        let urgency = send.priority.urgency;
        let room = self.send_memory.room(urgency).min(own).min(length as u64);
        let count = self.send_memory.keep(room, urgency) as usize;
        if count == 0 {
            send.is_writer_waiting = true;
        } else {
            push(send, count);
        }
        self.refresh(id);
        self.note_blocked();
        Ok(count)
    }

    /// Ends a stream after what has been written.
    pub(crate) fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        let send = self.map.writable_half(id)?;
        send.finish();
        // While data wait to be sent, the end changes nothing about when.
        if send.unsent() == 0 {
            self.refresh(id);
        }
        Ok(())
    }

    /// Gives a stream up: what has not arrived need not.
    pub(crate) fn reset(&mut self, id: StreamId, error_code: u64) -> Result<(), LocalError> {
        let send = self.map.send_half(id)?;
        if send.is_reset() {
            // Resetting what the peer has stopped meanwhile is no mistake of the caller's.
            return if send.stopped.is_some() { Ok(()) } else { Err(LocalError::Finished(id)) };
        }
        let freed = send.reset(error_code);
        self.refresh(id);
        self.release(freed);
        Ok(())
    }

    fn recv_half(&mut self, id: StreamId) -> Result<&mut RecvHalf, LocalError> {
        if !self.map.maker.receives_on(id) {
            return Err(LocalError::WrongDirection(id));
        }
        let recv = match self.map.find(id) {
            Found::Live(stream) => stream.recv.as_deref_mut().ok_or(LocalError::UnknownStream(id))?,
            Found::Future | Found::Gone => return Err(LocalError::UnknownStream(id)),
        };
        if recv.is_stopped() { Err(LocalError::Finished(id)) } else { Ok(recv) }
    }

    /// Reads at most `max` bytes (at least one) of what has arrived in order.
    pub(crate) fn read(
        &mut self,
        id: StreamId,
        max: usize,
        context: &CreditContext,
    ) -> Result<Read, ReadError> {
        if !self.map.maker.receives_on(id) {
            return Err(LocalError::WrongDirection(id).into());
        }
        let mut around = self.surroundings(false);
        let (Found::Live(stream), credit) = self.map.find_with_credit(id) else {
            return Err(LocalError::UnknownStream(id).into());
        };
        let Some(recv) = &mut stream.recv else { return Err(LocalError::UnknownStream(id).into()) };
        if recv.is_stopped() {
            return Err(LocalError::Finished(id).into());
        }
        if let Some(error_code) = recv.reset_code() {
            stream.end_recv();
            self.refresh(id);
            return Err(ReadError::Reset(error_code));
        }
        let read = recv.read(max.max(1), &mut self.receive_window);
        match read {
            Read::Data(ref data) => {
                if recv.is_incomplete() {
                    self.code.receiver.deliver(id, data);
                }
                around.is_ack_due = recv.is_listed_for_ack;
                let has_update = recv.ask(CreditMoment::Consumed, context, &around, credit);
                self.ask_connection(CreditMoment::Consumed, context);
                if has_update {
                    self.refresh(id);
                }
            }
            Read::Finished => {
                stream.end_recv();
                self.refresh(id);
            }
            Read::Blocked => {}
        }
        Ok(read)
    }

    /// Tells the peer that no more of a stream is wanted, and drops what has come of it.
    pub(crate) fn stop_sending(&mut self, id: StreamId, error_code: u64) -> Result<(), LocalError> {
        self.recv_half(id)?;
        if let Found::Live(stream) = self.map.find(id)
            && let Some(recv) = &mut stream.recv
        {
            recv.stop(error_code.min(varint::MAX), &mut self.receive_window);
        }
        // What is dropped now has been received, so there has been a context.
        if let Some(context) = self.last_context {
            self.ask_connection(CreditMoment::Consumed, &context);
        }
        self.refresh(id);
        Ok(())
    }

    /// Changes a stream's place in the order of sending.
    pub(crate) fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), LocalError> {
        let send = self.map.send_half(id)?;
        if std::mem::replace(&mut send.priority, priority) == priority {
            return Ok(());
        }
        // What has nothing to send, as a new stream, stands nowhere.
        let mut has_place = send.place.is_some();
        if let Found::Live(stream) = self.map.find(id)
            && let Some((urgency, number)) = &mut stream.waits_for_memory
        {
            self.memory_waiters.remove(&(*urgency, *number, id));
            *urgency = priority.urgency;
            self.memory_waiters.insert((*urgency, *number, id));
            has_place = true;
        }
        if has_place {
            self.refresh(id);
        }
        Ok(())
    }
}

impl StreamMap {
    /// The sending half of a stream that this end has not ended.
    fn writable_half(&mut self, id: StreamId) -> Result<&mut SendHalf, WriteError> {
        let send = self.send_half(id)?;
        match send.stopped {
            Some(error_code) => Err(WriteError::Stopped(error_code)),
            // spec: rfc9000 4.5 nothing-beyond-the-end
            None if send.is_ended() => Err(LocalError::Finished(id).into()),
            None => Ok(send),
        }
    }

    fn send_half(&mut self, id: StreamId) -> Result<&mut SendHalf, LocalError> {
        if !self.maker.sends_on(id) {
            return Err(LocalError::WrongDirection(id));
        }
        match self.find(id) {
            Found::Live(stream) => stream.send.as_deref_mut().ok_or(LocalError::UnknownStream(id)),
            Found::Future | Found::Gone => Err(LocalError::UnknownStream(id)),
        }
    }
}
