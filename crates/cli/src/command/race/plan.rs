//! What is raced: resolved and checked before anything starts.

use std::sync::Arc;
use std::time::Duration;

use posthaste_campaign::order;
use posthaste_endpoint::TransportConfig;
use posthaste_lab::limit::{cold_fetch, warm_fetch};
use posthaste_lab::peers::{Stack, UnknownStack};
use posthaste_lab::spec::WorkloadSpec;
use posthaste_path::PathSpec;
use posthaste_report::experiment_result::Limit;
use posthaste_schemes::selection;

use crate::args::{Race, Workload};
use crate::exit::{self, Failure};
use crate::{path_choice, printer, profile};

/// Profiles at most: all built-in ones, and as many again.
const MAX_RACERS: usize = 96;

/// Runs at a time, at most, unless told otherwise.
const MAX_LANES: f64 = 4.0;

/// Bits a second of downloads that a core carries (both ends, TLS and the relay) and yet is idle enough for timers
/// to be exact. Measured: at 100 Mbit/s a core is busy for a fifth of the time.
const BITS_PER_CORE: f64 = 100e6;

/// A download is given up after so many times its expected duration.
const PATIENCE: f64 = 10.0;

/// No download is given up earlier than this.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);

/// Exchanges of all runs together, at most: each takes 48 bytes.
const MAX_EXCHANGES: u64 = 2_000_000;

/// Largest UDP payload where only models race.
const MODEL_DATAGRAM: u16 = 1252;

/// What others are compared with, if it takes part.
const DEFAULT_BASELINE: &str = "standard";

/// A race, ready to begin.
#[derive(Debug)]
pub(super) struct Plan {
    /// The path as given on the command line.
    pub(super) path_name: String,
    pub(super) path: PathSpec,
    pub(super) workload: Workload,
    /// Largest UDP payload, which models keep to as well.
    pub(super) datagram: u16,
    pub(super) racers: Vec<Racer>,
    /// Index of the racer that others are compared with.
    pub(super) baseline: usize,
    pub(super) runs: u64,
    /// Of the first round's path.
    pub(super) seed: u64,
    pub(super) parallel: usize,
    /// Plain streams instead of HTTP/3.
    pub(super) is_bare: bool,
    pub(super) timeout: Duration,
    pub(super) limit: Limit,
    /// What one run will take, roughly.
    pub(super) expected: Duration,
}

/// One stack in the race.
#[derive(Debug, Clone)]
pub(super) struct Racer {
    pub(super) name: String,
    pub(super) runner: Runner,
}

/// How a racer's downloads are made.
#[derive(Debug, Clone)]
pub(super) enum Runner {
    /// A profile: real downloads over loopback, through a relay.
    Real(Arc<TransportConfig>),
    /// A stack of the lab: computed in virtual time over the same path with the same seed.
    Model(Box<Stack>),
}

impl Racer {
    /// The transport of a profile; `None` for a model.
    pub(super) fn transport(&self) -> Option<&Arc<TransportConfig>> {
        match &self.runner {
            Runner::Real(transport) => Some(transport),
            Runner::Model(_) => None,
        }
    }

    /// True if its times are computed, not measured.
    pub(super) fn is_model(&self) -> bool {
        matches!(self.runner, Runner::Model(_))
    }

    /// The name in tables and pages: models are marked.
    pub(super) fn label(&self) -> String {
        if self.is_model() { format!("{} (model)", self.name) } else { self.name.clone() }
    }
}

/// One run to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// Index of the racer.
    pub(super) racer: usize,
    /// The round, from 1.
    pub(super) round: u64,
    /// What its path draws from, the same for all racers of the round.
    pub(super) seed: u64,
}

impl Plan {
    /// A race over each path of the command line.
    pub(super) fn all(args: &Race) -> Result<Vec<Self>, Failure> {
        for (index, name) in args.path.iter().enumerate() {
            if args.path[..index].contains(name) {
                return Err(Failure::usage(format!("the path `{name}` is named twice")));
            }
        }
        args.path.iter().map(|path| Self::new(args, path)).collect()
    }

