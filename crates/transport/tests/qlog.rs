//! Traces of connections in memory: each record is read back with the qlog crate's types, and what the records say
//! must agree with each other and with the connection's statistics.

mod ends;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::support::transfer::{Readers, Writers};
use crate::support::{Link, Pair, tls};
use posthaste_transport::{ConnectionId, ConnectionStats, Direction, Move, QlogSink, Side, TransportConfig};
use posthaste_units::Duration;
use qlog::QlogSeq;
use qlog::events::quic::{
    BlockedState, ConnectionClosedTrigger, KeyUpdateOrRetiredTrigger, MigrationState, PacketDroppedTrigger,
    PacketHeader, PacketSentTrigger, QuicFrame, TimerType, TransportInitiator,
};
use qlog::events::{Event, EventData};

/// A trace's side (true: the server) and name.
type Key = (bool, String);

/// What has been written of each trace.
type Written = BTreeMap<Key, Vec<u8>>;

/// A sink that keeps traces in memory.
#[derive(Clone, Default)]
struct Traces(Arc<Mutex<Written>>);

struct MemoryTrace {
    traces: Traces,
    key: Key,
}

impl QlogSink for Traces {
    fn open(&self, original_destination: &ConnectionId, side: Side) -> Option<Box<dyn Write + Send + Sync>> {
        let key = (side == Side::Server, original_destination.to_string());
        let before = self.lock().insert(key.clone(), Vec::new());
        assert!(before.is_none(), "a trace is opened once");
        Some(Box::new(MemoryTrace { traces: self.clone(), key }))
    }
}

impl Traces {
    fn lock(&self) -> std::sync::MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The only trace of a side.
    fn of(&self, side: Side) -> Vec<u8> {
        let traces = self.lock();
        let mut of_side = traces.iter().filter(|((is_server, _), _)| *is_server == (side == Side::Server));
        let (_, trace) = of_side.next().expect("a trace");
        assert!(of_side.next().is_none(), "one trace a connection");
        trace.clone()
    }
}

