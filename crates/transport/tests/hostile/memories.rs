//! What one end remembers of what it has sent, so that a peer's acknowledgements make sense: pushed past its bounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_transport::{LocalError, ServerConfig};
use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::frame::AckFrame;
use posthaste_wire::packet::PacketType;

use crate::code;
use crate::support::arena::Arena;
use crate::support::resuming::Tokens;
use crate::support::rogue::{Oddity, proper};
use crate::support::tls;

fn ack(ranges: Vec<std::ops::RangeInclusive<u64>>) -> Frame {
    Frame::Ack(AckFrame { ranges, delay: 0, ecn: None })
}

/// Packets that have come from the victim since it had sent `before` of them.
fn since(arena: &Arena, before: u64) -> Vec<u64> {
    arena.rogue.received(PacketType::Short).range(before..).copied().collect()
}

#[test]
fn of_packets_declared_lost_a_bounded_number_is_remembered() {
    let mut arena = Arena::server();
    arena.rogue.is_acking = false;
    let first = *arena.rogue.received(PacketType::Short).last().expect("some") + 1;
    for _ in 0..300 {
        for _ in 0..10 {
            arena.connection().ping();
            arena.drain();
        }
        let newest = *arena.rogue.received(PacketType::Short).last().expect("some");
        arena.send(PacketType::Short, &[ack(vec![newest..=newest])]);
    }
    let lost = arena.connection().stats().packets_lost;
    assert!(lost > 2500, "{lost}: nine in ten were never acknowledged");
    // All of them had arrived.
    let missing: BTreeSet<u64> = {
        let received = arena.rogue.received(PacketType::Short);
        (first..*received.last().expect("some")).filter(|number| !received.contains(number)).collect()
    };
    for chunk in since(&arena, first).chunks(50) {
        let mut ranges: Vec<_> = Vec::new();
        for number in chunk.iter().rev() {
            ranges.push(*number..=*number);
        }
        ranges.dedup();
        arena.send(PacketType::Short, &[ack(merged(&ranges, &missing))]);
        assert_eq!(arena.close_code(), None);
    }
    let spurious = arena.connection().stats().packets_spuriously_lost;
    assert!((900..=1024).contains(&spurious), "{spurious} of {lost}");
}

/// Single numbers, descending, as ranges: across what is not `missing`.
fn merged(
    singles: &[std::ops::RangeInclusive<u64>],
    missing: &BTreeSet<u64>,
) -> Vec<std::ops::RangeInclusive<u64>> {
    let mut ranges: Vec<std::ops::RangeInclusive<u64>> = Vec::new();
    for single in singles {
        let number = *single.start();
        match ranges.last_mut() {
            Some(range) if range.start() - 1 == number && !missing.contains(&number) => {
                *range = number..=*range.end();
            }
            _ => ranges.push(number..=number),
        }
    }
    ranges
}

#[test]
fn of_packets_of_ack_alone_the_latest_are_remembered() {
    let mut arena = Arena::server();
    arena.rogue.is_acking = false;
    arena.rogue.seen.clear();
    // A few gaps, so that acknowledgements tell of several ranges, and then many more packets.
    let base = arena.rogue.next_number(PacketType::Short) + 1;
    for gap in 0..5 {
        arena.send_raw(&[1], Oddity { number: Some(base + 2 * gap), ..Oddity::default() });
        arena.run_for(Duration::from_millis(30));
    }
    let old = *arena.rogue.received(PacketType::Short).last().expect("an acknowledgement");
    for _ in 0..200 {
        arena.send(PacketType::Short, &[Frame::Ping]);
        arena.run_for(Duration::from_millis(30));
    }
    let newest = *arena.rogue.received(PacketType::Short).last().expect("an acknowledgement");
    assert!(newest - old > 2 * 64, "{old} to {newest}");
    let ranges_after = |arena: &mut Arena, acked: u64| {
        arena.send(PacketType::Short, &[ack(vec![acked..=acked])]);
        arena.rogue.seen.clear();
        arena.send(PacketType::Short, &[Frame::Ping]);
        arena.run_for(Duration::from_millis(30));
        let acks = arena.rogue.seen.iter().filter_map(|(_, frame)| match frame {
            Frame::Ack(ack) => Some(ack.ranges.len()),
            _ => None,
        });
        acks.last().expect("an acknowledgement")
    };
    assert!(ranges_after(&mut arena, old) >= 5, "what it told is forgotten: it is told on");
    assert_eq!(ranges_after(&mut arena, newest), 1, "the peer has been told of the gaps");
    assert_eq!(arena.close_code(), None);
}

