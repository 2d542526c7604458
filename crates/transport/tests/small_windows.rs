//! A download over a path on which loss keeps the window at a few datagrams: how much of the window is used.

use bytes::Bytes;
use posthaste_transport::{ConnectionHandle, Direction, Read, StreamId, TransportConfig};
use posthaste_units::{Duration, Time};

use crate::support::{Link, Pair};

const DATAGRAM: usize = 1252;
const RTT: Duration = Duration::from_millis(188);
const LOSS: f64 = 0.08;

/// What a flight and its window came to.
#[derive(Debug)]
struct Use {
    /// Mean bytes in flight over the mean window.
    share: f64,
    /// Mean window in datagrams.
    window: f64,
    /// The server's datagrams, and of these, those of less than half the full size.
    datagrams: usize,
    small: usize,
}

/// A server that sends without end for a minute, and a client that reads at once.
fn download(profile: &str, seed: u64) -> Use {
    let config = TransportConfig {
        profile: posthaste_schemes::from_toml("stage", profile).expect("a profile"),
        max_datagram_size: DATAGRAM,
        mtu_discovery: false,
        ..crate::support::defaults()
    };
    let mut pair = Pair::new(seed, crate::support::defaults(), config);
    pair.up.delay = RTT / 2;
    pair.down.delay = RTT / 2;
    let (client, server) = pair.establish();
    let stream = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
    pair.down = Link { loss: LOSS, ..pair.down };
    let begin = pair.now;
    let (mut flight, mut window, mut samples) = (0, 0, 0);
    while pair.now < begin + Duration::from_secs(60) {
        exchange(&mut pair, client, server, stream);
        let stats = pair.server.connection(server).stats();
        flight += stats.in_flight.get();
        window += stats.congestion.window.get();
        samples += 1;
    }
    Use {
        share: flight as f64 / window as f64,
        window: window as f64 / f64::from(samples) / DATAGRAM as f64,
        datagrams: sizes(&pair, begin).count(),
        small: sizes(&pair, begin).filter(|size| *size < DATAGRAM / 2).count(),
    }
}

fn exchange(pair: &mut Pair, client: ConnectionHandle, server: ConnectionHandle, stream: StreamId) {
    let connection = pair.server.connection(server);
    while connection.write(stream, &mut Bytes::from(vec![7; 16_384])).is_ok_and(|n| n == 16_384) {}
    pair.run_for(Duration::from_millis(1));
    let now = pair.now;
    let connection = pair.client.connection(client);
    let _ = connection.accept(Direction::Unidirectional);
    while let Ok(Read::Data(_)) = connection.read(now, stream, usize::MAX) {}
}

fn sizes(pair: &Pair, since: Time) -> impl Iterator<Item = usize> + '_ {
    pair.log.iter().filter(move |sent| !sent.from_client && sent.at >= since).map(|sent| sent.size)
}

#[test]
fn a_window_of_a_few_datagrams_is_nearly_all_in_flight() {
    for profile in
        ["[congestion.cubic]\nrecovery = \"prr\"\n", "[slow_start.classic]\n[congestion.newreno]\n"]
    {
        let uses: Vec<Use> = (1..=6).map(|seed| download(profile, seed)).collect();
        for one in &uses {
            assert!((2.0..8.0).contains(&one.window), "the loss keeps the window small: {one:?}");
            // Acknowledgements and the stream's few control frames.
            assert!(one.small * 20 < one.datagrams, "no silly datagrams: {one:?}");
        }
        let share = uses.iter().map(|one| one.share).sum::<f64>() / uses.len() as f64;
        // Whole datagrams alone use 0.92 of it.
        assert!(share > 0.95, "{profile}: {uses:?}");
    }
}
