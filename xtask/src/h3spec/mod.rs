//! `cargo xtask h3spec`: a client that breaks the protocol in every way it knows, and wants the right error for each.

mod install;
mod report;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::Result;
use crate::identity::Identity;
use crate::interop::application::Application;
use crate::interop::case::PLAIN;
use crate::interop::cell::{START_TIMEOUT, free_port};
use crate::interop::side::Side;
use crate::peers;
use crate::process::Running;
use crate::workspace::{build_posthaste_debug, root};
use report::{Report, Verdict};

/// Bound for the whole run; a server without faults needs a second, a case without an answer two.
const TIMEOUT: Duration = Duration::from_secs(180);

/// How often a case is tried again in which the test itself came to grief.
const FURTHER_TRIES: usize = 2;

/// Cases of the pinned version. Fewer mean that the run did not come to its end.
const CASES: usize = 45;

/// A case that may end otherwise than by passing.
struct Exception {
    /// Part of the case's name.
    case: &'static str,
    /// How it may end.
    verdict: Verdict,
    /// The section that the case has wrong, or what is missing.
    reason: &'static str,
}

/// What may be: a case that is wrong about an RFC, with the section that says so. Passing is always right.
const EXCEPTIONS: [Exception; 1] = [Exception {
    case: "CRYPTO in 0-RTT",
    verdict: Verdict::Skipped,
    reason: "h3spec does not wait for a session ticket, which may come behind the handshake (RFC 8446 section 4.6.1)",
}];

/// Of `cargo xtask h3spec`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo xtask h3spec                     all cases
  cargo xtask h3spec --match 'HTTP/3'    those with this in their name
  cargo xtask h3spec --edge              of `posthaste edge`, which forwards to an application
  cargo xtask h3spec --against quiche    the harness itself: quiche is tested

Maven fetches the artifact that h3spec's binary for Linux on x86-64 comes in, once; mvn and libgmp are needed.
The output of a run that fails stays in artifacts/h3spec.")]
pub(crate) struct Arguments {
    /// Only cases with this in their name
    #[arg(long = "match", value_name = "TEXT")]
    wanted: Option<String>,
    /// Let this peer be tested instead, to prove the harness
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// Let `posthaste edge` be tested, in front of an application
    #[arg(long, conflicts_with = "against")]
    edge: bool,
}

/// Runs all cases; true if each passes or is excepted.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = install::installed()?;
    let logs = root().join("artifacts/h3spec");
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;

    let folder = tempfile::tempdir()?;
    let identity = Identity::create(folder.path())?;
    let content = folder.path().join("root");
    fs::create_dir(&content)?;
    fs::write(content.join("index.html"), "<!doctype html><title>h3spec</title>\n")?;
    let server = tested(arguments, &content, &identity, &logs)?;
    let listen = free_port(std::net::Ipv4Addr::LOCALHOST.into())?;
    let mut command = server.server(&PLAIN, &content, listen, &identity, folder.path());
    let mut serving = Running::spawn(&mut command, "server", &logs)?;
    serving.wait_for(START_TIMEOUT, |line| server.is_ready_line(line).then_some(()))?;

    let test = |wanted: Option<&str>| test(&program, listen, wanted, &logs);
    let mut report = test(arguments.wanted.as_deref())?;
    for case in &mut report.cases {
        for _ in 0..FURTHER_TRIES {
            if case.is_inconclusive() {
                eprintln!("again: {} ({})", case.name, case.reason);
                let again = test(Some(&case.name))?.cases.into_iter().find(|again| again.name == case.name);
                *case = again.ok_or("h3spec does not find its own case")?;
            }
        }
    }
    if !serving.is_running()? {
        return Err("the server ended under the test; see artifacts/h3spec".into());
    }
    if arguments.wanted.is_none() && report.cases.len() != CASES {
        return Err(format!("{} cases of {CASES} were run; see artifacts/h3spec", report.cases.len()).into());
    }
    let passed = print(&report);
    if passed {
        fs::remove_dir_all(&logs)?;
    }
    Ok(passed)
}

/// Who is tested, with these files.
fn tested(arguments: &Arguments, content: &Path, identity: &Identity, logs: &Path) -> Result<Side> {
    if let Some(name) = &arguments.against {
        let peer = peers::find(name)?;
        if !peer.server {
            return Err(format!("{name} cannot serve").into());
        }
        peers::build([peer])?;
        return Ok(Side::Peer(peer));
    }
    let program = build_posthaste_debug()?;
    if !arguments.edge {
        return Ok(Side::posthaste(program));
    }
    let application = Application::start(&program, content, identity, logs)?;
    Ok(Side::edge(program, application))
}

/// One run of h3spec.
fn test(program: &Path, server: SocketAddr, wanted: Option<&str>, logs: &Path) -> Result<Report> {
    let mut command = Command::new(program);
    if let Some(wanted) = wanted {
        command.arg("--match").arg(wanted);
    }
    command.arg(server.ip().to_string()).arg(server.port().to_string());
    let mut testing = Running::spawn(&mut command, "h3spec", logs)?;
    let status = testing.wait(TIMEOUT)?;
    let report = Report::parse(&testing.output()?)?;
    if status.success() != (report.count(Verdict::Failed) == 0) {
        return Err(format!("h3spec ended with {status}, which is not what it says").into());
    }
    Ok(report)
}

/// The table for people; true if nothing is wrong.
fn print(report: &Report) -> bool {
    let mut wrong = 0;
    for case in &report.cases {
        let exception = EXCEPTIONS.iter().find(|exception| case.name.contains(exception.case));
        match (case.verdict, exception) {
            (Verdict::Passed, _) => println!("ok        {}", case.name),
            (verdict, Some(exception)) if exception.verdict == verdict => {
                println!("excepted  {} ({}: {})", case.name, verdict.label(), exception.reason);
            }
            (verdict, _) => {
                wrong += 1;
                println!("FAILED    {} ({} {})", case.name, verdict.label(), case.reason);
            }
        }
    }
    let passed = report.count(Verdict::Passed);
    println!("{passed} of {} cases pass, {wrong} are wrong", report.cases.len());
    if wrong > 0 {
        println!("what h3spec and the server said is in artifacts/h3spec");
    }
    wrong == 0
}
