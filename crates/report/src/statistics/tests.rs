//! Against tabulated values and cases worked by hand.
#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::special::{fair_coin_at_most, incomplete_beta, student_t};
use super::*;

const INF: f64 = f64::INFINITY;

fn is_near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance
}

#[test]
fn students_t_is_as_tabulated() {
    for (degrees, t) in
        [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (9.0, 2.2622), (49.0, 2.0096), (1e6, 1.95997)]
    {
        let ours = student_t(degrees, 0.05);
        assert!(is_near(ours, t, 6e-5), "{degrees} degrees: {ours} instead of {t}");
    }
    assert!(is_near(student_t(10.0, 0.01), 3.1693, 6e-5));
}

#[test]
fn the_incomplete_beta_function_knows_its_closed_forms() {
    for x in [0.0, 0.1, 0.5, 0.9, 1.0] {
        assert!(is_near(incomplete_beta(1.0, 1.0, x), x, 1e-12));
        assert!(is_near(incomplete_beta(2.0, 1.0, x), x * x, 1e-12));
    }
    assert!(is_near(fair_coin_at_most(1, 4), 5.0 / 16.0, 1e-12));
    assert!(is_near(fair_coin_at_most(4, 4), 1.0, 1e-12));
}

#[test]
fn the_medians_ranks_are_as_tabulated() {
    // One-based ranks of the usual tables: n = 6: 1 and 6; 10: 2 and 9; 20: 6 and 15; 50: 18 and 33.
    assert_eq!(median_ranks(0), None);
    assert_eq!(median_ranks(5), None);
    assert_eq!(median_ranks(6), Some((0, 5)));
    assert_eq!(median_ranks(10), Some((1, 8)));
    assert_eq!(median_ranks(20), Some((5, 14)));
    assert_eq!(median_ranks(50), Some((17, 32)));
    let (low, high) = median_ranks(5_000).expect("many values");
    assert!((2429..=2432).contains(&low) && low + high == 4_999, "{low}..{high}");
}

#[test]
fn a_sample_worked_by_hand() {
    let summary = summarise(&[4.0, 2.0, 6.0, 8.0]).expect("values");
    assert_eq!((summary.n, summary.censored), (4, 0));
    assert_eq!(summary.mean, Some(5.0));
    assert!(is_near(summary.std.expect("four values"), 2.581_989, 1e-6));
    assert!(is_near(summary.cov.expect("a mean"), 0.516_398, 1e-6));
    assert_eq!((summary.p50, summary.p95, summary.least, summary.greatest), (5.0, 8.0, 2.0, 8.0));
    let interval = summary.mean_interval.expect("four values");
    // 3.1824 x 2.58199 / 2
    assert!(is_near(interval.low, 0.8915, 1e-3) && is_near(interval.high, 9.1085, 1e-3), "{interval:?}");
    assert_eq!(summary.median_interval, None);
}

#[test]
fn one_value_has_no_spread() {
    let summary = summarise(&[3.0]).expect("a value");
    assert_eq!((summary.mean, summary.std, summary.cov), (Some(3.0), None, None));
    assert_eq!((summary.mean_interval, summary.median_interval), (None, None));
    assert_eq!((summary.p50, summary.p99), (3.0, 3.0));
    assert_eq!(summarise(&[]), None);
    assert_eq!(quantile(&[], 0.5), None);
}

#[test]
fn quantiles_invert_the_distribution() {
    let values: Vec<f64> = (1..=20).map(f64::from).collect();
    assert_eq!(quantile(&values, 0.0), Some(1.0));
    assert_eq!(quantile(&values, 0.5), Some(10.5));
    assert_eq!(quantile(&values, 0.51), Some(11.0));
    assert_eq!(quantile(&values, 0.95), Some(19.5));
    assert_eq!(quantile(&values, 0.96), Some(20.0));
    assert_eq!(quantile(&values, 1.0), Some(20.0));
}

#[test]
fn censored_values_keep_their_place() {
    let summary = summarise(&[1.0, 2.0, INF]).expect("values");
    assert_eq!((summary.n, summary.censored), (3, 1));
    assert_eq!((summary.mean, summary.std, summary.cov), (None, None, None));
    assert_eq!((summary.p50, summary.p95, summary.greatest), (2.0, INF, INF));
    assert_eq!(summarise(&[1.0, INF]).expect("values").p50, INF);
    assert_eq!(summarise(&[INF, INF]).expect("values").p50, INF);
    assert_eq!(summarise(&[f64::NAN]).expect("a value").p50, INF);
    assert_eq!(distribution(&[2.0, 1.0, INF, 1.0]), [(1.0, 0.5), (2.0, 0.75)]);
    assert!(distribution(&[INF]).is_empty());
    let eight = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, INF, INF];
    assert_eq!(median_interval(&eight), Some(Interval { low: 1.0, high: INF }));
}

