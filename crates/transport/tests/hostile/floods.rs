//! Junk by the thousand beside a live connection: it costs answers within the rate and nothing else.

use bytes::Bytes;
use posthaste_transport::{DatagramInfo, Direction, Endpoint, Read, Side, StreamId};
use posthaste_units::{Duration, Rng, Time};
use posthaste_wire::Frame;
use posthaste_wire::frame::StreamFrame;
use posthaste_wire::packet::PacketType;

use crate::support::arena::Arena;
use crate::support::tls;

/// The largest UDP payload over IPv4.
const JUMBO: usize = 65_507;

/// Resets in a second, and in a burst on top (limits.rs), and version negotiations.
const RATE: u64 = 1000;
const BURST: u64 = 100;

fn noise(rng: &mut Rng, length: usize, first: u8) -> Vec<u8> {
    let mut datagram = vec![0; length];
    rng.fill(&mut datagram);
    if let Some(byte) = datagram.first_mut() {
        *byte = first;
    }
    datagram
}

#[test]
fn answers_without_a_connection_are_limited_in_rate_however_many_addresses_ask_for_them() {
    // Stateless resets; version negotiations.
    for (first, version) in [(0x41, 0_u32), (0xc3, 0x1a2a_3a4a)] {
        let answers = answers_to_a_flood(first, version);
        assert!((2 * RATE..=2 * RATE + BURST).contains(&answers), "{answers} answers");
    }
}

fn answers_to_a_flood(first: u8, version: u32) -> u64 {
    let mut endpoint = Endpoint::new([1; 32], Some(tls::server_config(1)));
    let mut rng = Rng::from_test_seed(5);
    let (mut answers, mut buffer) = (0, Vec::new());
    let mut now = Time::ZERO;
    // Ten thousand a second, for two seconds.
    for index in 0..20_000_u32 {
        let mut datagram = noise(&mut rng, 1200, first);
        if version != 0 {
            datagram[1..5].copy_from_slice(&version.to_be_bytes());
        }
        let remote = std::net::SocketAddr::from((index.to_be_bytes(), 4433));
        let info = DatagramInfo { remote, local_ip: None, ecn: None };
        endpoint.on_datagram(now, &info, datagram[..].into());
        while endpoint.poll_transmit(now, &mut buffer, 1).is_some() {
            buffer.clear();
            answers += 1;
        }
        now += Duration::from_micros(100);
    }
    assert_eq!((endpoint.connections(), endpoint.next_timeout()), (0, None));
    answers
}

#[test]
fn floods_of_tiny_huge_and_forged_datagrams_leave_a_live_connection_alone() {
    let mut arena = Arena::server();
    let mut rng = Rng::from_test_seed(6);
    let id = StreamId::new(Side::Client, Direction::Bidirectional, 0);
    let known = arena.rogue.remote_id;
    let mut received = Vec::new();
    let mut sent = Vec::new();
    for round in 0..200_u64 {
        let answered = arena.sent.len();
        for index in 0..50 {
            let junk = match index % 5 {
                0 => noise(&mut rng, 1, round as u8),
                1 if index % 10 == 1 => noise(&mut rng, JUMBO, 0x41),
                1 => noise(&mut rng, JUMBO, 0xc3),
                2 => noise(&mut rng, 1200, round as u8),
                // A short header for the connection that lives, sealed by nobody.
                _ => {
                    let mut forged = noise(&mut rng, 60, 0x41);
                    forged[1..=known.as_slice().len()].copy_from_slice(known.as_slice());
                    forged
                }
            };
            arena.inject(&junk);
        }
        let data = Bytes::from(vec![round as u8; 100]);
        sent.extend_from_slice(&data);
        arena.send(
            PacketType::Short,
            &[Frame::Stream(StreamFrame { id, offset: round * 100, data, fin: round == 199 })],
        );
        let now = arena.now;
        let connection = arena.connection();
        connection.accept(Direction::Bidirectional);
        while let Ok(Read::Data(data)) = connection.read(now, id, usize::MAX) {
            received.extend_from_slice(&data);
        }
        arena.exchange();
        assert!(arena.sent.len() - answered <= BURST as usize + 4, "round {round}");
        arena.now += Duration::from_millis(1);
    }
    assert_eq!(received, sent, "each piece was read in the round that it came in");
    assert_eq!(arena.endpoint.connections(), 1);
    assert_eq!(arena.close_code(), None);
    assert!(arena.closed().is_none());
    let dropped = arena.connection().stats().packets_dropped;
    assert_eq!(dropped, 200 * 20, "every forged packet, and nothing else");
}
