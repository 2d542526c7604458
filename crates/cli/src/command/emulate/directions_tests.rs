use clap::Parser;
use posthaste_path::RateModel;
use posthaste_units::{ByteCount, Rate};

use super::*;
use crate::args::{Args, Command};

fn directions(arguments: &[&str]) -> Result<Directions, String> {
    let words = ["posthaste", "emulate"].iter().chain(arguments).chain(&["--", "true"]);
    match Args::parse_from(words).command {
        Command::Emulate(args) => Directions::new(&args).map_err(|failure| failure.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_named_path_is_that_of_the_lab() {
    for name in PathSpec::names() {
        let spec = PathSpec::named(name).unwrap();
        let found = directions(&["--path", name]).unwrap();
        assert_eq!((found.down, found.up), (spec.down(), spec.up()), "{name}");
        assert!(found.summary.starts_with(name));
    }
    assert_eq!(directions(&[]).unwrap().down, PathSpec::named("average").unwrap().down());
}

#[test]
fn a_direction_changes_what_it_names() {
    let lte = PathSpec::named("lte").unwrap();
    let found = directions(&["--path", "lte", "--down", "rate=20mbit,loss=1%,queue=50kB"]).unwrap();
    let bottleneck = found.down.bottleneck.unwrap();
    assert_eq!(bottleneck.rate, RateModel::Constant(Rate::from_bits_per_second(20_000_000)));
    assert_eq!((bottleneck.queue, found.down.loss), (ByteCount::new(50_000), 0.01));
    assert_eq!((found.down.delay, found.down.jitter), (lte.down().delay, lte.down().jitter));
    assert_eq!(found.up, lte.up());
    let found = directions(&["--path", "lte", "--up", "loss=0"]).unwrap();
    let (down, up) = (lte.down(), PathConfig { loss: 0.0, ..lte.up() });
    assert_eq!((found.down, found.up), (down, up), "the uplink's rate stays the uplink's");
}

#[test]
fn directions_alone_begin_with_a_perfect_wire() {
    let found =
        directions(&["--down", "rate=8mbit,delay=30ms,discipline=codel,ecn=true", "--up", "delay=10ms"])
            .unwrap();
    assert_eq!(found.up, PathConfig { delay: Duration::from_millis(10), ..PathConfig::default() });
    assert_eq!(found.down.delay, Duration::from_millis(30));
    // One megabyte a second for the 40 ms of both directions.
    assert_eq!(found.down.bottleneck.unwrap().queue, ByteCount::new(40_000));
}

#[test]
fn a_bad_direction_names_what_is_wrong() {
    for (arguments, expected) in [
        (["--path", "nosuch"], "there are: good, average"),
        (["--down", "rate"], "--down: `rate` is not KEY=VALUE"),
        (["--down", "speed=1mbit"], "--down: there is no key `speed`; there are: rate"),
        (["--up", "rate=fast"], "--up: "),
        (["--up", "loss=120%"], "--up: "),
        (["--up", "ecn=perhaps"], "--up: ecn: `perhaps` is neither true nor false"),
        (["--down", "delay=5"], "--down: delay: "),
        (["--down", "trace-file=/nosuch"], "--down: cannot read /nosuch"),
    ] {
        let error = directions(&arguments).unwrap_err();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
