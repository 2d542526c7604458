//! `posthaste lab run`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_lab::experiment::Cell;
use posthaste_lab::sweep::{self, Ending, Options, Plan, Progress, Report};
use posthaste_report as report;
use posthaste_report::experiment_result::ExperimentResult;
use posthaste_report::result::Outcome;

use super::journal::Journals;
use super::progress::Display;
use super::{plan, shard, traces};
use crate::args::LabRun;
use crate::exit::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupts;
use crate::output_file::OutputFile;
use crate::printer::{self, shell_quote};

/// Failed runs that are told one by one.
const MAX_TOLD: usize = 10;

/// What came of a plan.
pub(super) enum Swept {
    Done(Box<ExperimentResult>),
    /// A shard's runs are in its journal.
    Shard(Progress),
    /// The user wants to stop, and has been told how to go on.
    Interrupted,
}

/// Files that will be written; made first, since a sweep may take hours.
pub(super) struct Outputs {
    json: Option<OutputFile>,
    html: Option<OutputFile>,
    markdown: Option<OutputFile>,
}

pub(super) async fn run(args: LabRun) -> Result<ExitCode, Failure> {
    let plans = plans(&args)?;
    let outputs = Outputs::create(args.json.as_deref(), args.html.as_deref(), args.markdown.as_deref())?;
    if let Some(folder) = &args.qlog {
        crate::profile::make_trace_folder(folder)?;
    }
    let journals = if args.journal.is_some() { None } else { Journals::find(args.fresh) };
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    let args = Arc::new(args);
    let mut results = Vec::new();
    for plan in plans {
        let journal = match &args.journal {
            Some(path) => Some(shard::open(path, &plan, &args)?),
            None => journals.as_ref().and_then(|journals| journals.open(&plan.experiment.name)),
        };
        let label = plan.experiment.name.clone();
        match carry_out(plan, label, &args, journal, &mut interrupts).await? {
            Swept::Done(result) => {
                if !args.quiet {
                    super::print(printer::line(report::table::print(&result).trim_end()))?;
                }
                tell_endings(&result);
                results.push(*result);
            }
            Swept::Shard(progress) => return Ok(shard_done(&args, progress)),
            Swept::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
        }
    }
    let (json, html) = (|| report::json::to_string(&results), || report::html::page(&results));
    outputs.write(json, html, String::new, journals.is_some() || args.journal.is_some())?;
    Ok(exit_code(&results))
}

fn shard_done(args: &LabRun, progress: Progress) -> ExitCode {
    if let (Some(path), Some(shard)) = (&args.journal, args.shard) {
        shard::tell_done(path, shard, progress, args.quiet);
    }
    if progress.failed > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// Runs what is planned, with progress told by `label`, until it is done or the user wants to stop.
pub(super) async fn carry_out(
    plan: Plan,
    label: String,
    args: &Arc<LabRun>,
    journal: Option<sweep::Journal>,
    interrupts: &mut Interrupts,
) -> Result<Swept, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let is_kept = journal.is_some();
    let (its_args, its_cancel) = (Arc::clone(args), Arc::clone(&cancel));
    let mut sweep =
        tokio::task::spawn_blocking(move || sweep_one(&plan, &label, &its_args, journal, &its_cancel));
    let report = tokio::select! {
        report = &mut sweep => report,
        () = interrupts.next() => {
            cancel.store(true, Ordering::Relaxed);
            sweep.await
        }
    };
    let report = report.map_err(|error| Failure::runtime(format!("the sweep failed: {error}")))?;
    if let Some(error) = &report.journal_error {
        printer::error(format_args!("results are no longer kept, only reported: {error}"));
    }
    // One that came to its end at that very moment was interrupted all the same: the user wants to stop.
    let is_interrupted = cancel.load(Ordering::Relaxed);
    match report.ending {
        Ending::Complete(result) if !is_interrupted => Ok(Swept::Done(result)),
        // Its results would be nowhere.
        Ending::Shard if report.journal_error.is_some() => Err(Failure::runtime("the shard is not complete")),
        Ending::Shard if !is_interrupted => Ok(Swept::Shard(report.progress)),
        Ending::Complete(_) | Ending::Shard | Ending::Cancelled => {
            interrupted(report.progress, is_kept && report.journal_error.is_none(), args);
            Ok(Swept::Interrupted)
        }
        Ending::NoThreads => Err(Failure::runtime("the system permits no worker thread")),
    }
}

