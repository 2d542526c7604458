//! `cargo xtask interop`: third-party clients and servers against ours, a cell for each peer and case.

pub(crate) mod application;
pub(crate) mod case;
pub(crate) mod cell;
mod content;
mod datagrams;
mod hello;
mod moves;
mod profiles;
mod proof;
mod recorder;
mod section;
mod shuffled;
pub(crate) mod side;
mod support;
mod table;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::Result;
use crate::identity::Identity;
use crate::peers::{self, PEERS, Peer};
use crate::workspace::{build_posthaste, root, target};
use application::Application;
use case::{CASES, Case, Proof};
use content::Content;
use side::Side;
pub(crate) use table::{commit, date};

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
  cargo xtask interop --edge --quick                     third-party clients through `posthaste edge`, which forwards to an application (CI)
  cargo xtask interop --quick                            what CI runs: without the cases that take long
  cargo xtask interop --markdown docs/results/interop.md         all of it, as a table for people
  cargo xtask interop --profiles all                     every profile at our side: nobody must notice (an hour and a half)
  cargo xtask interop --profiles all --quick             each with one client, one server and one case, in turn (CI)
  cargo xtask interop --profiles bbr,quicming@min_rate=1mbit --peer curl --peer quic-go
  cargo xtask interop --list                             the cases

Every file is checked by SHA-256, and every case proves that what it names has happened.
Needs python3 with venv, go, cmake and a C++ compiler, and chromium. The first run builds the peers (minutes).
The logs of failing cells stay in artifacts/interop.")]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line, each by itself")]
pub(crate) struct Arguments {
    /// Only these third parties (repeatable)
    #[arg(long = "peer", value_name = "NAME")]
    peers: Vec<String>,
    /// With our side under each of these profiles; `all` are all of them, with 1 Mbit/s promised to those that want a
    /// guaranteed rate. Unless --case says otherwise: handshake, transfer, parallel, lossy, zerortt, keyupdate
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "against")]
    profiles: Vec<String>,
    /// Only these cases (repeatable)
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Only one role of the third parties
    #[arg(long)]
    role: Option<Role>,
    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the results here, as a table for people
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Without the cases that take long; with --profiles: one client, one server and one case for each
    #[arg(long, conflicts_with = "cases")]
    quick: bool,
    /// Only build the peers
    #[arg(long, conflicts_with_all = ["no_build", "profiles"])]
    prepare: bool,
    /// Use what was built before: target/release/posthaste and the peers
    #[arg(long)]
    no_build: bool,
    /// Say what the cases are, and end
    #[arg(long)]
    list: bool,
    /// Let this peer play our part, to prove the harness
    #[arg(long, value_name = "NAME")]
    against: Option<String>,
    /// Let `posthaste edge` serve, in front of an application: third-party clients only
    #[arg(long, conflicts_with_all = ["against", "profiles", "role", "markdown"])]
    edge: bool,
}

/// What came of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// All files whole, and what the case names has happened.
    Passed,
    /// Not so.
    Failed,
    /// The third party cannot do it; the detail says why.
    Unsupported,
}

/// The result of one cell.
#[derive(Debug, Serialize)]
struct Outcome {
    /// Our side's, unless it is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    peer: &'static str,
    role: Role,
    case: &'static str,
    verdict: Verdict,
    seconds: f64,
    /// What was seen, or why it failed or was not tried.
    detail: String,
    /// The folder with both sides' output, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<String>,
}

/// Runs the matrix; true if every cell passes.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if !arguments.profiles.is_empty() && !arguments.list {
        return profiles::run(arguments);
    }
    let peers = chosen_peers(&arguments.peers)?;
    let mut cases = chosen_cases(&arguments.cases, arguments.quick)?;
    if arguments.edge {
        cases.retain(|case| application::missing(case).is_none());
    }
    if arguments.list {
        for case in &cases {
            println!("{:<16}{}", case.name, case.about);
        }
        return Ok(true);
    }
    let rows = rows(&peers, if arguments.edge { Some(Role::Client) } else { arguments.role });
    if rows.is_empty() {
        return Err("no peer can play that role".into());
    }
    let against = arguments.against.as_deref().map(peers::find).transpose()?;
    if !arguments.no_build {
        eprintln!("building the peers");
        peers::build(peers.iter().copied().chain(against))?;
        build_ours(&cases)?;
    }
    if arguments.prepare {
        return Ok(true);
    }
    let folder = tempfile::tempdir()?;
    let bench = bench(folder.path())?;
    let ours = match against {
        Some(peer) => Side::Peer(peer),
        None => our_side(arguments, &bench, folder.path())?,
    };
    let mut outcomes = Vec::new();
    for &(peer, role) in &rows {
        for case in &cases {
            let outcome = run_cell(&bench, &ours, peer, role, case);
            say(&outcome);
            outcomes.push(outcome);
        }
    }
    table::print(&ours, &rows, &cases, &outcomes);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&outcomes)?)?;
    }
    if let Some(path) = &arguments.markdown {
        let page = table::markdown(&ours, &rows, &cases, &outcomes)?;
        std::fs::write(path, section::kept(&page, &section::read(path)?))?;
    }
    Ok(outcomes.iter().all(|outcome| outcome.verdict != Verdict::Failed))
}

