use posthaste_units::Duration;

use super::*;
use crate::PathConfig;
use crate::test_support::{NORMAL_99, moments, probe_path, run};

const DELAY: Duration = Duration::from_millis(50);
const DEVIATION: Duration = Duration::from_millis(3);

fn jitter(distribution: Distribution) -> Jitter {
    Jitter { distribution, deviation: DEVIATION, interval: Duration::ZERO, may_reorder: false }
}

/// Numbers and delays, in milliseconds, in the order of arrival.
fn delays(jitter: Jitter, packets: u64, gap: Duration) -> Vec<(u64, f64)> {
    let mut path = probe_path(PathConfig { delay: DELAY, jitter: Some(jitter), ..PathConfig::default() });
    let arrived = run(&mut path, packets, 100, gap);
    assert_eq!(arrived.len() as u64, packets);
    arrived.iter().map(|(at, packet)| (packet.number, at.since(packet.sent).as_millis_f64())).collect()
}

fn values(delays: &[(u64, f64)]) -> Vec<f64> {
    delays.iter().map(|&(_, delay)| delay).collect()
}

/// Kolmogorov's statistic of samples against a distribution function; its 99 % point is `1.628 / sqrt(n)`.
fn kolmogorov(mut samples: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let distances = samples.iter().enumerate().map(|(index, &sample)| {
        let (below, share) = (index as f64 / count, distribution(sample));
        (share - below).abs().max((share - below - 1.0 / count).abs())
    });
    distances.fold(0.0, f64::max)
}

#[test]
fn normal_jitter_has_its_mean_and_deviation_within_99_percent() {
    let packets = 40_000;
    // Gaps of many deviations: nobody waits for anybody.
    let delays = values(&delays(jitter(Distribution::Normal), packets, Duration::from_millis(100)));
    let (mean, deviation) = moments(&delays);
    let root = (packets as f64).sqrt();
    assert!((mean - 50.0).abs() < NORMAL_99 * 3.0 / root, "{mean}");
    assert!((deviation - 3.0).abs() < NORMAL_99 * 3.0 / (2f64.sqrt() * root), "{deviation}");
    let normal = |delay: f64| 0.5 * (1.0 + libm::erf((delay - 50.0) / (3.0 * std::f64::consts::SQRT_2)));
    assert!(kolmogorov(delays, normal) < 1.628 / root);
}

#[test]
fn pareto_jitter_has_its_mean_and_its_distribution_within_99_percent() {
    let packets = 200_000;
    let delays = values(&delays(jitter(Distribution::Pareto), packets, Duration::from_secs(2)));
    let root = (packets as f64).sqrt();
    let (mean, _) = moments(&delays);
    assert!((mean - 50.0).abs() < NORMAL_99 * 3.0 / root, "{mean}");
    // Its fourth moment is infinite, so a sample's deviation has no interval; the distribution function, which
    // contains the deviation as its scale, has one.
    let scale = 3.0 / (0.75f64).sqrt();
    let pareto = |delay: f64| {
        let value: f64 = (delay - 50.0) / scale + 1.5;
        if value < 1.0 { 0.0 } else { 1.0 - value.powi(-3) }
    };
    let distance = kolmogorov(delays.clone(), pareto);
    assert!(distance < 1.628 / root, "{distance}");
    let least = delays.iter().copied().fold(f64::MAX, f64::min);
    assert!((50.0 - 3.0 / 3f64.sqrt() - 1e-3..50.0).contains(&least), "{least}");
}