#[test]
fn runs_of_one_seed_are_compared_with_each_other() {
    let ours: Vec<(u64, f64)> = (0..10).map(|seed| (seed, 2.0 + seed as f64)).collect();
    let theirs: Vec<(u64, f64)> = (0..10).rev().map(|seed| (seed, 4.0 + 2.0 * seed as f64)).collect();
    let paired = compare_paired(&ours, &theirs).expect("common seeds");
    assert_eq!((paired.pairs, paired.unpaired, paired.below, paired.above), (10, 0, 10, 0));
    assert_eq!(paired.ratio, Some(0.5));
    assert_eq!(paired.interval, Some(Interval { low: 0.5, high: 0.5 }));
    assert!(paired.is_decided());
    assert_eq!(compare_paired(&ours, &[(99, 1.0)]), None);
    assert_eq!(compare_paired(&ours, &[(3, 5.0), (99, 1.0)]).map(|paired| paired.unpaired), Some(10));
}

#[test]
fn pairs_that_say_nothing_widen_the_interval() {
    let values = |last: f64| -> Vec<(u64, f64)> {
        (0..9).map(|seed| (seed, if seed < 8 { 1.0 + seed as f64 } else { last })).collect()
    };
    let base: Vec<(u64, f64)> = (0..9).map(|seed| (seed, if seed < 8 { 1.0 } else { INF })).collect();
    let paired = compare_paired(&values(INF), &base).expect("common seeds");
    assert_eq!((paired.pairs, paired.undetermined), (9, 1));
    // Ratios 1..8 and one that is unknown: the median is 4 or 5.
    assert_eq!(paired.ratio, None);
    assert_eq!(paired.interval, Some(Interval { low: 1.0, high: 8.0 }));
    assert!(!paired.is_decided());
    let slower = compare_paired(&[(1, INF)], &[(1, 2.0)]).expect("common seeds");
    assert_eq!((slower.ratio, slower.above), (Some(INF), 1));
}

#[test]
fn welchs_comparison_worked_by_hand() {
    let difference = welch(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0, 8.0]).expect("two samples");
    assert_eq!(difference.difference, -3.0);
    // Variances 1/3 and 6.667/4: (2)^2 / (0.1111/2 + 2.7778/3) = 4.0755 degrees.
    assert!(is_near(difference.degrees, 4.0755, 1e-3), "{difference:?}");
    assert!(is_near(difference.interval.high, -3.0 + 2.7553 * 2f64.sqrt(), 2e-2), "{difference:?}");
    assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
    assert_eq!(welch(&[1.0, INF], &[1.0, 2.0]), None);
}

#[test]
fn shares() {
    assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
    assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
    assert_eq!(jain(&[0.0, 0.0]), None);
    assert_eq!(jain(&[]), None);
    assert_eq!(smallest_share(&[1.0, 3.0]), Some(0.5));
    assert_eq!(smallest_share(&[]), None);
    let squared = r_squared(&[1.0, 2.0, 3.0], &[-2.0, -4.0, -6.0]).expect("both vary");
    assert!(is_near(squared, 1.0, 1e-12));
    assert_eq!(r_squared(&[1.0, 1.0], &[1.0, 2.0]), None);
}

#[test]
fn a_bootstrap_interval_is_that_of_the_mean_and_repeats() {
    let sample: Vec<f64> = (0..100).map(f64::from).collect();
    let interval = |resamples| bootstrap_interval(&sample, resamples, mean).expect("there is a mean");
    let Interval { low, high } = interval(2_000);
    // The normal approximation: 49.5 -+ 1.96 x 29.01 / 10.
    assert!(is_near(low, 43.81, 0.7) && is_near(high, 55.19, 0.7), "{low} to {high}");
    assert_eq!(interval(500), interval(500));
    assert_eq!(bootstrap_interval(&[2.0; 9], 10, mean), Some(Interval { low: 2.0, high: 2.0 }));
    assert_eq!(bootstrap_interval(&[], 10, mean), None);
    assert_eq!(bootstrap_interval(&[INF; 3], 10, mean), None, "no resample has a mean");
}
