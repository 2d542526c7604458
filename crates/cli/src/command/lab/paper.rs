//! `posthaste lab run paper`: all that the published figures are judged by, and the judgement.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use posthaste_lab::reproduction::Reproduction;
use posthaste_lab::reproduction::report::{Made, json, markdown, page, table};
use posthaste_lab::sweep::Plan;

use super::journal::Journals;
use super::sweep::{Outputs, Swept, carry_out, exit_code, tell_endings};
use crate::args::LabRun;
use crate::exit::{Failure, INTERRUPTED};
use crate::interrupt::Interrupts;
use crate::printer;

/// What it is called on the command line.
pub(super) const NAME: &str = "paper";

/// The rules that come with the program.
pub(super) fn rules() -> Result<Reproduction, Failure> {
    Reproduction::built_in().map_err(Failure::runtime)
}

/// Runs of the full form.
pub(super) fn runs(reproduction: &Reproduction) -> u64 {
    reproduction.plan().iter().map(|planned| planned.cells.len() as u64 * planned.seeds).sum()
}

pub(super) async fn run(args: LabRun) -> Result<ExitCode, Failure> {
    check(&args)?;
    let reproduction = rules()?;
    let plans = plans(&reproduction, &args);
    let outputs = Outputs::create(args.json.as_deref(), args.html.as_deref(), args.markdown.as_deref())?;
    let mut journals = Journals::find(args.fresh);
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    let args = Arc::new(args);
    let mut results = Vec::new();
    for (label, plan) in plans {
        // One for all of them: of journals only so many are kept.
        let journal = journals.as_ref().and_then(|journals| journals.open(NAME));
        if let Some(journals) = &mut journals {
            journals.keep();
        }
        match carry_out(plan, label, &args, journal, &mut interrupts).await? {
            Swept::Done(result) => {
                tell_endings(&result);
                results.push(*result);
            }
            // `check` has refused it.
            Swept::Shard(_) | Swept::Interrupted => return Ok(ExitCode::from(INTERRUPTED)),
        }
    }
    let judgement = reproduction.judge(&results);
    if !args.quiet {
        super::print(printer::line(table(&judgement).trim_end()))?;
        let unexplained = judgement.unexplained();
        if unexplained > 0 {
            printer::note(format_args!(
                "{unexplained} rows are not reproduced and have no note that says why"
            ));
        }
    }
    let made = Made {
        command: command(&args),
        runs: results.iter().flat_map(|result| &result.cells).map(|cell| cell.runs.len()).sum(),
        is_quick: args.quick,
    };
    let is_kept = journals.is_some();
    outputs.write(
        || json(&judgement, &results),
        || page(&judgement, &made),
        || markdown(&judgement, &made),
        is_kept,
    )?;
    Ok(exit_code(&results))
}

/// Refuses what makes no sense for all experiments at once.
fn check(args: &LabRun) -> Result<(), Failure> {
    if args.names.len() > 1 {
        return Err(Failure::usage("`paper` cannot be combined: it runs all experiments that it needs"));
    }
    let refused = [
        ("--cells", !args.cells.is_empty()),
        ("--series", args.series.is_some()),
        ("--qlog", args.qlog.is_some()),
        ("--journal", args.journal.is_some()),
    ];
    match refused.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} applies to one experiment, not to `paper`"))
                .hint("`posthaste lab describe paper` names them, and its pages the command of each row"))
        }
    }
}

/// Each experiment's part, and what its progress is told by.
fn plans(reproduction: &Reproduction, args: &LabRun) -> Vec<(String, Plan)> {
    let planned = reproduction.plan();
    let count = planned.len();
    let plan = |(index, planned): (usize, posthaste_lab::reproduction::Planned<'_>)| {
        let usual = 0..if args.quick { planned.quick } else { planned.seeds };
        let label = format!("{}/{count} {}", index + 1, planned.experiment.name);
        let plan = Plan {
            seeds: args.seeds.as_ref().map_or(usual, |seeds| seeds.0.clone()),
            experiment: planned.experiment.clone(),
            cells: planned.cells,
            filters: Vec::new(),
            series: None,
        };
        (label, plan)
    };
    planned.into_iter().enumerate().map(plan).collect()
}

/// The command that repeats all of it.
fn command(args: &LabRun) -> String {
    let mut command = format!("posthaste lab run {NAME}");
    if args.quick {
        command.push_str(" --quick");
    }
    if let Some(seeds) = &args.seeds {
        // Writing to a text cannot fail.
        let _ = write!(command, " --seeds {}..{}", seeds.0.start, seeds.0.end);
    }
    command
}

/// All about it, for people.
pub(super) fn describe() -> Result<String, Failure> {
    let reproduction = rules()?;
    let mut text = format!(
        "\x1b[1m{NAME}\x1b[0m  Comparison with every published figure\n  question   What of the five papers' figures do we reproduce?\n  \
         size       {} rows, {} runs\n\n\x1b[1mpublished\x1b[0m\n",
        reproduction.rows(),
        runs(&reproduction)
    );
    for (scheme, source, rows) in reproduction.rule_sets() {
        let _ = writeln!(text, "  {scheme} ({source}): {rows} rows");
    }
    text.push_str("\n\x1b[1mexperiments\x1b[0m\n");
    for planned in reproduction.plan() {
        let (cells, seeds, quick) = (planned.cells.len() as u64, planned.seeds, planned.quick);
        let name = &planned.experiment.name;
        let _ = writeln!(
            text,
            "  {name:22} {cells:4} cells x {seeds:3} seeds = {:5} runs ({quick} seeds with --quick)",
            cells * seeds
        );
    }
    text.push_str(
        "\n\x1b[1mcommands\x1b[0m\n  posthaste lab run paper --markdown reproduction.md --html reproduction.html\n  \
         posthaste lab run paper --quick\n",
    );
    Ok(text)
}