impl Write for MemoryTrace {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        // Wherever the process ends, the file holds whole records.
        assert!(block.starts_with(b"\x1e{") && block.ends_with(b"}\n"));
        let mut traces = self.traces.lock();
        traces.get_mut(&self.key).expect("opened").extend_from_slice(block);
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes some bytes, then fails.
struct FullDisk {
    room: usize,
}

struct FullDiskTrace {
    room: usize,
}

impl QlogSink for FullDisk {
    fn open(&self, _: &ConnectionId, _: Side) -> Option<Box<dyn Write + Send + Sync>> {
        Some(Box::new(FullDiskTrace { room: self.room }))
    }
}

impl Write for FullDiskTrace {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        let taken = block.len().min(self.room);
        self.room -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn config(sink: Option<Arc<dyn QlogSink>>) -> TransportConfig {
    TransportConfig { qlog: sink, ..crate::support::defaults() }
}

fn traced_pair(seed: u64, sink: Option<Arc<dyn QlogSink>>) -> Pair {
    Pair::new(seed, crate::support::defaults(), config(sink))
}

/// What a run leaves behind.
struct Run {
    client: ConnectionStats,
    server: ConnectionStats,
    trace_hash: u64,
}

const UPLOAD: u64 = 400_000;

/// An upload over a poor link, then a close by the client, until both ends have forgotten the connection.
fn poor_upload(seed: u64, sink: Option<Arc<dyn QlogSink>>) -> Run {
    let mut pair = traced_pair(seed, sink.clone());
    let link = Link { loss: 0.03, reorder: 0.03, duplicate: 0.03, corrupt: 0.01, ..Link::CLEAN };
    (pair.up, pair.down) = (link, link);
    let client = pair.connect_with(&tls::client_config(seed).with_transport(config(sink).into()));
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    let mut opened = false;
    pair.run_until(|pair| {
        let connection = pair.client.connection(client);
        if !opened && !connection.is_handshaking() {
            opened = true;
            writers.add(connection.open(Direction::Bidirectional).expect("a stream"), UPLOAD);
        }
        writers.pump(connection);
        let now = pair.now;
        if let Some(server) = pair.server.accepted.first().copied() {
            readers.pump(now, pair.server.connection(server), usize::MAX);
        }
        !readers.finished.is_empty()
    });
    let server = pair.server.accepted[0];
    (pair.up, pair.down) = (Link::CLEAN, Link::CLEAN);
    let now = pair.now;
    pair.client.connection(client).close(now, 77, "enough"[..].into());
    // What is still under way arrives, and the closing end answers it; both ends still linger.
    pair.run_for(Duration::from_millis(40));
    let (client, server) = (pair.client.connection(client).stats(), pair.server.connection(server).stats());
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.client.endpoint.connections() + pair.server.endpoint.connections(), 0);
    Run { client, server, trace_hash: pair.trace_hash }
}

/// A trace read back. Fails if any record is not what the qlog crate's types describe.
fn parse(trace: &[u8]) -> (QlogSeq, Vec<Event>) {
    let text = std::str::from_utf8(trace).expect("text");
    let mut records = text.split('\x1e');
    assert_eq!(records.next(), Some(""), "each record begins with a separator");
    let mut records =
        records.map(|record| record.strip_suffix('\n').expect("each record ends with a newline"));
    let header = serde_json::from_str(records.next().expect("a header")).expect("a header");
    let events = records.map(|record| {
        // The crate has the name that an older version of the schema had.
        let record = record.replace("quic:key_discarded", "quic:key_retired");
        let event: Event = serde_json::from_str(&record).unwrap_or_else(|error| panic!("{error}: {record}"));
        assert!(event.ex_data.is_empty(), "fields that the schema lacks: {record}");
        event
    });
    (header, events.collect())
}

/// A packet's name: its type and number.
fn name(header: &PacketHeader) -> (String, u64) {
    (format!("{:?}", header.packet_type), header.packet_number.expect("a number"))
}

/// What all traces have in common; returns the packets sent.
fn check(events: &[Event]) -> BTreeSet<(String, u64)> {
    assert!(events.is_sorted_by_key(|event| event.time), "times ascend");
    let mut sent = BTreeSet::new();
    let mut lost = BTreeSet::new();
    let mut received = BTreeSet::new();
    for event in events {
        match &event.data {
            EventData::QuicPacketSent(packet) => {
                assert!(sent.insert(name(&packet.header)), "a number is used once: {packet:?}");
                check_frames(packet.frames.as_deref().expect("frames"));
                let raw = packet.raw.as_ref().expect("lengths");
                assert!(raw.length > raw.payload_length);
            }
            EventData::QuicPacketReceived(packet) => {
                assert!(received.insert(name(&packet.header)), "a duplicate is dropped: {packet:?}");
                let frames = packet.frames.as_deref().expect("frames");
                check_frames(frames);
                let space = name(&packet.header).0;
                for range in frames.iter().filter_map(acked_ranges).flatten() {
                    for number in range.0..=range.1 {
                        assert!(
                            sent.contains(&(space.clone(), number)),
                            "{space} {number} acked before sent"
                        );
                    }
                }
            }
            EventData::QuicPacketLost(packet) => {
                let name = name(packet.header.as_ref().expect("a header"));
                assert!(sent.contains(&name), "{name:?} is lost and was not sent");
                assert!(lost.insert(name), "a packet is lost once");
                assert!(packet.trigger.is_some());
            }
            _ => {}
        }
    }
    sent
}

fn check_frames(frames: &[QuicFrame]) {
    assert!(!frames.is_empty());
    assert!(!frames.iter().any(|frame| matches!(frame, QuicFrame::Unknown { .. })), "{frames:?}");
}

fn acked_ranges(frame: &QuicFrame) -> Option<Vec<(u64, u64)>> {
    let QuicFrame::Ack { acked_ranges: Some(ranges), .. } = frame else { return None };
    Some(ranges.iter().map(|range| (range.start, range.end)).collect())
}

fn count(events: &[Event], test: impl Fn(&EventData) -> bool) -> u64 {
    events.iter().filter(|event| test(&event.data)).count() as u64
}

fn has(events: &[Event], test: impl Fn(&EventData) -> bool) -> bool {
    count(events, test) > 0
}

/// The events agree with what the connection counted.
fn check_against(events: &[Event], stats: &ConnectionStats) {
    assert_eq!(count(events, |data| matches!(data, EventData::QuicPacketSent(_))), stats.packets_sent);
    assert_eq!(count(events, |data| matches!(data, EventData::QuicPacketLost(_))), stats.packets_lost);
    assert_eq!(count(events, |data| matches!(data, EventData::QuicPacketDropped(_))), stats.packets_dropped);
    let duplicate = |data: &EventData| matches!(data, EventData::QuicPacketDropped(drop) if drop.trigger == Some(PacketDroppedTrigger::Rejected));
    let received = count(events, |data| matches!(data, EventData::QuicPacketReceived(_)));
    assert_eq!(received + count(events, duplicate), stats.packets_received);
    for initiator in [TransportInitiator::Local, TransportInitiator::Remote] {
        let initiator = Some(initiator);
        let set = |data: &EventData| {
            matches!(data, EventData::QuicParametersSet(set)
                if set.initiator == initiator && set.initial_max_data.is_some_and(|limit| limit > 0))
        };
        assert_eq!(count(events, set), 1, "{initiator:?}");
    }
    let last = events.iter().rev().find_map(|event| match &event.data {
        EventData::QuicMetricsUpdated(metrics) => metrics.congestion_window,
        _ => None,
    });
    assert_eq!(last, Some(stats.congestion.window.get()));
    for event in events {
        if let EventData::QuicMetricsUpdated(metrics) = &event.data {
            assert!(metrics.ex_data.is_empty());
        }
    }
}

#[test]
fn the_traces_of_a_poor_upload_agree_with_themselves_and_with_each_other() {
    let traces = Traces::default();
    let run = poor_upload(3, Some(Arc::new(traces.clone())));
    let (header, client) = parse(&traces.of(Side::Client));
    assert_eq!(header.file_schema, "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header.title.as_deref(), Some("posthaste"));
    let group = header.trace.common_fields.and_then(|fields| fields.group_id).expect("a group");
    assert!(traces.lock().keys().all(|(_, name)| *name == group), "both traces have the ID's name");
    let (_, server) = parse(&traces.of(Side::Server));
    let (sent, answered) = (check(&client), check(&server));
    check_against(&client, &run.client);
    check_against(&server, &run.server);
    assert!(run.client.packets_lost > 0 && run.server.packets_dropped > 0, "the link must be poor");
    for (events, sent) in [(&server, &sent), (&client, &answered)] {
        for event in events {
            if let EventData::QuicPacketReceived(packet) = &event.data {
                assert!(sent.contains(&name(&packet.header)), "{packet:?} was never sent");
            }
        }
    }
    // The frames sent show every byte of the stream.
    let mut bytes = vec![false; UPLOAD as usize];
    let mut has_fin = false;
    for event in &client {
        let EventData::QuicPacketSent(packet) = &event.data else { continue };
        for frame in packet.frames.iter().flatten() {
            if let QuicFrame::Stream { offset: Some(offset), raw: Some(raw), fin, .. } = frame {
                let start = *offset as usize;
                bytes[start..start + raw.length.expect("a length") as usize].fill(true);
                has_fin |= *fin == Some(true);
            }
        }
    }
    assert!(has_fin && bytes.iter().all(|is_sent| *is_sent));
}

#[test]
fn a_trace_shows_the_handshake_the_phases_and_the_close() {
    let traces = Traces::default();
    poor_upload(4, Some(Arc::new(traces.clone())));
    for (side, initiator) in
        [(Side::Client, TransportInitiator::Local), (Side::Server, TransportInitiator::Remote)]
    {
        let (_, events) = parse(&traces.of(side));
        assert!(has(&events, |data| matches!(data, EventData::QuicConnectionStarted(_))));
        assert!(has(&events, |data| matches!(data, EventData::QuicAlpnInformation(alpn)
            if alpn.chosen_alpn.as_ref().is_some_and(|alpn| alpn.byte_value.is_some()))));
        // Two secrets each of Initial, Handshake and 1-RTT keys; the first two levels are discarded.
        assert_eq!(count(&events, |data| matches!(data, EventData::QuicKeyUpdated(_))), 6);
        assert_eq!(count(&events, |data| matches!(data, EventData::QuicKeyDiscarded(_))), 4);
        assert!(has(&events, |data| matches!(data, EventData::QuicEcnStateUpdated(_))));
        let closed: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.data {
                EventData::QuicConnectionClosed(closed) => Some(closed),
                _ => None,
            })
            .collect();
        let [closed] = &closed[..] else { panic!("closed once: {closed:?}") };
        assert_eq!(closed.initiator, Some(initiator));
        assert_eq!((closed.error_code, closed.reason.as_deref()), (Some(77), Some("enough")));
        assert_eq!(closed.trigger, Some(ConnectionClosedTrigger::Application));
    }
    let (_, events) = parse(&traces.of(Side::Client));
    let phases: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::QuicCongestionStateUpdated(update) => Some((update.old.clone(), update.new.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(phases.first(), Some(&(None, "slow_start".to_owned())));
    assert!(phases.iter().any(|(_, new)| new == "recovery"), "{phases:?}");
    assert!(phases.windows(2).all(|pair| pair[1].0.as_ref() == Some(&pair[0].1)), "{phases:?}");
}

#[test]
fn equal_runs_leave_equal_traces() {
    let run = |seed| {
        let traces = Traces::default();
        poor_upload(seed, Some(Arc::new(traces.clone())));
        (traces.of(Side::Client), traces.of(Side::Server))
    };
    assert!(run(5) == run(5), "the same seed gives the same bytes");
    assert!(run(5) != run(6), "another seed must give other traces");
}

#[test]
fn a_trace_changes_nothing_and_a_failing_one_neither() {
    let without = poor_upload(7, None);
    let with = poor_upload(7, Some(Arc::new(Traces::default())));
    assert_eq!(with.trace_hash, without.trace_hash);
    for room in [0, 10, 3_000, 50_000] {
        let failing = poor_upload(7, Some(Arc::new(FullDisk { room })));
        assert_eq!(failing.trace_hash, without.trace_hash);
        assert_eq!(failing.client, without.client);
    }
}

#[test]
fn a_slow_reader_is_seen_to_block_and_to_unblock() {
    let traces = Traces::default();
    let mut pair = traced_pair(1, None);
    let client = pair
        .connect_with(&tls::client_config(1).with_transport(config(Some(Arc::new(traces.clone()))).into()));
    pair.run_until(|pair| {
        !pair.server.accepted.is_empty() && !pair.client.connection(client).is_handshaking()
    });
    let server = pair.server.accepted[0];
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let window = crate::support::defaults().profile.stream_credit().initial_window().get();
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 4 * window);
    // Nobody reads for a while.
    let until = pair.now + Duration::from_secs(5);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        pair.now >= until || pair.next_time().is_none_or(|at| at > until)
    });
    pair.now = until;
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        !readers.finished.is_empty()
    });
    let now = pair.now;
    pair.client.connection(client).close(now, 0, "done"[..].into());
    let (_, events) = parse(&traces.of(Side::Client));
    let marks: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::QuicStreamDataBlockedUpdated(mark) => Some((event.time, mark)),
            _ => None,
        })
        .collect();
    let (blocked_at, first) = marks.first().expect("the stream blocks");
    assert!(first.new == BlockedState::Blocked && first.stream_id == id.to_wire());
    let (unblocked_at, second) = marks.get(1).expect("the stream unblocks");
    assert_eq!(second.new, BlockedState::Unblocked);
    assert!(
        unblocked_at - blocked_at > 4_000.0,
        "blocked while nobody reads: {blocked_at} to {unblocked_at}"
    );
    assert!(marks.iter().zip(marks.iter().skip(1)).all(|(a, b)| a.1.new != b.1.new), "marks alternate");
    assert_eq!(marks.last().map(|(_, mark)| mark.new.clone()), Some(BlockedState::Unblocked));
    // The frame that says so to the peer is there, too.
    assert!(has(&events, |data| matches!(data, EventData::QuicPacketSent(packet)
        if packet.frames.iter().flatten().any(|frame| matches!(frame, QuicFrame::StreamDataBlocked { .. })))));
}

