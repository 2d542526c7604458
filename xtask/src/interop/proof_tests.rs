//! What is no proof.

use super::*;

fn evidence(tap: Option<Seen>, report: Option<&str>) -> Evidence<'static> {
    Evidence {
        relay: None,
        tap,
        elapsed: Duration::from_secs(1),
        qlog: Path::new("nowhere"),
        our_report: report.map(str::to_owned),
        our_server: false,
    }
}

#[test]
fn a_tap_that_saw_nothing_proves_nothing() {
    let nothing = evidence(Some(Seen::default()), None);
    for proof in [
        Proof::HandshakeLoss,
        Proof::TransferLoss,
        Proof::Corruption,
        Proof::Silence,
        Proof::Rebinding,
        Proof::Retry,
        Proof::Amplification,
        Proof::ZeroRtt,
        Proof::Ecn,
        Proof::KeyUpdate,
        Proof::Resumption,
        Proof::LossAndReordering,
        Proof::RoundTrips(Duration::from_millis(750)),
    ] {
        assert!(check(proof, &nothing).is_err(), "{proof:?}");
    }
    assert!(check(Proof::Files, &nothing).is_ok());
}

#[test]
fn three_times_is_the_limit() {
    let mut seen = Seen { amplification: 2.9, ..Seen::default() };
    seen.up.silenced = 1;
    assert!(amplification(&seen, true).is_ok());
    seen.amplification = 3.1;
    assert!(amplification(&seen, true).is_err());
    assert!(amplification(&seen, false).is_ok_and(|said| said.contains("more than")));
}

#[test]
fn the_second_connection_must_have_resumed() {
    let report = |resumed: bool| {
        format!(
            r#"{{"connections":[{{"resumed":false,"early_data":null}},{{"resumed":{resumed},"early_data":null}}]}}"#
        )
    };
    assert!(check(Proof::Resumption, &evidence(None, Some(&report(true)))).is_ok());
    assert!(check(Proof::Resumption, &evidence(None, Some(&report(false)))).is_err());
}
