//! Handshakes over sockets: what a connection with two requests costs both ends, by what it goes on from.

use clap::Args;
use serde::Serialize;

use super::pair::{Options, Sample, Scene};
use crate::Result;

/// Kinds of handshakes: the name, the client's options, and those of the server.
const KINDS: [(&str, &[&str]); 3] =
    [("full", &[]), ("resumed", &["--again", "resumed"]), ("0-RTT", &["--again", "early"])];

/// Of `cargo xtask bench sessions`.
#[derive(Debug, Args)]
#[command(
    after_help = "A client connects, sends 100 bytes on each of two streams, gets 1,000 back on each, and closes: full handshakes, resumed
ones, and resumed ones whose requests leave with the first packets (0-RTT). All peers: both ends are the same library, one
thread each, server on core 0 and client on core 1, 4 connections at a time, AES-128-GCM; key exchange and everything else as
the library has it. 50 connections come before what is measured. `bench handshakes` has the stacks alone, without sockets.
A run fails if more than a tenth of the handshakes were of another kind, as far as the library tells. quic-go is the only
one on Go's TLS; it has GOMAXPROCS=1. quiche's and s2n-quic's peers do not have this.

  server us, client us   CPU microseconds of each end for a connection, user and system time
  a second               connections by the clock

  cargo xtask bench sessions --prepare                      only build (minutes the first time)
  cargo xtask bench sessions --as-built                     the tables, on an idle machine"
)]
pub(crate) struct Arguments {
    /// Connections of each run
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(100..))]
    count: u64,
    /// Connections that are made at once
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=8))]
    in_flight: u64,
    #[command(flatten)]
    options: Options,
}

/// Of one run.
#[derive(Debug, Serialize)]
struct Figures {
    kind: &'static str,
    server_cpu_micros: f64,
    client_cpu_micros: f64,
    connections_per_second: f64,
}

/// Runs all rounds and prints a table for each kind.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let mut options = arguments.options.clone();
    options.leave_out("quiche");
    options.leave_out("s2n");
    let Some(scene) = options.scene()? else { return Ok(true) };
    let (mut samples, mut tables) = (Vec::new(), Vec::new());
    for (kind, words) in KINDS {
        let own = options.runs(|peer, round| {
            let run = measure(&scene, arguments, (peer, round), (kind, words))
                .map_err(|error| format!("{peer}, {kind}: {error}"))?;
            let Figures { server_cpu_micros: server, client_cpu_micros: client, .. } = run.figures;
            eprintln!(
                "{kind}, round {round} {peer}: server {server:.1} and client {client:.1} us, others {:.0} %",
                run.others
            );
            Ok(run)
        })?;
        tables.push(options.table(
            format!("{kind}, with two requests"),
            &own.iter().collect::<Vec<_>>(),
            &[
                ("server us", |run: &Figures| run.server_cpu_micros, 1),
                ("client us", |run| run.client_cpu_micros, 1),
                ("a second", |run| run.connections_per_second, 0),
            ],
            &["server us"],
        )?);
        samples.extend(own);
    }
    options.report(&samples, &tables)
}

fn measure(
    scene: &Scene,
    arguments: &Arguments,
    (peer, round): (&str, u32),
    (kind, words): (&'static str, &[&str]),
) -> Result<Sample<Figures>> {
    let (count, at_once) = (arguments.count.to_string(), arguments.in_flight.to_string());
    let mut client = vec!["--count", &count, "--in-flight", &at_once];
    client.extend(words);
    let modes = ["request-server", "handshake-client"];
    let run = scene.between_lines(peer, modes, &["--early".to_owned()], &client, arguments.count)?;
    Ok(Sample {
        peer: peer.to_owned(),
        round,
        figures: Figures {
            kind,
            server_cpu_micros: run.server_cpu_micros,
            client_cpu_micros: run.client_cpu_micros,
            connections_per_second: run.each_second,
        },
        others: run.others,
    })
}
