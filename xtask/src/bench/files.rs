//! Static files over HTTP/3: what a request costs a server in CPU time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::ready_address;
use super::table::spread;
use crate::Result;
use crate::identity::Identity;
use crate::median;
use crate::process::{Running, children_cpu};
use crate::workspace::{cargo, run as run_command, target};

/// Bound for a server's start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Bound for all requests of one run.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);
/// Requests in progress on each connection.
const STREAMS: u32 = 10;
/// Lengths of files, and connections.
const KINDS: [Kind; 4] = [
    Kind { bytes: 1_000, connections: 10 },
    Kind { bytes: 1_000, connections: 100 },
    Kind { bytes: 100_000, connections: 10 },
    Kind { bytes: 100_000, connections: 100 },
];

/// Of `cargo xtask bench files`.
#[derive(Debug, Args)]
#[command(
    after_help = "One client of our own keeps 10 requests for one file in progress on each of its connections. Servers take turns:

  files    posthaste serve DIRECTORY, with its access log
  quiet    the same with --no-access-log
  memory   a service of posthaste-http that answers from memory, without a log
  edge     posthaste edge --files DIRECTORY, without a log (with --edge)
  edge-2   the same with two workers, both on the one core: what the division costs
  other    the program of --other, called as posthaste serve is: to compare with an earlier build

User and system time of the server from its start to its end, divided by the requests; the handshakes are in it. Medians
over the rounds. Where nothing else runs, client and server have a core each. `log` is what the access log costs: the
difference of `files` and `quiet` in the same round."
)]
pub(crate) struct Arguments {
    /// Another build of the command line
    #[arg(long, value_name = "PROGRAM")]
    other: Option<PathBuf>,
    /// Measure `posthaste edge` as well
    #[arg(long)]
    edge: bool,
    /// Rounds over all servers and kinds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Requests of each run, of files of 1 kB; a tenth of them for 100 kB
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Also write every run here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Kind {
    bytes: usize,
    connections: u32,
}

/// One run.
#[derive(Debug, Serialize)]
struct Sample {
    server: String,
    kind: Kind,
    round: u32,
    /// User and system time of the server for each request, in microseconds.
    server_cpu_micros: f64,
    /// The same of the client.
    client_cpu_micros: f64,
}

/// What all runs need.
struct Scene {
    folder: tempfile::TempDir,
    identity: Identity,
    own: PathBuf,
    load: PathBuf,
}

/// Measures all and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let scene = Scene::new()?;
    let mut servers = vec![("memory", None), ("files", Some(&scene.own)), ("quiet", Some(&scene.own))];
    if arguments.edge {
        servers.extend([("edge", Some(&scene.own)), ("edge-2", Some(&scene.own))]);
    }
    servers.extend(arguments.other.as_ref().map(|program| ("other", Some(program))));
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        for kind in KINDS {
            for (name, program) in &servers {
                let requests = if kind.bytes > 10_000 { arguments.requests / 10 } else { arguments.requests };
                let (server, client) = scene.measure(name, program.map(PathBuf::as_path), kind, requests)?;
                eprintln!("round {round} {name} {kind:?}: server {server:.1}, client {client:.1} us");
                let server_name = (*name).to_owned();
                samples.push(Sample {
                    server: server_name,
                    kind,
                    round,
                    server_cpu_micros: server,
                    client_cpu_micros: client,
                });
            }
        }
    }
    print_table(&servers.iter().map(|(name, _)| *name).collect::<Vec<_>>(), &samples);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

impl Scene {
    fn new() -> Result<Self> {
        build()?;
        let folder = tempfile::tempdir()?;
        let identity = Identity::create(folder.path())?;
        std::fs::create_dir(folder.path().join("www"))?;
        for kind in KINDS {
            std::fs::write(folder.path().join("www").join(kind.bytes.to_string()), vec![b'x'; kind.bytes])?;
        }
        let (own, load) = (target().join("release/posthaste"), target().join("release/examples/load"));
        Ok(Self { folder, identity, own, load })
    }

