//! The result for programs.

use posthaste_campaign::raced::{self, Direction, Limit, Path, Race};
use posthaste_emulator::Lateness;
use posthaste_path::PathStats;

use super::arena::Run;
use super::plan::{Plan, Racer};
use super::tally::{Standing, Tally};

/// All that `--json` prints.
pub(super) fn report(plan: &Plan, tally: &Tally) -> Race {
    let standings = tally.standings(plan);
    let profiles = plan.racers.iter().zip(standings).zip(&tally.runs);
    Race {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: plan.command(&plan.names()),
        path: Path {
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
        limit: Limit { seconds: plan.limit.seconds, terms: plan.limit.terms.clone() },
        baseline: plan.racers[plan.baseline].name.clone(),
        lateness: lateness(&tally.lateness()),
        missed: tally.missed(),
        profiles: profiles.map(|((racer, standing), runs)| profile(racer, &standing, runs)).collect(),
    }
}

fn profile(racer: &Racer, standing: &Standing, runs: &[Run]) -> raced::Racer {
    raced::Racer {
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
        saving: standing.saving,
        runs: runs.iter().map(run).collect(),
    }
}

fn run(run: &Run) -> raced::Run {
    let times = run.outcome.as_ref().ok();
    raced::Run {
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

fn lateness(lateness: &Lateness) -> raced::Lateness {
    raced::Lateness {
        packets: lateness.packets,
        mean: lateness.mean.as_secs_f64(),
        p99: lateness.p99.as_secs_f64(),
        max: lateness.max.as_secs_f64(),
    }
}