#[test]
fn many_streams_are_seen_to_exhaust_the_connections_credit() {
    let traces = Traces::default();
    let mut pair = traced_pair(1, None);
    let client = pair
        .connect_with(&tls::client_config(1).with_transport(config(Some(Arc::new(traces.clone()))).into()));
    pair.run_until(|pair| {
        !pair.server.accepted.is_empty() && !pair.client.connection(client).is_handshaking()
    });
    let profile = crate::support::defaults().profile;
    let stream_window = profile.stream_credit().initial_window().get();
    let streams = 2 + profile.connection_credit().initial_window().get() / stream_window;
    let mut writers = Writers::default();
    for _ in 0..streams {
        let id = pair.client.connection(client).open(Direction::Bidirectional).expect("a stream");
        writers.add(id, stream_window);
    }
    let until = pair.now + Duration::from_secs(5);
    pair.run_until(|pair| {
        writers.pump(pair.client.connection(client));
        pair.now >= until || pair.next_time().is_none_or(|at| at > until)
    });
    let now = pair.now;
    pair.client.connection(client).close(now, 0, "done"[..].into());
    let (_, events) = parse(&traces.of(Side::Client));
    assert!(has(&events, |data| matches!(data, EventData::QuicConnectionDataBlockedUpdated(mark)
        if mark.new == BlockedState::Blocked)));
}

