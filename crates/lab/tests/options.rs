//! The options of `mobile` for both ends do what their names say.

use posthaste_lab::result::{FlowResult, Outcome};
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

/// 1 MB over 20 Mbit/s and 50 ms, with this rate on the way back.
fn fetch(stack: &str, back: &str) -> FlowResult {
    let text = format!(
        r#"network = {{ kind = "simple", path = {{ rtt = "50ms", rate = "20mbit", up-rate = "{back}", loss = "0%", queue = "1bdp" }} }}
        flows = [{{ stack = "{stack}", workload = {{ kind = "bulk", object = "1MB" }} }}]"#
    );
    let spec: RunSpec = toml::from_str(&text).expect("a run");
    let mut result = run(&spec, 1, None).expect("it can be built");
    assert_eq!(result.outcome, Outcome::Completed);
    result.flows.remove(0)
}

#[test]
fn ack_requests_relieve_a_thin_way_back() {
    let (plain, few) = (fetch("mobile", "100kbit"), fetch("mobile@ack=frequency", "100kbit"));
    let seconds = |flow: &FlowResult| flow.completion.expect("finished");
    assert!(seconds(&few) < seconds(&plain) * 0.5, "{} instead of {}", seconds(&few), seconds(&plain));
    assert!(few.up.packets_received * 2 < plain.up.packets_received);
    // Where acks are no burden they are fewer, too, and nothing is lost by it.
    let (plain, few) = (fetch("mobile", "10mbit"), fetch("mobile@ack=frequency", "10mbit"));
    assert!(seconds(&few) < seconds(&plain) * 1.02, "{} instead of {}", seconds(&few), seconds(&plain));
    assert!(few.up.packets_received * 2 < plain.up.packets_received);
}

#[test]
fn windows_on_acks_take_bytes_and_no_packets() {
    let (plain, on_ack) = (fetch("mobile", "10mbit"), fetch("mobile@credit=on_ack", "10mbit"));
    assert!(on_ack.up.bytes_received > plain.up.bytes_received);
    assert!(on_ack.up.packets_received <= plain.up.packets_received * 101 / 100);
}
