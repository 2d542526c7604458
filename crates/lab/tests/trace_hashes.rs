//! Every datagram that every profile sends, as recorded: a change that is not meant to reach the wire leaves these hashes
//! as they are. One that is meant to updates them (`cargo insta accept`) and says why in its commit.

use std::fmt::Write as _;

use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;
use posthaste_schemes::selection::every;

/// Profiles, as experiments name them, built-in and for comparison: a group where the profile forms one.
fn stacks() -> Vec<String> {
    let mut stacks = Vec::new();
    for profile in every().expect("profiles") {
        let name = profile.name();
        if profile.build().expect("it is complete").group().is_some() {
            stacks.push(format!("{name}@3"));
        }
        stacks.push(name);
    }
    stacks
}

/// What is fetched, over which path, after which earlier connections.
const RUNS: [(&str, &str); 3] = [
    (
        "average",
        r#"network = { kind = "simple", path = "average" }
        deadline = "60s"
        flows = [{ stack = "STACK", workload = { kind = "bulk", object = "2MB" } }]"#,
    ),
    (
        "bad, parallel",
        r#"network = { kind = "simple", path = { base = "bad", queue = "0.5bdp", reorder = { probability = "1%", delay = "5ms" } } }
        deadline = "60s"
        flows = [{ stack = "STACK", workload = { kind = "parallel", object = "500kB", streams = 3 } }]"#,
    ),
    (
        "lte-trace, warm",
        r#"network = { kind = "simple", path = { base = "lte-trace", trace-start = "0s" } }
        deadline = "60s"
        flows = [{ stack = "STACK", workload = { kind = "request-response", object = "100kB", count = 3 }, warm-up = { connections = 2 } }]"#,
    ),
];

#[test]
fn nothing_on_the_wire_has_changed() {
    let mut recorded = String::new();
    for stack in stacks() {
        for (name, text) in RUNS {
            let spec: RunSpec = toml::from_str(&text.replace("STACK", &stack)).expect("a run");
            let result = run(&spec, 7, None).expect("it can be built");
            writeln!(recorded, "{stack}: {name}: {} in {} packets", result.trace_hash, result.packets)
                .expect("a string takes everything");
        }
    }
    insta::assert_snapshot!(recorded);
}