#[test]
fn a_silence_shows_as_probe_timeouts_and_ends_at_the_idle_timeout() {
    let traces = Traces::default();
    let mut pair = traced_pair(2, None);
    let client = pair
        .connect_with(&tls::client_config(2).with_transport(config(Some(Arc::new(traces.clone()))).into()));
    pair.run_until(|pair| pair.client.has(client, |event| *event == posthaste_transport::Event::Confirmed));
    pair.up.loss = 1.0;
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let mut writers = Writers::default();
    writers.add(id, 10_000);
    writers.pump(pair.client.connection(client));
    pair.run_for(Duration::from_secs(120));
    let (_, events) = parse(&traces.of(Side::Client));
    check(&events);
    let expired = count(
        &events,
        |data| matches!(data, EventData::QuicTimerUpdated(timer) if timer.timer_type == Some(TimerType::Pto)),
    );
    assert!(expired >= 3, "{expired}");
    assert!(has(&events, |data| matches!(data, EventData::QuicPacketSent(packet)
        if packet.trigger == Some(PacketSentTrigger::PtoProbe))));
    assert!(has(&events, |data| matches!(data, EventData::QuicMetricsUpdated(metrics)
        if metrics.pto_count == Some(3))));
    let Some(EventData::QuicConnectionClosed(closed)) = events.last().map(|event| &event.data) else {
        panic!("the close is the last event: {:?}", events.last())
    };
    assert_eq!(closed.trigger, Some(ConnectionClosedTrigger::IdleTimeout));
}

