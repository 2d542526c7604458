//! `cargo xtask bench`: measurements against other QUIC libraries, on this machine, in one run.

mod all;
mod build;
mod bulk;
mod cost;
mod edge;
mod files;
mod heap;
mod idle;
mod instructions;
mod lab;
mod pair;
mod quiet;
mod requests;
mod sessions;
mod table;
mod workers;

use std::path::Path;
use std::process;

use clap::Subcommand;

use crate::Result;

/// Peers that have a file in `interop/peers/src/bin`, and the one in `interop/go`; the first is what ratios relate to.
const PEERS: [&str; 7] = ["quinn", "quinn-ring", "posthaste", "quiche", "noq", "s2n", "quic-go"];

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// CPU seconds per GB and goodput over loopback on one stream, many, or many connections, peers interleaved
    Bulk(bulk::Arguments),
    /// CPU time and number of requests with replies on a stream each, peers interleaved
    Requests(requests::Arguments),
    /// CPU time of full, resumed and 0-RTT handshakes with two requests over sockets, peers interleaved
    Sessions(sessions::Arguments),
    /// Resident memory of a server per idle connection
    Idle(idle::Arguments),
    /// CPU time that a datagram of junk costs a server
    Junk(cost::Arguments),
    /// Handshakes in a CPU second
    Handshakes(cost::Arguments),
    /// CPU time of an HTTP/3 server per request for a file
    Files(files::Arguments),
    /// The edge next to nginx, Caddy and HAProxy over HTTP/3: CPU time, latency and memory
    Edge(edge::Arguments),
    /// What a second worker of the edge is worth, over HTTP/3 and HTTP/2
    Workers(workers::Arguments),
    /// Reloads of the edge, nginx, Caddy and HAProxy under a steady load: failed requests and lost connections
    Reloads(edge::reloads::Arguments),
    /// Instructions of transfers, requests and handshakes, alone or compared with an earlier build
    Instructions(instructions::Arguments),
    /// CPU time of the lab's virtual-time runs, stack by stack
    Lab(lab::Arguments),
    /// Compile time of the libraries from cold, next to quinn's
    Build(build::Arguments),
    /// bulk, requests, sessions, handshakes, idle, files and junk in their forms one after another, as one page
    All(all::Arguments),
}

/// Runs it.
pub(crate) fn run(command: &Command) -> Result<bool> {
    match command {
        Command::Bulk(arguments) => bulk::run(arguments),
        Command::Requests(arguments) => requests::run(arguments),
        Command::Sessions(arguments) => sessions::run(arguments),
        Command::Idle(arguments) => idle::run(arguments),
        Command::Junk(arguments) => cost::junk(arguments),
        Command::Handshakes(arguments) => cost::handshakes(arguments),
        Command::Files(arguments) => files::run(arguments),
        Command::Edge(arguments) => edge::run(arguments),
        Command::Workers(arguments) => workers::run(arguments),
        Command::Reloads(arguments) => edge::reloads::run(arguments),
        Command::Instructions(arguments) => instructions::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Build(arguments) => build::run(arguments),
        Command::All(arguments) => all::run(arguments),
    }
}

/// Instructions that a program executes from its start to its end, by valgrind's callgrind.
fn instructions_of(program: &Path, arguments: &[&str]) -> Result<u64> {
    let mut command = process::Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(arguments);
    let output =
        command.output().map_err(|error| format!("valgrind: {error}; install it to count instructions"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{} ended with {}: {text}", program.display(), output.status).into());
    }
    let line = text.lines().find_map(|line| line.split("Collected :").nth(1));
    Ok(line.ok_or("valgrind printed no count")?.trim().parse()?)
}

/// The chosen peers, or all.
fn chosen(names: &[String]) -> Result<Vec<&'static str>> {
    if let Some(unknown) = names.iter().find(|name| !PEERS.contains(&name.as_str())) {
        return Err(format!("no peer {unknown:?}; there are {}", PEERS.join(", ")).into());
    }
    Ok(PEERS.into_iter().filter(|peer| names.is_empty() || names.iter().any(|name| name == peer)).collect())
}

/// The address in a peer's ready line.
fn ready_address(line: &str) -> Option<String> {
    line.strip_prefix("READY ").map(str::to_owned)
}
