use posthaste_units::{Duration, Rng};

use super::*;
use crate::test_support::{NORMAL_99, batch_mean, moments, probe_path, run};
use crate::{PathConfig, Reordering};

fn chance(probability: f64, correlation: f64) -> CorrelatedChance {
    CorrelatedChance::new(probability, correlation, Rng::from_test_seed(3))
}

#[test]
fn the_probability_is_kept_whatever_the_correlation() {
    for probability in [0.01, 0.1, 0.9] {
        for correlation in [0.0, 0.25, 0.5, 0.9] {
            let mut chance = chance(probability, correlation);
            let hits: Vec<f64> = (0..600_000).map(|_| f64::from(chance.draw())).collect();
            let (share, half_width) = batch_mean(&hits);
            assert!((share - probability).abs() < half_width, "{probability} {correlation}: {share}");
            assert!(half_width < probability / 4.0, "the interval says something: {half_width}");
        }
    }
    assert!((0..1_000).all(|_| !chance(0.0, 0.5).draw()));
    assert!((0..1_000).all(|_| chance(1.0, 0.5).draw()));
}

#[test]
fn draws_are_correlated_as_said() {
    for correlation in [0.0, 0.25, 0.8] {
        let mut chance = chance(0.5, correlation);
        let draws: Vec<f64> = (0..100_000)
            .map(|_| {
                chance.draw();
                chance.last
            })
            .collect();
        let (mean, deviation) = moments(&draws);
        let products: Vec<f64> = draws.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).collect();
        let measured = moments(&products).0 / (deviation * deviation);
        // Bartlett: the deviation of a lag-1 estimate is sqrt((1 - correlation²) / n).
        let half_width = NORMAL_99 * ((1.0 - correlation * correlation) / 1e5).sqrt();
        assert!((measured - correlation).abs() < half_width, "{measured} +- {half_width}, not {correlation}");
    }
}

#[test]
fn an_uncorrected_threshold_would_hold_back_too_few() {
    // The documented 1.8 %: what netem makes of 10 % with a correlation of 25 %.
    let mut chance = chance(0.1, 0.25);
    chance.threshold = 0.1;
    let hits: Vec<f64> = (0..300_000).map(|_| f64::from(chance.draw())).collect();
    let (share, half_width) = batch_mean(&hits);
    assert!((share - 0.0175).abs() < half_width, "{share}");
}

#[test]
fn a_path_holds_back_packets_in_clusters() {
    let held_back = |correlation| {
        let reordering = Reordering { probability: 0.1, correlation, extra_delay: Duration::from_micros(1) };
        let mut path = probe_path(PathConfig { reordering, ..PathConfig::default() });
        let packets = 200_000;
        let mut late = vec![0.0; packets as usize];
        for (at, packet) in run(&mut path, packets, 100, Duration::from_micros(2)) {
            late[packet.number as usize] = f64::from(at > packet.sent);
        }
        assert!((late.iter().sum::<f64>() - path.stats().reordered as f64).abs() < 0.5);
        let (share, half_width) = batch_mean(&late);
        assert!((share - 0.1).abs() < half_width, "{share} +- {half_width}");
        let after_late: Vec<f64> = late.windows(2).filter(|pair| pair[0] > 0.5).map(|pair| pair[1]).collect();
        (moments(&after_late).0, NORMAL_99 * (0.09 / after_late.len() as f64).sqrt())
    };
    let (again, half_width) = held_back(0.0);
    assert!((again - 0.1).abs() < half_width, "{again}");
    let (again, half_width) = held_back(0.25);
    assert!(again > 0.1 + 5.0 * half_width, "{again}");
    assert!(held_back(0.8).0 > again);
}
