//! Controllers that are parts of one flow, against the whole of it.

use posthaste_policy::{Congestion, FlowShare, PathLimits};
use posthaste_units::{ByteCount, Duration};

use super::LossBased;
use super::cubic::{self, CubicIncrease};
use super::newreno::AdditiveIncrease;
use crate::slow_start::classic::Classic;
use crate::testing::{DATAGRAM, Path, datagrams};

const WINDOW: u64 = 600;

fn limits() -> PathLimits {
    PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * WINDOW, seed: 1 }
}

fn controllers() -> [Box<dyn Congestion>; 2] {
    [
        Box::new(LossBased::new(AdditiveIncrease::default(), Box::new(Classic), limits())),
        Box::new(LossBased::new(
            CubicIncrease::new(cubic::Parameters::default()),
            Box::new(Classic),
            limits(),
        )),
    ]
}

/// The window over the round trips after a loss, of a controller that becomes one of `parts` after `divided`.
fn course(controller: &mut dyn Congestion, parts: u32, divided: usize) -> Vec<f64> {
    let mut path = Path::new(Duration::from_millis(50));
    path.lose(controller, 1);
    (0..60)
        .map(|round| {
            if round == divided {
                let window = controller.window() / u64::from(parts);
                let share =
                    FlowShare { controllers: parts, window, slow_start_threshold: Some(ByteCount::ZERO) };
                controller.take_share(&share);
            }
            path.round_trip(controller);
            datagrams(controller.window())
        })
        .collect()
}

#[test]
fn a_part_of_a_flow_grows_as_that_part_of_the_flow_does() {
    for parts in [2, 3, 8] {
        for divided in [0, 20] {
            for (mut whole, mut part) in controllers().into_iter().zip(controllers()) {
                let whole = course(&mut *whole, 1, divided);
                let part = course(&mut *part, parts, divided);
                for (round, (whole, part)) in whole.iter().zip(&part).enumerate().skip(divided) {
                    let ratio = part * f64::from(parts) / whole;
                    assert!((0.97..1.03).contains(&ratio), "1 of {parts}, round {round}: {ratio}");
                }
            }
        }
    }
}
