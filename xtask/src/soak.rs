//! `cargo xtask soak`: a server and clients that come and go for minutes or hours, over a lossy path and without one.
//! They read, read slowly, change their ports, give responses up and end uploads early (`crates/http/examples/visitors.rs`).
//! What must not grow with time is the server's memory and its descriptors.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use posthaste_emulator::{RelayConfig, UdpRelay};
use posthaste_path::{PathSpec, QueueSize};
use posthaste_units::{Duration as Span, Rate};

use crate::Result;
use crate::median;
use crate::site::{Programs, Site, Visits};
use crate::workspace::build_posthaste;

/// Bytes of the file that they fetch.
const FILE: u64 = 60_000;
/// Visitors of a round without a path between, and how many at once.
const DIRECT: [u64; 2] = [1_000, 100];
/// Visitors of a round over the path: each address takes two sockets of the relay's.
const OVER_PATH: [u64; 2] = [100, 50];
/// A visitor takes 75 s at most, and those of one place come one behind another.
const ROUND_ENDS: Duration = Duration::from_secs(1_800);
/// Between two looks at the server.
const TICK: Duration = Duration::from_millis(100);
/// Rows of the table, about.
const ROWS: u32 = 12;
/// Rounds that are judged, at least.
const LEAST_ROUNDS: usize = 6;
/// After the last visitor: connections that went without a word are over, and memory has come back.
const QUIET: Duration = Duration::from_secs(40);
/// Sessions that the server keeps come to a few megabytes, and memory comes and goes with the visitors of the moment.
const GROWTH: f64 = 1.1;
/// Of descriptors: log files and the like may be open at one sample and not at another.
const MORE_DESCRIPTORS: usize = 8;

/// Of `cargo xtask soak`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each round has 1,000 connections over loopback and 100 over a path of 20 Mbit/s, 20 ms and 1 % loss. A quarter
of the clients change their ports; an eighth each read slowly, give the response up, or end an upload early.

It fails if a client fails, if the server's resident memory in the last third of the rounds is more than 1.1 times that in
the second third (medians of each round's peak), or if descriptors are more than 8 above. The first third is for caches and
the session store to fill: they take 16,384 connections, so a short run says little."
)]
pub(crate) struct Arguments {
    /// End after the round in which so many minutes have passed
    #[arg(long, default_value_t = 2, conflicts_with = "connections", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// End after the round in which there have been so many connections
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    connections: Option<u64>,
    /// Another binary than the released one that is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// The server at one moment, or the most of a round.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    connections: u64,
    resident: u64,
    descriptors: usize,
    /// The server's processor time since its start.
    cpu: Duration,
}

/// A run under way.
struct Soak {
    site: Site,
    began: Instant,
    connections: u64,
    rounds: Vec<Sample>,
    visits: Visits,
    failures: Vec<String>,
}

/// Runs it; true if nothing grows and no visitor fails.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = arguments.program.clone().map_or_else(build_posthaste, Ok)?;
    let site = Site::start(&Programs::with(program)?, FILE)?;
    let mut soak = Soak {
        site,
        began: Instant::now(),
        connections: 0,
        rounds: Vec::new(),
        visits: Visits::default(),
        failures: Vec::new(),
    };
    let before = soak.sample()?;
    let limit = Duration::from_secs(60 * arguments.minutes);
    let mut round = 0;
    while arguments.connections.map_or(soak.began.elapsed() < limit, |wanted| soak.connections < wanted) {
        round += 1;
        soak.round(round)?;
    }
    sleep(QUIET);
    let after = soak.sample()?;
    print(&soak.rounds, before, after);
    soak.print_visits();
    let verdict = judge(&soak.rounds, before, after, &soak.failures);
    soak.site.end()?;
    match &verdict {
        Ok(()) => println!("flat"),
        Err(reason) => println!("FAULT  {reason}"),
    }
    Ok(verdict.is_ok())
}

impl Soak {
    fn sample(&self) -> Result<Sample> {
        let server = &self.site.server;
        let (resident, descriptors) = (server.resident_bytes()?, server.descriptors()?);
        let (at, cpu) = (self.began.elapsed(), server.cpu()?);
        Ok(Sample { at, connections: self.connections, resident, descriptors, cpu })
    }

    /// Visitors of both kinds, until the last has left; the server is looked at while they are there.
    fn round(&mut self, seed: u64) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let relay = runtime.block_on(UdpRelay::start(relay_to(self.site.address, seed)))?;
        let [direct, at_once] = DIRECT;
        let [over_path, of_those_at_once] = OVER_PATH;
        let mut visitors = [
            self.site.visitors(self.site.address, "direct", [direct, at_once, seed])?,
            self.site.visitors(relay.local_addr(), "over-path", [over_path, of_those_at_once, !seed])?,
        ];
        let began = Instant::now();
        let mut most = self.sample()?;
        while visitors[0].is_running()? || visitors[1].is_running()? {
            if began.elapsed() > ROUND_ENDS {
                return Err("a round of visitors did not end".into());
            }
            sleep(TICK);
            let sample = self.sample()?;
            most.resident = most.resident.max(sample.resident);
            most.descriptors = most.descriptors.max(sample.descriptors);
        }
        self.connections += direct + over_path;
        let end = self.sample()?;
        self.rounds.push(Sample { resident: most.resident, descriptors: most.descriptors, ..end });
        for visitors in &mut visitors {
            if !visitors.wait(ROUND_ENDS)?.success() {
                return Err("the visitors did not end well".into());
            }
            let (visits, failures) = Visits::read(&visitors.output()?)?;
            self.visits.add(&visits);
            self.failures.extend(failures);
        }
        Ok(())
    }

    fn print_visits(&self) {
        let rounds = self.rounds.len();
        let Visits { all, whole, moved, reset, uploads, failed } = self.visits;
        println!(
            "{all} connections in {rounds} rounds: whole {whole}, whole after another address {moved}, given up {reset}, \
             whole after an upload that ended early {uploads}, failed {failed}"
        );
    }
}

