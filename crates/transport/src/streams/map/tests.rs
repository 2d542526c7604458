use bytes::Bytes;

use super::*;
use crate::flow::ReceiveWindow;
use crate::streams::PeerLimits;

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

fn live(map: &mut StreamMap, index: u64) -> &mut Stream {
    match map.find(StreamId::new(Side::Client, Direction::Bidirectional, index)) {
        Found::Live(stream) => stream,
        Found::Future | Found::Gone => panic!("stream {index} is not open"),
    }
}

/// A client's map with three open streams.
fn map() -> StreamMap {
    let mut map = StreamMap::new(Maker {
        side: Side::Client,
        stream_credit: Box::new(|| unreachable!("no policy is asked")),
        initial_window: 1000,
        peer_limits: PeerLimits { local_bidirectional: 500, ..PeerLimits::default() },
        permitted: [10; 2],
    });
    map.table(Side::Client, Direction::Bidirectional).open_below(3);
    map
}

/// Where a stream's halves lie.
fn places(stream: &Stream) -> (*const super::super::SendHalf, *const super::super::recv::RecvHalf) {
    (&raw const **stream.send.as_ref().unwrap(), &raw const **stream.recv.as_ref().unwrap())
}

#[test]
fn halves_that_are_over_leave_their_memory_to_the_next_stream_until_the_connection_rests() {
    let mut map = map();
    let fresh = format!("{:?}", live(&mut map, 2));
    for index in 0..2 {
        let stream = live(&mut map, index);
        assert_eq!(format!("{stream:?}"), fresh, "stream {index}");
        let first = places(stream);
        // All that a half can have when it ends: chunks, losses, data out of order.
        let (send, recv) = (stream.send.as_mut().unwrap(), stream.recv.as_mut().unwrap());
        for _ in 0..3 {
            send.push(Bytes::from(vec![7; 2000]));
        }
        (send.stopped, send.is_writer_waiting, send.priority.urgency) = (Some(3), true, 1);
        send.reset(5);
        recv.insert(500, Bytes::from_static(&[1; 100]), true, &mut ReceiveWindow::of_stream(1000));
        (recv.is_reader_waiting, recv.is_listed_for_ack) = (false, true);
        stream.end_send();
        stream.end_recv();
        assert!(stream.send.is_none() && stream.recv.is_none());
        map.remove(StreamId::new(Side::Client, Direction::Bidirectional, index));
        if index == 0 {
            assert_eq!(places(live(&mut map, 1)), first, "the memory is used again");
        }
    }
    live(&mut map, 2).end_recv();
    assert!(live(&mut map, 2).spent.1.is_some());
    map.shrink();
    assert!(map.spare.is_empty() && live(&mut map, 2).spent.1.is_none(), "a connection that rests keeps it");
}
