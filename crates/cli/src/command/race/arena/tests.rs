use super::*;

/// An arena whose clients expect `change(object)` instead of what its servers send.
fn arena(more: &[&str], change: impl FnOnce(&mut Vec<u8>)) -> Arena {
    let arguments = ["posthaste", "race", "--object", "50kB", "--profiles", "cubic"];
    let args = <crate::args::Args as clap::Parser>::try_parse_from(arguments.iter().chain(more))
        .expect("valid arguments");
    let crate::args::Command::Race(race) = args.command else { unreachable!("the command is race") };
    let mut arena = Arena::start(&Arc::new(Plan::new(&race, "average").expect("a plan"))).expect("an arena");
    let mut expected = arena.object.to_vec();
    change(&mut expected);
    arena.object = Bytes::from(expected);
    arena
}

/// Downloads once; gives the bytes that were found right, too.
async fn fetch(arena: &Arena) -> (Result<Times, String>, u64) {
    let transport = arena.plan.racers[0].transport().expect("a profile");
    let client = arena.client(transport).expect("a client");
    let server = arena.servers[0].as_ref().expect("a server");
    let mut right = 0;
    let outcome = arena.fetch(&client, server.address, |bytes| right += bytes).await;
    (outcome, right)
}

async fn compares_byte_by_byte(more: &[&str]) {
    let (outcome, right) = fetch(&arena(more, |_| {})).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(right, 50_000);

    let (outcome, right) = fetch(&arena(more, |expected| expected[40_000] ^= 1)).await;
    assert!(outcome.is_err_and(|reason| reason.contains("is not what was sent")));
    assert!(right <= 40_000, "{right}");

    let (outcome, _) = fetch(&arena(more, |expected| expected.push(0))).await;
    assert!(outcome.is_err_and(|reason| reason.contains("1 bytes are missing")));

    let (outcome, _) = fetch(&arena(more, |expected| expected.truncate(49_999))).await;
    assert!(outcome.is_err_and(|reason| reason.contains("is not what was sent")), "one byte too many");
}

#[tokio::test]
async fn what_arrives_over_http_is_compared() {
    compares_byte_by_byte(&[]).await;
}

#[tokio::test]
async fn what_arrives_on_plain_streams_is_compared() {
    compares_byte_by_byte(&["--bare"]).await;
}
