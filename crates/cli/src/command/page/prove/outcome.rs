//! What the runs have shown: computed once, for text, JSON and the page.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_report::statistics::{Interval, Summary, summarise};
use serde::Serialize;

use super::super::plan::{PathPlan, Plan};
use super::super::protocol::Protocol;
use super::super::record::{Record, Temperature};
use super::super::tally::{Cell, Metric, Tally};
use super::site::{AS_IT_IS, EDGE, Site};
use crate::args::EdgeProve;
use crate::printer;

/// A site further away is remarked on.
const FAR: Duration = Duration::from_millis(5);

/// What is shown of a visit.
pub(super) const METRICS: [Metric; 3] = [Metric::Load, Metric::FirstPaint, Metric::LargestPaint];

/// Failed requests that are named.
const MOST_FAILURES: usize = 10;

/// Everything that is told.
pub(super) struct Outcome<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tally: &'a Tally,
    pub(super) site: &'a Site,
    pub(super) profile: &'a str,
    pub(super) rows: Vec<Row<'a>>,
    /// What readers must know, as sentences.
    pub(super) remarks: Vec<String>,
}

/// One figure of one kind of visit over one path. Times are in seconds.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row<'a> {
    #[serde(skip)]
    pub(super) plan: &'a PathPlan,
    pub(super) path: &'a str,
    pub(super) visit: &'static str,
    pub(super) metric: &'static str,
    pub(super) as_it_is: Option<Times>,
    pub(super) edge: Option<Times>,
    /// The share of the time as it is that is saved, by the median ratio of pairs; negative if the edge takes longer.
    pub(super) saved: Option<f64>,
    /// Its 95 % interval.
    pub(super) between: Option<Interval>,
    pub(super) verdict: Verdict,
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
}

/// How sure one can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Faster,
    Slower,
    MayBeChance,
    /// One side has no figure.
    Unknown,
}

impl<'a> Outcome<'a> {
    pub(super) fn new(plan: &'a Plan, tally: &'a Tally, site: &'a Site, args: &'a EdgeProve) -> Self {
        let mut rows = Vec::new();
        for path in &plan.paths {
            let [base, edge] = sides(plan, tally, path);
            for temperature in Temperature::ALL.into_iter().take(1 + usize::from(plan.is_warm_wanted)) {
                rows.extend(METRICS.map(|metric| row(path, temperature, metric, &base, &edge)));
            }
        }
        let remarks = remarks(plan, tally, site);
        Self { plan, tally, site, profile: &args.profile, rows, remarks }
    }

    /// Rows of one path.
    pub(super) fn of_path(&self, path: &PathPlan) -> impl Iterator<Item = &Row<'a>> {
        self.rows.iter().filter(move |row| row.path == path.name)
    }
}

impl Row<'_> {
    /// What was saved, for people.
    pub(super) fn saved_text(&self) -> String {
        let Some(saved) = self.saved else { return "-".to_owned() };
        let word = if saved >= 0.0 { "less" } else { "more" };
        let range = self.between.map(|it| format!(" ({:.0} to {:.0} %)", it.low * 100.0, it.high * 100.0));
        format!("{:.0} % {word}{}", saved.abs() * 100.0, range.unwrap_or_default())
    }
}

impl Verdict {
    /// For people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::MayBeChance => "may be chance",
            Self::Unknown => "unknown",
        }
    }
}

/// Runs as it is, and through the edge.
fn sides<'a>(plan: &Plan, tally: &'a Tally, path: &PathPlan) -> [Cell<'a>; 2] {
    [AS_IT_IS, EDGE].map(|side| tally.cell(&plan.pages[0].name, &path.name, side))
}

fn row<'a>(
    path: &'a PathPlan,
    temperature: Temperature,
    metric: Metric,
    base: &Cell<'_>,
    edge: &Cell<'_>,
) -> Row<'a> {
    let times = |cell: &Cell<'_>| cell.summary(temperature, metric).and_then(|summary| Times::of(&summary));
    let paired = edge.against_in(metric, base, temperature);
    let saved =
        paired.and_then(|paired| paired.ratio).filter(|ratio| ratio.is_finite()).map(|ratio| 1.0 - ratio);
    let between = paired
        .and_then(|paired| paired.interval)
        .map(|it| Interval { low: 1.0 - it.high, high: 1.0 - it.low });
    let verdict = match paired.filter(|_| saved.is_some()) {
        None => Verdict::Unknown,
        Some(paired) if paired.is_decidedly(false) => Verdict::Faster,
        Some(paired) if paired.is_decidedly(true) => Verdict::Slower,
        Some(_) => Verdict::MayBeChance,
    };
    Row {
        plan: path,
        path: &path.name,
        visit: temperature.name(),
        metric: metric.label(),
        as_it_is: times(base),
        edge: times(edge),
        saved,
        between: between.filter(|it| it.low.is_finite() && it.high.is_finite()),
        verdict,
    }
}

impl Times {
    /// `None` if most runs have failed. The greatest is that of runs that have not.
    fn of(summary: &Summary) -> Option<Self> {
        let Summary { p50, least, greatest, .. } = *summary;
        p50.is_finite().then_some(Self { median: p50, least, greatest })
    }
}

