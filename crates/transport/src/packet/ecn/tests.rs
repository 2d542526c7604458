//! RFC 9000 section 13.4.2.1, check by check.

use super::*;

const DATA: PacketSpace = PacketSpace::Data;

#[expect(clippy::unnecessary_wraps, reason = "tables mix it with None")]
fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
    Some(EcnCounts { ect0, ect1, ce })
}

fn after_sending(packets: u64) -> EcnValidation {
    let mut ecn = EcnValidation::new();
    (0..packets).for_each(|_| ecn.on_sent(DATA));
    ecn
}

#[test]
fn ten_packets_are_marked_and_then_none_until_they_are_reported() {
    let mut ecn = after_sending(9);
    assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Testing, Some(EcnCodepoint::Ect0)));
    ecn.on_sent(DATA);
    assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Unknown, None));
    assert_eq!(ecn.on_ack(DATA, 3, counts(3, 0, 0)), 0);
    assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Capable, Some(EcnCodepoint::Ect0)));
}

#[test]
fn each_way_to_fail() {
    // spec: rfc9000 13.4.2.2 failure-disables, 13.4.2.2 later-failure-disables
    // (first report, marked packets then acknowledged, second report) after 10 marked packets
    let table = [
        ("no counts", None, 2, counts(0, 0, 0)),
        ("ECT(0) falls", counts(2, 0, 0), 2, counts(1, 0, 3)),
        ("CE falls", counts(0, 0, 2), 2, counts(4, 0, 1)),
        ("ECT(1) falls", counts(2, 0, 0), 0, counts(2, 1, 0)),
        ("fewer than acknowledged", counts(2, 0, 0), 3, counts(4, 0, 0)),
        ("more than sent", counts(2, 0, 0), 2, counts(8, 0, 3)),
        ("remarked to ECT(1)", counts(2, 0, 0), 2, counts(2, 2, 0)),
        ("absurd", counts(2, 0, 0), 2, counts(u64::MAX, 0, u64::MAX)),
    ];
    for (name, first, marked, second) in table {
        let mut ecn = after_sending(10);
        ecn.on_ack(DATA, 2, first);
        assert_eq!(ecn.on_ack(DATA, marked, second), 0, "{name}");
        assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Failed, None), "{name}");
        // For good: CE is not listened to any more either.
        assert_eq!(ecn.on_ack(DATA, 1, counts(9, 0, 1)), 0, "{name}");
        assert_eq!(ecn.state(), EcnState::Failed, "{name}");
    }
}

#[test]
fn ce_counts_as_an_increase_once() {
    let mut ecn = after_sending(10);
    assert_eq!(ecn.on_ack(DATA, 4, counts(2, 0, 2)), 2);
    assert_eq!(ecn.on_ack(DATA, 1, counts(3, 0, 2)), 0);
    assert_eq!(ecn.on_ack(DATA, 1, counts(3, 0, 3)), 1);
    assert_eq!(ecn.state(), EcnState::Capable);
}

#[test]
fn an_ack_of_unmarked_packets_needs_no_counts() {
    let mut ecn = after_sending(10);
    ecn.on_ack(DATA, 4, counts(4, 0, 0));
    ecn.on_ack(DATA, 0, None);
    assert_eq!(ecn.state(), EcnState::Capable);
}

#[test]
fn spaces_are_counted_apart() {
    let mut ecn = EcnValidation::new();
    ecn.on_sent(PacketSpace::Initial);
    ecn.on_sent(PacketSpace::Handshake);
    ecn.on_ack(PacketSpace::Initial, 1, counts(1, 0, 0));
    ecn.on_ack(PacketSpace::Handshake, 1, counts(0, 0, 1));
    assert_eq!(ecn.state(), EcnState::Capable);
    ecn.on_ack(PacketSpace::Handshake, 0, counts(1, 0, 1));
    assert_eq!(ecn.state(), EcnState::Failed, "one was sent in the space, two are reported");
}

#[test]
fn a_path_that_loses_every_marked_packet_is_not_marked_again() {
    let mut ecn = after_sending(10);
    ecn.on_lost(9);
    assert_eq!(ecn.state(), EcnState::Unknown);
    ecn.on_lost(1);
    assert_eq!(ecn.state(), EcnState::Failed);
    // Once marks have arrived, loss is loss.
    let mut ecn = after_sending(10);
    ecn.on_ack(DATA, 1, counts(1, 0, 0));
    ecn.on_lost(10);
    assert_eq!(ecn.state(), EcnState::Capable);
}
