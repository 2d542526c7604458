use super::super::demand::{self, Demand};
use super::*;

fn demand(initial: u64, maximum: u64) -> Demand {
    let (initial, maximum) = (ByteCount::new(initial), ByteCount::new(maximum));
    Demand::new(demand::Parameters { initial, maximum, room: 4 })
}

/// A receiver on a path with a round trip of 100 ms: what has arrived and what has been read, in bytes.
struct Receiver {
    policy: Demand,
    now: u64,
    advertised: u64,
    received: u64,
    ordered: u64,
    consumed: u64,
    allowance: Option<u64>,
}

impl Receiver {
    fn new(initial: u64, maximum: u64) -> Self {
        let policy = demand(initial, maximum);
        Self { policy, now: 0, advertised: initial, received: 0, ordered: 0, consumed: 0, allowance: None }
    }

    fn ask(&mut self, moment: CreditMoment) -> Option<u64> {
        let mut view = view(self.now, self.advertised, self.consumed, Some(100));
        view.received = ByteCount::new(self.received);
        view.readable = ByteCount::new(self.ordered - self.consumed);
        view.allowance = self.allowance.map(ByteCount::new);
        let advance = self.policy.grant(moment, &view)?.get();
        self.advertised += advance;
        Some(advance)
    }

    /// `bytes` arrive in a round trip, ten portions of them, all of it beyond a hole or none; true if the sender had
    /// the credit for each of them.
    fn round(&mut self, bytes: u64, is_beyond_hole: bool) -> bool {
        let mut is_free = true;
        for _ in 0..10 {
            self.now += 10;
            let portion = (bytes / 10).min(self.advertised - self.received);
            is_free &= portion == bytes / 10;
            self.received += portion;
            if !is_beyond_hole {
                self.ordered = self.received;
                self.consumed = self.received;
                self.ask(CreditMoment::Consumed);
            }
            self.ask(CreditMoment::AckLeaving);
        }
        is_free
    }

    fn ahead(&self) -> u64 {
        self.advertised - self.received
    }
}

#[test]
fn a_sender_that_triples_its_flight_each_round_trip_never_waits() {
    for is_beyond_hole in [false, true] {
        let mut receiver = Receiver::new(256 * KIB, 1 << 30);
        let mut flight = 46_000;
        for round in 0..8 {
            // What the sender is told now arrives a round trip later: then three times as much comes.
            let credit = receiver.ahead();
            assert!(credit >= flight, "round {round}, hole: {is_beyond_hole}: {credit} of {flight}");
            assert!(receiver.round(flight, is_beyond_hole));
            flight *= 3;
        }
    }
}

#[test]
fn what_waits_behind_holes_is_granted_again_and_what_waits_for_the_reader_is_not() {
    let mut receiver = Receiver::new(64 * KIB, 1 << 30);
    for _ in 0..4 {
        assert!(receiver.round(50 * KIB, false));
    }
    let in_order = receiver.ahead();
    assert!((175 * KIB..=200 * KIB).contains(&in_order), "four round trips less an eighth: {in_order}");
    // Five more round trips, all of it behind a hole: the sender has as much credit as before.
    for _ in 0..5 {
        assert!(receiver.round(50 * KIB, true));
        assert!(receiver.ahead() >= in_order - 25 * KIB);
    }
    // The hole is filled, and nobody reads.
    receiver.ordered = receiver.received;
    let before = receiver.advertised;
    for moment in [CreditMoment::AckLeaving, CreditMoment::Consumed, CreditMoment::Blocked] {
        receiver.now += 100;
        assert_eq!(receiver.ask(moment), None);
    }
    assert_eq!(receiver.advertised, before);
    // Half of it is read: that much less waits.
    receiver.consumed += 125 * KIB;
    assert!(receiver.ask(CreditMoment::Consumed).is_some());
}

