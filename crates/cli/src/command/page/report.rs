//! The result for programs. Times are in seconds.

use serde::Serialize;

use super::build;
use super::plan::Plan;
use super::record::{Record, Temperature};
use super::tally::{Metric, Tally};

/// All that `--json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    version: &'static str,
    browsers: Vec<&'a str>,
    /// Digests of the builds of this program that the runs are of.
    builds: Vec<&'a str>,
    was_interrupted: bool,
    /// Attempts whose emulation was worthless.
    voided: u64,
    cells: Vec<CellReport<'a>>,
    /// Every run with every request.
    runs: &'a [Record],
}

#[derive(Debug, Serialize)]
struct CellReport<'a> {
    page: &'a str,
    path: &'a str,
    contestant: &'a str,
    protocol: &'static str,
    visit: &'static str,
    runs: usize,
    failed: usize,
    void: usize,
    load: Option<Figures>,
    first_contentful_paint: Option<Figures>,
    largest_contentful_paint: Option<Figures>,
    complete: Option<Figures>,
    connect: Option<f64>,
}

/// Null where it is beyond what was waited for.
#[derive(Debug, Serialize)]
struct Figures {
    median: Option<f64>,
    p95: Option<f64>,
}

impl<'a> Report<'a> {
    pub(super) fn new(plan: &'a Plan, tally: &'a Tally) -> Self {
        let mut cells = Vec::new();
        for page in &plan.pages {
            for path in &plan.paths {
                for contestant in &plan.contestants {
                    let cell = tally.cell(&page.name, &path.name, &contestant.name);
                    for temperature in Temperature::ALL.into_iter().take(1 + usize::from(plan.is_warm_wanted))
                    {
                        let figures = |metric| {
                            cell.summary(temperature, metric).map(|summary| Figures {
                                median: Some(summary.p50).filter(|time| time.is_finite()),
                                p95: Some(summary.p95).filter(|time| time.is_finite()),
                            })
                        };
                        cells.push(CellReport {
                            page: &page.name,
                            path: &path.name,
                            contestant: &contestant.name,
                            protocol: contestant.protocol.alpn(),
                            visit: temperature.name(),
                            runs: cell.runs.len(),
                            failed: cell.failed(),
                            void: cell.void.len(),
                            load: figures(Metric::Load),
                            first_contentful_paint: figures(Metric::FirstPaint),
                            largest_contentful_paint: figures(Metric::LargestPaint),
                            complete: figures(Metric::Complete),
                            connect: cell.connect(temperature),
                        });
                    }
                }
            }
        }
        Self {
            version: env!("CARGO_PKG_VERSION"),
            browsers: tally.browsers(),
            builds: build::programs(&tally.records),
            was_interrupted: tally.was_interrupted,
            voided: tally.voided(),
            cells,
            runs: &tally.records,
        }
    }
}
