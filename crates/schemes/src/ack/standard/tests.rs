use super::*;
use crate::testing::milliseconds;

/// A packet that arrives `at` milliseconds.
fn arrival(at: u64) -> ReceivedSample {
    ReceivedSample {
        now: Time::ZERO + milliseconds(at),
        ack_eliciting: true,
        out_of_order: false,
        marked: false,
    }
}

fn silent(at: u64) -> ReceivedSample {
    ReceivedSample { ack_eliciting: false, ..arrival(at) }
}

fn gap(at: u64) -> ReceivedSample {
    ReceivedSample { out_of_order: true, ..arrival(at) }
}

fn marked(at: u64) -> ReceivedSample {
    ReceivedSample { marked: true, ..arrival(at) }
}

fn policy() -> Standard {
    Standard::new(Parameters::default(), milliseconds(25))
}

#[test]
fn deadlines_by_what_arrives() {
    for (what, packets, deadline) in [
        ("nothing", vec![], None),
        ("one packet waits", vec![arrival(10)], Some(35)),
        ("the second does not", vec![arrival(10), arrival(12)], Some(12)),
        ("a pure ack is not acknowledged", vec![silent(10)], None),
        ("nor does it count", vec![arrival(10), silent(11), silent(12)], Some(35)),
        ("a gap is told at once", vec![gap(10)], Some(10)),
        ("a mark is told at once", vec![marked(10)], Some(10)),
        ("a gap left by a pure ack is not", vec![ReceivedSample { ack_eliciting: false, ..gap(10) }], None),
        ("a marked pure ack is not", vec![ReceivedSample { ack_eliciting: false, ..marked(10) }], None),
        ("what is due stays due", vec![gap(10), arrival(11), arrival(12), arrival(13)], Some(10)),
    ] {
        let mut policy = policy();
        for packet in &packets {
            policy.on_packet(packet);
        }
        assert_eq!(policy.deadline(), deadline.map(|at| Time::ZERO + milliseconds(at)), "{what}");
        policy.on_ack_sent();
        assert_eq!(policy.deadline(), None, "{what}: acknowledged");
    }
}

#[test]
fn counting_begins_anew_after_each_ack() {
    let mut policy = policy();
    for start in [0, 100, 200] {
        policy.on_packet(&arrival(start));
        assert_eq!(policy.deadline(), Some(Time::ZERO + milliseconds(start + 25)));
        policy.on_packet(&arrival(start + 1));
        assert_eq!(policy.deadline(), Some(Time::ZERO + milliseconds(start + 1)));
        policy.on_ack_sent();
    }
}

#[test]
fn the_count_and_the_promise_are_parameters() {
    let parameters = Parameters { packets: 4, ..Parameters::default() };
    let mut policy = Standard::new(parameters, milliseconds(5));
    (0..3).for_each(|at| policy.on_packet(&arrival(at)));
    assert_eq!(policy.deadline(), Some(Time::ZERO + milliseconds(5)));
    policy.on_packet(&arrival(3));
    assert_eq!(policy.deadline(), Some(Time::ZERO + milliseconds(3)));
}
