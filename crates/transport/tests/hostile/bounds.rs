//! What a peer can make this end store or send, pushed past its bound.

use bytes::Bytes;
use posthaste_transport::{Direction, Move, Side, StreamId, TransportConfig};
use posthaste_units::Duration;
use posthaste_wire::frame::{AckFrame, AckFrequency, NewConnectionId, StopSending, StreamFrame};
use posthaste_wire::packet::PacketType;
use posthaste_wire::{ConnectionId, Frame, ResetToken, varint};

use crate::code;
use crate::support::arena::Arena;
use crate::support::rogue::Oddity;

fn seen(arena: &Arena, test: impl Fn(&Frame) -> bool) -> usize {
    arena.rogue.seen.iter().filter(|(_, frame)| test(frame)).count()
}

#[test]
fn a_flood_of_path_challenges_is_answered_in_part() {
    // spec: rfc9000 8.2.2 response-echoes, 8.2.2 response-padded, 8.2.2 one-response, 19.17 challenge-answered
    let mut arena = Arena::server();
    let sent = arena.sent.len();
    let frames: Vec<Frame> = (0..100).map(|n| Frame::PathChallenge([n; 8])).collect();
    arena.send(PacketType::Short, &frames);
    let responses: Vec<[u8; 8]> = arena
        .rogue
        .seen
        .iter()
        .filter_map(|(_, frame)| if let Frame::PathResponse(data) = frame { Some(*data) } else { None })
        .collect();
    assert_eq!(responses, [[96; 8], [97; 8], [98; 8], [99; 8]], "the newest four");
    let answers = &arena.sent[sent..];
    assert!(answers.iter().any(|datagram| datagram.len() >= 1200), "RFC 9000 section 8.2.2");
    assert!(answers.iter().map(Vec::len).sum::<usize>() <= 3 * 1252);
}

#[test]
fn path_challenges_in_a_flood_of_packets_are_answered_at_a_bounded_rate() {
    let mut arena = Arena::server();
    let answered = |arena: &Arena| seen(arena, |frame| matches!(frame, Frame::PathResponse(_)));
    let sent = arena.sent.len();
    for n in 0..1000_u64 {
        arena.send(PacketType::Short, &[Frame::PathChallenge(n.to_be_bytes())]);
    }
    assert_eq!(answered(&arena), 32);
    arena.run_for(Duration::from_secs(1));
    assert!(arena.sent.len() - sent < 1100, "answers and acknowledgements");
    for n in 0..1000_u64 {
        arena.send(PacketType::Short, &[Frame::PathChallenge(n.to_be_bytes())]);
    }
    assert_eq!(answered(&arena), 64, "a second later as many again");
    assert_eq!(arena.close_code(), None);
}

#[test]
fn challenges_from_a_hundred_addresses_keep_few_paths_alive() {
    let mut arena = Arena::server();
    let home = arena.address;
    for n in 0..100_u8 {
        arena.address = std::net::SocketAddr::from(([10, 0, 0, n], 1000));
        let sent = arena.sent.iter().map(Vec::len).sum::<usize>();
        let injected = arena.injected;
        arena.send(PacketType::Short, &[Frame::PathChallenge([n; 8])]);
        let sent = arena.sent.iter().map(Vec::len).sum::<usize>() - sent;
        assert!(
            sent <= 3 * (arena.injected - injected) + 100,
            "{sent} bytes, of which one packet of ACK goes home"
        );
    }
    assert_eq!(arena.connection().remote(), home, "a challenge alone moves nobody");
    arena.address = home;
    arena.run_for(Duration::from_secs(10));
    arena.send(PacketType::Short, &[Frame::Ping]);
    assert_eq!(arena.close_code(), None);
}