/// Our program, as `serve` or as `edge` in front of another one.
fn our_side(arguments: &Arguments, bench: &cell::Bench, logs: &Path) -> Result<Side> {
    let program = our_program(arguments)?;
    if !arguments.edge {
        return Ok(Side::posthaste(program));
    }
    let application = Application::start(&program, &bench.content.root, &bench.identity, logs)?;
    Ok(Side::edge(program, application))
}

/// Our side of the case that is not HTTP/3.
fn build_ours(cases: &[&Case]) -> Result<()> {
    if cases.iter().any(|case| case.proof == Proof::Datagrams) { peers::build_rust() } else { Ok(()) }
}

/// The release binary, built unless it is to be used as it is.
fn our_program(arguments: &Arguments) -> Result<PathBuf> {
    if arguments.no_build {
        return Ok(target().join("release/posthaste"));
    }
    eprintln!("building posthaste");
    build_posthaste()
}

fn bench(folder: &Path) -> Result<cell::Bench> {
    Ok(cell::Bench {
        content: Content::create(&folder.join("root"))?,
        identity: Identity::create(folder)?,
        large_identity: Identity::create_large(&folder.join("large"))?,
        artifacts: root().join("artifacts/interop"),
        runtime: tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?,
    })
}

/// A line as soon as a cell is over.
fn say(outcome: &Outcome) {
    let mark = match outcome.verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "FAILED",
        Verdict::Unsupported => "-",
    };
    let profile = outcome.profile.as_ref().map(|profile| format!("{profile}: ")).unwrap_or_default();
    let Outcome { peer, case, detail, .. } = outcome;
    eprintln!("{mark:<6} {profile}{peer} as {}: {case}: {detail}", label(outcome.role));
}

fn run_cell(
    bench: &cell::Bench,
    ours: &Side,
    peer: &'static Peer,
    role: Role,
    case: &'static Case,
) -> Outcome {
    let profile = match ours {
        Side::Posthaste { profile, .. } => profile.clone(),
        Side::Peer(_) => None,
    };
    let of_profile = profile.as_ref().map(|profile| format!("{profile}-")).unwrap_or_default();
    let name = format!("{of_profile}{}-{}-{}", peer.name, label(role), case.name);
    if let Some(reason) = support::missing(peer.name, role, case) {
        let (verdict, detail) = (Verdict::Unsupported, reason.to_owned());
        let (peer, case) = (peer.name, case.name);
        return Outcome { profile, peer, role, case, verdict, seconds: 0.0, detail, logs: None };
    }
    let started = Instant::now();
    let theirs = Side::Peer(peer);
    let (client, server) = if role == Role::Client { (&theirs, ours) } else { (ours, &theirs) };
    let mut result = bench.run(&name, client, server, case);
    if let Some(reason) = support::sometimes_fails(peer.name, role, case) {
        for count in 2..=support::TRIES {
            let Err(error) = result else { break };
            eprintln!("again  {} as {}: {}: {error}", peer.name, label(role), case.name);
            result = bench
                .run(&name, client, server, case)
                .map(|detail| format!("{detail}, try {count}: {reason}"));
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let (verdict, detail, logs) = match result {
        Ok(detail) => (Verdict::Passed, detail, None),
        Err(error) => {
            let logs = format!("artifacts/interop/{name}");
            (Verdict::Failed, format!("{error}; see {logs}"), Some(logs))
        }
    };
    Outcome { profile, peer: peer.name, role, case: case.name, verdict, seconds, detail, logs }
}

fn chosen_peers(names: &[String]) -> Result<Vec<&'static Peer>> {
    if names.is_empty() {
        return Ok(PEERS.iter().collect());
    }
    names.iter().map(|name| peers::find(name)).collect()
}

fn chosen_cases(names: &[String], quick: bool) -> Result<Vec<&'static Case>> {
    if names.is_empty() {
        return Ok(CASES.iter().filter(|case| case.quick || !quick).collect());
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
