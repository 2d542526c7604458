use std::collections::BTreeSet;

use super::super::case;
use super::*;

fn cases() -> Vec<&'static Case> {
    CASES.iter().map(|name| case::find(name).unwrap()).collect()
}

fn quick_rows() -> Vec<(&'static Peer, Role)> {
    let peers: Vec<&'static Peer> = QUICK_PEERS.iter().map(|name| peers::find(name).unwrap()).collect();
    rows(&peers, None)
}

#[test]
fn in_turn_each_profile_meets_a_client_and_a_server_and_all_cells_have_their_turn() {
    let (rows, cases) = (quick_rows(), cases());
    let mut met = BTreeSet::new();
    let count = posthaste_schemes::names().len();
    for index in 0..count {
        let cells = in_turn(index, count, &rows, &cases);
        for role in [Role::Client, Role::Server] {
            assert!(cells.iter().any(|cell| cell.1 == role), "profile {index}");
        }
        for (peer, role, case) in cells {
            assert!(support::missing(peer.name, role, case).is_none(), "{} {}", peer.name, case.name);
            met.insert((peer.name, label(role), case.name));
        }
    }
    let possible = all(&rows, &cases)
        .into_iter()
        .filter(|(peer, role, case)| support::missing(peer.name, *role, case).is_none())
        .count();
    assert_eq!(met.len(), possible);
}

#[test]
fn a_role_without_third_parties_is_left_out() {
    let cases = cases();
    let chromium = [(peers::find("chromium").unwrap(), Role::Client)];
    let cells = in_turn(3, 16, &chromium, &cases);
    assert_eq!(cells.len(), 1);
}

#[test]
fn a_profile_that_somebody_notices_is_named_with_the_case() {
    let outcome = |profile: &str, case, verdict| Outcome {
        profile: Some(profile.to_owned()),
        peer: "curl",
        role: Role::Client,
        case,
        verdict,
        seconds: 0.25,
        detail: "wrong content; see artifacts/x".to_owned(),
        logs: None,
    };
    let rows = [(peers::find("curl").unwrap(), Role::Client)];
    let outcomes = [
        outcome("cubic", "transfer", Verdict::Passed),
        outcome("cubic", "lossy", Verdict::Passed),
        outcome("cubic", "keyupdate", Verdict::Unsupported),
        outcome("bbr", "transfer", Verdict::Passed),
        outcome("bbr", "lossy", Verdict::Failed),
    ];
    let text = markdown(&["cubic".to_owned(), "bbr".to_owned(), "none".to_owned()], &rows, &outcomes);
    for expected in [
        "3 cells pass, 1 fail, 1 are unsupported",
        "| profile | curl as client |",
        "| cubic | 2 ok, 0.8 s |",
        "| bbr | FAILED: lossy |",
        "| none |  |",
        "- FAILED: bbr, curl as client, lossy: wrong content",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
    assert!(!text.contains("artifacts"));
}
