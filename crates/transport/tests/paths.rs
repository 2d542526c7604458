//! Moves between addresses, and the size of datagrams: over links that forward to where an end is now, and nowhere
//! else.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::transfer::{Readers, Writers};
use crate::support::{Pair, tls};
use bytes::BytesMut;
use posthaste_transport::{
    CloseReason, ConnectionHandle, DatagramInfo, Direction, EcnState, Event, LocalError, Move, StreamId,
    TransportConfig,
};
use posthaste_units::{Duration, Time};

const ELSEWHERE: &str = "10.9.8.7:4321";
const OTHER_PORT: &str = "127.0.0.1:2000";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A download under way.
struct Download {
    pair: Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
    id: StreamId,
    writers: Writers,
    readers: Readers,
    len: u64,
}

impl Download {
    /// The client's address changes under way, so it says something at least once a second.
    fn new(len: u64) -> Self {
        Self::with_server(len, crate::support::defaults())
    }

    fn with_server(len: u64, server: TransportConfig) -> Self {
        let mut pair = Pair::new(7, crate::support::defaults(), server);
        let keep_alive = Some(std::time::Duration::from_secs(1));
        let transport = TransportConfig { keep_alive, ..crate::support::defaults() };
        let client = pair.connect_with(&tls::client_config(1).with_transport(Arc::new(transport)));
        pair.run_until(|pair| pair.server.accepted.len() == 1);
        pair.run_for(Duration::from_millis(100));
        let server = pair.server.accepted[0];
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        pair.client.connection(client).finish(id).expect("its end");
        let mut download =
            Self { pair, client, server, id, writers: Writers::default(), readers: Readers::default(), len };
        download.readers.add(id);
        download.pair.run_for(Duration::from_millis(20));
        let _ = download.pair.server.connection(server).accept(Direction::Bidirectional);
        download.writers.add(id, len);
        download
    }

    fn received(&self) -> u64 {
        self.readers.open.get(&self.id).copied().unwrap_or(self.len)
    }

    fn run_until(&mut self, mut done: impl FnMut(&mut Pair, u64) -> bool) {
        let Self { pair, client, server, id, writers, readers, len } = self;
        pair.run_until(|pair| {
            writers.pump(pair.server.connection(*server));
            let now = pair.now;
            readers.pump(now, pair.client.connection(*client), usize::MAX);
            let received = readers.open.get(id).copied().unwrap_or(*len);
            done(pair, received)
        });
    }

    fn run_to(&mut self, bytes: u64) {
        self.run_until(|_, received| received >= bytes);
    }

    fn finish(&mut self) {
        self.run_to(self.len);
        let (id, len) = (self.id, self.len);
        self.run_until(|_, _| true);
        assert_eq!(self.readers.finished.get(&id), Some(&len));
    }

    fn server_window(&mut self) -> u64 {
        self.pair.server.connection(self.server).stats().congestion.window.get()
    }

    fn server_remote(&mut self) -> SocketAddr {
        self.pair.server.connection(self.server).remote()
    }

    /// Runs until the server sends data elsewhere.
    fn run_until_followed(&mut self) {
        let server = self.server;
        let before = self.server_remote();
        self.run_until(|pair, _| pair.server.connection(server).remote() != before);
    }
}

#[test]
fn a_rebound_port_is_followed_and_keeps_its_speed() {
    // spec: rfc9000 9.3 follows-the-peer
    let mut download = Download::new(3_000_000);
    download.run_to(1_500_000);
    let window = download.server_window();
    assert!(window > 100_000, "{window}");
    download.pair.client.address = address(OTHER_PORT);
    download.run_until_followed();
    assert!(download.server_window() >= window / 2, "{} of {window}", download.server_window());
    assert!(download.pair.server.connection(download.server).stats().max_datagram_size == 1452);
    download.finish();
    assert_eq!(download.server_remote(), address(OTHER_PORT));
    assert_eq!(download.pair.server.connection(download.server).stats().moves, 1);
}

