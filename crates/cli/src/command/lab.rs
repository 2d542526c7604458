//! `posthaste lab`: experiments in virtual time.

use std::path::Path;
use std::process::ExitCode;

use posthaste_lab::experiment::{Cell, Experiment, ExperimentError};
use serde::Serialize;

use crate::args::{Lab, LabCommand, LabList};
use crate::exit::Failure;
use crate::printer;

mod describe;
mod journal;
mod paper;
mod plan;
mod progress;
mod shard;
mod sweep;
mod traces;

pub(crate) async fn run(args: Lab) -> Result<ExitCode, Failure> {
    match args.command {
        LabCommand::List(args) => list(&args),
        LabCommand::Describe(args) if args.name == paper::NAME => {
            print(printer::line(paper::describe()?.trim_end()))
        }
        LabCommand::Describe(args) => print(printer::line(describe::text(&find(&args.name)?).trim_end())),
        LabCommand::Run(args) if args.names.iter().any(|name| name == paper::NAME) => paper::run(args).await,
        LabCommand::Run(args) => sweep::run(args).await,
        LabCommand::Items(args) => shard::items(&args),
        LabCommand::Merge(args) => shard::merge(&args),
    }
}

/// The experiment built in as `name`, or the one in the file `name`.
fn find(name: &str) -> Result<Experiment, Failure> {
    if crate::profile::is_file(name) {
        return Experiment::from_file(Path::new(name)).map_err(Failure::usage);
    }
    Experiment::built_in(name).map_err(|error| {
        let is_unknown = matches!(error, ExperimentError::Unknown { .. });
        let failure = Failure::usage(error);
        if is_unknown { failure.hint("`posthaste lab list` describes each") } else { failure }
    })
}

#[derive(Serialize)]
struct Listed {
    name: String,
    title: String,
    question: String,
    source: String,
    axes: Vec<posthaste_report::experiment_result::Axis>,
    metrics: Vec<String>,
    cells: usize,
    seeds: u64,
    runs: u64,
}

fn list(args: &LabList) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for name in Experiment::names() {
        let experiment = find(name)?;
        all.push(Listed {
            cells: experiment.cells.len(),
            seeds: experiment.seeds,
            runs: experiment.cells.len() as u64 * experiment.seeds,
            name: experiment.name,
            title: experiment.title,
            question: experiment.question,
            source: experiment.source,
            axes: experiment.axes,
            metrics: experiment.metrics,
        });
    }
    if args.json {
        return print(printer::json(&all));
    }
    let reproduction = paper::rules()?;
    let width = all.iter().map(|listed| listed.name.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = all
        .iter()
        .map(|Listed { name, title, runs, .. }| format!("\x1b[1m{name:width$}\x1b[0m  {title} ({runs} runs)"))
        .collect();
    let (name, rows, runs) = (paper::NAME, reproduction.rows(), paper::runs(&reproduction));
    lines.push(format!(
        "\x1b[1m{name:width$}\x1b[0m  Comparison with every published figure: {rows} rows, judged by these experiments ({runs} runs)"
    ));
    let hint = "What one asks, its grid and its commands: posthaste lab describe NAME";
    print(printer::line(format!("{}\n\n{hint}", lines.join("\n"))))
}

fn print(printed: std::io::Result<()>) -> Result<ExitCode, Failure> {
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// `--cells ...` for a shell; empty where there is only one cell anyway.
fn cells_argument(experiment: &Experiment, cell: &Cell) -> String {
    match experiment.cell_name(cell) {
        name if name.is_empty() => name,
        name => format!(" --cells {}", printer::shell_quote(&name)),
    }
}
