//! Algorithm 1 and the course of the paper's Figure 7.

use posthaste_policy::history::PathRecord;
use posthaste_policy::{CongestionState, Phase};

use super::*;
use crate::testing::{DATAGRAM, milliseconds, steady_rtt};

fn known(datagrams: u64, continues: bool) -> PathHistory {
    let (min_rtt, age) = (milliseconds(50), Duration::ZERO);
    PathHistory { window: DATAGRAM * datagrams, min_rtt, age, continues, loss: PathLoss::UNKNOWN }
}

fn first_window(known: Option<PathHistory>) -> u64 {
    let mut start = History::new(Parameters::default());
    if let Some(known) = &known {
        start.recall(known, Time::ZERO);
    }
    start.initial_window(DATAGRAM).get() / DATAGRAM.get()
}

#[test]
fn the_first_window_is_the_greater_of_default_and_average() {
    assert_eq!(first_window(None), 10);
    assert_eq!(first_window(Some(known(9, false))), 10, "on a bad path nothing changes");
    assert_eq!(first_window(Some(known(87, false))), 87, "whole, and at once");
    assert_eq!(first_window(Some(known(7, true))), 7, "a resumed connection goes on from where it stood");
    assert_eq!(first_window(Some(known(0, true))), 2);
}

#[test]
fn nonsense_is_no_first_window_however_it_came_about() {
    let greatest = (16 << 20) / DATAGRAM.get();
    assert_eq!(first_window(Some(known(13_000, false))), 13_000);
    for continues in [false, true] {
        // 64 GiB, which is what a record may hold at most, and what no record holds.
        for datagrams in [(64 << 30) / DATAGRAM.get(), u64::MAX / DATAGRAM.get()] {
            assert_eq!(first_window(Some(known(datagrams, continues))), greatest);
        }
    }
    let text = "max_window = \"1 MiB\"\n";
    let mut start = History::new(toml::from_str(text).unwrap());
    start.recall(&known(1_000_000, false), Time::ZERO);
    assert_eq!(start.initial_window(DATAGRAM), ByteCount::new(1 << 20));
    let message = toml::from_str::<Parameters>("max_window = 100\n").unwrap_err().to_string();
    assert!(message.contains("from 1 KiB to 4 GiB"), "{message}");
}

#[test]
fn each_transfer_is_a_sample_of_the_window() {
    let start = History::new(Parameters::default());
    let remember = |window: u64, delivered: u64| {
        let congestion = CongestionState {
            window: DATAGRAM * window,
            slow_start_threshold: None,
            phase: Phase::SlowStart,
        };
        start.remember(&PathSummary {
            congestion,
            rtt: steady_rtt(milliseconds(50)),
            delivered: DATAGRAM * delivered,
            max_datagram_size: DATAGRAM,
            own_loss: PathLoss::UNKNOWN,
        })
    };
    assert_eq!(remember(5, 100), Some(known(5, false)), "small windows too, as they stand");
    assert_eq!(remember(200, 10), Some(known(200, false)));
    assert_eq!(remember(10, 9), None, "nothing was transferred");
}

#[test]
fn the_average_is_as_the_parameters_say() {
    let average = |average: PaperAverage| -> Vec<u64> {
        let rules = Parameters { average, ..Parameters::default() }.rules();
        let mut record: Option<PathRecord> = None;
        [16, 32, 8]
            .map(|window| {
                let at = Duration::from_secs(1);
                let next = PathRecord::after(record.as_ref(), rules.average, at, &known(window, false));
                record = Some(next);
                next.window().get()
            })
            .to_vec()
    };
    // 16; 16 + 16/8 = 18; 18 - 10/8 = 16.75 datagrams of 1200.
    assert_eq!(average(PaperAverage::Moving), [19_200, 21_600, 20_100]);
    // 16; 24; 56/3.
    assert_eq!(average(PaperAverage::Mean), [19_200, 28_800, 22_400]);
}
