//! The text of a path's description or of a trace: no panic, what is accepted survives being written again, and packets
//! pass or vanish in bounded time. The first byte says which it is.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use posthaste_path::{OpportunityTrace, Path, PathConfig, PathSpec, RateTrace};
use posthaste_units::{Duration, Rng, Time};

/// Packets that are sent over a path that is accepted.
const PACKETS: u64 = 32;

fuzz_target!(|input: &[u8]| {
    let Some((choice, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match choice % 3 {
        0 => {
            let Ok(trace) = OpportunityTrace::parse(text) else { return };
            let again = OpportunityTrace::parse(&trace.to_text()).expect("it was just written");
            assert_eq!(again.to_text(), trace.to_text());
        }
        1 => {
            let Ok(trace) = RateTrace::parse(text) else { return };
            let again = RateTrace::parse(&trace.to_text()).expect("it was just written");
            assert_eq!(again.to_text(), trace.to_text());
        }
        _ => {
            let Ok(spec) = serde_json::from_str::<PathSpec>(text) else { return };
            if spec.validate().is_ok() {
                carry(spec.down());
                carry(spec.up());
            }
        }
    }
});

/// Packets enter for a while; then the path is asked for them as often as there can be reason to.
fn carry(config: PathConfig) {
    let Ok(mut path) = Path::new(config, Rng::from_test_seed(1)) else { return };
    let mut now = Time::ZERO;
    for _ in 0..PACKETS {
        path.on_packet(now, Bytes::from_static(&[0; 1200]));
        now += Duration::from_millis(1);
        while path.poll(now).is_some() {}
    }
    for _ in 0..8 * PACKETS {
        let Some(next) = path.next_timeout() else { break };
        now = now.max(next);
        while path.poll(now).is_some() {}
    }
    let stats = path.stats();
    assert!(stats.offered == PACKETS, "{stats:?}");
}
