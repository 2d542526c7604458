use posthaste_policy::sample::{PacketSample, PacketSpace};

use super::*;
use crate::slow_start::classic::Classic;
use crate::testing::{DATAGRAM, datagrams, loss, milliseconds, packet, steady_rtt};

const RTT: Duration = milliseconds(100);

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn controller(variant: Variant, acks: u32, min_rate: Rate) -> Guaranteed {
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 1 };
    Guaranteed::new(
        Parameters { min_rate: Some(min_rate), acks, variant, ..Parameters::default() },
        Box::new(Classic),
        limits,
    )
}

/// A path on which packets leave and are acknowledged one by one, at times of the test's choosing.
struct Path {
    now: Time,
    rtt: RttView,
    number: u64,
    delivered: ByteCount,
    lost: ByteCount,
    in_flight: Vec<PacketSample>,
}

impl Path {
    fn new() -> Self {
        Self {
            now: Time::ZERO + milliseconds(1000),
            rtt: steady_rtt(RTT),
            number: 0,
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            in_flight: Vec::new(),
        }
    }

    fn flight(&self) -> ByteCount {
        DATAGRAM * self.in_flight.len() as u64
    }

    fn send(&mut self, controller: &mut Guaranteed) {
        controller.on_sent(&SentSample {
            now: self.now,
            space: PacketSpace::Data,
            number: self.number,
            bytes: DATAGRAM,
            prior_in_flight: self.flight(),
            app_limited: false,
        });
        self.in_flight.push(packet(self.number, self.now));
        self.number += 1;
    }

    fn ack_as(&mut self, controller: &mut Guaranteed, app_limited: bool) {
        let acked = [self.in_flight.remove(0)];
        self.delivered += DATAGRAM;
        let sample = crate::testing::ack(self.now, &acked, self.rtt, 1);
        controller.on_ack(&AckSample {
            prior_in_flight: self.flight() + DATAGRAM,
            in_flight: self.flight(),
            delivered: self.delivered,
            lost: self.lost,
            app_limited,
            ..sample
        });
    }

    fn ack(&mut self, controller: &mut Guaranteed) {
        self.ack_as(controller, false);
    }

    fn lose(&mut self, controller: &mut Guaranteed) {
        let lost = [self.in_flight.remove(0)];
        self.lost += DATAGRAM;
        let sample = loss(self.now, &lost, self.rtt);
        let prior_in_flight = self.flight() + DATAGRAM;
        controller.on_loss(&LossSample { prior_in_flight, in_flight: self.flight(), ..sample });
    }

    /// Sends and acknowledges one packet every `gap`, with `count` in flight, for `span`.
    fn stream(&mut self, controller: &mut Guaranteed, count: usize, gap: Duration, span: Duration) {
        let until = self.now + span;
        while self.in_flight.len() < count {
            self.send(controller);
        }
        while self.now < until {
            self.now += gap;
            self.ack(controller);
            self.send(controller);
        }
    }

    /// The same with every third packet lost rather than acknowledged, so that wireless mode never ends.
    fn lossy(&mut self, controller: &mut Guaranteed, gap: Duration, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += gap;
            if self.number.is_multiple_of(3) {
                self.lose(controller);
            } else {
                self.ack(controller);
            }
            self.send(controller);
        }
    }
}

fn phase(controller: &Guaranteed) -> &'static str {
    controller.state().phase.name()
}

#[test]
fn a_datagram_leaves_every_min_gt_from_the_first_on() {
    let controller = controller(Variant::Paper, 10, rate("1mbit"));
    // minGT = MTU / minGS: 1,248 bytes at 125,000 bytes a second.
    let min_gt = rate("1mbit").time_for(ByteCount::new(1200 + HEADERS));
    assert_eq!(min_gt.as_micros(), 9_984);
    // Even before there is a sample of the round trip.
    let unmeasured = RttView { is_measured: false, ..steady_rtt(milliseconds(333)) };
    let pacing = controller.pacing(&unmeasured).unwrap();
    let spacing = pacing.rate.time_for(DATAGRAM);
    assert!(spacing.as_nanos().abs_diff(min_gt.as_nanos()) < 1_000, "{spacing:?}");
    assert!(pacing.burst < DATAGRAM * 2, "never two at once");
    assert_eq!(phase(&controller), "wireless");
}

