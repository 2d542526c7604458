use posthaste_units::Rate;

use super::*;

fn seen(view: WindowView, round: u64, rate: u64, rounds_with_gaps: u32) -> WindowView {
    let rate = Some(Rate::from_bytes_per_second(rate));
    WindowView { arrivals: ArrivalView { round, rate, rounds_with_gaps }, ..view }
}

#[test]
fn each_ack_brings_the_window_up_to_date() {
    let mut policy = on_ack(64 * KIB, 64 * KIB, 0);
    let mut ask = |moment, consumed, is_ack_due| {
        let view = WindowView { is_ack_due, ..view(0, 64 * KIB, consumed, Some(100)) };
        policy.grant(moment, &view).map(ByteCount::get)
    };
    assert_eq!(ask(CreditMoment::AckLeaving, 100, false), Some(100), "no threshold");
    assert_eq!(ask(CreditMoment::AckLeaving, 0, false), None, "nothing has changed");
    assert_eq!(ask(CreditMoment::Consumed, 100, true), None, "an ack will leave soon");
    assert_eq!(ask(CreditMoment::Consumed, 64 * KIB, true), None);
    assert_eq!(ask(CreditMoment::Consumed, 100, false), None, "half is left");
    assert_eq!(
        ask(CreditMoment::Consumed, 33 * KIB, false),
        Some(33 * KIB),
        "a late reader's peer must be told"
    );
    assert_eq!(ask(CreditMoment::Blocked, 100, true), Some(100), "at once");
}

#[test]
fn with_each_ack_the_window_follows_the_rate_since_the_last() {
    let (initial, maximum) = (ByteCount::new(16 * KIB), ByteCount::new(64 * KIB));
    let follow = on_ack::Follow::Ack;
    let mut policy = OnAck::new(on_ack::Parameters {
        initial,
        maximum,
        follow,
        variant: Variant::Paper,
        ..policy_parameters()
    });
    let mut windows = Vec::new();
    // Acks 10 ms apart, of 1,000, 1,000, 2,000, 3,000 and 2,000 bytes.
    let mut received = 0;
    for (number, more) in [1000, 1000, 2000, 3000, 2000].into_iter().enumerate() {
        received += more;
        let now = 10 * (number as u64 + 1);
        let view = WindowView { received: ByteCount::new(received), ..view(now, 64 * KIB, 0, Some(100)) };
        policy.grant(CreditMoment::Consumed, &view);
        policy.grant(CreditMoment::AckLeaving, &view);
        windows.push((policy.window().get() - 16 * KIB) / 1200);
    }
    // The first ack begins, the second has the first rate.
    assert_eq!(windows, [0, 0, 1, 2, 1]);
}

#[test]
fn a_packet_rate_as_printed_falls_while_the_window_stays() {
    let window = ByteCount::new(16 * KIB);
    let mut policy = OnAck::new(on_ack::Parameters {
        initial: window,
        maximum: window,
        packet_rate: on_ack::PacketRate::Printed,
        variant: Variant::Paper,
        ..policy_parameters()
    });
    let mut limits = Vec::new();
    for round in 0..20 {
        let view = seen(view(round * 100, 0, 0, Some(100)), round, 100_000, 0);
        limits.push(policy.grant(CreditMoment::AckLeaving, &view).unwrap().get());
    }
    assert_eq!(limits[..4], [16 * KIB, 16 * KIB - 1200, 16 * KIB - 2400, 16 * KIB - 3600]);
    assert_eq!(limits[19], 2400, "two packets are left");
}

#[test]
fn the_safe_form_renews_a_datagram_at_a_time() {
    let window = ByteCount::new(16 * KIB);
    let mut policy = OnAck::new(on_ack::Parameters {
        initial: window,
        maximum: window,
        step: 0,
        combined: true,
        variant: Variant::Safe,
        ..policy_parameters()
    });
    let mut ask =
        |moment, consumed| policy.grant(moment, &view(0, 16 * KIB, consumed, Some(100))).map(ByteCount::get);
    assert_eq!(ask(CreditMoment::AckLeaving, 1199), None);
    assert_eq!(ask(CreditMoment::AckLeaving, 1200), Some(1200));
    assert_eq!(ask(CreditMoment::Blocked, 10), Some(10), "who is blocked gets what there is");
    // A window of less than two datagrams is renewed at half, or a blocked sender would get nothing.
    let small = ByteCount::new(2 * KIB);
    let parameters = on_ack::Parameters { initial: small, maximum: small, ..policy_parameters() };
    let mut policy = OnAck::new(parameters);
    let mut ask = |consumed| policy.grant(CreditMoment::AckLeaving, &view(0, 2 * KIB, consumed, None));
    assert_eq!(ask(KIB), None);
    assert_eq!(ask(KIB + 1), Some(ByteCount::new(KIB + 1)));
}

#[test]
fn the_safe_form_renews_a_64th_of_a_large_window_at_a_time() {
    let window = ByteCount::new(1024 * KIB);
    let parameters = on_ack::Parameters { initial: window, maximum: window, ..policy_parameters() };
    for (variant, least) in [(Variant::Safe, 16 * KIB), (Variant::Paper, 1)] {
        let mut policy = OnAck::new(on_ack::Parameters { variant, ..parameters });
        let mut ask = |moment, consumed| {
            policy.grant(moment, &view(0, 1024 * KIB, consumed, Some(100))).map(ByteCount::get)
        };
        assert_eq!(ask(CreditMoment::AckLeaving, least - 1), None);
        assert_eq!(ask(CreditMoment::AckLeaving, least), Some(least));
        assert_eq!(ask(CreditMoment::AckLeaving, 600 * KIB), Some(600 * KIB));
    }
}

