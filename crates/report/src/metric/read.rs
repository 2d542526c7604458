//! Readings of runs. "Down" is from server to client, where the bodies go, "up" the way back.

use super::Reading::{self, Censored, Known, Unknown};
use super::{Context, cells};
use crate::counters::Counters;
use crate::result::{CreditUpdate, DirectionResult, FlowResult, Outcome, RunResult};
use crate::statistics;

/// A reading of the run's first flow.
fn first(context: &Context<'_>, read: impl FnOnce(&FlowResult) -> Reading) -> Reading {
    context.run.flows.first().map_or(Unknown, read)
}

fn told(value: Option<f64>) -> Reading {
    value.map_or(Unknown, Known)
}

/// A moment that every run reaches which lives long enough.
fn reached(value: Option<f64>) -> Reading {
    value.map_or(Censored, Known)
}

fn share(part: f64, whole: f64) -> Reading {
    if whole > 0.0 { Known(part / whole) } else { Unknown }
}

pub(super) fn completion(context: &Context<'_>) -> Reading {
    first(context, |flow| reached(flow.completion))
}

pub(super) fn connect(context: &Context<'_>) -> Reading {
    first(context, |flow| reached(flow.connect))
}

pub(super) fn first_byte(context: &Context<'_>) -> Reading {
    first(context, |flow| reached(flow.first_byte))
}

pub(super) fn to_limit(context: &Context<'_>) -> Reading {
    let limit = context.run.limit.or(context.cell.limit.as_ref().map(|limit| limit.seconds));
    let Some(limit) = limit.filter(|limit| *limit > 0.0) else { return Unknown };
    match completion(context) {
        Known(seconds) => Known(seconds / limit),
        other => other,
    }
}

/// Our time over the baseline's for the same seed, taken from one.
pub(super) fn saving(context: &Context<'_>) -> Reading {
    let Some(name) = cells::baseline(context.experiment) else { return Unknown };
    let Some(cell) = cells::sibling(context.experiment, context.cell, name) else { return Unknown };
    let Some(run) = cell.runs.iter().find(|run| run.seed == context.run.seed) else { return Unknown };
    let theirs = run.flows.first().and_then(|flow| flow.completion);
    match (completion(context), theirs) {
        (Known(ours), Some(theirs)) => share(theirs - ours, theirs),
        (Known(ours), None) if run.outcome == Outcome::Deadline => {
            share(run.virtual_seconds - ours, run.virtual_seconds)
        }
        (Censored, Some(_)) => Censored,
        _ => Unknown,
    }
}

/// Our goodput over the baseline's for the same seed, less one.
pub(super) fn gain(context: &Context<'_>) -> Reading {
    let Some(name) = cells::baseline(context.experiment) else { return Unknown };
    let Some(cell) = cells::sibling(context.experiment, context.cell, name) else { return Unknown };
    let Some(run) = cell.runs.iter().find(|run| run.seed == context.run.seed) else { return Unknown };
    let theirs = run.flows.first().map(|flow| flow.goodput);
    match (goodput(context), theirs) {
        (Known(ours), Some(theirs)) => share(ours - theirs, theirs),
        _ => Unknown,
    }
}

pub(super) fn goodput(context: &Context<'_>) -> Reading {
    first(context, |flow| Known(flow.goodput))
}

/// The goodput of a flow, the first being 0; nothing where there are not so many.
pub(super) fn goodput_of<const FLOW: usize>(context: &Context<'_>) -> Reading {
    context.run.flows.get(FLOW).map_or(Unknown, |flow| Known(flow.goodput))
}

/// A flow's share of what all of them get, background included.
pub(super) fn part_of<const FLOW: usize>(context: &Context<'_>) -> Reading {
    let all: f64 = context.run.flows.iter().map(|flow| flow.goodput).sum();
    context.run.flows.get(FLOW).map_or(Unknown, |flow| share(flow.goodput, all))
}

pub(super) fn throughput(context: &Context<'_>) -> Reading {
    first(context, |flow| {
        let so_far = (flow.goodput > 0.0).then(|| flow.bytes as f64 * 8.0 / flow.goodput);
        let seconds = flow.completion.or(so_far).unwrap_or(context.run.virtual_seconds);
        share(flow.down.bytes_received as f64 * 8.0, seconds)
    })
}

fn delays(context: &Context<'_>, read: impl FnOnce(&DirectionResult) -> f64) -> Reading {
    first(context, |flow| if flow.down.packets_received > 0 { Known(read(&flow.down)) } else { Unknown })
}

pub(super) fn delay(context: &Context<'_>) -> Reading {
    delays(context, |down| down.delay_mean_ms)
}

pub(super) fn delay_p95(context: &Context<'_>) -> Reading {
    delays(context, |down| down.delay_p95_ms)
}

pub(super) fn queueing(context: &Context<'_>) -> Reading {
    delays(context, |down| down.queueing_mean_ms)
}

