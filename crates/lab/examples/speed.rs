//! How fast the lab is: one download over a clean path, many times, for `cargo xtask bench lab` and profilers.
//!
//! `speed [STACK [BYTES [REPETITIONS]]]` prints one JSON object: packets and virtual seconds of one run. The caller
//! measures the process.

use posthaste_lab::apps::{Bulk, Responder};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::world::{End, World};
use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{Duration, Rate, Time};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let stack = arguments.next().unwrap_or_else(|| "cubic".to_owned());
    let stack: Stack = stack.parse().unwrap_or_else(|error| panic!("{error}"));
    let bytes = arguments.next().map_or(10_000_000, |text| text.parse().expect("BYTES is a number"));
    let repetitions = arguments.next().map_or(1, |text| text.parse().expect("REPETITIONS is a number"));
    let mut last = None;
    for seed in 0..repetitions {
        last = Some(run(&stack, bytes, seed));
    }
    if let Some((packets, seconds)) = last {
        println!(
            "{{\"stack\":\"{stack}\",\"bytes\":{bytes},\"repetitions\":{repetitions},\"packets\":{packets},\"virtual_seconds\":{seconds}}}"
        );
    }
}

/// 100 Mbit/s, 50 ms, a queue of one bandwidth-delay product, no loss.
fn run(stack: &Stack, bytes: u64, seed: u64) -> (u64, f64) {
    let mut path = PathSpec::named("average").expect("a built-in path");
    path.rtt = Duration::from_millis(50);
    path.rate = Some(Rate::from_bits_per_second(100_000_000).into());
    path.loss = 0.0;
    path.queue = QueueSize::Bdp(1.0);
    let mut world = World::new(seed);
    let up = world.add_link("up", path.up()).expect("a valid link");
    let down = world.add_link("down", path.down()).expect("a valid link");
    let pair = stack.pair(&Settings::default(), world.rng());
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    world.add_app(Box::new(Bulk::new(client, bytes, Time::ZERO)), &[client]);
    world.add_app(Box::new(Responder::default()), &[server]);
    let end = world.run(Time::ZERO + Duration::from_secs(600));
    assert_eq!(end, End::Completed, "the run must finish");
    (world.packets(), world.now().as_secs_f64())
}