#[test]
fn of_packet_numbers_never_used_the_latest_catch_a_liar() {
    let mut arena = Arena::server();
    arena.rogue.is_acking = false;
    let first = *arena.rogue.received(PacketType::Short).first().expect("some");
    let missing = loop {
        for _ in 0..200 {
            arena.connection().ping();
            arena.drain();
        }
        let received = arena.rogue.received(PacketType::Short);
        let last = *received.last().expect("some");
        let missing: Vec<u64> = (first..last).filter(|number| !received.contains(number)).collect();
        let good: Vec<_> = since(&arena, last - 2).iter().rev().map(|number| *number..=*number).collect();
        arena.send(PacketType::Short, &[ack(merged(&good, &missing.iter().copied().collect()))]);
        assert_eq!(arena.close_code(), None);
        assert!(last < 200_000, "only {missing:?} of {last} were skipped");
        if missing.len() > 20 {
            break missing;
        }
    };
    // More than sixteen have been skipped since: nobody knows any more that this one was.
    arena.send(PacketType::Short, &[ack(vec![missing[0]..=missing[0]])]);
    assert_eq!(arena.close_code(), None);
    let newest = missing[missing.len() - 1];
    arena.send(PacketType::Short, &[ack(vec![newest..=newest])]);
    assert_eq!(arena.close_code(), Some((code::PROTOCOL_VIOLATION, 2)));
}

#[test]
fn a_client_keeps_tokens_up_to_a_size() {
    let tokens = Arc::new(Tokens::default());
    let mut arena = Arena::client_with(proper());
    let config = tls::client_config(1).with_tokens(Arc::clone(&tokens) as _);
    let (now, address) = (arena.now, arena.address);
    arena.endpoint = posthaste_transport::Endpoint::new([1; 32], None);
    arena.handle = Some(arena.endpoint.connect(now, &config, address, "localhost").expect("valid"));
    arena.exchange();
    for len in [1, 512, 513, 1100] {
        arena.send(PacketType::Short, &[Frame::NewToken(Bytes::from(vec![7; len]))]);
    }
    assert_eq!(arena.close_code(), None);
    let kept: Vec<usize> = tokens.all().iter().map(Bytes::len).collect();
    assert_eq!(kept, [1, 512]);
}

#[test]
fn a_server_offers_few_tokens_at_once_and_small_payloads() {
    let config = ServerConfig { new_tokens: 0, ..tls::server_config(1) };
    let mut arena = Arena::server_with(config, proper());
    arena.exchange();
    arena.rogue.is_acking = false;
    let connection = arena.connection();
    assert_eq!(connection.offer_token(&[1; 65]), Err(LocalError::NotNow));
    assert!((0..4).all(|_| connection.offer_token(&[1; 64]).is_ok()));
    assert_eq!(connection.offer_token(&[]), Err(LocalError::NotNow), "four wait");
    // A client that acknowledges none of them gets no more.
    arena.drain();
    assert_eq!(arena.connection().offer_token(&[]), Err(LocalError::NotNow));
    arena.rogue.is_acking = true;
    arena.run_for(Duration::from_secs(1));
    assert_eq!(arena.connection().offer_token(&[]), Ok(()));
}
