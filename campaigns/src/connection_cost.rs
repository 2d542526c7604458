//! `cargo campaigns connection-cost`: what a download costs, by the number of its connections.
//!
//! Paper 003 leaves energy and processing to later work (section V.B.2). Time and the CPU time of both ends are measured,
//! over real sockets and an emulated path; energy is a model's ([`radio`]).

mod radio;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use posthaste_campaign::quota::Quota;
use posthaste_report::markdown::head;
use posthaste_units::{ByteCount, Rng};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::emulated;
use crate::median;
use crate::workspace::{build_posthaste, program};

/// What is fetched.
const FILE: &str = "file";

/// Where the far end's shell leaves the server's process ID.
const SERVER_ID: &str = "server.pid";

/// Void runs are made again, for so many runs in all.
const MAX_ATTEMPTS: u64 = 3;

/// Of `cargo campaigns connection-cost`.
#[derive(Debug, Args)]
#[command(
    after_help = "One file, fetched by `posthaste get --connections N` over an emulated path, as a group of connections. CPU time is user and system
time of the client's process, and the time that the server's threads were on a processor. Energy is a model of an LTE
radio of 2012: 1.29 W while the download runs and 0.052 J for each Mbit (first figure), and 12.6 J for promotion and
tail, which the number of connections does not change (second).
Exit code: 0 if every run brought the file."
)]
pub(crate) struct Arguments {
    /// The path: a name or a TOML file, as for `posthaste emulate`
    #[arg(long, value_name = "NAME|FILE", default_value = "lte")]
    path: String,
    /// The server's profile
    #[arg(long, value_name = "NAME", default_value = "mquic-cubic-paper")]
    profile: String,
    /// Numbers of connections
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,6", value_parser = clap::value_parser!(u8).range(1..=8))]
    connections: Vec<u8>,
    /// What is downloaded
    #[arg(long, value_name = "BYTES", default_value = "10MB")]
    object: ByteCount,
    /// Runs that count, for each number
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// The `posthaste` to use, instead of a build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Of `cargo campaigns connection-cost-end`, which `connection-cost` starts inside the path.
#[derive(Debug, Args)]
pub(crate) struct End {
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    #[arg(long)]
    connections: u8,
}

/// What one download took, in seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Cost {
    time: f64,
    client: f64,
    server: f64,
    bytes: u64,
}

/// Makes the runs and prints a table of medians.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    if let Some(reason) = emulated::obstacle(&program)? {
        println!("skipped: {reason}");
        return Ok(false);
    }
    println!(
        "{} of {} over {}, medians of {} runs",
        arguments.object, arguments.profile, arguments.path, arguments.runs
    );
    let columns =
        ["connections", "time, s", "client's CPU, s", "server's CPU, s", "radio (model), J", "with tail, J"];
    print!("{}", head(&columns));
    let mut is_whole = true;
    for &connections in &arguments.connections {
        let mut costs = Vec::new();
        let mut quota = Quota::new(arguments.runs, MAX_ATTEMPTS);
        while let Some(seeds) = quota.next(costs.len() as u64, 1) {
            costs.extend(measure(arguments, &program, connections, *seeds.start())?);
        }
        is_whole &= costs.len() as u64 == arguments.runs;
        println!("{}", row(arguments.object, connections, &costs));
    }
    Ok(is_whole)
}

fn row(object: ByteCount, connections: u8, costs: &[Cost]) -> String {
    if costs.is_empty() {
        return format!("| {connections} | all runs were void: the machine is too busy | | | | |");
    }
    let of = |part: fn(&Cost) -> f64| median(costs.iter().map(part));
    let (time, client, server) = (of(|cost| cost.time), of(|cost| cost.client), of(|cost| cost.server));
    let (active, all) = radio::energy(object, time);
    format!("| {connections} | {time:.2} | {client:.3} | {server:.3} | {active:.1} | {all:.1} |")
}

/// One download; `None` if the run is void.
fn measure(arguments: &Arguments, program: &Path, connections: u8, seed: u64) -> Result<Option<Cost>> {
    let folder = tempfile::tempdir()?;
    let mut content = vec![0; usize::try_from(arguments.object.get())?];
    Rng::from_test_seed(1).fill(&mut content);
    std::fs::create_dir(folder.path().join("www"))?;
    std::fs::write(folder.path().join("www").join(FILE), &content)?;
    let mut command = emulated::command(program, seed);
    let server = emulated::server(program, &arguments.profile);
    command.args(["--path", &emulated::from_anywhere(&arguments.path)?]);
    command.args(["--far", &format!("echo $$ >{SERVER_ID}; {server}"), "--", "sh", "-c"]);
    let own = std::env::current_exe()?;
    command.arg(format!(
        "exec {}'{}' connection-cost-end --connections {connections} --program '{}'",
        emulated::priority(),
        own.display(),
        program.display()
    ));
    let run =
        emulated::Run::make(command, folder.path(), &format!("{connections} connections, seed {seed}"))?;
    if !run.counts()? {
        return Ok(None);
    }
    let cost: Cost = serde_json::from_slice(&run.output)?;
    if cost.bytes != arguments.object.get() {
        return Err(format!("{connections} connections, seed {seed}: {} bytes came", cost.bytes).into());
    }
    Ok(Some(cost))
}

/// Inside the path: downloads the file and prints what that took.
pub(crate) fn play(end: &End) -> Result<bool> {
    let url = emulated::await_server(FILE)?;
    let before = (server_cpu()?, children_cpu()?);
    let began = Instant::now();
    let mut command = Command::new(&end.program);
    command.args(["get", "--insecure", "--profile", "standard", "-o", "copy"]);
    command.args(["--connections", &end.connections.to_string(), &url]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let time = began.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("get ended with {status}").into());
    }
    let (server, client) = (server_cpu()? - before.0, children_cpu()? - before.1);
    let cost = Cost { time, client, server, bytes: std::fs::metadata("copy")?.len() };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(true)
}

/// Seconds that the server's threads have been on a processor.
fn server_cpu() -> Result<f64> {
    let id = std::fs::read_to_string(SERVER_ID)?;
    let mut nanoseconds = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", id.trim()))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        let on_processor = text.split(' ').next().ok_or("no time in schedstat")?;
        nanoseconds += on_processor.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 * 1e-9)
}

/// Seconds of user and system time of the processes that were waited for.
fn children_cpu() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(micros as f64 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_medians_and_the_energy_of_the_median_time() {
        let cost = |time| Cost { time, client: time / 10.0, server: time / 100.0, bytes: 1 };
        let costs = [cost(3.0), cost(1.0), cost(2.0)];
        let text = row(ByteCount::new(10_000_000), 4, &costs);
        assert_eq!(text, "| 4 | 2.00 | 0.200 | 0.020 | 6.7 | 19.3 |");
        assert!(row(ByteCount::new(1), 2, &[]).contains("void"));
    }
}
