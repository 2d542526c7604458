//! Where an endpoint keeps its connections: a slab with handles that are never reused.

use std::net::IpAddr;

use posthaste_units::Time;

use super::pending::Ticket;
use crate::connection::Connection;

/// Names a connection of one endpoint; never reused, even after the connection is drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionHandle {
    index: u32,
    generation: u32,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
    /// Queued to be polled for datagrams.
    is_dirty: bool,
    /// Queued to be polled for events.
    is_eventful: bool,
    /// While its handshake counts among those in progress.
    pending: Option<Ticket>,
    /// The peer's host, while it counts among the live connections there.
    counted_at: Option<IpAddr>,
    /// The time under which it stands in the endpoint's timers.
    deadline: Option<Time>,
}

/// The slab. A slot's marks outlive its connection, because the queues that they stand for do.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
}

impl Slots {
    pub(crate) fn insert(&mut self, connection: Connection) -> ConnectionHandle {
        self.len += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let mut generation = 0;
        if let Some(slot) = self.slot_mut(index) {
            slot.connection = Some(Box::new(connection));
            generation = slot.generation;
        }
        ConnectionHandle { index, generation }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<(ConnectionHandle, Box<Connection>)> {
        let handle = self.handle(index)?;
        let slot = self.slot_mut(index)?;
        let connection = slot.connection.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.len -= 1;
        Some((handle, connection))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The index of a handle, unless its connection is gone.
    pub(crate) fn index(&self, handle: ConnectionHandle) -> Option<u32> {
        let slot = self.slots.get(handle.index as usize)?;
        (slot.generation == handle.generation && slot.connection.is_some()).then_some(handle.index)
    }

    pub(crate) fn handle(&self, index: u32) -> Option<ConnectionHandle> {
        let slot = self.slots.get(index as usize)?;
        slot.connection.is_some().then_some(ConnectionHandle { index, generation: slot.generation })
    }

    pub(crate) fn get(&self, index: u32) -> Option<&Connection> {
        self.slots.get(index as usize)?.connection.as_deref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.slot_mut(index)?.connection.as_deref_mut()
    }

    /// Marks a connection as queued for datagrams; the mark before, or `None` if there is no such slot.
    pub(crate) fn set_dirty(&mut self, index: u32, mark: bool) -> Option<bool> {
        self.slot_mut(index).map(|slot| std::mem::replace(&mut slot.is_dirty, mark))
    }

    /// Marks a connection as queued for events; the mark before, or `None` if there is no such slot.
    pub(crate) fn set_eventful(&mut self, index: u32, mark: bool) -> Option<bool> {
        self.slot_mut(index).map(|slot| std::mem::replace(&mut slot.is_eventful, mark))
    }

    /// Notes that a handshake is in progress, or over; the note before.
    pub(crate) fn set_pending(&mut self, index: u32, ticket: Option<Ticket>) -> Option<Ticket> {
        self.slot_mut(index).and_then(|slot| std::mem::replace(&mut slot.pending, ticket))
    }

    /// Notes the host at which a connection counts as live; the host before.
    pub(crate) fn set_counted_at(&mut self, index: u32, host: Option<IpAddr>) -> Option<IpAddr> {
        self.slot_mut(index).and_then(|slot| std::mem::replace(&mut slot.counted_at, host))
    }

    /// Notes a connection's place in the endpoint's timers; the place before.
    pub(crate) fn set_deadline(&mut self, index: u32, deadline: Option<Time>) -> Option<Time> {
        self.slot_mut(index).and_then(|slot| std::mem::replace(&mut slot.deadline, deadline))
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)
    }
}
