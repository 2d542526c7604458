//! A client that was here before: what the server learns in the warm-up is what the measured connection finds.

use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;

fn spec(stack: &str, warm_up: &str) -> RunSpec {
    let text = format!(
        "deadline = \"120s\"\n\
         network = {{ kind = \"simple\", path = {{ rtt = \"100ms\", rate = \"50mbit\", queue = \"1bdp\" }} }}\n\
         [[flows]]\nname = \"fetch\"\nstack = \"{stack}\"\nworkload = {{ kind = \"bulk\", object = \"1MB\" }}\n{warm_up}\n"
    );
    toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn done(stack: &str, warm_up: &str) -> RunResult {
    let result = run(&spec(stack, warm_up), 1, None).expect("a sound description");
    assert_eq!(result.outcome, Outcome::Completed, "{stack} {warm_up}");
    result
}

fn completion(stack: &str, warm_up: &str) -> f64 {
    done(stack, warm_up).flows[0].completion.expect("finished")
}

#[test]
fn the_measured_connection_alone_is_reported_and_starts_from_what_was_learnt() {
    let warm = "warm-up = { connections = 3 }";
    let (cold, paper, safe) =
        (completion("cubic", ""), completion("history-paper", warm), completion("history", warm));
    assert!(paper + 0.2 < cold, "{paper} after {cold}: at least two round trips");
    assert!(safe + 0.1 < cold, "{safe} after {cold}: at least one");
    let flow = &done("history", warm).flows[0];
    assert_eq!((flow.bytes, flow.exchanges.len()), (1_000_000, 1), "nothing of the warm-up is counted");
}

#[test]
fn without_a_warm_up_or_with_a_stack_that_does_not_learn_nothing_changes() {
    let warm = "warm-up = { connections = 3 }";
    assert_eq!(done("cubic", warm).trace_hash, done("cubic", "").trace_hash);
    assert_eq!(done("history", "").trace_hash, done("cubic", "").trace_hash, "nothing is known yet");
}

#[test]
fn the_same_seed_gives_the_same_run_with_a_warm_up_too() {
    for stack in ["history", "history-paper"] {
        let warm = "warm-up = { connections = 2, pause = \"3s\" }";
        assert_eq!(done(stack, warm).trace_hash, done(stack, warm).trace_hash);
    }
}

#[test]
fn the_measured_connection_begins_when_the_flow_says_if_the_others_are_done() {
    let warm = |start: &str, flow: &str| {
        done("history", &format!("start = \"{flow}\"\nwarm-up = {{ connections = 2, start = \"{start}\" }}"))
    };
    let (early, late) = (warm("0s", "30s"), warm("0s", "1s"));
    assert!((30.0..32.0).contains(&early.virtual_seconds), "{}", early.virtual_seconds);
    assert!((3.0..10.0).contains(&late.virtual_seconds), "{}", late.virtual_seconds);
    let times = [early, late].map(|result| result.flows[0].completion.expect("finished"));
    assert!((times[0] - times[1]).abs() < 0.001, "{times:?}");
}

#[test]
fn the_safe_form_believes_nothing_of_a_neighbour() {
    let warm = "warm-up = { connections = 1, client = \"neighbour\", workload = { kind = \"bulk\", object = \"5MB\" } }";
    // To the serialisation of a few bytes: what the ends draw at random differs.
    let difference = completion("history", warm) - completion("cubic", "");
    assert!(difference.abs() < 0.001, "{difference}");
    assert!(
        completion("history-paper", warm) < completion("cubic", ""),
        "the paper's average is everybody's"
    );
}

#[test]
fn a_warm_up_may_go_another_way_and_do_other_things() {
    let warm = "warm-up = { connections = 2, workload = { kind = \"bulk\", object = \"5MB\" }, \
                path = { rtt = \"100ms\", rate = \"500mbit\", queue = \"1bdp\" } }";
    let result = done("history-paper", warm);
    assert_eq!(result.links.len(), 4, "the flow's own and the warm-up's, two directions each");
    assert!(result.links.iter().any(|link| link.name == "warm-up down"));
}

#[test]
fn a_client_with_a_session_asks_with_its_first_flight() {
    let first_byte = |session: &str| {
        let warm = format!("warm-up = {{ connections = 1, session = \"{session}\" }}");
        done("cubic", &warm).flows[0].first_byte.expect("answered")
    };
    let (cold, resumed, early) = (first_byte("none"), first_byte("resumed"), first_byte("early"));
    assert!((0.2..0.21).contains(&cold) && (0.2..0.21).contains(&resumed), "{cold} {resumed}");
    assert!((0.1..0.11).contains(&early), "a round trip earlier: {early}");
}
