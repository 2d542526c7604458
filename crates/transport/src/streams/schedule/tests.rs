use std::collections::BTreeMap;

use posthaste_wire::{Direction, Side};

use super::*;

const IN_TURN: Priority = Priority { urgency: 3, incremental: true };
const IN_ORDER: Priority = Priority { urgency: 3, incremental: false };

fn id(index: u64) -> StreamId {
    StreamId::new(Side::Client, Direction::Bidirectional, index)
}

/// A schedule and the places that the streams would keep.
struct Rig {
    schedule: Schedule,
    places: BTreeMap<StreamId, Option<Place>>,
    /// Bytes that each stream has sent since it began; a stream begins with `already_sent`.
    totals: BTreeMap<StreamId, u64>,
    already_sent: u64,
}

impl Default for Rig {
    /// Streams whose first turn is over.
    fn default() -> Self {
        Self::with_streams_that_sent(FIRST_TURN)
    }
}

impl Rig {
    fn with_streams_that_sent(already_sent: u64) -> Self {
        Self { schedule: Schedule::default(), places: BTreeMap::new(), totals: BTreeMap::new(), already_sent }
    }

    fn put(&mut self, index: u64, class: Option<(Class, Priority)>) {
        self.schedule.update(id(index), self.places.entry(id(index)).or_default(), class);
    }

    /// The order of the next `count` turns, by stream index.
    fn order(&mut self, count: usize, has_credit: bool) -> Vec<u64> {
        self.order_of(count, TURN, has_credit)
    }

    /// The order of the next `count` packets of so many bytes.
    fn order_of(&mut self, count: usize, bytes: u64, has_credit: bool) -> Vec<u64> {
        let mut order = Vec::new();
        for _ in 0..count {
            let Some(next) = self.schedule.next(has_credit) else { break };
            let total = self.totals.entry(next).or_insert(self.already_sent);
            *total += bytes;
            self.schedule.sent(next, self.places.get_mut(&next).unwrap(), bytes, *total);
            order.push(next.index());
        }
        order
    }
}

#[test]
fn a_turn_has_sixteen_kilobytes_and_one_that_is_broken_off_goes_on() {
    let mut rig = Rig::default();
    rig.put(0, Some((Class::Credit, IN_TURN)));
    rig.put(1, Some((Class::Credit, IN_TURN)));
    assert_eq!(rig.order_of(8, 6_000, true), [0, 0, 0, 1, 1, 1, 0, 0]);
    rig.put(2, Some((Class::Credit, Priority { urgency: 0, incremental: true })));
    assert_eq!(rig.order_of(2, 6_000, true), [2, 2], "something urgent comes between");
    rig.put(2, None);
    assert_eq!(rig.order_of(2, 6_000, true), [0, 1]);
    rig.put(1, None);
    assert_eq!(rig.order_of(9, 6_000, true), [0; 9], "alone, its turns never end");
}

#[test]
fn the_first_turn_of_a_stream_has_sixty_four_kilobytes() {
    let mut rig = Rig::with_streams_that_sent(0);
    rig.put(0, Some((Class::Credit, IN_TURN)));
    rig.put(1, Some((Class::Credit, IN_TURN)));
    assert_eq!(rig.order_of(13, 16 * 1024, true), [0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn a_loss_does_not_end_a_turn() {
    let mut rig = Rig::default();
    for index in 0..3 {
        rig.put(index, Some((Class::Credit, IN_TURN)));
    }
    assert_eq!(rig.order_of(1, 6_000, true), [0]);
    rig.put(0, Some((Class::Free, IN_TURN)));
    assert_eq!(rig.order_of(1, 1_200, true), [0], "what was lost goes first");
    rig.put(0, Some((Class::Credit, IN_TURN)));
    assert_eq!(rig.order_of(4, 6_000, true), [0, 0, 1, 1], "the rest of its turn, then the next");
}

#[test]
fn streams_in_turn_share_turn_by_turn() {
    // spec: rfc9218 10 shared
    let mut rig = Rig::default();
    for index in 0..3 {
        rig.put(index, Some((Class::Credit, IN_TURN)));
    }
    assert_eq!(rig.order(7, true), [0, 1, 2, 0, 1, 2, 0]);
    rig.put(1, None);
    assert_eq!(rig.order(4, true), [2, 0, 2, 0], "1 has left, the turn goes on");
}

#[test]
fn streams_in_order_finish_one_after_the_other() {
    // spec: rfc9218 10 in-order
    let mut rig = Rig::default();
    for index in [2, 0, 1] {
        rig.put(index, Some((Class::Credit, IN_ORDER)));
    }
    assert_eq!(rig.order(3, true), [0, 0, 0]);
    rig.put(0, None);
    assert_eq!(rig.order(2, true), [1, 1]);
}

#[test]
fn more_urgent_streams_go_first_whatever_they_send() {
    // spec: rfc9218 10 urgent-first
    let mut rig = Rig::default();
    rig.put(0, Some((Class::Free, IN_TURN)));
    rig.put(1, Some((Class::Credit, Priority { urgency: 1, incremental: true })));
    rig.put(2, Some((Class::Credit, Priority { urgency: 200, incremental: true })));
    assert_eq!(rig.order(2, true), [1, 1]);
    rig.put(1, None);
    assert_eq!(rig.order(2, true), [0, 0], "within an urgency lost data go first");
    rig.put(0, None);
    assert_eq!(rig.order(1, true), [2], "urgencies above 7 count as 7");
}

#[test]
fn without_credit_only_lost_data_and_ends_are_sent() {
    let mut rig = Rig::default();
    rig.put(0, Some((Class::Credit, Priority { urgency: 0, incremental: true })));
    rig.put(1, Some((Class::Free, Priority { urgency: 7, incremental: false })));
    assert_eq!(rig.order(1, false), [1]);
    assert!(rig.schedule.needs_credit());
    rig.put(1, None);
    assert_eq!(rig.order(1, false), [0; 0]);
    assert_eq!(rig.order(1, true), [0]);
}

#[test]
fn streams_in_order_and_in_turn_of_one_urgency_alternate() {
    // spec: rfc9218 10 none-starves
    let mut rig = Rig::default();
    rig.put(0, Some((Class::Credit, IN_ORDER)));
    rig.put(1, Some((Class::Credit, IN_TURN)));
    rig.put(2, Some((Class::Credit, IN_TURN)));
    assert_eq!(rig.order(6, true), [0, 1, 0, 2, 0, 1]);
}

#[test]
fn a_changed_priority_takes_effect_and_leaves_nothing_behind() {
    let mut rig = Rig::default();
    rig.put(0, Some((Class::Credit, IN_TURN)));
    rig.put(1, Some((Class::Credit, IN_TURN)));
    rig.put(1, Some((Class::Credit, Priority { urgency: 0, incremental: false })));
    assert_eq!(rig.order(2, true), [1, 1]);
    rig.put(1, None);
    rig.put(0, None);
    assert_eq!((rig.schedule.next(true), rig.schedule.occupied), (None, 0));
    assert!(rig.schedule.lanes.iter().all(|(_, lane)| lane.is_empty()));
}