/// Of the server's last hundred datagrams, how many were marked: all that carry data if ECN has been validated.
fn marked(download: &Download) -> usize {
    let last = download.pair.log.iter().rev().filter(|sent| !sent.from_client).take(100);
    last.filter(|sent| sent.is_marked).count()
}

#[test]
fn a_rebound_port_leaves_ecn_on() {
    // What the peer counts is the connection's, so what it counts against is, too (RFC 9000 section 13.4.2.1).
    let mut download = Download::new(8_000_000);
    download.run_to(100_000);
    assert!(marked(&download) >= 95);
    for turn in 1..=3_u16 {
        download.pair.client.address = SocketAddr::from(([127, 0, 0, 1], 2000 + turn));
        download.run_until_followed();
        // The first ten are marked, and what comes after their acknowledgement.
        let followed = download.pair.now;
        download.run_until(|pair, _| pair.now > followed + Duration::from_millis(50));
        assert!(download.received() < download.len);
        let marked = marked(&download);
        assert!(marked >= 95, "{marked} in turn {turn}");
        let server = download.pair.server.connection(download.server).stats();
        assert_eq!((server.ecn, server.packets_marked), (EcnState::Capable, 0));
    }
    download.pair.down.mark = 0.1;
    download.finish();
    let server = download.pair.server.connection(download.server).stats();
    assert!(server.packets_marked > 0, "the client reports what met congestion");
}

#[test]
fn a_rebound_address_is_followed_and_its_speed_begins_anew() {
    // spec: rfc9000 9.3 follows-the-peer, 9.4 new-path-starts-anew, 9.4 old-packets-do-not-count
    let mut download = Download::new(3_000_000);
    download.run_to(1_500_000);
    assert!(download.server_window() > 100_000);
    let rtt = download.pair.server.connection(download.server).stats().rtt;
    assert!(rtt.is_measured);
    download.pair.client.address = address(ELSEWHERE);
    download.run_until_followed();
    let stats = download.pair.server.connection(download.server).stats();
    assert!(stats.congestion.window.get() <= 15_000, "{:?}", stats.congestion);
    assert!(!stats.rtt.is_measured);
    assert_eq!((stats.max_datagram_size, stats.in_flight.get()), (1252, 0));
    download.finish();
    assert_eq!(download.server_remote(), address(ELSEWHERE));
    let stats = download.pair.server.connection(download.server).stats();
    assert_eq!(stats.max_datagram_size, 1452, "the new path is searched, too");
    let marked = download.pair.log.iter().rev().take(200).filter(|sent| !sent.from_client && sent.is_marked);
    assert!(marked.count() > 50, "ECN has been validated anew");
}

#[test]
fn downloads_survive_a_rebinding_at_any_moment() {
    for step in 0..25_u64 {
        for to in [OTHER_PORT, ELSEWHERE] {
            let mut download = Download::new(400_000);
            download.pair.up.loss = 0.01;
            download.pair.down.loss = 0.01;
            download.run_to(step * 15_000);
            download.pair.client.address = address(to);
            download.finish();
        }
    }
}

/// Destination IDs of 1-RTT packets captured, by their sender (true: client).
fn destinations(pair: &mut Pair, of_client: bool) -> BTreeSet<Vec<u8>> {
    let capture = pair.capture.replace(Vec::new()).unwrap_or_default();
    let of_sender =
        capture.into_iter().filter(|(from_client, data)| *from_client == of_client && data[0] & 0x80 == 0);
    of_sender.map(|(_, data)| data[1..9].to_vec()).collect()
}

