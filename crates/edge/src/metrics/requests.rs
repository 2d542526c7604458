//! Requests, counted by site and version of HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use posthaste_service::{AccessRecord, Outcome, Protocol};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use super::page::{Labels, Page};

/// Bounds of ranges in seconds.
pub(super) const SECONDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

/// Stands for the site where no configured one is asked for: names that clients make up are not labels.
const NO_SITE: &str = "none";

/// Classes of statuses; the last is for requests without a response.
pub(super) const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "none"];

/// Urgencies of RFC 9218.
const URGENCIES: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// All requests. The sites are those of the configurations that were in use.
#[derive(Debug, Default)]
pub(super) struct Requests {
    by_kind: RwLock<BTreeMap<Kind, Arc<Counted>>>,
    /// Streams of requests over HTTP/3, by the urgency of the response.
    by_urgency: [AtomicU64; URGENCIES.len()],
}

/// A site and a version of HTTP.
pub(super) type Kind = (Option<Arc<str>>, Protocol);

/// Requests of one kind.
#[derive(Debug)]
pub(super) struct Counted {
    by_class: [AtomicU64; CLASSES.len()],
    /// Given up by the client.
    aborted: AtomicU64,
    /// Not answered whole by the service.
    failed: AtomicU64,
    bytes: AtomicU64,
    first_byte: Histogram,
    whole: Histogram,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            by_class: Default::default(),
            aborted: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            first_byte: Histogram::new(SECONDS),
            whole: Histogram::new(SECONDS),
        }
    }
}

/// Sums for [`Status`](super::Status).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) by_class: [u64; CLASSES.len()],
    pub(super) incomplete: u64,
    pub(super) bytes: u64,
}

impl Sums {
    pub(super) fn all(&self) -> u64 {
        self.by_class.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (own, other) in self.by_class.iter_mut().zip(other.by_class) {
            *own += other;
        }
        self.incomplete += other.incomplete;
        self.bytes += other.bytes;
    }
}

impl Requests {
    pub(super) fn record(&self, record: &AccessRecord<'_>) {
        let counted = self.of((record.remarks.site().cloned(), record.protocol));
        let class = record.status.map_or(CLASSES.len() - 1, |status| usize::from(status.as_u16() / 100) - 1);
        let count = |counter: &AtomicU64, by| counter.fetch_add(by, Ordering::Relaxed);
        count(&counted.by_class[class.min(CLASSES.len() - 1)], 1);
        count(&counted.bytes, record.body_bytes);
        match record.outcome {
            Outcome::Complete => 0,
            Outcome::Aborted(_) => count(&counted.aborted, 1),
            Outcome::Failed(_) => count(&counted.failed, 1),
        };
        if let Some(streams) = record.urgency.and_then(|urgency| self.by_urgency.get(usize::from(urgency))) {
            count(streams, 1);
        }
        counted.whole.observe(record.duration.as_secs_f64());
        if let Some(first_byte) = record.first_byte {
            counted.first_byte.observe(first_byte.as_secs_f64());
        }
    }

    fn of(&self, kind: Kind) -> Arc<Counted> {
        // A panic elsewhere leaves the map whole.
        if let Some(counted) = self.by_kind.read().unwrap_or_else(PoisonError::into_inner).get(&kind) {
            return Arc::clone(counted);
        }
        Arc::clone(self.by_kind.write().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default())
    }

    fn kinds(&self) -> Vec<(Kind, Arc<Counted>)> {
        let by_kind = self.by_kind.read().unwrap_or_else(PoisonError::into_inner);
        by_kind.iter().map(|(kind, counted)| (kind.clone(), Arc::clone(counted))).collect()
    }

    /// Sums by site and version, in this order.
    pub(super) fn sums(&self) -> Vec<(Kind, Sums)> {
        self.kinds().into_iter().map(|(kind, counted)| (kind, counted.sums())).collect()
    }

    pub(super) fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let kinds = self.kinds();
        let mut labels = Vec::new();
        for ((site, protocol), counted) in &kinds {
            let own = [("site", site.as_deref().unwrap_or(NO_SITE)), ("protocol", protocol.name())];
            labels.push((own, counted));
        }
        let mut by_class = Vec::new();
        for (own, counted) in &labels {
            for (class, number) in CLASSES.iter().zip(&counted.by_class) {
                let number = number.load(Ordering::Relaxed);
                if number > 0 {
                    by_class.push(([own[0], own[1], ("status", *class)], number));
                }
            }
        }
        let by_class: Vec<_> =
            by_class.iter().map(|(own, number)| (&own[..] as Labels<'_>, *number)).collect();
        page.counter("requests", "Requests that are over", &by_class)?;
        let mut incomplete = Vec::new();
        for (own, counted) in &labels {
            for (by, number) in [("client", &counted.aborted), ("service", &counted.failed)] {
                incomplete.push(([own[0], own[1], ("by", by)], number.load(Ordering::Relaxed)));
            }
        }
        let incomplete: Vec<_> =
            incomplete.iter().map(|(own, number)| (&own[..] as Labels<'_>, *number)).collect();
        page.counter("incomplete_requests", "Requests that were given up or failed", &incomplete)?;
        let bytes: Vec<_> = labels
            .iter()
            .map(|(own, counted)| (&own[..] as Labels<'_>, counted.bytes.load(Ordering::Relaxed)))
            .collect();
        page.bytes("response", "Bytes of response bodies handed to the transport", &bytes)?;
        let first: Vec<_> = labels.iter().map(|(own, it)| (&own[..] as Labels<'_>, &it.first_byte)).collect();
        let help = "From a request's beginning to the response's head";
        page.histogram(("first_byte", help, Some(&Unit::Seconds)), &first)?;
        let whole: Vec<_> = labels.iter().map(|(own, it)| (&own[..] as Labels<'_>, &it.whole)).collect();
        let help = "From a request's beginning to the response's end";
        page.histogram(("request", help, Some(&Unit::Seconds)), &whole)?;
        let urgencies = URGENCIES.each_ref().map(|urgency| [("urgency", *urgency)]);
        let streams = self.by_urgency.each_ref().map(|streams| streams.load(Ordering::Relaxed));
        let streams: Vec<_> = urgencies.iter().map(|own| &own[..] as Labels<'_>).zip(streams).collect();
        let help = "Requests over HTTP/3 that are over, by the urgency of their response (RFC 9218)";
        page.counter("http3_streams", help, &streams)
    }
}

impl Counted {
    fn sums(&self) -> Sums {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Sums {
            by_class: self.by_class.each_ref().map(read),
            incomplete: read(&self.aborted) + read(&self.failed),
            bytes: read(&self.bytes),
        }
    }
}
