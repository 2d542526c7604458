//! `cargo campaigns plots`: the pictures of `docs/schemes` and of `docs/results/mobile.md`, drawn from runs of the lab. The same source
//! gives the same files.

mod cells;
mod draw;
mod figures;

use std::path::{Path, PathBuf};

use clap::Args;
use posthaste_lab::experiment::{CellFilter, Experiment};
use posthaste_lab::run::run as run_in_lab;
use posthaste_units::Duration;

use crate::Result;
use crate::workspace::root;
use draw::Curve;
use figures::{FIGURES, Figure, Panel, Quantity};

/// How often gauges are read.
const INTERVAL: Duration = Duration::from_millis(10);

/// Of `cargo campaigns plots`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each curve is one run of an experiment of the lab (seed 0); `mobile` has 30 runs of each cell of `mo-cells` and takes minutes.
Example: cargo campaigns plots --only freeze --folder /tmp/pictures"
)]
pub(crate) struct Arguments {
    /// Draw only these: `mobile` (docs/results) or names of pages in docs/schemes [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Directory for the pictures [default: docs/results and docs/schemes of this repository]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Runs and draws.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let figures = chosen(&arguments.only)?;
    let place = |folder: &str| arguments.folder.clone().unwrap_or_else(|| root().join(folder));
    if arguments.only.is_empty() || arguments.only.iter().any(|name| name == cells::NAME) {
        write(&place("docs/results"), cells::NAME, &cells::svg()?)?;
    }
    for figure in figures {
        write(&place("docs/schemes"), figure.name, &picture(figure)?)?;
    }
    Ok(true)
}

fn write(folder: &Path, name: &str, svg: &str) -> Result<()> {
    let path = folder.join(format!("{name}.svg"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, svg))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

fn chosen(only: &[String]) -> Result<Vec<&'static Figure>> {
    let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).chain([cells::NAME]).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("no picture {unknown:?}; there are: {}", names.join(", ")).into());
    }
    Ok(FIGURES
        .iter()
        .filter(|figure| only.is_empty() || only.iter().any(|name| name == figure.name))
        .collect())
}

fn picture(figure: &Figure) -> Result<String> {
    let panels = figure
        .panels
        .iter()
        .map(|panel| {
            let curves = panel
                .curves
                .iter()
                .map(|(stack, label)| curve(figure, panel, stack, label))
                .collect::<Result<_>>()?;
            Ok((panel, curves))
        })
        .collect::<Result<Vec<_>>>()?;
    draw::svg(figure, &panels)
}

/// One run's gauge, as means of the figure's steps.
fn curve(figure: &Figure, panel: &Panel, stack: &str, label: &'static str) -> Result<Curve> {
    let experiment = Experiment::built_in(panel.experiment)?;
    let cells = format!("{},stack={stack}", panel.cells);
    let chosen = experiment.select(&cells.parse::<CellFilter>()?)?;
    let [cell] = chosen[..] else {
        return Err(format!("{}: {cells} are {} cells, not one", panel.experiment, chosen.len()).into());
    };
    let mut spec = experiment.cells[cell].spec.clone();
    spec.series = Some(INTERVAL);
    let begins = spec.flows.first().map_or(0.0, |flow| flow.start.as_secs_f64());
    // What comes after the picture's end needs not be run.
    spec.deadline = spec.deadline.min(Duration::from_secs_f64(begins + panel.seconds + 1.0));
    let result = run_in_lab(&spec, 0, None)?;
    let name = result.flows.first().map(|flow| flow.name.clone()).unwrap_or_default();
    let series = result.series.ok_or("the lab recorded no series")?;
    let quantity = figure.quantity.gauge();
    let gauge = series
        .gauges
        .iter()
        .find(|gauge| gauge.of == name && gauge.quantity == quantity)
        .ok_or_else(|| format!("{}: no {quantity} of {name:?}", panel.experiment))?;
    let values = series.times.iter().map(|time| time - begins).zip(gauge.values.iter().copied());
    Ok(Curve { label, points: means(values, panel.step, panel.seconds, figure.quantity) })
}

/// Means of `step` seconds, at their middles, within the first `seconds`; steps without a value are left out.
fn means(
    values: impl Iterator<Item = (f64, Option<f64>)>,
    step: f64,
    seconds: f64,
    quantity: Quantity,
) -> Vec<(f64, f64)> {
    let mut sums = vec![(0.0, 0_u32); (seconds / step).ceil() as usize];
    for (time, value) in values {
        if let (Some(value), true) = (value, time >= 0.0)
            && let Some(sum) = sums.get_mut((time / step) as usize)
        {
            sum.0 += value;
            sum.1 += 1;
        }
    }
    let middles = (0..).map(|index| (f64::from(index) + 0.5) * step);
    let filled = sums.into_iter().zip(middles).filter(|((_, count), _)| *count > 0);
    filled.map(|((sum, count), time)| (time, sum / f64::from(count) / quantity.unit())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_picture_names_cells_that_there_are() {
        for figure in &FIGURES {
            for panel in figure.panels {
                let experiment = Experiment::built_in(panel.experiment).unwrap();
                for (stack, _) in panel.curves {
                    let cells = format!("{},stack={stack}", panel.cells);
                    let chosen = experiment.select(&cells.parse().unwrap()).unwrap();
                    assert_eq!(chosen.len(), 1, "{}: {cells}", panel.experiment);
                }
            }
            let page = root().join(format!("docs/schemes/{}.md", figure.name));
            let text = std::fs::read_to_string(&page).unwrap();
            assert!(text.contains(&format!("({}.svg)", figure.name)), "{} shows it", page.display());
        }
    }

    #[test]
    fn means_are_of_the_steps_that_have_values() {
        let values = [
            (-0.5, Some(9e6)),
            (0.0, Some(1e6)),
            (0.4, Some(3e6)),
            (1.2, None),
            (2.1, Some(5e6)),
            (9.0, Some(1e6)),
        ];
        let found = means(values.into_iter(), 1.0, 3.0, Quantity::Delivery);
        assert_eq!(found, [(0.5, 2.0), (2.5, 5.0)]);
    }

    #[test]
    fn a_picture_repeats_and_has_its_words() {
        let figure = FIGURES.iter().find(|figure| figure.name == "history").unwrap();
        let svg = picture(figure).unwrap();
        assert_eq!(svg, picture(figure).unwrap());
        for word in ["<svg", "history-paper", figure.panels[0].title, figure.quantity.label()] {
            assert!(svg.contains(word), "{word}");
        }
    }

    #[test]
    fn unknown_pictures_are_refused_with_the_names_there_are() {
        let refusal = chosen(&["histories".to_owned()]).unwrap_err().to_string();
        assert!(refusal.contains("histories") && refusal.contains("freeze"), "{refusal}");
    }
}
