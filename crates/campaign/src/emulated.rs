//! One run through `posthaste emulate`: the report that it writes and that campaigns read.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file of `posthaste emulate --json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// The path, as it was named.
    pub path: String,
    /// The seed of its random events.
    pub seed: u64,
    /// What was at both ends: `tun` or `veth`.
    pub device: String,
    /// COMMAND's, as a shell would report it.
    pub exit_code: u8,
    /// Seconds that COMMAND took.
    pub seconds: f64,
    /// The run shows the path; otherwise it is void.
    pub valid: bool,
    /// Why the run is void; empty if it is not.
    pub faults: Vec<String>,
    /// Towards COMMAND.
    pub down: Direction,
    /// From COMMAND.
    pub up: Direction,
    /// Lines that the packet log lacks.
    pub missing_log_lines: u64,
    /// The path of `--and`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<Second>,
    /// When the first path was taken down, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<f64>,
}

/// The path of `--and`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// As it was named.
    pub path: String,
    /// Towards COMMAND.
    pub down: Direction,
    /// From COMMAND.
    pub up: Direction,
}

/// One direction: counts of packets, and times in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Packets that arrived at the path.
    pub offered: u64,
    /// Packets that left it.
    pub delivered: u64,
    /// Bytes of these.
    pub delivered_bytes: u64,
    /// Lost by the medium.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Dropped by the queue's discipline.
    pub managed: u64,
    /// Marked with ECN.
    pub marked: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Delivered with a wrong bit.
    pub corrupted: u64,
    /// Delivered out of order.
    pub reordered: u64,
    /// The queue at its longest.
    pub peak_queue_bytes: u64,
    /// Dropped by interfaces, outside the model.
    pub unaccounted: u64,
    /// For an interface that somebody had taken down.
    pub undeliverable: u64,
    /// Mean lateness of packets.
    pub lateness_mean: f64,
    /// Its 99th percentile.
    pub lateness_p99: f64,
    /// Its greatest value.
    pub lateness_max: f64,
    /// The direction's thread had real-time priority.
    pub real_time: bool,
}

impl Emulation {
    /// Reads a report.
    ///
    /// # Errors
    /// If there is none, or it is of another kind.
    pub fn read(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(file)?)?)
    }

    /// The greater 99th percentile of lateness of both directions, in seconds.
    pub fn lateness(&self) -> f64 {
        self.down.lateness_p99.max(self.up.lateness_p99)
    }

    /// Packets that the path has lost or dropped towards COMMAND.
    pub fn dropped(&self) -> u64 {
        self.down.lost + self.down.overflowed + self.down.managed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        let down =
            Direction { lost: 1, overflowed: 2, managed: 4, lateness_p99: 2e-4, ..Direction::default() };
        let up = Direction { lost: 8, lateness_p99: 3e-4, ..Direction::default() };
        let report = Emulation { valid: true, down, up, ..Emulation::default() };
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains("second\"") && !text.contains("left_at"), "one path: {text}");
        std::fs::write(&file, text).unwrap();
        let read = Emulation::read(&file).unwrap();
        assert_eq!((read.dropped(), read.lateness()), (7, 3e-4));
        assert_eq!(read, report);
        std::fs::write(&file, "{}").unwrap();
        assert!(Emulation::read(&file).is_err());
    }
}
