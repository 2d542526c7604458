//! A guaranteed rate on the wire: evenly from the first packet, through loss, and what is said when it is not there.

use bytes::Bytes;
use posthaste_policy::Profile;
use posthaste_transport::{ConnectionHandle, Direction, Event, Read, StreamId, TransportConfig};
use posthaste_units::{Duration, Rate, Time};

use crate::support::{Pair, tls};

const DATAGRAM: usize = 1252;

/// minGT: 1,300 bytes, headers included, at 1 Mbit/s.
const SPACING: Duration = Duration::from_micros(10_400);

/// A server that promises 1 Mbit/s, the address of its client validated, 100 ms away.
fn stage(profile: &str) -> (Pair, ConnectionHandle, ConnectionHandle, StreamId) {
    stage_with(posthaste_schemes::named(profile).expect("a profile"))
}

fn stage_with(profile: Profile) -> (Pair, ConnectionHandle, ConnectionHandle, StreamId) {
    let config = TransportConfig {
        profile,
        max_datagram_size: DATAGRAM,
        mtu_discovery: false,
        ..crate::support::defaults()
    };
    let mut pair = Pair::new(1, crate::support::defaults(), config);
    (pair.up.delay, pair.down.delay) = (Duration::from_millis(50), Duration::from_millis(50));
    let (client, server) = pair.establish();
    let stream = pair.server.connection(server).open(Direction::Unidirectional).expect("a stream");
    (pair, client, server, stream)
}

fn write(pair: &mut Pair, server: ConnectionHandle, stream: StreamId) {
    let connection = pair.server.connection(server);
    while connection.write(stream, &mut Bytes::from(vec![7; 65_536])).is_ok_and(|taken| taken == 65_536) {}
}

fn read(pair: &mut Pair, client: ConnectionHandle, stream: StreamId) {
    let now = pair.now;
    let connection = pair.client.connection(client);
    let _ = connection.accept(Direction::Unidirectional);
    while let Ok(Read::Data(_)) = connection.read(now, stream, usize::MAX) {}
}

/// Lets the server send all it may, and the client read, for so long.
fn run(
    pair: &mut Pair,
    (client, server): (ConnectionHandle, ConnectionHandle),
    stream: StreamId,
    span: Duration,
) {
    let end = pair.now + span;
    while pair.now < end {
        write(pair, server, stream);
        pair.run_for(Duration::from_millis(5));
        read(pair, client, stream);
    }
}

/// When the server sent its full datagrams since.
fn sent(pair: &Pair, since: Time) -> Vec<Time> {
    let full = pair.log.iter().filter(|sent| !sent.from_client && sent.at >= since && sent.size == DATAGRAM);
    full.map(|sent| sent.at).collect()
}

#[test]
fn datagrams_leave_one_by_one_at_the_promised_rate_whatever_is_lost() {
    let (mut pair, client, server, stream) = stage("quicming-paper@min_rate=1mbit");
    pair.down.loss = 0.3;
    let start = pair.now;
    run(&mut pair, (client, server), stream, Duration::from_secs(20));
    let times = sent(&pair, start);
    let expected = 20_000_000 / SPACING.as_micros();
    assert!(times.len() as u64 >= expected * 98 / 100, "{} of {expected}", times.len());
    // With losses in nearly every round it never gets beyond the floor, but for a moment.
    let close = times.windows(2).filter(|pair| pair[1].since(pair[0]) < SPACING * 9 / 10);
    let close = close.count();
    assert!(close * 10 <= times.len(), "{close} of {}", times.len());
    assert!(!pair.server.has(server, |event| matches!(event, Event::Notice(_))), "the paper has no doubts");
}

#[test]
fn nothing_waits_for_the_first_round_trip_sample_and_the_first_flight_is_spread_too() {
    let (mut pair, client, server, stream) = stage("quicming-paper@min_rate=1mbit");
    let start = pair.now;
    write(&mut pair, server, stream);
    // Less than a round trip: no ack yet.
    pair.run_for(Duration::from_millis(95));
    let times = sent(&pair, start);
    assert_eq!(times.len(), 10, "one every 10.4 ms, the first at once");
    // The second may be early by the millisecond that a late timer is granted.
    assert!(times[1].since(times[0]) >= SPACING * 9 / 10);
    for pair in times.windows(2).skip(1) {
        assert!(pair[1].since(pair[0]).as_micros().abs_diff(SPACING.as_micros()) <= 2, "{times:?}");
    }
    let _ = client;
}

#[test]
fn the_peers_credit_is_what_bounds_the_papers_form() {
    let (mut pair, client, server, stream) = stage("quicming-paper@min_rate=100mbit");
    // The client's acks stop; its stream window is 1 MiB.
    pair.up.loss = 1.0;
    run(&mut pair, (client, server), stream, Duration::from_millis(400));
    let in_flight = pair.server.connection(server).stats().in_flight.get();
    assert!((1 << 20..1_200_000).contains(&in_flight), "{in_flight}");
}

