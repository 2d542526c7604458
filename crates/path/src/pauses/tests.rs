use super::*;
use crate::{Path, PathConfig};

const PAUSES: Pauses =
    Pauses { every: Duration::from_millis(200), mean: Duration::from_millis(40), packet: Duration::ZERO };

/// When packets arrive that leave one millisecond apart, over so many seconds, in milliseconds of delay.
fn delays(pauses: Option<Pauses>, seconds: u64) -> Vec<f64> {
    let delay = Duration::from_millis(5);
    let config = PathConfig { delay, pauses, ..PathConfig::default() };
    let mut path = Path::new(config, Rng::from_test_seed(2)).expect("a path");
    let mut delays = Vec::new();
    let mut take = |path: &mut Path<bytes::Bytes>, until: Time| {
        while let Some(due) = path.next_timeout().filter(|&due| due <= until) {
            while let Some(packet) = path.poll(due) {
                let sent = u64::from_le_bytes(packet[..].try_into().expect("eight bytes"));
                delays.push(due.since(Time::ZERO).as_millis_f64() - sent as f64);
            }
        }
    };
    for millis in 0..seconds * 1000 {
        let now = Time::ZERO + Duration::from_millis(millis);
        take(&mut path, now);
        path.on_packet(now, bytes::Bytes::copy_from_slice(&millis.to_le_bytes()));
    }
    take(&mut path, Time::ZERO + Duration::from_secs(seconds + 10));
    delays
}

#[test]
fn what_arrives_in_a_pause_is_taken_in_at_its_end() {
    let seconds = 1_000;
    let delays = delays(Some(PAUSES), seconds);
    assert_eq!(delays.len() as u64, seconds * 1_000, "nothing is lost");
    let waited: Vec<f64> = delays.iter().map(|delay| delay - 5.0).filter(|&waits| waits > 0.0).collect();
    // A fifth of the time; 5,000 pauses know their mean to 1.4 %, and what is left of an exponential one is as long as a
    // whole one. Four standard errors, of which the wait has two: long pauses count for more packets.
    let share = waited.len() as f64 / delays.len() as f64;
    let mean = waited.iter().sum::<f64>() / waited.len() as f64;
    assert!((share - 0.2).abs() < 0.02, "{share}");
    assert!((mean - 40.0).abs() < 5.0, "{mean}");
    // In order, all that waited at one instant.
    assert!(delays.windows(2).all(|pair| pair[1] > pair[0] - 1.01));
}

#[test]
fn a_receiver_without_pauses_waits_for_nothing() {
    assert!(delays(None, 2).iter().all(|&delay| (delay - 5.0).abs() < 1e-9));
    let always = Pauses { every: PAUSES.mean, ..PAUSES };
    assert!(always.validate().is_err());
    assert!(Pauses { mean: Duration::ZERO, ..PAUSES }.validate().is_err());
}

#[test]
fn packets_that_take_time_are_taken_in_one_after_the_other() {
    let packet = Duration::from_micros(100);
    let (all_at_once, one_by_one) =
        (delays(Some(PAUSES), 1_000), delays(Some(Pauses { packet, ..PAUSES }), 1_000));
    assert_eq!(all_at_once.len(), one_by_one.len(), "nothing is lost");
    // A packet leaves each millisecond, so that they come apart by that less the difference of their delays.
    let least_apart = one_by_one.windows(2).map(|pair| 1.0 + pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    assert!((least_apart - 0.1).abs() < 1e-6, "{least_apart}");
    let mean = |delays: &[f64]| delays.iter().sum::<f64>() / delays.len() as f64;
    assert!(mean(&one_by_one) > mean(&all_at_once) + 0.5, "{} {}", mean(&one_by_one), mean(&all_at_once));
}
