//! `cargo xtask interop`: third-party clients and servers against ours, a cell for each peer and case.

mod case;
pub(crate) mod cell;
mod content;
pub(crate) mod side;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::Result;
use crate::identity::Identity;
use crate::peers::{self, PEERS, Peer};
use crate::workspace::{build_posthaste, root};
use case::{CASES, Case};
use content::Content;
use side::Side;

/// The part that the third party plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    /// It fetches from our server.
    Client,
    /// Our client fetches from it.
    Server,
}

/// Of `cargo xtask interop`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo xtask interop                                    all peers, roles and cases
  cargo xtask interop --peer curl --case lossy           one peer, one case
  cargo xtask interop --role server --json report.json   our client against third-party servers
  cargo xtask interop --against quic-go                  the harness itself: quic-go plays our part

Cases:
  handshake   one file of 1 kB
  transfer    one file of 10 MB, checked by SHA-256
  parallel    100 small files at once over one connection
  lossy       1 MB through a relay that loses 5 % and reorders 5 % both ways

Needs python3 with venv, go, cmake and a C++ compiler, and chromium. The first run builds the peers (minutes).
The logs of failing cells stay in artifacts/interop.")]
pub(crate) struct Arguments {
    /// Only these third parties (repeatable)
    #[arg(long = "peer", value_name = "NAME")]
    peers: Vec<String>,
    /// Only these cases (repeatable)
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Only one role of the third parties
    #[arg(long)]
    role: Option<Role>,
    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Let this peer play our part, to prove the harness
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
}

/// The result of one cell.
#[derive(Debug, Serialize)]
struct Outcome {
    peer: &'static str,
    role: Role,
    case: &'static str,
    passed: bool,
    seconds: f64,
    /// What was seen, or why it failed.
    detail: String,
    /// The folder with both sides' output, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<String>,
}

/// Runs the matrix; true if every cell passes.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let peers = chosen_peers(&arguments.peers)?;
    let cases = chosen_cases(&arguments.cases)?;
    let rows = rows(&peers, arguments.role);
    if rows.is_empty() {
        return Err("no peer can play that role".into());
    }
    let against = arguments.against.as_deref().map(peers::find).transpose()?;
    eprintln!("building the peers");
    peers::build(peers.iter().copied().chain(against))?;
    let ours = if let Some(peer) = against {
        Side::Peer(peer)
    } else {
        eprintln!("building posthaste");
        Side::Posthaste(build_posthaste()?)
    };
    let folder = tempfile::tempdir()?;
    let bench = cell::Bench {
        content: Content::create(&folder.path().join("root"))?,
        identity: Identity::create(folder.path())?,
        artifacts: root().join("artifacts/interop"),
        runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?,
    };
    let mut outcomes = Vec::new();
    for &(peer, role) in &rows {
        for case in &cases {
            let outcome = run_cell(&bench, &ours, peer, role, case);
            let mark = if outcome.passed { "ok" } else { "FAILED" };
            eprintln!("{:<6} {} as {}: {}: {}", mark, peer.name, label(role), case.name, outcome.detail);
            outcomes.push(outcome);
        }
    }
    print_table(&ours, &rows, &cases, &outcomes);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&outcomes)?)?;
    }
    Ok(outcomes.iter().all(|outcome| outcome.passed))
}

fn run_cell(
    bench: &cell::Bench,
    ours: &Side,
    peer: &'static Peer,
    role: Role,
    case: &'static Case,
) -> Outcome {
    let name = format!("{}-{}-{}", peer.name, label(role), case.name);
    let started = Instant::now();
    let theirs = Side::Peer(peer);
    let (client, server) = if role == Role::Client { (&theirs, ours) } else { (ours, &theirs) };
    let result = bench.run(&name, client, server, case);
    let seconds = started.elapsed().as_secs_f64();
    let (passed, detail, logs) = match result {
        Ok(detail) => (true, detail, None),
        Err(error) => {
            let logs = format!("artifacts/interop/{name}");
            (false, format!("{error}; see {logs}"), Some(logs))
        }
    };
    Outcome { peer: peer.name, role, case: case.name, passed, seconds, detail, logs }
}

fn chosen_peers(names: &[String]) -> Result<Vec<&'static Peer>> {
    if names.is_empty() {
        return Ok(PEERS.iter().collect());
    }
    names.iter().map(|name| peers::find(name)).collect()
}

fn chosen_cases(names: &[String]) -> Result<Vec<&'static Case>> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    names.iter().map(|name| case::find(name)).collect()
}

fn rows(peers: &[&'static Peer], role: Option<Role>) -> Vec<(&'static Peer, Role)> {
    let wanted = |candidate| role.is_none_or(|role| role == candidate);
    let clients =
        peers.iter().filter(|peer| peer.client && wanted(Role::Client)).map(|&peer| (peer, Role::Client));
    let servers =
        peers.iter().filter(|peer| peer.server && wanted(Role::Server)).map(|&peer| (peer, Role::Server));
    clients.chain(servers).collect()
}

fn label(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

fn print_table(ours: &Side, rows: &[(&Peer, Role)], cases: &[&Case], outcomes: &[Outcome]) {
    print!("\n{:<22}", format!("against {}", ours.name()));
    for case in cases {
        print!("{:>14}", case.name);
    }
    println!();
    for (row, &(peer, role)) in rows.iter().enumerate() {
        print!("{:<22}", format!("{} as {}", peer.name, label(role)));
        for outcome in &outcomes[row * cases.len()..(row + 1) * cases.len()] {
            let cell =
                if outcome.passed { format!("ok {:.2} s", outcome.seconds) } else { "FAILED".to_owned() };
            print!("{cell:>14}");
        }
        println!();
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed).count();
    println!("{passed} of {} cells pass", outcomes.len());
    for outcome in outcomes.iter().filter(|outcome| !outcome.passed) {
        println!("FAILED {} as {}, {}: {}", outcome.peer, label(outcome.role), outcome.case, outcome.detail);
    }
}
