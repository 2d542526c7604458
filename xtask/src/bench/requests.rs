//! Requests and replies over one connection on loopback: CPU of both ends, and how many a second.

use clap::Args;
use serde::Serialize;

use super::pair::{Options, Sample, Scene};
use crate::Result;

/// Requests in flight where there are many connections: the same as at one connection, to compare with that.
const IN_FLIGHT: u64 = 64;

/// Requests in flight, and what part of `--requests` they make: fewer cost more each, and all take about as long.
const KINDS: [(u64, u64); 3] = [(1, 8), (10, 2), (100, 1)];

/// Of `cargo xtask bench requests`.
#[derive(Debug, Args)]
#[command(
    after_help = "A client sends 100 bytes on a stream and gets 1,000 back, with 1, 10 and 100 such streams in flight on one connection.
All peers: both ends are the same library, with one thread (a current-thread runtime) each, server on core 0 and client
on core 1; windows of 16 MiB, 256 streams permitted, UDP payloads of 1452 bytes, AES-128-GCM, everything else as the
library has it. Each server answers a stream in a task of its own, each client has as many tasks as are in flight, and
all use the same calls: open, write, finish, read to the end. (quiche has no tasks: it is called from a loop. quic-go's are
goroutines, with GOMAXPROCS=1.)
`quinn` has aws-lc as Posthaste has, `quinn-ring` has ring as its users get it.

With `--connections N` there is one table: 64 requests in flight, which use N connections of one client in turn. quiche's
peer has one connection.

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
    /// Connections that the requests use in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    connections: u64,
    #[command(flatten)]
    options: Options,
}

/// Of one run.
#[derive(Debug, Serialize)]
struct Figures {
    in_flight: u64,
    connections: u64,
    /// User and system time for each request, in microseconds.
    server_cpu_micros: f64,
    client_cpu_micros: f64,
    /// By the clock.
    requests_per_second: f64,
}

/// One kind of run.
#[derive(Debug, Clone, Copy)]
struct Kind {
    in_flight: u64,
    connections: u64,
    requests: u64,
}

impl Kind {
    fn heading(self) -> String {
        let Self { in_flight, connections, .. } = self;
        if connections == 1 {
            format!("100 B and 1 kB, {in_flight} in flight")
        } else {
            format!("100 B and 1 kB, {in_flight} in flight on {connections} connections")
        }
    }
}

/// Runs all rounds and prints a table for each number in flight.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let Arguments { requests, connections, .. } = *arguments;
    let mut options = arguments.options.clone();
    let kinds: Vec<Kind> = if connections == 1 {
        KINDS.map(|(in_flight, part)| Kind { in_flight, connections, requests: requests / part }).to_vec()
    } else {
        options.leave_out("quiche");
        vec![Kind { in_flight: IN_FLIGHT, connections, requests }]
    };
    let Some(scene) = options.scene()? else { return Ok(true) };
    let (mut samples, mut tables) = (Vec::new(), Vec::new());
    for kind in kinds {
        let own = options.runs(|peer, round| {
            let run = measure(&scene, peer, round, kind)
                .map_err(|error| format!("{peer}, {}: {error}", kind.heading()))?;
            eprintln!(
                "{} in flight, round {round} {peer}: server {:.2} and client {:.2} us, {:.0}/s, others {:.0} %",
                kind.in_flight,
                run.figures.server_cpu_micros,
                run.figures.client_cpu_micros,
                run.figures.requests_per_second,
                run.others
            );
            Ok(run)
        })?;
        tables.push(options.table(
            kind.heading(),
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

fn measure(scene: &Scene, peer: &str, round: u32, kind: Kind) -> Result<Sample<Figures>> {
    let Kind { in_flight, connections, requests } = kind;
    let numbers = [requests, in_flight, connections].map(|number| number.to_string());
    let [count, at_once, over] = numbers.each_ref().map(String::as_str);
    let words = ["--requests", count, "--in-flight", at_once, "--connections", over];
    let run = scene.between_lines(peer, ["request-server", "request-client"], &[], &words, requests)?;
    Ok(Sample {
        peer: peer.to_owned(),
        round,
        figures: Figures {
            in_flight,
            connections,
            server_cpu_micros: run.server_cpu_micros,
            client_cpu_micros: run.client_cpu_micros,
            requests_per_second: run.each_second,
        },
        others: run.others,
    })
}
