//! What a run has counted, for people and for programs.

use posthaste_emulator::{DeviceKind, DirectionReport, TunnelReport, Validity};
use posthaste_units::{ByteCount, Duration};
use serde::Serialize;

use super::meter::dropped;

/// The file of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    path: &'a str,
    seed: u64,
    /// What was at both ends: `tun` or `veth`.
    device: String,
    /// COMMAND's, as a shell would report it.
    exit_code: u8,
    seconds: f64,
    valid: bool,
    faults: &'a [String],
    down: Direction,
    up: Direction,
    missing_log_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    second: Option<Second<'a>>,
    /// When the first path was taken down, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_at: Option<f64>,
}

/// The path of `--and`.
#[derive(Debug, Serialize)]
struct Second<'a> {
    path: &'a str,
    down: Direction,
    up: Direction,
}

/// Counts of packets, and times in seconds.
#[derive(Debug, Serialize)]
struct Direction {
    offered: u64,
    delivered: u64,
    delivered_bytes: u64,
    lost: u64,
    overflowed: u64,
    managed: u64,
    marked: u64,
    duplicated: u64,
    corrupted: u64,
    reordered: u64,
    peak_queue_bytes: u64,
    /// Dropped by interfaces, outside the model.
    unaccounted: u64,
    /// For an interface that somebody had taken down.
    undeliverable: u64,
    lateness_mean: f64,
    lateness_p99: f64,
    lateness_max: f64,
    real_time: bool,
}

impl From<&DirectionReport> for Direction {
    fn from(report: &DirectionReport) -> Self {
        let DirectionReport { path, lateness, .. } = report;
        Self {
            offered: path.offered,
            delivered: path.delivered,
            delivered_bytes: path.delivered_bytes,
            lost: path.lost,
            overflowed: path.overflowed,
            managed: path.managed,
            marked: path.marked,
            duplicated: path.duplicated,
            corrupted: path.corrupted,
            reordered: path.reordered,
            peak_queue_bytes: path.peak_queue_bytes.get(),
            unaccounted: report.unaccounted,
            undeliverable: report.undeliverable,
            lateness_mean: lateness.mean.as_secs_f64(),
            lateness_p99: lateness.p99.as_secs_f64(),
            lateness_max: lateness.max.as_secs_f64(),
            real_time: report.is_real_time,
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(
        (path, seed, device): (&'a str, u64, DeviceKind),
        (exit_code, seconds): (u8, f64),
        report: &TunnelReport,
        validity: &'a Validity,
    ) -> Self {
        Self {
            path,
            seed,
            device: device.to_string(),
            exit_code,
            seconds,
            valid: validity.is_valid(),
            faults: &validity.faults,
            down: (&report.down).into(),
            up: (&report.up).into(),
            missing_log_lines: report.missing_lines,
            second: None,
            left_at: None,
        }
    }

    /// The same with a second path, and when the first was left.
    pub(super) fn with_second(
        mut self,
        second: Option<(&'a str, &TunnelReport)>,
        left_at: Option<f64>,
    ) -> Self {
        self.second = second.map(|(path, report)| Second {
            path,
            down: (&report.down).into(),
            up: (&report.up).into(),
        });
        self.left_at = left_at;
        self
    }
}

/// Some lines for people.
pub(super) fn summary(report: &TunnelReport) -> String {
    let scheduling = if report.down.is_real_time && report.up.is_real_time {
        "with real-time scheduling"
    } else {
        "without real-time scheduling, which takes root or a limit on rtprio (ulimit -r)"
    };
    let missing = match report.missing_lines {
        0 => String::new(),
        missing => format!("\nthe log lacks {missing} lines: the disk did not keep up"),
    };
    format!("{}\n{}\n{scheduling}{missing}", line("down", &report.down), line("up  ", &report.up))
}

fn line(name: &str, report: &DirectionReport) -> String {
    let DirectionReport { path, lateness, unaccounted, .. } = report;
    let late = |duration: Duration| format!("{:.3} ms", duration.as_millis_f64());
    format!(
        "{name} {} packets ({}), {} dropped by the path, {} marked, queue up to {}; late by {} at p99, {} at most; \
         {unaccounted} dropped outside the model",
        path.delivered,
        ByteCount::new(path.delivered_bytes),
        dropped(report),
        path.marked,
        path.peak_queue_bytes,
        late(lateness.p99),
        late(lateness.max),
    )
}
