//! The `posthaste` command: race profiles, serve and fetch files over HTTP/3, load pages in a browser,
//! emulate paths, and the lab.

// What several commands share is not used by each of them alone.
#![cfg_attr(not(feature = "full"), allow(dead_code))]

mod args;
#[cfg(feature = "files")]
mod civil_date;
mod command;
mod exit;
#[cfg(feature = "files")]
mod identity;
mod interrupt;
#[cfg(feature = "files")]
mod kept;
#[cfg(feature = "files")]
mod link_rate;
#[cfg(feature = "files")]
mod log_queue;
mod output_file;
mod path_choice;
mod printer;
mod profile;
#[cfg(any(feature = "files", feature = "lab"))]
mod state_directory;
#[cfg(feature = "files")]
mod trust;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use args::{Args, Command};
use exit::Failure;
#[cfg(feature = "files")]
use log_queue::LogQueue;

/// What threads get to end before the process does without them. Not to wait at all (`shutdown_background`) would detach
/// threads that are about to end anyway, and glibc reads of a thread that is gone if it is detached as it ends: one in
/// some hundred runs on a busy machine then died by SIGSEGV with all its work done.
const FAREWELL: Duration = Duration::from_millis(500);

/// Gives memory back when a server's clients have left; the system's allocator keeps it (docs/results/benchmarks.md). With
/// glibc it serves C code, too.
#[cfg(feature = "files")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(args: Args) -> Result<ExitCode, Failure> {
    #[cfg(feature = "files")]
    let is_server = is_server(&args.command);
    #[cfg(not(feature = "files"))]
    let is_server = false;
    if !is_server {
        trace(std::io::stderr);
    }
    match args.command {
        // Nothing of it waits for a network.
        Command::Profiles(args) => command::profiles::run(&args),
        #[cfg(feature = "files")]
        Command::History(args) => command::history::run(&args),
        #[cfg(feature = "manual")]
        Command::Manual(args) => command::manual::run(&args),
        #[cfg(feature = "race")]
        Command::Race(args) => runtime()?.block_on(command::race::run(args)),
        #[cfg(feature = "emulate")]
        // It goes into namespaces, which a process with several threads cannot.
        Command::Emulate(args) => command::emulate::run(&args),
        #[cfg(feature = "emulate")]
        Command::EmulateInside(args) => Ok(command::emulate::run_inside(&args)),
        #[cfg(feature = "files")]
        Command::Serve(args) => serve(async |log| command::serve::run(args, log).await),
        #[cfg(feature = "edge")]
        Command::Edge(args) => {
            let passed = command::edge::Passed::take()?;
            serve(async |log| command::edge::run(*args, passed, log).await)
        }
        #[cfg(feature = "files")]
        Command::Get(args) => {
            let runtime = runtime()?;
            // As a task: the endpoint lets tasks answer before it sends, so that the first request travels with the end
            // of the handshake. This thread would wake too late for that.
            let task = runtime.spawn(command::get::run(args));
            let result =
                runtime.block_on(task).unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            // A blocked write (to a pipe that nobody reads) must not keep the process.
            runtime.shutdown_timeout(FAREWELL);
            result
        }
        #[cfg(feature = "page")]
        Command::Page(args) => runtime()?.block_on(command::page::run(args)),
        #[cfg(feature = "page")]
        Command::PageVisit(args) => command::page::visit(&args),
        #[cfg(feature = "page")]
        Command::PageRelay(args) => command::page::relay(&args),
        #[cfg(feature = "lab")]
        Command::Lab(args) => {
            let runtime = runtime()?;
            let result = runtime.block_on(command::lab::run(args));
            // A sweep that was interrupted leaves runs behind that need not end.
            runtime.shutdown_timeout(FAREWELL);
            result
        }
        #[cfg(not(feature = "full"))]
        Command::Other(words) => Err(exit::no_command(&words)),
    }
}

/// Servers set up their logs themselves.
#[cfg(feature = "files")]
fn is_server(command: &Command) -> bool {
    match command {
        Command::Serve(_) => true,
        #[cfg(feature = "edge")]
        Command::Edge(_) => true,
        _ => false,
    }
}

/// A server's log must not hold it up, and so has a thread. Others do without: `emulate` goes into namespaces, which a
/// process with several threads cannot.
#[cfg(feature = "files")]
fn serve(run: impl AsyncFnOnce(&LogQueue) -> Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
    let log = LogQueue::new(anstream::stderr(), |lines| {
        format!("posthaste: {lines} lines of this log were dropped, because nobody read it")
    });
    let writer = log.clone();
    trace(move || writer.clone());
    let runtime = runtime()?;
    let result = runtime.block_on(run(&log));
    // A file system that does not answer must not keep the process.
    runtime.shutdown_timeout(FAREWELL);
    log.drain(FAREWELL);
    result
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::runtime(format!("cannot start: {error}")))
}

/// Logs go to stderr; `RUST_LOG` chooses which, by module and level. There are no spans, so the filter needs no regular
/// expressions, which take long to compile.
fn trace(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    let wanted = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = wanted.and_then(|text| text.parse::<Targets>().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(LevelFilter::WARN));
    let stderr =
        tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(stderr.with_filter(filter)).init();
}
