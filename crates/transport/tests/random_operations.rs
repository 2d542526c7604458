//! Random operations at both ends of a connection over links that change under them.
//!
//! Whatever happens: no panic, every finished stream arrives byte by byte, the connection ends only for reasons that
//! the operations gave, both endpoints forget it in the end and want no timer, and the same input gives the same
//! trace.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::support::transfer::pattern_bytes;
use crate::support::{Link, Pair, tls};
use posthaste_transport::{
    CloseReason, Connection, ConnectionHandle, Direction, Event, LocalError, Move, Priority, Read, ReadError,
    StreamId, TransportConfig, WriteError,
};
use posthaste_units::{Duration, Time};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// What one end does, or what happens to the links. `pick` chooses among the streams that the end knows.
#[derive(Debug, Clone)]
enum Operation {
    Open { bidirectional: bool },
    Write { pick: u8, len: u32 },
    Finish { pick: u8 },
    Reset { pick: u8, code: u32 },
    Stop { pick: u8, code: u32 },
    Read { pick: u8, max: u32 },
    ReadAll,
    Prioritise { pick: u8, urgency: u8, incremental: bool },
    UpdateKeys,
    Ping,
    Close { code: u32 },
}

#[derive(Debug, Clone)]
enum Step {
    At {
        client: bool,
        operation: Operation,
    },
    Links {
        up: Faults,
        down: Faults,
    },
    Pass {
        millis: u32,
    },
    /// The client's address changes; it is told, or is not and says something all the same.
    Move {
        host: u8,
        port: u16,
        is_told: bool,
    },
}

#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    delay: u8,
    loss: u8,
    reorder: u8,
    duplicate: u8,
    corrupt: u8,
    mark: u8,
}

