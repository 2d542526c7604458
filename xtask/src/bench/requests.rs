//! Requests and replies over one connection on loopback: CPU of both ends, and how many a second.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::pair::{Options, START_TIMEOUT, Sample, Scene};
use super::quiet::Watch;
use crate::Result;
use crate::process::children_cpu;

/// Requests in flight, and what part of `--requests` they make: fewer cost more each, and all take about as long.
const KINDS: [(u64, u64); 3] = [(1, 8), (10, 2), (100, 1)];
/// Bound for a warm-up, and for all requests of one run.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// Of `cargo xtask bench requests`.
#[derive(Debug, Args)]
#[command(
    after_help = "A client sends 100 bytes on a stream and gets 1,000 back, with 1, 10 and 100 such streams in flight on one connection.
All peers: both ends are the same library, with one thread (a current-thread runtime) each, server on core 0 and client
on core 1; windows of 16 MiB, 256 streams permitted, UDP payloads of 1452 bytes, AES-128-GCM, everything else as the
library has it. Each server answers a stream in a task of its own, each client has as many tasks as are in flight, and
all use the same calls: open, write, finish, read to the end. (quiche has no tasks: it is called from a loop.)
`quinn` has aws-lc as Posthaste has, `quinn-ring` has ring as its users get it.

  server us, client us   CPU microseconds of each end for a request, user and system time
  both us                their sum in each run; the goals are about its ratio
  requests/s             by the clock, from the first request to the last reply
  x quinn, x quinn-ring  ratios to these: less is better for CPU, more for requests/s

2,000 requests come before what is measured, so that handshake and start are not in it. A run is void and made again, at
most twice, if other processes had more than 10 % of the processor time meanwhile; the command fails if one stays void.

  cargo xtask bench requests --prepare                      only build (minutes the first time)
  cargo xtask bench requests --as-built                     the tables, on an idle machine
  cargo xtask bench requests --peer quinn --peer posthaste --rounds 1 --requests 20000    a first look"
)]
pub(crate) struct Arguments {
    /// Requests of each run with 100 in flight; half of them with 10, an eighth with 1
    #[arg(long, default_value_t = 160_000, value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    #[command(flatten)]
    options: Options,
}

/// Of one run.
#[derive(Debug, Serialize)]
struct Figures {
    in_flight: u64,
    /// User and system time for each request, in microseconds.
    server_cpu_micros: f64,
    client_cpu_micros: f64,
    /// By the clock.
    requests_per_second: f64,
}

/// The client's line.
#[derive(Debug, Deserialize)]
struct Report {
    requests: u64,
    seconds: f64,
}

/// Runs all rounds and prints a table for each number in flight.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let options = &arguments.options;
    let Some(scene) = options.scene()? else { return Ok(true) };
    let (mut samples, mut tables) = (Vec::new(), Vec::new());
    for (in_flight, part) in KINDS {
        let own = options.runs(|peer, round| {
            let run = requests(&scene, peer, round, in_flight, arguments.requests / part)
                .map_err(|error| format!("{peer}, {in_flight} in flight: {error}"))?;
            eprintln!(
                "{in_flight} in flight, round {round} {peer}: server {:.2} and client {:.2} us, {:.0}/s, others {:.0} %",
                run.figures.server_cpu_micros,
                run.figures.client_cpu_micros,
                run.figures.requests_per_second,
                run.others
            );
            Ok(run)
        })?;
        tables.push(options.table(
            format!("100 B and 1 kB, {in_flight} in flight"),
            &own.iter().collect::<Vec<_>>(),
            &[
                ("server us", |run: &Figures| run.server_cpu_micros, 2),
                ("client us", |run| run.client_cpu_micros, 2),
                ("both us", |run| run.server_cpu_micros + run.client_cpu_micros, 2),
                ("requests/s", |run| run.requests_per_second, 0),
            ],
            &["both us", "requests/s"],
        )?);
        samples.extend(own);
    }
    options.report(&samples, &tables)
}

fn requests(scene: &Scene, peer: &str, round: u32, in_flight: u64, count: u64) -> Result<Sample<Figures>> {
    let (server, address) = scene.server(peer, "request-server")?;
    let ended_before = children_cpu()?;
    let numbers = ["--requests", &count.to_string(), "--in-flight", &in_flight.to_string()];
    let mut client = scene.client(peer, "request-client", &address, &numbers)?;
    client
        .wait_for(START_TIMEOUT + RUN_TIMEOUT, |line| (line == "READY").then_some(()))
        .map_err(|error| format!("{error}: {}", scene.complaint().unwrap_or_default()))?;
    // Of both ends, the warm-up is over. What the client has had until now is in its sum at its end.
    let (server_before, client_before) = (server.cpu_time()?, client.cpu_time()?);
    let watch = Watch::start()?;
    client.write_line("go")?;
    let report: Report = scene.finished(&mut client, RUN_TIMEOUT)?;
    let server_time = server.cpu_time()?.saturating_sub(server_before);
    let client_time = children_cpu()?.saturating_sub(ended_before + client_before);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / report.requests as f64;
    Ok(Sample {
        peer: peer.to_owned(),
        round,
        figures: Figures {
            in_flight,
            server_cpu_micros: each(server_time),
            client_cpu_micros: each(client_time),
            requests_per_second: report.requests as f64 / report.seconds,
        },
        others: watch.others(server_time + client_time)?,
    })
}
