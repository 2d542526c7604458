//! Parts of a sweep for several machines: `posthaste lab run --shard`, `merge` and `items`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posthaste_campaign::identity::Identity;
use posthaste_campaign::keyed::HeadedError;
use posthaste_lab::experiment::{Cell, CellFilter};
use posthaste_lab::sweep::{self, Journal, MergeError, Plan, Shard, ShardHeader};
use posthaste_report as report;
use serde::Serialize;

use super::plan;
use super::sweep::{Outputs, exit_code, tell_endings};
use crate::args::{LabItems, LabMerge, LabRun, Seeds};
use crate::exit::Failure;
use crate::printer::{self, shell_quote};

/// Refuses what makes no sense with a file or a part of the runs.
pub(super) fn check(args: &LabRun) -> Result<(), Failure> {
    if args.journal.is_none() {
        return Ok(());
    }
    if args.names.len() > 1 {
        return Err(Failure::usage("--journal is for one experiment"));
    }
    let refused =
        [("--json", args.json.is_some()), ("--html", args.html.is_some()), ("--qlog", args.qlog.is_some())];
    match refused.into_iter().find(|(_, is_given)| *is_given && args.shard.is_some()) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::usage(format!("{option} needs all runs, not those of one shard"))
            .hint("`posthaste lab merge FILES` reports what all shards have run")),
    }
}

/// Opens the user's journal of a plan.
///
/// # Errors
/// The file cannot be used, or is something else.
pub(super) fn open(path: &Path, plan: &Plan, args: &LabRun) -> Result<Journal, Failure> {
    let program = this_program()?;
    let cells = plan.filters.iter().map(ToString::to_string).collect();
    let shard = args.shard.unwrap_or(Shard::ALL);
    let selection = plan.selection(&|_| String::new());
    // One name, which `check` has seen to.
    let name = args.names.first().map_or("", String::as_str);
    let header = ShardHeader::new(name, cells, &plan.experiment, &selection, &program, shard);
    Journal::open_file(path, &header, &program, args.fresh).map_err(|error| {
        let path = path.display();
        match error {
            HeadedError::File(error) => Failure::runtime(format!("cannot keep runs in {path}: {error}")),
            HeadedError::Foreign => Failure::usage(format!("{path} holds no runs; it is left as it is")),
            HeadedError::Other(found) => {
                Failure::usage(format!("{path} holds other runs: {}", found.difference(&header)))
                    .hint("give another file, or --fresh to empty it")
            }
        }
    })
}

/// Says which runs failed and, unless it is to be quiet, that a shard is done and what comes next.
pub(super) fn tell_done(path: &Path, shard: Shard, progress: sweep::Progress, is_quiet: bool) {
    let (total, failed, path) = (progress.total, progress.failed, shell_quote(&path.display().to_string()));
    if failed > 0 {
        printer::error(format_args!("{failed} of {total} runs failed, and are not kept"));
    }
    if !is_quiet {
        printer::note(format_args!(
            "shard {shard}: {} runs are in {path}; when all shards are done: posthaste lab merge FILES",
            total - failed
        ));
    }
}

fn this_program() -> Result<Identity, Failure> {
    Identity::of_this_program()
        .map_err(|error| Failure::runtime(format!("this program cannot be read: {error}")))
}

