//! Bounds of the queues, and the frames that close a connection.

use super::*;

fn message(len: usize) -> Bytes {
    Bytes::from(vec![7; len])
}

#[test]
fn the_oldest_goes_for_the_newest_or_the_newest_is_refused() {
    let mut datagrams = Datagrams { peer_limit: 65_535, ..Datagrams::default() };
    for index in 0..limits::QUEUED_DATAGRAMS {
        let message = Bytes::copy_from_slice(&index.to_be_bytes());
        datagrams.send(message, WhenFull::Refuse).unwrap();
    }
    assert_eq!(datagrams.send(message(1), WhenFull::Refuse), Err(SendDatagramError::Full));
    assert_eq!(datagrams.stats.dropped_unsent, 0);
    datagrams.send(message(1), WhenFull::DropOldest).unwrap();
    assert_eq!(datagrams.stats.dropped_unsent, 1);
    assert_eq!(datagrams.unsent.messages[0][..], 1_usize.to_be_bytes());
    assert_eq!(datagrams.unsent.messages.len(), limits::QUEUED_DATAGRAMS);
    assert_eq!(datagrams.poll_event(), None, "there was no room yet");
    let mut buffer = Vec::new();
    datagrams.write(&mut FrameWriter::new(&mut buffer, 100));
    assert_eq!(datagrams.stats.sent, 10, "ten frames of ten bytes");
    assert_eq!(datagrams.poll_event(), Some(Event::DatagramsUnblocked));
    assert_eq!(datagrams.poll_event(), None, "once");
}

#[test]
fn bytes_are_bounded_too() {
    let mut datagrams = Datagrams::new(65_535);
    for _ in 0..100 {
        datagrams.on_frame(&message(60_000)).unwrap();
    }
    let held = limits::QUEUED_DATAGRAM_BYTES / 60_000;
    assert_eq!(datagrams.received.messages.len(), held);
    assert_eq!(datagrams.received.bytes, held * 60_000);
    assert_eq!((datagrams.stats.received, datagrams.stats.dropped_unread), (100, 100 - held as u64));
    assert_eq!(datagrams.poll_event(), Some(Event::DatagramsReceived));
}

#[test]
fn frames_larger_than_announced_or_unannounced_are_violations() {
    for (limit, len, is_taken) in
        [(0, 0, false), (1, 0, true), (1, 1, false), (101, 100, true), (100, 100, false)]
    {
        let mut datagrams = Datagrams::new(limit);
        let outcome = datagrams.on_frame(&message(len)).map_err(|error| error.code);
        let expected = if is_taken { Ok(()) } else { Err(TransportErrorCode::PROTOCOL_VIOLATION) };
        assert_eq!(outcome, expected, "{len} bytes within {limit}");
    }
}

#[test]
fn the_largest_message_fits_its_frame() {
    for limit in (0..300_u64).chain(16_380..16_400) {
        let datagrams = Datagrams { peer_limit: limit, ..Datagrams::default() };
        let largest = datagrams.largest(70_000);
        assert!(largest.is_none_or(|largest| datagram_len(largest) as u64 <= limit), "{limit}");
        assert_eq!(largest.is_none(), limit < 2, "{limit}");
        assert!(largest.is_none_or(|largest| largest as u64 + 5 >= limit), "{limit}");
    }
    let datagrams = Datagrams { peer_limit: 65_535, ..Datagrams::default() };
    assert_eq!(datagrams.largest(1_200), Some(1_197));
}

#[test]
fn what_has_become_too_long_makes_way() {
    let mut datagrams = Datagrams { peer_limit: 65_535, ..Datagrams::default() };
    for len in [1_400, 1_300, 1_000] {
        datagrams.send(message(len), WhenFull::DropOldest).unwrap();
    }
    datagrams.drop_longer_than(1_100);
    assert_eq!((datagrams.unsent.messages.len(), datagrams.unsent.bytes), (1, 1_000));
    assert_eq!(datagrams.stats.dropped_unsent, 2);
}
