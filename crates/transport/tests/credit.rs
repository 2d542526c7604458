//! Receive windows between two ends: updates that travel with acks, the loss of any of them, and the budget.

use std::sync::Arc;

use crate::support::transfer::{Readers, Writers};
use crate::support::{Pair, tls};
use bytes::Bytes;
use posthaste_policy::Profile;
use posthaste_transport::{
    ClientConfig, ConnectionHandle, ConnectionStats, Direction, ReceiveBudget, SendBudget, StreamId,
    TransportConfig, Waited,
};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// A profile whose windows of `kib` ride on acks, inside of them or not.
fn on_ack(kib: u64, is_combined: bool) -> TransportConfig {
    let connection = kib * 3 / 2;
    let text = format!(
        "[credit.stream.on_ack]\ninitial = \"{kib} KiB\"\nmaximum = \"{kib} KiB\"\ncombined = {is_combined}\n\
         [credit.connection.on_ack]\ninitial = \"{connection} KiB\"\nmaximum = \"{connection} KiB\"\n\
         combined = {is_combined}\n"
    );
    with(posthaste_schemes::from_toml("on-ack", &text).expect("a valid profile"))
}

/// A profile whose windows follow what is taken, from `initial` KiB to `maximum`.
fn demand(initial: u64, maximum: u64) -> Profile {
    let window = format!("initial = \"{initial} KiB\"\nmaximum = \"{maximum} KiB\"\n");
    let text = format!("[credit.stream.demand]\n{window}[credit.connection.demand]\n{window}");
    posthaste_schemes::from_toml("demand", &text).expect("a valid profile")
}

fn with(profile: Profile) -> TransportConfig {
    TransportConfig { profile, ..crate::support::defaults() }
}

fn client(transport: TransportConfig) -> ClientConfig {
    tls::client_config(1).with_transport(Arc::new(transport))
}

/// Both ends with such windows, connected.
fn pair(kib: u64, is_combined: bool) -> (Pair, ConnectionHandle, ConnectionHandle) {
    let mut pair = Pair::new(1, crate::support::defaults(), on_ack(kib, is_combined));
    let handle = pair.connect_with(&client(on_ack(kib, is_combined)));
    pair.run_until(|pair| {
        !pair.server.accepted.is_empty() && !pair.client.connection(handle).is_handshaking()
    });
    let server = pair.server.accepted[0];
    (pair, handle, server)
}

/// The client sends `lens` on a stream each. The server reads at most `chunk` bytes of each stream every `pause`.
fn upload(
    pair: &mut Pair,
    (client, server): (ConnectionHandle, ConnectionHandle),
    lens: &[u64],
    pause: Duration,
    chunk: usize,
) -> Vec<StreamId> {
    let mut writers = Writers::default();
    let mut readers = Readers::default();
    let ids: Vec<StreamId> = lens
        .iter()
        .map(|len| {
            let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
            writers.add(id, *len);
            id
        })
        .collect();
    let mut next_read = pair.now;
    while readers.finished.len() < lens.len() {
        writers.pump(pair.client.connection(client));
        if pair.now >= next_read {
            next_read = pair.now + pause;
            if pause.is_zero() {
                readers.pump(pair.now, pair.server.connection(server), usize::MAX);
            } else {
                read_a_little(pair, server, &mut readers, chunk);
            }
        }
        pair.drain();
        assert!(pair.now.as_secs_f64() < 600.0, "a stall: {:?}", stats(pair, client, true));
        if pause.is_zero() {
            assert!(pair.step(), "a stall: {:?}", stats(pair, client, true));
        } else {
            pair.run_for(next_read.since(pair.now));
        }
    }
    assert!(ids.iter().zip(lens).all(|(id, len)| readers.finished.get(id) == Some(len)));
    ids
}

fn read_a_little(pair: &mut Pair, server: ConnectionHandle, readers: &mut Readers, chunk: usize) {
    let connection = pair.server.connection(server);
    while let Some(id) = connection.accept(Direction::Unidirectional) {
        readers.add(id);
    }
    readers.read_once(pair.now, connection, chunk);
}

