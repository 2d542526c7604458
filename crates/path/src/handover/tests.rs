use super::*;

const CONFIG: Handover = Handover {
    interval: Duration::from_secs(15),
    delay: Duration::from_millis(25),
    gap: Duration::from_millis(60),
};

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

#[test]
fn a_route_holds_until_the_next_handover() {
    let mut routes = Routes::new(CONFIG, Duration::from_secs(5), Rng::from_test_seed(3));
    let first = routes.added(at(0)).expect("5 s after a handover");
    assert_eq!(routes.added(at(9_999)), Some(first));
    assert_eq!(routes.added(at(10_000)), None, "the next one");
    assert_eq!(routes.added(at(10_059)), None);
    let second = routes.added(at(10_060)).expect("the gap is over");
    assert_ne!(first, second);
    assert_eq!(routes.added(at(24_999)), Some(second));
    assert!(first <= CONFIG.delay && second <= CONFIG.delay);
    // The same seed, asked in another order.
    let mut again = Routes::new(CONFIG, Duration::from_secs(5), Rng::from_test_seed(3));
    assert_eq!((again.added(at(12_000)), again.added(at(1_000))), (Some(second), Some(first)));
}

#[test]
fn added_delays_are_uniform() {
    let mut routes = Routes::new(CONFIG, Duration::ZERO, Rng::from_test_seed(4));
    let added = (0..2_000).filter_map(|number| routes.added(at(number * 15_000 + 100)));
    let mean = added.map(posthaste_units::Duration::as_millis_f64).sum::<f64>() / 2_000.0;
    // 12.5 ms, with a standard error of 25 / sqrt(12 x 2000) = 0.16.
    assert!((mean - 12.5).abs() < 0.65, "{mean}");
    let wrong = Handover { gap: CONFIG.interval, ..CONFIG };
    assert!(wrong.validate().is_err());
}
