//! From what an experiment says of a client to the client.

use std::sync::Arc;

use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use super::bulk::BulkPlan;
use super::loaded::{Loaded, LoadedPlan};
use super::on_off::OnOff;
use super::page::{Page, PageError, PageLoad};
use super::request_response::RequestResponsePlan;
use super::sequence::{MAX_EXCHANGES, Plan, Sequence};
use super::video::{VideoPlan, VideoSpec};
use super::{App, Bulk, REQUEST_LENGTH, RequestResponse, Split};
use crate::peers::Stack;
use crate::spec::WorkloadSpec;

/// Size of an object that no run reads to its end: a pebibyte, a day of 100 Gbit/s.
pub(super) const ENDLESS: u64 = 1 << 50;

/// Largest object: what a stream can hold (RFC 9000 section 4.5).
const MAX_OBJECT: u64 = (1 << 62) - 1;

/// Most streams at once: as many as our stack lets a client have open.
const MAX_PARTS: u32 = 256;

/// Longest request of a page: HTTP servers take no longer head.
const MAX_REQUEST: u64 = 64 << 10;

/// Why a workload cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// Its page cannot be loaded.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A field is out of its range.
    #[error("workload {kind}: `{field}` must be {range}")]
    Range {
        /// The workload.
        kind: &'static str,
        /// The field.
        field: &'static str,
        /// What it may be.
        range: &'static str,
    },
    /// The world has not the connections that the workload needs.
    #[error("the workload needs {needed} connections and got {given}")]
    Connections {
        /// How many it needs.
        needed: String,
        /// How many it got.
        given: usize,
    },
}

/// The client of a workload on the client hosts `hosts` (as many as [`WorkloadSpec::connections`] says), beginning
/// at `start_at`. Whatever it draws comes from `rng`. One without end works until the run's deadline unless the world has it in the
/// background.
///
/// # Errors
/// What [`WorkloadSpec::validate`] says, or if `hosts` are too few or too many.
pub fn client(
    spec: &WorkloadSpec,
    hosts: &[usize],
    start_at: Time,
    rng: Rng,
) -> Result<Box<dyn App>, WorkloadError> {
    spec.validate()?;
    let wrong = |needed: &str| WorkloadError::Connections { needed: needed.to_owned(), given: hosts.len() };
    if let WorkloadSpec::Page { page, split_critical, first_request, request, .. } = spec {
        let page = Page::named(page)?;
        let map = match hosts {
            [host] => vec![*host; page.hosts.len()],
            hosts if hosts.len() == page.hosts.len() => hosts.to_vec(),
            _ => return Err(wrong(&format!("1 or {}", page.hosts.len()))),
        };
        let length = |given: &Option<ByteCount>| {
            given.map_or(REQUEST_LENGTH, |bytes| usize::try_from(bytes.get()).unwrap_or(REQUEST_LENGTH))
        };
        let load = PageLoad::new(page, map, start_at).with_split_critical(*split_critical);
        return Ok(Box::new(load.with_requests(length(first_request), length(request))));
    }
    let [host] = *hosts else { return Err(wrong("1")) };
    Ok(match *spec {
        WorkloadSpec::Bulk { object, read_rate } => {
            Box::new(Bulk::new(host, object.get(), start_at).with_read_rate(read_rate))
        }
        WorkloadSpec::Split { object, ranges } => {
            Box::new(Split::new(host, object.get(), start_at).with_ranges(ranges))
        }
        WorkloadSpec::Endless { read_rate } => {
            Box::new(Bulk::endless(host, start_at).with_read_rate(read_rate))
        }
        WorkloadSpec::Parallel { object, streams } => {
            let parts = Page::in_parts(object.get(), streams);
            Box::new(PageLoad::new(Arc::new(parts), vec![host], start_at))
        }
        WorkloadSpec::Page { .. } => unreachable!("pages are done with"),
        WorkloadSpec::Video { rate, chunk, chunks, buffer } => {
            let video = VideoSpec { rate, chunk, chunks, buffer };
            Box::new(Sequence::with_plan(host, VideoPlan::new(video), start_at))
        }
        WorkloadSpec::RequestResponse { object, count, think } => {
            Box::new(RequestResponse::new(host, object.get(), count, think, start_at))
        }
        WorkloadSpec::LoadedRequests { object, count, after, interval } => {
            let plan = LoadedPlan { bytes: object.get(), count, after, interval };
            Box::new(Loaded::new(host, plan, start_at))
        }
        WorkloadSpec::OnOff { object, pause } => Box::new(OnOff::new(host, object, pause, start_at, rng)),
    })
}