/// `posthaste lab merge`.
pub(super) fn merge(args: &LabMerge) -> Result<ExitCode, Failure> {
    let program = this_program()?;
    let mut journals = Vec::new();
    let mut first: Option<(&PathBuf, ShardHeader)> = None;
    for path in &args.files {
        let (header, journal) = read(path, &program)?;
        match &first {
            Some((other, first)) if !header.is_of_same_sweep(first) => {
                let expected = ShardHeader { shard: header.shard, ..first.clone() };
                return Err(Failure::usage(format!(
                    "the runs in {} do not belong to those in {}: {}",
                    path.display(),
                    other.display(),
                    header.difference(&expected)
                )));
            }
            Some(_) => {}
            None => first = Some((path, header)),
        }
        journals.push(journal);
    }
    let (path, header) = first.ok_or_else(|| Failure::usage("there is nothing to merge"))?;
    let plan = plan_of(path, &header, &program)?;
    let outputs = Outputs::create(args.json.as_deref(), args.html.as_deref(), None)?;
    let command = |cell: Option<&Cell>| plan::command(&plan, cell);
    let selection = plan.selection(&command);
    let result = sweep::merge(&plan.experiment, &selection, &program, &mut journals, header.shard)
        .map_err(|error| incomplete(&error, &plan))?;
    if !args.quiet {
        super::print(printer::line(report::table::print(&result).trim_end()))?;
    }
    tell_endings(&result);
    let results = [result];
    outputs.write(
        || report::json::to_string(&results),
        || report::html::page(&results),
        String::new,
        true,
    )?;
    Ok(exit_code(&results))
}

fn read(path: &Path, program: &Identity) -> Result<(ShardHeader, Journal), Failure> {
    Journal::read_file::<ShardHeader>(path, program).map_err(|error| match error {
        HeadedError::File(error) => Failure::usage(format!("cannot read {}: {error}", path.display())),
        HeadedError::Foreign | HeadedError::Other(_) => {
            Failure::usage(format!("{} holds no runs", path.display()))
                .hint("such files come from `posthaste lab run NAME --shard I/N --journal FILE`")
        }
    })
}

/// What the runs in the file `path` are of.
fn plan_of(path: &Path, header: &ShardHeader, program: &Identity) -> Result<Plan, Failure> {
    let foreign = |reason: String| Failure::usage(format!("{}: {reason}", path.display()));
    if header.program != program.hexadecimal(32) {
        let (theirs, ours) = (header.short_program(), program.short());
        return Err(foreign(format!(
            "its runs are of another build of posthaste ({theirs}, this is {ours})"
        ))
        .hint("merge with the program that has made them: other builds may send other packets"));
    }
    let cells: Result<Vec<CellFilter>, _> = header.cells.iter().map(|cells| cells.parse()).collect();
    let cells = cells.map_err(|error| foreign(error.to_string()))?;
    let seeds = Seeds(header.seeds.0..header.seeds.1);
    let plan = plan::of(&header.experiment, &cells, Some(&seeds), header.series)?;
    let selection = plan.selection(&|_| String::new());
    let expected = ShardHeader::new(
        &header.experiment,
        header.cells.clone(),
        &plan.experiment,
        &selection,
        program,
        header.shard,
    );
    if expected == *header { Ok(plan) } else { Err(foreign(header.difference(&expected))) }
}

fn incomplete(error: &MergeError, plan: &Plan) -> Failure {
    let failure = Failure::runtime(error);
    match error {
        MergeError::Missing { shard, .. } => failure.hint(format!(
            "{} --shard {shard} --journal FILE goes on with that shard's file",
            plan::command(plan, None)
        )),
        MergeError::Differ(_) => failure,
    }
}

#[derive(Serialize)]
struct ListedItem<'a> {
    index: usize,
    cell: &'a [String],
    seed: u64,
}

/// `posthaste lab items`.
pub(super) fn items(args: &LabItems) -> Result<ExitCode, Failure> {
    let plan = plan::of(&args.name, &args.cells, args.seeds.as_ref(), None)?;
    let items: Vec<ListedItem<'_>> = sweep::runs(&plan.selection(&|_| String::new()))
        .enumerate()
        .filter(|(index, _)| args.shard.is_none_or(|shard| shard.has(*index)))
        .map(|(index, (cell, seed))| ListedItem {
            index,
            cell: &plan.experiment.cells[cell].coordinates,
            seed,
        })
        .collect();
    if args.json {
        return super::print(printer::json(&items));
    }
    let line =
        |item: &ListedItem<'_>| format!("{:6}  {}, seed {}", item.index, item.cell.join(", "), item.seed);
    super::print(printer::line(items.iter().map(line).collect::<Vec<_>>().join("\n")))
}
