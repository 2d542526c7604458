//! One stream over loopback: CPU per byte of both sides, and goodput.

use std::time::Duration;

use clap::Args;
use posthaste_units::ByteCount;
use serde::{Deserialize, Serialize};

use super::pair::{Options, START_TIMEOUT, Sample, Scene};
use super::quiet::Watch;
use crate::Result;
use crate::process::children_cpu;

/// The slowest goodput worth waiting for, in bytes a second.
const SLOWEST: u64 = 5_000_000;

/// Of `cargo xtask bench bulk`.
#[derive(Debug, Args)]
#[command(
    after_help = "All peers: one thread a side, server on core 0 and client on core 1, CUBIC, windows of 16 MiB, UDP payloads of 1452 bytes
without MTU discovery, GSO and GRO, socket buffers of 4 MiB asked for, AES-128-GCM. Both sides are the same library.
`quinn` has aws-lc as Posthaste has, `quinn-ring` has ring as its users get it. A run is void and made again, at most
twice, if other processes had more than 10 % of the processor time meanwhile; the command fails if one stays void.

  cargo xtask bench bulk --prepare                          only build (minutes the first time)
  cargo xtask bench bulk --as-built                         the table, on an idle machine
  cargo xtask bench bulk --peer quinn --peer posthaste --bytes 256MiB --rounds 1    a first look"
)]
pub(crate) struct Arguments {
    /// Bytes of each transfer, such as 1GiB
    #[arg(long, default_value = "1GiB")]
    bytes: ByteCount,
    #[command(flatten)]
    options: Options,
}

/// Of one run.
#[derive(Debug, Serialize)]
struct Figures {
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
    let options = &arguments.options;
    let Some(scene) = options.scene()? else { return Ok(true) };
    let samples = options.runs(|peer, round| {
        let sample = transfer(&scene, peer, round, arguments.bytes.get())?;
        eprintln!(
            "round {round} {peer}: client {:.3} and server {:.3} CPU s/GB, {:.0} MB/s, others {:.0} %",
            sample.figures.client_cpu_per_gb,
            sample.figures.server_cpu_per_gb,
            sample.figures.goodput / 1e6,
            sample.others
        );
        Ok(sample)
    })?;
    let all: Vec<_> = samples.iter().collect();
    let table = options.table(
        format!("{} on one stream", arguments.bytes),
        &all,
        &[
            ("client CPU s/GB", |run: &Figures| run.client_cpu_per_gb, 3),
            ("server CPU s/GB", |run| run.server_cpu_per_gb, 3),
            ("both CPU s/GB", |run| run.client_cpu_per_gb + run.server_cpu_per_gb, 3),
            ("goodput MB/s", |run| run.goodput / 1e6, 0),
        ],
        &["both CPU s/GB", "goodput MB/s"],
    )?;
    options.report(&samples, &[table])
}

fn transfer(scene: &Scene, peer: &str, round: u32, bytes: u64) -> Result<Sample<Figures>> {
    let (watch, first) = (Watch::start()?, children_cpu()?);
    let (mut server, address) = scene.server(peer, "bulk-server")?;
    let before = children_cpu()?;
    let mut client = scene.client(peer, "bulk-client", &address, &["--bytes", &bytes.to_string()])?;
    let report: Report = scene
        .finished(&mut client, START_TIMEOUT + Duration::from_secs(bytes / SLOWEST))
        .map_err(|error| format!("{peer}: {error}"))?;
    let between = children_cpu()?;
    server.end();
    let after = children_cpu()?;
    let gigabytes = report.bytes as f64 / 1e9;
    Ok(Sample {
        peer: peer.to_owned(),
        round,
        figures: Figures {
            client_cpu_per_gb: between.saturating_sub(before).as_secs_f64() / gigabytes,
            server_cpu_per_gb: after.saturating_sub(between).as_secs_f64() / gigabytes,
            goodput: report.bytes as f64 / report.seconds,
        },
        others: watch.others(after.saturating_sub(first))?,
    })
}
