use posthaste_units::{Duration, Time};

use super::*;

fn growth(window: f64) -> Growth {
    Growth {
        now: Time::from_nanos(0),
        acked: window,
        window,
        smoothed_rtt: Duration::from_millis(50),
        datagram: 1350.0,
        share: 1.0,
    }
}

/// To a billionth.
fn is(ours: f64, expected: f64) -> bool {
    (ours - expected).abs() < 1e-9
}

#[test]
fn one_flow_is_rfc_9002() {
    let mut reno = AdditiveIncrease::default();
    assert!(is(reno.on_ack(&growth(13_500.0)), 14_850.0));
    assert!(is(reno.reduce(13_500.0), 6_750.0));
}

#[test]
fn two_flows_of_chromium_keep_85_percent_and_add_two_datagrams_a_round_trip() {
    let mut reno = AdditiveIncrease::new(0.7, 2);
    assert!(is(reno.on_ack(&growth(13_500.0)), 16_200.0));
    assert!(is(reno.reduce(10_000.0), 8_500.0));
}

#[test]
fn counts_of_flows_and_factors_out_of_range_are_refused() {
    for text in ["flows = 0", "flows = 65", "beta = 1.0", "beta = 0.0", "alpha = 2"] {
        assert!(toml::from_str::<Parameters>(text).is_err(), "{text}");
    }
    let parameters: Parameters = toml::from_str("flows = 2\nbeta = 0.7").unwrap();
    assert!(parameters.flows == 2 && is(parameters.beta, 0.7));
}
