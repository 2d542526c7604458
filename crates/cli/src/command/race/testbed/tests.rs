use posthaste_units::ByteCount;

use super::*;

/// An testbed whose clients expect `change(object)` instead of what its servers send.
fn testbed(more: &[&str], change: impl FnOnce(&mut Vec<u8>)) -> Testbed {
    let arguments = ["posthaste", "race", "--object", "50kB", "--profiles", "cubic"];
    let args = <crate::args::Args as clap::Parser>::try_parse_from(arguments.iter().chain(more))
        .expect("valid arguments");
    let crate::args::Command::Race(race) = args.command else { unreachable!("the command is race") };
    let mut testbed =
        Testbed::start(&Arc::new(Plan::new(&race, "average").expect("a plan"))).expect("an testbed");
    let mut expected = testbed.object.to_vec();
    change(&mut expected);
    testbed.object = Bytes::from(expected);
    testbed
}

/// Plays once; gives what was seen, too.
async fn play(testbed: &Testbed) -> (Result<(), String>, FlowResult) {
    let transport = testbed.plan.racers[0].transport().expect("a profile");
    let mut client = testbed.client(transport).expect("a client");
    let server = testbed.servers[0].as_ref().expect("a server");
    let object = WorkloadSpec::Bulk { object: ByteCount::new(testbed.object.len() as u64), read_rate: None };
    let is_file = matches!(testbed.plan.workload.spec, WorkloadSpec::Bulk { .. });
    let spec = if is_file { &object } else { &testbed.plan.workload.spec };
    let mut player = Player::new(spec).expect("a workload");
    let outcome = player.play(&mut client, server.address, &testbed.object, |_| {}).await;
    (outcome, player.seen())
}

async fn compares_byte_by_byte(more: &[&str]) {
    let (outcome, seen) = play(&testbed(more, |_| {})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(seen.bytes, 50_000);

    let (outcome, seen) = play(&testbed(more, |expected| expected[40_000] ^= 1)).await;
    assert!(outcome.is_err_and(|reason| reason.contains("is not what was sent")));
    assert!(seen.bytes <= 40_000 && seen.completion.is_none(), "{seen:?}");

    let (outcome, _) = play(&testbed(more, |expected| expected.push(0))).await;
    assert!(outcome.is_err_and(|reason| reason.contains("1 bytes are missing")));

    let (outcome, _) = play(&testbed(more, |expected| expected.truncate(49_999))).await;
    assert!(outcome.is_err_and(|reason| reason.contains("is not what was sent")), "one byte too many");
}

/// Requests over one connection, with pauses that are the client's own.
async fn requests_follow_each_other(more: &[&str]) {
    let workload = ["--workload", "requests@count=3,think=20ms"];
    let (outcome, seen) = play(&testbed(&[&workload[..], more].concat(), |_| {})).await;
    assert_eq!((outcome, seen.bytes, seen.exchanges.len()), (Ok(()), 150_000, 3));
    let mut ended = seen.connect.expect("a handshake");
    for exchange in &seen.exchanges {
        assert!(exchange.requested >= ended && exchange.finished >= exchange.first_byte, "{seen:?}");
        ended = exchange.finished + 0.02;
    }
    assert_eq!(seen.completion, seen.exchanges.last().map(|exchange| exchange.finished));
    assert_eq!((seen.startup(), seen.stalled_seconds), (None, None), "it is no video");
}

#[tokio::test]
async fn what_arrives_over_http_is_compared() {
    compares_byte_by_byte(&[]).await;
}

#[tokio::test]
async fn what_arrives_on_plain_streams_is_compared() {
    compares_byte_by_byte(&["--bare"]).await;
}

#[tokio::test]
async fn requests_over_http_follow_each_other() {
    requests_follow_each_other(&[]).await;
}

#[tokio::test]
async fn requests_on_plain_streams_follow_each_other() {
    requests_follow_each_other(&["--bare"]).await;
}