#[test]
fn a_client_that_moves_is_followed_under_names_that_nobody_has_seen() {
    // spec: rfc9000 9.5 id-for-one-local-address, 9.5 id-for-one-remote-address, 5.1 id-issued-once
    for of_client in [true, false] {
        let mut download = Download::new(8_000_000);
        download.pair.capture = Some(Vec::new());
        download.run_to(300_000);
        let mut seen = destinations(&mut download.pair, of_client);
        assert_eq!(seen.len(), 1);
        for turn in 1..=8_u16 {
            let now = download.pair.now;
            download.pair.client.address = SocketAddr::from(([10, 0, 0, turn as u8], 1000 + turn));
            download.pair.client.connection(download.client).migrate(now, Move::Network).expect("a spare ID");
            download.run_until_followed();
            let _ = destinations(&mut download.pair, of_client);
            let target = download.received() + 500_000;
            download.run_to(target);
            let now_used = destinations(&mut download.pair, of_client);
            assert_eq!(now_used.len(), 1, "turn {turn}");
            assert!(seen.is_disjoint(&now_used), "turn {turn}");
            seen.extend(now_used);
        }
        download.finish();
        let stats = download.pair.client.connection(download.client).stats();
        assert_eq!(stats.moves, 8);
        assert_eq!(download.pair.server.connection(download.server).stats().moves, 8);
    }
}

#[test]
fn wifi_to_cellular_goes_on_within_a_few_round_trips() {
    let mut download = Download::new(3_000_000);
    download.run_to(1_000_000);
    let now = download.pair.now;
    download.pair.client.address = address(ELSEWHERE);
    download.pair.up.delay = Duration::from_millis(40);
    download.pair.down.delay = Duration::from_millis(40);
    download.pair.client.connection(download.client).migrate(now, Move::Network).expect("a spare ID");
    let received = download.received();
    download.run_until(|_, now_received| now_received > received + 20_000);
    // The move, the challenge and its answer, the data that were lost: three round trips of 80 ms.
    assert!(download.pair.now.since(now) < Duration::from_millis(300), "{:?}", download.pair.now.since(now));
    download.finish();
}

#[test]
fn a_client_that_moves_faster_than_round_trips_is_found_again() {
    for told in [true, false] {
        let mut download = Download::new(2_000_000);
        download.run_to(500_000);
        let mut refused = 0;
        for turn in 1..=40_u8 {
            let now = download.pair.now;
            let client = download.pair.client.connection(download.client);
            if told || turn <= 3 {
                match client.migrate(now, Move::Network) {
                    Ok(()) => {}
                    Err(LocalError::NoConnectionId) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            client.ping();
            download.pair.client.address = SocketAddr::from(([10, 0, 0, turn], 1000));
            download.pair.run_for(Duration::from_millis(u64::from(turn) % 12));
        }
        assert_eq!(refused > 0, told, "the server has IDs for three moves in a round trip");
        let start = download.pair.now;
        download.finish();
        assert!(
            download.pair.now.since(start) < Duration::from_secs(5),
            "{:?}",
            download.pair.now.since(start)
        );
        assert_eq!(download.server_remote(), download.pair.client.address);
    }
}

#[test]
fn rebindings_cost_no_connection_ids() {
    // spec: rfc9000 9.5 id-for-one-remote-address
    let mut download = Download::new(3_000_000);
    download.run_to(300_000);
    download.pair.capture = Some(Vec::new());
    for turn in 1..=20_u8 {
        download.pair.client.address = SocketAddr::from(([10, 0, 0, turn], 1000));
        let target = download.received() + 20_000;
        download.run_to(target);
    }
    assert_eq!(
        destinations(&mut download.pair, false).len(),
        1,
        "the client was not asked to be called anything else"
    );
    download.finish();
}

#[test]
fn moves_that_no_answer_reaches_are_survived() {
    // The server's IDs are used up on paths that the client has left before anything of the server's arrived.
    let mut download = Download::new(1_000_000);
    download.run_to(300_000);
    download.pair.down.loss = 1.0;
    for turn in 1..=3_u8 {
        let now = download.pair.now;
        download.pair.client.connection(download.client).migrate(now, Move::Network).expect("a spare ID");
        download.pair.client.address = SocketAddr::from(([10, 0, 0, turn], 1000));
        download.pair.run_for(Duration::from_millis(15));
    }
    download.pair.capture = Some(Vec::new());
    download.pair.run_for(Duration::from_secs(1));
    download.pair.down.loss = 0.0;
    let now = download.pair.now;
    assert_eq!(
        download.pair.client.connection(download.client).migrate(now, Move::Network),
        Err(LocalError::NoConnectionId)
    );
    download.pair.client.address = address(ELSEWHERE);
    download.finish();
    assert_eq!(download.server_remote(), address(ELSEWHERE));
}

#[test]
fn uploads_go_on_after_a_move_too() {
    let mut pair = Pair::default();
    let (client, server) = pair.establish();
    pair.run_for(Duration::from_millis(100));
    let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 2_000_000);
    let mut has_moved = false;
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        if !has_moved && readers.open.get(&id).is_some_and(|received| *received > 1_000_000) {
            has_moved = true;
            pair.client.address = address(ELSEWHERE);
            pair.client.connection(client).migrate(now, Move::Network).expect("a spare ID");
        }
        !readers.finished.is_empty()
    });
    assert!(has_moved);
    assert_eq!(readers.finished.get(&id), Some(&2_000_000));
}