#[test]
fn wifi_jitter_has_its_mean_its_deviation_and_its_suspensions() {
    let packets = 100_000;
    let natural = Jitter { deviation: Duration::from_micros(23_296), ..jitter(Distribution::Wifi) };
    let delays = values(&delays(natural, packets, Duration::from_millis(500)));
    let (mean, deviation) = moments(&delays);
    let root = (packets as f64).sqrt();
    assert!((mean - 50.0).abs() < NORMAL_99 * 23.3 / root, "{mean}");
    // Its kurtosis is about 14, so the deviation's error is sqrt(13) / 2 of it over the root.
    assert!((deviation - 23.3).abs() < NORMAL_99 * 23.3 * 1.9 / root, "{deviation}");
    // Without its mean the model is C4's: nothing below zero, and one draw in 14 is a suspension.
    let added: Vec<f64> = delays.iter().map(|delay| delay - 50.0 + 6.845).collect();
    assert!(added.iter().all(|&added| added > -0.01), "{:?}", added.iter().copied().fold(0.0, f64::min));
    let suspended = added.iter().filter(|&&added| added > 20.0).count() as f64 / packets as f64;
    assert!((suspended - 1.0 / 14.0).abs() < NORMAL_99 * 0.26 / root + 1e-3, "{suspended}");
    let retries = added.iter().filter(|&&added| added < 20.0).sum::<f64>() / packets as f64;
    assert!((retries - 0.684 * 13.0 / 14.0).abs() < 0.02, "{retries}");
}

#[test]
fn packets_overtake_each_other_only_where_they_may() {
    let gap = Duration::from_micros(100);
    for distribution in [Distribution::Normal, Distribution::Pareto] {
        for interval in [Duration::ZERO, Duration::from_millis(7)] {
            let fixed = Jitter { interval, ..jitter(distribution) };
            let in_order = delays(fixed, 20_000, gap);
            assert!(in_order.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let loose = delays(Jitter { may_reorder: true, ..fixed }, 20_000, gap);
            assert!(loose.windows(2).any(|pair| pair[0].0 > pair[1].0));
        }
    }
    // Where they may, a fast flow meets the same distribution as a slow one.
    let loose = Jitter { may_reorder: true, ..jitter(Distribution::Normal) };
    let (mean, deviation) = moments(&values(&delays(loose, 40_000, gap)));
    assert!((mean - 50.0).abs() < NORMAL_99 * 3.0 / 200.0, "{mean}");
    assert!((deviation - 3.0).abs() < NORMAL_99 * 3.0 / 200.0 / 2f64.sqrt(), "{deviation}");
}

#[test]
fn a_draw_that_holds_lifts_the_mean_of_a_fast_flow_by_no_more_than_documented() {
    let interval = Duration::from_millis(30);
    let held = Jitter { interval, ..jitter(Distribution::Normal) };
    let intervals = 15_000.0f64;
    let delays = values(&delays(held, 15_000 * 30, Duration::from_millis(1)));
    let (mean, _) = moments(&delays);
    // With packets of 1 ms the waiting is not quite continuous; its error is far below the interval's.
    let lift = 3.0 * 3.0 / (2.0 * 30.0);
    let half_width = NORMAL_99 * 3.0 / intervals.sqrt();
    assert!((mean - 50.0 - lift).abs() < half_width, "{mean}, not 50 + {lift} +- {half_width}");
    assert!(half_width < lift, "the interval tells the lift from none");
    // A draw for each packet follows the largest of many draws instead.
    let each = values(&self::delays(jitter(Distribution::Normal), 100_000, Duration::from_micros(100)));
    assert!(moments(&each).0 > 53.0);
}

#[test]
fn no_delay_is_negative() {
    let config = PathConfig {
        delay: Duration::from_millis(1),
        jitter: Some(Jitter { may_reorder: true, ..jitter(Distribution::Normal) }),
        ..PathConfig::default()
    };
    let arrived = run(&mut probe_path(config), 1_000, 100, Duration::from_millis(100));
    assert!(arrived.iter().all(|(at, packet)| *at >= packet.sent));
    assert!(arrived.iter().any(|(at, packet)| *at == packet.sent));
}

#[test]
fn held_draws_are_the_same_whatever_else_is_sent_in_their_interval() {
    let held = Jitter { interval: Duration::from_millis(10), ..jitter(Distribution::Normal) };
    let sparse = delays(held, 100, Duration::from_millis(10));
    let dense = delays(Jitter { may_reorder: true, ..held }, 400, Duration::from_micros(2_500));
    for (number, delay) in sparse {
        let (_, same) = dense.iter().find(|(other, _)| *other == 4 * number).expect("all arrive");
        assert!((delay - same).abs() < 1e-9 || delay > *same, "{number}: {delay} {same}");
    }
}
