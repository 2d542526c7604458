use posthaste_units::{Duration, Rng};

use super::*;
use crate::PathConfig;
use crate::test_support::{batch_mean, moments, probe_path, run};

/// One value a packet: 1 if it was lost.
fn losses(model: GilbertElliott, packets: u32) -> Vec<f64> {
    let mut medium = BurstLoss::new(model, Rng::from_test_seed(7));
    (0..packets).map(|_| f64::from(medium.draw())).collect()
}

/// Lengths of runs of lost packets.
fn bursts(losses: &[f64]) -> Vec<f64> {
    let runs = losses.split(|&lost| lost < 0.5).map(<[f64]>::len);
    runs.filter(|&length| length > 0).map(|length| length as f64).collect()
}

#[test]
fn a_share_and_a_burst_length_give_both_within_their_99_percent_intervals() {
    for (loss, burst) in [(0.02, 4.0), (0.1, 1.5), (0.3, 10.0), (0.001, 2.0)] {
        let model = GilbertElliott::from_mean(loss, burst).expect("possible");
        assert!((model.mean_loss() - loss).abs() < 1e-12);
        let losses = losses(model, 600_000);
        let (share, half_width) = batch_mean(&losses);
        assert!((share - loss).abs() < half_width, "{share} +- {half_width}, not {loss}");
        assert!(half_width < loss / 4.0, "the interval says something: {half_width}");
        // Bursts are independent of each other.
        let lengths = bursts(&losses);
        let (mean, deviation) = moments(&lengths);
        let half_width = 2.576 * deviation / (lengths.len() as f64).sqrt();
        assert!((mean - burst).abs() < half_width, "{mean} +- {half_width}, not {burst}");
        assert!(half_width < burst / 4.0, "the interval says something: {half_width}");
    }
}

#[test]
fn both_states_may_lose() {
    let model = GilbertElliott { to_bad: 0.01, to_good: 0.09, loss_good: 0.005, loss_bad: 0.4 };
    assert!((model.bad_share() - 0.1).abs() < 1e-12);
    assert!((model.mean_loss() - (0.9 * 0.005 + 0.1 * 0.4)).abs() < 1e-12);
    let losses = losses(model, 600_000);
    let (share, half_width) = batch_mean(&losses);
    assert!((share - model.mean_loss()).abs() < half_width, "{share} +- {half_width}");
    // After a loss the medium is mostly bad: of pairs, far more are lost than independence would lose.
    let after_loss: Vec<f64> = losses.windows(2).filter(|pair| pair[0] > 0.5).map(|pair| pair[1]).collect();
    assert!(moments(&after_loss).0 > 5.0 * share);
}

#[test]
fn it_loses_a_path_s_packets_on_top_of_independent_losses() {
    let burst_loss = GilbertElliott::from_mean(0.05, 3.0).ok();
    let config = PathConfig { loss: 0.02, burst_loss, ..PathConfig::default() };
    let expected = config.mean_loss();
    assert!((expected - (1.0 - 0.95 * 0.98)).abs() < 1e-12);
    let packets = 300_000;
    let mut path = probe_path(config);
    let arrived = run(&mut path, packets, 100, Duration::from_micros(1));
    let mut lost = vec![1.0; packets as usize];
    for (_, packet) in &arrived {
        lost[packet.number as usize] = 0.0;
    }
    assert_eq!(path.stats().lost + arrived.len() as u64, packets);
    let (share, half_width) = batch_mean(&lost);
    assert!((share - expected).abs() < half_width, "{share} +- {half_width}, not {expected}");
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |loss, burst| GilbertElliott::from_mean(loss, burst).expect_err("impossible").to_string();
    assert!(refused(1.0, 5.0).contains("mean loss"));
    assert!(refused(f64::NAN, 5.0).contains("mean loss"));
    assert!(refused(0.1, 0.9).contains("mean burst"));
    assert!(refused(0.1, f64::INFINITY).contains("mean burst"));
    assert!(refused(0.9, 2.0).contains("longer bursts"));
    let model = GilbertElliott { to_bad: 1.1, to_good: 0.5, loss_good: 0.0, loss_bad: 1.0 };
    let config = PathConfig { burst_loss: Some(model), ..PathConfig::default() };
    assert!(config.validate().is_err_and(|error| error.to_string().contains("burst loss")));
}

#[test]
fn the_first_packet_fares_as_any_other() {
    let model = GilbertElliott::from_mean(0.2, 50.0).expect("possible");
    let first_losses =
        (0..4_000).filter(|&seed| BurstLoss::new(model, Rng::from_test_seed(seed)).draw()).count();
    let half_width = 2.576 * (4_000.0 * 0.2f64 * 0.8).sqrt();
    assert!((first_losses as f64 - 800.0).abs() < half_width, "{first_losses} +- {half_width}");
}