#[test]
fn moves_that_are_not_permitted_are_refused() {
    // spec: rfc9000 9 not-before-confirmed, 9 wish-to-stay-respected, 9 forbidden-move-tolerated
    // spec: rfc9000 18.2 stays-if-asked
    let still = TransportConfig { active_migration: false, ..crate::support::defaults() };
    let mut download = Download::with_server(1_000_000, still);
    let now = download.pair.now;
    let client = download.pair.client.connection(download.client);
    assert_eq!(client.migrate(now, Move::Port), Err(LocalError::MigrationForbidden));
    let server = download.pair.server.connection(download.server);
    assert_eq!(server.migrate(now, Move::Port), Err(LocalError::MigrationForbidden));
    // The network asks nobody.
    download.run_to(200_000);
    download.pair.client.address = address(OTHER_PORT);
    download.finish();
    assert_eq!(download.server_remote(), address(OTHER_PORT));

    let mut pair = Pair::default();
    let client = pair.connect();
    pair.drain();
    let now = pair.now;
    assert_eq!(pair.client.connection(client).migrate(now, Move::Port), Err(LocalError::TooEarly));
    pair.run_until(|pair| pair.server.accepted.len() == 1);
    pair.run_for(Duration::from_millis(100));
    let now = pair.now;
    let moves = (0..10).map(|_| pair.client.connection(client).migrate(now, Move::Port));
    let moves: Vec<_> = moves.collect();
    assert_eq!(moves[..3], [Ok(()); 3]);
    assert_eq!(moves[3], Err(LocalError::NoConnectionId), "each takes an ID that was never used");
}

/// Lets a copy of the client's next datagram reach the server from `from` before the original does; its size.
fn spoof(download: &mut Download, from: SocketAddr) -> usize {
    loop {
        let mut copy = None;
        download.pair.meddle(&mut |data, _| {
            if copy.is_none() && data[0] & 0x80 == 0 {
                copy = Some(data.to_vec());
            }
        });
        download.run_until(|_, _| true);
        let is_for_server = |data: &Vec<u8>| {
            let capture = download.pair.capture.as_ref().expect("set");
            capture.iter().rev().any(|(from_client, sent)| *from_client && sent == data)
        };
        if let Some(data) = copy.filter(is_for_server) {
            let info = DatagramInfo { remote: from, local_ip: None, ecn: None };
            let now = download.pair.now;
            download.pair.server.endpoint.on_datagram(now, &info, BytesMut::from(&data[..]));
            return data.len();
        }
        download.run_for_a_step();
    }
}

impl Download {
    fn run_for_a_step(&mut self) {
        let mut steps = 0;
        self.run_until(|_, _| {
            steps += 1;
            steps > 1
        });
    }
}

