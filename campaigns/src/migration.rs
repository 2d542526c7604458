//! `cargo campaigns migration`: a download that loses its network half-way and goes on over another.
//!
//! `posthaste get` runs behind two emulated paths, each an interface of its own. The first is taken down; what the
//! download does then is its own affair. Measured is for how long its reader got nothing.

mod end;

use std::path::{Path, PathBuf};

use clap::Args;
use posthaste_campaign::emulated::Emulation;
use posthaste_campaign::quota::Quota;
use posthaste_report::markdown::head;
use posthaste_units::{ByteCount, Rng};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Result;
use crate::emulated;
use crate::median;
use crate::workspace::{build_posthaste, build_posthaste_debug, program};

pub(crate) use end::{End, play};

/// What is fetched.
const FILE: &str = "file";

/// Void runs are made again, for so many runs in all.
const MAX_ATTEMPTS: u64 = 3;

/// Bytes that reached the program before the interface went down come out of it within so many seconds.
const SETTLE: f64 = 0.05;

/// Of `cargo campaigns migration`.
#[derive(Debug, Args)]
#[command(
    after_help = "Two paths lead into one network namespace; the interface of the first is taken down while `posthaste get`
downloads. A run passes if every byte arrives in order, over one connection, and the rest came by the second path. The
gap is the longest time without data around that moment, as the reader of `get -o -` sees it; nobody is judged by it.
Void runs, in which the emulator was late or interfaces dropped packets, are made again with another seed; of what they
show only wrong bytes count.
Exit code: 0 if every run that counts passes."
)]
pub(crate) struct Arguments {
    /// The path that is left: a name or a TOML file, as for `posthaste emulate`
    #[arg(long, value_name = "NAME|FILE", default_value = "wifi-trace")]
    path: String,
    /// The path that is left for
    #[arg(long, value_name = "NAME|FILE", default_value = "lte-trace")]
    and: String,
    /// Seconds of download before the first path goes
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    leave_after: f64,
    /// What is downloaded
    #[arg(long, value_name = "BYTES", default_value = "40MB")]
    object: ByteCount,
    /// Runs that count
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// One quick run with a development build; a busy machine, or none that permits namespaces, is nobody's mistake
    #[arg(long)]
    short: bool,
    /// The `posthaste` to use, instead of a build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also write the runs here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What the end inside has seen.
#[derive(Debug, Serialize, Deserialize)]
struct Download {
    /// Seconds since 1970, and bytes read until then.
    reads: Vec<(f64, u64)>,
    sha256: String,
    connections: usize,
}

/// One run.
#[derive(Debug, Serialize)]
struct Sample {
    seed: u64,
    is_valid: bool,
    /// What came when; none if the run is void and its download did not get that far.
    #[serde(flatten)]
    figures: Option<Figures>,
    /// True if the bytes are not those of the file, which no busy machine excuses.
    is_corrupt: bool,
    /// What is wrong with it; empty if nothing is.
    faults: Vec<String>,
}

/// What a run has shown.
#[derive(Debug, Serialize)]
struct Figures {
    /// Bytes that had come when the first path went.
    before: u64,
    /// Bytes that came afterwards.
    after: u64,
    /// Seconds without data around that moment.
    gap: f64,
    /// Seconds from the first byte to the last.
    seconds: f64,
}

impl Sample {
    /// One that came to nothing on a machine that is too busy.
    fn void(seed: u64, why: &str) -> Self {
        let why = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        Self { seed, is_valid: false, figures: None, is_corrupt: false, faults: vec![why] }
    }

