//! Receivers that do not look for a while.

use super::super::*;
use super::mobile;
use super::parts::without;
use super::radio::acknowledge;
use crate::testing::{DATAGRAM, milliseconds};

/// The state once a flight that left within 20 ms, behind a first one, is acknowledged by twenty acks that come `apart`
/// from each other, the first of them `wait` after it was due. The path has 40 ms.
fn state_after(parameters: Parameters, wait: Duration, apart: Duration) -> State {
    let mut controller = mobile(Parameters { shadow: false, ..parameters });
    let start = Time::ZERO + milliseconds(1_000);
    for number in 0..10 {
        acknowledge(&mut controller, number, start, DATAGRAM, milliseconds(40));
    }
    for number in 0..20 {
        let sent_at = start + milliseconds(41 + number);
        let acked_at = start + milliseconds(81) + wait + apart * number;
        acknowledge(&mut controller, 10 + number, sent_at, DATAGRAM, acked_at.since(sent_at));
    }
    controller.state
}

#[test]
fn what_a_receiver_acknowledges_at_once_after_a_pause_does_not_end_startup() {
    let (pause, apart) = (milliseconds(60), Duration::from_micros(50));
    assert_eq!(state_after(Parameters::default(), pause, apart), State::Reach);
    assert_ne!(state_after(without(Part::Stalls), pause, apart), State::Reach);
}

#[test]
fn a_queue_behind_a_wait_ends_startup() {
    // A link of 6 Mbit/s that was away for 30 ms: what comes half of that later counts.
    assert_ne!(state_after(Parameters::default(), milliseconds(30), milliseconds(2)), State::Reach);
    // Without a wait, as ever.
    assert_ne!(state_after(Parameters::default(), milliseconds(10), milliseconds(2)), State::Reach);
}
