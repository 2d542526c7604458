//! The comparison itself: all runs, a few at a time, until the last or Ctrl-C.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use posthaste_campaign::journal::Journal;
use posthaste_emulator::is_permitted;

use super::journal;
use super::plan::{Item, Plan, is_started_here};
use super::record::Record;
use super::run::{self, Running as Visiting};
use super::tally::Tally;
use super::visit::is_snap;
use super::{html, reach, report, table};
use crate::args::Page;
use crate::command::runs::{Campaign, Running, make_all};
use crate::exit::{FAILED, Failure, INTERRUPTED, VOID};
use crate::interrupt::Interrupts;
use crate::output_file::OutputFile;
use crate::printer;

pub(crate) async fn run(args: Page) -> Result<ExitCode, Failure> {
    let plan = Arc::new(Plan::new(&args)?);
    let create = || OutputFile::create(&args.html);
    let page = (!args.output.no_html).then(create).transpose().map_err(|error| {
        Failure::usage(error).hint("choose another file with --html FILE, or use --no-html")
    })?;
    let (journal, kept) = journal::open(args.journal.as_deref())?;
    let kept: Vec<Record> = kept.into_iter().filter(|record| plan.includes(record)).collect();
    check_paths(&plan)?;
    let warning = args.journal.as_deref().and_then(|journal| plan.builds.warning(&kept, journal));
    for warning in warning.into_iter().chain(snap_warning(&plan)) {
        printer::note(warning);
    }
    let mut interrupts = Interrupts::catch()
        .map_err(|error| Failure::runtime(format!("cannot listen for signals: {error}")))?;
    announce(&plan, &kept);
    let tally = load_all(&plan, journal, kept, &mut interrupts).await?;
    let written = if args.output.json {
        printer::json(&report::Report::new(&plan, &tally))
    } else {
        printer::line(table::table(&plan, &tally).trim_end())
    };
    printer::unless_reader_left(written)
        .map_err(|error| Failure::runtime(format!("cannot write to stdout: {error}")))?;
    // Interrupted before the first run was over, there is nothing to show.
    if let Some(page) = page.filter(|_| !tally.records.is_empty()) {
        page.write(html::page(&plan, &tally).as_bytes()).map_err(Failure::runtime)?;
        if !args.output.json {
            printer::note(format_args!("the report is in {}", args.html.display()));
        }
    }
    Ok(exit_code(&tally))
}

/// What shells are told.
pub(super) fn exit_code(tally: &Tally) -> ExitCode {
    match (tally.was_interrupted, tally.bad_runs()) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(FAILED),
    }
}

/// Finds out before the first run whether there can be emulated paths.
pub(super) fn check_paths(plan: &Plan) -> Result<(), Failure> {
    if plan.paths.iter().all(|path| path.argument.is_none()) {
        return Ok(());
    }
    let urls: Vec<_> = plan.contestants.iter().filter(|contestant| !is_started_here(contestant)).collect();
    for contestant in &urls {
        reach::check(contestant, is_permitted())?;
    }
    let mut command = Command::new(&plan.posthaste);
    // Paths to servers that run already begin in the network that those are in.
    let isolate: &[&str] = if urls.is_empty() { &["--isolate"] } else { &[] };
    command.args(["emulate", "--quiet"]).args(isolate).args(["--down", "delay=0ms", "--", "true"]);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::runtime(format!("cannot start `posthaste emulate`: {error}")))?;
    if output.status.success() || output.status.code() == Some(VOID.into()) {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let why = why.trim().trim_start_matches("posthaste:").trim();
    Err(Failure::runtime(format!("cannot set up an emulated path here: {why}"))
        .hint("with --path none, URLs are loaded over the real network"))
}

/// The browser would start, and yet find none of its files.
pub(super) fn snap_warning(plan: &Plan) -> Option<String> {
    let (browser, folder) = (plan.browser.display(), plan.ground.path().display());
    is_snap(&plan.browser).then(|| {
        format!(
            "warning: {browser} is a snap, which cannot see the files of a run in {folder}: if every visit fails, install \
             google-chrome, or name another browser with --browser FILE"
        )
    })
}

fn announce(plan: &Plan, kept: &[Record]) {
    let names = |all: &mut dyn Iterator<Item = &str>| printer::printable(&all.collect::<Vec<_>>().join(", "));
    let total = plan.order().len();
    printer::note(format_args!(
        "{} over {} from {}: {} runs each, {total} in all{}",
        names(&mut plan.pages.iter().map(|page| page.name.as_str())),
        names(&mut plan.paths.iter().map(|path| path.name.as_str())),
        names(&mut plan.contestants.iter().map(|contestant| contestant.name.as_str())),
        plan.runs,
        if kept.is_empty() { String::new() } else { format!(", {} of them kept", kept.len()) },
    ));
}

pub(super) async fn load_all(
    plan: &Arc<Plan>,
    journal: Journal<Record>,
    kept: Vec<Record>,
    interrupts: &mut Interrupts,
) -> Result<Tally, Failure> {
    // Runs that were void too often are made again: the machine may be quieter now.
    let is_missing = |key| !kept.iter().any(|record| record.key == key && record.is_valid());
    let mut waiting: Vec<_> = plan.order().into_iter().filter(|&item| is_missing(plan.key(item))).collect();
    waiting.reverse();
    let total = waiting.len();
    let tally = Tally { records: kept, was_interrupted: false };
    let (plan, visiting) = (Arc::clone(plan), Arc::default());
    let parallel = plan.parallel;
    let mut visits = Visits { plan, journal, tally, waiting, total, done: 0, visiting };
    visits.tally.was_interrupted = make_all(&mut visits, parallel, interrupts).await?;
    Ok(visits.tally)
}

/// A comparison under way.
struct Visits {
    plan: Arc<Plan>,
    journal: Journal<Record>,
    tally: Tally,
    /// The next comes last.
    waiting: Vec<Item>,
    total: usize,
    done: usize,
    /// Can end all runs.
    visiting: Arc<Visiting>,
}

impl Campaign for Visits {
    /// None if it was interrupted.
    type Run = Option<Record>;

    fn start(&mut self, running: &mut Running<Self::Run>) -> bool {
        let Some(item) = self.waiting.pop() else { return false };
        let (plan, visiting) = (Arc::clone(&self.plan), Arc::clone(&self.visiting));
        running.spawn_blocking(move || run::run(&plan, item, &visiting));
        true
    }

    fn take(&mut self, run: Self::Run) -> Result<(), Failure> {
        let Some(record) = run else { return Ok(()) };
        self.done += 1;
        if let Some(reason) = self.tally.hopeless_reason(&record)
            && self.plan.gives_up
        {
            return Err(Failure::runtime(format!(
                "{}: {}",
                record.key.contestant,
                printer::printable(reason)
            )));
        }
        let record = self.tally.add(record);
        printer::note(format_args!("{}/{} {}", self.done, self.total, table::line(record)));
        self.journal.add(record).map_err(Failure::runtime)
    }

    fn stop(&mut self, _: &mut Running<Self::Run>) {
        self.visiting.end();
    }
}
