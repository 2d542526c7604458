use super::*;

const VARIANTS: [Variant; 2] = [Variant::Paper, Variant::Safe];

#[test]
fn the_factor_at_and_around_each_border() {
    let k = |window: u64, maximum: u64| {
        let maximum = ByteCount::new(maximum);
        fast_parameters(ByteCount::new(1024), maximum, Variant::Paper).factor(ByteCount::new(window))
    };
    // The cap hides K in the window from 6.25 % on, so K itself is what is looked at.
    let bound = 400;
    assert_eq!([k(1, bound), k(25, bound), k(99, bound)], [16, 16, 16]);
    assert_eq!([k(100, bound), k(101, bound), k(199, bound)], [8, 8, 8], "from exactly 25 % on");
    assert_eq!([k(200, bound), k(201, bound), k(299, bound), k(300, bound)], [4, 4, 4, 4], "50 % to 75 %");
    assert_eq!([k(301, bound), k(400, bound)], [2, 2]);
    // Bounds that four does not divide: nothing is rounded.
    assert_eq!([k(25, 101), k(26, 101), k(50, 101), k(51, 101), k(75, 101), k(76, 101)], [16, 8, 8, 4, 4, 2]);
    assert_eq!([k(u64::MAX, u64::MAX), k(u64::MAX / 2, u64::MAX), k(0, 1)], [2, 8, 16]);
}

#[test]
fn the_worked_example_of_the_paper() {
    // Stream 4 KB of 128, connection 8 KB of 256; each update within two round trips of the one before.
    for variant in VARIANTS {
        let grow = |initial: u64, maximum: u64| -> Vec<u64> {
            let mut policy = fast(initial * KIB, maximum * KIB, variant);
            let mut advertised = initial * KIB;
            let windows = (0..4).map(|update| {
                let view = view(update * 100, advertised, advertised, Some(100));
                advertised += policy.grant(CreditMoment::Consumed, &view).unwrap().get();
                policy.window().get() / KIB
            });
            windows.collect()
        };
        // The first update has none before it to be measured from.
        assert_eq!(grow(4, 128), [4, 64, 128, 128]);
        assert_eq!(grow(8, 256), [8, 128, 256, 256]);
        // fa-small: 4 of 16 KB is 25 %, K = 8, and the bound cuts it to 16.
        assert_eq!(grow(4, 16), [4, 16, 16, 16]);
        // fa-large, by the rule: 8 KB, 128 KB (K = 16), then 12.5 % is still below 25 %.
        assert_eq!(grow(8, 1024), [8, 128, 1024, 1024]);
        assert_eq!(
            grow(8, 512),
            [8, 128, 512, 512],
            "the paper's trace has a bound of 512 KB, or stops there"
        );
    }
}

#[test]
fn growth_at_the_first_second_or_third_update_gives_the_papers_three_readings() {
    let windows = |mut policy: Box<dyn Credit>| -> Vec<u64> {
        let mut advertised = 4 * KIB;
        let windows = (0..4).map(|update| {
            let view = view(update * 170, advertised, advertised, Some(170));
            advertised += policy.grant(CreditMoment::Consumed, &view).unwrap().get();
            policy.window().get() / KIB
        });
        windows.collect()
    };
    let (initial, maximum) = (ByteCount::new(4 * KIB), ByteCount::new(128 * KIB));
    let at = |grows_at: u32| {
        let fast = fast::Parameters { grows_at, ..fast_parameters(initial, maximum, Variant::Paper) };
        let autotune = autotune::Parameters { initial, maximum, grows_at };
        [windows(Box::new(Fast::new(fast))), windows(Box::new(Autotune::new(autotune)))]
    };
    assert_eq!(at(1), [vec![64, 128, 128, 128], vec![8, 16, 32, 64]], "the worked example");
    assert_eq!(at(2), [vec![4, 64, 128, 128], vec![4, 8, 16, 32]], "the rule of the text");
    assert_eq!(at(3), [vec![4, 4, 64, 128], vec![4, 4, 8, 16]], "the trace");
}

