use super::*;

fn kind(table: &mut Table, index: u64) -> &'static str {
    match table.find(index, &mut Vec::new(), |_| ()) {
        Found::Future => "future",
        Found::Live(_) => "live",
        Found::Gone => "gone",
    }
}

#[test]
fn a_stream_is_future_then_open_then_gone_for_ever() {
    // spec: rfc9000 3.2 lower-streams-open-first
    let mut table = Table::default();
    assert_eq!(kind(&mut table, 2), "future");
    table.open_below(3);
    assert_eq!((table.next(), table.open_count(), table.touched().count()), (3, 3, 0));
    assert_eq!(kind(&mut table, 2), "live");
    assert_eq!(table.touched().collect::<Vec<_>>(), [2]);
    table.remove(2);
    table.remove(2);
    assert_eq!((kind(&mut table, 2), table.open_count()), ("gone", 2));
    table.remove(0);
    table.remove(1);
    assert_eq!((kind(&mut table, 0), table.footprint(), table.next()), ("gone", 0, 3));
}

/// One stream that stays open does not keep a slot for each of the many that come and go after it.
#[test]
fn memory_follows_the_open_streams_not_their_history() {
    let mut table = Table::default();
    table.open_below(1);
    assert_eq!(kind(&mut table, 0), "live");
    for index in 1..100_000 {
        table.open_below(index + 1);
        assert_eq!(kind(&mut table, index), "live");
        if index % 10_000 != 0 {
            table.remove(index);
        }
        assert!(table.footprint() <= SPARE_SLOTS + 5 * table.open_count() + 1, "{}", table.footprint());
    }
    assert_eq!(table.open_count(), 10);
    assert_eq!(table.touched().collect::<Vec<_>>(), (0..10).map(|n| n * 10_000).collect::<Vec<_>>());
    for index in 0..10 {
        assert_eq!(kind(&mut table, index * 10_000), "live");
        assert_eq!(kind(&mut table, index * 10_000 + 1), "gone");
        table.remove(index * 10_000);
        assert_eq!(kind(&mut table, index * 10_000), "gone");
    }
    assert_eq!(table.open_count(), 0);
}
