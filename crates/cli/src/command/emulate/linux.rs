//! The run itself: a tunnel, the processes at both of its ends, signals, and the verdict.

use std::ffi::OsString;
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;
use posthaste_campaign::emulated::Emulation;
use posthaste_emulator::{TunnelError, is_permitted, isolate};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::directions::Directions;
use super::interrupt::{self, Interrupts};
use super::paths::Paths;
use super::{meter, processes, report};
use crate::args::{Emulate, EmulateInside};
use crate::exit::{Failure, INTERRUPTED, NOT_EXECUTABLE, NOT_FOUND, VOID};
use crate::output_file::OutputFile;
use crate::printer;

/// After SIGTERM or SIGHUP COMMAND has so long to end.
const GRACE: Duration = Duration::from_secs(2);

/// Where each end finds the other's address, and its own.
const VARIABLES: [&str; 2] = ["POSTHASTE_FAR", "POSTHASTE_NEAR"];

impl From<TunnelError> for Failure {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::Path(error) => Self::usage(error),
            error @ TunnelError::Device(_) => Self::runtime(error).hint("--device veth does not need it"),
            error @ TunnelError::Pair { .. } => Self::runtime(error).hint("--device tun does not need them"),
            other => Self::runtime(other),
        }
    }
}

pub(crate) fn run(args: &Emulate) -> Result<ExitCode, Failure> {
    let plan = Paths::plan(args)?;
    for (which, path) in [("", Some(&plan.0)), ("second path: ", plan.1.as_ref())] {
        for warning in path.into_iter().flat_map(Directions::warnings) {
            printer::note(format_args!("warning: {which}{warning}"));
        }
    }
    let unwritable = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let json =
        args.json.as_deref().map(OutputFile::create).transpose().map_err(|error| unwritable(&error))?;
    let log = args
        .log
        .as_deref()
        .map(File::create)
        .transpose()
        .map_err(|error| unwritable(&format_args!("cannot write the log: {error}")))?;
    // Whoever loses its parent comes to this process, and ends with it.
    set_child_subreaper(true).map_err(|error| cannot("gather what COMMAND starts", &error.into()))?;
    // Before there are other threads.
    interrupt::hold_back().map_err(|error| cannot("hold back SIGINT", &error))?;
    if args.isolate || !is_permitted() {
        isolate()?;
    }
    let paths = Paths::start(args, plan, log)?;
    if !args.quiet {
        printer::note(paths.describe());
    }
    let began = Instant::now();
    let result = carry_out(args, &paths);
    // Before the tunnel: what still runs may not find out that the path has gone.
    processes::end_all();
    let seconds = began.elapsed().as_secs_f64();
    let counted = paths.finish().map_err(|error| cannot("finish", &error))?;
    let code = result?;
    let validity = counted.validity();
    if !args.quiet {
        let reports = [Some(&counted.first), counted.second.as_ref().map(|(_, report)| report)];
        for report in reports.into_iter().flatten() {
            printer::note(report::summary(report).replace('\n', "\nposthaste: "));
        }
    }
    if let Some(json) = json {
        let second = counted.second.as_ref().map(|(path, report)| report::second((path, report)));
        let run = (counted.summary.as_str(), args.seed, counted.device);
        let report = report::report(run, (code, seconds), &counted.first, &validity);
        let report = Emulation { second, left_at: counted.left_at, ..report };
        let mut text = serde_json::to_vec_pretty(&report).map_err(Failure::runtime)?;
        text.push(b'\n');
        json.write(&text).map_err(Failure::runtime)?;
    }
    if validity.is_valid() {
        return Ok(ExitCode::from(code));
    }
    printer::error(format_args!("this run is void: {}", validity.faults.join("; ")));
    Ok(ExitCode::from(VOID))
}

pub(crate) fn run_inside(args: &EmulateInside) -> ExitCode {
    let error = processes::become_command(args.parent, &args.command);
    let name = args.command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    printer::error(format_args!("cannot run {}: {error}", printer::printable(&name)));
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { NOT_FOUND } else { NOT_EXECUTABLE })
}