#[test]
fn the_tenth_ack_without_loss_begins_high_speed_mode_and_a_loss_sets_the_count_back() {
    for variant in [Variant::Paper, Variant::Safe] {
        let (mut path, mut controller) = (Path::new(), controller(variant, 10, rate("1mbit")));
        for _ in 0..40 {
            path.send(&mut controller);
        }
        for _ in 0..9 {
            path.ack(&mut controller);
        }
        path.now += milliseconds(1);
        path.lose(&mut controller);
        path.now += milliseconds(1);
        for _ in 0..9 {
            path.ack(&mut controller);
        }
        assert_eq!(phase(&controller), "wireless");
        path.ack(&mut controller);
        // The window is what is in flight; it is not slow start, and the next ack probes from the plateau (K = 0).
        assert_eq!(controller.window(), DATAGRAM * (40 - 20));
        assert_eq!(phase(&controller), "congestion_avoidance");
        let before = datagrams(controller.window());
        path.now += milliseconds(1);
        path.ack(&mut controller);
        let growth = datagrams(controller.window()) - before;
        assert!((0.04..0.06).contains(&growth), "a twentieth of a datagram, as Reno on 20: {growth}");
    }
}

#[test]
fn the_ack_that_would_end_wireless_mode_may_itself_report_a_loss() {
    for variant in [Variant::Paper, Variant::Safe] {
        let (mut path, mut controller) = (Path::new(), controller(variant, 10, rate("1mbit")));
        for _ in 0..40 {
            path.send(&mut controller);
        }
        for _ in 0..10 {
            path.ack(&mut controller);
        }
        assert_eq!(phase(&controller), "congestion_avoidance");
        path.lose(&mut controller);
        assert_eq!(phase(&controller), "wireless", "{variant}");
        for _ in 0..9 {
            path.ack(&mut controller);
        }
        assert_eq!(phase(&controller), "wireless", "the count began anew");
    }
}

#[test]
fn n_is_configurable_down_to_one() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Paper, 1, rate("1mbit")));
    path.send(&mut controller);
    path.send(&mut controller);
    path.ack(&mut controller);
    assert_eq!(phase(&controller), "congestion_avoidance");
    assert_eq!(controller.window(), DATAGRAM * 2);
}

#[test]
fn nothing_slows_the_papers_wireless_mode() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Paper, 10, rate("1mbit")));
    let pacing = controller.pacing(&path.rtt);
    for _ in 0..2000 {
        path.send(&mut controller);
        assert!(controller.window() >= path.flight() + DATAGRAM * 2, "there is always room for more");
    }
    for index in 0..1000 {
        path.now += milliseconds(5);
        path.rtt.smoothed += milliseconds(5);
        if index % 5 == 0 {
            path.lose(&mut controller);
        } else {
            path.ack(&mut controller);
        }
        controller.on_congestion_experienced(path.now, path.now, path.flight());
        controller.on_persistent_congestion(path.now);
    }
    assert_eq!(phase(&controller), "wireless");
    assert_eq!(controller.pacing(&path.rtt), pacing);
    assert_eq!(controller.take_notice(), None);
}

#[test]
fn high_speed_mode_falls_back_once_less_than_the_floor_is_delivered_over_a_round_trip() {
    for variant in [Variant::Paper, Variant::Safe] {
        let (mut path, mut controller) = (Path::new(), controller(variant, 10, rate("1mbit")));
        // Twice the floor: ten datagrams in flight, one every 5 ms.
        path.rtt = steady_rtt(milliseconds(50));
        path.stream(&mut controller, 10, milliseconds(5), milliseconds(2000));
        assert_eq!(phase(&controller), "congestion_avoidance", "{variant}");
        // A third of it: seen after the round trip that is being measured, and a whole one.
        path.stream(&mut controller, 10, milliseconds(30), milliseconds(150));
        assert_eq!(phase(&controller), "wireless", "{variant}");
    }
}

#[test]
fn an_application_without_data_is_no_slow_network() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Paper, 10, rate("1mbit")));
    path.rtt = steady_rtt(milliseconds(50));
    path.stream(&mut controller, 10, milliseconds(5), milliseconds(500));
    assert_eq!(phase(&controller), "congestion_avoidance");
    while !path.in_flight.is_empty() {
        path.ack_as(&mut controller, true);
    }
    // A packet a second: far below the floor, and not the network's fault.
    for _ in 0..5 {
        path.now += milliseconds(1000);
        path.send(&mut controller);
        path.now += milliseconds(50);
        path.ack_as(&mut controller, true);
    }
    assert_eq!(phase(&controller), "congestion_avoidance");
}