#[test]
fn a_spoofed_address_gets_three_times_what_it_sent_and_is_given_up() {
    // spec: rfc9000 8 three-times-at-most, 9.3 unvalidated-is-limited, 9.3 new-address-validated
    // spec: rfc9000 9 changed-address-validated, 9.3.2 falls-back
    let mut download = Download::new(3_000_000);
    download.pair.capture = Some(Vec::new());
    download.run_to(1_000_000);
    let client = download.pair.client.address;
    let len = spoof(&mut download, address(ELSEWHERE));
    assert_eq!(download.server_remote(), address(ELSEWHERE), "the newest packet came from there");
    // The client's own packets would show at once where it is.
    download.pair.up.loss = 1.0;
    let spoofed_at = download.pair.now;
    let server = download.server;
    download.run_until(|pair, _| pair.server.connection(server).remote() == client);
    assert!(download.pair.now.since(spoofed_at) < Duration::from_secs(5));
    let to_victim: Vec<usize> =
        download.pair.log.iter().filter(|sent| sent.to == address(ELSEWHERE)).map(|sent| sent.size).collect();
    assert!(!to_victim.is_empty(), "it was asked at least");
    let total: usize = to_victim.iter().sum();
    assert!(total <= 3 * len, "{total} bytes for {len}: {to_victim:?}");
    download.pair.up.loss = 0.0;
    download.finish();
    assert_eq!(download.server_remote(), client);
}

#[test]
fn a_spoofed_address_is_left_as_soon_as_the_client_is_heard() {
    let mut download = Download::new(4_000_000);
    download.pair.capture = Some(Vec::new());
    download.pair.down.loss = 0.02;
    download.run_to(100_000);
    let client = download.pair.client.address;
    for turn in 0..20 {
        spoof(&mut download, SocketAddr::from(([10, 0, turn, 1], 99)));
        let server = download.server;
        let (start, target) = (download.pair.now, download.received() + 20_000);
        download.run_until(|pair, received| {
            received >= target && pair.server.connection(server).remote() == client
        });
        assert!(download.pair.now.since(start) < Duration::from_secs(1), "turn {turn}");
    }
    download.finish();
}

#[test]
fn a_client_takes_nothing_from_another_address() {
    // spec: rfc9000 9 unknown-server-dropped
    let mut pair = Pair::default();
    let (client, _) = pair.establish();
    pair.server.address = address(ELSEWHERE);
    let before = pair.client.connection(client).stats();
    pair.client.connection(client).ping();
    pair.run_for(Duration::from_secs(2));
    let after = pair.client.connection(client).stats();
    assert_eq!(after.packets_received, before.packets_received);
}

/// Uploads over a path that carries `mtu` bytes of UDP payload; the size of datagrams in the end, and packets lost.
fn size_found(mtu: usize) -> (usize, u64) {
    let mut pair = Pair::default();
    (pair.up.mtu, pair.down.mtu) = (mtu, mtu);
    let (client, server) = pair.establish();
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    for turn in 1..=60 {
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        writers.add(id, 30_000);
        pair.run_until(|pair| {
            writers.pump(pair.client.connection(client));
            let now = pair.now;
            readers.pump(now, pair.server.connection(server), usize::MAX);
            readers.finished.len() == turn
        });
    }
    let stats = pair.client.connection(client).stats();
    (stats.max_datagram_size, stats.packets_lost)
}

#[test]
fn datagrams_grow_to_what_the_path_carries_and_its_probes_are_no_congestion() {
    for ip_mtu in [1300, 1400, 1500] {
        let payload = ip_mtu - 28;
        let (size, lost) = size_found(payload);
        assert!(size <= payload && size + 16 > payload.min(1452), "{size} of {payload}");
        assert_eq!(lost, 0, "packets besides probes, on a path of {ip_mtu}");
    }
}

#[test]
fn a_path_below_the_first_size_carries_data_all_the_same() {
    let (size, lost) = size_found(1230);
    assert_eq!(size, 1200);
    assert!(lost > 0);
}