/// A failure if a run failed.
pub(super) fn exit_code(results: &[ExperimentResult]) -> ExitCode {
    let is_failed = |result: &ExperimentResult| {
        result.cells.iter().flat_map(|cell| &cell.runs).any(|run| matches!(run.outcome, Outcome::Failed(_)))
    };
    if results.iter().any(is_failed) { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// What is to run; all of it is checked before anything does.
fn plans(args: &LabRun) -> Result<Vec<Plan>, Failure> {
    if args.quick || args.markdown.is_some() {
        let option = if args.quick { "--quick" } else { "--markdown" };
        return Err(Failure::usage(format!("{option} applies only to `posthaste lab run paper`"))
            .hint("use --seeds for fewer runs of an experiment"));
    }
    shard::check(args)?;
    let plan = |name: &String| plan::of(name, &args.cells, args.seeds.as_ref(), args.series);
    args.names.iter().map(plan).collect()
}

fn sweep_one(
    plan: &Plan,
    label: &str,
    args: &LabRun,
    journal: Option<sweep::Journal>,
    cancel: &AtomicBool,
) -> Report {
    let command = |cell: Option<&Cell>| plan::command(plan, cell);
    let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = Options {
        selection: plan.selection(&command),
        jobs: args.jobs.unwrap_or_else(processors),
        shard: args.shard,
        qlog: args.qlog.as_deref().map(|folder| traces::maker(folder, &plan.experiment)),
        journal,
    };
    let mut display = Display::new(label, args.quiet);
    sweep::run(&plan.experiment, options, &mut |progress| display.update(progress), cancel)
}

/// Says which runs failed and how many came to their deadline.
pub(super) fn tell_endings(result: &ExperimentResult) {
    let mut failed = 0;
    let mut late = 0;
    for cell in &result.cells {
        for run in &cell.runs {
            match &run.outcome {
                Outcome::Completed => {}
                Outcome::Deadline => late += 1,
                Outcome::Failed(reason) => {
                    failed += 1;
                    if failed <= MAX_TOLD {
                        let at = cell.coordinates.join(", ");
                        printer::error(format_args!("{} ({at}) seed {}: {reason}", result.name, run.seed));
                    }
                }
            }
        }
    }
    let total: usize = result.cells.iter().map(|cell| cell.runs.len()).sum();
    if failed > MAX_TOLD {
        printer::error(format_args!("{}: {failed} of {total} runs failed", result.name));
    }
    if late > 0 {
        let name = &result.name;
        printer::note(format_args!("{name}: {late} of {total} runs did not finish before their deadline"));
    }
}

fn interrupted(progress: Progress, is_kept: bool, args: &LabRun) {
    let Progress { done, total, .. } = progress;
    if !is_kept || args.qlog.is_some() {
        printer::error(format_args!(
            "interrupted after {done} of {total} runs; nothing was kept to go on from"
        ));
        return;
    }
    // What was kept is what `--fresh` would throw away.
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--fresh");
    let command: Vec<String> = arguments.map(|argument| shell_quote(&argument)).collect();
    printer::error(format_args!(
        "interrupted after {done} of {total} runs, which are kept; to go on from there:\n  posthaste {}",
        command.join(" ")
    ));
}

impl Outputs {
    pub(super) fn create(
        json: Option<&Path>,
        html: Option<&Path>,
        markdown: Option<&Path>,
    ) -> Result<Self, Failure> {
        let all = [("--json", json), ("--html", html), ("--markdown", markdown)];
        for (index, (option, path)) in all.iter().enumerate() {
            if let Some((other, _)) =
                all[index + 1..].iter().find(|(_, other)| path.is_some() && other == path)
            {
                return Err(Failure::usage(format!("{option} and {other} name the same file")));
            }
        }
        let create = |path: &Path| OutputFile::create(path).map_err(Failure::usage);
        Ok(Self {
            json: json.map(create).transpose()?,
            html: html.map(create).transpose()?,
            markdown: markdown.map(create).transpose()?,
        })
    }

    /// Writes all of them even if one fails; each text is made only if it has a file.
    pub(super) fn write(
        self,
        json: impl FnOnce() -> String,
        html: impl FnOnce() -> String,
        markdown: impl FnOnce() -> String,
        is_kept: bool,
    ) -> Result<(), Failure> {
        let json = self.json.map_or(Ok(()), |file| file.write(json().as_bytes()));
        let html = self.html.map_or(Ok(()), |file| file.write(html().as_bytes()));
        let markdown = self.markdown.map_or(Ok(()), |file| file.write(markdown().as_bytes()));
        json.and(html).and(markdown).map_err(|error| {
            let failure = Failure::runtime(error);
            if is_kept {
                failure
                    .hint("the results are kept: the same command writes them again without running anything")
            } else {
                failure
            }
        })
    }
}