/// A path that loses one of a hundred.
fn relay_to(upstream: SocketAddr, seed: u64) -> RelayConfig {
    let path = PathSpec {
        rtt: Span::from_millis(20),
        rate: Some(Rate::from_bits_per_second(20_000_000).into()),
        queue: QueueSize::Bdp(2.0),
        loss: 0.01,
        ..PathSpec::default()
    };
    RelayConfig {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        upstream,
        down: path.down(),
        up: path.up(),
        seed,
        max_clients: 1_000,
    }
}

/// Decides whether anything has grown.
fn judge(
    loaded: &[Sample],
    before: Sample,
    after: Sample,
    failures: &[String],
) -> std::result::Result<(), String> {
    if let Some(failure) = failures.first() {
        return Err(format!("{} visitors failed; the first: {failure}", failures.len()));
    }
    if loaded.len() < LEAST_ROUNDS {
        return Err(format!("{} rounds are too few to judge; run it for longer", loaded.len()));
    }
    let third = loaded.len() / 3;
    let (second, last) = (&loaded[third..2 * third], &loaded[loaded.len() - third..]);
    let resident = |samples: &[Sample]| median(samples.iter().map(|sample| megabytes(sample.resident)));
    let (earlier, later) = (resident(second), resident(last));
    if later > earlier * GROWTH {
        return Err(format!("memory grows: {earlier:.1} MB, then {later:.1} MB"));
    }
    let descriptors = |samples: &[Sample]| median(samples.iter().map(|sample| sample.descriptors as f64));
    let (earlier, later) = (descriptors(second), descriptors(last));
    if later > earlier + MORE_DESCRIPTORS as f64 {
        return Err(format!("descriptors grow: {earlier}, then {later}"));
    }
    if after.descriptors > before.descriptors + MORE_DESCRIPTORS {
        let (before, after) = (before.descriptors, after.descriptors);
        return Err(format!("descriptors stay when all visitors have left: {before} before, {after} after"));
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A table of some rounds: the last and others before it, evenly; the server before and after them.
fn print(loaded: &[Sample], before: Sample, after: Sample) {
    println!(
        "| minutes | connections | resident MB at most | descriptors at most | server's CPU ms per connection |"
    );
    println!("|---|---|---|---|---|");
    let step = loaded.len().div_ceil(ROWS as usize).max(1);
    let shown = loaded.iter().rev().step_by(step).collect::<Vec<_>>();
    let mut earlier = before;
    for sample in [before].into_iter().chain(shown.into_iter().rev().copied()).chain([after]) {
        let Sample { at, connections, resident, descriptors, cpu } = sample;
        let (minutes, megabytes) = (at.as_secs_f64() / 60.0, megabytes(resident));
        let cost = match connections - earlier.connections {
            0 => String::new(),
            since => format!("{:.2}", cpu.saturating_sub(earlier.cpu).as_secs_f64() * 1e3 / since as f64),
        };
        println!("| {minutes:.1} | {connections} | {megabytes:.1} | {descriptors} | {cost} |");
        earlier = sample;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(figures: impl IntoIterator<Item = (u64, usize)>) -> Vec<Sample> {
        let sample = |(resident, descriptors)| Sample {
            at: Duration::ZERO,
            connections: 0,
            resident: resident * 1_000_000,
            descriptors,
            cpu: Duration::ZERO,
        };
        figures.into_iter().map(sample).collect()
    }

    fn judged(loaded: &[Sample], left: usize) -> bool {
        let quiet = samples([(30, 20), (40, left)]);
        judge(loaded, quiet[0], quiet[1], &[]).is_ok()
    }

    #[test]
    fn what_fills_at_first_and_stays_is_flat_and_what_goes_on_growing_is_not() {
        let flat = samples((0..12).map(|n| (60 + 10 * n.min(4), 30)));
        assert!(judged(&flat, 20));
        assert!(!judged(&flat, 40), "descriptors stay");
        assert!(!judged(&flat[..5], 20), "too few");
        assert!(!judged(&samples((0..12).map(|n| (60 + 5 * n, 30))), 20), "memory");
        assert!(!judged(&samples((0..12).map(|n| (60, 30 + 3 * n as usize))), 20), "descriptors");
        let failure = ["failed".to_owned()];
        assert!(judge(&flat, flat[0], flat[0], &failure).is_err());
    }
}
