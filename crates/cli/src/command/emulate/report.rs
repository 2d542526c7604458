//! What a run has counted, for people and for programs.

use posthaste_campaign::emulated::{Direction, Emulation, Second};
use posthaste_emulator::{DeviceKind, DirectionReport, TunnelReport, Validity};
use posthaste_units::{ByteCount, Duration};

use super::meter::dropped;

/// The file of `--json`.
pub(super) fn report(
    (path, seed, device): (&str, u64, DeviceKind),
    (exit_code, seconds): (u8, f64),
    report: &TunnelReport,
    validity: &Validity,
) -> Emulation {
    Emulation {
        path: path.to_owned(),
        seed,
        device: device.to_string(),
        exit_code,
        seconds,
        valid: validity.is_valid(),
        faults: validity.faults.clone(),
        down: direction(&report.down),
        up: direction(&report.up),
        missing_log_lines: report.missing_lines,
        second: None,
        left_at: None,
    }
}

/// The second path of a run.
pub(super) fn second((path, report): (&str, &TunnelReport)) -> Second {
    Second { path: path.to_owned(), down: direction(&report.down), up: direction(&report.up) }
}

fn direction(report: &DirectionReport) -> Direction {
    let DirectionReport { path, lateness, .. } = report;
    Direction {
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