#[test]
fn storms_of_connection_ids_end_the_connection_however_well_they_are_acknowledged() {
    let mut arena = Arena::server();
    let mut offered = 0;
    for sequence in 1..2000 {
        let id = ConnectionId::new(&u64::to_be_bytes(sequence));
        let new = NewConnectionId {
            sequence,
            retire_prior_to: sequence,
            id: id.expect("short enough"),
            reset_token: ResetToken([sequence as u8; 16]),
        };
        arena.send(PacketType::Short, &[Frame::NewConnectionId(new)]);
        arena.exchange();
        if arena.close_code().is_some() {
            break;
        }
        offered += 1;
    }
    assert_eq!(arena.close_code(), Some((code::CONNECTION_ID_LIMIT, 0x18)));
    assert!((200..=300).contains(&offered), "{offered}");

    let mut arena = Arena::server();
    let mut retired = 0;
    for sequence in 1..2000 {
        arena.send(PacketType::Short, &[Frame::RetireConnectionId(sequence)]);
        arena.exchange();
        if arena.close_code().is_some() {
            break;
        }
        retired += 1;
    }
    assert_eq!(arena.close_code(), Some((code::CONNECTION_ID_LIMIT, 0x19)));
    assert!((200..=300).contains(&retired), "{retired}");
}

#[test]
fn a_server_that_never_retires_gets_a_bounded_number_of_ids_from_a_client_that_moves() {
    let mut arena = Arena::client();
    let mut moves = 0;
    for sequence in 1..200_u64 {
        let new = NewConnectionId {
            sequence,
            retire_prior_to: sequence.saturating_sub(1),
            id: ConnectionId::new(&sequence.to_be_bytes()).expect("short enough"),
            reset_token: ResetToken([sequence as u8; 16]),
        };
        arena.send(PacketType::Short, &[Frame::NewConnectionId(new)]);
        let now = arena.now;
        moves += usize::from(arena.connection().migrate(now, Move::Network).is_ok());
        // No challenge of the client's is answered.
        arena.run_for(Duration::from_secs(4));
        assert_eq!(arena.close_code(), None);
    }
    let ids = arena.rogue.seen.iter().filter_map(|(_, frame)| match frame {
        Frame::NewConnectionId(new) => Some((new.sequence, new.retire_prior_to)),
        _ => None,
    });
    let ids: std::collections::BTreeSet<(u64, u64)> = ids.collect();
    assert!(moves >= 4, "{moves}");
    let last = ids.last().expect("some");
    assert_eq!((ids.len(), *last), (15, (15, 12)), "with the handshake's that is four times what it keeps");
}

#[test]
fn acknowledgements_report_a_bounded_number_of_ranges() {
    // spec: rfc9000 12.3 duplicates-dropped, 13.2.3 range-kept
    let mut arena = Arena::server();
    arena.rogue.seen.clear();
    let base = arena.rogue.next_number(PacketType::Short) + 1;
    for index in 0..1000 {
        arena.send_raw(&[1], Oddity { number: Some(base + 2 * index), ..Oddity::default() });
    }
    arena.run_for(Duration::from_millis(100));
    let ranges = arena.rogue.seen.iter().filter_map(|(_, frame)| match frame {
        Frame::Ack(ack) => Some(ack.ranges.len()),
        _ => None,
    });
    assert_eq!(ranges.max(), Some(64));
    // What has been forgotten counts as seen: it is not processed a second time (RFC 9000 section 13.2.3).
    let before = arena.connection().stats();
    for index in 0..100 {
        arena.send_raw(&[1], Oddity { number: Some(base + 2 * index), ..Oddity::default() });
        arena.send_raw(&[1], Oddity { number: Some(base + 2 * index + 1), ..Oddity::default() });
    }
    let after = arena.connection().stats();
    assert_eq!(after.packets_dropped - before.packets_dropped, 200);
    assert_eq!(arena.close_code(), None);
}

#[test]
fn packet_numbers_that_jump_ahead_are_taken_as_they_come() {
    let mut arena = Arena::server();
    // At most half a window of four bytes at a time.
    let mut number = 10;
    while number < varint::MAX {
        arena.send_raw(&[1], Oddity { number: Some(number), ..Oddity::default() });
        number = if number < 1 << 20 { number * 4 } else { number + (1 << 31) - 1 };
        if number > 1 << 36 {
            break;
        }
    }
    assert_eq!(arena.close_code(), None);
    arena.run_for(Duration::from_secs(1));
    assert!(arena.closed().is_none());
}