#[test]
fn high_speed_mode_answers_loss_as_cubic_does() {
    for variant in [Variant::Paper, Variant::Safe] {
        let (mut path, mut controller) = (Path::new(), controller(variant, 10, rate("10kbit")));
        for _ in 0..30 {
            path.send(&mut controller);
        }
        for _ in 0..10 {
            path.ack(&mut controller);
        }
        path.now += milliseconds(10);
        path.lose(&mut controller);
        assert!((datagrams(controller.window()) - 14.0).abs() < 0.01, "20 x 0.7");
        assert_eq!(phase(&controller), "recovery");
    }
}

#[test]
fn the_safe_form_takes_a_loss_with_a_queue_for_congestion_and_one_without_for_the_radios() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("1mbit")));
    for _ in 0..20 {
        path.send(&mut controller);
    }
    path.lose(&mut controller);
    assert_eq!(phase(&controller), "wireless", "no queue: the radio's");
    // 100 ms and 25 + 0.25 ms of margin (15 ms and two datagrams at the floor: 34.2 ms).
    path.rtt.smoothed = milliseconds(134);
    path.lose(&mut controller);
    assert_eq!(phase(&controller), "wireless");
    path.rtt.smoothed = milliseconds(135);
    path.now += milliseconds(1);
    path.lose(&mut controller);
    assert_eq!(phase(&controller), "recovery");
    assert!((datagrams(controller.window()) - 18.0 * 0.7).abs() < 0.01, "what was in flight, reduced");
}

#[test]
fn the_safe_form_takes_a_mark_for_congestion() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("1mbit")));
    for _ in 0..20 {
        path.send(&mut controller);
    }
    path.ack(&mut controller);
    controller.on_congestion_experienced(path.now, path.now, path.flight());
    assert!((datagrams(controller.window()) - 19.0 * 0.7).abs() < 0.01);
    // Far below the floor, but the marks are fresh.
    while path.in_flight.len() > 4 {
        path.ack(&mut controller);
    }
    path.stream(&mut controller, 4, milliseconds(60), milliseconds(360));
    assert_ne!(phase(&controller), "wireless");
    // Four round trips after them they are not.
    path.stream(&mut controller, 4, milliseconds(60), milliseconds(240));
    assert_eq!(phase(&controller), "wireless");
}

/// Wireless mode with a standing queue (and no loss that would end it): until the floor is halved.
fn until_halved(path: &mut Path, controller: &mut Guaranteed) -> (Duration, String) {
    let start = path.now;
    loop {
        path.now += milliseconds(10);
        path.send(controller);
        path.ack(controller);
        // As after a loss without a queue, so that acks alone do not lead into high-speed mode.
        if let Mode::Wireless { clean_acks } = &mut controller.mode {
            *clean_acks = 0;
        }
        if let Some(notice) = controller.take_notice() {
            return (path.now.since(start), notice.text);
        }
        assert!(path.now.since(start) < Duration::from_secs(60), "the floor is never halved");
    }
}

#[test]
fn a_queue_that_stands_for_a_second_halves_the_floor_and_the_operator_is_told() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("1mbit")));
    path.send(&mut controller);
    path.rtt.smoothed = milliseconds(200);
    let (after, text) = until_halved(&mut path, &mut controller);
    assert_eq!(after, milliseconds(1010), "a second and four round trips, whichever is longer");
    assert!(text.contains("1.00 Mbit/s") && text.contains("500 kbit/s") && text.contains("queue"), "{text}");
    let floor = |controller: &Guaranteed| controller.pacing(&path_rtt()).unwrap().rate.as_bits_per_second();
    assert_eq!(floor(&controller), 480_768);
    // Again and again, but never to nothing. (Two datagrams at 10 kbit/s are 2 s, which is no queue.)
    path.rtt.smoothed = milliseconds(3000);
    for _ in 0..6 {
        until_halved(&mut path, &mut controller);
    }
    assert_eq!(floor(&controller), 9_608, "10 kbit/s on the wire");
}

fn path_rtt() -> RttView {
    steady_rtt(RTT)
}

