//! The result for programs. Times are in seconds, and count from the client's first packet.

use posthaste_emulator::Lateness;
use posthaste_path::PathStats;
use serde::Serialize;

use super::arena::Run;
use super::plan::{Plan, Racer};
use super::tally::{Standing, Tally};

/// All that `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// `posthaste race` of this version.
    version: &'static str,
    /// The command that repeats it.
    command: String,
    path: PathReport,
    object_bytes: u64,
    /// Runs of each profile that were asked for.
    runs: u64,
    parallel: usize,
    was_interrupted: bool,
    limit: LimitReport,
    baseline: String,
    lateness: LatenessReport,
    /// Packets that the system lost, not the path.
    missed: u64,
    profiles: Vec<ProfileReport>,
}

#[derive(Debug, Serialize)]
struct PathReport {
    name: String,
    /// For people.
    description: String,
    rtt: f64,
    /// Mean of the direction from server to client, null if it is unlimited.
    bits_per_second: Option<u64>,
    /// From server to client.
    loss: f64,
}

#[derive(Debug, Serialize)]
struct LimitReport {
    seconds: f64,
    terms: String,
}

/// Seconds that packets left the relays after the model's time.
#[derive(Debug, Serialize)]
struct LatenessReport {
    packets: u64,
    mean: f64,
    p99: f64,
    max: f64,
}

/// Figures are null where nothing, or too little, has completed.
#[derive(Debug, Serialize)]
struct ProfileReport {
    profile: String,
    /// True if the times were computed in virtual time, not measured.
    model: bool,
    completed: usize,
    failed: usize,
    median: Option<f64>,
    p95: Option<f64>,
    fastest: Option<f64>,
    mean: Option<f64>,
    standard_deviation: Option<f64>,
    ratio_to_limit: Option<f64>,
    saving: Option<SavingReport>,
    runs: Vec<RunReport>,
}

/// Share of the baseline's median, and the bounds of its 95 % confidence interval.
#[derive(Debug, Serialize)]
struct SavingReport {
    share: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
struct RunReport {
    round: u64,
    seed: u64,
    seconds: Option<f64>,
    connect: Option<f64>,
    first_byte: Option<f64>,
    bytes: u64,
    failure: Option<String>,
    down: Direction,
    up: Direction,
    lateness: LatenessReport,
    missed: u64,
}

/// Packets on one direction of the emulated path.
#[derive(Debug, Serialize)]
struct Direction {
    offered: u64,
    delivered: u64,
    delivered_bytes: u64,
    /// By the medium.
    lost: u64,
    /// By the queue.
    dropped: u64,
}

impl Report {
    pub(super) fn new(plan: &Plan, tally: &Tally) -> Self {
        let standings = tally.standings(plan);
        let profiles = plan.racers.iter().zip(standings).zip(&tally.runs);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            command: plan.command(&plan.names()),
            path: PathReport {
                name: plan.path_name.clone(),
                description: plan.path.to_string(),
                rtt: plan.path.rtt.as_secs_f64(),
                bits_per_second: plan.path.down_rate().map(posthaste_units::Rate::as_bits_per_second),
                loss: plan.path.down_loss(),
            },
            object_bytes: plan.object.get(),
            runs: plan.runs,
            parallel: plan.parallel,
            was_interrupted: tally.was_interrupted,
            limit: LimitReport { seconds: plan.limit.seconds, terms: plan.limit.terms.clone() },
            baseline: plan.racers[plan.baseline].name.clone(),
            lateness: lateness(&tally.lateness()),
            missed: tally.missed(),
            profiles: profiles.map(|((racer, standing), runs)| profile(racer, &standing, runs)).collect(),
        }
    }
}

fn profile(racer: &Racer, standing: &Standing, runs: &[Run]) -> ProfileReport {
    ProfileReport {
        profile: racer.name.clone(),
        model: racer.is_model(),
        completed: standing.completed,
        failed: standing.failed,
        median: standing.median,
        p95: standing.p95,
        fastest: standing.fastest,
        mean: standing.mean,
        standard_deviation: standing.deviation,
        ratio_to_limit: standing.ratio_to_limit,
        saving: standing.saving.map(|saving| SavingReport {
            share: saving.share,
            low: saving.low,
            high: saving.high,
        }),
        runs: runs.iter().map(run).collect(),
    }
}

fn run(run: &Run) -> RunReport {
    let times = run.outcome.as_ref().ok();
    RunReport {
        round: run.start.round,
        seed: run.start.seed,
        seconds: times.map(|times| times.total.as_secs_f64()),
        connect: times.map(|times| times.connect.as_secs_f64()),
        first_byte: times.map(|times| times.first_byte.as_secs_f64()),
        bytes: run.bytes,
        failure: run.outcome.as_ref().err().cloned(),
        down: direction(&run.relay.down),
        up: direction(&run.relay.up),
        lateness: lateness(&run.relay.lateness),
        missed: run.relay.missed,
    }
}

fn direction(stats: &PathStats) -> Direction {
    Direction {
        offered: stats.offered,
        delivered: stats.delivered,
        delivered_bytes: stats.delivered_bytes,
        lost: stats.lost,
        dropped: stats.overflowed + stats.managed,
    }
}

fn lateness(lateness: &Lateness) -> LatenessReport {
    LatenessReport {
        packets: lateness.packets,
        mean: lateness.mean.as_secs_f64(),
        p99: lateness.p99.as_secs_f64(),
        max: lateness.max.as_secs_f64(),
    }
}