fn stats(pair: &mut Pair, handle: ConnectionHandle, is_client: bool) -> ConnectionStats {
    let host = if is_client { &mut pair.client } else { &mut pair.server };
    host.connection(handle).stats()
}

#[test]
fn updates_inside_of_acks_need_no_acks_and_updates_in_frames_do() {
    let run = |is_combined| {
        let (mut pair, client, server) = pair(64, is_combined);
        upload(&mut pair, (client, server), &[1_000_000], Duration::ZERO, 0);
        let (client, server) = (stats(&mut pair, client, true), stats(&mut pair, server, false));
        (server.ack_eliciting_sent, server.packets_sent, client.packets_sent - client.ack_eliciting_sent)
    };
    let (combined, frames) = (run(true), run(false));
    assert!(combined.0 < 20, "{combined:?}");
    assert!(frames.0 * 10 > frames.1 * 9, "each ack carries an update: {frames:?}");
    assert!(combined.2 <= frames.2, "acks of acks: {combined:?} {frames:?}");
}

#[test]
fn two_ends_whose_acks_carry_updates_fall_silent() {
    for is_combined in [false, true] {
        let (mut pair, client, server) = pair(16, is_combined);
        upload(&mut pair, (client, server), &[200_000], Duration::ZERO, 0);
        // And the other way, at the same time as another one up.
        let (mut writers, mut readers) = (Writers::default(), Readers::default());
        for (host, handle) in [(&mut pair.client, client), (&mut pair.server, server)] {
            let connection = host.connection(handle);
            for _ in 0..3 {
                writers.add(connection.open(Direction::Bidirectional).expect("a stream"), 50_000);
            }
        }
        for _ in 0..3000 {
            for (host, handle) in [(&mut pair.client, client), (&mut pair.server, server)] {
                let mut own = std::mem::take(&mut writers);
                own.pump(host.connection(handle));
                writers = own;
                readers.pump(pair.now, host.connection(handle), usize::MAX);
            }
            pair.drain();
            pair.run_for(Duration::from_millis(1));
        }
        let before = pair.client.sent + pair.server.sent;
        pair.run_for(Duration::from_secs(20));
        let after = pair.client.sent + pair.server.sent;
        assert_eq!(after, before, "combined: {is_combined}");
    }
}

#[test]
fn the_loss_of_any_one_datagram_stalls_nobody() {
    // A window of 16 KiB is used up in each round trip: the sender is blocked again and again.
    let run = |lost: Option<u64>| {
        let (mut pair, client, server) = pair(16, true);
        pair.doomed.extend(lost.map(|lost| (false, lost)));
        let began = pair.server.sent;
        let blocks = blocks(&mut pair, client, server, 100_000);
        (blocks, pair.now, began..pair.server.sent)
    };
    let (baseline, finished, datagrams) = run(None);
    assert!(baseline.ended.len() > 3, "{baseline:?}");
    for lost in datagrams {
        let (blocks, now, _) = run(Some(lost));
        let late = now.since(finished);
        // A probe timeout and a round trip at the most.
        assert!(late < Duration::from_millis(100), "without datagram {lost}: {late:?} late");
        if let Some((_, at)) = baseline.ended.iter().find(|(by, _)| *by == lost) {
            // Exactly the one with the limit that the sender was waiting for: it goes on waiting.
            let ended_then = blocks.ended.iter().any(|(_, ended)| ended == at);
            assert!(!ended_then, "without {lost}: {blocks:?}, {baseline:?}");
        }
    }
}

/// When flow control kept a sender waiting.
#[derive(Debug, Default)]
struct Blocks {
    /// By which of the receiver's datagrams, counted from its first, it was over, and when.
    ended: Vec<(u64, Time)>,
}

/// The client sends `len` bytes, which the server reads as they come.
fn blocks(pair: &mut Pair, client: ConnectionHandle, server: ConnectionHandle, len: u64) -> Blocks {
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    writers.add(id, len);
    let mut blocks = Blocks::default();
    let mut is_blocked = false;
    while readers.finished.is_empty() {
        writers.pump(pair.client.connection(client));
        readers.pump(pair.now, pair.server.connection(server), usize::MAX);
        pair.drain();
        assert!(pair.step() && pair.now.as_secs_f64() < 600.0, "a stall");
        let sender = stats(pair, client, true).streams;
        if sender.blocked_streams > 0 || sender.is_connection_blocked {
            is_blocked = true;
        } else if std::mem::take(&mut is_blocked) {
            let delay = pair.down.delay;
            let arrived = pair.log.iter().filter(|sent| !sent.from_client && sent.at + delay <= pair.now);
            blocks.ended.push((arrived.count() as u64 - 1, pair.now));
        }
    }
    blocks
}

