//! Scales, thinning, looks and sentences, from results made by hand. The page as a whole: `tests/report`.
#![expect(clippy::float_cmp, reason = "these values are exact")]

use super::axis::Axis;
use super::series::{averaged, smoothed, thinned};
use super::trend::spread;
use super::*;
use crate::experiment_result::{Axis as Varied, CellResult, Limit};
use crate::metric::Unit;
use crate::result::{FlowResult, Outcome, RunResult};

fn labels(axis: Axis, unit: Unit) -> Vec<String> {
    axis.ticks(unit, 6).into_iter().map(|tick| tick.label).collect()
}

#[test]
fn ticks_are_round_in_the_unit_that_is_shown() {
    let axis = Axis::linear((0.0, 0.9), (0.0, 100.0));
    assert_eq!(labels(axis, Unit::Seconds), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
    let rates = Axis::linear((0.0, 106e6), (0.0, 100.0));
    assert_eq!(labels(rates, Unit::BitsPerSecond), ["0", "20", "40", "60", "80", "100"]);
    assert_eq!(rates.suffix(Unit::BitsPerSecond), "Mbit/s");
    let decades = Axis::log((0.02, 300.0), (0.0, 100.0));
    assert_eq!(labels(decades, Unit::Seconds), ["0.1", "1", "10", "100"]);
}

#[test]
fn values_beyond_an_axis_stand_at_its_end() {
    let axis = Axis::log((1.0, 100.0), (10.0, 30.0));
    assert_eq!([0.0, 1.0, 10.0, 100.0, 1e9].map(|value| axis.at(value)), [10.0, 10.0, 20.0, 30.0, 30.0]);
    // Upside down, as vertical axes are, and without any extent.
    assert_eq!(Axis::linear((0.0, 4.0), (80.0, 0.0)).at(1.0), 60.0);
    let flat = Axis::fitting([3.0, 3.0].into_iter(), (0.0, 10.0));
    assert!(flat.at(3.0).is_finite() && !flat.ticks(Unit::Count, 4).is_empty());
    assert!(Axis::fitting(std::iter::empty(), (0.0, 10.0)).at(0.5).is_finite());
}

#[test]
fn a_wide_range_of_values_is_logarithmic() {
    assert!(Axis::fitting([1.0, 13.0].into_iter(), (0.0, 1.0)).is_log());
    assert!(!Axis::fitting([1.0, 11.0].into_iter(), (0.0, 1.0)).is_log());
    assert!(!Axis::fitting([0.0, 1300.0].into_iter(), (0.0, 1.0)).is_log());
    assert!(Axis::fitting([1.0, f64::INFINITY, 2.0].into_iter(), (0.0, 1.0)).at(f64::INFINITY) <= 1.0);
}

#[test]
fn thinning_keeps_peaks_and_gaps() {
    let mut pairs: Vec<(f64, Option<f64>)> = (0..1000).map(|index| (f64::from(index), Some(1.0))).collect();
    pairs[333].1 = Some(9.0);
    pairs[334].1 = Some(-9.0);
    for pair in &mut pairs[500..700] {
        pair.1 = None;
    }
    let thin = thinned(&pairs, |at| (at / 100.0) as usize);
    assert!(thin.len() <= 20, "{} points", thin.len());
    assert!(thin.contains(&(333.0, Some(9.0))) && thin.contains(&(334.0, Some(-9.0))));
    assert_eq!(
        thin.iter().filter(|(_, value)| value.is_none()).count(),
        2,
        "one point for each empty column"
    );
    assert!(thin.is_sorted_by(|a, b| a.0 < b.0));
    let means = averaged(&pairs, |at| (at / 500.0) as usize);
    assert_eq!(means.iter().map(|(_, mean)| *mean).collect::<Vec<_>>(), [Some(498.0 / 500.0), Some(1.0)]);
}

#[test]
fn a_burst_each_round_trip_becomes_its_mean_rate() {
    let bursts: Vec<(f64, Option<f64>)> =
        (0..40).map(|index| (f64::from(index), Some(if index % 4 == 0 { 100.0 } else { 0.0 }))).collect();
    let smooth = smoothed(&bursts, 4);
    assert!(smooth[3..].iter().all(|(_, value)| *value == Some(25.0)), "{smooth:?}");
    assert_eq!(smoothed(&bursts, 1), bursts);
    let gap = [(0.0, Some(4.0)), (1.0, None), (2.0, Some(8.0)), (3.0, Some(2.0))];
    let values: Vec<Option<f64>> = smoothed(&gap, 2).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, [Some(4.0), None, Some(8.0), Some(5.0)]);
}

#[test]
fn names_beside_curves_do_not_overlap() {
    let places = spread(&[50.0, 51.0, 49.0, 100.0, 99.0], 13.0, (0.0, 104.0));
    let mut sorted = places.clone();
    sorted.sort_by(f64::total_cmp);
    assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 13.0), "{places:?}");
    assert!(sorted[0] >= 0.0 && sorted[4] <= 104.0, "{places:?}");
    assert!(places[2] < places[0] && places[0] < places[1], "in the curves' order: {places:?}");
}

#[test]
fn no_two_stacks_look_alike() {
    let names = ["newreno", "cubic", "noq:cubic", "noq:bbr3", "quinn:cubic", "quinn:bbr", "tcp:cubic"];
    let looks = style::looks(&names);
    for (index, look) in looks.iter().enumerate() {
        assert!(!looks[..index].contains(look), "{} looks like another", names[index]);
    }
    assert_eq!(looks[1].hue, looks[0].hue, "a stack, a colour");
    assert_eq!((looks[1].dash, looks[2].dash), (looks[4].dash, looks[6].dash), "a controller, a line style");
    assert!(looks[1].is_ours && !looks[2].is_ours);
    let profiles: Vec<String> = (0..20).map(|index| format!("profile-{index}")).collect();
    let profiles: Vec<&str> = profiles.iter().map(String::as_str).collect();
    let looks = style::looks(&profiles);
    assert!((1..20).all(|index| !looks[..index].contains(&looks[index])));
}