    /// The race over the path `path_name`.
    pub(super) fn new(args: &Race, path_name: &str) -> Result<Self, Failure> {
        let path = path_choice::find(path_name)?;
        let racers = racers(args)?;
        let baseline = baseline(args.baseline.as_deref(), &racers)?;
        let datagram = racers.iter().find_map(Racer::transport).map_or(MODEL_DATAGRAM, |transport| {
            u16::try_from(transport.max_datagram_size).unwrap_or(u16::MAX)
        });
        let workload = workload(args, racers.len())?;
        let limit = limit(&path, &workload, datagram);
        let expected = expected(&path, &workload, datagram, limit.seconds);
        let timeout = args.timeout.unwrap_or_else(|| expected.mul_f64(PATIENCE).max(LEAST_TIMEOUT));
        let parallel = args.parallel.map_or_else(|| lanes(workload.bytes(), expected), usize::from);
        Ok(Self {
            path_name: path_name.to_owned(),
            path,
            workload,
            datagram,
            parallel: parallel.min(racers.len() * usize::try_from(args.runs).unwrap_or(usize::MAX)),
            racers,
            baseline,
            runs: args.runs,
            is_bare: args.bare,
            seed: args.seed,
            timeout,
            limit,
            expected,
        })
    }

    /// All runs: round by round, each racer once, in an order that rotates, so that nobody always comes first.
    pub(super) fn order(&self) -> impl Iterator<Item = Start> + use<> {
        let (count, runs, first_seed) = (self.racers.len(), self.runs, self.seed);
        (1..=runs).flat_map(move |round| {
            let seed = order::seed_of(first_seed, round);
            order::of_round(count, round).map(move |racer| Start { racer, round, seed })
        })
    }

    /// What all of it will take, roughly.
    pub(super) fn estimate(&self) -> Duration {
        // Models take no time worth counting.
        let racers = self.racers.iter().filter(|racer| !racer.is_model()).count();
        let runs = (racers as u64 * self.runs).div_ceil(self.parallel as u64);
        self.expected.mul_f64(runs as f64)
    }

    /// The command that does this again for these racers.
    pub(super) fn command(&self, racers: &[&str]) -> String {
        // It is only named where it takes part, and where it would not be the baseline anyway.
        let baseline = &self.racers[self.baseline].name;
        let default = racers.iter().find(|name| **name == DEFAULT_BASELINE).or(racers.first());
        let is_named = racers.contains(&baseline.as_str()) && default != Some(&baseline.as_str());
        let baseline = is_named.then(|| format!(" --baseline {}", printer::shell_quote(baseline)));
        let what = match &self.workload.spec {
            WorkloadSpec::Bulk { object, .. } => format!("--object {}B", object.get()),
            _ => format!("--workload {}", printer::shell_quote(&self.workload.to_string())),
        };
        format!(
            "posthaste race --path {} {what} --profiles {}{}{} --runs {} --seed {} --parallel {}",
            printer::shell_quote(&self.path_name),
            printer::shell_quote(&racers.join(",")),
            baseline.unwrap_or_default(),
            if self.is_bare { " --bare" } else { "" },
            self.runs,
            self.seed,
            self.parallel
        )
    }

    /// The racers' names in tables and pages.
    pub(super) fn labels(&self) -> Vec<String> {
        self.racers.iter().map(Racer::label).collect()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.racers.iter().map(|racer| racer.name.as_str()).collect()
    }

    /// What a run does, for people: `1 MB`, `20 requests for 20 kB each`.
    pub(super) fn describe_workload(&self) -> String {
        match &self.workload.spec {
            WorkloadSpec::Video { rate, chunk, chunks, buffer } => format!(
                "a video of {chunks} chunks of {chunk} at {rate} with a buffer of {buffer}",
                rate = trimmed(&rate.to_string())
            ),
            WorkloadSpec::RequestResponse { object, count, think } => {
                let pause = if think.is_zero() { String::new() } else { format!(" with pauses of {think}") };
                format!("{count} requests for {} each{pause}", trimmed(&object.to_string()))
            }
            _ => trimmed(&self.workload.answer().to_string()),
        }
    }
}

/// `1.00 MB` as `1 MB`.
fn trimmed(text: &str) -> String {
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text.to_owned(),
    }
}

fn racers(args: &Race) -> Result<Vec<Racer>, Failure> {
    let mut racers: Vec<Racer> = Vec::new();
    for name in &selection::expand(&args.profiles) {
        let name = name.trim();
        if racers.iter().any(|racer| racer.name == name) {
            return Err(Failure::usage(format!("the profile `{name}` is named twice")));
        }
        if let Some(stack) = model(name)? {
            racers.push(Racer { name: name.to_owned(), runner: Runner::Model(Box::new(stack)) });
            continue;
        }
        let profile = profile::complete(name)?;
        let mut transport = profile::transport(profile, args.qlog.as_deref(), None)?;
        // In the lab all stacks keep to one size of datagrams.
        transport.mtu_discovery &= !args.bare;
        racers.push(Racer { name: name.to_owned(), runner: Runner::Real(Arc::new(transport)) });
    }
    if racers.len() > MAX_RACERS {
        return Err(Failure::usage(format!("more than {MAX_RACERS} profiles")));
    }
    Ok(racers)
}

