//! Two ends of ours, and a network and applications that do as the input says, two bytes a step: what is read is what was
//! written, and in the end both forget the connection and want no timer.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use posthaste_transport::{Connection, ConnectionHandle, Direction};
use posthaste_units::Duration;

#[path = "../../../crates/transport/tests/support/mod.rs"]
mod support;

use support::transfer::{Readers, Writers};
use support::{Link, Pair};

/// Steps that are read of one input.
const MAX_STEPS: usize = 96;

/// One end's application.
#[derive(Default)]
struct Application {
    writers: Writers,
    readers: Readers,
}

impl Application {
    fn open(&mut self, connection: &mut Connection, choice: u8) {
        let is_bidirectional = choice & 1 == 0;
        let direction = if is_bidirectional { Direction::Bidirectional } else { Direction::Unidirectional };
        if let Ok(id) = connection.open(direction) {
            self.writers.add(id, u64::from(choice) * 200);
            if is_bidirectional {
                self.readers.add(id);
            }
        }
    }
}

fn link(choice: u8) -> Link {
    let share = |bits: u8| f64::from(bits) / 10.0;
    Link {
        delay: Duration::from_millis(1 + u64::from(choice >> 6) * 50),
        loss: share(choice & 3),
        reorder: share(choice >> 2 & 1),
        duplicate: share(choice >> 3 & 1),
        corrupt: share(choice >> 4 & 1),
        mark: share(choice >> 5 & 1),
        ..Link::CLEAN
    }
}

fuzz_target!(|input: &[u8]| {
    let mut pair = Pair::default();
    let client = pair.connect();
    let mut ends = [Application::default(), Application::default()];
    for step in input.chunks_exact(2).take(MAX_STEPS) {
        let (what, choice) = (step[0] % 8, step[1]);
        match what {
            0 => pair.up = link(choice),
            1 => pair.down = link(choice),
            2 => pair.run_for(Duration::from_millis(u64::from(choice))),
            3 => pair.run_for(Duration::from_millis(20 * u64::from(choice))),
            _ => {
                let is_client = step[0] & 64 == 0;
                act(&mut pair, client, is_client, &mut ends[usize::from(is_client)], what, choice);
                pair.drain();
            }
        }
    }
    (pair.up, pair.down) = (Link::CLEAN, Link::CLEAN);
    pair.run_for(Duration::from_secs(300));
    for host in [&pair.client, &pair.server] {
        assert_eq!(host.endpoint.connections(), 0, "the connection is forgotten");
        assert_eq!(host.endpoint.next_timeout(), None, "no timer is left");
    }
});

fn act(
    pair: &mut Pair,
    client: ConnectionHandle,
    is_client: bool,
    application: &mut Application,
    what: u8,
    choice: u8,
) {
    let now = pair.now;
    let (host, handle) = if is_client {
        (&mut pair.client, client)
    } else {
        let Some(handle) = pair.server.accepted.first().copied() else { return };
        (&mut pair.server, handle)
    };
    let Some(connection) = host.endpoint.connection_mut(handle) else { return };
    if connection.is_closed() {
        return;
    }
    match what {
        4 => application.open(connection, choice),
        5 => application.writers.pump(connection),
        6 => application.readers.pump(now, connection, 1 + 16 * usize::from(choice)),
        _ if choice > 250 => connection.close(now, u64::from(choice), Bytes::new()),
        _ => connection.ping(),
    }
}
