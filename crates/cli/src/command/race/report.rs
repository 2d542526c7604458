//! The result for programs.

use posthaste_campaign::raced::{self, Direction, Limit, Path, Race};
use posthaste_emulator::Lateness;
use posthaste_lab::spec::WorkloadSpec;
use posthaste_path::PathStats;
use posthaste_report::experiment_result::ExperimentResult;
use posthaste_report::result::ExchangeResult;

use super::plan::Plan;
use super::tally::{Summary, Tally};
use super::testbed::Run;
use super::{figures, page};

/// All that `--json` prints.
pub(super) fn report(plan: &Plan, tally: &Tally) -> Race {
    let summaries = tally.summaries(plan);
    let result = page::result(plan, tally);
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
        workload: plan.workload.name().to_owned(),
        settings: plan.workload.settings(),
        object_bytes: plan.workload.answer().get(),
        runs: plan.runs,
        parallel: plan.parallel,
        was_interrupted: tally.was_interrupted,
        limit: Limit { seconds: plan.limit.seconds, terms: plan.limit.terms.clone() },
        baseline: plan.racers[plan.baseline].name.clone(),
        lateness: lateness(&tally.lateness()),
        missed: tally.missed(),
        profiles: (0..plan.racers.len())
            .map(|index| profile(plan, (&result, index), &summaries[index], &tally.runs[index]))
            .collect(),
    }
}

fn profile(
    plan: &Plan,
    (result, index): (&ExperimentResult, usize),
    summary: &Summary,
    runs: &[Run],
) -> raced::Racer {
    let (racer, cell) = (&plan.racers[index], &result.cells[index]);
    raced::Racer {
        profile: racer.name.clone(),
        model: racer.is_model(),
        completed: summary.completed,
        failed: summary.failed,
        median: summary.median,
        p95: summary.p95,
        fastest: summary.fastest,
        mean: summary.mean,
        standard_deviation: summary.deviation,
        ratio_to_limit: summary.ratio_to_limit,
        saving: summary.saving,
        figures: figures::values(&plan.workload.spec, result, cell),
        runs: runs.iter().map(|made| run(plan, made)).collect(),
    }
}

fn run(plan: &Plan, run: &Run) -> raced::Run {
    let flow = run.outcome.as_ref().ok().map(|()| &run.flow);
    let is_file = matches!(plan.workload.spec, WorkloadSpec::Bulk { .. });
    let latencies = run.flow.exchanges.iter().filter(|_| !is_file).map(ExchangeResult::latency);
    raced::Run {
        round: run.start.round,
        seed: run.start.seed,
        seconds: flow.and_then(|flow| flow.completion),
        connect: flow.and_then(|flow| flow.connect),
        first_byte: flow.and_then(|flow| flow.first_byte),
        bytes: run.flow.bytes,
        latencies: latencies.collect(),
        stalled: run.flow.stalled_seconds,
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
