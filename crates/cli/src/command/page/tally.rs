//! Figures of many runs.

use posthaste_report::statistics::{self, Paired, Summary};

use super::plan::Plan;
use super::record::{Record, Temperature, Visit};

/// All runs that were made.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) records: Vec<Record>,
    pub(super) was_interrupted: bool,
}

/// What is measured of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Load,
    FirstPaint,
    LargestPaint,
    Complete,
}

impl Metric {
    /// For people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Load => "page load",
            Self::FirstPaint => "FCP",
            Self::LargestPaint => "LCP",
            Self::Complete => "last byte",
        }
    }

    fn of(self, visit: &Visit) -> Option<f64> {
        match self {
            Self::Load => Some(visit.load),
            Self::FirstPaint => visit.first_paint,
            Self::LargestPaint => visit.largest_paint,
            Self::Complete => Some(visit.complete),
        }
    }
}

/// Runs of one page, path and contestant.
#[derive(Debug, Default)]
pub(super) struct Cell<'a> {
    /// Runs that count, by round.
    pub(super) runs: Vec<&'a Record>,
    /// Runs whose emulation was worthless at every attempt.
    pub(super) void: Vec<&'a Record>,
}

impl Tally {
    pub(super) fn cell(&self, page: &str, path: &str, contestant: &str) -> Cell<'_> {
        let mut cell = Cell::default();
        let here = self.records.iter().filter(|record| {
            record.key.page == page && record.key.path == path && record.key.contestant == contestant
        });
        for record in here {
            if record.is_valid() { &mut cell.runs } else { &mut cell.void }.push(record);
        }
        cell.runs.sort_by_key(|record| record.key.round);
        cell
    }

    /// Runs that have not loaded the page, or whose emulation was worthless.
    pub(super) fn bad_runs(&self) -> usize {
        self.records.iter().filter(|record| !record.is_valid() || record.seen.failure.is_some()).count()
    }

    /// Why the record's contestant has not loaded its page, if it never has.
    pub(super) fn hopeless_reason<'a>(&self, record: &'a Record) -> Option<&'a str> {
        let has_loaded = |earlier: &Record| {
            earlier.key.contestant == record.key.contestant && earlier.seen.failure.is_none()
        };
        record.seen.failure.as_deref().filter(|_| !self.records.iter().any(has_loaded))
    }

    /// Takes a run; it replaces one in its place that was void, and counts its attempts.
    pub(super) fn add(&mut self, mut record: Record) -> &Record {
        if let Some(index) = self.records.iter().position(|earlier| earlier.key == record.key) {
            record.voided += self.records.remove(index).voided + 1;
        }
        let index = self.records.len();
        self.records.push(record);
        &self.records[index]
    }

    /// Attempts whose emulation was worthless.
    pub(super) fn voided(&self) -> u64 {
        self.records.iter().map(|record| record.voided + u64::from(!record.is_valid())).sum()
    }

    /// What the downloads beside the runs that count got together, bits per second: the median.
    pub(super) fn background_rate(&self) -> Option<f64> {
        let valid = self.records.iter().filter(|record| record.is_valid());
        let rates: Vec<f64> = valid.filter_map(|record| record.seen.background_rate).collect();
        statistics::summarise(&rates).map(|summary| summary.p50)
    }

    /// The worst 99th percentile of lateness among runs that count, in seconds.
    pub(super) fn lateness(&self) -> Option<f64> {
        let valid = self.records.iter().filter(|record| record.is_valid());
        valid.filter_map(|record| record.lateness).max_by(f64::total_cmp)
    }

    /// Browsers, each once.
    pub(super) fn browsers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .records
            .iter()
            .map(|record| record.seen.browser.as_str())
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Cell<'_> {
    /// Runs that have not loaded the page.
    pub(super) fn failed(&self) -> usize {
        self.runs.iter().filter(|record| record.seen.failure.is_some()).count()
    }

    /// The first reason for one.
    pub(super) fn reason(&self) -> Option<&str> {
        self.runs.iter().find_map(|record| record.seen.failure.as_deref())
    }

    /// Each run's seed and figure; infinite where it failed.
    pub(super) fn values(&self, temperature: Temperature, metric: Metric) -> Vec<(u64, f64)> {
        let value = |record: &&Record| {
            let value = record.visit(temperature).and_then(|visit| metric.of(visit));
            (record.seed, value.unwrap_or(f64::INFINITY))
        };
        self.runs.iter().map(value).collect()
    }

    pub(super) fn summary(&self, temperature: Temperature, metric: Metric) -> Option<Summary> {
        let values: Vec<f64> = self.values(temperature, metric).into_iter().map(|(_, value)| value).collect();
        statistics::summarise(&values)
    }

    /// Load times over those of `base`, seed by seed; `None` where one of both has no median.
    pub(super) fn against(&self, base: &Self, temperature: Temperature) -> Option<Paired> {
        self.against_in(Metric::Load, base, temperature)
    }

    /// The same for another figure.
    pub(super) fn against_in(&self, metric: Metric, base: &Self, temperature: Temperature) -> Option<Paired> {
        let values = |cell: &Self| cell.values(temperature, metric);
        for cell in [self, base] {
            cell.summary(temperature, metric).filter(|summary| summary.p50.is_finite())?;
        }
        statistics::compare_paired(&values(self), &values(base))
    }

    /// The run whose load time is the median (the lower of two).
    pub(super) fn median_run(&self, temperature: Temperature) -> Option<&Record> {
        let mut loaded: Vec<(&Record, f64)> =
            self.runs.iter().filter_map(|record| Some((*record, record.visit(temperature)?.load))).collect();
        loaded.sort_by(|one, other| one.1.total_cmp(&other.1));
        loaded.get(loaded.len().checked_sub(1)? / 2).map(|(record, _)| *record)
    }

    /// Median of how long the document's connection took, in seconds; zero if the request left with its first packet.
    pub(super) fn connect(&self, temperature: Temperature) -> Option<f64> {
        let waits: Vec<f64> = self
            .runs
            .iter()
            .filter_map(|record| {
                let document = record.visit(temperature)?.objects.first()?;
                let (start, end) = document.connecting?;
                Some(end.min(document.sent.unwrap_or(end)) - start)
            })
            .collect();
        statistics::summarise(&waits).map(|summary| summary.p50)
    }
}

/// The contestant that others are set against: the first that is not ours, else the first.
pub(super) fn baseline(plan: &Plan) -> usize {
    plan.contestants.iter().position(|contestant| !is_ours(&contestant.name)).unwrap_or(0)
}

pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with("posthaste")
}

#[cfg(test)]
pub(super) mod tests;
