//! What a second worker of the edge is worth, on a machine whose cores are too few for the workers and the client.

use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::files::{build, edge_command, listening};
use super::quiet::{Means, turned};
use super::table::{Table, ratio, spread};
use crate::Result;
use crate::identity::Identity;
use crate::process::{Running, children_cpu};
use crate::workspace::target;

/// Length of the file that is asked for.
const BYTES: usize = 1024;
/// Bounds for a server's start and for all requests of one run.
const START_TIMEOUT: Duration = Duration::from_secs(20);
const RUN_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a worker may use its share. Short, so that a request waits little for the next.
const PERIOD: Duration = Duration::from_millis(2);
/// The kernel's name of a thread that serves.
const THREAD: &str = "worker";

/// Of `cargo xtask bench workers`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each worker of `posthaste edge --files` is held to a share of a core by the kernel (SCHED_DEADLINE, by chrt, which
needs root), so that two workers and their client fit into two cores: the workers run at the same time, and the client is
not what limits. What is shown is the requests per second with two workers over those with one: what the division of the
work costs in locks, steering and imbalance. What two cores of full speed would lose by sharing the memory's bandwidth is
not in it.

  h3   our own client over HTTP/3, 100 connections with 10 requests each for a file of 1 KiB
  h2   h2load (of Debian's nghttp2-client) over HTTP/2 and TLS, the same

One and two workers take turns within a round; medians over the rounds with the least and greatest. The workers' shares go
before all other programs; the client has what is left, and the last column says whether it needed all of a core."
)]
pub(crate) struct Arguments {
    /// HTTP versions
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "h3,h2")]
    protocols: Vec<Protocol>,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Requests of each run
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Percent of a core that each worker has; with little, what interruptions cost hides the rest
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(5..=45))]
    share: u32,
    #[command(flatten)]
    means: Means,
}

/// What the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Protocol {
    H3,
    H2,
}

/// One run.
#[derive(Debug, Serialize)]
struct Sample {
    protocol: Protocol,
    workers: usize,
    round: u32,
    requests_per_second: f64,
    /// The server's processor time for each request, in microseconds.
    server_micros: f64,
    /// Share of a core that the client needed, in percent.
    client: f64,
}

/// Measures all and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if !arguments.means.as_built {
        build()?;
    }
    if arguments.means.prepare {
        return Ok(true);
    }
    let folder = tempfile::tempdir()?;
    let scene = Scene { identity: Identity::create(folder.path())?, folder };
    fs::create_dir(scene.folder.path().join("www"))?;
    fs::write(scene.folder.path().join("www/file"), vec![b'x'; BYTES])?;
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        for &protocol in &arguments.protocols {
            for &workers in turned(&[1, 2], round as usize) {
                let sample = scene.measure(protocol, workers, round, arguments)?;
                eprintln!(
                    "round {round} {protocol:?}, {workers} workers: {:.0} requests/s, {:.1} us each, client {:.0} %",
                    sample.requests_per_second, sample.server_micros, sample.client
                );
                samples.push(sample);
            }
        }
    }
    for &protocol in &arguments.protocols {
        print!("{}", table(protocol, arguments.share, &samples).plain());
    }
    if let Some(path) = &arguments.means.json {
        fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    Ok(true)
}

/// What all runs need.
struct Scene {
    folder: tempfile::TempDir,
    identity: Identity,
}

impl Scene {
    fn measure(
        &self,
        protocol: Protocol,
        workers: usize,
        round: u32,
        arguments: &Arguments,
    ) -> Result<Sample> {
        let folder = self.folder.path();
        let mut command = edge_command(&target().join("release/posthaste"));
        command.args(["--workers", &workers.to_string()]).arg("--files").arg(folder.join("www"));
        command.arg("--cert").arg(&self.identity.cert).arg("--key").arg(&self.identity.key);
        let mut server = Running::spawn(&mut command, "server", folder)?;
        let address = server.wait_for(START_TIMEOUT, listening)?;
        hold(server.id(), workers, arguments.share)?;
        let url = format!("https://{address}/file");
        // What is made at the first request is not measured.
        self.load(protocol, &url, 1_000)?;
        let (before, own_before, began) = (server.cpu_time()?, children_cpu()?, Instant::now());
        let seconds = self.load(protocol, &url, arguments.requests)?;
        let (server_time, client_time) =
            (server.cpu_time()?.saturating_sub(before), children_cpu()?.saturating_sub(own_before));
        Ok(Sample {
            protocol,
            workers,
            round,
            requests_per_second: arguments.requests as f64 / seconds,
            server_micros: server_time.as_secs_f64() * 1e6 / arguments.requests as f64,
            client: client_time.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0,
        })
    }

