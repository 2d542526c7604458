//! One object, as fast as it comes.

use posthaste_units::Time;

use super::download::{Download, Step};
use super::{App, AppReport, Hosts, Progress};
use crate::peer::PeerEvent;

/// Connects at a given time and downloads one object.
#[derive(Debug)]
pub struct Bulk {
    host: usize,
    bytes: u64,
    start_at: Time,
    is_begun: bool,
    download: Option<Download>,
    report: AppReport,
}

impl Bulk {
    /// A download of `bytes` by the client at `host`, begun at `start_at`.
    pub fn new(host: usize, bytes: u64, start_at: Time) -> Self {
        Self { host, bytes, start_at, is_begun: false, download: None, report: AppReport::default() }
    }

    fn begin(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.is_begun = true;
        self.report.started = Some(now);
        hosts.peer(self.host).connect(now);
    }
}

impl App for Bulk {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        if self.start_at <= now {
            self.begin(now, hosts);
        }
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected => self.report.connected = Some(now),
            PeerEvent::Closed(reason) if self.report.finished.is_none() => {
                self.report.failure = Some(reason.unwrap_or_else(|| "closed".to_owned()));
                return;
            }
            _ => {}
        }
        if self.report.connected.is_some() && self.download.is_none() && self.report.finished.is_none() {
            self.download = Download::begin(now, now, 0, self.bytes, hosts.peer(host));
        }
        let Some(download) = &mut self.download else { return };
        match download.pump(now, hosts.peer(host), &mut u64::MAX.clone()) {
            Step::Open => self.report.bytes = download.body_read(),
            Step::Done(exchange) => {
                self.report.bytes = exchange.bytes;
                self.report.finished = Some(now);
                self.report.exchanges.push(exchange);
                self.download = None;
            }
            Step::Failed(reason) => self.report.failure = Some(reason),
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.begin(now, hosts);
    }

    fn next_timeout(&self) -> Option<Time> {
        (!self.is_begun).then_some(self.start_at)
    }

    fn progress(&self) -> Progress {
        if self.report.failure.is_some() {
            Progress::Failed
        } else if self.report.finished.is_some() {
            Progress::Idle
        } else {
            Progress::Working
        }
    }

    fn report(&self) -> AppReport {
        self.report.clone()
    }
}
