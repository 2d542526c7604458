//! An outage in the middle of a download: what RFC 9002 makes of it, and what the two forms of `freeze` do.

use bytes::Bytes;
use posthaste_transport::{ConnectionHandle, ConnectionStats, Direction, Read, StreamId, TransportConfig};
use posthaste_units::{Duration, Time};

use crate::support::{Link, Pair};

const DATAGRAM: u64 = 1252;
const RTT: Duration = Duration::from_millis(40);

const COLLAPSE: &str = "collapse]";
const PAPER: &str = "freeze]\nvariant = \"paper\"";
const SAFE: &str = "freeze]";

/// A server with this silence policy that sends without end, and its client; 40 ms apart.
struct Stage {
    pair: Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
    stream: StreamId,
}

impl Stage {
    /// `silence` is a policy of a profile with its parameters, one a line.
    fn new(silence: &str) -> Self {
        // New Reno: a window is easy to foretell.
        let text = format!("[slow_start.classic]\n[congestion.newreno]\n[silence.{silence}\n");
        let profile = posthaste_schemes::from_toml("stage", &text).expect("a profile");
        let config = TransportConfig {
            profile,
            max_datagram_size: DATAGRAM as usize,
            mtu_discovery: false,
            ..crate::support::defaults()
        };
        let mut pair = Pair::new(1, crate::support::defaults(), config);
        pair.up.delay = RTT / 2;
        pair.down.delay = RTT / 2;
        let (client, server) = pair.establish();
        let connection = pair.server.connection(server);
        let stream = connection.open(Direction::Unidirectional).expect("a stream");
        Self { pair, client, server, stream }
    }

    fn stats(&mut self) -> ConnectionStats {
        self.pair.server.connection(self.server).stats()
    }

    fn window(&mut self) -> u64 {
        self.stats().congestion.window.get() / DATAGRAM
    }

    /// Lets time pass; the server always has data, the client always reads.
    fn run(&mut self, millis: u64) {
        let end = self.pair.now + Duration::from_millis(millis);
        while self.pair.now < end {
            let connection = self.pair.server.connection(self.server);
            while connection.write(self.stream, &mut Bytes::from(vec![7; 65_536])).is_ok_and(|n| n == 65_536)
            {
            }
            self.pair.run_for(Duration::from_millis(1));
            let now = self.pair.now;
            let connection = self.pair.client.connection(self.client);
            if connection.accept(Direction::Unidirectional).is_some() || self.stream.index() == 0 {
                while let Ok(Read::Data(_)) = connection.read(now, self.stream, usize::MAX) {}
            }
        }
    }

    /// Nothing gets through for this long.
    fn outage(&mut self, millis: u64) {
        let (up, down) = (self.pair.up, self.pair.down);
        (self.pair.up, self.pair.down) = (Link { loss: 1.0, ..up }, Link { loss: 1.0, ..down });
        self.run(millis);
        (self.pair.up, self.pair.down) = (up, down);
    }

    /// Runs until an ack ends the silence; when.
    fn until_heard(&mut self) -> Time {
        let acks = self.stats().acks_received;
        while self.stats().acks_received == acks {
            self.run(1);
        }
        self.pair.now
    }

    /// Runs until the client has received more of the stream than now; how long that took.
    fn until_received(&mut self) -> Duration {
        let received = |stage: &mut Self| stage.pair.client.connection(stage.client).stats().streams.received;
        let (from, before) = (self.pair.now, received(self));
        while received(self) == before {
            self.run(1);
        }
        self.pair.now.since(from)
    }

    /// Datagrams that the server has sent since.
    fn sent_since(&self, since: Time) -> usize {
        self.pair.log.iter().filter(|sent| !sent.from_client && sent.at >= since && sent.size > 100).count()
    }

    /// A window of 64 datagrams and more that has been full, then an outage of 2 s, and the window in it.
    fn frozen(silence: &str) -> (Self, u64) {
        let mut stage = Self::new(silence);
        while stage.window() < 64 {
            stage.run(10);
        }
        stage.outage(2000);
        let window = stage.window();
        (stage, window)
    }
}

#[test]
fn rfc_9002_collapses_the_window_and_begins_from_two_datagrams() {
    let (mut stage, window) = Stage::frozen(COLLAPSE);
    assert!(window >= 64);
    stage.until_heard();
    assert_eq!(stage.window(), 2);
    let congestion = stage.stats().congestion;
    assert!(
        congestion.slow_start_threshold.is_some_and(|threshold| threshold.get() / DATAGRAM >= window / 2 - 1)
    );
}

#[test]
fn the_papers_form_goes_on_with_the_frozen_window_and_repairs_what_was_lost() {
    let (mut stage, window) = Stage::frozen(PAPER);
    let lost_before = stage.stats().packets_lost;
    let at = stage.until_heard();
    let stats = stage.stats();
    assert!(stage.window() >= window, "{} of {window}", stage.window());
    assert_eq!(stats.congestion.slow_start_threshold, None, "no loss event at all");
    // What was under way when the outage began arrived; its acks did not.
    assert!(stats.packets_lost - lost_before >= window / 3, "the rest was lost");
    // Full rate within the next round trip.
    stage.run(40);
    assert!(stage.sent_since(at) as u64 >= window - 5, "{}", stage.sent_since(at));
    stage.run(500);
    assert!(stage.stats().streams.resent.get() >= window / 3 * 1000, "repaired");
}

