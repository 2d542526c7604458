//! Bulk transfers over loopback: CPU per byte of both sides, and goodput.

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

/// The greatest that quic-go has, in bytes.
const GO_UDP_PAYLOAD: u16 = 1452;

/// Of `cargo xtask bench bulk`.
#[derive(Debug, Args)]
#[command(
    after_help = "All peers: one thread a side, server on core 0 and client on core 1, CUBIC, windows of 16 MiB, UDP payloads of 1452 bytes
without MTU discovery, GSO and GRO, socket buffers of 4 MiB asked for, AES-128-GCM. Both sides are the same library.
`quinn` has aws-lc as Posthaste has, `quinn-ring` has ring as its users get it. A run is void and made again, at most
twice, if other processes had more than 10 % of the processor time meanwhile; the command fails if one stays void.

`--streams 100 --bytes 10MB` has a hundred streams with as many bytes each at once on one connection, `--connections 100`
as many connections with one each; quiche's peer has one of both, and no tasks. `--block-on` runs both ends in the future of
`block_on` itself; else they are in tasks, which the runtime polls more often.

`quic-go` has goroutines for tasks, GOMAXPROCS=1 on the core of its side (the garbage collector runs there, too), Reno, which
its API does not let programs change, and GSO without GRO. It has nothing like `block_on` and no payload above 1452 bytes, and
takes no part in either.

  cargo xtask bench bulk --prepare                          only build (minutes the first time)
  cargo xtask bench bulk --as-built                         the table, on an idle machine
  cargo xtask bench bulk --peer quinn --peer posthaste --bytes 256MiB --rounds 1    a first look"
)]
pub(crate) struct Arguments {
    /// Bytes of each stream, such as 1GiB
    #[arg(long, default_value = "1GiB")]
    bytes: ByteCount,
    /// Streams on each connection, all at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    streams: u64,
    /// Connections, all at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    connections: u64,
    /// Bytes of the largest UDP payload: 8972 is what a path with jumbo frames carries
    #[arg(long, default_value_t = 1452, value_parser = clap::value_parser!(u16).range(1200..))]
    udp_payload: u16,
    /// Both ends in the future of `block_on` itself, not in tasks
    #[arg(long, conflicts_with_all = ["streams", "connections"])]
    block_on: bool,
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
    let mut options = arguments.options.clone();
    if arguments.needs_tasks() {
        options.leave_out("quiche");
    }
    if arguments.block_on || arguments.udp_payload > GO_UDP_PAYLOAD {
        options.leave_out("quic-go");
    }
    let Some(scene) = options.scene()? else { return Ok(true) };
    let samples = options.runs(|peer, round| {
        let sample = transfer(&scene, peer, round, arguments)?;
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
        arguments.heading(),
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

impl Arguments {
    /// What not all peers have.
    fn needs_tasks(&self) -> bool {
        self.block_on || self.streams > 1 || self.connections > 1
    }

    fn heading(&self) -> String {
        let of_each = match (self.streams, self.connections) {
            (1, 1) => format!("{} on one stream", self.bytes),
            (streams, 1) => format!("{} on each of {streams} streams", self.bytes),
            (1, connections) => format!("{} on each of {connections} connections", self.bytes),
            (streams, connections) => {
                format!("{} on each of {streams} streams of {connections} connections", self.bytes)
            }
        };
        let payload = if self.udp_payload == 1452 {
            String::new()
        } else {
            format!(", UDP payload {}", self.udp_payload)
        };
        of_each + &payload + if self.block_on { ", in block_on" } else { "" }
    }

    /// Of both ends' programs.
    fn form(&self) -> Vec<String> {
        let mut words = vec!["--udp-payload".to_owned(), self.udp_payload.to_string()];
        words.extend(self.block_on.then(|| "--block-on".to_owned()));
        words
    }
}

fn transfer(scene: &Scene, peer: &str, round: u32, arguments: &Arguments) -> Result<Sample<Figures>> {
    let form = arguments.form();
    let (watch, first) = (Watch::start()?, children_cpu()?);
    let (mut server, address) = scene.server_with(peer, "bulk-server", &form)?;
    let before = children_cpu()?;
    let mut words = form;
    for (name, value) in [
        ("--bytes", arguments.bytes.get()),
        ("--streams", arguments.streams),
        ("--connections", arguments.connections),
    ] {
        words.extend([name.to_owned(), value.to_string()]);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut client = scene.client(peer, "bulk-client", &address, &words)?;
    let bytes = arguments.bytes.get().saturating_mul(arguments.streams * arguments.connections);
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
