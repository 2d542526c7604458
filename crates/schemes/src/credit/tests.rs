use posthaste_policy::Credit;
use posthaste_policy::sample::{ArrivalView, CreditMoment};
use posthaste_units::{Duration, Time};
use proptest::prelude::*;

use super::autotune::Autotune;
use super::demand::Demand;
use super::fast::Fast;
use super::fixed::Fixed;
use super::improved::{self, Improved};
use super::on_ack::OnAck;
use super::*;
use crate::testing::milliseconds;

mod demand_tests;
mod fast_tests;
mod on_ack_tests;

const KIB: u64 = 1024;

fn autotune(initial: u64, maximum: u64) -> Autotune {
    Autotune::new(autotune::Parameters {
        initial: ByteCount::new(initial),
        maximum: ByteCount::new(maximum),
        grows_at: 2,
    })
}

fn fast(initial: u64, maximum: u64, variant: Variant) -> Fast {
    let (initial, maximum) = (ByteCount::new(initial), ByteCount::new(maximum));
    Fast::new(fast_parameters(initial, maximum, variant))
}

fn fast_parameters(initial: ByteCount, maximum: ByteCount, variant: Variant) -> fast::Parameters {
    fast::Parameters {
        initial,
        maximum,
        grows_at: 2,
        factors: [16, 8, 4, 2],
        thresholds: [25, 50, 75],
        variant,
    }
}

fn on_ack(initial: u64, maximum: u64, step: u64) -> OnAck {
    let (initial, maximum) = (ByteCount::new(initial), ByteCount::new(maximum));
    let variant = Variant::Paper;
    OnAck::new(on_ack::Parameters {
        initial,
        maximum,
        step,
        combined: true,
        variant,
        follow: on_ack::Follow::Round,
        packet_rate: on_ack::PacketRate::Window,
        field: None,
    })
}

fn improved(window: u64) -> Improved {
    Improved::new(improved::Parameters { window: ByteCount::new(window) })
}

fn view(now: u64, advertised: u64, consumed: u64, rtt: Option<u64>) -> WindowView {
    WindowView {
        now: Time::ZERO + milliseconds(now),
        advertised: ByteCount::new(advertised),
        received: ByteCount::new(advertised),
        consumed: ByteCount::new(consumed),
        readable: ByteCount::ZERO,
        rtt: rtt.map(Duration::from_millis),
        max_datagram_size: ByteCount::new(1200),
        allowance: None,
        arrivals: ArrivalView::default(),
        is_ack_due: false,
    }
}

/// Reads `step` bytes every `interval` milliseconds; each grant as (time, advance, window) in KiB.
fn read(
    policy: &mut dyn Credit,
    step: u64,
    interval: u64,
    rtt: Option<u64>,
    count: u64,
) -> Vec<(u64, u64, u64)> {
    let mut advertised = policy.initial_window().get();
    let mut grants = Vec::new();
    for index in 1..=count {
        let now = index * interval;
        let view = view(now, advertised, index * step, rtt);
        if let Some(advance) = policy.grant(CreditMoment::Consumed, &view) {
            advertised += advance.get();
            grants.push((now, advance.get() / KIB, policy.window().get() / KIB));
        }
    }
    grants
}

#[test]
fn fixed_renews_when_less_than_half_is_left() {
    let mut fixed = Fixed::new(fixed::Parameters { window: ByteCount::new(64 * KIB) });
    assert_eq!(fixed.initial_window(), ByteCount::new(64 * KIB));
    let ask =
        |fixed: &mut Fixed, consumed| fixed.grant(CreditMoment::Consumed, &view(0, 64 * KIB, consumed, None));
    assert_eq!(ask(&mut fixed, 0), None);
    assert_eq!(ask(&mut fixed, 32 * KIB), None, "exactly half is left");
    assert_eq!(ask(&mut fixed, 32 * KIB + 1), Some(ByteCount::new(32 * KIB + 1)));
    let grants = read(&mut fixed, 4 * KIB, 10, Some(100), 40);
    assert_eq!(grants, [(90, 36, 64), (180, 36, 64), (270, 36, 64), (360, 36, 64)]);
}

#[test]
fn improved_renews_a_datagram_earlier_and_so_uses_the_whole_window() {
    let mut policy = improved(64 * KIB);
    let mut ask = |consumed| policy.grant(CreditMoment::Consumed, &view(0, 64 * KIB, consumed, None));
    assert_eq!(ask(32 * KIB - 1200), None, "exactly half and a datagram is left");
    assert_eq!(ask(32 * KIB - 1199), Some(ByteCount::new(32 * KIB - 1199)));
    // The paper's point: 4 KB in datagrams of 1 KB. Half the window is 2 KB: static renews with the third datagram,
    // when the sender has one left, improved with the second.
    let datagram = |consumed| {
        let mut view = view(0, 4 * KIB, consumed, None);
        view.max_datagram_size = ByteCount::new(KIB);
        view
    };
    let first = |policy: &mut dyn Credit| {
        (1..=4).find(|count| policy.grant(CreditMoment::Consumed, &datagram(count * KIB)).is_some())
    };
    assert_eq!(first(&mut Fixed::new(fixed::Parameters { window: ByteCount::new(4 * KIB) })), Some(3));
    assert_eq!(first(&mut improved(4 * KIB)), Some(2));
    // A window of two datagrams is not renewed for each byte.
    let mut tiny = improved(2 * KIB);
    assert_eq!(tiny.grant(CreditMoment::Consumed, &view(0, 2 * KIB, 1, None)), None);
}