fn cannot(what: &str, error: &std::io::Error) -> Failure {
    Failure::runtime(format!("cannot {what}: {error}"))
}

/// Starts both ends and waits for COMMAND.
fn carry_out(args: &Emulate, paths: &Paths) -> Result<u8, Failure> {
    let tunnel = &paths.first;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| cannot("start", &error))?;
    runtime.block_on(async {
        // Before anything runs that a signal would have to end.
        let no_signals = |error| cannot("listen for signals", &error);
        let signals = Signals::catch().map_err(no_signals)?;
        if signals.interrupt.has_come().map_err(no_signals)? {
            return Ok(INTERRUPTED);
        }
        for shell in &args.far {
            let words: [OsString; 3] = ["sh".into(), "-c".into(), shell.into()];
            let addresses = [tunnel.near_address(), tunnel.far_address()];
            start(&words, addresses, |mut command| {
                command.stdin(Stdio::null());
                command.spawn()
            })?;
        }
        let addresses = [tunnel.far_address(), tunnel.near_address()];
        let child = start(&args.command, addresses, |command| tunnel.spawn(command))?;
        let ended = watch(args, paths, child, signals).await;
        ended.map(exit_code).map_err(|error| cannot("wait for COMMAND", &error))
    })
}

/// What may be asked of this process while it waits.
struct Signals {
    interrupt: Interrupts,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn catch() -> std::io::Result<Self> {
        // Never told of any. But a signal with a handler has none in a new program, even if this one was to ignore it.
        let _ = signal(SignalKind::interrupt())?;
        Ok(Self {
            interrupt: Interrupts::catch()?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Starts a process that finds the address of the other end, and its own, in its environment.
fn start(
    words: &[OsString],
    addresses: [Ipv4Addr; 2],
    spawn: impl FnOnce(std::process::Command) -> std::io::Result<Child>,
) -> Result<Child, Failure> {
    let mut command = processes::bound(words).map_err(|error| cannot("find this program", &error))?;
    for (variable, address) in VARIABLES.iter().zip(addresses) {
        command.env(variable, address.to_string());
    }
    spawn(command).map_err(|error| cannot("start a process", &error))
}

/// A shell's figure for how a process ended.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Waits for COMMAND's end, passes signals on, and shows the meter.
async fn watch(
    args: &Emulate,
    paths: &Paths,
    mut child: Child,
    mut signals: Signals,
) -> std::io::Result<ExitStatus> {
    let process = child.id();
    let (ended, mut end) = oneshot::channel();
    std::thread::Builder::new().name("child".to_owned()).spawn(move || drop(ended.send(child.wait())))?;
    let mut display = meter::Display::new(args.meter, args.quiet);
    let mut ticks = tokio::time::interval(meter::INTERVAL);
    let mut deadline = None;
    let mut leaving = std::pin::pin!(paths.leave());
    let mut has_left = false;
    loop {
        let over = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = &mut end => {
                display.clear();
                return status.map_err(|_| std::io::Error::other("nobody waits for it"))?;
            }
            interrupted = signals.interrupt.sent_elsewhere() => {
                interrupted?;
                processes::signal(process, Signal::SIGINT);
            }
            _ = signals.terminate.recv() => {
                processes::signal(process, Signal::SIGTERM);
                deadline = Some(tokio::time::Instant::now() + GRACE);
            }
            _ = signals.hang_up.recv() => {
                processes::signal(process, Signal::SIGHUP);
                deadline = Some(tokio::time::Instant::now() + GRACE);
            }
            () = &mut leaving, if !has_left => {
                has_left = true;
                if let Ok(report) = paths.report() {
                    display.change_path(report);
                }
            }
            () = over => {
                processes::signal(process, Signal::SIGKILL);
                deadline = None;
            }
            _ = ticks.tick() => {
                processes::reap_adopted(process);
                if display.is_shown() && let Ok(report) = paths.report() {
                    display.show(report);
                }
            }
        }
    }
}
