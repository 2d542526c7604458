//! `posthaste race`: profiles against each other, in real time over an emulated path.

use std::process::ExitCode;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::args::Race;
use crate::exit::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupts;
use crate::printer;

mod arena;
mod bare;
mod page;
mod plan;
mod progress;
mod report;
mod table;
mod tally;
mod tls;

use arena::{Arena, Run};
use plan::Plan;
use progress::{Progress, spoken};
use tally::Tally;

pub(crate) async fn run(args: Race) -> Result<ExitCode, Failure> {
    let plan = Arc::new(Plan::new(&args)?);
    let page = page::Page::new(&args)?;
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    let mut arena = Arena::start(&plan)?;
    announce(&plan, &args)?;
    arena.warm_up().await?;
    let tally = race(&plan, arena, &args, &mut interrupts).await?;
    show(&plan, &tally, &args)?;
    // Interrupted before the first run was over, there is nothing to show.
    if let Some(page) = page.filter(|_| tally.all_runs().next().is_some()) {
        let shown = page.to_string();
        page.write(&plan, &tally)?;
        if !args.json {
            say(format_args!("Page    {shown}"))?;
        }
    }
    Ok(match (tally.was_interrupted, tally.failures()) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(FAILED),
    })
}

/// Makes all runs, a few at a time, until the last or Ctrl-C.
async fn race(
    plan: &Arc<Plan>,
    arena: Arena,
    args: &Race,
    interrupts: &mut Interrupts,
) -> Result<Tally, Failure> {
    let progress = Arc::new(Progress::new(plan, args.json));
    let arena = Arc::new(arena);
    let mut tally = Tally::new(plan.racers.len());
    let mut waiting = plan.order();
    let mut running: JoinSet<Result<Run, Failure>> = JoinSet::new();
    loop {
        while running.len() < plan.parallel
            && let Some(start) = waiting.next()
        {
            let (arena, progress) = (Arc::clone(&arena), Arc::clone(&progress));
            running.spawn(async move { arena.run(start, &progress).await });
        }
        tokio::select! {
            ended = running.join_next() => match ended {
                Some(ended) => {
                    let ended = ended.unwrap_or_else(|error| Err(Failure::runtime(format!("a run broke off: {error}"))));
                    let run = ended.inspect_err(|_| progress.clear())?;
                    progress.finish(plan, &run);
                    tally.add(run);
                }
                None => break,
            },
            () = interrupts.next() => {
                tally.was_interrupted = true;
                // Relays and clients are gone when this returns.
                running.shutdown().await;
                break;
            }
        }
    }
    progress.clear();
    Ok(tally)
}

/// What will happen, for people.
fn announce(plan: &Plan, args: &Race) -> Result<(), Failure> {
    if args.json {
        return Ok(());
    }
    say(format_args!(
        "\x1b[1m{path}\x1b[0m ({description}), {object} over a new connection each time\n\
         {racers}: {runs} runs each, {parallel} at a time, about {estimate}\n",
        path = printer::printable(&plan.path_name),
        description = plan.path,
        object = plan.describe_object(),
        racers = printer::printable(&plan.names().join(", ")),
        runs = plan.runs,
        parallel = plan.parallel,
        estimate = spoken(plan.estimate()),
    ))
}

fn show(plan: &Plan, tally: &Tally, args: &Race) -> Result<(), Failure> {
    if args.json {
        return printed(printer::json(&report::Report::new(plan, tally)));
    }
    if tally.was_interrupted {
        let made = tally.all_runs().count();
        let planned = plan.runs * plan.racers.len() as u64;
        say(format_args!("\x1b[33mInterrupted: {made} of {planned} runs were made.\x1b[0m\n"))?;
    }
    say(table::table(plan, tally).trim_end())
}

fn say(text: impl std::fmt::Display) -> Result<(), Failure> {
    printed(printer::line(text))
}

fn printed(result: std::io::Result<()>) -> Result<(), Failure> {
    printer::unless_reader_left(result)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))
}
