//! The same seed gives the same run, bit for bit.

use posthaste_lab::apps::{Bulk, Responder};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::world::{End, World};
use posthaste_path::{Bottleneck, PathConfig};
use posthaste_units::{ByteCount, Duration, Rate, Time};

fn run(stack: &str, seed: u64) -> (End, String, Time, u64) {
    let mut world = World::new(seed);
    let down = PathConfig {
        delay: Duration::from_millis(25),
        loss: 0.01,
        bottleneck: Some(Bottleneck::new(Rate::from_bits_per_second(100_000_000), ByteCount::new(625_000))),
        ..PathConfig::default()
    };
    let up = PathConfig { loss: 0.0, ..down.clone() };
    let down = world.add_link("down", down).expect("a valid link");
    let up = world.add_link("up", up).expect("a valid link");
    let stack: Stack = stack.parse().expect("a stack");
    let pair = stack.pair(&Settings::default(), world.rng());
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    let app = world.add_app(Box::new(Bulk::new(client, 1_000_000, Time::ZERO)), &[client]);
    world.add_app(Box::new(Responder::default()), &[server]);
    let end = world.run(Time::ZERO + Duration::from_secs(60));
    println!("{end:?} {:?} {:?}", world.app(app).report(), world.trace_hash());
    (end, world.trace_hash(), world.now(), world.packets())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(run("cubic", 1), run("cubic", 1));
    assert_ne!(run("cubic", 1).1, run("cubic", 2).1);
    assert_eq!(run("cubic", 1).0, End::Completed);
}
