//! `posthaste race`: profiles against each other, in real time over an emulated path.

use std::process::ExitCode;
use std::sync::Arc;

use super::runs::{Campaign, Running, make_all};
use crate::args::Race;
use crate::exit::{FAILED, Failure, INTERRUPTED};
use crate::interrupt::Interrupts;
use crate::printer;

mod bare;
mod client;
mod figures;
mod model;
mod page;
mod plan;
mod progress;
mod report;
mod table;
mod tally;
mod testbed;
mod tls;

use plan::{Plan, Start};
use progress::{Progress, spoken};
use tally::Tally;
use testbed::{Run, Testbed};

pub(crate) async fn run(args: Race) -> Result<ExitCode, Failure> {
    let plans = Plan::all(&args)?;
    let page = page::Page::new(&args)?;
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    let mut races: Vec<(Arc<Plan>, Tally)> = Vec::new();
    for plan in plans {
        let plan = Arc::new(plan);
        let mut testbed = Testbed::start(&plan)?;
        announce(&plan, &args)?;
        testbed.warm_up().await?;
        let tally = race(&plan, testbed, &args, &mut interrupts).await?;
        show(&plan, &tally, &args)?;
        let was_interrupted = tally.was_interrupted;
        races.push((plan, tally));
        if was_interrupted {
            break;
        }
    }
    let was_interrupted = races.iter().any(|(_, tally)| tally.was_interrupted);
    let has_failures = races.iter().any(|(_, tally)| tally.failures() > 0);
    // Interrupted before the first run was over, there is nothing to show.
    races.retain(|(_, tally)| tally.all_runs().next().is_some());
    if let Some(page) = page.filter(|_| !races.is_empty()) {
        let shown = page.to_string();
        page.write(&races)?;
        if !args.output.json {
            say(format_args!("Page    {shown}"))?;
        }
    }
    Ok(match (was_interrupted, has_failures) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, false) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(FAILED),
    })
}

/// Makes all runs.
async fn race(
    plan: &Arc<Plan>,
    testbed: Testbed,
    args: &Race,
    interrupts: &mut Interrupts,
) -> Result<Tally, Failure> {
    let mut heats = Heats {
        plan: Arc::clone(plan),
        testbed: Arc::new(testbed),
        progress: Arc::new(Progress::new(plan, args.output.json)),
        tally: Tally::new(plan.racers.len()),
        waiting: plan.order().collect(),
        busy: vec![0; plan.racers.len()],
    };
    let outcome = make_all(&mut heats, plan.parallel, interrupts).await;
    heats.progress.clear();
    heats.tally.was_interrupted = outcome?;
    Ok(heats.tally)
}

/// A race under way.
struct Heats {
    plan: Arc<Plan>,
    testbed: Arc<Testbed>,
    progress: Arc<Progress>,
    tally: Tally,
    waiting: Vec<Start>,
    /// Runs under way of each racer.
    busy: Vec<u32>,
}

impl Campaign for Heats {
    type Run = Run;

    fn start(&mut self, running: &mut Running<Run>) -> bool {
        let Some(start) = take_next(&mut self.waiting, &self.busy) else { return false };
        self.busy[start.racer] += 1;
        let (testbed, progress) = (Arc::clone(&self.testbed), Arc::clone(&self.progress));
        running.spawn(async move { testbed.run(start, &progress).await });
        true
    }

    fn take(&mut self, run: Run) -> Result<(), Failure> {
        self.busy[run.start.racer] -= 1;
        self.progress.finish(&self.plan, &run);
        self.tally.add(run);
        Ok(())
    }

    /// Relays and clients end with their runs.
    fn stop(&mut self, running: &mut Running<Run>) {
        running.abort_all();
    }
}

/// The next run to be made. If it can be, of a racer that has none under way: all clients come from one address, so
/// what a server knows of it (how many connections, what its path carried) would mix the runs up.
fn take_next(waiting: &mut Vec<Start>, busy: &[u32]) -> Option<Start> {
    let is_free = |start: &Start| busy.get(start.racer) == Some(&0);
    let index = waiting.iter().position(is_free).unwrap_or(0);
    (index < waiting.len()).then(|| waiting.remove(index))
}

/// What will happen, for people.
fn announce(plan: &Plan, args: &Race) -> Result<(), Failure> {
    if args.output.json {
        return Ok(());
    }
    say(format_args!(
        "\x1b[1m{path}\x1b[0m ({description}), {what} over a new connection each time\n\
         {racers}: {runs} runs each, {parallel} at a time, about {estimate}\n",
        path = printer::printable(&plan.path_name),
        description = plan.path,
        what = plan.describe_workload(),
        racers = printer::printable(&plan.labels().join(", ")),
        runs = plan.runs,
        parallel = plan.parallel,
        estimate = spoken(plan.estimate()),
    ))
}

fn show(plan: &Plan, tally: &Tally, args: &Race) -> Result<(), Failure> {
    if args.output.json {
        return printed(printer::json(&report::report(plan, tally)));
    }
    if tally.was_interrupted {
        let made = tally.all_runs().count();
        let planned = plan.runs * plan.racers.len() as u64;
        say(format_args!("\x1b[33mInterrupted: {made} of {planned} runs were made.\x1b[0m\n"))?;
    }
    say(format_args!("{}\n", table::table(plan, tally).trim_end()))
}

fn say(text: impl std::fmt::Display) -> Result<(), Failure> {
    printed(printer::line(text))
}

fn printed(result: std::io::Result<()>) -> Result<(), Failure> {
    printer::unless_reader_left(result)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_racer_runs_once_at_a_time_while_others_wait() {
        let start = |racer, round| Start { racer, round, seed: round };
        let mut waiting = vec![start(0, 1), start(1, 1), start(1, 2), start(0, 2)];
        assert_eq!(take_next(&mut waiting, &[0, 0]), Some(start(0, 1)));
        assert_eq!(take_next(&mut waiting, &[1, 0]), Some(start(1, 1)));
        assert_eq!(take_next(&mut waiting, &[0, 1]), Some(start(0, 2)), "its turn is later, but it is free");
        assert_eq!(take_next(&mut waiting, &[1, 1]), Some(start(1, 2)), "better than an empty lane");
        assert_eq!(take_next(&mut waiting, &[0, 0]), None);
    }
}
