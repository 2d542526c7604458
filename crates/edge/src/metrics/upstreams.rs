//! Upstreams, counted by their URLs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use posthaste_proxy::{UpstreamFailure, UpstreamHealth, UpstreamLog, UpstreamState};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use super::page::{Labels, Page};
use super::requests::SECONDS;

/// What upstreams were asked and how they have answered. Clones count together, over reloads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upstreams(Arc<RwLock<BTreeMap<String, Arc<Counted>>>>);

/// One upstream.
#[derive(Debug)]
struct Counted {
    connections: AtomicU64,
    ended: AtomicU64,
    failures: [AtomicU64; UpstreamFailure::ALL.len()],
    connect: Histogram,
    first_byte: Histogram,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            connections: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failures: Default::default(),
            connect: Histogram::new(SECONDS),
            first_byte: Histogram::new(SECONDS),
        }
    }
}

impl UpstreamLog for Counted {
    fn connected(&self, time: Duration) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        self.connect.observe(time.as_secs_f64());
    }

    fn disconnected(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    fn answered(&self, time: Duration) {
        self.first_byte.observe(time.as_secs_f64());
    }

    fn failed(&self, reason: UpstreamFailure) {
        let at = UpstreamFailure::ALL.iter().position(|other| *other == reason);
        if let Some(counter) = at.and_then(|at| self.failures.get(at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Counted {
    fn open(&self) -> u64 {
        // The end is read first: a connection that ends in between counts as open, never as less than none.
        let ended = self.ended.load(Ordering::Relaxed);
        self.connections.load(Ordering::Relaxed).saturating_sub(ended)
    }

    fn failures(&self) -> u64 {
        self.failures.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }
}

/// An upstream of the running configuration; its routes' states together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Now {
    pub(super) state: UpstreamState,
    pub(super) failures: u64,
    pub(super) connections: u64,
}

impl Upstreams {
    /// What is to be told of the upstream at this URL.
    pub(crate) fn log(&self, url: &str) -> Arc<dyn UpstreamLog> {
        self.of(url)
    }

    /// Forgets all but these: URLs that configurations had before are not shown for ever.
    pub(crate) fn retain(&self, urls: impl Fn(&str) -> bool) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|url, _| urls(url));
    }

    fn of(&self, url: &str) -> Arc<Counted> {
        // A panic elsewhere leaves the map whole.
        if let Some(counted) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(url) {
            return Arc::clone(counted);
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(url.to_owned()).or_default())
    }

    /// The upstreams by their URLs. Several routes may have one: it is as bad as the worst of them finds it.
    pub(super) fn now(&self, states: Vec<UpstreamState>) -> Vec<Now> {
        let mut merged: BTreeMap<String, UpstreamState> = BTreeMap::new();
        for state in states {
            match merged.get_mut(&state.url) {
                Some(before) => {
                    before.open += state.open;
                    before.health = before.health.max(state.health);
                }
                None => drop(merged.insert(state.url.clone(), state)),
            }
        }
        let now = |state: UpstreamState| {
            let counted = self.of(&state.url);
            Now { failures: counted.failures(), connections: counted.open(), state }
        };
        merged.into_values().map(now).collect()
    }

    pub(super) fn write(&self, page: &mut Page<'_>, states: Vec<UpstreamState>) -> fmt::Result {
        let all: Vec<_> = self.now(states).into_iter().map(|now| (self.of(&now.state.url), now)).collect();
        let labels: Vec<_> = all.iter().map(|(_, now)| [("upstream", now.state.url.as_str())]).collect();
        let gauges = |get: fn(&Counted, &Now) -> f64| -> Vec<(Labels<'_>, f64)> {
            let values = all.iter().map(|(counted, now)| get(counted, now));
            labels.iter().map(|own| &own[..]).zip(values).collect()
        };
        let is_well = |_: &Counted, now: &Now| f64::from(u8::from(now.state.health == UpstreamHealth::Well));
        let help = "0 for an upstream that gets no requests, because connections or health checks fail";
        page.gauge("upstream_up", help, &gauges(is_well))?;
        let open = |_: &Counted, now: &Now| now.state.open as f64;
        page.gauge("upstream_requests_open", "Requests that an upstream works on", &gauges(open))?;
        let open = |_: &Counted, now: &Now| now.connections as f64;
        page.gauge(
            "upstream_connections_open",
            "Connections to an upstream, idle ones included",
            &gauges(open),
        )?;
        let mut failures = Vec::new();
        for ((counted, _), own) in all.iter().zip(&labels) {
            for (reason, counter) in UpstreamFailure::ALL.iter().zip(&counted.failures) {
                failures.push(([own[0], ("reason", reason.name())], counter.load(Ordering::Relaxed)));
            }
        }
        let failures: Vec<_> =
            failures.iter().map(|(own, number)| (&own[..] as Labels<'_>, *number)).collect();
        page.counter("upstream_failures", "Requests that an upstream did not answer whole", &failures)?;
        let each = |get: fn(&Counted) -> &Histogram| -> Vec<(Labels<'_>, &Histogram)> {
            labels.iter().map(|own| &own[..]).zip(all.iter().map(|(counted, _)| get(counted))).collect()
        };
        let help = "Time for a connection to an upstream, TLS included";
        page.histogram(("upstream_connect", help, Some(&Unit::Seconds)), &each(|it| &it.connect))?;
        let help = "From a request to an upstream to the head of its response";
        page.histogram(("upstream_first_byte", help, Some(&Unit::Seconds)), &each(|it| &it.first_byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reloads_have_removed_is_forgotten() {
        let upstreams = Upstreams::default();
        for url in ["http://a:1", "http://b:1"] {
            upstreams.log(url).failed(UpstreamFailure::Body);
        }
        upstreams.retain(|url| url == "http://b:1");
        let failures = |url| upstreams.of(url).failures();
        assert_eq!((failures("http://a:1"), failures("http://b:1")), (0, 1));
    }
}