#[test]
fn the_safe_form_bounds_the_flight_by_two_round_trips() {
    let (mut pair, client, server, stream) = stage("quicming@min_rate=100mbit");
    pair.down.loss = 0.3;
    run(&mut pair, (client, server), stream, Duration::from_millis(500));
    pair.up.loss = 1.0;
    run(&mut pair, (client, server), stream, Duration::from_secs(3));
    let in_flight = pair.server.connection(server).stats().in_flight.get();
    assert!(in_flight <= 12_500_000 * 3 / 10 + 30_000, "{in_flight}");
}

#[test]
fn a_promise_that_is_not_kept_is_halved_and_told() {
    let (mut pair, client, server, stream) = stage("quicming@min_rate=1mbit");
    pair.down.loss = 0.5;
    run(&mut pair, (client, server), stream, Duration::from_secs(4));
    let notice = pair.server.events.iter().find_map(|(_, event)| match event {
        Event::Notice(notice) => Some(notice.clone()),
        _ => None,
    });
    let notice = notice.expect("a notice");
    assert_eq!(notice.policy, "guaranteed");
    assert!(pair.server.connection(server).stats().notices >= 1);
    assert!(notice.text.contains("the promised 1.00 Mbit/s are not there"), "{}", notice.text);
}

#[test]
fn high_speed_mode_comes_after_as_many_clean_acks_as_n_says_and_a_loss_sets_64_back() {
    // At which ack the server is no longer at the floor, of those that the client has sent.
    let acks = |n: u32, lossy: bool| {
        let text =
            format!("[congestion.guaranteed]\nacks = {n}\nmin_rate = \"1 Mbit/s\"\nvariant = \"paper\"\n");
        let profile = posthaste_schemes::from_toml("patient", &text).expect("a profile");
        let (mut pair, client, server, stream) = stage_with(profile);
        pair.down.loss = if lossy { 0.1 } else { 0.0 };
        let start = pair.now;
        let mut acks = None;
        while pair.now.since(start) < Duration::from_secs(3) {
            run(&mut pair, (client, server), stream, Duration::from_millis(5));
            let stats = pair.server.connection(server).stats();
            assert!(stats.in_flight.get() < 4 << 20, "{}", stats.in_flight);
            if stats.congestion.phase.name() != "wireless" {
                acks.get_or_insert(stats.acks_received);
            }
        }
        acks
    };
    let (one, ten, many) = (acks(1, false), acks(10, false), acks(64, false));
    assert!(one < ten && ten < many && many.is_some(), "{one:?}, {ten:?}, {many:?}");
    // With every tenth packet lost, 64 acks in a row without a loss do not come: it stays at the floor, and goes on.
    assert_eq!(acks(64, true), None);
}

/// The phase that a server with this profile begins with once its client has stated a rate of so many bit/s, its pacing
/// rate, and the texts of its notices.
fn stated(profile: &str, rate: Option<u64>) -> (&'static str, Option<Rate>, Vec<String>) {
    let config = TransportConfig {
        profile: posthaste_schemes::named(profile).expect("a profile"),
        max_datagram_size: DATAGRAM,
        mtu_discovery: false,
        ..crate::support::defaults()
    };
    let mut pair = Pair::new(1, crate::support::defaults(), config);
    let rate = rate.map(|rate| Rate::from_bytes_per_second(rate / 8));
    let client = pair.connect_with(&tls::client_config(1).with_guaranteed_rate(rate));
    pair.run_until(|pair| pair.client.has(client, |event| *event == Event::Confirmed));
    let server = pair.server.accepted[0];
    let stats = pair.server.connection(server).stats();
    let notices = pair.server.events.iter().filter_map(|(_, event)| match event {
        Event::Notice(notice) => Some(notice.text.clone()),
        _ => None,
    });
    (stats.congestion.phase.name(), stats.pacing_rate, notices.collect())
}

#[test]
fn a_client_states_the_rate_and_the_server_takes_cuts_or_ignores_it() {
    const MBIT: u64 = 1_000_000;
    let promised = stated("quicming@min_rate=1mbit", None);
    assert_eq!(promised.0, "wireless");
    let granting = "quicming@max_stated_rate=1mbit";
    assert_eq!(stated(granting, Some(MBIT)), promised);
    // 1 Tbit/s, and what does not fit into a variable-length integer.
    for absurd in [1_000_000 * MBIT, u64::MAX] {
        let (phase, pacing, notices) = stated(granting, Some(absurd));
        assert_eq!((phase, pacing), (promised.0, promised.1), "{absurd}");
        assert!(notices.len() == 1 && notices[0].contains("1.00 Mbit/s at most"), "{notices:?}");
    }
    assert_eq!(stated(granting, None).0, "slow_start");
    let (phase, _, notices) = stated(granting, Some(1_000));
    assert!(phase == "slow_start" && notices.len() == 1, "{phase}, {notices:?}");
    // Who has not said that clients may does not listen.
    for deaf in ["mobile", "cubic", "bbr"] {
        assert_eq!(stated(deaf, Some(100_000 * MBIT)), stated(deaf, None), "{deaf}");
    }
    assert_eq!(stated("quicming@min_rate=1mbit", Some(100_000 * MBIT)), promised);
}