    /// CPU microseconds of server and client for each request.
    fn measure(&self, name: &str, program: Option<&Path>, kind: Kind, requests: u64) -> Result<(f64, f64)> {
        let folder = self.folder.path();
        let mut command = match program {
            None => {
                let mut command = on_core(0, &self.load);
                command.args(["server", "--bytes", &kind.bytes.to_string()]);
                command
            }
            Some(program) if name.starts_with("edge") => {
                let mut command = edge_command(program);
                command.args(["--workers", if name == "edge-2" { "2" } else { "1" }]);
                command.arg("--files").arg(folder.join("www"));
                command
            }
            Some(program) => {
                let mut command = on_core(0, program);
                command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--grace", "0.1"]);
                command.args(if name == "quiet" { &["--no-access-log"][..] } else { &[] });
                command.arg(folder.join("www"));
                command
            }
        };
        command.arg("--cert").arg(&self.identity.cert).arg("--key").arg(&self.identity.key);
        let before = children_cpu()?;
        let mut server = Running::spawn(&mut command, "server", folder)?;
        let address =
            server.wait_for(START_TIMEOUT, |line| ready_address(line).or_else(|| listening(line)))?;

        let mut command = on_core(1, &self.load);
        command.arg("client").arg("--ca").arg(&self.identity.ca);
        command.args(["--url", &format!("https://{address}/{}", kind.bytes)]);
        command.args(["--connections", &kind.connections.to_string(), "--streams", &STREAMS.to_string()]);
        command.args(["--requests", &requests.to_string(), "--bytes", &kind.bytes.to_string()]);
        let mut client = Running::spawn(&mut command, "client", folder)?;
        let status = client.wait(RUN_TIMEOUT)?;
        let between = children_cpu()?;
        server.end();
        let after = children_cpu()?;
        if !status.success() {
            let complaint = std::fs::read_to_string(folder.join("client.stderr"))?;
            return Err(format!("{name}: the client ended with {status}: {complaint}").into());
        }
        let each = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
        Ok((each(after.saturating_sub(between)), each(between.saturating_sub(before))))
    }
}

/// Builds the command with `edge`, and the client.
pub(super) fn build() -> Result<()> {
    eprintln!("building");
    let edge = ["--package", "posthaste", "--no-default-features", "--features", "edge"];
    let client = ["--package", "posthaste-http", "--example", "load"];
    for what in [&edge[..], &client] {
        run_command(cargo().args(["build", "--quiet", "--release"]).args(what))?;
    }
    Ok(())
}

/// The program on one core, where there are two and `taskset`.
pub(super) fn on_core(core: usize, program: &Path) -> Command {
    let has_two = std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
    let can_pin = has_two && Command::new("taskset").arg("--version").output().is_ok();
    if !can_pin {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &core.to_string()]).arg(program);
    command
}

/// The edge on core 0, with what all comparisons have in common: it spends no time on what the client does not ask for.
pub(super) fn edge_command(program: &Path) -> Command {
    let mut command = on_core(0, program);
    command.args(["edge", "--json", "--listen", "127.0.0.1:0", "--grace", "0.1"]);
    command.args(["--no-access-log", "--compress", "off"]);
    command
}

/// The address in the first line of `posthaste serve --json`.
pub(super) fn listening(line: &str) -> Option<String> {
    let start: serde_json::Value = serde_json::from_str(line).ok()?;
    start["address"].as_str().map(str::to_owned)
}

fn print_table(servers: &[&str], samples: &[Sample]) {
    println!(
        "\nmedians of the server's CPU microseconds per request, and in brackets the least and greatest"
    );
    print!("{:<12}", "");
    for kind in KINDS {
        print!("{:>26}", format!("{} B, {} x {STREAMS}", kind.bytes, kind.connections));
    }
    println!();
    for server in servers {
        print!("{server:<12}");
        for kind in KINDS {
            let of = || {
                let own = samples.iter().filter(|sample| sample.server == *server && sample.kind == kind);
                own.map(|sample| sample.server_cpu_micros)
            };
            let (least, greatest) = (of().fold(f64::MAX, f64::min), of().fold(0.0, f64::max));
            print!("{:>26}", format!("{:.1} [{least:.1}-{greatest:.1}]", median(of())));
        }
        println!();
    }
    print!("{:<12}", "log");
    for kind in KINDS {
        print!("{:>26}", spread(&log_costs(samples, kind), 2));
    }
    println!();
}

/// What a request more costs with an access log, round by round.
fn log_costs(samples: &[Sample], kind: Kind) -> Vec<f64> {
    let of = |server: &'static str| {
        samples.iter().filter(move |sample| sample.server == server && sample.kind == kind)
    };
    let quiet = |round: u32| of("quiet").find(|sample| sample.round == round);
    of("files")
        .filter_map(|sample| Some(sample.server_cpu_micros - quiet(sample.round)?.server_cpu_micros))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_costs_what_the_server_without_one_does_not_round_by_round() {
        let sample = |server: &str, round: u32, server_cpu_micros: f64, kind: Kind| Sample {
            server: server.to_owned(),
            kind,
            round,
            server_cpu_micros,
            client_cpu_micros: 0.0,
        };
        let [one, other, ..] = KINDS;
        let samples = [
            sample("files", 0, 9.0, one),
            sample("files", 1, 7.5, one),
            sample("quiet", 1, 7.0, one),
            sample("quiet", 0, 8.0, one),
            sample("quiet", 1, 70.0, other),
            sample("files", 2, 50.0, one),
            sample("memory", 0, 1.0, one),
        ];
        assert_eq!(log_costs(&samples, one), [1.0, 0.5], "a round without both is left out");
    }
}
