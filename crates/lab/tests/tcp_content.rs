//! Whatever a path does, every byte arrives exactly once and in order: the applications compare all of them.

use crate::tcp_support::{Case, Fetch, Wire, download};
use posthaste_lab::world::End;
use posthaste_units::Duration;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn downloads_survive_any_path(
        seed in any::<u64>(),
        stack in prop::sample::select(vec!["tcp:cubic", "tcp:newreno", "tcp:cubic/h1"]),
        bytes in 0_u64..300_000,
        rtt in 0_u64..200,
        loss in 0.0..0.1,
        mess in [0.0..0.2, 0.0..0.1, 0.0..0.05],
        queue in 5_000_u64..100_000,
    ) {
        let rtt = Duration::from_millis(rtt);
        let mess = if rtt.is_zero() { [0.0, mess[1], mess[2]] } else { mess };
        let outcome = download(&Case { stack, bytes, rtt, queue, loss, mess, seed, ..Case::default() });
        prop_assert_eq!(outcome.end, End::Completed);
    }

    #[test]
    fn many_streams_survive_any_fate_of_segments(
        seed in any::<u64>(),
        stack in prop::sample::select(vec!["tcp:cubic", "tcp:newreno/h1"]),
        objects in 1_usize..20,
        bytes in 0_u64..60_000,
    ) {
        let mut rng = posthaste_units::Rng::from_test_seed(seed);
        let mut wire = Wire::new(stack, Duration::from_millis(40));
        let mut fetch = Fetch::new(&[objects, objects], bytes);
        let finishes = wire.run(&mut fetch, 3600.0, |_| {
            let jitter = Duration::from_micros(rng.below(30_000));
            (!rng.chance(0.08)).then_some(jitter)
        });
        prop_assert!(finishes);
        prop_assert_eq!(fetch.finished.borrow().len(), 2 * objects);
    }
}