    /// Seconds that so many requests took, after the handshakes.
    fn load(&self, protocol: Protocol, url: &str, requests: u64) -> Result<f64> {
        let requests = requests.to_string();
        let mut command = match protocol {
            Protocol::H3 => {
                let mut command = Command::new(target().join("release/examples/load"));
                command.arg("client").arg("--ca").arg(&self.identity.ca).args(["--url", url]);
                command.args(["--bytes", &BYTES.to_string(), "--connections", "100", "--streams", "10"]);
                command.args(["--requests", &requests]);
                command
            }
            Protocol::H2 => {
                let mut command = Command::new("h2load");
                command.args(["-c", "100", "-m", "10", "-n", &requests, url]);
                command
            }
        };
        let mut client = Running::spawn(&mut command, "client", self.folder.path())
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let status = client.wait(RUN_TIMEOUT)?;
        let said = client.output()?;
        let seconds = match protocol {
            Protocol::H3 => said.split_whitespace().nth(1).and_then(|word| word.parse().ok()),
            Protocol::H2 => finished(&said, &requests),
        };
        match seconds {
            Some(seconds) if status.success() => Ok(seconds),
            _ => Err(format!("the client ended with {status} and said {said:?}").into()),
        }
    }
}

/// Seconds from what h2load prints, if all requests succeeded.
fn finished(said: &str, requests: &str) -> Option<f64> {
    if !said.contains(&format!("{requests} succeeded")) {
        return None;
    }
    let (_, rest) = said.split_once("finished in ")?;
    let word = rest.split(',').next()?;
    match word.strip_suffix("ms") {
        Some(millis) => millis.parse::<f64>().ok().map(|millis| millis / 1e3),
        None => word.strip_suffix('s')?.parse().ok(),
    }
}

/// Holds each worker to a share of a core, in percent.
fn hold(process: u32, workers: usize, share: u32) -> Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    let serving = loop {
        let serving = threads(process, THREAD)?;
        if serving.len() == workers {
            break serving;
        }
        if Instant::now() > deadline {
            return Err(format!("{} threads are named {THREAD:?}, not {workers}", serving.len()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let period = PERIOD.as_nanos().to_string();
    let runtime = (PERIOD * share / 100).as_nanos().to_string();
    for thread in serving {
        // The thread leaves the one core that other comparisons bind the edge to: the kernel wants this of the policy.
        let all = format!("0-{}", std::thread::available_parallelism()?.get() - 1);
        let bound = Command::new("taskset")
            .args(["--cpu-list", "--pid", &all])
            .arg(&thread)
            .output()?
            .status
            .success();
        let mut command = Command::new("chrt");
        command.args(["--reset-on-fork", "--deadline", "--sched-runtime", &runtime]);
        command.args(["--sched-deadline", &period, "--sched-period", &period, "--pid", "0"]).arg(&thread);
        let output = command.output()?;
        if !bound || !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(
                format!("a worker cannot be held to a share of a core; run as root: {complaint}").into()
            );
        }
    }
    Ok(())
}

/// IDs of the threads of this name.
fn threads(process: u32, name: &str) -> Result<Vec<OsString>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let entry = entry?;
        // A thread may have ended meanwhile.
        if fs::read_to_string(entry.path().join("comm")).is_ok_and(|comm| comm.trim() == name) {
            found.push(entry.file_name());
        }
    }
    Ok(found)
}

fn table(protocol: Protocol, share: u32, samples: &[Sample]) -> Table {
    let of = |workers: usize, figure: fn(&Sample) -> f64| -> Vec<f64> {
        let own = samples.iter().filter(|sample| sample.protocol == protocol && sample.workers == workers);
        own.map(figure).collect()
    };
    let rows = [1, 2].map(|workers| {
        let rate = of(workers, |sample| sample.requests_per_second);
        vec![
            workers.to_string(),
            spread(&rate, 0),
            ratio(&rate, &of(1, |sample| sample.requests_per_second)),
            spread(&of(workers, |sample| sample.server_micros), 1),
            spread(&of(workers, |sample| sample.client), 0),
        ]
    });
    Table {
        heading: format!("{protocol:?}, each worker {share} % of a core"),
        titles: ["workers", "requests/s", "x one", "server us each", "client %"].map(str::to_owned).to_vec(),
        rows: rows.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::finished;

    #[test]
    fn the_time_of_h2load_is_read_if_all_requests_succeeded() {
        let said = "finished in 1.25s, 800.00 req/s, 1.00MB/s\nrequests: 1000 total, 1000 started, 1000 done, 1000 succeeded, 0 failed";
        assert_eq!(finished(said, "1000"), Some(1.25));
        assert_eq!(finished(&said.replace("1.25s", "250.00ms"), "1000"), Some(0.25));
        assert_eq!(finished(&said.replace("1000 succeeded", "999 succeeded"), "1000"), None);
    }
}