#[test]
fn factors_and_thresholds_are_parameters() {
    let base = fast_parameters(ByteCount::new(1024), ByteCount::new(1000), Variant::Paper);
    let own = fast::Parameters { factors: [8, 4, 2, 1], thresholds: [10, 20, 30], ..base };
    let factors = [99, 100, 199, 200, 300, 301].map(|window| own.factor(ByteCount::new(window)));
    assert_eq!(factors, [8, 4, 4, 2, 2, 1]);
}

#[test]
fn by_the_rule_fa_small_grows_at_the_second_update_whoever_grows() {
    // The paper's traces have one update more without growth: 8/8/16/24/32 KB for both streams, and 8/8/32.
    let windows = |mut policy: Box<dyn Credit>| -> Vec<u64> {
        let mut advertised = 4 * KIB;
        let windows = (0..4).map(|update| {
            let view = view(update * 170, advertised, advertised, Some(170));
            advertised += policy.grant(CreditMoment::Consumed, &view).unwrap().get();
            policy.window().get() / KIB
        });
        windows.collect()
    };
    assert_eq!(windows(Box::new(Fixed::new(fixed::Parameters { window: ByteCount::new(4 * KIB) }))), [4; 4]);
    assert_eq!(windows(Box::new(improved(4 * KIB))), [4; 4]);
    assert_eq!(windows(Box::new(autotune(4 * KIB, 16 * KIB))), [4, 8, 16, 16]);
    assert_eq!(windows(Box::new(fast(4 * KIB, 16 * KIB, Variant::Paper))), [4, 16, 16, 16]);
}

#[test]
fn updates_two_round_trips_apart_keep_the_window() {
    for variant in VARIANTS {
        let mut policy = fast(64 * KIB, 1024 * KIB, variant);
        let mut ask = |now, consumed| {
            policy.grant(CreditMoment::Consumed, &view(now, consumed, consumed, Some(100)));
            policy.window().get() / KIB
        };
        assert_eq!([ask(0, 1), ask(200, 2), ask(400, 3), ask(599, 4), ask(800, 5)], [64, 64, 64, 1024, 1024]);
        let grants = read(&mut fast(16 * KIB, 1024 * KIB, variant), 8 * KIB, 1, None, 100);
        assert!(grants.iter().all(|(_, _, window)| *window == 16), "without an RTT nothing is guessed");
    }
}

#[test]
fn fast_finds_the_window_in_fewer_updates_than_doubling() {
    // 80 KiB a round trip; the bound is far away.
    let updates_to = |policy: &mut dyn Credit, window: u64| {
        let grants = read(policy, 8 * KIB, 10, Some(100), 200);
        grants.iter().position(|grant| grant.2 >= window).unwrap()
    };
    assert_eq!(updates_to(&mut fast(4 * KIB, 256 * KIB, Variant::Paper), 64), 1);
    assert_eq!(updates_to(&mut autotune(4 * KIB, 256 * KIB), 64), 4);
}

#[test]
fn a_blocked_peer_that_has_used_its_limit_up_is_evidence_at_once() {
    let blocked = |received: u64, consumed: u64| {
        let mut view = view(0, 64 * KIB, consumed * KIB, Some(100));
        view.received = ByteCount::new(received * KIB);
        view
    };
    let ask = |variant, view: &WindowView| {
        let mut policy = fast(64 * KIB, 1024 * KIB, variant);
        let advance = policy.grant(CreditMoment::Blocked, view);
        (advance.map(|advance| advance.get() / KIB), policy.window().get() / KIB)
    };
    assert_eq!(ask(Variant::Safe, &blocked(64, 60)), (Some(1020), 1024), "the reader is but a little behind");
    assert_eq!(ask(Variant::Paper, &blocked(64, 60)), (Some(60), 64));
    assert_eq!(
        ask(Variant::Safe, &blocked(40, 40)),
        (Some(40), 64),
        "a limit that is not used up is old news"
    );
    // A reader that is behind is no reason to grow, and none to grant.
    let mut behind = blocked(64, 10);
    behind.readable = ByteCount::new(54 * KIB);
    assert_eq!(ask(Variant::Safe, &behind), (None, 64));
}

