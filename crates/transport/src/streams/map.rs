//! Streams by identifier: O(1) to find, and no more memory than the streams that are open.

use std::collections::{BTreeMap, VecDeque};

use posthaste_wire::{Direction, Side, StreamId};

use super::stream::{CreditFactory, Maker, Stream};

/// Slots that a table may have beyond four for each open stream before its oldest stream moves aside.
const SPARE_SLOTS: usize = 64;

/// Streams that are over whose memory a connection keeps, until it rests.
const SPARE_STREAMS: usize = 32;

/// Memory of streams that are over: the boxes are what is used again, their halves' as well.
type Spare = Vec<Box<Stream>>;

/// One stream that has been opened.
#[derive(Debug)]
enum Slot {
    /// Open, but nothing has been done with it (a frame for a later stream opened it): no memory is spent on it.
    Untouched,
    Live(Box<Stream>),
    Gone,
}

impl Slot {
    /// Makes the stream of an untouched slot, in memory of one that is over if there is any.
    #[inline(never)]
    fn touch(&mut self, spare: &mut Spare, make: impl FnOnce(&mut Stream)) -> Found<'_> {
        let mut stream = spare.pop().unwrap_or_default();
        make(&mut stream);
        *self = Self::Live(stream);
        match self {
            Self::Live(stream) => Found::Live(stream),
            Self::Untouched | Self::Gone => Found::Gone,
        }
    }
}

/// What is known of a stream.
pub(super) enum Found<'a> {
    /// It has not been opened.
    Future,
    Live(&'a mut Stream),
    /// It is over and forgotten.
    Gone,
}

/// The streams of one initiator and direction, which are opened in order (RFC 9000 section 2.1).
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Streams of the indices from `base` on.
    slots: VecDeque<Slot>,
    base: u64,
    /// Open streams below `base`: without them one long-lived stream would pin a slot for each later one.
    elders: BTreeMap<u64, Slot>,
    open: usize,
}

impl Table {
    /// Index of the stream that is opened next.
    pub(super) fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Streams that are open.
    pub(super) fn open_count(&self) -> usize {
        self.open
    }

    /// Opens all streams below `next`.
    pub(super) fn open_below(&mut self, next: u64) {
        while self.next() < next {
            self.slots.push_back(Slot::Untouched);
            self.open += 1;
        }
        self.compact();
    }

    /// Finds a stream; an untouched one is made by `make`.
    #[inline]
    fn find(&mut self, index: u64, spare: &mut Spare, make: impl FnOnce(&mut Stream)) -> Found<'_> {
        let slot = match index.checked_sub(self.base) {
            Some(position) => match self.slots.get_mut(position as usize) {
                Some(slot) => slot,
                None => return Found::Future,
            },
            None => match self.elder(index) {
                Some(slot) => slot,
                None => return Found::Gone,
            },
        };
        match slot {
            Slot::Live(stream) => Found::Live(stream),
            Slot::Untouched => slot.touch(spare, make),
            Slot::Gone => Found::Gone,
        }
    }

    #[cold]
    fn elder(&mut self, index: u64) -> Option<&mut Slot> {
        self.elders.get_mut(&index)
    }

    /// Forgets a stream that is over; its memory.
    fn remove(&mut self, index: u64) -> Option<Box<Stream>> {
        let slot = match index.checked_sub(self.base) {
            Some(position) => {
                let slot = self.slots.get_mut(position as usize);
                slot.map_or(Slot::Gone, |slot| std::mem::replace(slot, Slot::Gone))
            }
            None => self.elders.remove(&index).unwrap_or(Slot::Gone),
        };
        self.open -= usize::from(!matches!(slot, Slot::Gone));
        self.compact();
        match slot {
            Slot::Live(stream) => Some(stream),
            Slot::Untouched | Slot::Gone => None,
        }
    }

    /// Drops slots of streams that are over, and moves old open ones aside where they keep too many.
    fn compact(&mut self) {
        while let Some(front) = self.slots.front() {
            let is_gone = matches!(front, Slot::Gone);
            if !is_gone && self.slots.len() <= SPARE_SLOTS + 4 * self.open {
                return;
            }
            if let Some(slot) = self.slots.pop_front()
                && !is_gone
            {
                self.elders.insert(self.base, slot);
            }
            self.base += 1;
        }
    }

    /// Gives back room that is not in use.
    fn shrink(&mut self) {
        for slot in self.slots.iter_mut().chain(self.elders.values_mut()) {
            if let Slot::Live(stream) = slot {
                stream.shrink();
            }
        }
        self.slots.shrink_to_fit();
        if self.elders.is_empty() {
            self.elders = BTreeMap::new();
        }
    }

    /// Indices of the streams on which something has been done, in order.
    pub(super) fn touched(&self) -> impl Iterator<Item = u64> {
        let slots = self.slots.iter().zip(self.base..).map(|(slot, index)| (index, slot));
        let elders = self.elders.iter().map(|(index, slot)| (*index, slot));
        elders.chain(slots).filter(|(_, slot)| matches!(slot, Slot::Live(_))).map(|(index, _)| index)
    }

    /// Slots and elders, for tests of the bound.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        self.slots.len() + self.elders.len()
    }
}