/// What the site is without the edge, for people.
pub(super) fn as_it_is(site: &Site) -> String {
    let version = match site.protocol {
        Protocol::H1 => "HTTP/1.1",
        _ => "HTTP/2",
    };
    let who = if site.is_https { "from the site itself" } else { "from a TLS server in front of it" };
    format!("as it is ({version} {who}, TCP with {})", site.controller.to_uppercase())
}

/// A remark on a site that is not here.
pub(super) fn far_away(site: &Site) -> Option<String> {
    (site.distance >= FAR).then(|| {
        format!(
            "the site is {} away from this machine, which both sides pay for in addition to the path: the figures are best on \
             the site's own server, with --resolve {}=127.0.0.1",
            printer::duration(site.distance),
            site.host
        )
    })
}

fn remarks(plan: &Plan, tally: &Tally, site: &Site) -> Vec<String> {
    let mut remarks: Vec<String> = far_away(site).into_iter().collect();
    remarks.push(if site.is_https {
        "As it is: the site's own TLS. The path ends on this machine, whose TCP carries it; the bytes are passed on unchanged."
            .to_owned()
    } else {
        "The site has no TLS, without which browsers use neither HTTP/2 nor HTTP/3: as it is means HTTP/2 from the edge's own \
         TCP side. Certificate, compression and proxying are the same on both sides."
            .to_owned()
    });
    let (others, broken) = (other_hosts(tally, site), failures(tally));
    if !others.is_empty() {
        let names: Vec<String> =
            others.iter().map(|(host, count)| format!("{} ({count})", printer::printable(host))).collect();
        remarks.push(format!(
            "Other hosts, with requests in a visit: {}. They came as they are on both sides, over TCP by the same path.",
            names.join(", ")
        ));
    }
    if !broken.is_empty() {
        let urls: Vec<String> =
            broken.iter().take(MOST_FAILURES).map(|url| printer::printable(url)).collect();
        remarks.push(format!("{} addresses failed in at least one visit: {}", broken.len(), urls.join(", ")));
    }
    for path in &plan.paths {
        for (cell, name) in sides(plan, tally, path).iter().zip([AS_IT_IS, "through the edge"]) {
            if let Some(reason) = cell.reason() {
                let (failed, all) = (cell.failed(), cell.runs.len());
                remarks.push(format!(
                    "{}, {name}: {failed} of {all} runs failed: {}",
                    path.name,
                    printer::printable(reason)
                ));
            }
            if let Some(void) = cell.void.first() {
                remarks.push(format!(
                    "{}, {name}: {} runs do not count, because this machine was too busy for the path: {}",
                    path.name,
                    cell.void.len(),
                    void.faults.join("; ")
                ));
            }
        }
    }
    remarks.extend(weights(tally));
    if tally.was_interrupted {
        remarks.push(format!(
            "Interrupted: {} of {} runs were made.",
            tally.records.len(),
            plan.order().len()
        ));
    }
    remarks
}

/// Bytes and requests of a cold visit, both sides.
fn weights(tally: &Tally) -> Option<String> {
    let of = |side: &str| {
        let visits = || {
            let here =
                tally.records.iter().filter(|record| record.key.contestant == side && record.is_valid());
            here.filter_map(|record| record.visit(Temperature::Cold))
        };
        let median = |values: Vec<f64>| summarise(&values).map(|summary| summary.p50);
        let bytes = median(visits().map(|visit| visit.bytes as f64).collect())?;
        Some((bytes / 1e3, median(visits().map(|visit| visit.objects.len() as f64).collect())?))
    };
    let ((before, requests), (after, ours)) = (of(AS_IT_IS)?, of(EDGE)?);
    Some(format!(
        "A cold visit has {before:.0} kB in {requests:.0} requests as it is, {after:.0} kB in {ours:.0} through the edge (medians)."
    ))
}

/// Hosts that are not the site's, with the greatest number of requests in a visit.
pub(super) fn other_hosts(tally: &Tally, site: &Site) -> BTreeMap<String, usize> {
    let own = format!("{}:{}", site.host, site.port);
    let mut all = BTreeMap::new();
    for visit in visits(tally) {
        let mut here: BTreeMap<String, usize> = BTreeMap::new();
        for object in &visit.objects {
            let uri: http::Uri = object.url.parse().unwrap_or_default();
            let default = if uri.scheme_str() == Some("http") { 80 } else { 443 };
            let Some(host) = uri.host() else { continue };
            let place = format!("{host}:{}", uri.port_u16().unwrap_or(default));
            if place != own {
                *here.entry(place.trim_end_matches(":443").to_owned()).or_default() += 1;
            }
        }
        for (host, count) in here {
            let most: &mut usize = all.entry(host).or_default();
            *most = count.max(*most);
        }
    }
    all
}

/// Requests that failed, or were answered by an error.
pub(super) fn failures(tally: &Tally) -> BTreeSet<&str> {
    let objects = visits(tally).flat_map(|visit| &visit.objects);
    objects.filter(|it| it.failure.is_some() || it.status >= 400).map(|it| it.url.as_str()).collect()
}

fn visits(tally: &Tally) -> impl Iterator<Item = &super::super::record::Visit> {
    tally.records.iter().filter(|record| Record::is_valid(record)).flat_map(|record| &record.seen.visits)
}