#[test]
fn no_loss_of_two_datagrams_in_a_row_and_no_slow_reader_stalls_anybody() {
    for first in 0..40 {
        let (mut pair, client, server) = pair(16, true);
        let began = pair.server.sent;
        pair.doomed.extend([(false, began + first), (false, began + first + 1)]);
        let lens = [20_000, 40_000, 30_000];
        upload(&mut pair, (client, server), &lens, Duration::from_millis(30), 7000);
    }
}

#[test]
fn more_streams_than_an_ack_names_are_all_told() {
    for is_combined in [false, true] {
        let (mut pair, client, server) = pair(2, is_combined);
        pair.down.loss = 0.3;
        upload(&mut pair, (client, server), &[9_000; 30], Duration::ZERO, 0);
    }
}

#[test]
fn the_published_form_keeps_its_update_in_32_bytes_and_arrives() {
    let profile = posthaste_schemes::named("modquic-cubic-paper").expect("built in");
    let mut pair = Pair::new(1, crate::support::defaults(), with(profile));
    pair.down.loss = 0.05;
    let (client, server) = pair.establish();
    upload(&mut pair, (client, server), &[100_000; 5], Duration::ZERO, 0);
}

#[test]
fn a_peer_that_does_not_offer_it_gets_no_ack_window() {
    let mut pair = Pair::new(1, crate::support::defaults(), on_ack(64, true));
    let plain = TransportConfig { ack_window: false, ..crate::support::defaults() };
    let client = pair.connect_with(&client(plain));
    pair.run_until(|pair| !pair.client.connection(client).is_handshaking());
    let server = pair.server.accepted[0];
    upload(&mut pair, (client, server), &[300_000], Duration::ZERO, 0);
    let server = stats(&mut pair, server, false);
    assert!(server.ack_eliciting_sent * 10 > server.packets_sent * 8, "frames instead: {server:?}");
}

#[test]
fn twenty_connections_share_a_small_budget_and_none_of_them_stalls() {
    let budget = ReceiveBudget::new(ByteCount::new(1 << 20));
    let named = ["fast-autotune", "fast-autotune-paper", "cubic", "modquic-cubic"];
    let named = named.map(|name| posthaste_schemes::named(name).expect("built in"));
    for profile in named.into_iter().chain([demand(64, 4096)]) {
        let name = profile.name().to_owned();
        let transport = TransportConfig { receive_budget: budget.clone(), ..with(profile) };
        let mut pair = Pair::new(3, crate::support::defaults(), transport);
        let config = tls::client_config(1);
        let clients: Vec<ConnectionHandle> = (0..20).map(|_| pair.connect_with(&config)).collect();
        pair.run_until(|pair| pair.server.accepted.len() == 20);
        let mut ends: Vec<(Writers, Readers)> = Vec::new();
        for client in &clients {
            let id = pair.client.connection(*client).open(Direction::Unidirectional).expect("a stream");
            let mut writers = Writers::default();
            writers.add(id, 150_000);
            ends.push((writers, Readers::default()));
        }
        let servers = pair.server.accepted.clone();
        // Every third reads as it can, every third a little now and then; every third not at all in the first second.
        for turn in 0..20_000_u64 {
            for (index, (writers, readers)) in ends.iter_mut().enumerate() {
                writers.pump(pair.client.connection(clients[index]));
                let (now, server) = (pair.now, servers[index]);
                match index % 3 {
                    0 => readers.pump(now, pair.server.connection(server), usize::MAX),
                    1 if turn % 20 == 0 => read_a_little(&mut pair, server, readers, 3000),
                    2 if turn > 200 => readers.pump(now, pair.server.connection(server), usize::MAX),
                    _ => {}
                }
            }
            pair.drain();
            let granted: ByteCount =
                servers.iter().map(|server| stats(&mut pair, *server, false).streams.granted).sum();
            assert!(granted <= budget.taken() && budget.taken() <= budget.capacity(), "{name}: {granted:?}");
            if ends.iter().all(|(_, readers)| readers.finished.len() == 1) {
                break;
            }
            pair.run_for(Duration::from_millis(5));
        }
        let unfinished = ends.iter().filter(|(_, readers)| readers.finished.is_empty()).count();
        assert_eq!(unfinished, 0, "{name}");
        drop(pair);
        assert_eq!(budget.taken(), ByteCount::ZERO, "{name}: all is given back");
    }
}

