//! What is no proof.

use super::*;
use crate::interop::hello::Hellos;

fn evidence(recorder: Option<Seen>, report: Option<&str>) -> Evidence<'static> {
    Evidence {
        relay: None,
        recorder,
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
        Proof::KeyUpdateByUs,
        Proof::Version2,
        Proof::ChaCha20,
        Proof::Migration,
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

const CHACHA20: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
const AES: CipherSuite = CipherSuite::TLS13_AES_128_GCM_SHA256;

/// A recorder that has read these hellos: cipher, and whether it was resumed.
fn hellos(all: &[(CipherSuite, bool)]) -> Seen {
    let all: Vec<Hello> = all.iter().map(|&(cipher, is_resumed)| Hello { cipher, is_resumed }).collect();
    Seen { hellos: Hellos::of(&all), ..Seen::default() }
}

/// What our client says of two connections.
fn report(resumed: bool, early_data: &str) -> String {
    let first = r#"{"resumed":false,"early_data":null}"#;
    format!(r#"{{"connections":[{first},{{"resumed":{resumed},"early_data":{early_data}}}]}}"#)
}

/// `evidence` with a trace of our side.
fn traced(evidence: Evidence<'_>, trace: &str, check: impl FnOnce(&Evidence<'_>)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("trace"), trace).expect("written");
    check(&Evidence { qlog: folder.path(), ..evidence });
}

#[test]
fn the_second_connection_must_have_resumed() {
    let both = || Some(hellos(&[(AES, false), (AES, true)]));
    assert!(check(Proof::Resumption, &evidence(both(), None)).is_ok());
    assert!(check(Proof::Resumption, &evidence(both(), Some(&report(true, "null")))).is_ok());
    assert!(check(Proof::Resumption, &evidence(both(), Some(&report(false, "null")))).is_err());
    for others in [&[(AES, false), (AES, false)][..], &[(AES, true)], &[(AES, true), (AES, true)]] {
        assert!(check(Proof::Resumption, &evidence(Some(hellos(others)), None)).is_err(), "{others:?}");
    }
}

#[test]
fn early_data_must_have_been_sent_and_taken() {
    let seen = |packets| {
        let mut seen = hellos(&[(AES, false), (AES, true)]);
        seen.sent_by_client.insert((version::V1, PacketType::ZeroRtt), packets);
        Some(seen)
    };
    let judge = |packets, report: &str| check(Proof::ZeroRtt, &evidence(seen(packets), Some(report)));
    assert!(judge(1, &report(true, r#""accepted""#)).is_ok());
    assert!(judge(1, &report(true, r#""rejected""#)).is_err());
    assert!(judge(0, &report(true, r#""accepted""#)).is_err());

    let received = r#"{"name":"quic:packet_received","header":{"packet_type":"0RTT"},"frames":[{"frame_type":"stream"}]}"#;
    for (trace, is_good) in [
        (received, true),
        (&received.replace("0RTT", "1RTT"), false),
        (&received.replace("stream", "ping"), false),
    ] {
        let at_server = Evidence { our_server: true, ..evidence(seen(1), None) };
        traced(at_server, trace, |evidence| assert_eq!(check(Proof::ZeroRtt, evidence).is_ok(), is_good));
    }
}

#[test]
fn one_update_of_keys_does_not_show_that_the_peer_has_followed() {
    let update = |phase: u64, side: &str| format!(r#"{{"key_phase":{phase},"trigger":"{side}_update"}}"#);
    let judge = |updates: &[(u64, &str)], is_good: bool| {
        let lines: Vec<String> = updates.iter().map(|(phase, side)| update(*phase, side)).collect();
        traced(evidence(None, None), &lines.join("\n"), |evidence| {
            assert_eq!(check(Proof::KeyUpdateByUs, evidence).is_ok(), is_good, "{updates:?}");
        });
    };
    judge(&[(1, "local"), (1, "local")], false);
    judge(&[(1, "remote"), (2, "local")], false);
    judge(&[(1, "remote"), (2, "remote"), (3, "remote")], false);
    judge(&[(1, "local"), (2, "local")], true);
    judge(&[(30, "local"), (31, "remote"), (32, "local")], true);
}

#[test]
fn version_2_alone_counts() {
    let mut seen = Seen::default();
    seen.sent_by_client.insert((version::V2, PacketType::Handshake), 1);
    assert!(version_2(&seen).is_err(), "the server has not answered");
    seen.sent_by_server.insert((version::V2, PacketType::Handshake), 1);
    assert!(version_2(&seen).is_ok());
    seen.sent_by_client.insert((version::V1, PacketType::Initial), 1);
    assert!(version_2(&seen).is_err());
}

#[test]
fn one_other_cipher_is_one_too_many() {
    assert!(chacha20(&hellos(&[(CHACHA20, false)])).is_ok());
    assert!(chacha20(&hellos(&[(CHACHA20, false), (AES, false)])).is_err());
}

/// A client that was heard at two addresses under these IDs, and how much was sent to each.
fn moved(to: [u8; 4], id: u8, down: u64) -> Seen {
    let mut seen = Seen::default();
    let (old, new) = (([127, 0, 0, 1], 1).into(), (to, 2).into());
    seen.moves.down(old, &[0xc0, 0, 0, 0, 1, 0, 1, 0, 0]);
    seen.moves.up(old, &[0x40, 1, 0, 0]);
    seen.moves.up(new, &[0x40, id, 0, 0]);
    (0..down).for_each(|_| seen.moves.down(new, &[0x40]));
    seen
}

#[test]
fn a_client_that_migrates_takes_another_id_and_the_transfer_along() {
    let validated = "quic:packet_sent path_challenge\nquic:packet_received path_response";
    let judge = |seen, trace: &str, is_good: bool| {
        traced(evidence(Some(seen), None), trace, |evidence| {
            let said = check(Proof::Migration, evidence);
            assert_eq!(said.is_ok(), is_good, "{said:?}");
        });
    };
    judge(moved([127, 0, 0, 2], 2, 3), validated, true);
    judge(moved([127, 0, 0, 2], 2, 3), "quic:packet_sent path_challenge", false);
    judge(moved([127, 0, 0, 2], 2, 0), validated, false);
    judge(moved([127, 0, 0, 2], 1, 3), validated, false);
    judge(moved([127, 0, 0, 1], 2, 3), validated, true);
}
