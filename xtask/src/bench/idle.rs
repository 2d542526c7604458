//! Idle connections: what one costs a server in resident memory.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::pair::{START_TIMEOUT, Scene, ready};
use super::{chosen, heap, ready_address};
use crate::Result;

/// Bound for all handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Handshake state is freed by and by: the server gets this long before it is measured.
const SETTLE: Duration = Duration::from_secs(3);

/// Of `cargo xtask bench idle`.
#[derive(Debug, Args)]
#[command(
    after_help = "quinn holds the connections to every server; the growth of the server's VmRSS is divided by
their number. Windows are the bulk bench's, so buffers count only where a library fills them in advance."
)]
pub(crate) struct Arguments {
    /// Connections held at once
    #[arg(long, default_value_t = 1_000)]
    connections: u64,
    /// Only these peers' servers (repeatable)
    #[arg(long = "peer", value_name = "NAME")]
    peers: Vec<String>,
    /// Instead, print where the heap of both ends of a connection is allocated (needs valgrind)
    #[arg(long = "where", conflicts_with_all = ["peers", "connections", "json"])]
    places: bool,
    /// Also write the results here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One server.
#[derive(Debug, Serialize)]
struct Sample {
    peer: String,
    connections: u64,
    /// Resident bytes before the first connection.
    before: u64,
    /// Resident bytes with all connections idle.
    after: u64,
    per_connection: u64,
}

/// Measures every server and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.places {
        return heap::run();
    }
    if arguments.connections == 0 {
        return Err("--connections: at least 1 is needed".into());
    }
    let mut peers = chosen(&arguments.peers)?;
    let missing = ready(&peers, false)?;
    peers.retain(|peer| missing.iter().all(|(name, _)| name != peer));
    let scene = Scene::new()?;
    let mut samples = Vec::new();
    println!("{:<12}{:>14}{:>14}{:>20}", "server", "before kB", "after kB", "kB a connection");
    for peer in peers {
        let sample = measure(&scene, peer, arguments.connections)?;
        let kilobytes = |bytes: u64| bytes as f64 / 1024.0;
        println!(
            "{peer:<12}{:>14.0}{:>14.0}{:>20.2}",
            kilobytes(sample.before),
            kilobytes(sample.after),
            kilobytes(sample.per_connection)
        );
        samples.push(sample);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

fn measure(scene: &Scene, peer: &str, connections: u64) -> Result<Sample> {
    let (server, address) = scene.server(peer, "bulk-server")?;
    let before = server.resident_bytes()?;
    let count = connections.to_string();
    let mut holder = scene.client("quinn", "idle-client", &address, &["--connections", &count])?;
    holder.wait_for(CONNECT_TIMEOUT, ready_address)?;
    std::thread::sleep(SETTLE);
    let after = server.resident_bytes()?;

    // The holder fails if a connection was lost meanwhile: then they were not all idle but some gone.
    holder.close_stdin();
    let status = holder.wait(START_TIMEOUT)?;
    if !status.success() {
        return Err(format!("{peer}: {}", scene.complaint()?).into());
    }
    let per_connection = after.saturating_sub(before) / connections;
    Ok(Sample { peer: peer.to_owned(), connections, before, after, per_connection })
}
