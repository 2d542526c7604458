//! Drawn bad paths: 60 of those that `cargo xtask adverse` runs by the thousand, and all that have ever failed.

use posthaste_lab::adverse::{Case, Ending, Outage, Rival, Theme, run};
use posthaste_units::{Duration, Time};

/// Cases that failed once, or showed a weakness that was ours: stack met (if it was set) and seed.
/// - 8319: a client's second probe was a bare PING; with the first one lost, the server had nothing to answer.
const REGRESSIONS: [(Option<Rival>, u64); 1] = [(None, 8319)];

fn check(cases: impl IntoIterator<Item = (Option<Rival>, u64)>) -> Vec<(Case, Ending)> {
    let mut endings = Vec::new();
    for (only, seed) in cases {
        let case = Case::draw(seed, only);
        let outcome = run(&case);
        assert!(!matches!(outcome.ending, Ending::Failed(_)), "seed {seed}, only {only:?}: {outcome:?}");
        endings.push((case, outcome.ending));
    }
    endings
}

#[test]
fn sixty_bad_paths_end_well_against_every_stack_in_both_roles() {
    let endings = check((0..60).map(|seed| (None, seed)));
    for rival in Rival::ALL {
        for role in [true, false] {
            let is_met = |(case, _): &&(Case, Ending)| case.rival == rival && case.is_client_ours == role;
            let is_possible = role || rival != Rival::Ours;
            assert_eq!(endings.iter().any(|entry| is_met(&entry)), is_possible, "{rival}, client {role}");
        }
    }
    // A path that ends for good cannot let all complete: the judge and the timeouts are seen at work.
    let timed_out =
        |(case, ending): &&(Case, Ending)| case.theme == Theme::Dead && *ending == Ending::TimedOut;
    assert!(endings.iter().any(|entry| timed_out(&entry)));
    assert!(endings.iter().filter(|(_, ending)| *ending == Ending::Complete).count() >= 40);
}

#[test]
fn what_failed_once_does_not_fail_again() {
    check(REGRESSIONS);
}

#[test]
fn a_case_repeats() {
    for rival in Rival::ALL {
        let case = Case::draw(7, Some(rival));
        let (first, second) = (run(&case), run(&case));
        assert_eq!(first, second);
        assert!(first.packets > 10);
    }
}

#[test]
fn a_dead_path_without_a_timeout_is_no_good_end() {
    let mut case =
        (0..100).map(|seed| Case::draw(seed, None)).find(|case| case.theme == Theme::Dead).expect("soon");
    case.weather.outage = Outage::From(Time::ZERO);
    assert_eq!(run(&case).ending, Ending::TimedOut);
    case.idle_timeout = Duration::from_secs(3600);
    let Ending::Failed(fault) = run(&case).ending else { panic!("an hour's silence was let pass") };
    assert_eq!(fault.kind(), "wrong error");
    case.deadline = Time::ZERO + Duration::from_secs(60);
    let Ending::Failed(fault) = run(&case).ending else { panic!("no end was let pass") };
    assert_eq!(fault.kind(), "hang");
}