#[test]
fn key_updates_show_with_their_phase_and_their_author() {
    let traces = Traces::default();
    let sink: Option<Arc<dyn QlogSink>> = Some(Arc::new(traces.clone()));
    let mut pair = traced_pair(1, sink.clone());
    let client = pair.connect_with(&tls::client_config(1).with_transport(config(sink).into()));
    pair.run_until(|pair| pair.client.has(client, |event| *event == posthaste_transport::Event::Confirmed));
    let server = pair.server.accepted[0];
    let id = pair.client.connection(client).open(Direction::Unidirectional).expect("a stream");
    let (mut writers, mut readers) = (Writers::default(), Readers::default());
    writers.add(id, 500_000);
    let mut is_updated = false;
    pair.run_until(|pair| {
        is_updated = is_updated || pair.client.connection(client).update_keys().is_ok();
        writers.pump(pair.client.connection(client));
        let now = pair.now;
        readers.pump(now, pair.server.connection(server), usize::MAX);
        !readers.finished.is_empty()
    });
    pair.run_for(Duration::from_secs(5));
    let now = pair.now;
    pair.client.connection(client).close(now, 0, "done"[..].into());
    pair.run_for(Duration::from_secs(5));
    for (side, author) in [
        (Side::Client, KeyUpdateOrRetiredTrigger::LocalUpdate),
        (Side::Server, KeyUpdateOrRetiredTrigger::RemoteUpdate),
    ] {
        let (_, events) = parse(&traces.of(side));
        let updates = count(&events, |data| {
            matches!(data, EventData::QuicKeyUpdated(update)
                if update.key_phase == Some(1) && update.trigger.as_ref() == Some(&author))
        });
        assert_eq!(updates, 2, "{side:?}");
        let discarded =
            |data: &EventData| matches!(data, EventData::QuicKeyDiscarded(key) if key.key_phase == Some(0));
        assert_eq!(count(&events, discarded), 2, "{side:?}");
    }
}