/// The lab's stack of this name, for names with a colon such as `tcp:cubic`; profiles have none.
fn model(name: &str) -> Result<Option<Stack>, Failure> {
    if profile::is_file(name) || !name.contains(':') {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|error| match error {
        UnknownStack::NotBuilt { name } => exit::not_built(format_args!("the stack `{name}`")),
        other => Failure::usage(other),
    })
}

fn baseline(wanted: Option<&str>, racers: &[Racer]) -> Result<usize, Failure> {
    let find = |name: &str| racers.iter().position(|racer| racer.name == name);
    match wanted {
        Some(name) => find(name).ok_or_else(|| {
            let names: Vec<&str> = racers.iter().map(|racer| racer.name.as_str()).collect();
            Failure::usage(format!(
                "the baseline `{name}` does not take part; these do: {}",
                names.join(", ")
            ))
        }),
        None => Ok(find(DEFAULT_BASELINE).unwrap_or(0)),
    }
}

/// What the runs do, if that is not too much to remember.
fn workload(args: &Race, racers: usize) -> Result<Workload, Failure> {
    let workload = match args.object {
        Some(object) => args.workload.clone().with_object(object).map_err(Failure::usage)?,
        None => args.workload.clone(),
    };
    let exchanges = workload.exchanges().saturating_mul(args.runs).saturating_mul(racers as u64);
    if exchanges > MAX_EXCHANGES {
        let what = if matches!(workload.spec, WorkloadSpec::Video { .. }) { "chunks" } else { "requests" };
        return Err(Failure::usage(format!(
            "{exchanges} {what} in all runs together; the most is {MAX_EXCHANGES}: choose fewer --runs"
        )));
    }
    Ok(workload)
}

/// The limit of the figure that the table begins with.
fn limit(path: &PathSpec, workload: &Workload, datagram: u16) -> Limit {
    let bytes = workload.answer().get();
    match workload.spec {
        WorkloadSpec::RequestResponse { .. } => warm_fetch(path, bytes, datagram),
        _ => cold_fetch(path, bytes, datagram),
    }
}

/// Runs at a time: clients mostly wait, and as long as the processor does not notice, they may do so together.
fn lanes(bytes: u64, expected: Duration) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let rate = bytes as f64 * 8.0 / expected.as_secs_f64().max(1e-3);
    (cores * BITS_PER_CORE / rate).clamp(1.0, MAX_LANES) as usize
}

/// What one run will take, roughly: the time of all bytes, and of what the application itself takes. Only for estimates.
fn expected(path: &PathSpec, workload: &Workload, datagram: u16, limit: f64) -> Duration {
    let download = download(path, workload.bytes(), datagram, limit);
    let own: Duration = workload.spec.least_time(path.rtt).into();
    match workload.spec {
        WorkloadSpec::RequestResponse { .. } => download + own,
        WorkloadSpec::Video { .. } => download.max(own),
        _ => download,
    }
}

/// What one download will take, roughly: slow start up to the rate that the link or (Mathis et al. 1997) the loss
/// permits, then that rate.
fn download(path: &PathSpec, bytes: u64, datagram: u16, limit: f64) -> Duration {
    let (rtt, datagram) = (path.rtt.as_secs_f64().max(1e-4), f64::from(datagram));
    let loss = path.down_loss();
    let by_loss = 1.22 * datagram / (rtt * loss.max(1e-6).sqrt());
    let by_link = path.down_rate().map_or(f64::INFINITY, |rate| rate.as_bytes_per_second() as f64);
    let rate = by_loss.min(by_link);
    let rounds = (rate * rtt / (10.0 * datagram)).log2().clamp(0.0, 20.0);
    // Handshakes whose packets are lost wait for their timers; a tenth of a second stands for starting and ending.
    let handshake = 4.0 * loss;
    let seconds = (2.0 + rounds) * rtt + bytes as f64 / rate + handshake + 0.1;
    Duration::from_secs_f64(seconds.max(limit).min(86_400.0))
}

#[cfg(test)]
mod tests;
