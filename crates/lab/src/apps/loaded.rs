//! Requests on a connection that a transfer fills.

use posthaste_units::{Duration, Time};

use super::download::{Download, Step};
use super::workload::ENDLESS;
use super::{App, AppReport, Hosts, Progress, closed};
use crate::peer::{Peer, PeerEvent};

/// Connects at a given time, begins a transfer without an end, and then asks for small objects on the same connection, each
/// at its time, whether or not earlier ones have been answered. Its exchanges are those of the small objects; its bytes
/// are all of them and the transfer's.
#[derive(Debug)]
pub struct Loaded {
    host: usize,
    start_at: Time,
    plan: LoadedPlan,
    state: State,
    /// The transfer, once its stream is open.
    bulk: Option<Download>,
    /// The requests under way.
    open: Vec<Download>,
    /// Requests begun.
    begun: u32,
    /// Body bytes of requests that have been answered.
    ended_bytes: u64,
    report: AppReport,
}

/// What the client of [`Loaded`] asks for.
#[derive(Debug, Clone, Copy)]
pub struct LoadedPlan {
    /// Body bytes of a small object.
    pub bytes: u64,
    /// How many of them.
    pub count: u32,
    /// From the beginning of the transfer to the first.
    pub after: Duration,
    /// From the beginning of one to that of the next.
    pub interval: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its time has not come.
    Waiting,
    /// The handshake goes on.
    Connecting,
    /// The transfer began then.
    Loading(Time),
    /// The peer permits no stream now; the transfer began then.
    Refused(Time),
    /// All requests have been answered, or nothing can be any more.
    Over,
}

impl Loaded {
    /// A client at `host` that connects at `start_at`.
    pub fn new(host: usize, plan: LoadedPlan, start_at: Time) -> Self {
        Self {
            host,
            start_at,
            plan,
            state: State::Waiting,
            bulk: None,
            open: Vec::new(),
            begun: 0,
            ended_bytes: 0,
            report: AppReport::default(),
        }
    }

    fn fail(&mut self, reason: String) {
        self.state = State::Over;
        self.report.failure = Some(reason);
    }

    /// When the next request is due, the transfer having begun at `begun`.
    fn due(&self, begun: Time) -> Option<Time> {
        let LoadedPlan { count, after, interval, .. } = self.plan;
        (self.begun < count).then(|| begun + after + interval * u64::from(self.begun))
    }

    /// Goes on as far as it can now.
    fn step(&mut self, now: Time, peer: &mut dyn Peer) {
        let (State::Loading(begun) | State::Refused(begun)) = self.state else { return };
        self.state = State::Loading(begun);
        if self.bulk.is_none() {
            self.bulk = Download::begin(now, now, 0, ENDLESS, peer);
        }
        if self.bulk.is_none() {
            self.state = State::Refused(begun);
            return;
        }
        while let Some(due) = self.due(begun).filter(|due| *due <= now) {
            let object = self.begun as usize;
            let Some(request) = Download::begin(now, due, object, self.plan.bytes, peer) else {
                self.state = State::Refused(begun);
                break;
            };
            self.open.push(request);
            self.begun += 1;
        }
        if let Err(reason) = self.read(now, peer) {
            return self.fail(reason);
        }
        if self.begun == self.plan.count && self.open.is_empty() {
            self.report.finished = Some(now);
            self.state = State::Over;
        }
    }

    /// Reads what there is of all streams.
    fn read(&mut self, now: Time, peer: &mut dyn Peer) -> Result<(), String> {
        if let Some(Step::Failed(reason)) = self.bulk.as_mut().map(|bulk| bulk.pump(now, peer, u64::MAX)) {
            return Err(format!("the transfer: {reason}"));
        }
        for mut request in std::mem::take(&mut self.open) {
            match request.pump(now, peer, u64::MAX) {
                Step::Open => self.open.push(request),
                Step::Done(exchange) => {
                    self.ended_bytes += exchange.bytes;
                    self.report.exchanges.push(exchange);
                }
                Step::Failed(reason) => return Err(format!("object {}: {reason}", request.object())),
            }
        }
        Ok(())
    }

    fn begin(&mut self, now: Time) {
        if self.state == State::Connecting {
            self.state = State::Loading(now);
        }
    }
}

impl App for Loaded {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        if self.start_at <= now {
            self.on_timeout(now, hosts);
        }
    }

    fn on_event(&mut self, now: Time, _host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Closed(reason) if self.state != State::Over => self.fail(closed(reason)),
            PeerEvent::Connected => {
                self.report.connected = Some(now);
                self.begin(now);
            }
            _ => {}
        }
        self.step(now, hosts.peer(self.host));
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        let peer = hosts.peer(self.host);
        if self.state == State::Waiting {
            peer.connect(now);
            self.report.started = Some(now);
            self.state = State::Connecting;
            if peer.may_send_early() {
                self.begin(now);
            }
        }
        self.step(now, peer);
    }

    fn next_timeout(&self) -> Option<Time> {
        match self.state {
            State::Waiting => Some(self.start_at),
            State::Loading(begun) => self.due(begun),
            // The peer tells when it permits streams again.
            State::Connecting | State::Refused(_) | State::Over => None,
        }
    }

    fn progress(&self) -> Progress {
        self.report.progress(self.state == State::Over)
    }

    fn report(&self) -> AppReport {
        let mut report = self.report.clone();
        let under_way = self.bulk.iter().chain(&self.open).map(Download::body_read).sum::<u64>();
        report.bytes = self.ended_bytes + under_way;
        report
    }
}
