//! Paths that break for a time, after a move or during the handshake: neither end may wait for the other where nobody is,
//! or longer than the outage lasts.

use std::net::SocketAddr;

use bytes::Bytes;
use posthaste_transport::{Direction, Event, Move, Read};
use posthaste_units::Duration;

use crate::support::{Link, Pair};

const LEN: usize = 200_000;
const OUTAGE: Duration = Duration::from_secs(5);
/// Shorter than the idle timeout.
const LONG_OUTAGE: Duration = Duration::from_secs(20);
/// After the outage's end: a probe every second, and a few round trips.
const RESUMES_WITHIN: Duration = Duration::from_secs(3);

/// A download to a client that has nothing to say itself and moves, before an outage of both directions; how long after
/// the outage's end it is whole.
fn download(outage_after: Duration) -> Duration {
    let mut pair = Pair::new(3, crate::support::defaults(), crate::support::defaults());
    let (client, server) = pair.establish();
    pair.run_for(Duration::from_millis(100));
    let connection = pair.server.connection(server);
    let stream = connection.open(Direction::Unidirectional).expect("a stream");
    let mut content = Bytes::from(vec![7; LEN]);
    let written = connection.write(stream, &mut content).expect("room");
    assert_eq!(written, LEN);
    connection.finish(stream).expect("its end");
    pair.run_for(Duration::from_millis(15));
    let now = pair.now;
    pair.client.connection(client).migrate(now, Move::Port).expect("a spare ID");
    pair.client.address = SocketAddr::from(([10, 0, 0, 1], 4242));
    pair.run_for(outage_after);
    let (up, down) = (pair.up, pair.down);
    (pair.up, pair.down) = (Link { loss: 1.0, ..up }, Link { loss: 1.0, ..down });
    pair.run_for(OUTAGE);
    (pair.up, pair.down) = (up, down);
    let began = pair.now;
    let mut received = 0;
    pair.run_until(|pair| {
        let now = pair.now;
        let connection = pair.client.connection(client);
        let _ = connection.accept(Direction::Unidirectional);
        while let Ok(Read::Data(data)) = connection.read(now, stream, usize::MAX) {
            received += data.len();
        }
        received == LEN || now.since(began) > RESUMES_WITHIN * 4
    });
    assert_eq!(received, LEN, "an outage {outage_after:?} after the move is not survived");
    pair.now.since(began)
}

#[test]
fn a_download_goes_on_after_an_outage_that_begins_anywhen_after_a_move() {
    for millis in 0..100 {
        let took = download(Duration::from_millis(millis));
        assert!(took < RESUMES_WITHIN, "{took:?} after an outage {millis} ms after the move");
    }
}

/// A handshake, and an outage of both directions so long after its begin; how long after the outage's end it is confirmed.
fn handshake(seed: u64, outage_after: Duration) -> Duration {
    let mut pair = Pair::new(seed, crate::support::defaults(), crate::support::defaults());
    let client = pair.connect();
    pair.run_for(outage_after);
    let (up, down) = (pair.up, pair.down);
    (pair.up, pair.down) = (Link { loss: 1.0, ..up }, Link { loss: 1.0, ..down });
    pair.run_for(LONG_OUTAGE);
    (pair.up, pair.down) = (up, down);
    let began = pair.now;
    let is_confirmed = |event: &Event| *event == Event::Confirmed;
    pair.run_until(|pair| pair.client.has(client, is_confirmed) || pair.now.since(began) > LONG_OUTAGE);
    assert!(pair.client.has(client, is_confirmed), "an outage after {outage_after:?} is not survived");
    pair.now.since(began)
}

#[test]
fn a_handshake_goes_on_after_an_outage_that_begins_behind_the_servers_flight() {
    // What left before the outage still arrives. The server's flight leaves after 10 ms, the client's answer after 20 ms.
    for millis in 10..60 {
        for seed in 0..3 {
            let took = handshake(seed, Duration::from_millis(millis));
            assert!(took < RESUMES_WITHIN, "{took:?} after an outage {millis} ms after the begin");
        }
    }
}
