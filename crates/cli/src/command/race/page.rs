//! The result as a page.

use std::fmt;
use std::sync::Arc;

use posthaste_lab::spec::WorkloadSpec;
use posthaste_path::PathStats;
use posthaste_report::experiment_result::{Axis, CellResult, ExperimentResult};
use posthaste_report::result::{DirectionResult, FlowResult, LinkResult, Outcome, RunResult};

use super::figures;
use super::plan::{Plan, Racer};
use super::table::{trust, warnings};
use super::tally::Tally;
use super::testbed::Run;
use crate::args::Race;
use crate::exit::Failure;
use crate::output_file::OutputFile;

/// A page that is wanted.
#[derive(Debug)]
pub(super) struct Page {
    file: OutputFile,
    shown: String,
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Page {
    /// Where it is wanted, if it is; found out before the race whether that can be written to.
    pub(super) fn new(args: &Race) -> Result<Option<Self>, Failure> {
        if args.output.no_html {
            return Ok(None);
        }
        let file = OutputFile::create(&args.html).map_err(|error| {
            Failure::usage(error).hint("choose another file with --html FILE, or use --no-html")
        })?;
        Ok(Some(Self { file, shown: args.html.display().to_string() }))
    }

    /// Writes the page of these races.
    pub(super) fn write(self, races: &[(Arc<Plan>, Tally)]) -> Result<(), Failure> {
        let results: Vec<ExperimentResult> = races.iter().map(|(plan, tally)| result(plan, tally)).collect();
        let page = posthaste_report::html::page(&results);
        self.file.write(page.as_bytes()).map_err(Failure::runtime)
    }
}

/// The race as the lab's reports know experiments.
pub(super) fn result(plan: &Plan, tally: &Tally) -> ExperimentResult {
    let names = plan.labels();
    let mut note = trust(&tally.lateness(), tally.missed());
    if let Some(first) = note.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    for warning in warnings(tally) {
        note = format!("{note}. Doubtful: {warning}");
    }
    if tally.was_interrupted {
        note = format!("{note}. Interrupted: some runs are missing");
    }
    ExperimentResult {
        name: format!("race-{}", plan.path_name),
        title: format!("{} over the path {}", plan.describe_workload(), plan.path_name),
        question: format!("{} over a new connection, on a path of {}?", question(plan), plan.path),
        source: "posthaste race: real HTTP/3 downloads on loopback, over a relay that stands for the path"
            .to_owned(),
        command: plan.command(&plan.names()),
        note: Some(format!("{note}.")),
        baseline: Some(plan.racers[plan.baseline].label()),
        subject: None,
        axes: vec![Axis { name: "stack".to_owned(), values: names }],
        metrics: figures::metrics(&plan.workload.spec),
        seeds: plan.runs,
        cells: plan.racers.iter().zip(&tally.runs).map(|(racer, runs)| cell(plan, racer, runs)).collect(),
    }
}

fn question(plan: &Plan) -> String {
    let what = plan.describe_workload();
    match plan.workload.spec {
        WorkloadSpec::Video { .. } => {
            format!("How soon does {what} start, and how long does it stand still,")
        }
        WorkloadSpec::RequestResponse { .. } => format!("How long does each of {what} take"),
        _ => format!("How long does a download of {what} take"),
    }
}

fn cell(plan: &Plan, racer: &Racer, runs: &[Run]) -> CellResult {
    // On pages it is the limit of the time to the last byte.
    let is_file = matches!(plan.workload.spec, WorkloadSpec::Bulk { .. });
    CellResult {
        coordinates: vec![racer.label()],
        command: plan.command(&[&racer.name]),
        limit: is_file.then(|| plan.limit.clone()),
        published: Vec::new(),
        runs: runs.iter().map(|run| run_result(plan, racer, run)).collect(),
    }
}

fn run_result(plan: &Plan, racer: &Racer, run: &Run) -> RunResult {
    let has_failed = run.outcome.is_err();
    let seen = |time: Option<f64>| time.filter(|_| !has_failed);
    let spent = seen(run.flow.completion).unwrap_or(plan.timeout.as_secs_f64());
    let flow = FlowResult {
        name: racer.label(),
        stack: racer.name.clone(),
        completion: seen(run.flow.completion),
        connect: seen(run.flow.connect),
        first_byte: seen(run.flow.first_byte),
        goodput: run.flow.bytes as f64 * 8.0 / spent,
        exchanges: if has_failed { Vec::new() } else { run.flow.exchanges.clone() },
        down: direction(&run.relay.down),
        up: direction(&run.relay.up),
        failure: run.outcome.as_ref().err().cloned(),
        ..run.flow.clone()
    };
    RunResult {
        seed: run.start.seed,
        outcome: run
            .outcome
            .as_ref()
            .map_or_else(|reason| Outcome::Failed(reason.clone()), |()| Outcome::Completed),
        virtual_seconds: spent,
        limit: None,
        // Real time never repeats bit for bit.
        trace_hash: String::new(),
        packets: run.relay.down.offered + run.relay.up.offered,
        flows: vec![flow],
        links: vec![
            LinkResult::of("down".to_owned(), &run.relay.down),
            LinkResult::of("up".to_owned(), &run.relay.up),
        ],
        series: None,
    }
}

/// What the relay has seen; it measures neither one-way delays nor the stacks' own counts.
fn direction(stats: &PathStats) -> DirectionResult {
    DirectionResult {
        packets_sent: stats.offered,
        packets_received: stats.delivered,
        packets_lost: stats.lost + stats.overflowed + stats.managed,
        bytes_received: stats.delivered_bytes,
        ..DirectionResult::default()
    }
}
