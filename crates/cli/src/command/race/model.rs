//! Racers that are computed: a stack of the lab in virtual time, over the path and seed that the others meet for real.

use posthaste_emulator::{LatenessHistogram, RelayStats};
use posthaste_lab::peers::Stack;
use posthaste_lab::spec::RunSpec;
use posthaste_path::{PathSpec, PathStats, TraceStart};
use posthaste_report::result::{FlowResult, LinkResult, Outcome, RunResult};

use super::arena::{Run, Times};
use super::plan::{Plan, Start};
use crate::exit::Failure;

/// Computes one run on a thread for blocking work.
pub(super) async fn run(plan: &Plan, stack: &Stack, start: Start) -> Result<Run, Failure> {
    // The relay begins recordings where the path says, not at a seed's place.
    let trace_start = TraceStart::At(plan.path.start());
    let path = PathSpec { trace_start, ..plan.path.clone() };
    let download = RunSpec::download(path, stack.clone(), plan.object);
    let spec = RunSpec { deadline: plan.timeout.into(), datagram: plan.datagram, ..download };
    let computed = tokio::task::spawn_blocking(move || posthaste_lab::run::run(&spec, start.seed, None));
    let result = computed
        .await
        .map_err(|error| Failure::runtime(format!("a model broke off: {error}")))?
        .map_err(Failure::runtime)?;
    Ok(summary(start, &result))
}

fn summary(start: Start, result: &RunResult) -> Run {
    let flow = result.flows.first();
    // The lab's simple network has the client's direction first.
    let link = |index: usize| result.links.get(index).map(stats).unwrap_or_default();
    Run {
        start,
        outcome: outcome(result, flow),
        bytes: flow.map_or(0, |flow| flow.bytes),
        relay: RelayStats { down: link(1), up: link(0), ..RelayStats::default() },
        // Nothing is late in virtual time.
        lateness: LatenessHistogram::new(),
    }
}

fn outcome(result: &RunResult, flow: Option<&FlowResult>) -> Result<Times, String> {
    let seconds = |time: Option<f64>| time.map(std::time::Duration::from_secs_f64);
    match (&result.outcome, flow) {
        (Outcome::Failed(reason), _) => Err(reason.clone()),
        (_, Some(flow)) => {
            let total = seconds(flow.completion).ok_or("not complete at the deadline")?;
            let first_byte = seconds(flow.first_byte).unwrap_or(total);
            Ok(Times { connect: seconds(flow.connect).unwrap_or(first_byte), first_byte, total })
        }
        (_, None) => Err("it has no flow".to_owned()),
    }
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
