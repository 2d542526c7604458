//! A client that asks for one thing after another over one connection. What it asks for, and when, is its [`Plan`].

use posthaste_units::{Rate, Time};

use super::download::{Download, Step};
use super::read_budget::ReadBudget;
use super::{App, AppReport, Exchange, Hosts, Progress, closed};
use crate::peer::{Peer, PeerEvent};

/// Exchanges that a report lists at most; of clients without end, the first.
pub const MAX_EXCHANGES: usize = 10_000;

/// What a client asks for, one after another.
pub trait Plan {
    /// What comes next, once connected and each time that an exchange has ended (`last`, at `now`); `None` at the end.
    fn next(&mut self, now: Time, last: Option<&Exchange>) -> Option<Next>;

    /// Adds what only this kind of client knows.
    fn add_to(&self, _report: &mut AppReport) {}
}

/// One exchange of a [`Plan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// When it is to begin; a time that has passed means at once.
    pub at: Time,
    /// Body bytes.
    pub bytes: u64,
}

/// The client; see the module. It works until its plan ends, one without end until the run does.
#[derive(Debug)]
pub struct Sequence<P> {
    host: usize,
    start_at: Time,
    plan: P,
    state: State,
    budget: ReadBudget,
    /// Exchanges begun.
    begun: usize,
    /// Body bytes of exchanges that have ended.
    ended_bytes: u64,
    report: AppReport,
}

#[derive(Debug)]
enum State {
    /// Its time has not come.
    Waiting,
    /// The handshake goes on.
    Connecting,
    /// Between two exchanges.
    Pausing(Next),
    /// The peer permits no stream now.
    Opening(Next),
    /// An exchange goes on.
    Loading(Download),
    /// All has been read, or nothing can be any more.
    Over,
}

impl<P: Plan> Sequence<P> {
    /// A client at `host` that connects at `start_at`.
    pub fn with_plan(host: usize, plan: P, start_at: Time) -> Self {
        Self {
            host,
            start_at,
            plan,
            state: State::Waiting,
            budget: ReadBudget::new(None),
            begun: 0,
            ended_bytes: 0,
            report: AppReport::default(),
        }
    }

    /// The application reads no faster than this (headers count); as fast as it can with `None`.
    pub fn with_read_rate(mut self, rate: Option<Rate>) -> Self {
        self.budget = ReadBudget::new(rate);
        self
    }

    fn connect(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.state = State::Connecting;
        self.report.started = Some(now);
        let peer = hosts.peer(self.host);
        peer.connect(now);
        if peer.may_send_early() {
            self.plan_next(now, None);
            self.step(now, peer);
        }
    }

    fn fail(&mut self, reason: String) {
        self.state = State::Over;
        self.report.failure = Some(reason);
    }

    fn plan_next(&mut self, now: Time, last: Option<&Exchange>) {
        self.state = if let Some(next) = self.plan.next(now, last) {
            State::Pausing(Next { at: next.at.max(now), ..next })
        } else {
            self.report.finished = Some(now);
            State::Over
        };
    }

    /// Goes on as far as it can now.
    fn step(&mut self, now: Time, peer: &mut dyn Peer) {
        loop {
            match &mut self.state {
                State::Pausing(next) if next.at > now => return,
                State::Pausing(next) | State::Opening(next) => {
                    let next = *next;
                    let Some(download) = Download::begin(now, next.at, self.begun, next.bytes, peer) else {
                        self.state = State::Opening(next);
                        return;
                    };
                    self.begun += 1;
                    self.state = State::Loading(download);
                }
                State::Loading(download) => match self.budget.pump(now, download, peer) {
                    Step::Open => return,
                    Step::Done(exchange) => self.on_done(now, exchange),
                    Step::Failed(reason) => {
                        let object = download.object();
                        return self.fail(format!("object {object}: {reason}"));
                    }
                },
                State::Waiting | State::Connecting | State::Over => return,
            }
        }
    }

    fn on_done(&mut self, now: Time, exchange: Exchange) {
        self.ended_bytes += exchange.bytes;
        self.plan_next(now, Some(&exchange));
        if self.report.exchanges.len() < MAX_EXCHANGES {
            self.report.exchanges.push(exchange);
        }
    }
}

impl<P: Plan> App for Sequence<P> {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        if self.start_at <= now {
            self.connect(now, hosts);
        }
    }

    fn on_event(&mut self, now: Time, _host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected => {
                self.report.connected = Some(now);
                if matches!(self.state, State::Connecting) {
                    self.plan_next(now, None);
                }
            }
            PeerEvent::Closed(reason) => {
                if !matches!(self.state, State::Over) {
                    self.fail(closed(reason));
                }
                return;
            }
            PeerEvent::Opened(_) | PeerEvent::Readable(_) | PeerEvent::Writable(_) | PeerEvent::Available => {
            }
        }
        self.step(now, hosts.peer(self.host));
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        if matches!(self.state, State::Waiting) {
            self.connect(now, hosts);
        } else {
            self.step(now, hosts.peer(self.host));
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Waiting => Some(self.start_at),
            State::Pausing(next) => Some(next.at),
            State::Loading(_) => self.budget.next_timeout(),
            State::Connecting | State::Opening(_) | State::Over => None,
        }
    }

    fn progress(&self) -> Progress {
        self.report.progress(matches!(self.state, State::Over))
    }

    fn report(&self) -> AppReport {
        let mut report = self.report.clone();
        let loading = if let State::Loading(download) = &self.state { download.body_read() } else { 0 };
        report.bytes = self.ended_bytes + loading;
        self.plan.add_to(&mut report);
        report
    }
}
