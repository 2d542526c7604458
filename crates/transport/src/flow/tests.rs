use proptest::prelude::*;

use super::*;

/// Grants whatever it was told to grant next.
#[derive(Debug)]
struct Scripted(Vec<Option<u64>>);

impl Credit for Scripted {
    fn initial_window(&self) -> ByteCount {
        ByteCount::new(1000)
    }

    fn grant(&mut self, _moment: CreditMoment, _view: &WindowView) -> Option<ByteCount> {
        self.0.pop().flatten().map(ByteCount::new)
    }

    fn window(&self) -> ByteCount {
        self.initial_window()
    }
}

fn context() -> CreditContext {
    CreditContext::unmeasured()
}

proptest! {
    /// Whatever a policy answers, the limit only grows and stays a varint, and each growth is announced.
    #[test]
    fn the_granted_limit_is_monotone(answers in prop::collection::vec(prop::option::of(any::<u64>()), 1..20)) {
        let count = answers.len();
        let mut window = ReceiveWindow::new(Box::new(Scripted(answers)), 1000);
        for _ in 0..count {
            let before = window.advertised();
            let is_due = window.ask(CreditMoment::Consumed, &context(), &Surroundings::default());
            prop_assert!(window.advertised() >= before && window.advertised() <= varint::MAX);
            prop_assert_eq!(is_due, window.advertised() > before);
            window.update_sent();
        }
    }

    /// Limits named by the peer in any order: the highest holds, and nothing is used beyond it.
    #[test]
    fn the_peers_limit_is_the_highest_it_named(limits in prop::collection::vec(0..1000u64, 1..20)) {
        let mut window = SendWindow::default();
        for limit in &limits {
            window.raise(*limit);
            window.take(window.available().min(100));
            prop_assert!(window.used() <= window.limit());
        }
        prop_assert_eq!(window.limit(), limits.iter().copied().max().unwrap_or(0));
    }
}

#[test]
fn a_floor_is_kept_whatever_the_policy_says_and_within_the_allowance() {
    let floor = |floor| CreditContext { floor: ByteCount::new(floor), ..context() };
    let mut window = ReceiveWindow::new(Box::new(Scripted(vec![])), 1000);
    assert!(!window.ask(CreditMoment::Consumed, &floor(2000), &Surroundings::default()), "half is there");
    assert!(window.ask(CreditMoment::Consumed, &floor(2001), &Surroundings::default()));
    assert_eq!(window.advertised(), 2001);
    window.consume(1001);
    assert!(window.ask(CreditMoment::Consumed, &floor(2001), &Surroundings::default()));
    assert_eq!(window.advertised(), 3002);
    let rationed = Surroundings { allowance: Some(5000), ..Surroundings::default() };
    window.ask(CreditMoment::Consumed, &floor(u64::MAX), &rationed);
    assert_eq!(window.advertised(), 6001, "5,000 ahead of what was read");
    window.ask(CreditMoment::Consumed, &floor(0), &Surroundings::default());
    assert_eq!(window.advertised(), 6001, "it never shrinks");
}

#[test]
fn bytes_beyond_the_limit_are_not_permitted_and_sums_do_not_overflow() {
    let mut window = ReceiveWindow::new(Box::new(Scripted(vec![])), 1000);
    assert!(window.permits(1000) && !window.permits(1001) && !window.permits(u64::MAX));
    window.receive(1000);
    assert!(window.permits(0) && !window.permits(1));
    window.receive(u64::MAX);
    window.consume(u64::MAX);
    assert!(!window.permits(0));
}

#[test]
fn each_limit_is_reported_as_blocking_once_and_again_only_if_that_was_lost() {
    // spec: rfc9000 4.1 lower-limit-is-void, 13.3 outdated-frames-taken
    let mut window = SendWindow::new(10);
    window.mark_blocked();
    assert_eq!(window.pending_report(), None, "there is room");
    window.take(10);
    window.mark_blocked();
    assert_eq!(window.pending_report(), Some(10));
    window.report_sent();
    window.mark_blocked();
    assert_eq!(window.pending_report(), None);
    window.report_lost();
    assert_eq!(window.pending_report(), Some(10));
    assert!(window.raise(20) && !window.raise(15));
    assert_eq!(window.pending_report(), None);
    window.report_lost();
    assert_eq!(window.pending_report(), None, "the limit that blocked is history");
    window.take(10);
    window.mark_blocked();
    assert_eq!(window.pending_report(), Some(20));
}