#[test]
fn a_peer_that_is_blocked_because_nobody_reads_any_more_is_no_evidence() {
    let mut policy = fast(64 * KIB, 1024 * KIB, Variant::Safe);
    let mut ask = |moment, received: u64, consumed: u64| {
        let mut view = view(0, 64 * KIB, consumed * KIB, Some(100));
        view.received = ByteCount::new(received * KIB);
        view.readable = view.received - view.consumed;
        (policy.grant(moment, &view), policy.window().get() / KIB)
    };
    // At the beginning all that has come is read.
    assert_eq!(ask(CreditMoment::Consumed, 4, 4), (None, 64));
    // Then the window fills up with what is not.
    assert_eq!(ask(CreditMoment::Blocked, 64, 4), (None, 64));
    assert_eq!(ask(CreditMoment::Blocked, 64, 20), (None, 64));
    // Once it is read, the same words are evidence.
    let (advance, window) = ask(CreditMoment::Blocked, 64, 60);
    assert!(advance.is_some() && window == 1024, "{advance:?}, {window}");
}

#[test]
fn the_safe_window_shrinks_to_a_slow_reader_and_not_below_the_first() {
    let mut policy = fast(16 * KIB, 1024 * KIB, Variant::Safe);
    let (mut advertised, mut consumed, mut windows) = (16 * KIB, 0, Vec::new());
    for step in 0..3000 {
        // The first part of the data is read at once; then the sender is always ahead and the reader takes 1 KiB.
        let is_slow = step >= 20;
        consumed = if is_slow { (consumed + KIB).min(advertised) } else { advertised };
        let mut view = view(step * 10, advertised, consumed, Some(100));
        view.readable = view.received - view.consumed;
        if let Some(advance) = policy.grant(CreditMoment::Consumed, &view) {
            advertised += advance.get();
            windows.push(policy.window().get() / KIB);
        }
    }
    assert_eq!(windows.iter().max(), Some(&1024));
    assert_eq!(windows.last(), Some(&16), "{windows:?}");
    assert!(advertised - consumed <= 16 * KIB);
}

#[test]
fn the_safe_window_shrinks_to_what_the_budget_allows_and_no_grant_goes_beyond() {
    let mut policy = fast(64 * KIB, 1024 * KIB, Variant::Safe);
    let mut ask = |now, consumed, allowance: u64| {
        let mut view = view(now, 100 * KIB, consumed, Some(100));
        view.allowance = Some(ByteCount::new(allowance));
        let advance = policy.grant(CreditMoment::Consumed, &view).map_or(0, ByteCount::get);
        (advance, policy.window().get())
    };
    assert_eq!(ask(0, 100 * KIB, 1 << 30), (64 * KIB, 64 * KIB));
    assert_eq!(ask(10, 100 * KIB, 512 * KIB), (512 * KIB, 512 * KIB), "grows, but not beyond");
    assert_eq!(ask(20, 100 * KIB, 80 * KIB), (80 * KIB, 80 * KIB));
    assert_eq!(ask(30, 100 * KIB, 40 * KIB), (40 * KIB, 64 * KIB), "the first window stays in mind");
    assert_eq!(ask(40, 100 * KIB, 0), (0, 64 * KIB), "nothing is left for this one");
    assert_eq!(ask(50, 60 * KIB, 5 * KIB), (0, 64 * KIB), "and what it has been given it keeps");
    assert_eq!(ask(1000, 100 * KIB, 1 << 30), (64 * KIB, 64 * KIB), "until there is memory again");
}

#[test]
fn whatever_the_budget_allows_is_used_by_every_policy_and_renewed_at_half_of_it() {
    let policies: [Box<dyn Credit>; 5] = [
        Box::new(Fixed::new(fixed::Parameters { window: ByteCount::new(64 * KIB) })),
        Box::new(improved(64 * KIB)),
        Box::new(autotune(64 * KIB, 256 * KIB)),
        Box::new(fast(64 * KIB, 256 * KIB, Variant::Paper)),
        Box::new(fast(64 * KIB, 256 * KIB, Variant::Safe)),
    ];
    for mut policy in policies {
        for (consumed, granted, why) in [(93, None, "more than half is left"), (97, Some(7 * KIB), "less")] {
            let mut view = view(0, 100 * KIB, consumed * KIB, None);
            view.allowance = Some(ByteCount::new(10 * KIB));
            let advance = policy.grant(CreditMoment::Consumed, &view).map(ByteCount::get);
            assert_eq!(advance, granted, "{policy:?}: {why}");
        }
    }
}
