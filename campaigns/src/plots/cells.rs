//! The picture of `docs/results/mobile.md`: how near every stack of the experiment `mo-cells` comes to the physical limit.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use posthaste_lab::experiment::Experiment;
use posthaste_lab::sweep::{self, Ending, Options, Selection};
use posthaste_report::experiment_result::ExperimentResult;
use posthaste_report::metric;

use crate::Result;

/// Its name for `--only`, and its file in `docs/results`.
pub(super) const NAME: &str = "mobile";

const EXPERIMENT: &str = "mo-cells";

/// Runs of a cell.
const SEEDS: u64 = 30;

/// Colours of the stacks, in the experiment's order (Okabe and Ito, which differ in lightness).
const COLOURS: [&str; 6] = ["#d55e00", "#000000", "#0072b2", "#56b4e9", "#e69f00", "#999999"];

/// The axis: completion times over the limit, on a logarithmic scale. What is beyond its end is drawn to it.
const END: f64 = 20.0;
const TICKS: [f64; 6] = [1.0, 1.5, 2.0, 4.0, 8.0, 16.0];

/// Pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 165.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 40.0;
const BAR: f64 = 8.0;
const GAP: f64 = 10.0;

/// Median and 95th percentile of a stack; `None` if not every run finished.
type Bar = Option<(f64, f64)>;

/// A cell, and its stacks in the experiment's order.
type Group = (String, Vec<Bar>);

/// Runs the experiment and draws it.
pub(super) fn svg() -> Result<String> {
    let experiment = Experiment::built_in(EXPERIMENT)?;
    let selection = Selection {
        cells: (0..experiment.cells.len()).collect(),
        seeds: 0..SEEDS,
        series: None,
        command: &|_| String::new(),
    };
    let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = Options { selection, jobs, shard: None, qlog: None, journal: None };
    let report = sweep::run(&experiment, options, &mut |_| {}, &AtomicBool::new(false));
    let Ending::Complete(result) = report.ending else { return Err("the lab could not run".into()) };
    let stacks = &result.axes.last().ok_or("the experiment has no axis of stacks")?.values;
    Ok(draw(stacks, &groups(&result)?))
}

/// The figures of an experiment whose last axis is the stack.
fn groups(result: &ExperimentResult) -> Result<Vec<Group>> {
    let (median, p95) = (metric::find("to-limit")?, metric::find("to-limit.p95")?);
    let mut groups: Vec<Group> = Vec::new();
    for cell in &result.cells {
        let label = cell.coordinates.first().cloned().unwrap_or_default();
        let finished = cell.runs.iter().all(|run| run.flows.iter().all(|flow| flow.completion.is_some()));
        let bar = median.value(result, cell).zip(p95.value(result, cell)).filter(|_| finished);
        match groups.last_mut() {
            Some(group) if group.0 == label => group.1.push(bar),
            _ => groups.push((label, vec![bar])),
        }
    }
    Ok(groups)
}

/// A bar to each median, and a line from there to the 95th percentile.
fn draw(stacks: &[String], groups: &[Group]) -> String {
    let group_height = stacks.len() as f64 * BAR + GAP;
    let bottom = TOP + groups.len() as f64 * group_height;
    let height = bottom + 44.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (index, (stack, colour)) in stacks.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 110.0 * index as f64;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"14\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"24\">{stack}</text>", x + 18.0);
    }
    for tick in TICKS {
        let x = position(tick);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ccc\"/>");
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>", bottom + 16.0);
    }
    for (index, (label, bars)) in groups.iter().enumerate() {
        let top = TOP + index as f64 * group_height + GAP / 2.0;
        let middle = top + stacks.len() as f64 * BAR / 2.0 + 4.0;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{label}</text>", LEFT - 8.0);
        for (place, (bar, colour)) in bars.iter().zip(COLOURS).enumerate() {
            draw_bar(&mut svg, top + place as f64 * BAR, *bar, colour);
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\">Completion time over the physical limit: median (bar), 95th percentile (line) of {SEEDS} runs; logarithmic axis</text>\n</svg>",
        bottom + 36.0
    );
    svg
}

fn draw_bar(svg: &mut String, y: f64, bar: Bar, colour: &str) {
    let Some((median, p95)) = bar else {
        let text_y = y + BAR - 1.0;
        let _ =
            writeln!(svg, "<text x=\"{LEFT}\" y=\"{text_y}\" font-size=\"8\">not every run finished</text>");
        return;
    };
    let (end, tip, middle) = (position(median), position(p95), y + BAR / 2.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>",
        // So that what is at the limit is seen.
        (end - LEFT).max(1.5),
        BAR - 1.0
    );
    let _ =
        writeln!(svg, "<path d=\"M{end:.1} {middle}H{tip:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>");
}

/// Where a ratio stands.
fn position(ratio: f64) -> f64 {
    let part = (ratio.ln() / END.ln()).clamp(0.0, 1.0);
    LEFT + part * (WIDTH - LEFT - RIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiment_has_mobile_first_and_a_colour_for_each_stack() {
        let experiment = Experiment::built_in(EXPERIMENT).unwrap();
        let stacks = &experiment.axes.last().unwrap().values;
        assert_eq!(stacks.first().map(String::as_str), Some("mobile"));
        assert!(stacks.len() <= COLOURS.len(), "{stacks:?}");
        let page = std::fs::read_to_string(crate::workspace::root().join("docs/results/mobile.md")).unwrap();
        assert!(page.contains("(mobile.svg)"));
    }

    #[test]
    fn bars_stand_where_their_ratios_are() {
        let stacks = ["a".to_owned(), "b".to_owned()];
        let svg = draw(&stacks, &[("LTE".to_owned(), vec![Some((1.0, 400.0)), None])]);
        assert!(svg.contains("LTE") && svg.contains("not every run finished"));
        assert!((position(1.0) - LEFT).abs() < 1e-9);
        assert!((position(400.0) - (WIDTH - RIGHT)).abs() < 1e-9, "drawn to the axis's end");
        assert!((position(2.0) - position(1.0) - (position(4.0) - position(2.0))).abs() < 1e-9);
    }
}