pub(super) fn queueing_p95(context: &Context<'_>) -> Reading {
    delays(context, |down| down.queueing_p95_ms)
}

/// Bytes on the wire for each byte that the application has read, less one.
pub(super) fn overhead(context: &Context<'_>) -> Reading {
    first(context, |flow| match share(flow.down.bytes_sent as f64, flow.bytes as f64) {
        Known(ratio) => Known(ratio - 1.0),
        other => other,
    })
}

fn lost_of(direction: &DirectionResult) -> Reading {
    share(direction.packets_lost as f64, direction.packets_sent as f64)
}

pub(super) fn loss(context: &Context<'_>) -> Reading {
    first(context, |flow| lost_of(&flow.down))
}

pub(super) fn loss_up(context: &Context<'_>) -> Reading {
    first(context, |flow| lost_of(&flow.up))
}

pub(super) fn retransmission(context: &Context<'_>) -> Reading {
    first(context, |flow| match flow.down.counters.resent_bytes {
        Some(resent) => share(resent as f64, flow.down.bytes_sent as f64),
        None => Unknown,
    })
}

pub(super) fn rtr(context: &Context<'_>) -> Reading {
    first(context, |flow| share(flow.down.packets_received as f64, flow.up.packets_sent as f64))
}

pub(super) fn ack_ratio(context: &Context<'_>) -> Reading {
    first(context, |flow| match flow.up.counters.acks_sent {
        Some(acks) => share(acks as f64, flow.down.packets_sent as f64),
        None => Unknown,
    })
}

pub(super) fn blocked(context: &Context<'_>) -> Reading {
    first(context, |flow| told(flow.down.blocked_seconds))
}

pub(super) fn blocked_late(context: &Context<'_>) -> Reading {
    first(context, |flow| {
        let Counters { late_blocked_nanos, late_nanos, .. } = flow.down.counters;
        match late_blocked_nanos.zip(late_nanos) {
            // A flow that is over by then has waited for nothing.
            Some((_, 0)) => told(Some(0.0)),
            Some((blocked, late)) => share(blocked as f64, late as f64),
            None => Unknown,
        }
    })
}

pub(super) fn granted(context: &Context<'_>) -> Reading {
    up_counter(context, |counters| counters.granted_bytes)
}

/// The congestion window over the round-trip time.
pub(super) fn window_rate(context: &Context<'_>) -> Reading {
    first(context, |flow| told(flow.down.window_rate))
}

pub(super) fn window(context: &Context<'_>) -> Reading {
    first(context, |flow| told(flow.down.window_mean_bytes))
}

/// A round-trip time over the packets sent in it is the time between two of them.
pub(super) fn packet_time(context: &Context<'_>) -> Reading {
    first(context, |flow| {
        let gaps = flow.down.packets_sent.saturating_sub(1);
        share(flow.down.sending_seconds * 1e3, gaps as f64)
    })
}

/// The client's update in place `NUMBER`, counted from 1.
fn update<const NUMBER: usize>(context: &Context<'_>, read: fn(&CreditUpdate) -> f64) -> Reading {
    first(context, |flow| told(flow.up.credit_updates.get(NUMBER - 1).map(read)))
}

/// From the end of the handshake, of a flow that begins with the run.
fn after_handshake(flow: &FlowResult, at: Option<f64>) -> Option<f64> {
    Some(at? - flow.connect?)
}

pub(super) fn update_windows<const NUMBER: usize>(context: &Context<'_>) -> Reading {
    update::<NUMBER>(context, |update| update.windows)
}

pub(super) fn update_time<const NUMBER: usize>(context: &Context<'_>) -> Reading {
    first(context, |flow| {
        let update = flow.up.credit_updates.get(NUMBER - 1);
        told(after_handshake(flow, update.map(|update| update.at)))
    })
}

pub(super) fn update_advance<const NUMBER: usize>(context: &Context<'_>) -> Reading {
    update::<NUMBER>(context, |update| update.advance)
}

pub(super) fn window_reached<const PLACE: usize>(context: &Context<'_>) -> Reading {
    first(context, |flow| {
        flow.up.window_reached.map_or(Unknown, |times| reached(after_handshake(flow, times[PLACE])))
    })
}

pub(super) fn stalled(context: &Context<'_>) -> Reading {
    first(context, |flow| told(flow.stalled_seconds))
}

/// A figure of a video, which every run reaches that lives long enough.
fn of_video(context: &Context<'_>, read: fn(&FlowResult) -> Option<f64>) -> Reading {
    first(context, |flow| if flow.is_video() { reached(read(flow)) } else { Unknown })
}

pub(super) fn stalled_share(context: &Context<'_>) -> Reading {
    of_video(context, FlowResult::stalled_share)
}

pub(super) fn startup(context: &Context<'_>) -> Reading {
    of_video(context, FlowResult::startup)
}

