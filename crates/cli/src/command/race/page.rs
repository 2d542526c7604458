//! The result as a page.

use std::fmt;
use std::sync::Arc;

use posthaste_path::PathStats;
use posthaste_report::experiment_result::{Axis, CellResult, ExperimentResult};
use posthaste_report::result::{DirectionResult, ExchangeResult, FlowResult, LinkResult, Outcome, RunResult};

use super::arena::Run;
use super::plan::{Plan, Racer};
use super::table::{trust, warnings};
use super::tally::Tally;
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
fn result(plan: &Plan, tally: &Tally) -> ExperimentResult {
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
        title: format!("{} over the path {}", plan.describe_object(), plan.path_name),
        question: format!(
            "How long does a download of {} take over a new connection, on a path of {}?",
            plan.describe_object(),
            plan.path
        ),
        source: "posthaste race: real HTTP/3 downloads on loopback, over a relay that stands for the path"
            .to_owned(),
        command: plan.command(&plan.names()),
        note: Some(format!("{note}.")),
        baseline: Some(plan.racers[plan.baseline].label()),
        subject: None,
        axes: vec![Axis { name: "stack".to_owned(), values: names }],
        metrics: vec!["completion".to_owned(), "first_byte".to_owned(), "connect".to_owned()],
        seeds: plan.runs,
        cells: plan.racers.iter().zip(&tally.runs).map(|(racer, runs)| cell(plan, racer, runs)).collect(),
    }
}

fn cell(plan: &Plan, racer: &Racer, runs: &[Run]) -> CellResult {
    CellResult {
        coordinates: vec![racer.label()],
        command: plan.command(&[&racer.name]),
        limit: Some(plan.limit.clone()),
        published: Vec::new(),
        runs: runs.iter().map(|run| run_result(plan, racer, run)).collect(),
    }
}

fn run_result(plan: &Plan, racer: &Racer, run: &Run) -> RunResult {
    let times = run.outcome.as_ref().ok();
    let total = times.map(|times| times.total.as_secs_f64());
    let spent = total.unwrap_or(plan.timeout.as_secs_f64());
    let exchange = times.map(|times| ExchangeResult {
        object: 0,
        requested: times.connect.as_secs_f64(),
        first_byte: times.first_byte.as_secs_f64(),
        finished: times.total.as_secs_f64(),
        bytes: run.bytes,
    });
    let flow = FlowResult {
        name: racer.label(),
        stack: racer.name.clone(),
        completion: total,
        connect: times.map(|times| times.connect.as_secs_f64()),
        first_byte: times.map(|times| times.first_byte.as_secs_f64()),
        bytes: run.bytes,
        goodput: run.bytes as f64 * 8.0 / spent,
        exchanges: exchange.into_iter().collect(),
        down: direction(&run.relay.down),
        up: direction(&run.relay.up),
        failure: run.outcome.as_ref().err().cloned(),
        ..FlowResult::default()
    };
    RunResult {
        seed: run.start.seed,
        outcome: run
            .outcome
            .as_ref()
            .map_or_else(|reason| Outcome::Failed(reason.clone()), |_| Outcome::Completed),
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
