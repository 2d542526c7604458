//! Racers that are computed: a stack of the lab in virtual time, over the path and seed that the others meet for real.

use posthaste_emulator::{LatenessHistogram, RelayStats};
use posthaste_lab::peers::Stack;
use posthaste_lab::spec::RunSpec;
use posthaste_path::{PathSpec, PathStats, TraceStart};
use posthaste_report::result::{LinkResult, Outcome, RunResult};

use super::plan::{Plan, Start};
use super::testbed::Run;
use crate::exit::Failure;

/// Computes one run on a thread for blocking work.
pub(super) async fn run(plan: &Plan, stack: &Stack, start: Start) -> Result<Run, Failure> {
    // The relay begins recordings where the path says, not at a seed's place.
    let trace_start = TraceStart::At(plan.path.start());
    let path = PathSpec { trace_start, ..plan.path.clone() };
    let download = RunSpec::download(path, stack.clone(), plan.workload.answer());
    let mut spec = RunSpec { deadline: plan.timeout.into(), datagram: plan.datagram, ..download };
    for flow in &mut spec.flows {
        flow.workload = plan.workload.spec.clone();
    }
    let computed = tokio::task::spawn_blocking(move || posthaste_lab::run::run(&spec, start.seed, None));
    let result = computed
        .await
        .map_err(|error| Failure::runtime(format!("a model broke off: {error}")))?
        .map_err(Failure::runtime)?;
    Ok(summary(start, result))
}

fn summary(start: Start, result: RunResult) -> Run {
    // The lab's simple network has the client's direction first.
    let link = |index: usize| result.links.get(index).map(stats).unwrap_or_default();
    let relay = RelayStats { down: link(1), up: link(0), ..RelayStats::default() };
    let flow = result.flows.into_iter().next().unwrap_or_default();
    let outcome = match result.outcome {
        Outcome::Failed(reason) => Err(reason),
        _ if flow.completion.is_none() => Err("not complete at the deadline".to_owned()),
        _ => Ok(()),
    };
    // Nothing is late in virtual time.
    Run { start, outcome, flow, relay, lateness: LatenessHistogram::new() }
}

fn stats(link: &LinkResult) -> PathStats {
    PathStats {
        offered: link.offered,
        delivered: link.delivered,
        delivered_bytes: link.delivered_bytes,
        lost: link.lost,
        overflowed: link.dropped,
        marked: link.marked,
        ..PathStats::default()
    }
}
