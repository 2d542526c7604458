//! The TCP model on clean paths, and against single losses, blackouts and disorder, each with its closed form.

use crate::tcp_support::{Case, Fetch, MSS, ON_TIME, Sent, Way, Wire, at, download};
use posthaste_units::{Duration, Rate};

/// Payload bytes of each flight of the TLS handshake, and of a request.
const CLIENT_HELLO: f64 = 240.0;
const SERVER_FLIGHT: f64 = 592.0;
const CLIENT_FINISHED: f64 = 80.0;
const REQUEST: f64 = 300.0 + 22.0;

/// Bytes that TLS adds to a record of 16 KiB at most, and HTTP/2 inside.
const RECORD_OVERHEAD: u64 = 22;
const FRAME_OVERHEAD: u64 = 9;

/// An HTTP/1.1 response in its TLS records.
fn response_bytes(body: u64) -> u64 {
    let stream = body + 200;
    stream + stream.div_ceil(16_384) * RECORD_OVERHEAD
}

/// The time of a download over a clean path of `rate` bits a second whose product is never filled.
///
/// Rounds. The first window is ten segments; the receiver, who has just sent its request, acknowledges every
/// second segment (ten and its doubles are even, so that nothing waits for the 40 ms timer), and Linux grows the
/// window by the *segments* acknowledged, not by acks. So each ack lets four segments go, and round k begins one
/// RTT, two segments' serialisation and the ack's after round k - 1, is sent back to back, and has 10 x 2^(k-1)
/// segments.
fn closed_form(body: u64, rtt: f64, rate: f64) -> f64 {
    let serialise = |payload: f64| (payload + 52.0) * 8.0 / rate;
    let syn = 60.0 * 8.0 / rate;
    // The kernel acknowledges each of the first segments before the application answers it.
    let acks = 3.0 * serialise(0.0);
    let handshakes = 2.0 * rtt + 2.0 * syn + acks + serialise(CLIENT_HELLO) + serialise(SERVER_FLIGHT);
    let request = rtt / 2.0 + serialise(CLIENT_FINISHED + REQUEST);
    let bytes = response_bytes(body);
    let segments = bytes.div_ceil(MSS);
    let last = bytes - (segments - 1) * MSS;
    let (mut rounds, mut sent, mut window) = (0, 0, 10);
    while sent + window < segments {
        sent += window;
        window *= 2;
        rounds += 1;
    }
    let round = rtt + 2.0 * serialise(MSS as f64) + serialise(0.0);
    let full = (segments - sent - 1) as f64 * serialise(MSS as f64);
    handshakes + request + f64::from(rounds) * round + full + serialise(last as f64) + rtt / 2.0
}

#[test]
fn slow_start_takes_its_rounds_and_its_serialisation() {
    let rate = 100e6;
    let case = Case { rtt: Duration::from_millis(100), queue: 4 << 20, ..Case::default() };
    for stack in ["tcp:cubic/h1", "tcp:newreno/h1"] {
        for bytes in [1, 5_000, 11_000, 13_000, 30_000, 36_000, 80_000, 180_000, 370_000, 700_000] {
            let took = download(&Case { stack, bytes, ..case.clone() }).finished;
            let expected = closed_form(bytes, 0.1, rate);
            let packet = 1280.0 * 8.0 / rate;
            println!("{stack} {bytes}: {took:.6}, closed form {expected:.6}");
            assert!((took - expected).abs() <= packet, "{stack} {bytes}: {took} against {expected}");
        }
    }
    // HTTP/2's settings take some bytes more, and their acknowledgement covers one segment of the first ten: the
    // last of a round then is an odd one that waits for the 40 ms timer, and with it what the window has no room
    // for.
    for bytes in [1, 5_000, 11_000, 30_000, 36_000, 80_000, 180_000, 370_000, 700_000] {
        let took = download(&Case { bytes, ..case.clone() }).finished;
        let expected = closed_form(bytes, 0.1, rate);
        let rounds = ((expected - 0.2) / 0.1).floor();
        println!("http/2 {bytes}: {took:.6}, closed form of http/1.1 {expected:.6}");
        assert!((-0.001..0.0405 * rounds).contains(&(took - expected)), "{bytes}: {took} against {expected}");
    }
}

