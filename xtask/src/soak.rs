//! `cargo xtask soak`: a server and clients that come and go for minutes or hours. What must not grow with time is the server's
//! memory and its descriptors.

mod edge;
mod failures;
mod serve;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Result;
use crate::interrupt;
use crate::median;
use crate::process::Running;
use crate::workspace::{build_posthaste, program};

/// Minutes of a soak that is told no others: of `serve`, and of the edge.
const MINUTES: [u64; 2] = [2, 10];
/// Rounds of `--short`: with four in each third that is judged, the clients that happen to meet in one decide nothing.
const SHORT_ROUNDS: usize = 12;
/// A client takes 75 s at most, and those of one place come one behind another.
const ROUND_ENDS: Duration = Duration::from_secs(1_800);
/// Between two looks at the server.
const TICK: Duration = Duration::from_millis(100);
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(60);
/// Rows of the table, about.
const ROWS: u32 = 12;
/// Rounds that are judged, at least.
const LEAST_ROUNDS: usize = 6;
/// Sessions that the server keeps come to a few megabytes, and memory comes and goes with the clients of the moment.
const GROWTH: f64 = 1.1;
/// Of descriptors: log files and the like may be open at one sample and not at another.
const MORE_DESCRIPTORS: usize = 8;

/// Of `cargo xtask soak`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each round has 1,000 connections over loopback and 100 over a path of 20 Mbit/s, 20 ms and 1 % loss. A quarter
of the clients change their ports; an eighth each read slowly, give the response up, or end an upload early.

With --edge, `posthaste edge` runs in front of two applications. Each round has 300 connections over HTTP/1.1 and 2, 200 over
HTTP/3, and 60 over HTTP/3 on that path. Of ten clients three read; one each reads slowly, uploads, gives an upload up, gives a
response up, leaves by a TCP reset or changes its port, has a WebSocket, or reads events. The edge reloads its file and
certificates every --reload-every seconds; every --restart-every seconds one of the applications is killed and starts again a
second later.

It fails if a client fails, if the server's resident memory in the last third of the rounds is more than 1.1 times that in
the second third (medians of each round's peak), if descriptors are more than 8 above (behind the edge 8 and a fifth, because
connections to applications come and go with each reload), or if they end more than 8 above their number before the first
client. The first third is for caches and the session store to fill: they take 16,384 connections, so a short run says little.
Behind the edge, responses that have begun, uploads and WebSockets may break off while an application is restarted; these are
counted (over HTTP/3 as `Head` if the reset overtakes the head), and no others are excused.

Each minute a line on stderr says how far it is. An interrupt ends it with the table so far, which is not judged.

With --short, there are 12 rounds of an eighth of these clients. Then both applications are ended,
so that no idle connection to them has to time out. All that is judged is judged as in a long run."
)]
pub(crate) struct Arguments {
    /// Soak `posthaste edge` in front of applications instead of `posthaste serve`
    #[arg(long)]
    edge: bool,
    /// Start no further round after this many minutes; default 2, with --edge 10, with --connections no bound
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// With --edge: a few small rounds, what CI runs
    #[arg(long, requires = "edge", conflicts_with_all = ["minutes", "connections"])]
    short: bool,
    /// Start no further round after this many connections
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    connections: Option<u64>,
    /// Seconds between two reloads of the edge
    #[arg(long, requires = "edge", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    reload_every: u64,
    /// Seconds between two restarts of an application behind the edge
    #[arg(long, requires = "edge", default_value_t = 20, value_parser = clap::value_parser!(u64).range(5..))]
    restart_every: u64,
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

/// The server of a run over its rounds.
struct Record {
    began: Instant,
    connections: u64,
    /// Before the first client.
    before: Sample,
    rounds: Vec<Sample>,
    /// When progress was last told.
    told: Instant,
}

/// Runs it; true if nothing grows and no client fails.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    interrupt::watch()?;
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let verdict =
        if arguments.edge { edge::run(&program, arguments)? } else { serve::run(program, arguments)? };
    match &verdict {
        Ok(()) => println!("flat"),
        Err(reason) => println!("FAULT  {reason}"),
    }
    Ok(verdict.is_ok())
}

/// Nothing, or why the run is not as it must be.
type Verdict = std::result::Result<(), String>;

impl Arguments {
    /// Another round is due.
    fn goes_on(&self, record: &Record) -> bool {
        if self.short {
            return record.rounds.len() < SHORT_ROUNDS;
        }
        let default = self.connections.is_none().then_some(MINUTES[usize::from(self.edge)]);
        let minutes = self.minutes.or(default).unwrap_or(u64::MAX / 60);
        let has_time = record.began.elapsed() < Duration::from_secs(60 * minutes);
        has_time && self.connections.is_none_or(|wanted| record.connections < wanted)
    }
}

impl Record {
    fn start(server: &Running) -> Result<Self> {
        let began = Instant::now();
        let before = sample(server, began, 0)?;
        Ok(Self { began, connections: 0, before, rounds: Vec::new(), told: began })
    }