#[test]
fn connection_ids_are_issued_up_to_the_bound_only() {
    // spec: rfc9000 5.1.1 within-peers-id-limit
    let shape = Box::new(|mut parameters: posthaste_wire::TransportParameters| {
        parameters.active_connection_id_limit = 1 << 30;
        crate::support::rogue::encode(&parameters)
    });
    let mut arena = Arena::server_with(crate::support::tls::server_config(1), shape);
    arena.exchange();
    arena.run_for(Duration::from_secs(1));
    let issued = |arena: &Arena| seen(arena, |frame| matches!(frame, Frame::NewConnectionId(_)));
    assert_eq!(issued(&arena), 3, "with the handshake's that is four");
    // Each one that is retired is replaced, no more.
    for sequence in 1..100 {
        arena.send(PacketType::Short, &[Frame::RetireConnectionId(sequence)]);
        arena.run_for(Duration::from_millis(100));
        assert_eq!(arena.close_code(), None, "sequence {sequence}");
        assert_eq!(issued(&arena), 3 + sequence as usize);
    }
}

#[test]
fn more_streams_than_the_bound_are_not_granted_whatever_the_configuration_says() {
    let config = TransportConfig {
        max_concurrent_bidi_streams: 1 << 40,
        max_concurrent_uni_streams: u64::MAX,
        ..crate::support::defaults()
    };
    let mut arena = Arena::server_for(config);
    let parameters = arena.rogue.victim_parameters();
    assert_eq!(parameters.initial_max_streams_bidi, 1 << 16);
    assert_eq!(parameters.initial_max_streams_uni, 1 << 16);
    // All of them opened by one frame.
    let id = StreamId::new(Side::Client, Direction::Bidirectional, (1 << 16) - 1);
    let frame = StreamFrame { id, offset: 0, data: Bytes::new(), fin: false };
    arena.send(PacketType::Short, &[Frame::Stream(frame)]);
    assert_eq!(arena.connection().open_streams(), 1 << 16);
    assert_eq!(arena.close_code(), None);
}

#[test]
fn streams_opened_and_given_up_in_a_storm_are_forgotten() {
    let mut arena = Arena::server();
    let mut opened = 0;
    for index in 0..20_000_u64 {
        let id = StreamId::new(Side::Client, Direction::Bidirectional, index);
        if index >= limit(&arena) {
            arena.run_for(Duration::from_millis(30));
        }
        if index >= limit(&arena) {
            break;
        }
        opened += 1;
        let fin = StreamFrame { id, offset: 0, data: Bytes::new(), fin: true };
        let stop = StopSending { id, error_code: 1 };
        arena.send(PacketType::Short, &[Frame::Stream(fin), Frame::StopSending(stop)]);
        let now = arena.now;
        let connection = arena.connection();
        while let Some(id) = connection.accept(Direction::Bidirectional) {
            assert_eq!(connection.read(now, id, 100), Ok(posthaste_transport::Read::Finished));
        }
        arena.exchange();
        assert!(arena.connection().open_streams() <= 256);
    }
    assert_eq!(opened, 20_000, "each end makes room for another");
    arena.run_for(Duration::from_secs(1));
    assert_eq!(arena.connection().open_streams(), 0);
}

fn limit(arena: &Arena) -> u64 {
    let raised = arena.rogue.seen.iter().rev().find_map(|(_, frame)| match frame {
        Frame::MaxStreams { direction: Direction::Bidirectional, maximum } => Some(*maximum),
        _ => None,
    });
    raised.unwrap_or_else(|| arena.rogue.victim_parameters().initial_max_streams_bidi)
}

#[test]
fn an_unread_stream_is_granted_no_more_than_its_window() {
    let mut arena = Arena::server();
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    let window = arena.rogue.victim_parameters().initial_max_stream_data_bidi_remote;
    let mut offset = 0;
    while offset < window {
        let len = (window - offset).min(1100);
        let frame = StreamFrame { id, offset, data: vec![1; len as usize].into(), fin: false };
        arena
            .send(PacketType::Short, &[Frame::Stream(frame), Frame::StreamDataBlocked { id, limit: window }]);
        offset += len;
    }
    for _ in 0..100 {
        arena.send(
            PacketType::Short,
            &[Frame::StreamDataBlocked { id, limit: window }, Frame::DataBlocked(window)],
        );
    }
    arena.run_for(Duration::from_secs(1));
    assert_eq!(arena.close_code(), None);
    let granted = arena.rogue.seen.iter().filter_map(|(_, frame)| match frame {
        Frame::MaxStreamData { maximum, .. } => Some(*maximum),
        _ => None,
    });
    assert!(
        granted.max().is_none_or(|maximum| maximum <= 2 * window),
        "blocked frames are no licence to print credit"
    );
}