    /// True if the command fails by it.
    fn is_failure(&self) -> bool {
        self.is_corrupt || (self.is_valid && !self.faults.is_empty())
    }
}

/// Runs it and prints a table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let build = if arguments.short { build_posthaste_debug } else { build_posthaste };
    let program = program(arguments.program.as_deref(), build)?;
    if let Some(reason) = emulated::obstacle(&program)? {
        println!("skipped: {reason}");
        return Ok(arguments.short);
    }
    let runs = if arguments.short { 1 } else { arguments.runs };
    println!("from {} to {}", arguments.path, arguments.and);
    print!("{}", head(&["seed", "gap, s", "MB before", "MB after", "s in all", ""]));
    let mut samples = Vec::new();
    let mut counted = 0;
    let mut quota = Quota::new(runs, MAX_ATTEMPTS);
    while let Some(seeds) = quota.next(counted, 1) {
        let sample = measure(arguments, &program, *seeds.start())?;
        println!("{}", row(&sample));
        counted += u64::from(sample.is_valid);
        samples.push(sample);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&samples)?)?;
    }
    println!("{}", summary(&samples));
    Ok(!samples.iter().any(Sample::is_failure) && (counted == runs || arguments.short))
}

fn summary(samples: &[Sample]) -> String {
    let valid = samples.iter().filter(|sample| sample.is_valid);
    let gaps: Vec<f64> = valid.filter_map(|sample| Some(sample.figures.as_ref()?.gap)).collect();
    match gaps.len() {
        0 => "no run was valid: the machine is too busy to say how long the gap is".to_owned(),
        count => format!("median gap of the valid runs: {:.3} s ({count})", median(gaps)),
    }
}

fn row(sample: &Sample) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let validity = if sample.is_valid { "" } else { "void: the machine is too busy" };
    let faults = sample.faults.iter().map(String::as_str);
    let verdict = faults.chain([validity]).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    let figures = match &sample.figures {
        Some(Figures { before, after, gap, seconds }) => {
            format!("{gap:.3} | {:.1} | {:.1} | {seconds:.2}", megabytes(*before), megabytes(*after))
        }
        None => "- | - | - | -".to_owned(),
    };
    format!("| {} | {figures} | {verdict} |", sample.seed)
}

fn measure(arguments: &Arguments, program: &Path, seed: u64) -> Result<Sample> {
    let folder = tempfile::tempdir()?;
    let object = if arguments.short { ByteCount::new(6_000_000) } else { arguments.object };
    let leave_after = if arguments.short { 0.3 } else { arguments.leave_after };
    let expected = write_file(folder.path(), object)?;
    let mut command = emulated::command(program, seed);
    let (path, and) = (emulated::from_anywhere(&arguments.path)?, emulated::from_anywhere(&arguments.and)?);
    command.args(["--path", &path, "--and", &and]);
    command.args(["--leave-after", &leave_after.to_string()]);
    command.args(["--far", &emulated::server(program, "standard"), "--", "sh", "-c"]);
    let own = std::env::current_exe()?;
    command.arg(format!(
        "exec {}'{}' migration-end --program '{}'",
        emulated::priority(),
        own.display(),
        program.display()
    ));
    let run = emulated::Run::make(command, folder.path(), &format!("seed {seed}: the download"))?;
    let counts = run.counts()?;
    let sample = match run.report.exit_code {
        0 => judge(seed, &run.report, &serde_json::from_slice(&run.output)?, &expected),
        _ => Err(run.complaint.into()),
    };
    // A void run need not have come so far that there is something to judge.
    if counts { sample } else { Ok(sample.unwrap_or_else(|error| Sample::void(seed, &error.to_string()))) }
}

/// Makes the file that is served; its hash.
fn write_file(folder: &Path, object: ByteCount) -> Result<String> {
    let mut content = vec![0; usize::try_from(object.get())?];
    Rng::from_test_seed(1).fill(&mut content);
    std::fs::create_dir(folder.join("www"))?;
    std::fs::write(folder.join("www").join(FILE), &content)?;
    Ok(format!("{:x}", Sha256::digest(&content)))
}