/// The window in KiB after each call: a peer says that it is blocked at `now` ms, with so many KiB received and unread.
fn windows_of_a_blocked_peer(variant: Variant, calls: [(u64, u64, u64); 5]) -> [u64; 5] {
    let maximum = ByteCount::new(256 * KIB);
    let mut policy = OnAck::new(on_ack::Parameters { maximum, variant, ..policy_parameters() });
    calls.map(|(now, received, readable)| {
        let mut view = view(now, 64 * KIB, 0, Some(100));
        (view.received, view.readable) = (ByteCount::new(received * KIB), ByteCount::new(readable * KIB));
        policy.grant(CreditMoment::Blocked, &view);
        policy.window().get() / KIB
    })
}

#[test]
fn a_peer_that_is_blocked_doubles_the_safe_window_once_a_round_trip() {
    // In the first call the reader is behind, which is no reason for more; the third comes within a round trip.
    let calls = [(0, 64, 64), (0, 64, 0), (99, 192, 0), (100, 192, 0), (300, 448, 0)];
    assert_eq!(windows_of_a_blocked_peer(Variant::Safe, calls), [64, 128, 128, 256, 256]);
    assert_eq!(windows_of_a_blocked_peer(Variant::Paper, calls), [64; 5]);
}

#[test]
fn a_peer_that_says_that_it_is_blocked_and_sends_nothing_gets_no_larger_window() {
    let calls = [(0, 31, 0), (0, 32, 0), (100, 95, 0), (200, 95, 0), (300, 96, 0)];
    assert_eq!(windows_of_a_blocked_peer(Variant::Safe, calls), [64, 128, 128, 128, 256]);
}

fn policy_parameters() -> on_ack::Parameters {
    let window = ByteCount::new(64 * KIB);
    let variant = Variant::Safe;
    on_ack::Parameters {
        initial: window,
        maximum: window,
        step: 1,
        combined: true,
        variant,
        follow: on_ack::Follow::Round,
        packet_rate: on_ack::PacketRate::Window,
        field: None,
    }
}

#[test]
fn the_window_moves_a_step_a_round_with_the_rate() {
    let mut policy = on_ack(16 * KIB, 1024 * KIB, 2);
    let mut ask = |round, rate, gaps| {
        policy.grant(CreditMoment::AckLeaving, &seen(view(0, 16 * KIB, 0, Some(100)), round, rate, gaps));
        policy.window().get()
    };
    let first = 16 * KIB;
    assert_eq!(ask(1, 1000, 0), first, "nothing to compare with");
    assert_eq!(ask(2, 2000, 0), first + 2400);
    assert_eq!(ask(2, 9000, 0), first + 2400, "once a round");
    assert_eq!(ask(3, 2020, 0), first + 2400, "1 % is equal");
    assert_eq!(ask(4, 2041, 0), first + 4800, "a little more than 1 % is not");
    assert_eq!(ask(5, 2000, 0), first + 2400);
    assert_eq!(ask(6, 3000, 1), first + 4800, "one round of loss is not yet repeated");
    assert_eq!(ask(7, 4000, 2), first + 4800, "two in a row are: no growth");
    assert_eq!(ask(8, 5000, 3), first + 4800);
    assert_eq!(ask(9, 6000, 0), first + 7200, "a round without new gaps ends that");
    assert_eq!(ask(10, 10, 2), first + 4800, "a lower rate counts all the same");
    for round in 11..20 {
        ask(round, 10 - (round - 10), 0);
    }
    assert_eq!(ask(20, 0, 0), first, "never below the first window");
}

#[test]
fn a_step_of_nothing_keeps_the_window_and_a_smaller_one_takes_no_credit_back() {
    let mut still = on_ack(16 * KIB, 1024 * KIB, 0);
    for round in 1..10 {
        still.grant(CreditMoment::AckLeaving, &seen(view(0, 16 * KIB, 0, Some(100)), round, round * 1000, 0));
    }
    assert_eq!(still.window().get(), 16 * KIB);

    let mut policy = on_ack(16 * KIB, 1024 * KIB, 1);
    let mut advertised = 16 * KIB;
    let mut ask = |consumed, round, rate| {
        let view = seen(view(0, advertised, consumed, Some(100)), round, rate, 0);
        let advance = policy.grant(CreditMoment::AckLeaving, &view).map_or(0, ByteCount::get);
        advertised += advance;
        advance
    };
    assert_eq!(ask(0, 1, 1000), 0);
    assert_eq!(ask(0, 2, 2000), 1200);
    assert_eq!(ask(0, 3, 1000), 0, "the limit stays");
    assert_eq!(ask(1200, 4, 1000), 0, "and grows again once the smaller window is used");
    assert_eq!(ask(1300, 5, 1000), 100);
}

#[test]
fn absurd_rates_do_no_harm() {
    let mut policy = on_ack(16 * KIB, 1024 * KIB, 1000);
    for (round, rate) in [(1, 0), (2, u64::MAX), (3, 0), (u64::MAX, 1)] {
        policy.grant(CreditMoment::AckLeaving, &seen(view(0, 0, 0, None), round, rate, u32::MAX));
        assert!((16 * KIB..=1024 * KIB).contains(&policy.window().get()));
    }
}
