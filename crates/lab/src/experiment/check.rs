//! What a run's description must be beyond its form.

use posthaste_path::PathSpec;
use posthaste_units::Duration;

use crate::spec::{NetworkSpec, RunSpec};

/// Virtual time that a run may take.
const DEADLINES: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(86_400);
/// UDP payloads: RFC 9000 section 14 asks for the first, UDP permits the last.
const DATAGRAMS: std::ops::RangeInclusive<u16> = 1200..=65_527;
/// Flows of one run, copies counted.
const MAX_FLOWS: u64 = 256;
/// Connections of a warm-up.
const WARM_UPS: std::ops::RangeInclusive<u32> = 1..=64;
/// Finest interval of time series.
const MIN_SERIES: Duration = Duration::from_micros(100);

/// Checks what the types do not, and that everything can be built: a run of no virtual time shows that.
///
/// # Errors
/// What is wrong, and what would be right.
pub(super) fn runnable(spec: &RunSpec) -> Result<(), String> {
    ranges(spec)?;
    let instant = RunSpec { deadline: Duration::ZERO, series: None, ..spec.clone() };
    crate::run::run(&instant, 0, None).map(|_| ()).map_err(|error| error.to_string())
}

/// Checks ranges alone.
///
/// # Errors
/// What is wrong, and what would be right.
pub(super) fn ranges(spec: &RunSpec) -> Result<(), String> {
    if !DEADLINES.contains(&spec.deadline) {
        return Err("`deadline` is out of range: from 1ms to 86400s".to_owned());
    }
    if !DATAGRAMS.contains(&spec.datagram) {
        let (least, greatest) = (DATAGRAMS.start(), DATAGRAMS.end());
        return Err(format!("`datagram` is out of range: from {least} to {greatest} bytes"));
    }
    if spec.series.is_some_and(|interval| interval < MIN_SERIES) {
        return Err("`series` is out of range: at least 100us".to_owned());
    }
    let flows: u64 = spec.flows.iter().map(|flow| u64::from(flow.count)).sum();
    if flows == 0 || spec.flows.iter().any(|flow| flow.count == 0) {
        return Err("`flows` needs at least one, and each a `count` of at least 1".to_owned());
    }
    if flows > MAX_FLOWS {
        return Err(format!("`flows` has {flows}, copies counted; at most {MAX_FLOWS} are possible"));
    }
    if spec.flows.iter().all(|flow| flow.background) {
        return Err("`flows` has only background: a run must wait for one at least".to_owned());
    }
    let warm_ups = || spec.flows.iter().filter_map(|flow| flow.warm_up.as_ref());
    if warm_ups().any(|warm_up| !WARM_UPS.contains(&warm_up.connections)) {
        return Err("`warm-up` needs 1 to 64 `connections`".to_owned());
    }
    let paths =
        paths(&spec.network).into_iter().chain(warm_ups().filter_map(|warm_up| warm_up.path.as_ref()));
    paths.into_iter().try_for_each(path)
}

fn paths(network: &NetworkSpec) -> Vec<&PathSpec> {
    match network {
        NetworkSpec::Simple { path } => vec![path],
        NetworkSpec::Dumbbell { path, access } => std::iter::once(path).chain(access).collect(),
        NetworkSpec::RadioBackhaul { radio, backhaul } => vec![radio, backhaul],
        NetworkSpec::Chain { links } => links.iter().collect(),
    }
}

fn path(spec: &PathSpec) -> Result<(), String> {
    spec.validate().map_err(|error| error.to_string())
}

/// Checks a metric's name.
///
/// # Errors
/// With the names that there are.
pub(super) fn metric(name: &str) -> Result<(), String> {
    crate::metric::find(name).map(|_| ()).map_err(|error| error.to_string())
}

/// The metrics, for messages.
pub(super) fn metric_names() -> String {
    crate::metric::names().join(", ")
}