#[test]
fn windows_that_follow_what_is_taken_stay_within_their_bound_behind_holes_and_slow_readers() {
    for (loss, pause) in [(0.0, 0), (0.1, 0), (0.3, 0), (0.1, 20)] {
        let mut pair = Pair::new(1, crate::support::defaults(), with(demand(16, 128)));
        (pair.up.loss, pair.down.loss) = (loss, loss / 4.0);
        let (client, server) = pair.establish();
        upload(&mut pair, (client, server), &[200_000, 1, 90_000], Duration::from_millis(pause), 5000);
        let granted = stats(&mut pair, server, false).streams.granted;
        assert!(granted <= ByteCount::new(128 << 10), "{loss}: {granted:?}");
        let received = stats(&mut pair, server, false).streams.received;
        assert_eq!(received, ByteCount::new(290_001));
    }
}

#[test]
fn connections_beyond_the_budget_are_refused_at_both_ends() {
    let small = || TransportConfig {
        receive_budget: ReceiveBudget::new(ReceiveBudget::LEAST),
        ..crate::support::defaults()
    };
    let mut pair = Pair::new(1, crate::support::defaults(), small());
    let config = tls::client_config(1);
    for _ in 0..4 {
        pair.connect_with(&config);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.accepted.len(), 2);

    let config = client(small());
    let remote = pair.server.address;
    let mut connect = || pair.client.endpoint.connect(pair.now, &config, remote, "localhost");
    assert!(connect().is_ok() && connect().is_ok());
    assert!(connect().unwrap_err().to_string().contains("receive budget"));
}

/// A client that acknowledges everything and reads nothing: the server keeps what the budget has for it and no more, and others
/// get what they ask for meanwhile.
#[test]
fn readers_that_acknowledge_and_do_not_read_are_bounded_by_the_send_budget() {
    let budget = SendBudget::new(ByteCount::new(1 << 20));
    let transport = TransportConfig { send_budget: budget.clone(), ..crate::support::defaults() };
    let mut pair = Pair::new(4, crate::support::defaults(), transport);
    let config = tls::client_config(1);
    let clients: Vec<ConnectionHandle> = (0..8).map(|_| pair.connect_with(&config)).collect();
    pair.run_until(|pair| pair.server.accepted.len() == 8);
    pair.run_for(Duration::from_millis(100));
    let servers = pair.server.accepted.clone();
    let (mut unread, mut read) = (Vec::new(), Writers::default());
    for (index, server) in servers.iter().enumerate() {
        for _ in 0..if index == 7 { 1 } else { 20 } {
            let id = pair.server.connection(*server).open(Direction::Unidirectional).expect("a stream");
            if index == 7 { read.add(id, 300_000) } else { unread.push((*server, id)) }
        }
    }
    let mut readers = Readers::default();
    for _ in 0..4000 {
        for (server, id) in &unread {
            let mut data = Bytes::from(vec![0; 64 << 10]);
            while pair.server.connection(*server).write(*id, &mut data).expect("it is open") > 0 {}
        }
        read.pump(pair.server.connection(servers[7]));
        readers.pump(pair.now, pair.client.connection(clients[7]), usize::MAX);
        assert!(budget.taken() <= budget.capacity());
        let kept: ByteCount =
            servers.iter().map(|server| stats(&mut pair, *server, false).streams.buffered).sum();
        let most = budget.capacity().get() + 8 * (64 << 10);
        assert!(kept.get() <= most, "{kept:?}");
        pair.drain();
        pair.run_for(Duration::from_millis(5));
    }
    assert_eq!(readers.finished.len(), 1, "the one that reads has all of it");
    for (server, client) in servers.iter().zip(&clients).take(7) {
        let left = stats(&mut pair, *server, false).streams.buffered;
        assert!(left > ByteCount::new(32 << 10), "{left:?}: it would have sent more");
        let delivered = stats(&mut pair, *client, true).streams.received;
        assert!(delivered > ByteCount::new(100_000), "{delivered:?}: which the client has acknowledged");
    }
}