#[test]
fn a_path_that_carries_less_than_1200_bytes_begins_no_connection() {
    // spec: rfc9000 14 least-path
    let mut pair = Pair::default();
    (pair.up.mtu, pair.down.mtu) = (1199, 1199);
    let client = pair.connect();
    pair.run_until(|pair| pair.client.has(client, |event| matches!(event, Event::Closed(_))));
    assert!(pair.client.has(client, |event| *event == Event::Closed(CloseReason::IdleTimeout)));
    assert!(pair.server.accepted.is_empty());
}

#[test]
fn a_path_that_ceases_to_carry_large_datagrams_is_noticed() {
    let mut download = Download::new(3_000_000);
    download.run_to(1_000_000);
    assert_eq!(download.pair.server.connection(download.server).stats().max_datagram_size, 1452);
    download.pair.down.mtu = 1272;
    let start = download.pair.now;
    let server = download.server;
    download.run_until(|pair, _| pair.server.connection(server).stats().black_holes == 1);
    assert_eq!(download.pair.server.connection(server).stats().max_datagram_size, 1200);
    assert!(download.pair.now.since(start) < Duration::from_secs(2), "{:?}", download.pair.now.since(start));
    download.finish();
    assert_eq!(download.pair.server.connection(server).stats().black_holes, 1);
}

#[test]
fn congestion_is_no_black_hole() {
    for seed in 0..5 {
        let mut download = Download::new(1_000_000);
        download.pair.rng = posthaste_units::Rng::from_test_seed(seed);
        (download.pair.up.loss, download.pair.down.loss) = (0.1, 0.1);
        download.finish();
        let stats = download.pair.server.connection(download.server).stats();
        assert_eq!((stats.black_holes, stats.max_datagram_size), (0, 1452), "seed {seed}");
    }
}

#[test]
fn without_discovery_every_full_datagram_has_the_size_that_was_set() {
    let fixed =
        TransportConfig { max_datagram_size: 1300, mtu_discovery: false, ..crate::support::defaults() };
    let mut download = Download::with_server(500_000, fixed);
    download.finish();
    let largest = download.pair.log.iter().filter(|sent| !sent.from_client).map(|sent| sent.size).max();
    assert_eq!(largest, Some(1300));
}

#[test]
fn datagrams_larger_than_a_batch_leave_alone() {
    for mtu_discovery in [true, false] {
        let large =
            TransportConfig { max_datagram_size: 65_520, mtu_discovery, ..crate::support::defaults() };
        let mut download = Download::with_server(3_000_000, large);
        download.finish();
        let largest = download.pair.log.iter().filter(|sent| !sent.from_client).map(|sent| sent.size).max();
        assert_eq!(largest, Some(65_520), "with discovery {mtu_discovery}");
    }
}

#[test]
fn moves_repeat_with_the_seed() {
    let run = || {
        let mut download = Download::new(500_000);
        download.run_to(200_000);
        download.pair.client.address = address(ELSEWHERE);
        let now: Time = download.pair.now;
        download.pair.client.connection(download.client).migrate(now, Move::Network).expect("a spare ID");
        download.finish();
        (download.pair.trace_hash, download.pair.now)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_path_whose_validation_failed_is_tried_again_while_the_client_goes_on_sending_from_it() {
    let mut download = Download::new(3_000_000);
    download.run_to(500_000);
    let before = download.server_remote();
    let down = download.pair.down;
    // No challenge arrives: the server goes back, hears the client again, and so on.
    download.pair.down.loss = 1.0;
    download.pair.client.address = address(ELSEWHERE);
    download.run_until_followed();
    let (server, began) = (download.server, download.pair.now);
    download.run_until(|pair, _| pair.server.connection(server).remote() == before);
    download.run_until(|pair, _| pair.now > began + Duration::from_secs(20));
    assert!(download.pair.server.connection(server).stats().moves >= 4);
    let returned = download.pair.now;
    download.pair.down = down;
    download.finish();
    assert_eq!(download.server_remote(), address(ELSEWHERE));
    let took = download.pair.now.since(returned);
    assert!(took < Duration::from_secs(5), "{took:?}");
}
