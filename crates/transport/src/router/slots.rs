//! Where an endpoint keeps its connections: a slab with handles that are never reused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// Slots that are kept when few are in use.
const LEAST_SLOTS: usize = 64;

struct Slot<C> {
    generation: u32,
    /// Queued to be polled for datagrams.
    is_dirty: bool,
    /// Queued to be polled for events.
    is_eventful: bool,
    tenant: Option<Box<Tenant<C>>>,
    /// The time under which it stands in the endpoint's timers.
    deadline: Option<Time>,
}

/// A connection, and what is noted of it. Not in the slot: a crowd leaves slots behind.
pub(crate) struct Tenant<C = Connection> {
    pub(crate) connection: C,
    /// While its handshake counts among those in progress.
    pending: Option<Ticket>,
    /// The peer's host, while it counts among the live connections there.
    counted_at: Option<IpAddr>,
}

impl<C> Slot<C> {
    /// The slot of a handle that is given out next.
    fn new() -> Self {
        Self { generation: 0, is_dirty: false, is_eventful: false, tenant: None, deadline: None }
    }

    /// True if something refers to the slot.
    fn is_in_use(&self) -> bool {
        self.tenant.is_some() || self.is_dirty || self.is_eventful || self.deadline.is_some()
    }
}

/// A connection that is used, with what its marks were before.
pub(crate) struct Touched<'a, C> {
    pub(crate) index: u32,
    pub(crate) connection: &'a mut C,
    pub(crate) was_dirty: bool,
    pub(crate) was_eventful: bool,
}

/// The slab. A slot's marks outlive its connection, because the queues that they stand for do.
pub(crate) struct Slots<C = Connection> {
    slots: Vec<Slot<C>>,
    /// The lowest is taken first, so that those at the end become free when a crowd has left.
    free: BinaryHeap<Reverse<u32>>,
    len: usize,
    /// Of the next connection, whichever its slot: slots come and go.
    next_generation: u32,
}

impl<C> Default for Slots<C> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: BinaryHeap::new(), len: 0, next_generation: 0 }
    }
}

