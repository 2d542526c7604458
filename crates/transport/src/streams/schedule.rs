//! Whose data goes next: urgency first, then turns (RFC 9218 section 4 and 10).

mod lane;

use posthaste_wire::StreamId;

use self::lane::Lane;

/// Urgencies, 0 (most urgent) to 7.
pub(super) const URGENCIES: u8 = 8;

/// Lanes of one urgency: two classes, each with streams in order and streams in turn.
const LANES: usize = 4;

/// Bytes that a stream sends before its turn is over. RFC 9218 section 10 leaves it open how incremental responses share
/// a connection; sent packet by packet, a page's pictures, which browsers mark as incremental, would all be complete
/// at the very end.
pub(super) const TURN: u64 = 16 * 1024;

/// The first bytes of a stream are one turn, however many turns that is: most objects of a page are smaller, and those
/// that are a little larger than a turn are a page's largest pictures. In turns of 16 KiB just these would come last.
pub(super) const FIRST_TURN: u64 = 64 * 1024;

/// The bit of a lane's number that is its class.
const CLASS_BIT: usize = 2;

/// A stream's place in the order of sending (RFC 9218 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (most urgent) to 7; larger values count as 7. Default 3.
    pub urgency: u8,
    /// True to share the connection with the others of the same urgency, in turns of 64 KiB at first and then 16 KiB;
    /// false to be sent whole before streams of the same urgency with higher identifiers. Default true.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, incremental: true }
    }
}

/// What sending needs beside room in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Nothing: lost data, or a bare FIN.
    Free,
    /// Credit of the connection: new data.
    Credit,
}

/// Where a stream stands in the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    lane: usize,
    turn: u64,
    /// Bytes sent in this turn.
    spent: u64,
}

/// The streams that have something to send which their own flow control permits.
///
/// Choosing, adding and removing take O(log n); a single stream that keeps sending costs none of these.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The lanes that have been used, in the order of their first use: of 32, most connections need one or two.
    lanes: Vec<(usize, Lane)>,
    /// Bit n is set if lane n has a stream.
    occupied: u32,
    /// The turn of whoever joins or goes to the back next.
    next_turn: u64,
    /// Streams in order and streams in turn of one urgency alternate.
    prefers_turns: bool,
    /// Streams in all lanes.
    count: usize,
}

/// Lanes of the class [`Class::Credit`].
const CREDIT_LANES: u32 = 0xcccc_cccc;

fn lane(class: Class, priority: Priority) -> usize {
    let urgency = usize::from(priority.urgency.min(URGENCIES - 1));
    // spec: rfc9218 10 urgent-first
    urgency * LANES + usize::from(class == Class::Credit) * CLASS_BIT + usize::from(priority.incremental)
}

/// Whether the streams of a lane take turns: the odd ones do.
fn is_in_turn(lane: usize) -> bool {
    lane & 1 == 1
}

impl Schedule {
    /// Puts a stream where it belongs now, `None` for nowhere. `place` is the stream's note of where it stands.
    #[inline]
    pub(super) fn update(
        &mut self,
        id: StreamId,
        place: &mut Option<Place>,
        class: Option<(Class, Priority)>,
    ) {
        let lane = class.map(|(class, priority)| lane(class, priority));
        if place.map(|place| place.lane) != lane {
            self.relocate(id, place, lane);
        }
    }

    fn relocate(&mut self, id: StreamId, place: &mut Option<Place>, lane: Option<usize>) {
        let before = *place;
        self.remove(id, place);
        match (before, lane) {
            // A loss does not end a turn: what was lost is sent before others' new data, and then the turn goes on.
            (Some(before), Some(lane)) if before.lane ^ lane == CLASS_BIT => {
                self.insert(id, place, Place { lane, ..before });
            }
            (_, Some(lane)) => self.join(id, place, lane),
            (_, None) => {}
        }
    }

    /// Puts a stream at the back of a lane.
    fn join(&mut self, id: StreamId, place: &mut Option<Place>, lane: usize) {
        // spec: rfc9218 10 in-order, 10 shared
        let turn = if is_in_turn(lane) { self.next_turn } else { 0 };
        self.next_turn += u64::from(is_in_turn(lane));
        self.insert(id, place, Place { lane, turn, spent: 0 });
    }

    fn insert(&mut self, id: StreamId, place: &mut Option<Place>, new: Place) {
        if self.lane(new.lane).is_none() {
            self.lanes.push((new.lane, Lane::default()));
        }
        if let Some(streams) = self.lane_mut(new.lane) {
            self.count += usize::from(streams.insert((new.turn, id)));
            self.occupied |= 1 << new.lane;
            *place = Some(new);
        }
    }

    fn lane(&self, number: usize) -> Option<&Lane> {
        self.lanes.iter().find(|(other, _)| *other == number).map(|(_, lane)| lane)
    }

    fn lane_mut(&mut self, number: usize) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|(other, _)| *other == number).map(|(_, lane)| lane)
    }

    fn remove(&mut self, id: StreamId, place: &mut Option<Place>) {
        if let Some(Place { lane, turn, .. }) = place.take()
            && let Some(streams) = self.lane_mut(lane)
        {
            let (is_removed, is_empty) = (streams.remove(&(turn, id)), streams.is_empty());
            self.count -= usize::from(is_removed);
            if is_empty {
                self.occupied &= !(1 << lane);
            }
        }
    }

    /// The stream that sends next; without `has_credit`, of those that need none.
    pub(super) fn next(&self, has_credit: bool) -> Option<StreamId> {
        let lanes = if has_credit { self.occupied } else { self.occupied & !CREDIT_LANES };
        if lanes == 0 {
            return None;
        }
        let mut lane = lanes.trailing_zeros() as usize;
        // spec: rfc9218 10 none-starves
        // Of the two lanes of one class, that of the streams in turn goes first every second time.
        if !is_in_turn(lane) && self.prefers_turns && lanes & (1 << (lane + 1)) != 0 {
            lane += 1;
        }
        self.lane(lane).and_then(Lane::first)
    }

    /// The stream has sent `bytes`, and `total` distinct ones since it began: if it is one of several that take turns,
    /// and its turn is over, it goes to the back.
    pub(super) fn sent(&mut self, id: StreamId, place: &mut Option<Place>, bytes: u64, total: u64) {
        let Some(Place { lane, spent, .. }) = place else { return };
        let lane = *lane;
        *spent += bytes;
        let is_over = *spent >= TURN && total >= FIRST_TURN;
        self.prefers_turns = !is_in_turn(lane);
        if is_over && is_in_turn(lane) && self.lane(lane).is_some_and(|streams| streams.len() > 1) {
            self.remove(id, place);
            self.join(id, place, lane);
        }
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.lanes.retain(|(_, lane)| !lane.is_empty());
        self.lanes.shrink_to_fit();
    }

    /// How many streams have something to send.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// True if a stream waits for the connection's credit, or would if there were none.
    pub(super) fn needs_credit(&self) -> bool {
        self.occupied & CREDIT_LANES != 0
    }
}

#[cfg(test)]
mod tests;