pub(super) fn chunk_rate(context: &Context<'_>) -> Reading {
    of_video(context, FlowResult::chunk_rate)
}

/// A quantile of the latencies of a run that has come to its end: what has not would leave its slowest requests out.
fn latency(context: &Context<'_>, share: f64) -> Reading {
    first(context, |flow| flow.completion.map_or(Censored, |_| told(flow.latency(share))))
}

pub(super) fn latency_p50(context: &Context<'_>) -> Reading {
    latency(context, 0.5)
}

pub(super) fn latency_p95(context: &Context<'_>) -> Reading {
    latency(context, 0.95)
}

fn down_counter(context: &Context<'_>, read: impl FnOnce(&Counters) -> Option<u64>) -> Reading {
    first(context, |flow| told(read(&flow.down.counters).map(|count| count as f64)))
}

fn up_counter(context: &Context<'_>, read: impl FnOnce(&Counters) -> Option<u64>) -> Reading {
    first(context, |flow| told(read(&flow.up.counters).map(|count| count as f64)))
}

pub(super) fn acks_sent(context: &Context<'_>) -> Reading {
    up_counter(context, |counters| counters.acks_sent)
}

pub(super) fn pure_acks(context: &Context<'_>) -> Reading {
    up_counter(context, |counters| counters.pure_acks_sent)
}

pub(super) fn ack_eliciting_up(context: &Context<'_>) -> Reading {
    up_counter(context, |counters| counters.ack_eliciting_sent)
}

pub(super) fn ack_eliciting_down(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.ack_eliciting_sent)
}

pub(super) fn declared_lost(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.lost)
}

pub(super) fn spurious_losses(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.spuriously_lost)
}

pub(super) fn probe_timeouts(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.probe_timeouts)
}

pub(super) fn congestion_events(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.congestion_events)
}

pub(super) fn slow_start_packets(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.slow_start_packets)
}

pub(super) fn slow_start_window(context: &Context<'_>) -> Reading {
    down_counter(context, |counters| counters.slow_start_window)
}

pub(super) fn packets_down(context: &Context<'_>) -> Reading {
    first(context, |flow| Known(flow.down.packets_sent as f64))
}

pub(super) fn packets_up(context: &Context<'_>) -> Reading {
    first(context, |flow| Known(flow.up.packets_sent as f64))
}

pub(super) fn bytes_down(context: &Context<'_>) -> Reading {
    first(context, |flow| Known(flow.down.bytes_sent as f64))
}

pub(super) fn bytes_up(context: &Context<'_>) -> Reading {
    first(context, |flow| Known(flow.up.bytes_sent as f64))
}

fn foreground_goodputs(run: &RunResult) -> Vec<f64> {
    run.flows.iter().filter(|flow| !flow.is_background).map(|flow| flow.goodput).collect()
}

pub(super) fn jain(context: &Context<'_>) -> Reading {
    told(statistics::jain(&foreground_goodputs(context.run)))
}

pub(super) fn max_min_share(context: &Context<'_>) -> Reading {
    told(statistics::smallest_share(&foreground_goodputs(context.run)))
}

/// The background flows' common stack; `None` without them or if they differ.
fn background_stack(run: &RunResult) -> Option<&str> {
    let mut stacks = run.flows.iter().filter(|flow| flow.is_background).map(|flow| flow.stack.as_str());
    let stack = stacks.next()?;
    stacks.all(|other| other == stack).then_some(stack)
}

/// The run of the same seed in which the first flow is of the background's own kind.
fn with_its_own_kind<'a>(context: &Context<'a>) -> Option<&'a RunResult> {
    let stack = background_stack(context.run)?;
    let cell = cells::with_first_stack(context.experiment, context.cell, stack)?;
    cell.runs.iter().find(|run| run.seed == context.run.seed && background_stack(run) == Some(stack))
}

fn background_goodput(run: &RunResult) -> f64 {
    run.flows.iter().filter(|flow| flow.is_background).map(|flow| flow.goodput).sum()
}

fn background_loss(run: &RunResult) -> Reading {
    let mut all = DirectionResult::default();
    for flow in run.flows.iter().filter(|flow| flow.is_background) {
        all.packets_sent += flow.down.packets_sent;
        all.packets_lost += flow.down.packets_lost;
    }
    lost_of(&all)
}

pub(super) fn harm(context: &Context<'_>) -> Reading {
    let Some(own) = with_its_own_kind(context).map(background_goodput) else { return Unknown };
    share(own - background_goodput(context.run), own)
}

pub(super) fn harm_loss(context: &Context<'_>) -> Reading {
    let own = with_its_own_kind(context).map_or(Unknown, background_loss);
    match (background_loss(context.run), own) {
        (Known(ours), Known(own)) => Known(ours - own),
        _ => Unknown,
    }
}