#[test]
fn the_handshakes_take_two_round_trips() {
    let case = Case { rate: None, bytes: 1, ..Case::default() };
    let outcome = download(&case);
    assert_eq!((outcome.connected, outcome.finished), (0.1, 0.15));
}

#[test]
fn a_long_transfer_has_the_rate_less_its_headers() {
    let share = (16_384 - FRAME_OVERHEAD) as f64 / (16_384 + RECORD_OVERHEAD) as f64;
    let goodput = 50e6 / 8.0 * (MSS as f64 / 1280.0) * share;
    for stack in ["tcp:cubic", "tcp:newreno"] {
        let case = Case {
            stack,
            rtt: Duration::from_millis(20),
            rate: Some(Rate::from_bits_per_second(50_000_000)),
            queue: 125_000,
            ..Case::default()
        };
        // The difference of two lengths leaves out handshakes and slow start.
        let [short, long] =
            [10_000_000, 40_000_000].map(|bytes| download(&Case { bytes, ..case.clone() }).finished);
        let ratio = 30_000_000.0 / (long - short) / goodput;
        println!("{stack}: {ratio:.4} of the limit");
        assert!((0.99..=1.01).contains(&ratio), "{stack}: {ratio}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let case = Case { loss: 0.01, mess: [0.01, 0.01, 0.01], ..Case::default() };
    assert_eq!(download(&case), download(&case));
    assert_ne!(download(&case).hash, download(&Case { seed: 2, ..case }).hash);
}

fn fetch_over(rtt: u64, bytes: u64, filter: impl FnMut(&Sent) -> Option<Duration>) -> (Wire, f64) {
    let mut wire = Wire::new("tcp:cubic/h1", Duration::from_millis(rtt));
    let mut fetch = Fetch::new(&[1], bytes);
    assert!(wire.run(&mut fetch, 10_000.0, filter), "it finishes");
    let finished = fetch.finished.borrow()[0];
    (wire, finished)
}

/// True for segments with response data.
fn is_data(sent: &Sent) -> bool {
    sent.way == Way::Down && sent.segment.length > 0
}

#[test]
fn each_lost_syn_costs_a_second() {
    let (_, clean) = fetch_over(50, 1000, |_| ON_TIME);
    for way in [Way::Up, Way::Down] {
        for lost in 1..=3 {
            let mut count = 0;
            let (_, took) = fetch_over(50, 1000, |sent| {
                let is_syn = sent.segment.wire_length() == 60 && sent.way == way;
                count += u32::from(is_syn);
                if is_syn && sent.at < f64::from(lost) { None } else { ON_TIME }
            });
            // The kernel waits a second for each of the first SYNs; a lost answer brings the next SYN as well.
            let extra = took - clean;
            assert!((extra - f64::from(lost)).abs() < 1e-6, "{way:?} {lost}: {extra}, {count} SYNs");
        }
    }
}

#[test]
fn timeouts_double_while_nothing_arrives() {
    let mut wire = Wire::new("tcp:cubic", Duration::from_millis(50));
    let mut fetch = Fetch::new(&[1], 10_000_000);
    let finishes = wire.run(&mut fetch, 2_000.0, |sent| if sent.at < 0.4 { ON_TIME } else { None });
    assert!(!finishes);
    let head = wire.sent.iter().rev().find(|sent| is_data(sent)).expect("data was sent").segment.sequence;
    let times: Vec<f64> = wire
        .sent
        .iter()
        .filter(|sent| is_data(sent) && sent.segment.sequence == head && sent.at > 0.4)
        .map(|sent| sent.at)
        .collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    println!("{gaps:?}");
    assert_eq!(gaps.len(), 14, "fifteen retransmissions");
    for pair in gaps.windows(2) {
        let expected = (2.0 * pair[0]).min(120.0);
        assert!((pair[1] - expected).abs() < 1e-6, "{gaps:?}");
    }
    // Smoothed RTT and variation, twice: the first gap follows a timeout.
    assert!((0.5..0.7).contains(&gaps[0]), "{gaps:?}");
    assert_eq!(wire.counters().probe_timeouts, Some(16));
}

#[test]
fn a_blackout_of_two_seconds_is_survived() {
    let (_, clean) = fetch_over(50, 3_000_000, |_| ON_TIME);
    let is_dark = |at: f64| (0.32..2.32).contains(&at);
    let (wire, took) = fetch_over(50, 3_000_000, |sent| if is_dark(sent.at) { None } else { ON_TIME });
    let first_after = wire.sent.iter().find(|sent| is_data(sent) && sent.at >= 2.32).expect("it goes on").at;
    println!("clean {clean}, with the blackout {took}, resumed at {first_after}");
    // The n-th timeout is as long as all before it and the first one, 250 ms, together.
    assert!(first_after < 2.32 + 2.0 + 0.25, "{first_after}");
    assert!(took < first_after + 30.0 * 0.05, "{took}: slow start from one segment takes few rounds");
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe() {
    let rtt = 0.05;
    for lost in [1, 2] {
        // Four segments arrive, acknowledged in pairs.
        let bytes = (3 + lost) * MSS;
        let (wire, clean) = fetch_over(50, bytes, |_| ON_TIME);
        let is_tail =
            |sent: &Sent, count| is_data(sent) && sent.segment.sequence > 592 + 3 * MSS && count < lost;
        let mut count = 0;
        let (wire_with_loss, took) = fetch_over(50, bytes, |sent| {
            let hits = is_tail(sent, count);
            count += u64::from(hits);
            if hits { None } else { ON_TIME }
        });
        // The last ack comes half an RTT after the end of a clean run. From there, a lone segment is probed when
        // it times out, after an RTT and 200 ms; one of several after two RTTs and 2 ms. The probe takes half an
        // RTT; if it was one of two, its SACK shows the other's loss, which takes an RTT.
        let expected = if lost == 1 { rtt / 2.0 + rtt + 0.2 + rtt / 2.0 } else { 4.0 * rtt + 0.002 };
        let extra = took - clean;
        assert!((extra - expected).abs() < 1e-6, "{lost}: {extra} instead of {expected}");
        assert_eq!(wire_with_loss.counters().probe_timeouts, Some(0), "{lost}");
        let segments = |wire: &Wire| wire.sent.iter().filter(|sent| is_data(sent)).count() as u64;
        assert_eq!(segments(&wire_with_loss), segments(&wire) + lost);
    }
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let target = 100 * MSS;
    let mut losses = 0;
    let (wire, _) = fetch_over(50, 1_000_000, |sent| {
        let covers = sent.segment.sequence <= target && target < sent.segment.sequence + sent.segment.length;
        if is_data(sent) && covers && losses < 3 {
            losses += 1;
            return None;
        }
        ON_TIME
    });
    let counters = wire.counters();
    assert_eq!((losses, counters.probe_timeouts, counters.lost), (3, Some(0), Some(3)));
    assert_eq!(counters.resent_bytes, Some(3 * MSS));
}

#[test]
fn late_segments_are_not_lost_ones() {
    // Every tenth segment comes a tenth of the RTT late: ten behind its burst, within RACK's window of a quarter.
    for share in [10, 3] {
        let mut count = 0;
        let (wire, took) = fetch_over(50, 2_000_000, |sent| {
            count += u64::from(is_data(sent));
            let is_late = is_data(sent) && count % share == 0;
            Some(Duration::from_millis(if is_late { 5 } else { 0 }))
        });
        let counters = wire.counters();
        println!("{share}: {took} {counters:?}");
        // Before reordering is known, three segments beyond a gap count as its loss (RFC 8985 6.2): once.
        assert!(counters.resent_bytes <= Some(16 * MSS), "{counters:?}");
        assert!(counters.congestion_events <= Some(2), "{counters:?}");
    }
}

#[test]
fn neighbours_that_swap_places_cost_nothing() {
    let (_, clean) = fetch_over(50, 2_000_000, |_| ON_TIME);
    let mut count = 0_u64;
    let (wire, took) = fetch_over(50, 2_000_000, |sent| {
        count += u64::from(is_data(sent));
        // Behind one or two others: those that leave at the same time arrive in the order of their delays.
        let later = match count % 5 {
            0 => 25,
            1 | 2 => 15,
            _ => 0,
        };
        Some(Duration::from_nanos(if is_data(sent) { count * 10 + later } else { 0 }))
    });
    let counters = wire.counters();
    assert_eq!((counters.resent_bytes, counters.congestion_events), (Some(0), Some(0)));
    assert!((took - clean).abs() < 0.02, "{took} against {clean}");
}

#[test]
fn a_spurious_timeout_is_undone() {
    // Everything is held up for a second once; no segment is lost.
    let (wire, _) = fetch_over(50, 3_000_000, |sent| {
        let waits = if (0.35..1.35).contains(&sent.at) { 1.35 - sent.at } else { 0.0 };
        Some(Duration::from_secs_f64(waits))
    });
    let counters = wire.counters();
    println!("{counters:?}");
    assert!(counters.probe_timeouts >= Some(1), "{counters:?}");
    assert!(
        counters.resent_bytes <= Some(4 * MSS),
        "the window's other segments are not sent again: {counters:?}"
    );
    let before = wire.windows.iter().filter(|(at, _)| *at < 0.35).map(|(_, window)| *window).max();
    let after = wire.windows.iter().filter(|(at, _)| *at > 1.45).map(|(_, window)| *window).min();
    assert!(after >= before, "{after:?} after {before:?}");
}

#[test]
fn a_reader_that_sleeps_closes_the_window_and_a_lost_update_does_not_matter() {
    let mut wire = Wire::new("tcp:cubic/h1", Duration::from_millis(50));
    let mut fetch = Fetch::new(&[1], 2_000_000);
    fetch.reads_from = at(60.0);
    let mut updates = 0;
    let finishes = wire.run(&mut fetch, 300.0, |sent| {
        // The first acknowledgements after the reader wakes are lost.
        let is_update = sent.way == Way::Up && (60.0..60.2).contains(&sent.at);
        updates += u64::from(is_update);
        if is_update { None } else { ON_TIME }
    });
    assert!(finishes);
    let before = wire.sent.iter().filter(|sent| sent.way == Way::Down && sent.at < 60.0);
    let sent: u64 = before.map(|sent| sent.segment.length).sum();
    // HTTP keeps 64 KiB and what was under way. Before, 20 segments were read in a round trip after ten, so that
    // the window was tuned to 2 x 20 + 16 segments and twice as much again: 168, 206 kB.
    assert!((206_000..=206_304 + 65_536 + 2 * 16_384).contains(&sent), "{sent} bytes");
    let counters = wire.counters();
    assert_eq!((counters.resent_bytes, updates > 0), (Some(0), true));
    assert!(counters.blocked_nanos > Some(55_000_000_000), "{counters:?}");
}

#[test]
fn http_1_1_fetches_twelve_objects_in_two_rounds_over_six_connections() {
    let rtt = 0.05;
    let mut wire = Wire::new("tcp:cubic/h1", Duration::from_secs_f64(rtt));
    // Six objects warm the connections up; each new one pays its handshakes.
    let mut fetch = Fetch::new(&[6, 12], 5_000);
    assert!(wire.run(&mut fetch, 60.0, |_| ON_TIME));
    let finished = fetch.finished.borrow().clone();
    // The first connection is there after two round trips and serves three objects one after the other, until
    // the other five are there as well, two round trips later: these serve what is left.
    let warm: Vec<f64> = finished[..6].iter().map(|at| (at / rtt).round()).collect();
    assert_eq!(warm, [3.0, 4.0, 5.0, 5.0, 5.0, 5.0]);
    let rounds: Vec<f64> = finished[6..].iter().map(|at| (at - finished[5]) / rtt).collect();
    for (index, round) in rounds.iter().enumerate() {
        let expected = if index < 6 { 1.0 } else { 2.0 };
        assert!((round - expected).abs() < 1e-6, "{rounds:?}");
    }
    let connections: std::collections::BTreeSet<u16> =
        wire.sent.iter().map(|sent| sent.segment.connection).collect();
    assert_eq!(connections.len(), 6);
}

#[test]
fn http_2_interleaves_its_streams() {
    let mut wire = Wire::new("tcp:cubic", Duration::from_millis(50));
    let mut fetch = Fetch::new(&[4], 500_000);
    assert!(wire.run(&mut fetch, 60.0, |_| ON_TIME));
    let finished = fetch.finished.borrow().clone();
    let spread = finished[3] - finished[0];
    assert!(spread <= 0.05 + 1e-9, "all end within the last round: {finished:?}");
}
