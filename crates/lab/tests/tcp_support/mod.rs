//! What the tests of the TCP model share.

use posthaste_lab::apps::{Bulk, Responder};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::world::{End, World};
use posthaste_path::{Bottleneck, PathConfig};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// One download over one path.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) stack: &'static str,
    pub(crate) bytes: u64,
    pub(crate) rtt: Duration,
    pub(crate) rate: Option<Rate>,
    /// Queue in bytes.
    pub(crate) queue: u64,
    pub(crate) loss: f64,
    pub(crate) up_loss: f64,
    pub(crate) seed: u64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            stack: "tcp:cubic",
            bytes: 1_000_000,
            rtt: Duration::from_millis(50),
            rate: Some(Rate::from_bits_per_second(100_000_000)),
            queue: 625_000,
            loss: 0.0,
            up_loss: 0.0,
            seed: 1,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) connected: f64,
    pub(crate) finished: f64,
    pub(crate) hash: String,
    pub(crate) packets: u64,
}

pub(crate) fn run(case: &Case) -> Outcome {
    let mut world = World::new(case.seed);
    let bottleneck = case.rate.map(|rate| Bottleneck { rate, queue: ByteCount::new(case.queue) });
    let down = PathConfig { delay: case.rtt / 2, loss: case.loss, bottleneck, ..PathConfig::default() };
    let up = PathConfig { loss: case.up_loss, ..down.clone() };
    let down = world.add_link("down", down).expect("a valid link");
    let up = world.add_link("up", up).expect("a valid link");
    let stack: Stack = case.stack.parse().expect("a stack");
    let pair = stack.pair(&Settings::default(), world.rng());
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    let app = world.add_app(Box::new(Bulk::new(client, case.bytes, Time::ZERO)), &[client]);
    world.add_app(Box::new(Responder::default()), &[server]);
    let end = world.run(Time::ZERO + Duration::from_secs(600));
    let report = world.app(app).report();
    let seconds = |time: Option<Time>| time.map_or(f64::NAN, Time::as_secs_f64);
    Outcome {
        end,
        connected: seconds(report.connected),
        finished: seconds(report.finished),
        hash: world.trace_hash(),
        packets: world.packets(),
    }
}