#[test]
fn a_slow_reader_is_granted_no_more_than_the_first_window() {
    let mut receiver = Receiver::new(64 * KIB, 1 << 30);
    for _ in 0..200 {
        receiver.now += 10;
        // The sender fills what it is granted; the reader takes 1 KiB in 10 ms.
        receiver.received = receiver.advertised;
        receiver.ordered = receiver.received;
        receiver.consumed += KIB;
        receiver.ask(CreditMoment::Consumed);
        receiver.ask(CreditMoment::Blocked);
        assert!(receiver.advertised - receiver.consumed <= 64 * KIB);
    }
    assert!(receiver.advertised > 200 * KIB, "and goes on");
}

#[test]
fn a_window_that_is_no_longer_used_shrinks_and_never_below_the_first() {
    let mut receiver = Receiver::new(64 * KIB, 1 << 30);
    for _ in 0..5 {
        receiver.round(200 * KIB, false);
    }
    let greatest = receiver.policy.window().get();
    assert!((800 * KIB..900 * KIB).contains(&greatest), "{greatest}");
    let mut last = greatest;
    for _ in 0..60 {
        receiver.round(KIB, false);
        let window = receiver.policy.window().get();
        assert!(window <= last && window >= 64 * KIB);
        last = window;
    }
    assert_eq!(last, 64 * KIB);
}

#[test]
fn a_sender_that_only_repairs_finds_its_window_again() {
    let mut receiver = Receiver::new(64 * KIB, 1 << 30);
    for _ in 0..5 {
        receiver.round(200 * KIB, false);
    }
    let window = receiver.policy.window();
    receiver.round(200 * KIB, true);
    for _ in 0..20 {
        receiver.round(0, true);
    }
    assert_eq!(receiver.policy.window(), window, "nothing new came, for the hole was repaired");
    assert!(receiver.round(200 * KIB, true) && receiver.round(400 * KIB, true));
}

#[test]
fn a_peer_that_leaves_a_hole_for_ever_is_granted_the_maximum_and_not_a_byte_more() {
    for (maximum, allowance) in [(1 << 20, None), (1 << 30, Some(1 << 20))] {
        let mut receiver = Receiver::new(64 * KIB, maximum);
        receiver.allowance = allowance;
        for _ in 0..40 {
            receiver.round(100 * KIB, true);
            assert!(receiver.advertised <= 1 << 20);
        }
        assert!(receiver.advertised > 7 << 17, "nearly all of it: {}", receiver.advertised);
    }
}

#[test]
fn renewals_are_few_and_a_lost_one_leaves_credit_for_two_round_trips() {
    let mut receiver = Receiver::new(64 * KIB, 1 << 30);
    for _ in 0..10 {
        receiver.round(100 * KIB, false);
    }
    let mut renewals = 0;
    for _ in 0..1000 {
        receiver.now += 1;
        receiver.received += KIB;
        receiver.ordered = receiver.received;
        receiver.consumed = receiver.received;
        if let Some(advance) = receiver.ask(CreditMoment::AckLeaving) {
            renewals += 1;
            assert!(receiver.ahead() - advance >= 300 * KIB, "{advance} of {}", receiver.ahead());
        }
    }
    assert!((10..=25).contains(&renewals), "{renewals} in ten round trips");
}

#[test]
fn without_a_round_trip_nothing_is_guessed() {
    let grants = read(&mut demand(16 * KIB, 1024 * KIB), 8 * KIB, 1, None, 100);
    assert!(grants.len() > 20 && grants.iter().all(|(_, _, window)| *window == 16), "{grants:?}");
}

#[test]
fn a_budget_that_is_short_is_used_up_and_kept() {
    let mut policy = demand(64 * KIB, 256 * KIB);
    for (consumed, granted) in [(91, None), (93, Some(3 * KIB)), (97, Some(7 * KIB)), (90, None)] {
        let mut view = view(0, 100 * KIB, consumed * KIB, None);
        view.allowance = Some(ByteCount::new(10 * KIB));
        let advance = policy.grant(CreditMoment::Consumed, &view).map(ByteCount::get);
        assert_eq!(advance, granted, "{consumed}");
    }
}