#[test]
fn text_of_others_cannot_leave_its_place() {
    assert_eq!(escape("<a href='x'>&\"\u{1b}"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;\u{fffd}");
}

fn run(seed: u64, stack: &str, completion: Option<f64>) -> RunResult {
    let flow = FlowResult {
        name: "fetch".to_owned(),
        stack: stack.to_owned(),
        completion,
        bytes: 1_000_000,
        ..FlowResult::default()
    };
    RunResult {
        seed,
        outcome: if completion.is_some() { Outcome::Completed } else { Outcome::Deadline },
        virtual_seconds: completion.unwrap_or(60.0),
        limit: None,
        trace_hash: String::new(),
        packets: 0,
        flows: vec![flow],
        links: Vec::new(),
        series: None,
    }
}

/// Ten runs a cell: `(path, stack, seconds of the runs)`; the limit is half a second.
fn experiment(cells: &[(&str, &str, Option<f64>)]) -> ExperimentResult {
    let unique = |values: Vec<&str>| -> Vec<String> {
        let mut seen: Vec<String> = Vec::new();
        for value in values {
            if !seen.iter().any(|other| other == value) {
                seen.push(value.to_owned());
            }
        }
        seen
    };
    let axis = |name: &str, values| Varied { name: name.to_owned(), values: unique(values) };
    let made = cells.iter().map(|(path, stack, seconds)| CellResult {
        coordinates: vec![(*path).to_owned(), (*stack).to_owned()],
        limit: Some(Limit { seconds: 0.5, terms: "1 RTT".to_owned(), rate: None }),
        runs: (1..=10)
            .map(|seed| run(seed, stack, seconds.map(|seconds| seconds * (1.0 + 0.001 * seed as f64))))
            .collect(),
        ..CellResult::default()
    });
    ExperimentResult {
        baseline: Some("cubic".to_owned()),
        subject: None,
        axes: vec![
            axis("path", cells.iter().map(|cell| cell.0).collect()),
            axis("stack", cells.iter().map(|cell| cell.1).collect()),
        ],
        metrics: vec!["completion".to_owned()],
        seeds: 10,
        cells: made.collect(),
        ..ExperimentResult::default()
    }
}

/// The findings without markup.
fn findings_of(experiment: &ExperimentResult) -> Vec<String> {
    let html = findings::list(&Layout::new(experiment)).replace("\u{a0}", " ");
    let lines = html.lines().filter(|line| line.starts_with("<li"));
    let plain = |line: &str| {
        let mut is_inside = false;
        let keep = |c: char| {
            let was_inside = is_inside;
            is_inside = if was_inside { c != '>' } else { c == '<' };
            !was_inside && !is_inside
        };
        line.chars()
            .filter({
                let mut keep = keep;
                move |c| keep(*c)
            })
            .collect()
    };
    lines.map(plain).collect()
}

#[test]
fn findings_say_what_the_numbers_say() {
    let experiment = experiment(&[
        ("good", "cubic", Some(1.0)),
        ("good", "noq:cubic", Some(1.25)),
        ("good", "quinn:bbr", Some(0.75)),
        ("bad", "cubic", Some(4.0)),
        ("bad", "noq:cubic", Some(3.0)),
        ("bad", "quinn:bbr", Some(1.0)),
    ]);
    let findings = findings_of(&experiment);
    assert_eq!(findings[0], "quinn:bbr is fastest in all 2 conditions.");
    assert_eq!(
        findings[1],
        "Controller for controller, cubic is decidedly ahead of noq:cubic in 1 of 2, behind in 1."
    );
    assert_eq!(
        findings[2],
        "good: cubic finishes in 1.01 s (median), 2.01 \u{d7} the limit; fastest quinn:bbr 0.754 s (0.75 \u{d7} \
         [0.75, 0.75]); slowest noq:cubic 1.26 s (1.25 \u{d7} [1.25, 1.25])."
    );
    assert_eq!(findings.len(), 4, "{findings:#?}");
}

#[test]
fn findings_do_not_divide_by_deadlines() {
    let experiment = experiment(&[
        ("bad", "cubic", None),
        ("bad", "noq:cubic", None),
        ("bad", "tcp:cubic", None),
        ("bad", "quinn:bbr", Some(1.0)),
    ]);
    let findings = findings_of(&experiment);
    assert_eq!(findings[0], "Controller for controller, cubic cannot be told from noq:cubic, tcp:cubic.");
    assert_eq!(
        findings[1],
        "bad: cubic finishes 0 of 10 runs by the deadline; fastest quinn:bbr 1.01 s; noq:cubic, tcp:cubic finish at \
         most half of their runs by the deadline."
    );
    assert_eq!(
        findings[2],
        "30 of 40 runs are incomplete (cubic 10, noq:cubic 10, tcp:cubic 10); they count as worse than all others, \
         never as absent."
    );
    let page = page(std::slice::from_ref(&experiment));
    assert!(
        page.contains(">&lt;1<"),
        "the ratio to a baseline that never ends is below one, no more is known"
    );
    assert!(
        !page.contains("[0.00") && !page.contains("\u{221e}"),
        "and it is neither nothing nor without end"
    );
}