#[test]
fn the_safe_form_tries_half_paced_over_a_round_trip_and_keeps_it() {
    let (mut stage, window) = Stage::frozen(SAFE);
    let at = stage.until_heard();
    assert_eq!(stage.window(), window / 2);
    let pacing = stage.stats().pacing_rate.expect("paced").as_bytes_per_second();
    let spread = window / 2 * DATAGRAM * 1000 / stage.stats().rtt.smoothed.as_millis().max(1);
    assert!(pacing.abs_diff(spread) <= spread / 10, "{pacing} and {spread}");
    stage.run(20);
    let half_way = stage.sent_since(at) as u64;
    assert!(half_way <= window / 2 * 6 / 10 + 4, "{half_way} of {} at half time", window / 2);
    stage.run(25);
    assert!(stage.sent_since(at) as u64 >= window / 2 - 4);
    stage.run(200);
    assert!(stage.window() >= window / 2, "{}", stage.window());
}

#[test]
fn the_safe_form_collapses_when_the_flight_is_lost() {
    let (mut stage, window) = Stage::frozen(SAFE);
    stage.until_heard();
    assert_eq!(stage.window(), window / 2);
    // The network is a bad one now.
    stage.pair.down.loss = 0.3;
    let mut least = u64::MAX;
    for _ in 0..100 {
        stage.run(1);
        least = least.min(stage.window());
    }
    assert_eq!(least, 2);
}

#[test]
fn a_lost_tail_is_no_silence_for_the_safe_form() {
    let mut stage = Stage::new(SAFE);
    while stage.window() < 64 {
        stage.run(10);
    }
    let window = stage.window();
    // One probe timeout, much less than persistent congestion.
    stage.outage(90);
    stage.until_heard();
    stage.run(100);
    let now = stage.window();
    assert!(now >= window / 2 - 1 && now < window, "{now} of {window}: New Reno's half");
}

#[test]
fn nothing_but_probes_leaves_in_a_silence_whatever_there_is_to_send() {
    for (silence, held) in [(PAPER, true), (COLLAPSE, false)] {
        let mut stage = Stage::new(silence);
        while stage.window() < 64 {
            stage.run(10);
        }
        // The application has nothing more to say; then comes a silence, and then it has.
        stage.pair.run_for(Duration::from_secs(2));
        let connection = stage.pair.server.connection(stage.server);
        connection.write(stage.stream, &mut Bytes::from(vec![7; 3000])).expect("credit");
        let down = stage.pair.down;
        stage.pair.down.loss = 1.0;
        stage.pair.run_for(Duration::from_millis(400));
        let (at, probes) = (stage.pair.now, stage.stats().probe_timeouts);
        assert!(probes >= 1);
        let connection = stage.pair.server.connection(stage.server);
        connection.write(stage.stream, &mut Bytes::from(vec![7; 40_000])).expect("credit");
        stage.pair.run_for(Duration::from_millis(1500));
        let probes = stage.stats().probe_timeouts - probes;
        let sent = stage.sent_since(at) as u64;
        assert!(probes >= 1);
        if held {
            assert!(sent <= probes * 2, "{sent} datagrams, {probes} timeouts");
        } else {
            assert!(sent >= 30, "{sent} datagrams");
        }
        // And once it is over, all of it does.
        stage.pair.down = down;
        stage.pair.run_for(Duration::from_secs(10));
        let now = stage.pair.now;
        let mut read = 0;
        let connection = stage.pair.client.connection(stage.client);
        while let Ok(Read::Data(data)) = connection.read(now, stage.stream, usize::MAX) {
            read += data.len();
        }
        assert!(read >= 43_000, "{read}");
    }
}

#[test]
fn a_transfer_goes_on_within_a_second_of_the_end_of_an_outage() {
    for silence in [COLLAPSE, SAFE, PAPER] {
        for outage in [20_000, 20_350, 20_700, 28_000] {
            let mut stage = Stage::new(silence);
            stage.run(300);
            let probes = stage.stats().probe_timeouts;
            stage.outage(outage);
            let probes = stage.stats().probe_timeouts - probes;
            assert!(probes <= outage / 1000 + 6, "{silence}: {probes} probe timeouts in {outage} ms");
            let took = stage.until_received();
            assert!(took <= Duration::from_secs(1) + RTT, "{silence}: {took} after {outage} ms");
            let sent = stage.stats().sent.datagrams;
            stage.run(400);
            assert!(stage.stats().sent.datagrams > sent + 50, "{silence}: it goes on");
        }
    }
}

#[test]
fn a_client_that_sees_its_network_come_back_ends_the_outage_at_once() {
    // The probe timeouts of these outages end at different times after the path's return.
    for outage in [20_000, 20_350, 20_700] {
        let mut stage = Stage::new(COLLAPSE);
        stage.run(300);
        stage.outage(outage);
        let now = stage.pair.now;
        stage.pair.client.connection(stage.client).probe(now);
        let took = stage.until_received();
        assert!(took <= RTT * 2, "{took} after {outage} ms");
    }
}

#[test]
fn packets_of_the_peer_do_not_stop_the_back_off_while_ours_are_lost() {
    let mut stage = Stage::new(COLLAPSE);
    stage.run(300);
    let down = stage.pair.down;
    stage.pair.down.loss = 1.0;
    let (before, end) = (stage.stats().probe_timeouts, stage.pair.now + Duration::from_secs(20));
    while stage.pair.now < end {
        stage.pair.client.connection(stage.client).ping();
        stage.run(50);
    }
    let probes = stage.stats().probe_timeouts - before;
    assert!((15..=26).contains(&probes), "{probes} probe timeouts in 20 s");
    stage.pair.down = down;
    assert!(stage.until_received() <= Duration::from_secs(1) + RTT);
}