/// How long 4 MB take to a server with windows of 64 KiB and this budget, 100 ms away, that is told of a link of so many
/// Mbit/s; and its greatest window.
fn upload_with_hint(mbit: Option<u64>, round_trip: Option<Duration>, budget: u64) -> (Duration, u64) {
    let text = "[credit.stream.fixed]\nwindow = \"64 KiB\"\n[credit.connection.fixed]\nwindow = \"96 KiB\"\n";
    let profile = posthaste_schemes::from_toml("fixed", text).expect("a valid profile");
    let receive_budget = ReceiveBudget::new(ByteCount::new(budget));
    let server = TransportConfig { receive_budget: receive_budget.clone(), ..with(profile) };
    let mut pair = Pair::new(1, crate::support::defaults(), server);
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(50), Duration::from_millis(50));
    let (client, server) = pair.establish();
    if let Some(mbit) = mbit {
        let rate = Rate::from_bytes_per_second(mbit.saturating_mul(125_000));
        pair.server.connection(server).path_hint(rate, round_trip);
    }
    let begun = pair.now;
    upload(&mut pair, (client, server), &[4_000_000], Duration::ZERO, 0);
    (pair.now.since(begun), receive_budget.taken().get())
}

#[test]
fn a_link_whose_rate_is_known_is_not_idle_for_want_of_credit() {
    const PLENTY: u64 = 1 << 30;
    let (without, _) = upload_with_hint(None, None, PLENTY);
    assert!(without > Duration::from_secs(4), "64 KiB a round trip: {without:?}");
    let (with, _) = upload_with_hint(Some(100), None, PLENTY);
    assert!(with * 3 < without, "{with:?} after {without:?}");
    // The caller may know the round trip better, and a hint may say less than the policy has anyway.
    let (short, _) = upload_with_hint(Some(100), Some(Duration::from_millis(1)), PLENTY);
    assert_eq!(short, without);
    assert_eq!(upload_with_hint(Some(0), None, PLENTY).0, without);
}

#[test]
fn no_hint_leads_beyond_the_budget() {
    for mbit in [1_000_000, u64::MAX] {
        let budget = ReceiveBudget::LEAST.get() * 4;
        let (_, taken) = upload_with_hint(Some(mbit), Some(Duration::from_secs(60)), budget);
        assert!(taken <= budget, "{taken} of {budget}");
    }
}

/// The time that has passed, and what the client waited for meanwhile, with windows of `kib` and a reader that takes a chunk
/// every `pause`.
fn waited(kib: u64, pause: Duration) -> (Duration, Waited) {
    let (mut pair, client, server) = pair(kib, true);
    let began = pair.now;
    upload(&mut pair, (client, server), &[500_000], pause, 10_000);
    (pair.now.since(began), stats(&mut pair, client, true).waited)
}

#[test]
fn what_sending_waited_for_is_told() {
    let sum = |waited: &Waited| {
        waited.application + waited.credit + waited.window + waited.pacing + waited.validation
    };
    let (slow, by_reader) = waited(64, Duration::from_millis(100));
    assert!(by_reader.credit > slow.mul_ratio(3, 4), "{slow:?} {by_reader:?}");
    let (quick, by_sender) = waited(4096, Duration::ZERO);
    assert_eq!(by_sender.credit, Duration::ZERO, "{by_sender:?}");
    assert!(by_sender.window + by_sender.pacing > quick / 4, "{quick:?} {by_sender:?}");
    for waited in [by_reader, by_sender] {
        // The handshake before it counts, too.
        assert!(sum(&waited) <= slow.max(quick) + Duration::from_millis(200), "{waited:?}");
    }
}