/// The four tables of a connection, and what makes a stream when it is first touched.
#[derive(Debug)]
pub(super) struct StreamMap {
    client: [Table; 2],
    server: [Table; 2],
    pub(super) maker: Maker,
    /// Memory of streams that are over, at most [`SPARE_STREAMS`]: for a request that is answered at once it costs as much to
    /// get memory as to use it.
    spare: Spare,
}

impl StreamMap {
    pub(super) fn new(maker: Maker) -> Self {
        Self { client: Default::default(), server: Default::default(), maker, spare: Vec::new() }
    }

    fn split(&mut self, initiator: Side, direction: Direction) -> (&mut Table, &Maker, &mut Spare) {
        let [bidirectional, unidirectional] = match initiator {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        };
        let table = match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        };
        (table, &self.maker, &mut self.spare)
    }

    /// The streams that `initiator` opens in `direction`.
    pub(super) fn table(&mut self, initiator: Side, direction: Direction) -> &mut Table {
        self.split(initiator, direction).0
    }

    /// The table that a stream is in.
    pub(super) fn table_of(&mut self, id: StreamId) -> &mut Table {
        self.table(id.initiator(), id.direction())
    }

    /// Finds a stream, and makes it if this is the first time that something is done with it.
    #[inline]
    pub(super) fn find(&mut self, id: StreamId) -> Found<'_> {
        self.find_with_credit(id).0
    }

    /// [`Self::find`], and what makes the stream's credit policy.
    #[inline]
    pub(super) fn find_with_credit(&mut self, id: StreamId) -> (Found<'_>, &CreditFactory) {
        let (table, maker, spare) = self.split(id.initiator(), id.direction());
        (table.find(id.index(), spare, |stream| maker.make(id, stream)), &maker.stream_credit)
    }

    /// Forgets a stream that is over: both of its halves are gone.
    pub(super) fn remove(&mut self, id: StreamId) {
        let (table, _, spare) = self.split(id.initiator(), id.direction());
        if let Some(stream) = table.remove(id.index())
            && spare.len() < SPARE_STREAMS
        {
            spare.push(stream);
        }
    }

    /// Identifiers of the streams on which something has been done.
    pub(super) fn touched(&mut self) -> Vec<StreamId> {
        let mut ids = Vec::new();
        for initiator in [Side::Client, Side::Server] {
            for direction in [Direction::Bidirectional, Direction::Unidirectional] {
                let indices = self.table(initiator, direction).touched();
                ids.extend(indices.map(|index| StreamId::new(initiator, direction, index)));
            }
        }
        ids
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.client.iter_mut().chain(&mut self.server).for_each(Table::shrink);
        self.spare = Vec::new();
    }

    /// Streams that are open in all.
    pub(super) fn open_count(&self) -> usize {
        self.client.iter().chain(&self.server).map(Table::open_count).sum()
    }
}

#[cfg(test)]
mod tests;
