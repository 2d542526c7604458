//! One object over several connections, by byte ranges.
//!
//! Each connection takes the next range when it has asked for less than two: while one range arrives, the next has
//! been asked for, so that no connection waits for a round trip, and a slow one holds up no more than its two. With one
//! connection the object is one range. With fixed ranges ([`Ranges::Fixed`]) each connection has one, and no more.

use posthaste_units::{Duration, Time};

use super::download::{Download, Step};
use super::{App, AppReport, Exchange, Hosts, Progress, REQUEST_LENGTH};
use crate::peer::{Peer, PeerEvent};
use crate::spec::Ranges;

/// Ranges for each connection.
const RANGES_A_CONNECTION: u64 = 4;
/// No range is smaller: its request and header would cost more than it gains.
const LEAST_RANGE: u64 = 32 * 1024;
/// Ranges that a connection has asked for and not read to the end.
const OUTSTANDING: usize = 2;
/// Between the last handshake and the request: the connections are warm, and idle, when the clock starts.
const WARM: Duration = Duration::from_secs(1);

/// The client; see the module. Its report starts with the request.
#[derive(Debug)]
pub struct Split {
    host: usize,
    start_at: Time,
    ranges: Ranges,
    state: State,
    /// Bytes that no range has been asked for yet.
    unasked: u64,
    range: u64,
    asked: usize,
    /// By connection.
    downloads: Vec<Vec<Download>>,
    ended_bytes: u64,
    report: AppReport,
}

#[derive(Debug, PartialEq)]
enum State {
    Waiting,
    Connecting,
    /// Connected; the request is due then.
    Warm(Time),
    Loading,
    Over,
}

impl Split {
    /// A download of `bytes` by the client at `host`, which connects at `start_at`.
    pub fn new(host: usize, bytes: u64, start_at: Time) -> Self {
        Self {
            host,
            start_at,
            ranges: Ranges::default(),
            state: State::Waiting,
            unasked: bytes,
            range: bytes,
            asked: 0,
            downloads: Vec::new(),
            ended_bytes: 0,
            report: AppReport::default(),
        }
    }

    /// The same download with ranges of this kind.
    #[must_use]
    pub fn with_ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    fn begin(&mut self, now: Time, peer: &mut dyn Peer) {
        self.state = State::Loading;
        self.report.started = Some(now);
        self.report.connected = Some(now);
        let legs = peer.legs();
        self.downloads.resize_with(legs, Vec::new);
        let legs = legs as u64;
        self.range = match self.ranges {
            Ranges::AsFree if legs > 1 => self.unasked.div_ceil(legs * RANGES_A_CONNECTION).max(LEAST_RANGE),
            Ranges::AsFree => self.unasked,
            Ranges::Fixed => self.unasked.div_ceil(legs.max(1)),
        };
    }

    /// Asks for ranges and reads what has come, as far as it goes now.
    fn step(&mut self, now: Time, peer: &mut dyn Peer) {
        // Connections take turns, so that each gets its first range before any has a second.
        for turn in 0..OUTSTANDING {
            for leg in 0..self.downloads.len() {
                if self.downloads[leg].len() <= turn {
                    self.ask(now, leg, peer);
                }
            }
        }
        for leg in 0..self.downloads.len() {
            self.read(now, leg, peer);
        }
    }

    fn ask(&mut self, now: Time, leg: usize, peer: &mut dyn Peer) {
        let bytes = self.range.min(self.unasked);
        if bytes == 0 {
            return;
        }
        if let Some(download) = Download::begin_on(now, now, leg, self.asked, (bytes, REQUEST_LENGTH), peer) {
            self.unasked -= bytes;
            self.asked += 1;
            self.downloads[leg].push(download);
        }
    }

    fn read(&mut self, now: Time, leg: usize, peer: &mut dyn Peer) {
        let mut place = 0;
        while self.state == State::Loading
            && let Some(download) = self.downloads[leg].get_mut(place)
        {
            match download.pump(now, peer, u64::MAX) {
                Step::Open => place += 1,
                Step::Done(exchange) => {
                    self.downloads[leg].remove(place);
                    self.on_done(now, exchange);
                    self.ask(now, leg, peer);
                }
                Step::Failed(reason) => {
                    let object = download.object();
                    self.fail(format!("range {object}: {reason}"));
                }
            }
        }
    }

    fn on_done(&mut self, now: Time, exchange: Exchange) {
        self.ended_bytes += exchange.bytes;
        self.report.exchanges.push(exchange);
        if self.unasked == 0 && self.downloads.iter().all(Vec::is_empty) {
            self.report.finished = Some(now);
            self.state = State::Over;
        }
    }

    fn fail(&mut self, reason: String) {
        self.state = State::Over;
        self.report.failure = Some(reason);
    }
}

impl App for Split {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        if self.start_at <= now {
            self.state = State::Connecting;
            hosts.peer(self.host).connect(now);
        }
    }

    fn on_event(&mut self, now: Time, _host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected => self.state = State::Warm(now + WARM),
            PeerEvent::Closed(reason) if self.state != State::Over => {
                self.fail(reason.unwrap_or_else(|| "a connection was closed before the end".to_owned()));
            }
            _ if self.state == State::Loading => self.step(now, hosts.peer(self.host)),
            _ => {}
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        let peer = hosts.peer(self.host);
        match self.state {
            State::Waiting => {
                self.state = State::Connecting;
                peer.connect(now);
            }
            State::Warm(_) => {
                self.begin(now, peer);
                self.step(now, peer);
            }
            State::Connecting | State::Loading | State::Over => {}
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        match self.state {
            State::Waiting => Some(self.start_at),
            State::Warm(at) => Some(at),
            State::Connecting | State::Loading | State::Over => None,
        }
    }

    fn progress(&self) -> Progress {
        self.report.progress(matches!(self.state, State::Over))
    }

    fn report(&self) -> AppReport {
        let mut report = self.report.clone();
        report.bytes =
            self.ended_bytes + self.downloads.iter().flatten().map(Download::body_read).sum::<u64>();
        report
    }
}
