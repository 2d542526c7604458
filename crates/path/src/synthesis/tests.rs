use posthaste_units::{Duration, Rate};

use super::*;
use crate::trace::Trace;

/// Deliveries in each second.
fn by_second(trace: &OpportunityTrace) -> Vec<f64> {
    let mut counts = vec![0.0; SECONDS as usize];
    for line in trace.to_text().lines() {
        let stamp: usize = line.parse().expect("a stamp");
        if let Some(count) = counts.get_mut(stamp / 1000) {
            *count += 1.0;
        }
    }
    counts
}

#[test]
fn a_cellular_link_wanders_as_was_measured() {
    let (mut changes, mut outages, mut most) = (Vec::new(), 0, 0.0_f64);
    for seed in 0..40 {
        let trace = cellular(Rng::from_test_seed(seed));
        assert_eq!(trace.duration(), Duration::from_secs(SECONDS));
        assert!(Trace::parse(&trace.to_text()) == Ok(Trace::Opportunities(trace.clone())));
        let counts = by_second(&trace);
        // Away from both ends, where the motion is free.
        let free = counts.windows(2).filter(|pair| (300.0..700.0).contains(&pair[0]));
        changes.extend(free.map(|pair| pair[1] - pair[0]));
        outages += counts.iter().filter(|&&count| count == 0.0).count();
        most = counts.iter().fold(most, |most, &count| most.max(count));
    }
    // Brownian motion of 200 a second's root, averaged over seconds, changes by 200 x sqrt(2 / 3) from one to the
    // next; Poisson's own variance, twice the mean of 500, comes on top.
    let deviation = (changes.iter().map(|change| change * change).sum::<f64>() / changes.len() as f64).sqrt();
    let expected = (200.0_f64.powi(2) * 2.0 / 3.0 + 1000.0).sqrt();
    assert!((deviation / expected - 1.0).abs() < 0.1, "{deviation} for {expected}");
    assert!(outages > 0, "there are seconds without any");
    assert!(most > 900.0 && most < 1150.0, "{most}");
}

#[test]
fn a_wifi_link_has_the_mean_that_was_asked_for_and_the_shadows_correlation() {
    for seed in 0..5 {
        let trace = wifi(Rng::from_test_seed(seed), 190_200_000.0);
        let mean = trace.mean_rate();
        let wanted = Rate::from_bits_per_second(190_200_000);
        assert!(
            (mean.as_bits_per_second() as f64 / wanted.as_bits_per_second() as f64 - 1.0).abs() < 1e-3,
            "{mean}"
        );
        assert_eq!(trace.duration(), Duration::from_secs(SECONDS));
        let Ok(Trace::Steps(again)) = Trace::parse(&trace.to_text()) else { panic!("its text is a trace") };
        assert_eq!(again, trace);
        let rates: Vec<u64> = trace
            .to_text()
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect();
        let outages = rates.iter().filter(|&&rate| rate == 0).count();
        assert!(outages > 0 && outages < rates.len() / 10, "{outages} of {}", rates.len());
        let steady = rates.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(steady > rates.len() / 2, "the rate mostly stays for a step: {steady}");
    }
}

#[test]
fn the_same_seed_makes_the_same_trace() {
    let text = |seed| cellular(Rng::from_test_seed(seed)).to_text();
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}