impl<C> Slots<C> {
    pub(crate) fn insert(&mut self, connection: C) -> ConnectionHandle {
        self.len += 1;
        let index = self.free.pop().map_or_else(
            || {
                self.slots.push(Slot::new());
                (self.slots.len() - 1) as u32
            },
            |Reverse(lowest)| lowest,
        );
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        if let Some(slot) = self.slot_mut(index) {
            slot.tenant = Some(Box::new(Tenant { connection, pending: None, counted_at: None }));
            slot.generation = generation;
        }
        ConnectionHandle { index, generation }
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<(ConnectionHandle, Box<Tenant<C>>)> {
        let handle = self.handle(index)?;
        let slot = self.slot_mut(index)?;
        let tenant = slot.tenant.take()?;
        self.free.push(Reverse(index));
        self.len -= 1;
        // Now and then, so that it costs each connection little however many slots it looks at.
        if self.len == 0 || self.len.is_power_of_two() {
            self.shrink();
        }
        Some((handle, tenant))
    }

    /// Gives the memory of a crowd that has left back, as far as the slots at the end are not in use.
    fn shrink(&mut self) {
        if self.slots.len() <= LEAST_SLOTS.max(4 * self.len) {
            return;
        }
        let used = self.slots.iter().rposition(Slot::is_in_use).map_or(0, |last| last + 1);
        let kept = used.max(LEAST_SLOTS);
        if kept <= self.slots.len() / 2 {
            self.slots.truncate(kept);
            self.slots.shrink_to_fit();
            self.free.retain(|Reverse(index)| (*index as usize) < kept);
            self.free.shrink_to_fit();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The index of a handle, unless its connection is gone.
    pub(crate) fn index(&self, handle: ConnectionHandle) -> Option<u32> {
        let slot = self.slots.get(handle.index as usize)?;
        (slot.generation == handle.generation && slot.tenant.is_some()).then_some(handle.index)
    }

    pub(crate) fn handle(&self, index: u32) -> Option<ConnectionHandle> {
        let slot = self.slots.get(index as usize)?;
        slot.tenant.is_some().then_some(ConnectionHandle { index, generation: slot.generation })
    }

    pub(crate) fn get(&self, index: u32) -> Option<&C> {
        Some(&self.slots.get(index as usize)?.tenant.as_deref()?.connection)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut C> {
        Some(&mut self.tenant_mut(index)?.connection)
    }

    /// The connection of a handle, marked as queued for datagrams and events, unless it is gone.
    pub(crate) fn touch(&mut self, handle: ConnectionHandle) -> Option<Touched<'_, C>> {
        let ConnectionHandle { index, generation } = handle;
        let slot = self.slot_mut(index).filter(|slot| slot.generation == generation)?;
        let connection = &mut slot.tenant.as_deref_mut()?.connection;
        let was_dirty = std::mem::replace(&mut slot.is_dirty, true);
        let was_eventful = std::mem::replace(&mut slot.is_eventful, true);
        Some(Touched { index, connection, was_dirty, was_eventful })
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
        self.tenant_mut(index).and_then(|tenant| std::mem::replace(&mut tenant.pending, ticket))
    }

    /// Notes the host at which a connection counts as live; the host before.
    pub(crate) fn set_counted_at(&mut self, index: u32, host: Option<IpAddr>) -> Option<IpAddr> {
        self.tenant_mut(index).and_then(|tenant| std::mem::replace(&mut tenant.counted_at, host))
    }

    /// Notes a connection's place in the endpoint's timers; the place before.
    pub(crate) fn set_deadline(&mut self, index: u32, deadline: Option<Time>) -> Option<Time> {
        self.slot_mut(index).and_then(|slot| std::mem::replace(&mut slot.deadline, deadline))
    }

    fn tenant_mut(&mut self, index: u32) -> Option<&mut Tenant<C>> {
        self.slot_mut(index)?.tenant.as_deref_mut()
    }

    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<C>> {
        self.slots.get_mut(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_crowd_is_given_back_and_no_handle_comes_again() {
        let mut slots: Slots<usize> = Slots::default();
        let stays = slots.insert(0);
        let crowd: Vec<_> = (1..10_000).map(|number| slots.insert(number)).collect();
        assert_eq!(slots.slots.len(), 10_000);
        for (handle, number) in crowd.iter().zip(1..) {
            let index = slots.index(*handle).expect("it is there");
            let (removed, tenant) = slots.remove(index).expect("it is there");
            assert_eq!((removed, tenant.connection), (*handle, number));
            assert_eq!(slots.index(*handle), None);
        }
        assert_eq!((slots.slots.len(), slots.len()), (LEAST_SLOTS, 1));
        assert!(slots.slots.capacity() + slots.free.capacity() < 4 * LEAST_SLOTS);
        let index = slots.index(stays).expect("it has stayed");
        assert_eq!(slots.get(index), Some(&0));
        let next: Vec<_> = (0..1_000).map(|number| slots.insert(number)).collect();
        let all = crowd.iter().chain(&next).chain([&stays]);
        assert_eq!(all.collect::<std::collections::BTreeSet<_>>().len(), 11_000, "handles are new");
        assert!(crowd.iter().all(|gone| slots.index(*gone).is_none()));
        assert!(next.iter().zip(0..).all(|(handle, number)| {
            slots.index(*handle).and_then(|index| slots.get(index)) == Some(&number)
        }));
    }

    #[test]
    fn those_that_come_after_a_crowd_do_not_keep_its_room() {
        let mut slots: Slots<usize> = Slots::default();
        let crowd: Vec<_> = (0..2_000).map(|number| slots.insert(number)).collect();
        // Those that came first leave last: theirs are the slots that were freed last.
        for handle in crowd[200..].iter().chain(&crowd[..200]).take(1_990) {
            let index = slots.index(*handle).expect("it is there");
            slots.remove(index);
        }
        let newcomers: Vec<_> = (0..20).map(|number| slots.insert(number)).collect();
        for handle in &crowd[190..200] {
            let index = slots.index(*handle).expect("it is there");
            slots.remove(index);
        }
        for handle in &newcomers[..10] {
            let index = slots.index(*handle).expect("it is there");
            slots.remove(index);
        }
        assert_eq!((slots.len(), slots.slots.len()), (10, LEAST_SLOTS));
        assert!(
            size_of::<Slot<Connection>>() <= 32,
            "{} bytes are left of each",
            size_of::<Slot<Connection>>()
        );
    }

    #[test]
    fn slots_that_something_refers_to_stay() {
        let mut slots: Slots<usize> = Slots::default();
        let handles: Vec<_> = (0..1_000).map(|number| slots.insert(number)).collect();
        let last = slots.index(handles[999]).expect("it is there");
        slots.set_dirty(last, true);
        for handle in &handles {
            let index = slots.index(*handle).expect("it is there");
            slots.remove(index);
        }
        assert_eq!((slots.len(), slots.slots.len()), (0, 1_000));
        assert_eq!(slots.set_dirty(last, false), Some(true));
        let handle = slots.insert(7);
        let index = slots.index(handle).expect("it is there");
        slots.remove(index);
        assert_eq!(slots.slots.len(), LEAST_SLOTS);
    }
}
