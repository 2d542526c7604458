use clap::Parser;
use posthaste_path::{DEFAULT_JITTER_INTERVAL, RateModel, Reordering};
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
fn a_direction_may_vary_and_reorder() {
    let keys = "delay=30ms,jitter=5ms,jitter-distribution=pareto,reorder=2%,reorder-delay=4ms,reorder-correlation=25%";
    let found = directions(&["--down", keys, "--up", "delay=10ms,jitter=2ms,jitter-reorders=true"]).unwrap();
    let (jitter, reordering) = (found.down.jitter.unwrap(), found.down.reordering);
    // A path file's figure is another by the square root of two: there and back it may be off by a nanosecond.
    let off = |deviation: Duration, millis: u64| deviation.as_nanos().abs_diff(millis * 1_000_000);
    assert!(off(jitter.deviation, 5) <= 1, "{jitter:?}");
    assert_eq!((jitter.distribution, jitter.interval), (Distribution::Pareto, DEFAULT_JITTER_INTERVAL));
    assert_eq!((reordering.probability, reordering.correlation), (0.02, 0.25));
    assert_eq!(reordering.extra_delay, Duration::from_millis(4));
    let up = found.up.jitter.unwrap();
    assert!(off(up.deviation, 2) <= 1 && up.may_reorder && up.interval.is_zero(), "{up:?}");
    assert_eq!(found.up.reordering, Reordering::default());
    assert!(found.summary.contains("30 ms of it this way (std 5 ms, Pareto)"), "{}", found.summary);
    // What the path has, and the direction does not name, stays.
    let found = directions(&["--path", "lte", "--down", "jitter-interval=7ms"]).unwrap();
    let (lte, jitter) = (PathSpec::named("lte").unwrap().down().jitter.unwrap(), found.down.jitter.unwrap());
    assert!(off(jitter.deviation, 0).abs_diff(lte.deviation.as_nanos()) <= 1, "{jitter:?}");
    assert_eq!((jitter.interval, jitter.distribution), (Duration::from_millis(7), lte.distribution));
}

#[test]
fn what_is_documented_can_be_read() {
    let page = include_str!("../../../../../../docs/guide/emulate.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let spec = PathSpec::from_toml(example).unwrap();
    assert_eq!((spec.rtt, spec.loss, spec.burst), (Duration::from_millis(80), 0.01, Some(4.0)));
    assert!(KEYS.iter().all(|key| page.contains(&format!("`{key}`"))), "each key is explained");

    let help = <Args as clap::CommandFactory>::command();
    let help = help.find_subcommand("emulate").unwrap().get_after_help().unwrap().to_string();
    let (_, rest) = help.split_once("A path file").unwrap();
    let (example, rest) = rest.split_once('\n').unwrap().1.split_once("\n\n").unwrap();
    // What stands behind a value is for people.
    let lines = example.lines().map(|line| line.trim().split("    ").next().unwrap());
    let spec = PathSpec::from_toml(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert_eq!((spec.rtt, spec.reordering.probability), (Duration::from_millis(80), 0.01));
    assert!(KEYS.iter().all(|key| rest.contains(key)), "each key is named");
}

#[test]
fn more_than_can_be_held_is_said_in_advance() {
    let warnings = |arguments: &[&str]| directions(arguments).unwrap().warnings().collect::<Vec<_>>();
    for name in PathSpec::names() {
        assert_eq!(warnings(&["--path", name]), [""; 0], "{name}");
    }
    // 37.5 MB under way and 75 MB of queue, the default of one round trip, beside nothing up.
    let said = warnings(&["--down", "rate=1gbit,delay=300ms", "--up", "delay=300ms"]);
    assert_eq!(said.len(), 1, "{said:?}");
    for part in ["path down holds 67.1 MB", "(75.0 MB)", "(37.5 MB)", "A queue of 29.6 MB fits"] {
        assert!(said[0].contains(part), "{part}: {said:?}");
    }
    let fitting = ["--down", "rate=1gbit,delay=300ms,queue=29MB", "--up", "delay=300ms"];
    assert_eq!(warnings(&fitting), [""; 0]);
    assert_eq!(warnings(&["--up", "rate=1mbit,queue=1GB"]).len(), 1);
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
        (["--down", "speed=1mbit"], "a path file has more, such as outage: --path ./mine.toml"),
        (["--down", "delay=5"], "--down: delay: "),
        (["--down", "jitter=5"], "--down: jitter: "),
        (["--up", "jitter-reorders=perhaps"], "--up: jitter-reorders: `perhaps` is neither true nor false"),
        (["--up", "jitter-interval=1ms"], "--up: what is said of jitter needs jitter, such as jitter=5ms"),
        (
            ["--up", "reorder=1%"],
            "--up: what is said of reorder needs reorder-delay, such as reorder-delay=5ms",
        ),
        (["--up", "reorder-delay=1ms"], "--up: what is said of reorder needs reorder, such as reorder=1%"),
        (["--down", "trace-file=/nosuch"], "--down: cannot read /nosuch"),
    ] {
        let error = directions(&arguments).unwrap_err();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
