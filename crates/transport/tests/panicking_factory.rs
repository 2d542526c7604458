//! A factory of somebody else's that panics ends its own connection and nothing more.

use crate::support::{Pair, defaults, tls};
use posthaste_policy::{Congestion, CongestionFactory, PathLimits, SlowStart};
use posthaste_transport::{CloseReason, ConnectError, Event, TransportConfig, TransportErrorCode};

struct Panicking;

impl CongestionFactory for Panicking {
    fn build(&self, _limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        panic!("this one cannot be built")
    }
}

fn panicking() -> TransportConfig {
    let default = posthaste_schemes::default_profile();
    TransportConfig::new(default.to_builder("broken").congestion(Panicking).build().expect("it is complete"))
}

#[test]
fn at_a_server_the_client_is_told_of_an_internal_error() {
    let mut pair = Pair::new(1, defaults(), panicking());
    for _ in 0..2 {
        let client = pair.connect();
        pair.run_until(|pair| pair.client.has(client, |event| matches!(event, Event::Closed(_))));
        let is_told = |event: &Event| {
            matches!(event, Event::Closed(CloseReason::PeerTransport { code, .. })
                if *code == TransportErrorCode::INTERNAL_ERROR)
        };
        assert!(pair.client.has(client, is_told), "{:?}", pair.client.events);
    }
    assert!(pair.server.accepted.is_empty());
    assert!(pair.server.endpoint.stats().refused >= 2);
}

#[test]
fn at_a_client_it_is_an_error_and_other_connections_go_on() {
    let mut pair = Pair::default();
    let (first, _) = pair.establish();
    let broken = tls::client_config(2).with_transport(panicking().into());
    let remote = pair.server.address;
    let error = pair.client.endpoint.connect(pair.now, &broken, remote, "localhost").unwrap_err();
    assert_eq!(error, ConnectError::Policy("broken".to_owned()));
    let second = pair.connect();
    pair.run_until(|pair| pair.client.has(second, |event| *event == Event::Confirmed));
    assert!(!pair.client.has(first, |event| matches!(event, Event::Closed(_))));
}
