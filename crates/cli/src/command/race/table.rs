//! The result for people.

use std::fmt::Write as _;
use std::time::Duration;

use posthaste_emulator::Lateness;

use super::plan::{Plan, Racer};
use super::tally::{Standing, Tally};
use crate::printer::{self, printable};

/// Lateness at the 99th percentile from which on the figures are doubtful.
pub(super) const DOUBTFUL_LATENESS: posthaste_units::Duration = posthaste_units::Duration::from_millis(1);

/// Failed runs whose reasons are shown.
const SHOWN_FAILURES: usize = 5;

/// The table and what must be known beside it.
pub(super) fn table(plan: &Plan, tally: &Tally) -> String {
    let standings = tally.standings(plan);
    let mut text = rows(plan, &standings);
    let _ = writeln!(text, "\nLimit   {}: {}", time(plan.limit.seconds), plan.limit.terms);
    if plan.racers.iter().any(Racer::is_model) {
        let _ = writeln!(text, "Models  computed in virtual time over the same path with the same seeds");
    }
    let _ = writeln!(text, "Timing  {}", trust(&tally.lateness(), tally.missed()));
    for warning in warnings(tally) {
        let _ = writeln!(text, "        \x1b[33m{warning}\x1b[0m");
    }
    text + &failures(plan, tally)
}

fn rows(plan: &Plan, standings: &[Standing]) -> String {
    let names: Vec<String> = plan.labels().iter().map(|name| printable(name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max("profile".len());
    let has_failures = standings.iter().any(|standing| standing.failed > 0);
    let best = standings.iter().filter_map(|standing| standing.median).min_by(f64::total_cmp);
    let baseline = names.get(plan.baseline).map_or("", String::as_str);
    let mut text = format!("\x1b[1m{:width$}  {:>5}", "profile", "runs");
    if has_failures {
        let _ = write!(text, "  {:>6}", "failed");
    }
    let _ = write!(text, "  {:>8}  {:>8}  {:>7}", "median", "p95", "x limit");
    if standings.len() > 1 {
        let _ = write!(text, "  saves against {baseline}");
    }
    text.push_str("\x1b[0m\n");
    for (name, standing) in names.iter().zip(standings) {
        let _ = write!(text, "{name:width$}  {:>5}", standing.completed + standing.failed);
        if has_failures {
            let _ = write!(text, "  {:>6}", standing.failed);
        }
        let median = format!("{:>8}", optional(standing.median, time));
        let is_best = standing.median.is_some() && standing.median == best;
        let median = if is_best { format!("\x1b[1;32m{median}\x1b[0m") } else { median };
        let ratio = optional(standing.ratio_to_limit, |ratio| format!("{ratio:.2}"));
        let _ = write!(text, "  {median}  {:>8}  {ratio:>7}", optional(standing.p95, time));
        if standings.len() > 1 {
            let _ = write!(text, "  {}", saves(standing));
        }
        text.push('\n');
    }
    text
}

/// `24 % (10 to 35 %)`.
fn saves(standing: &Standing) -> String {
    let Some(saving) = &standing.saving else { return "-".to_owned() };
    let percent = |share: f64| {
        let rounded = (share * 100.0).round();
        // No negative zero.
        if rounded == 0.0 { 0.0 } else { rounded }
    };
    let text =
        format!("{:>3} % ({} to {} %)", percent(saving.share), percent(saving.low), percent(saving.high));
    if saving.low > 0.0 {
        format!("\x1b[32m{text}\x1b[0m")
    } else if saving.high < 0.0 {
        format!("\x1b[31m{text}\x1b[0m")
    } else {
        format!("{text}, which may be chance")
    }
}

/// How much the times can be trusted.
pub(super) fn trust(lateness: &Lateness, missed: u64) -> String {
    let time = |duration: posthaste_units::Duration| printer::duration(duration.into());
    let missed = match missed {
        0 => String::new(),
        count => format!("; the system itself lost {count} packets"),
    };
    format!(
        "real time on this machine; packets left the emulated path {} late on average, {} at p99, {} at most{missed}",
        time(lateness.mean),
        time(lateness.p99),
        time(lateness.max)
    )
}

/// What makes the figures doubtful.
pub(super) fn warnings(tally: &Tally) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if tally.lateness().p99 > DOUBTFUL_LATENESS {
        warnings
            .push("the machine was too busy for exact times: stop other programs, or choose --parallel 1");
    }
    if tally.missed() > 0 {
        warnings.push(
            "packets were lost that the path did not lose: choose --parallel 1, or raise net.core.rmem_max",
        );
    }
    warnings
}

fn failures(plan: &Plan, tally: &Tally) -> String {
    let mut text = String::new();
    let failed = tally.all_runs().filter_map(|run| Some((run, run.outcome.as_ref().err()?)));
    for (run, reason) in failed.take(SHOWN_FAILURES) {
        let name = printable(&plan.racers[run.start.racer].name);
        let reason = printable(reason);
        let _ = writeln!(
            text,
            "Failed  {name} in round {}, after {} bytes: {reason}",
            run.start.round, run.bytes
        );
    }
    let more = tally.failures().saturating_sub(SHOWN_FAILURES);
    if more > 0 {
        let _ = writeln!(text, "Failed  {more} more");
    }
    text
}

fn time(seconds: f64) -> String {
    printer::duration(Duration::from_secs_f64(seconds))
}

fn optional(value: Option<f64>, show: impl FnOnce(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}
