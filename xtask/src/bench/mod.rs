//! `cargo xtask bench`: measurements against other QUIC libraries, on this machine, in one run.

mod build;
mod bulk;
mod cost;
mod files;
mod idle;
mod lab;

use clap::Subcommand;

use crate::Result;

/// Peers that have a file in `interop/peers/src/bin`; the first is what ratios relate to.
const PEERS: [&str; 3] = ["quinn", "posthaste", "quiche"];

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// CPU seconds per GB and goodput of one stream over loopback, peers interleaved
    Bulk(bulk::Arguments),
    /// Resident memory of a server per idle connection
    Idle(idle::Arguments),
    /// CPU time that a datagram of junk costs a server
    Junk(cost::Arguments),
    /// Handshakes in a CPU second
    Handshakes(cost::Arguments),
    /// CPU time of an HTTP/3 server per request for a file
    Files(files::Arguments),
    /// CPU time of the lab's virtual-time runs, stack by stack
    Lab(lab::Arguments),
    /// Compile time of the libraries from cold, next to quinn's
    Build(build::Arguments),
}

/// Runs it.
pub(crate) fn run(command: &Command) -> Result<bool> {
    match command {
        Command::Bulk(arguments) => bulk::run(arguments),
        Command::Idle(arguments) => idle::run(arguments),
        Command::Junk(arguments) => cost::junk(arguments),
        Command::Handshakes(arguments) => cost::handshakes(arguments),
        Command::Files(arguments) => files::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Build(arguments) => build::run(arguments),
    }
}

/// The chosen peers, or all.
fn chosen(names: &[String]) -> Result<Vec<&str>> {
    if let Some(unknown) = names.iter().find(|name| !PEERS.contains(&name.as_str())) {
        return Err(format!("no peer {unknown:?}; there are {}", PEERS.join(", ")).into());
    }
    Ok(PEERS.into_iter().filter(|peer| names.is_empty() || names.iter().any(|name| name == peer)).collect())
}

/// The address in a peer's ready line.
fn ready_address(line: &str) -> Option<String> {
    line.strip_prefix("READY ").map(str::to_owned)
}