impl Faults {
    fn link(self) -> Link {
        let percent = |value: u8| f64::from(value) / 100.0;
        Link {
            delay: Duration::from_millis(1 + u64::from(self.delay)),
            loss: percent(self.loss),
            reorder: percent(self.reorder),
            duplicate: percent(self.duplicate),
            corrupt: percent(self.corrupt),
            mark: percent(self.mark),
            ..Link::CLEAN
        }
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    (0..200_u8, 0..30_u8, 0..30_u8, 0..20_u8, 0..10_u8, 0..10_u8).prop_map(
        |(delay, loss, reorder, duplicate, corrupt, mark)| Faults {
            delay,
            loss,
            reorder,
            duplicate,
            corrupt,
            mark,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => any::<bool>().prop_map(|bidirectional| Operation::Open { bidirectional }),
        8 => (any::<u8>(), 0..200_000_u32).prop_map(|(pick, len)| Operation::Write { pick, len }),
        3 => any::<u8>().prop_map(|pick| Operation::Finish { pick }),
        1 => (any::<u8>(), any::<u32>()).prop_map(|(pick, code)| Operation::Reset { pick, code }),
        1 => (any::<u8>(), any::<u32>()).prop_map(|(pick, code)| Operation::Stop { pick, code }),
        4 => (any::<u8>(), 0..5000_u32).prop_map(|(pick, max)| Operation::Read { pick, max }),
        4 => Just(Operation::ReadAll),
        2 => (any::<u8>(), any::<u8>(), any::<bool>())
            .prop_map(|(pick, urgency, incremental)| Operation::Prioritise { pick, urgency, incremental }),
        2 => Just(Operation::UpdateKeys),
        1 => Just(Operation::Ping),
        // Rare, or nothing else would be seen.
        1 => prop_oneof![9 => Just(Operation::Ping), 1 => any::<u32>().prop_map(|code| Operation::Close { code })],
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (any::<bool>(), operation()).prop_map(|(client, operation)| Step::At { client, operation }),
        1 => (faults(), faults()).prop_map(|(up, down)| Step::Links { up, down }),
        5 => (0..300_u32).prop_map(|millis| Step::Pass { millis }),
        1 => prop_oneof![20 => Just(3_000_u32), 1 => Just(40_000)].prop_map(|millis| Step::Pass { millis }),
        // In bursts, too: faster than round trips.
        2 => (1..4_u8, 1000..1004_u16, prop_oneof![2 => Just(true), 1 => Just(false)])
            .prop_map(|(host, port, is_told)| Step::Move { host, port, is_told }),
    ]
}

/// What one end has done to a stream that it sends on.
#[derive(Debug, Default)]
struct Sending {
    written: u64,
    is_finished: bool,
    is_reset: bool,
    /// The peer wants no more, as far as this end has noticed.
    is_stopped: bool,
}

impl Sending {
    fn stop(&mut self) {
        self.is_stopped = true;
        self.is_reset = true;
    }

    fn has_ended(&self) -> bool {
        self.is_finished || self.is_reset
    }
}

/// How far one end has come with a stream that it reads.
#[derive(Debug, Default, PartialEq, Eq)]
struct Receiving {
    read: u64,
    is_stopped: bool,
    end: Option<End>,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum End {
    Finished,
    Reset,
}

/// What one end's application knows.
#[derive(Debug, Default)]
struct Application {
    sending: BTreeMap<StreamId, Sending>,
    receiving: BTreeMap<StreamId, Receiving>,
    closed_with: Option<u64>,
}

fn picked<T>(streams: &BTreeMap<StreamId, T>, pick: u8) -> Option<StreamId> {
    let at = usize::from(pick) % streams.len().max(1);
    streams.keys().nth(at).copied()
}

impl Application {
    fn accept(&mut self, connection: &mut Connection) {
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            while let Some(id) = connection.accept(direction) {
                self.receiving.insert(id, Receiving::default());
                if direction == Direction::Bidirectional {
                    self.sending.insert(id, Sending::default());
                }
            }
        }
    }

    fn write(&mut self, connection: &mut Connection, id: StreamId, len: u64) {
        let Some(sending) = self.sending.get_mut(&id) else { return };
        let mut data = pattern_bytes(id, sending.written, sending.written + len);
        match connection.write(id, &mut data) {
            Ok(taken) => {
                assert!(!sending.has_ended(), "{id:?} took data after its end");
                sending.written += taken as u64;
            }
            Err(WriteError::Stopped(_)) => sending.stop(),
            Err(WriteError::Local(LocalError::Closed)) => assert!(connection.is_closed()),
            // The reset that answers a stop has arrived already.
            Err(WriteError::Local(LocalError::UnknownStream(_))) if !sending.has_ended() => sending.stop(),
            Err(error) => assert!(sending.has_ended(), "{id:?}: {error}"),
        }
    }

    fn finish(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(sending) = self.sending.get_mut(&id) else { return };
        match connection.finish(id) {
            Ok(()) => {
                assert!(!sending.has_ended(), "{id:?} ended twice");
                sending.is_finished = true;
            }
            Err(WriteError::Stopped(_)) => sending.stop(),
            Err(WriteError::Local(LocalError::Closed)) => assert!(connection.is_closed()),
            // The reset that answers a stop has arrived already.
            Err(WriteError::Local(LocalError::UnknownStream(_))) if !sending.has_ended() => sending.stop(),
            Err(error) => assert!(sending.has_ended(), "{id:?}: {error}"),
        }
    }

    fn read(&mut self, now: Time, connection: &mut Connection, id: StreamId, max: usize) -> bool {
        let Some(receiving) = self.receiving.get_mut(&id) else { return false };
        if receiving.is_stopped || receiving.end.is_some() {
            return false;
        }
        match connection.read(now, id, max) {
            Ok(Read::Data(data)) => {
                let end = receiving.read + data.len() as u64;
                assert!(data.len() <= max.max(1));
                assert_eq!(data, pattern_bytes(id, receiving.read, end), "{id:?} at {}", receiving.read);
                receiving.read = end;
                true
            }
            Ok(Read::Finished) => {
                receiving.end = Some(End::Finished);
                false
            }
            Ok(Read::Blocked) => false,
            Err(ReadError::Reset(_)) => {
                receiving.end = Some(End::Reset);
                false
            }
            Err(error) => panic!("{id:?}: {error}"),
        }
    }
}

/// Both ends with what their applications know.
struct World {
    pair: Pair,
    handle: ConnectionHandle,
    client: Application,
    server: Application,
}

impl World {
    fn new(seed: u64, profile: &str) -> Self {
        let profile = posthaste_schemes::from_toml("random", profile).expect("a profile");
        let config = TransportConfig { profile, ..crate::support::defaults() };
        let mut pair = Pair::new(seed, crate::support::defaults(), config.clone());
        let handle = pair.connect_with(&tls::client_config(1).with_transport(Arc::new(config)));
        Self { pair, handle, client: Application::default(), server: Application::default() }
    }

    /// One end's connection and application, if it lives.
    fn end(&mut self, is_client: bool) -> Option<(&mut Connection, &mut Application)> {
        if is_client {
            let connection = self.pair.client.endpoint.connection_mut(self.handle)?;
            Some((connection, &mut self.client))
        } else {
            let handle = *self.pair.server.accepted.first()?;
            let connection = self.pair.server.endpoint.connection_mut(handle)?;
            Some((connection, &mut self.server))
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::At { client, operation } => {
                self.operate(*client, operation);
                self.pair.drain();
            }
            Step::Links { up, down } => (self.pair.up, self.pair.down) = (up.link(), down.link()),
            Step::Pass { millis } => self.pair.run_for(Duration::from_millis(u64::from(*millis))),
            Step::Move { host, port, is_told } => self.relocate(*host, *port, *is_told),
        }
    }

    fn relocate(&mut self, host: u8, port: u16, is_told: bool) {
        let now = self.pair.now;
        let to = SocketAddr::from(([127, 0, 0, host], port));
        let kind = if to.ip() == self.pair.client.address.ip() { Move::Port } else { Move::Network };
        let Some((connection, _)) = self.end(true) else { return };
        // A handshake does not outlive a move.
        if matches!(connection.check_migration(), Err(LocalError::TooEarly | LocalError::Closed)) {
            return;
        }
        if is_told {
            let moved = connection.migrate(now, kind);
            assert!(matches!(moved, Ok(()) | Err(LocalError::NoConnectionId)), "{moved:?}");
        }
        // Where no fresh name is left it moves as behind a NAT.
        connection.ping();
        self.pair.client.address = to;
        self.pair.drain();
    }

    #[expect(clippy::too_many_lines, reason = "a flat table of operations")]
    fn operate(&mut self, is_client: bool, operation: &Operation) {
        let now = self.pair.now;
        let Some((connection, application)) = self.end(is_client) else { return };
        application.accept(connection);
        match *operation {
            Operation::Open { bidirectional } => {
                let direction =
                    if bidirectional { Direction::Bidirectional } else { Direction::Unidirectional };
                if let Ok(id) = connection.open(direction) {
                    application.sending.insert(id, Sending::default());
                    if bidirectional {
                        application.receiving.insert(id, Receiving::default());
                    }
                }
            }
            Operation::Write { pick, len } => {
                if let Some(id) = picked(&application.sending, pick) {
                    application.write(connection, id, u64::from(len));
                }
            }
            Operation::Finish { pick } => {
                if let Some(id) = picked(&application.sending, pick) {
                    application.finish(connection, id);
                }
            }
            Operation::Reset { pick, code } => {
                if let Some(id) = picked(&application.sending, pick)
                    && connection.reset(id, u64::from(code)).is_ok()
                    && let Some(sending) = application.sending.get_mut(&id)
                {
                    sending.is_reset = true;
                }
            }
            Operation::Stop { pick, code } => {
                if let Some(id) = picked(&application.receiving, pick)
                    && connection.stop_sending(id, u64::from(code)).is_ok()
                    && let Some(receiving) = application.receiving.get_mut(&id)
                {
                    receiving.is_stopped = true;
                }
            }
            Operation::Read { pick, max } => {
                if let Some(id) = picked(&application.receiving, pick) {
                    application.read(now, connection, id, max as usize);
                }
            }
            Operation::ReadAll => application.read_all(now, connection),
            Operation::Prioritise { pick, urgency, incremental } => {
                if let Some(id) = picked(&application.sending, pick) {
                    let _ = connection.set_priority(id, Priority { urgency, incremental });
                }
            }
            Operation::UpdateKeys => {
                let _ = connection.update_keys();
            }
            Operation::Ping => connection.ping(),
            Operation::Close { code } => {
                if !connection.is_closed() {
                    application.closed_with = Some(u64::from(code));
                }
                connection.close(now, u64::from(code), "random".into());
            }
        }
    }

    /// Why a connection ended must follow from what was done.
    fn check_reasons(&self) {
        for is_client in [true, false] {
            let (host, own, other) = if is_client {
                (&self.pair.client, &self.client, &self.server)
            } else {
                (&self.pair.server, &self.server, &self.client)
            };
            let handle = if is_client { Some(self.handle) } else { host.accepted.first().copied() };
            let mut ended = false;
            for event in host.events.iter().filter(|(of, _)| Some(*of) == handle).map(|(_, event)| event) {
                assert!(!ended || *event == Event::Drained, "{event:?} after the end");
                let Event::Closed(reason) = event else { continue };
                ended = true;
                let is_explained = match reason {
                    CloseReason::Local { error_code } => own.closed_with == Some(*error_code),
                    CloseReason::PeerApplication { error_code, .. } => other.closed_with == Some(*error_code),
                    // A close before the handshake is complete does not tell the application's code.
                    CloseReason::PeerTransport { code, .. } => code.0 == 0x0c && other.closed_with.is_some(),
                    CloseReason::IdleTimeout | CloseReason::StatelessReset => true,
                    _ => false,
                };
                assert!(is_explained, "client {is_client}: {reason:?}");
            }
        }
    }

    fn is_over(&self) -> bool {
        let over = |host: &crate::support::Host| {
            host.events.iter().any(|(_, event)| matches!(event, Event::Closed(_)))
        };
        over(&self.pair.client) || over(&self.pair.server)
    }

    /// Heals the links, ends every stream and reads all; unless the connection is over, everything must arrive.
    fn settle(&mut self) {
        (self.pair.up, self.pair.down) = (Link::CLEAN, Link::CLEAN);
        let was_over = self.is_over();
        for turn in 0..2000 {
            // A server that could not confirm where its client went sends to where it was before, until it hears it
            // again: a client that waits for data says something now and then.
            if let (true, Some((connection, _))) = (turn % 100 == 0, self.end(true)) {
                connection.ping();
            }
            for is_client in [true, false] {
                let now = self.pair.now;
                if let Some((connection, application)) = self.end(is_client) {
                    application.accept(connection);
                    let unfinished = application.sending.iter().filter(|(_, sending)| !sending.has_ended());
                    let unfinished: Vec<StreamId> = unfinished.map(|(id, _)| *id).collect();
                    for id in unfinished {
                        application.finish(connection, id);
                    }
                    application.read_all(now, connection);
                }
            }
            self.pair.run_for(Duration::from_millis(10));
            if self.is_over() || self.open_streams() == Some(0) {
                break;
            }
        }
        let is_idle = |event: &Event| *event == Event::Closed(CloseReason::IdleTimeout);
        let fell_silent = self.pair.client.has(self.handle, is_idle);
        assert!(was_over || !fell_silent, "the server does not find the client over clean links");
        if !self.is_over() {
            assert_eq!(self.open_streams(), Some(0), "everything has ended at both ends");
            self.check_deliveries();
        }
    }

    fn open_streams(&mut self) -> Option<usize> {
        let client = self.end(true)?.0.open_streams();
        Some(client + self.end(false)?.0.open_streams())
    }

    fn check_deliveries(&self) {
        for (from, to) in [(&self.client, &self.server), (&self.server, &self.client)] {
            for (id, sending) in &from.sending {
                let Some(receiving) = to.receiving.get(id) else {
                    panic!("{id:?} has never reached the peer");
                };
                assert!(!sending.is_stopped || receiving.is_stopped, "{id:?} was stopped by nobody");
                match receiving.end {
                    Some(End::Finished) => {
                        assert!(sending.is_finished, "{id:?} ended without an end");
                        assert_eq!(receiving.read, sending.written, "{id:?}");
                    }
                    Some(End::Reset) => assert!(sending.is_reset, "{id:?} was reset by nobody"),
                    None => assert!(receiving.is_stopped, "{id:?} has no end"),
                }
            }
        }
    }

    /// Closes, and lets both ends forget everything.
    fn finish(mut self) -> (u64, Time) {
        self.check_reasons();
        self.settle();
        self.operate(true, &Operation::Close { code: 0 });
        self.pair.run_for(Duration::from_secs(200));
        self.check_reasons();
        for host in [&self.pair.client, &self.pair.server] {
            assert_eq!(host.endpoint.connections(), 0, "{:?}", host.events.last());
            assert_eq!(host.endpoint.next_timeout(), None);
        }
        (self.pair.trace_hash, self.pair.now)
    }
}

impl Application {
    fn read_all(&mut self, now: Time, connection: &mut Connection) {
        let ids: Vec<StreamId> = self.receiving.keys().copied().collect();
        for id in ids {
            while self.read(now, connection, id, usize::MAX) {}
        }
    }
}

fn run(seed: u64, steps: &[Step]) -> (u64, Time) {
    run_with(seed, "", steps)
}

fn run_with(seed: u64, profile: &str, steps: &[Step]) -> (u64, Time) {
    let mut world = World::new(seed, profile);
    for step in steps {
        world.take(step);
    }
    world.finish()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "proptest-regressions/random_operations.txt",
        ))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_operations_over_any_links_leave_whole_streams_and_no_state(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let first = run(seed, &steps);
        prop_assert_eq!(first, run(seed, &steps), "the same input gives the same trace");
    }