#[test]
fn moves_show_with_their_paths_and_their_outcome() {
    let traces = Traces::default();
    let sink: Arc<dyn QlogSink> = Arc::new(traces.clone());
    let mut pair = traced_pair(1, Some(Arc::clone(&sink)));
    let client = pair.connect_with(&tls::client_config(1).with_transport(config(Some(sink)).into()));
    pair.run_for(Duration::from_millis(200));
    let now = pair.now;
    pair.client.connection(client).migrate(now, Move::Network).expect("a spare ID");
    pair.client.address = "10.9.8.7:1000".parse().expect("an address");
    pair.run_for(Duration::from_secs(1));
    // The server cannot confirm the next address, and goes back.
    pair.client.address = "10.9.8.6:1000".parse().expect("an address");
    pair.client.connection(client).ping();
    pair.down.loss = 1.0;
    pair.run_for(Duration::from_secs(8));
    for (side, expected) in [
        (Side::Client, vec![MigrationState::MigrationStarted, MigrationState::MigrationComplete]),
        (
            Side::Server,
            vec![
                MigrationState::MigrationStarted,
                MigrationState::MigrationComplete,
                MigrationState::MigrationStarted,
                MigrationState::MigrationAbandoned,
                MigrationState::MigrationStarted,
                MigrationState::MigrationComplete,
            ],
        ),
    ] {
        let (_, events) = parse(&traces.of(side));
        let states: Vec<MigrationState> = events
            .iter()
            .filter_map(|event| match &event.data {
                EventData::QuicMigrationStateUpdated(update) => Some(update.new.clone()),
                _ => None,
            })
            .collect();
        assert!(states.starts_with(&expected), "{side:?}: {states:?}");
        let addresses: Vec<String> = events
            .iter()
            .filter_map(|event| match &event.data {
                EventData::QuicTupleAssigned(tuple) => tuple.tuple_remote.clone()?.ip_v4,
                _ => None,
            })
            .collect();
        match side {
            Side::Client => assert_eq!(addresses[..2], ["127.0.0.1", "127.0.0.1"], "the server stays"),
            Side::Server => {
                assert_eq!(addresses[..4], ["127.0.0.1", "10.9.8.7", "10.9.8.6", "10.9.8.7"]);
            }
        }
    }
}

#[test]
fn noise_opens_no_trace() {
    let traces = Traces::default();
    let mut pair = traced_pair(1, Some(Arc::new(traces.clone())));
    pair.capture = Some(Vec::new());
    pair.connect();
    pair.drain();
    let mut noise = pair.capture.take().expect("set above").remove(0).1;
    let end = noise.len() - 1;
    noise[end] ^= 1; // Its tag no longer fits.
    // The client's own datagram is lost: only the noise arrives.
    let mut pair = traced_pair(1, Some(Arc::new(traces.clone())));
    let info = posthaste_transport::DatagramInfo { remote: pair.client.address, local_ip: None, ecn: None };
    pair.send(true, Link::CLEAN, info, noise);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server.endpoint.stats().refused, 1);
    assert!(traces.lock().is_empty());
}