/// What the client of a workload asks for, and when, for those that bring the connection themselves (real sockets);
/// `None` if the workload is not one exchange after another with an end, read as fast as it comes.
///
/// # Errors
/// What [`WorkloadSpec::validate`] says.
pub fn plan(spec: &WorkloadSpec) -> Result<Option<Box<dyn Plan + Send>>, WorkloadError> {
    spec.validate()?;
    Ok(match *spec {
        WorkloadSpec::Bulk { object, read_rate: None } => Some(Box::new(BulkPlan::new(object.get()))),
        WorkloadSpec::Video { rate, chunk, chunks, buffer } => {
            Some(Box::new(VideoPlan::new(VideoSpec { rate, chunk, chunks, buffer })))
        }
        WorkloadSpec::RequestResponse { object, count, think } => {
            Some(Box::new(RequestResponsePlan::new(object.get(), count, think)))
        }
        _ => None,
    })
}

impl WorkloadSpec {
    /// The word for it in files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::Split { .. } => "split",
            Self::Endless { .. } => "endless",
            Self::Parallel { .. } => "parallel",
            Self::Page { .. } => "page",
            Self::Video { .. } => "video",
            Self::RequestResponse { .. } => "request-response",
            Self::LoadedRequests { .. } => "loaded-requests",
            Self::OnOff { .. } => "on-off",
        }
    }

    /// Checks every value against its range.
    ///
    /// # Errors
    /// If one is out of it, or the page is not there.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        let kind = self.kind();
        let check = |is_right: bool, field, range| {
            if is_right { Ok(()) } else { Err(WorkloadError::Range { kind, field, range }) }
        };
        let is_count = |count: u32| (1..=MAX_EXCHANGES as u32).contains(&count);
        match self {
            Self::Bulk { object, read_rate } => {
                check(object.get() <= MAX_OBJECT, "object", "less than 2^62 bytes, as streams are")?;
                check(*read_rate != Some(Rate::ZERO), "read-rate", "greater than zero")
            }
            Self::Split { object, .. } => {
                check((1..=MAX_OBJECT).contains(&object.get()), "object", "1 to 2^62 - 1 bytes")
            }
            Self::Endless { read_rate } => {
                check(*read_rate != Some(Rate::ZERO), "read-rate", "greater than zero")
            }
            Self::Parallel { object, streams } => {
                check(object.get() <= MAX_OBJECT, "object", "less than 2^62 bytes, as streams are")?;
                check((1..=MAX_PARTS).contains(streams), "streams", "1 to 256")
            }
            Self::Page { page, first_request, request, .. } => {
                for (length, field) in [(first_request, "first-request"), (request, "request")] {
                    let fits = length.is_none_or(|bytes| (8..=MAX_REQUEST).contains(&bytes.get()));
                    check(fits, field, "8 bytes to 64 KiB")?;
                }
                Ok(Page::named(page).map(|_| ())?)
            }
            Self::Video { rate, chunk, chunks, buffer } => {
                check(*rate > Rate::ZERO, "rate", "greater than zero")?;
                check(!chunk.is_zero(), "chunk", "greater than zero")?;
                check(is_count(*chunks), "chunks", "1 to 10000")?;
                check(buffer >= chunk, "buffer", "at least a chunk")
            }
            Self::RequestResponse { count, .. } => check(is_count(*count), "count", "1 to 10000"),
            Self::LoadedRequests { count, interval, .. } => {
                check(is_count(*count), "count", "1 to 10000")?;
                check(!interval.is_zero(), "interval", "greater than zero")
            }
            Self::OnOff { object, .. } => check(!object.is_zero(), "object", "greater than zero"),
        }
    }

    /// How many connections a client with `stack` has to hosts: one, except for pages.
    /// TCP needs one to each web host (of which HTTP/1.1 makes six, inside its model); QUIC too unless it coalesces.
    pub fn connections(&self, stack: &Stack) -> usize {
        match self {
            Self::Page { page, coalesce, .. } if !coalesce || matches!(stack, Stack::Tcp(..)) => {
                Page::named(page).map_or(1, |page| page.hosts.len())
            }
            _ => 1,
        }
    }

    /// Round trips before the first request leaves: the TLS handshake in QUIC, unless the connections are there when
    /// the clock starts.
    pub fn handshake_rounds(&self) -> u64 {
        u64::from(!matches!(self, Self::Split { .. }))
    }

    /// Body bytes in all; `None` if it never ends.
    pub fn body_bytes(&self) -> Option<u64> {
        match self {
            Self::Bulk { object, .. } | Self::Split { object, .. } | Self::Parallel { object, .. } => {
                Some(object.get())
            }
            Self::Endless { .. } | Self::LoadedRequests { .. } | Self::OnOff { .. } => None,
            Self::Page { page, .. } => Page::named(page).ok().map(|page| page.body_bytes()),
            Self::Video { rate, chunk, chunks, .. } => {
                Some(rate.bytes_in(*chunk).get().saturating_mul(u64::from(*chunks)))
            }
            Self::RequestResponse { object, count, .. } => {
                Some(object.get().saturating_mul(u64::from(*count)))
            }
        }
    }

    /// Exchanges that must follow each other, each a round trip at the least: a page's depth of dependencies.
    pub fn request_rounds(&self) -> u64 {
        match self {
            Self::Bulk { .. }
            | Self::Split { .. }
            | Self::Parallel { .. }
            | Self::Endless { .. }
            | Self::LoadedRequests { .. }
            | Self::OnOff { .. } => 1,
            Self::Page { page, .. } => Page::named(page).map_or(1, |page| u64::from(page.depth())),
            Self::Video { chunks, .. } => u64::from(*chunks),
            Self::RequestResponse { count, .. } => u64::from(*count),
        }
    }

    /// Exchanges that must follow each other while nothing else is on its way: one for a page, since the bytes of some
    /// of its objects fill the round trips of others.
    pub fn rounds_without_data(&self) -> u64 {
        if matches!(self, Self::Page { .. }) { 1 } else { self.request_rounds() }
    }

    /// Requests in all, each answered with a header; `None` if it never ends.
    pub fn exchanges(&self) -> Option<u64> {
        match self {
            // Of a split object, as few as can be; of a page's, too.
            Self::Bulk { .. } | Self::Split { .. } => Some(1),
            Self::Parallel { streams, .. } => Some(u64::from(*streams)),
            Self::Endless { .. } | Self::LoadedRequests { .. } | Self::OnOff { .. } => None,
            Self::Page { page, .. } => Page::named(page).ok().map(|page| page.objects.len() as u64),
            Self::Video { chunks: count, .. } | Self::RequestResponse { count, .. } => {
                Some(u64::from(*count))
            }
        }
    }

    /// Time from the end of the handshake to the last byte if the network had no limit but `round_trip`: what the
    /// application itself takes (pauses, parsing, reading, playing) and [`Self::request_rounds`] in their places.
    pub fn least_time(&self, round_trip: Duration) -> Duration {
        let rounds = round_trip * self.request_rounds();
        match self {
            Self::Bulk { object, read_rate: Some(rate) } => round_trip + rate.time_for(*object),
            Self::Bulk { .. }
            | Self::Split { .. }
            | Self::Parallel { .. }
            | Self::Endless { .. }
            | Self::OnOff { .. } => rounds,
            Self::Page { page, .. } => Page::named(page).map_or(rounds, |page| page.least_time(round_trip)),
            // The last chunk is asked for once all but the buffer's worth has been played.
            Self::Video { chunk, chunks, buffer, .. } => {
                let played = (*chunk * u64::from(*chunks)).saturating_sub(*buffer);
                let last = if played.is_zero() { Duration::ZERO } else { round_trip * 2 + played };
                rounds.max(last)
            }
            Self::LoadedRequests { count, after, interval, .. } => {
                rounds + *after + *interval * u64::from(count.saturating_sub(1))
            }
            Self::RequestResponse { count, think, .. } => {
                rounds + *think * u64::from(count.saturating_sub(1))
            }
        }
    }
}