    /// Looks at the server while `step` says that a round with this many connections goes on. One that does not end well ends
    /// with the table of those before it.
    fn round(
        &mut self,
        server: &Running,
        connections: u64,
        step: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let done = self.watch(server, connections, step);
        if done.is_err() && !self.rounds.is_empty() {
            print(&self.rounds, self.before, None);
        } else if self.told.elapsed() >= PROGRESS {
            self.told = Instant::now();
            self.tell();
        }
        done
    }

    /// Says how far it is.
    fn tell(&self) {
        let Some(Sample { at, connections, resident, descriptors, .. }) = self.rounds.last() else { return };
        let (minutes, memory) = (at.as_secs_f64() / 60.0, megabytes(*resident));
        eprintln!("{minutes:.1} min: {connections} connections, {memory:.1} MB, {descriptors} descriptors");
    }

    fn watch(
        &mut self,
        server: &Running,
        connections: u64,
        mut step: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let began = Instant::now();
        let look = || sample(server, self.began, self.connections + connections);
        let mut most = look()?;
        while step()? {
            if began.elapsed() > ROUND_ENDS {
                return Err("the clients of a round did not end".into());
            }
            interrupt::sleep(TICK)?;
            let sample = look()?;
            let resident = most.resident.max(sample.resident);
            most = Sample { resident, descriptors: most.descriptors.max(sample.descriptors), ..sample };
        }
        self.connections += connections;
        self.rounds.push(most);
        Ok(())
    }

    /// Prints the table of a server that has come to rest, and decides whether anything has grown; descriptors under load vary by
    /// the factor `noise`.
    fn end(&self, server: &Running, noise: f64) -> Result<Verdict> {
        let after = sample(server, self.began, self.connections)?;
        print(&self.rounds, self.before, Some(after));
        Ok(judge(&self.rounds, self.before, after, noise))
    }
}

fn sample(server: &Running, began: Instant, connections: u64) -> Result<Sample> {
    let (resident, descriptors) = (server.resident_bytes()?, server.descriptors()?);
    Ok(Sample { at: began.elapsed(), connections, resident, descriptors, cpu: server.cpu()? })
}

/// Decides whether anything has grown.
fn judge(loaded: &[Sample], before: Sample, after: Sample, noise: f64) -> Verdict {
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
    if later > earlier * noise + MORE_DESCRIPTORS as f64 {
        return Err(format!("descriptors grow: {earlier}, then {later}"));
    }
    if after.descriptors > before.descriptors + MORE_DESCRIPTORS {
        let (before, after) = (before.descriptors, after.descriptors);
        return Err(format!("descriptors stay when all clients have left: {before} before, {after} after"));
    }
    Ok(())
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// A table of some rounds: the last and others before it, evenly; the server before and, if it is known, after them.
fn print(loaded: &[Sample], before: Sample, after: Option<Sample>) {
    println!(
        "| minutes | connections | resident MB at most | descriptors at most | server's CPU ms per connection |"
    );
    println!("|---|---|---|---|---|");
    let step = loaded.len().div_ceil(ROWS as usize).max(1);
    let shown = loaded.iter().rev().step_by(step).collect::<Vec<_>>();
    let mut earlier = before;
    for sample in [before].into_iter().chain(shown.into_iter().rev().copied()).chain(after) {
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
        judge(loaded, quiet[0], quiet[1], 1.0).is_ok()
    }

    #[test]
    fn a_number_of_connections_and_a_time_both_end_it() {
        let arguments = |minutes, connections| Arguments {
            edge: false,
            minutes,
            short: false,
            connections,
            reload_every: 5,
            restart_every: 20,
            program: None,
        };
        let after = |minutes: u64, connections| {
            let now = Instant::now();
            let began = now.checked_sub(Duration::from_secs(60 * minutes)).unwrap();
            let before = samples([(30, 20)])[0];
            Record { began, connections, before, rounds: Vec::new(), told: began }
        };
        assert!(arguments(None, None).goes_on(&after(1, 1_000_000)));
        assert!(!arguments(None, None).goes_on(&after(2, 0)));
        assert!(arguments(None, Some(5_000)).goes_on(&after(60, 4_999)));
        assert!(!arguments(None, Some(5_000)).goes_on(&after(0, 5_000)));
        assert!(!arguments(Some(3), Some(5_000)).goes_on(&after(3, 0)), "whichever comes first");
    }

    #[test]
    fn what_fills_at_first_and_stays_is_flat_and_what_goes_on_growing_is_not() {
        let flat = samples((0..12).map(|n| (60 + 10 * n.min(4), 30)));
        assert!(judged(&flat, 20));
        assert!(!judged(&flat, 40), "descriptors stay");
        assert!(!judged(&flat[..5], 20), "too few");
        assert!(!judged(&samples((0..12).map(|n| (60 + 5 * n, 30))), 20), "memory");
        assert!(!judged(&samples((0..12).map(|n| (60, 30 + 3 * n as usize))), 20), "descriptors");
    }
}