#[test]
fn a_peer_blocked_by_unread_data_waits_for_the_reader() {
    let mut policies: [Box<dyn Credit>; 4] = [
        Box::new(Fixed::new(fixed::Parameters { window: ByteCount::new(64 * KIB) })),
        Box::new(improved(64 * KIB)),
        Box::new(autotune(64 * KIB, 256 * KIB)),
        Box::new(fast(64 * KIB, 256 * KIB, Variant::Paper)),
    ];
    for policy in &mut policies {
        for moment in [CreditMoment::Blocked, CreditMoment::AckLeaving, CreditMoment::Consumed] {
            assert_eq!(policy.grant(moment, &view(1, 64 * KIB, 0, Some(50))), None);
        }
        let granted = policy.grant(CreditMoment::Blocked, &view(1, 64 * KIB, 64 * KIB, Some(50)));
        assert_eq!(granted, Some(ByteCount::new(64 * KIB)), "but not when it has been read");
    }
}

#[test]
fn autotune_doubles_while_updates_are_less_than_two_round_trips_apart() {
    // 8 KiB each 10 ms on a path of 100 ms: 80 KiB a round trip, in a window that begins at 16.
    let grants = read(&mut autotune(16 * KIB, 256 * KIB), 8 * KIB, 10, Some(100), 100);
    // The second update doubles, and so on, until half a window lasts two round trips: 256 KiB is the bound.
    assert_eq!(grants[..5], [(20, 16, 16), (40, 32, 32), (70, 56, 64), (120, 104, 128), (210, 200, 256)]);
    assert!(grants[5..].iter().all(|(_, _, window)| *window == 256), "{grants:?}");
}

#[test]
fn autotune_stops_where_two_round_trips_pass_between_updates() {
    // 16 KiB a round trip: a window of 64 is renewed after 33 or more, which is two round trips and a bit.
    let grants = read(&mut autotune(16 * KIB, 1024 * KIB), 4 * KIB, 25, Some(100), 400);
    assert_eq!(grants.last().map(|(_, _, window)| *window), Some(64), "{grants:?}");
    let last_growth = grants.iter().position(|(_, _, window)| *window == 64).unwrap();
    assert!(grants.len() > last_growth + 10);
}

#[test]
fn two_round_trips_between_updates_are_slow_enough() {
    let mut policy = autotune(64 * KIB, 1024 * KIB);
    let mut ask = |now, consumed| {
        policy.grant(CreditMoment::Consumed, &view(now, consumed, consumed, Some(100)));
        policy.window().get() / KIB
    };
    assert_eq!([ask(0, 1), ask(200, 2), ask(399, 3), ask(598, 4), ask(798, 5)], [64, 64, 128, 256, 256]);
}

#[test]
fn autotune_without_an_rtt_does_not_guess() {
    let grants = read(&mut autotune(16 * KIB, 1024 * KIB), 8 * KIB, 1, None, 100);
    assert!(grants.len() > 20 && grants.iter().all(|(_, _, window)| *window == 16), "{grants:?}");
}

#[test]
fn limits_stop_at_what_the_wire_can_carry() {
    let top = (1 << 62) - 1;
    let mut fixed = Fixed::new(fixed::Parameters { window: ByteCount::new(64 * KIB) });
    let mut ask =
        |advertised, consumed| fixed.grant(CreditMoment::Consumed, &view(0, advertised, consumed, None));
    assert_eq!(ask(top - 10, top - 10), Some(ByteCount::new(10)));
    assert_eq!(ask(top, top), None);
    assert_eq!(ask(u64::MAX, u64::MAX), None);
}

proptest! {
    /// Whatever a peer, a reader and the clock do: the limit only advances, never past the wire's bound, and never
    /// further ahead of the reader than the greatest window.
    #[test]
    fn limits_only_advance_and_stay_within_the_window(
        initial in KIB..64 * KIB,
        factor in 1_u64..64,
        start in prop_oneof![Just(0_u64), Just((1 << 62) - 100_000)],
        events in prop::collection::vec((0_u64..3, 0_u64..2_000_000, 0_u64..100_000, any::<Option<u64>>()), 1..200),
    ) {
        let top = initial * factor;
        let room = 4;
        let (least, most) = (ByteCount::new(initial), ByteCount::new(top));
        let policies: [(Box<dyn Credit>, u64); 7] = [
            (Box::new(Fixed::new(fixed::Parameters { window: ByteCount::new(initial) })), initial),
            (Box::new(improved(initial)), initial),
            (Box::new(autotune(initial, top)), top),
            (Box::new(fast(initial, top, Variant::Paper)), top),
            (Box::new(fast(initial, top, Variant::Safe)), top),
            (Box::new(on_ack(initial, top, factor)), top),
            (Box::new(Demand::new(demand::Parameters { initial: least, maximum: most, room })), top),
        ];
        for (mut policy, greatest) in policies {
            let (mut now, mut consumed) = (0, start);
            let mut advertised = start + policy.initial_window().get();
            for (moment, passed, read, rtt) in &events {
                now += passed / 1000;
                consumed = (consumed + read).min(advertised);
                let moment =
                    [CreditMoment::Consumed, CreditMoment::AckLeaving, CreditMoment::Blocked][*moment as usize];
                let mut view = view(now, advertised, consumed, None);
                view.rtt = rtt.map(Duration::from_nanos);
                if let Some(advance) = policy.grant(moment, &view) {
                    prop_assert!(advance.get() > 0);
                    advertised += advance.get();
                    prop_assert!(advertised < 1 << 62);
                    prop_assert!(advertised - consumed <= greatest);
                }
                let left = advertised - consumed;
                // Whatever has been read away is renewed once half of it is gone.
                prop_assert!(left >= policy.window().get() / 2 || advertised == (1 << 62) - 1 || left * 2 >= initial);
                prop_assert!(policy.window().get() <= greatest);
            }
        }
    }
}
