//! One stream over loopback: CPU per byte of both sides, and goodput.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use posthaste_units::ByteCount;
use serde::{Deserialize, Serialize};

use super::{chosen, ready_address};
use crate::Result;
use crate::identity::Identity;
use crate::median;
use crate::peers;
use crate::process::{Running, children_cpu};

/// Bound for a server's start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The slowest goodput worth waiting for, in bytes a second.
const SLOWEST: u64 = 5_000_000;

/// Of `cargo xtask bench bulk`.
#[derive(Debug, Args)]
#[command(
    after_help = "All peers: one thread a side, CUBIC, windows of 16 MiB, UDP payloads of 1452 bytes without MTU
discovery, GSO and GRO, socket buffers of 4 MiB asked for, AES-128-GCM. Both sides are the same library."
)]
pub(crate) struct Arguments {
    /// Bytes of each transfer, such as 1GiB
    #[arg(long, default_value = "1GiB")]
    bytes: ByteCount,
    /// Transfers of each peer; the peers take turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only these peers (repeatable)
    #[arg(long = "peer", value_name = "NAME")]
    peers: Vec<String>,
    /// Also write every transfer here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One transfer.
#[derive(Debug, Serialize)]
struct Sample {
    peer: String,
    round: usize,
    /// User and system time of the process, in CPU seconds per 10^9 bytes.
    client_cpu_per_gb: f64,
    server_cpu_per_gb: f64,
    /// Bytes a second from the request to the end of the stream.
    goodput: f64,
}

/// The bulk client's line.
#[derive(Debug, Deserialize)]
struct Report {
    bytes: u64,
    seconds: f64,
}

/// Runs all rounds and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let peers = chosen(&arguments.peers)?;
    eprintln!("building the peers");
    peers::build_rust()?;
    let folder = tempfile::tempdir()?;
    let identity = Identity::create(folder.path())?;
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        for peer in &peers {
            let sample = transfer(peer, round, arguments.bytes.get(), &identity, folder.path())?;
            eprintln!(
                "round {round} {peer}: client {:.3} and server {:.3} CPU s/GB, {:.0} MB/s",
                sample.client_cpu_per_gb,
                sample.server_cpu_per_gb,
                sample.goodput / 1e6
            );
            samples.push(sample);
        }
    }
    print_table(&peers, &samples);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

fn transfer(peer: &str, round: usize, bytes: u64, identity: &Identity, logs: &Path) -> Result<Sample> {
    let program = peers::rust_binary(peer);
    let mut command = Command::new(&program);
    command.args(["bulk-server", "--listen", "127.0.0.1:0"]);
    command.arg("--cert").arg(&identity.cert).arg("--key").arg(&identity.key);
    let mut server = Running::spawn(&mut command, "server", logs)?;
    let address = server.wait_for(START_TIMEOUT, ready_address)?;

    let mut command = Command::new(&program);
    command.args(["bulk-client", "--connect", &address, "--bytes", &bytes.to_string()]);
    command.arg("--ca").arg(&identity.ca);
    let before = children_cpu()?;
    let mut client = Running::spawn(&mut command, "client", logs)?;
    let status = client.wait(START_TIMEOUT + Duration::from_secs(bytes / SLOWEST))?;
    let between = children_cpu()?;
    server.end();
    let after = children_cpu()?;
    if !status.success() {
        let complaint = std::fs::read_to_string(logs.join("client.stderr"))?;
        return Err(format!("{peer}: the client ended with {status}: {complaint}").into());
    }
    let report: Report = serde_json::from_str(&client.output()?)?;
    let gigabytes = report.bytes as f64 / 1e9;
    Ok(Sample {
        peer: peer.to_owned(),
        round,
        client_cpu_per_gb: between.saturating_sub(before).as_secs_f64() / gigabytes,
        server_cpu_per_gb: after.saturating_sub(between).as_secs_f64() / gigabytes,
        goodput: report.bytes as f64 / report.seconds,
    })
}

/// What a column shows of a transfer.
type Value = fn(&Sample) -> f64;

fn print_table(peers: &[&str], samples: &[Sample]) {
    let of =
        |peer: &str, value: Value| median(samples.iter().filter(|sample| sample.peer == peer).map(value));
    let columns: [(&str, Value); 4] = [
        ("client CPU s/GB", |sample| sample.client_cpu_per_gb),
        ("server CPU s/GB", |sample| sample.server_cpu_per_gb),
        ("both CPU s/GB", |sample| sample.client_cpu_per_gb + sample.server_cpu_per_gb),
        ("goodput MB/s", |sample| sample.goodput / 1e6),
    ];
    let base = super::PEERS[0];
    println!("\nmedians, and in brackets their ratio to {base}");
    print!("{:<12}", "");
    for (title, _) in columns {
        print!("{title:>22}");
    }
    println!();
    for peer in peers {
        print!("{peer:<12}");
        for (_, value) in columns {
            let (own, reference) = (of(peer, value), of(base, value));
            let ratio = if reference > 0.0 { format!(" ({:.2})", own / reference) } else { String::new() };
            print!("{:>22}", format!("{own:.3}{ratio}"));
        }
        println!();
    }
}
