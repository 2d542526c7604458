//! What a seed stands for: a path, a file, and what happens meanwhile.

use std::fmt;
use std::time::Duration as StdDuration;

use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{Duration, Rate, Rng};

/// What befalls an end while the file is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Nothing,
    /// The server is killed, and starts again at its address.
    Restart,
    /// The client is killed, and another goes on where it was.
    ClientKilled,
}

/// One seed's case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    pub(super) path: PathSpec,
    /// Of the file.
    pub(super) bytes: u64,
    pub(super) event: Event,
    /// When it happens, after the client's start.
    pub(super) at: StdDuration,
}

impl Case {
    pub(super) fn drawn(seed: u64) -> Self {
        let mut rng = Rng::from_test_seed(seed);
        let path = drawn_path(&mut rng);
        let bytes = 1 << (12 + rng.below(9));
        let bytes = bytes + rng.below(bytes);
        let event = match rng.below(4) {
            0 => Event::Restart,
            1 => Event::ClientKilled,
            _ => Event::Nothing,
        };
        let at = StdDuration::from_millis(50 + rng.below(1_500));
        Self { seed, path, bytes, event, at }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {} bytes; {}", self.seed, self.bytes, self.path.summary())?;
        match self.event {
            Event::Nothing => Ok(()),
            event => write!(f, "; {event:?} after {} ms", self.at.as_millis()),
        }
    }
}

/// Each fault is there in a third of the cases, and each path has a bottleneck.
fn drawn_path(rng: &mut Rng) -> PathSpec {
    let mut path = PathSpec {
        rtt: Duration::from_millis(2 + rng.below(120)),
        rate: Some(Rate::from_bits_per_second(2_000_000 + rng.below(40_000_000)).into()),
        queue: QueueSize::Bdp(0.5 + 3.0 * rng.unit_f64()),
        ..PathSpec::default()
    };
    let third = 1.0 / 3.0;
    match rng.below(3) {
        0 => path.loss = 0.1 * rng.unit_f64(),
        1 => (path.loss, path.burst) = (0.05 * rng.unit_f64(), Some(2.0 + 10.0 * rng.unit_f64())),
        _ => {}
    }
    if rng.chance(third) {
        path.reordering.probability = 0.2 * rng.unit_f64();
        path.reordering.extra_delay = Duration::from_millis(1 + rng.below(30));
    }
    if rng.chance(third) {
        path.duplication = 0.2 * rng.unit_f64();
    }
    if rng.chance(third) {
        path.corruption = 0.05 * rng.unit_f64();
    }
    if rng.chance(third) {
        path.outage = Some(posthaste_path::Outage {
            start: Duration::from_millis(rng.below(1_000)),
            length: Duration::from_millis(200 + rng.below(5_000)),
        });
    }
    path
}