#[test]
fn pings_and_noise_get_few_answers() {
    // spec: rfc9000 13.2.1 one-bare-ack
    let mut arena = Arena::server();
    let sent = arena.sent.len();
    for _ in 0..1000 {
        arena.send(PacketType::Short, &[Frame::Ping]);
    }
    let answers = arena.sent.len() - sent;
    assert!((100..=1000).contains(&answers), "{answers} acknowledgements of 1000 PINGs");
    let sent = arena.sent.len();
    for _ in 0..1000 {
        arena.send(PacketType::Short, &[Frame::Padding, Frame::PathResponse([1; 8])]);
        let ack = arena.rogue.ack(PacketType::Short).expect("something came");
        arena.send(PacketType::Short, &[ack]);
    }
    assert!(arena.sent.len() - sent <= 1000);
    assert_eq!(arena.close_code(), None);
}

#[test]
fn now_and_then_a_packet_number_is_skipped_and_acknowledging_it_ends_the_connection() {
    // spec: rfc9000 13.1 unsent-ack-closes, 12.3 numbers-rise
    let mut arena = Arena::server();
    // Each PING is acknowledged by packets of the victim's; enough of them to come past a trap.
    for _ in 0..1200 {
        arena.send(PacketType::Short, &[Frame::Ping]);
        arena.send(PacketType::Short, &[Frame::Ping]);
    }
    let received = arena.rogue.received(PacketType::Short).clone();
    let last = *received.last().expect("the victim has answered");
    let missing: Vec<u64> = (0..last).filter(|number| !received.contains(number)).collect();
    assert!(!missing.is_empty(), "no number of {last} was skipped");
    assert!(missing.len() as u64 <= 2 + last / 16, "{} of {last} were skipped", missing.len());
    assert_eq!(arena.close_code(), None);
    let optimistic = AckFrame { ranges: vec![0..=last], delay: 0, ecn: None };
    arena.send(PacketType::Short, &[Frame::Ack(optimistic)]);
    assert_eq!(arena.close_code().map(|(code, _)| code), Some(0x0a), "PROTOCOL_VIOLATION");
}

#[test]
fn requests_for_acks_hold_within_what_was_announced() {
    // spec: rfc9000 13.2.1 acked-in-time
    let request = |sequence, max_ack_delay| {
        let (ack_eliciting_threshold, reordering_threshold) = (varint::MAX, 0);
        Frame::AckFrequency(AckFrequency {
            sequence,
            ack_eliciting_threshold,
            max_ack_delay,
            reordering_threshold,
        })
    };
    let mut arena = Arena::server();
    arena.send(PacketType::Short, &[request(1, 500_000)]);
    arena.run_for(Duration::from_secs(2));
    let acks = |arena: &Arena| seen(arena, |frame| matches!(frame, Frame::Ack(_)));
    let before = acks(&arena);
    for _ in 0..50 {
        arena.send(PacketType::Short, &[Frame::Ping]);
    }
    arena.run_for(Duration::from_millis(499));
    assert_eq!(acks(&arena), before, "none is due yet");
    arena.send(PacketType::Short, &[Frame::ImmediateAck]);
    assert_eq!(acks(&arena), before + 1);
    // An older request does not undo a newer one.
    arena.send(PacketType::Short, &[request(0, 1_000)]);
    arena.run_for(Duration::from_millis(400));
    assert_eq!(acks(&arena), before + 1);
    arena.send(PacketType::Short, &[request(2, 999)]);
    assert_eq!(arena.close_code(), Some((0x0a, 0xaf)), "below min_ack_delay");
}