#[test]
fn a_floor_of_which_half_is_delivered_is_halved_and_tried_again_ever_more_rarely() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("1mbit")));
    for _ in 0..10 {
        path.send(&mut controller);
    }
    // Two of three arrive, one every 15 ms: 0.43 of the floor. No queue.
    path.lossy(&mut controller, milliseconds(15), milliseconds(1100));
    let text = controller.take_notice().expect("a notice").text;
    assert!(text.contains("three quarters"), "{text}");
    assert_eq!(controller.promise.rate(), rate("500kbit"));
    // 0.85 of half the floor: no reason for doubt. Ten seconds later the promise is tried again ...
    path.lossy(&mut controller, milliseconds(15), milliseconds(9_900));
    assert_eq!((controller.take_notice(), controller.promise.rate()), (None, rate("500kbit")));
    path.lossy(&mut controller, milliseconds(15), milliseconds(200));
    assert!(controller.take_notice().is_some());
    assert_eq!(controller.promise.rate(), rate("1mbit"));
    // ... and does not hold: the next attempt is after twice that time.
    path.lossy(&mut controller, milliseconds(15), milliseconds(2_100));
    assert_eq!(controller.promise.rate(), rate("500kbit"));
    path.lossy(&mut controller, milliseconds(15), milliseconds(18_000));
    assert_eq!(controller.promise.rate(), rate("500kbit"));
    controller.take_notice();
    let mut after = 18_000;
    while controller.take_notice().is_none() {
        path.lossy(&mut controller, milliseconds(15), milliseconds(100));
        after += 100;
    }
    assert_eq!(controller.promise.rate(), rate("1mbit"));
    assert!((18_500..=20_100).contains(&after), "20 s after it was halved within the 2.1 s before: {after}");
}

/// A packet every `gap`, of which `lost` of 20 are lost at the promised rate and `then` of 20 below it.
fn twentieths(path: &mut Path, controller: &mut Guaranteed, (lost, then): (u64, u64), span: Duration) {
    let until = path.now + span;
    while path.now < until {
        let floor = controller.pacing(&path.rtt).map_or(Rate::ZERO, |pacing| pacing.rate);
        path.now += floor.time_for(DATAGRAM);
        let share = if controller.promise.rate() == rate("1mbit") { lost } else { then };
        // Spread evenly, so that ten acks in a row never are without a loss.
        if (path.number * share) % 20 < share {
            path.lose(controller);
        } else {
            path.ack(controller);
        }
        path.send(controller);
    }
}

#[test]
fn loss_that_lessens_at_half_the_floor_was_congestion_and_loss_that_does_not_was_the_radios() {
    for (loss, is_congestion) in [((4, 4), false), ((4, 2), false), ((4, 1), true)] {
        let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 30, rate("1mbit")));
        for _ in 0..10 {
            path.send(&mut controller);
        }
        // A fifth is lost: for a second that is noticed, for three it is put to the test.
        twentieths(&mut path, &mut controller, loss, milliseconds(1_100));
        assert_eq!(controller.promise.rate(), rate("500kbit"), "{loss:?}");
        assert_eq!(controller.take_notice(), None, "nothing is certain yet");
        twentieths(&mut path, &mut controller, loss, milliseconds(3_200));
        let text = controller.take_notice().map(|notice| notice.text).unwrap_or_default();
        assert_eq!(text.contains("less than half as much"), is_congestion, "{loss:?}: {text}");
        let expected = if is_congestion { "500kbit" } else { "1mbit" };
        assert_eq!(controller.promise.rate(), rate(expected), "{loss:?}");
        // The radio is left alone for ten seconds; congestion, too.
        twentieths(&mut path, &mut controller, loss, milliseconds(9_000));
        assert_eq!(controller.promise.rate(), rate(expected), "{loss:?}");
    }
}

/// At the floor, above it, a loss at a standing queue, and back at the floor because less than it is delivered.
fn overrun(path: &mut Path, controller: &mut Guaranteed) {
    path.rtt = steady_rtt(milliseconds(50));
    path.stream(controller, 10, milliseconds(5), milliseconds(300));
    assert_eq!(phase(controller), "congestion_avoidance");
    path.rtt.smoothed = milliseconds(100);
    path.lose(controller);
    path.rtt = steady_rtt(milliseconds(50));
    path.stream(controller, 4, milliseconds(30), milliseconds(400));
}

#[test]
fn two_losses_at_a_standing_queue_within_ten_seconds_break_the_promise() {
    for (pause, is_broken) in [(1_000, true), (11_000, false)] {
        let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("1mbit")));
        overrun(&mut path, &mut controller);
        assert_eq!(controller.promise.rate(), rate("1mbit"), "once proves nothing");
        path.now += milliseconds(pause);
        overrun(&mut path, &mut controller);
        assert_eq!(controller.promise.rate() == rate("500kbit"), is_broken, "after {pause} ms");
        let text = controller.take_notice().map(|notice| notice.text).unwrap_or_default();
        assert_eq!(text.contains("a queue overflows"), is_broken, "{text}");
    }
}

