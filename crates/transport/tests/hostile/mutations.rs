//! Datagrams of real connections: doubled, replayed, cut at every byte, with every byte changed.

use bytes::BytesMut;
use posthaste_transport::Direction;
use posthaste_units::{Duration, Rng};

use crate::support::Pair;
use crate::support::arena::Arena;
use crate::support::rogue::{Oddity, Rogue, proper};
use crate::support::tls;
use crate::support::transfer::{Readers, Writers};

/// Transfers both ways while `meddle` may do to each datagram's receiver what it likes, just before it arrives.
fn transfer_with(seed: u64, len: u64, mut meddle: impl FnMut(&[u8], &mut dyn FnMut(&[u8]))) {
    let mut pair = Pair::new(seed, crate::support::defaults(), crate::support::defaults());
    let client = pair.connect();
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let mut opened = None;
    pair.run_until(|pair| {
        pair.meddle(&mut meddle);
        if pair.client.connection(client).is_handshaking() {
            return false;
        }
        let id = *opened.get_or_insert_with(|| {
            let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
            writers.add(id, len);
            id
        });
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        if let Some(server) = pair.server.accepted.first().copied() {
            readers.pump(now, pair.server.connection(server), usize::MAX);
        }
        readers.finished.contains_key(&id)
    });
    assert!(!pair.client.connection(client).is_closed());
}

#[test]
fn a_connection_survives_each_of_its_datagrams_cut_at_every_byte() {
    // spec: rfc9000 10.3 too-small-dropped, rfc9001 5.4.2 short-sample-dropped
    transfer_with(1, 20_000, |datagram, deliver| {
        for len in 0..datagram.len() {
            deliver(&datagram[..len]);
        }
    });
}

#[test]
fn a_connection_survives_each_of_its_datagrams_with_every_byte_changed() {
    let mut rng = Rng::from_test_seed(1);
    transfer_with(1, 20_000, |datagram, deliver| {
        let mut copy = datagram.to_vec();
        for at in 0..datagram.len() {
            let change = 1 + rng.below(255) as u8;
            copy[at] ^= change;
            deliver(&copy);
            copy[at] ^= change;
        }
    });
}

#[test]
fn a_connection_survives_bits_of_the_first_bytes_and_trailing_noise() {
    let mut rng = Rng::from_test_seed(2);
    transfer_with(2, 20_000, |datagram, deliver| {
        for first in 0..=255 {
            let mut copy = datagram.to_vec();
            copy[0] = first;
            if first != datagram[0] {
                deliver(&copy);
            }
        }
        let mut longer = datagram.to_vec();
        longer.resize(datagram.len() + 1 + rng.below(100) as usize, 0);
        rng.fill(&mut longer[datagram.len()..]);
        // A long header's packet says how long it is: what follows is noise. A short header's is spoilt.
        deliver(&longer);
    });
}

#[test]
fn a_connection_survives_every_datagram_three_times_and_old_ones_again() {
    // spec: rfc9000 12.3 duplicates-dropped
    let mut rng = Rng::from_test_seed(3);
    let mut old: Vec<Vec<u8>> = Vec::new();
    transfer_with(3, 100_000, |datagram, deliver| {
        deliver(datagram);
        deliver(datagram);
        old.push(datagram.to_vec());
        for _ in 0..3 {
            let at = rng.below(old.len() as u64) as usize;
            deliver(&old[at]);
        }
    });
}

/// Frames and near-frames in sealed packets: whatever they do, the end that gets them does not panic, and dies only
/// with a code of the transport's or TLS's.
#[test]
fn random_payloads_in_sealed_packets_do_no_harm() {
    let mut rng = Rng::from_test_seed(4);
    for round in 0..400 {
        let mut arena = Arena::connected(round % 2 == 0);
        for _ in 0..10 {
            let mut payload = Vec::new();
            for frame in crate::frames::samples() {
                if rng.chance(0.3) {
                    frame.write(&mut payload);
                }
            }
            for _ in 0..rng.below(4) {
                if !payload.is_empty() {
                    let at = rng.below(payload.len() as u64) as usize;
                    payload[at] = rng.next_u64() as u8;
                }
            }
            arena.send_raw(&payload, Oddity::default());
        }
        arena.run_for(Duration::from_secs(2));
        if let Some(close) = arena.rogue.close() {
            assert!(
                (1..=0x10).contains(&close.error_code) || (0x100..=0x1ff).contains(&close.error_code),
                "{close:?}"
            );
        }
        arena.is_listening = false;
        arena.run_for(Duration::from_secs(120));
        assert_eq!(arena.endpoint.connections(), 0, "round {round}");
        assert_eq!(arena.endpoint.next_timeout(), None);
    }
}

#[test]
fn a_replayed_first_flight_of_a_live_connection_begins_no_other() {
    let mut arena = Arena::server_with(tls::server_config(1), proper());
    let flight = arena.rogue.flight();
    arena.inject(&flight[0]);
    arena.exchange();
    arena.run_for(Duration::from_secs(2));
    assert_eq!(arena.endpoint.connections(), 1);
    // As a network that duplicates and delays would deliver it.
    arena.inject(&flight[0]);
    arena.drain();
    assert_eq!(arena.endpoint.connections(), 1);
    assert_eq!(arena.endpoint.stats().accepted, 1);
}

#[test]
fn noise_from_the_start_begins_no_connection() {
    let mut rng = Rng::from_test_seed(5);
    let mut arena = Arena::server_with(tls::server_config(1), proper());
    let flight = Rogue::client(1, proper()).flight();
    for _ in 0..2000 {
        let mut copy = BytesMut::from(&flight[0][..]);
        // Behind the IDs: what names the keys stays, what they protect does not.
        let at = 24 + rng.below(copy.len() as u64 - 24) as usize;
        copy[at] ^= 1 + rng.below(255) as u8;
        arena.inject(&copy);
    }
    arena.drain();
    assert_eq!(arena.endpoint.connections(), 0);
    assert!(arena.sent.is_empty());
}
