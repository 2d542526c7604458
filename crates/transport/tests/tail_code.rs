//! Codes over the ends of streams: what they save, what they cost, and what they must not change.

use std::sync::Arc;

use posthaste_transport::{ConnectionHandle, ConnectionStats, Direction, Event, StreamId, TransportConfig};
use posthaste_units::{Duration, Time};

use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair, tls};

const RTT: Duration = Duration::from_millis(20);

/// A first flight of 64 datagrams; codes if `code`.
fn config(code: bool) -> TransportConfig {
    let text = format!(
        "[start.initial]\ndatagrams = 64\n[congestion.bbr3]\n[repair.tail]\nhandshake = false\nfloor = 64\ncode = {code}\n"
    );
    let profile = posthaste_schemes::from_toml("code", &text).expect("a profile");
    TransportConfig { profile, mtu_discovery: false, max_datagram_size: 1200, ..crate::support::defaults() }
}

/// A server and a client that codes if `client_codes`, connected.
fn pair(seed: u64, server_codes: bool, client_codes: bool) -> (Pair, ConnectionHandle) {
    let mut pair = Pair::new(seed, crate::support::defaults(), config(server_codes));
    let client = tls::client_config(seed).with_transport(Arc::new(config(client_codes)));
    let handle = pair.connect_with(&client);
    pair.run_until(|pair| pair.client.has(handle, |event| *event == Event::Confirmed));
    pair.run_for(Duration::from_millis(200));
    (pair, handle)
}

/// The server sends a stream of each length, on which the client reads; when it has all of them.
fn download(pair: &mut Pair, client: ConnectionHandle, lengths: &[u64]) -> Duration {
    let server = pair.server.accepted[0];
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let mut ids: Vec<(StreamId, u64)> = Vec::new();
    for len in lengths {
        let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
        writers.add(id, *len);
        ids.push((id, *len));
    }
    let begun = pair.now;
    pair.run_promptly_until(|pair| {
        writers.pump(pair.server.connection(server));
        let now = pair.now;
        readers.pump(now, pair.client.connection(client), usize::MAX);
        ids.iter().all(|(id, _)| readers.finished.contains_key(id))
    });
    for (id, len) in &ids {
        assert_eq!(readers.finished[id], *len);
    }
    pair.now.since(begun)
}

fn stats(pair: &mut Pair, client: ConnectionHandle) -> (ConnectionStats, ConnectionStats) {
    let server = pair.server.accepted[0];
    (pair.server.connection(server).stats(), pair.client.connection(client).stats())
}

#[test]
fn lost_packets_anywhere_in_a_tail_are_restored_without_a_round_trip() {
    // 40,000 bytes are 35 datagrams: the first, some in the middle, the last, a short one.
    for lost in [vec![0], vec![34], vec![0, 9, 17, 34], vec![30, 31, 32, 33], vec![0, 1, 2, 3]] {
        let (mut pair, client) = pair(1, true, true);
        let sent = pair.server.sent;
        pair.doomed = lost.iter().map(|index| (false, sent + index)).collect();
        let took = download(&mut pair, client, &[40_000]);
        assert!(took < RTT, "{lost:?}: {took:?}");
        let (server, reader) = stats(&mut pair, client);
        assert!(server.packets_coded >= lost.len() as u64 && server.packets_coded <= 12, "{server:?}");
        assert_eq!(server.packets_copied, 0);
        assert!(
            reader.bytes_restored.get() > 1100 * lost.len() as u64 - 900,
            "{lost:?}: {}",
            reader.bytes_restored
        );
        assert!(
            reader.bytes_restored.get() <= 1400 * lost.len() as u64,
            "{lost:?}: {}",
            reader.bytes_restored
        );
    }
}

#[test]
fn what_was_read_before_the_end_serves_to_restore_it() {
    // Small and large reads; the loss is known only to the code when most has been read.
    for max in [100, 5000, usize::MAX] {
        let (mut pair, client) = pair(1, true, true);
        let server = pair.server.accepted[0];
        let sent = pair.server.sent;
        pair.doomed = vec![(false, sent + 33), (false, sent + 34)];
        let id = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        writers.add(id, 40_000);
        let begun = pair.now;
        pair.run_promptly_until(|pair| {
            writers.pump(pair.server.connection(server));
            let now = pair.now;
            readers.pump(now, pair.client.connection(client), max);
            readers.finished.contains_key(&id)
        });
        assert!(pair.now.since(begun) < RTT, "{max}: {:?}", pair.now.since(begun));
        assert!(stats(&mut pair, client).1.bytes_restored.get() > 1300);
    }
}

#[test]
fn both_ends_must_want_codes() {
    for (server_codes, client_codes) in [(false, true), (true, false), (false, false)] {
        let (mut pair, client) = pair(1, server_codes, client_codes);
        let sent = pair.server.sent;
        pair.doomed = vec![(false, sent + 20)];
        download(&mut pair, client, &[40_000]);
        let (server, reader) = stats(&mut pair, client);
        assert_eq!((server.packets_coded, reader.bytes_restored.get()), (0, 0));
        assert!(server.packets_copied > 0, "newest packets are copied instead");
    }
}

#[test]
fn an_end_that_fits_into_a_packet_is_copied_instead() {
    let (mut pair, client) = pair(1, true, true);
    let sent = pair.server.sent;
    pair.doomed = vec![(false, sent)];
    let took = download(&mut pair, client, &[500]);
    assert!(took < RTT, "{took:?}");
    let (server, reader) = stats(&mut pair, client);
    assert_eq!((server.packets_coded, reader.bytes_restored.get()), (0, 0));
    assert!(server.packets_copied > 0);
}

#[test]
fn several_streams_end_together() {
    let (mut pair, client) = pair(1, true, true);
    let sent = pair.server.sent;
    pair.doomed = [3, 14, 20, 27].iter().map(|index| (false, sent + index)).collect();
    let took = download(&mut pair, client, &[7000, 12_000, 300, 15_000]);
    assert!(took < RTT, "{took:?}");
    assert!(stats(&mut pair, client).1.bytes_restored.get() > 3000);
}

#[test]
fn codes_keep_to_their_budget_and_leave_nothing_behind_whatever_the_links_do() {
    let mut restored = 0;
    for seed in 0..20 {
        let (mut pair, client) = pair(seed, true, true);
        let link = Link { loss: 0.1, reorder: 0.1, duplicate: 0.05, ..Link::CLEAN };
        (pair.up, pair.down) = (link, link);
        let mut sent = 0;
        for len in [500, 20_000, 100_000, 300_000] {
            download(&mut pair, client, &[len]);
            sent += len;
        }
        pair.run_for(Duration::from_secs(30));
        let (server, reader) = stats(&mut pair, client);
        assert_eq!((server.in_flight.get(), server.streams.buffered.get()), (0, 0), "seed {seed}");
        let most = (96 * 1200).max(sent * 14 / 100) + 1200 + server.packets_copied * 30;
        let extra = server.bytes_coded.get() + server.bytes_copied.get();
        assert!(server.packets_coded > 3 && extra <= most, "seed {seed}: {extra} bytes");
        restored += reader.bytes_restored.get();
        let handle = pair.server.accepted[0];
        assert_eq!(pair.server.connection(handle).open_streams(), 0);
        assert!(pair.now > Time::ZERO);
    }
    assert!(restored > 100_000, "{restored} bytes");
}
