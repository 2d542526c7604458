use super::*;
use crate::flow::send_budget::SendBudget;

const MIB: u64 = 1 << 20;

fn memory(budget: u64) -> SendMemory {
    SendMemory::new(SendBudget::new(ByteCount::new(budget)).open(), ByteCount::new(16 * MIB))
}

#[test]
fn what_is_kept_grows_with_the_congestion_window_and_stays_within_the_budget() {
    let mut memory = memory(1024 * MIB);
    assert_eq!(memory.room(3), 16 * MIB);
    memory.set_window(ByteCount::new(MIB));
    assert_eq!(memory.room(3), 16 * MIB, "a small window needs no more");
    memory.set_window(ByteCount::new(75_000_000));
    assert!((299_999_000..=300_000_000).contains(&memory.room(3)), "{}", memory.room(3));
    memory.set_window(ByteCount::MAX);
    let room = memory.room(0);
    assert!((500 * MIB..=513 * MIB).contains(&room), "half of what is left over: {room}");
    // And when the window falls, nothing more until what is kept has gone.
    assert_eq!(memory.keep(300 * MIB, 3), 300 * MIB);
    memory.set_window(ByteCount::new(MIB));
    assert_eq!((memory.room(3), memory.is_open(3)), (0, false));
    memory.release(290 * MIB);
    assert_eq!((memory.room(3), memory.is_open(3)), (6 * MIB, true));
}

#[test]
fn each_urgency_finds_a_part_free_that_less_urgent_streams_cannot_take() {
    let mut memory = memory(1024 * MIB);
    for urgency in (0..=9).rev() {
        let room = memory.room(urgency);
        if urgency >= 8 {
            // Larger values count as 7.
            assert_eq!(room, memory.room(7));
            continue;
        }
        assert!(room >= MIB, "{urgency}: {room}");
        memory.keep(room, urgency);
        assert_eq!((memory.room(urgency), memory.is_open(urgency)), (0, false));
    }
    assert_eq!(memory.kept(), 19 * MIB);
}

#[test]
fn without_a_budget_each_connection_still_keeps_a_little() {
    let budget = SendBudget::new(ByteCount::ZERO);
    let mut memory = SendMemory::new(budget.open(), ByteCount::new(16 * MIB));
    let room = memory.room(3);
    assert!((40_000..=64 * 1024).contains(&room), "{room}");
    assert_eq!(memory.keep(MIB, 0), LEAST_KEPT, "the budget holds, whatever is asked for");
    memory.release(MIB);
    assert!(memory.is_open(7));
}

#[test]
fn an_urgent_writer_waits_for_nothing_that_less_urgent_ones_have_left() {
    for urgency in 0..7 {
        let mut memory = memory(1024 * MIB);
        let theirs = memory.room(urgency + 1);
        memory.keep(theirs, urgency + 1);
        let own = memory.room(urgency);
        memory.keep(own, urgency);
        assert_eq!((memory.room(urgency), memory.is_open(urgency)), (0, false));
        // Its own is sent before theirs, and arrives.
        memory.release(own);
        assert!(memory.is_open(urgency), "{urgency}: it would wait for theirs");
        assert_eq!((memory.room(urgency + 1), memory.is_open(urgency + 1)), (0, false));
    }
}

#[test]
fn what_less_urgent_streams_took_while_the_budget_had_it_leaves_the_others_room() {
    let budget = SendBudget::new(ByteCount::new(16 * MIB));
    let mut memory = SendMemory::new(budget.open(), ByteCount::new(16 * MIB));
    let stuck = memory.room(7);
    assert_eq!(memory.keep(stuck, 7), stuck, "for a client that reads nothing of it");
    assert!(stuck > 4 * MIB, "{stuck}");
    // Others take the rest of the budget.
    let mut other = budget.open();
    other.hold(16 * MIB);
    assert_eq!(budget.taken(), budget.capacity());
    // What the last step of the budget has left over.
    let rest = memory.room(7);
    assert_eq!(memory.keep(rest, 7), rest);
    for urgency in (0..7).rev() {
        let room = memory.room(urgency);
        assert!((3000..4000).contains(&room), "{urgency}: {room}");
        assert_eq!(memory.keep(room, urgency), room, "it is there");
        assert_eq!((memory.room(urgency), memory.is_open(urgency)), (0, false));
        memory.release(room);
        assert!(memory.is_open(urgency), "it is woken, though what is stuck stays");
        // And the less urgent gain nothing by it, again and again.
        assert_eq!(memory.room(7), 0);
        assert_eq!(memory.keep(room, urgency), room);
    }
    memory.release(memory.kept());
    drop(other);
    assert_eq!(budget.taken(), ByteCount::ZERO);
}
