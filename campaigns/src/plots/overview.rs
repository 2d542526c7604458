//! The README's picture: median completion times of the experiment `bbr-loss` as bars on a logarithmic axis.

use std::fmt::Write;

use posthaste_lab::experiment::{CellFilter, Experiment};
use posthaste_lab::limit::limit;
use posthaste_lab::run::run;
use posthaste_report::statistics::quantile;

use crate::Result;

/// Its name for `--only`, and its file in `docs`.
pub(super) const NAME: &str = "overview";

const EXPERIMENT: &str = "bbr-loss";
const OBJECT: &str = "10MB";

/// Values of the experiment's axis `path`, and what the picture calls them.
const PATHS: [(&str, &str); 5] = [
    ("clean", "no loss, 40 ms"),
    ("good", "1 % loss, 38 ms"),
    ("average", "2 % loss, 50 ms"),
    ("bad", "8 % loss, 188 ms"),
    ("lte", "LTE"),
];

/// Values of the axis `stack`, and what the picture calls them. The profile `mobile` goes first.
const STACKS: [(&str, &str); 3] = [("bbr", "bbr"), ("quinn:bbr", "quinn, BBR"), ("cubic", "cubic")];

/// Colours of the limit and the stacks (Okabe and Ito), which differ in lightness.
const COLOURS: [&str; 4] = ["#6e6e6e", "#d55e00", "#56b4e9", "#0072b2"];

/// The axis, in powers of ten of seconds: from 0.5 s to 1,000 s.
const AXIS: (f64, f64) = (-0.301, 3.0);

/// Pixels.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 140.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 40.0;
const BAR: f64 = 12.0;
const GROUP: f64 = 4.0 * BAR + 14.0;

/// Medians of one path in seconds: the physical limit, then each stack; `None` if a run did not finish.
type Row = (&'static str, Vec<Option<f64>>);

/// Runs the experiment's cells and draws them.
pub(super) fn svg() -> Result<String> {
    let experiment = Experiment::built_in(EXPERIMENT)?;
    let rows = PATHS.iter().map(|path| row(&experiment, path)).collect::<Result<Vec<_>>>()?;
    Ok(draw(&rows, experiment.seeds))
}

fn row(experiment: &Experiment, (path, label): &(&str, &'static str)) -> Result<Row> {
    let mut seconds = Vec::new();
    for (stack, _) in STACKS {
        let cells = format!("path={path},object={OBJECT},stack={stack}");
        let chosen = experiment.select(&cells.parse::<CellFilter>()?)?;
        let [cell] = chosen[..] else {
            return Err(format!("{cells} is not one cell of {EXPERIMENT}").into());
        };
        let spec = &experiment.cells[cell].spec;
        if seconds.is_empty() {
            seconds.push(limit(spec).map(|limit| limit.seconds));
        }
        let results = (0..experiment.seeds)
            .map(|seed| run(spec, seed, None))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let times: Option<Vec<f64>> =
            results.iter().map(|result| result.flows.first().and_then(|flow| flow.completion)).collect();
        seconds.push(times.and_then(|times| quantile(&times, 0.5)));
    }
    Ok((label, seconds))
}

/// Bars side by side, each with its figure.
fn draw(rows: &[Row], seeds: u64) -> String {
    let height = TOP + rows.len() as f64 * GROUP + 44.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let labels = ["physical limit"].into_iter().chain(STACKS.iter().map(|(_, label)| *label));
    for (index, (label, colour)) in labels.zip(COLOURS).enumerate() {
        let x = LEFT + 150.0 * index as f64;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"14\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"24\">{label}</text>", x + 18.0);
    }
    let bottom = TOP + rows.len() as f64 * GROUP;
    for power in 0..=3 {
        let x = position(10_f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#ccc\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{} s</text>",
            bottom + 16.0,
            10_u32.pow(power.unsigned_abs())
        );
    }
    for (index, (label, seconds)) in rows.iter().enumerate() {
        let top = TOP + index as f64 * GROUP + 7.0;
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            top + 2.0 * BAR + 4.0
        );
        for (bar, (value, colour)) in seconds.iter().zip(COLOURS).enumerate() {
            let y = top + bar as f64 * BAR;
            let (end, text) =
                value.map_or((LEFT, "not finished".to_owned()), |value| (position(value), figure(value)));
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" fill=\"{colour}\"/>",
                end - LEFT,
                BAR - 1.0
            );
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" font-size=\"11\">{text}</text>",
                end + 4.0,
                y + BAR - 2.0
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\">Time to download {OBJECT}, median of {seeds} runs, logarithmic axis</text>\n</svg>",
        bottom + 34.0
    );
    svg
}

fn position(seconds: f64) -> f64 {
    let part = ((seconds.log10() - AXIS.0) / (AXIS.1 - AXIS.0)).clamp(0.0, 1.0);
    LEFT + part * (WIDTH - LEFT - RIGHT)
}

/// Three significant digits.
fn figure(seconds: f64) -> String {
    let decimals = if seconds < 9.995 { 2 } else { usize::from(seconds < 99.95) };
    format!("{seconds:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_names_cells_that_exist() {
        let experiment = Experiment::built_in(EXPERIMENT).unwrap();
        for (path, _) in PATHS {
            for (stack, _) in STACKS {
                let cells = format!("path={path},object={OBJECT},stack={stack}");
                assert_eq!(experiment.select(&cells.parse().unwrap()).unwrap().len(), 1, "{cells}");
            }
        }
    }

    #[test]
    fn bars_have_their_figures_and_longer_times_are_longer() {
        let svg = draw(&[("LTE", vec![Some(0.917), Some(23.31), None, Some(449.4)])], 20);
        for text in ["0.92", "23.3", "not finished", "449", "LTE", "median of 20 runs"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(position(1.0) < position(10.0) && position(0.1) >= LEFT);
    }
}