fn judge(seed: u64, report: &Emulation, download: &Download, expected: &str) -> Result<Sample> {
    let left_at = report.left_at.ok_or("the download was over before the first path was left")?;
    let (first, last) = match &download.reads[..] {
        [first, .., last] => (*first, *last),
        _ => return Err("nothing was downloaded".into()),
    };
    if last.0 <= left_at {
        return Err("the download was over when the first path was left; it takes a larger --object".into());
    }
    let (gap, before) = gap(&download.reads, left_at);
    let after = last.1 - before;
    let mut faults = Vec::new();
    let is_corrupt = download.sha256 != expected;
    if is_corrupt {
        faults.push("the bytes are not those of the file".to_owned());
    }
    if download.connections != 1 {
        faults.push(format!("it took {} connections", download.connections));
    }
    // Some of what the reader got afterwards had come before, behind a gap in the order.
    if report.second.as_ref().is_none_or(|second| second.down.delivered_bytes < after / 2) {
        faults.push("the rest did not come by the second path".to_owned());
    }
    let figures = Some(Figures { before, after, gap, seconds: last.0 - first.0 });
    Ok(Sample { seed, is_valid: report.valid, figures, is_corrupt, faults })
}

/// The longest time without data that ended after `left_at` and began no later than shortly after it, and what had
/// been read by then.
fn gap(reads: &[(f64, u64)], left_at: f64) -> (f64, u64) {
    let around = reads.windows(2).filter_map(|pair| match pair {
        [before, next] if next.0 > left_at && before.0 <= left_at + SETTLE => {
            Some((next.0 - before.0, before.1))
        }
        _ => None,
    });
    around.max_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or((0.0, 0))
}

#[cfg(test)]
mod tests {
    use posthaste_campaign::emulated::{Direction, Second};

    use super::*;

    fn report(left_at: f64, delivered_bytes: u64) -> Emulation {
        let down = Direction { delivered_bytes, ..Direction::default() };
        let second = Some(Second { down, ..Second::default() });
        Emulation { valid: true, left_at: Some(left_at), second, ..Emulation::default() }
    }

    fn download(connections: usize) -> Download {
        // A longer silence long after the change is the path's own.
        let reads = vec![(10.0, 5), (11.0, 50), (11.01, 60), (11.5, 70), (20.0, 100)];
        Download { reads, sha256: "x".to_owned(), connections }
    }

    #[test]
    fn the_gap_is_the_one_around_the_change() {
        let sample = judge(1, &report(11.0, 40), &download(1), "x").unwrap();
        let figures = sample.figures.as_ref().unwrap();
        assert!((figures.gap - 0.49).abs() < 1e-9, "{sample:?}");
        assert_eq!((figures.before, figures.after, sample.faults.len()), (60, 40, 0));
        assert!((figures.seconds - 10.0).abs() < 1e-9);
        assert_eq!(row(&sample), "| 1 | 0.490 | 0.0 | 0.0 | 10.00 |  |");
        assert_eq!(summary(&[sample]), "median gap of the valid runs: 0.490 s (1)");
    }

    #[test]
    fn a_void_run_fails_nothing_but_by_wrong_bytes() {
        let void = Emulation { valid: false, exit_code: 1, ..report(11.0, 40) };
        let two_connections = judge(1, &void, &download(2), "x").unwrap();
        assert!(!two_connections.faults.is_empty() && !two_connections.is_failure());
        assert!(judge(1, &report(11.0, 40), &download(2), "x").unwrap().is_failure(), "valid");
        assert!(judge(1, &void, &download(1), "y").unwrap().is_failure(), "wrong bytes");
        let broken = Sample::void(2, "get has\ntimed out");
        assert!(!broken.is_failure());
        assert_eq!(row(&broken), "| 2 | - | - | - | - | get has; timed out; void: the machine is too busy |");
        assert!(summary(&[two_connections, broken]).starts_with("no run was valid"), "and so no median");
    }

    #[test]
    fn what_did_not_go_on_is_told() {
        let faults = |report: &Emulation, download: &Download, hash: &str| {
            judge(1, report, download, hash).unwrap().faults.join("; ")
        };
        assert_eq!(faults(&report(11.0, 40), &download(1), "y"), "the bytes are not those of the file");
        assert_eq!(faults(&report(11.0, 40), &download(2), "x"), "it took 2 connections");
        assert_eq!(faults(&report(11.0, 19), &download(1), "x"), "the rest did not come by the second path");
        assert!(judge(1, &report(21.0, 40), &download(1), "x").is_err(), "over before the change");
    }
}