#[test]
fn the_safe_form_sends_no_more_than_two_round_trips_into_a_silence() {
    let (mut path, mut controller) = (Path::new(), controller(Variant::Safe, 10, rate("8mbit")));
    path.send(&mut controller);
    path.ack(&mut controller);
    while controller.window() > path.flight() {
        path.send(&mut controller);
        assert!(path.in_flight.len() < 10_000);
    }
    // 8 Mbit/s for 300 ms, less headers, and ten datagrams.
    assert_eq!(path.in_flight.len(), 251);
    controller.on_persistent_congestion(path.now);
    assert_eq!(controller.window(), DATAGRAM * 2, "RFC 9002 section 7.6.2");
}

#[test]
fn absurd_rates_are_harmless() {
    for variant in [Variant::Paper, Variant::Safe] {
        for min_rate in [Rate::ZERO, Rate::from_bytes_per_second(1), rate("1000gbit"), Rate::MAX] {
            let (mut path, mut controller) = (Path::new(), controller(variant, 1, min_rate));
            for _ in 0..50 {
                path.send(&mut controller);
                path.send(&mut controller);
                path.now += milliseconds(10);
                path.ack(&mut controller);
                path.lose(&mut controller);
                assert!(controller.window() >= DATAGRAM * 2);
                assert!(controller.window() <= GREATEST_WINDOW);
                if let Some(pacing) = controller.pacing(&path.rtt) {
                    assert!(pacing.rate > Rate::ZERO && pacing.burst >= DATAGRAM);
                }
            }
        }
    }
}

/// A server's controller that grants clients' words up to `most`, and promises nothing by itself.
fn trusting(most: Rate) -> Guaranteed {
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 1 };
    let parameters = Parameters { max_stated_rate: Some(most), ..Parameters::default() };
    Guaranteed::new(parameters, Box::new(Classic), limits)
}

#[test]
fn a_client_that_states_nothing_gets_cubic_from_the_first_window_on() {
    let (mut controller, mut path) = (trusting(rate("5 Mbit/s")), Path::new());
    assert_eq!((phase(&controller), controller.window()), ("slow_start", DATAGRAM * 10));
    path.stream(&mut controller, 10, milliseconds(1), milliseconds(20));
    assert!(controller.window() > DATAGRAM * 10, "{}", controller.window());
    path.lose(&mut controller);
    path.stream(&mut controller, 10, milliseconds(200), Duration::from_secs(3000));
    assert_ne!(phase(&controller), "wireless", "there is no floor to go back to");
}

#[test]
fn what_a_client_states_is_the_floor_up_to_the_bound() {
    for (stated, floor) in [("1 Mbit/s", "1 Mbit/s"), ("900 Gbit/s", "5 Mbit/s")] {
        let mut controller = trusting(rate("5 Mbit/s"));
        controller.on_stated_rate(rate(stated));
        assert_eq!(phase(&controller), "wireless");
        let promised = controller_at(rate(floor));
        assert_eq!(controller.pacing(&steady_rtt(RTT)), promised.pacing(&steady_rtt(RTT)), "{stated}");
    }
    let mut deaf = controller_at(rate("1 Mbit/s"));
    deaf.on_stated_rate(rate("5 Mbit/s"));
    assert_eq!(deaf.promise.rate(), rate("1 Mbit/s"), "nobody said that clients may");
}

fn controller_at(min_rate: Rate) -> Guaranteed {
    controller(Variant::Safe, 10, min_rate)
}

#[test]
fn doubt_outlives_a_change_of_the_number_of_connections() {
    let mut controller = trusting(rate("8 Mbit/s"));
    controller.on_stated_rate(rate("8 Mbit/s"));
    controller.promise.on_overrun(Time::ZERO + milliseconds(1));
    controller.promise.on_overrun(Time::ZERO + milliseconds(2));
    assert_eq!(controller.promise.rate(), rate("4 Mbit/s"), "halved");
    controller.on_connections(2);
    assert_eq!(controller.promise.rate(), rate("2 Mbit/s"));
    controller.on_connections(1);
    assert_eq!(controller.promise.rate(), rate("4 Mbit/s"));
    controller.on_connections(64);
    assert_ne!(phase(&controller), "wireless", "nobody is granted anything");
}