    /// Copies at both ends change nothing of that.
    #[test]
    fn nor_do_copies_of_tails(
        seed in any::<u64>(),
        guard in 1_u8..=4,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        run_with(seed, &format!("[repair.tail]\nguard = {guard}\nfloor = 256\nnewest = \"1/2\"\n"), &steps);
    }
}

/// A server writes before the handshake is complete, and what it needs to become complete is lost: data that cannot
/// be acknowledged yet fill the window, and the handshake must go on all the same.
#[test]
fn early_data_do_not_hold_up_a_handshake_that_lost_packets() {
    let at = |operation| Step::At { client: false, operation };
    let open = || at(Operation::Open { bidirectional: false });
    let clean = Faults::default();
    // The ServerHello is lost; a probe of the Handshake space alone would be of no use to the client.
    let steps = [
        Step::Links { up: clean, down: Faults { loss: 7, ..clean } },
        Step::Pass { millis: 10 },
        open(),
        at(Operation::Write { pick: 0, len: 8088 }),
    ];
    run(5_094_418_901_277_399_581, &steps);
    // The Handshake packets are lost, a probe of theirs arrives: nothing of the handshake is in flight any more.
    let steps = [
        Step::Links { up: clean, down: Faults { delay: 42, duplicate: 7, corrupt: 3, ..clean } },
        Step::Pass { millis: 36 },
        open(),
        Step::Pass { millis: 17 },
        at(Operation::Write { pick: 0, len: 9729 }),
        Step::Pass { millis: 3000 },
    ];
    run(5_848_353_540_171_886_003, &steps);
}
