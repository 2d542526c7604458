//! Loading a page.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use posthaste_units::Time;

use super::{Page, PageObject};
use crate::apps::download::{Download, Step};
use crate::apps::{App, AppReport, Exchange, Hosts, Progress, REQUEST_LENGTH, closed};
use crate::peer::{PeerEvent, StreamKey};

/// A critical object is divided into no smaller parts: seven packets, of which a request and a header take a twentieth.
const LEAST_PART: u64 = 10_000;

/// Loads a page once, from the first request to the last byte of the last object.
///
/// An object is wanted once all that it depends on has been read and parsed. A host is connected to when the first of
/// its objects is wanted; objects are asked for in the order in which they were wanted, those of one time in the
/// page's order, as soon as the connection is there and permits a stream. In the report, an exchange's `requested` is
/// when its object was wanted: waiting for a connection or a stream counts.
///
/// Where the stack has several connections to a host, all comes over the first, unless critical objects are to be split:
/// those come in equal byte ranges over as many connections as they have `LEAST_PART`s.
#[derive(Debug)]
pub struct PageLoad {
    page: Arc<Page>,
    /// The client host for each web host.
    hosts: Vec<usize>,
    connections: BTreeMap<usize, Connection>,
    /// By object.
    objects: Vec<Pending>,
    /// Objects by when they will be wanted.
    upcoming: BTreeSet<(Time, usize)>,
    downloads: BTreeMap<(usize, StreamKey), Download>,
    splits_critical: bool,
    /// Bytes of the first request and of each further one.
    requests: (usize, usize),
    has_asked: bool,
    /// Objects not read to their end.
    unread: usize,
    report: AppReport,
}

/// A client host's connection.
#[derive(Debug, Default)]
struct Connection {
    state: ConnectionState,
    /// Objects that wait for it, and since when.
    waiting: VecDeque<(usize, Time)>,
    /// What is to be asked for next of them: object, since when it is wanted, which of the stack's connections, bytes.
    parts: VecDeque<(usize, Time, usize, u64)>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ConnectionState {
    #[default]
    Unused,
    Connecting,
    Connected,
}

/// What an object waits for.
#[derive(Debug)]
struct Pending {
    /// Dependencies that have not been read.
    missing: usize,
    /// When those that have been read are parsed.
    parsed_at: Time,
    /// Objects that depend on it.
    dependents: Vec<usize>,
    /// Parts that have not been read.
    parts: usize,
    /// What the parts that have been read come to.
    read: Option<Exchange>,
}

impl PageLoad {
    /// Loads `page` from `start_at` on; `hosts` has the index of the client host that fetches from each web host
    /// (one for all, or one for each).
    ///
    /// # Panics
    /// If `hosts` are not as many as the page's.
    pub fn new(page: Arc<Page>, hosts: Vec<usize>, start_at: Time) -> Self {
        assert_eq!(hosts.len(), page.hosts.len(), "a client host for each web host");
        let mut objects: Vec<Pending> = page
            .objects
            .iter()
            .map(|object| Pending {
                missing: object.after.len(),
                parsed_at: start_at,
                dependents: Vec::new(),
                parts: 1,
                read: None,
            })
            .collect();
        for (index, object) in page.objects.iter().enumerate() {
            for &before in &object.after {
                objects[before].dependents.push(index);
            }
        }
        let roots = (0..objects.len()).filter(|&index| objects[index].missing == 0);
        Self {
            upcoming: roots.map(|index| (start_at, index)).collect(),
            connections: hosts.iter().map(|&host| (host, Connection::default())).collect(),
            downloads: BTreeMap::new(),
            splits_critical: false,
            requests: (REQUEST_LENGTH, REQUEST_LENGTH),
            has_asked: false,
            unread: page.objects.len(),
            report: AppReport::default(),
            page,
            hosts,
            objects,
        }
    }

    /// The same with critical objects split over the stack's connections, or not (the default).
    pub fn with_split_critical(self, splits_critical: bool) -> Self {
        Self { splits_critical, ..self }
    }

    /// The same with requests of these lengths in bytes: the first of all, and each further one. 300 by default.
    pub fn with_requests(self, first: usize, further: usize) -> Self {
        Self { requests: (first, further), ..self }
    }

    fn is_over(&self) -> bool {
        self.unread == 0 || self.report.failure.is_some()
    }

    /// Asks for all that is wanted by now.
    fn ask(&mut self, now: Time, hosts: &mut dyn Hosts) {
        while let Some(&(at, object)) = self.upcoming.first()
            && at <= now
        {
            self.upcoming.pop_first();
            let host = self.hosts[self.page.objects[object].host];
            let connection = self.connections.entry(host).or_default();
            connection.waiting.push_back((object, at));
            match connection.state {
                ConnectionState::Unused => {
                    connection.state = ConnectionState::Connecting;
                    self.report.started.get_or_insert(now);
                    hosts.peer(host).connect(now);
                }
                ConnectionState::Connecting => {}
                ConnectionState::Connected => self.open(now, host, hosts),
            }
        }
    }

    /// Begins what waits for a connection, as far as it permits.
    fn open(&mut self, now: Time, host: usize, hosts: &mut dyn Hosts) {
        loop {
            let legs = hosts.peer(host).legs();
            let Some(connection) = self.connections.get_mut(&host) else { return };
            if connection.parts.is_empty() {
                let Some((object, wanted)) = connection.waiting.pop_front() else { return };
                let PageObject { bytes, is_critical, .. } = self.page.objects[object];
                let count = if self.splits_critical && is_critical { parts(bytes, legs) } else { 1 };
                self.objects[object].parts = count;
                let ends = |part: usize| bytes * part as u64 / count as u64;
                connection.parts =
                    (0..count).map(|part| (object, wanted, part, ends(part + 1) - ends(part))).collect();
            }
            let Some(&(object, wanted, leg, bytes)) = connection.parts.front() else { return };
            let request = if self.has_asked { self.requests.1 } else { self.requests.0 };
            let download = Download::begin_on(now, wanted, leg, object, (bytes, request), hosts.peer(host));
            let Some(download) = download else { return };
            self.has_asked = true;
            connection.parts.pop_front();
            let stream = download.stream();
            self.downloads.insert((host, stream), download);
            self.pump(now, host, stream, hosts);
        }
    }

    fn pump(&mut self, now: Time, host: usize, stream: StreamKey, hosts: &mut dyn Hosts) {
        let Some(download) = self.downloads.get_mut(&(host, stream)) else { return };
        match download.pump(now, hosts.peer(host), u64::MAX) {
            Step::Open => {}
            Step::Done(exchange) => {
                self.downloads.remove(&(host, stream));
                self.on_part(now, exchange);
            }
            Step::Failed(reason) => {
                let name = &self.page.objects[download.object()].name;
                self.report.failure.get_or_insert_with(|| format!("{name}: {reason}"));
            }
        }
    }

    /// A part of an object is there, or all of it.
    fn on_part(&mut self, now: Time, exchange: Exchange) {
        let pending = &mut self.objects[exchange.object];
        pending.parts -= 1;
        let whole = match pending.read.take() {
            None => exchange,
            Some(read) => Exchange {
                first_byte: read.first_byte.min(exchange.first_byte),
                bytes: read.bytes + exchange.bytes,
                ..exchange
            },
        };
        if pending.parts == 0 {
            self.on_read(now, whole);
        } else {
            pending.read = Some(whole);
        }
    }

    /// An object is there: what waits for it alone will be wanted once it is parsed.
    fn on_read(&mut self, now: Time, exchange: Exchange) {
        let object = exchange.object;
        let parsed_at = now + self.page.objects[object].parse;
        for dependent in std::mem::take(&mut self.objects[object].dependents) {
            let pending = &mut self.objects[dependent];
            pending.missing -= 1;
            pending.parsed_at = pending.parsed_at.max(parsed_at);
            if pending.missing == 0 {
                self.upcoming.insert((pending.parsed_at, dependent));
            }
        }
        self.report.bytes += exchange.bytes;
        self.report.exchanges.push(exchange);
        self.unread -= 1;
        if self.unread == 0 {
            self.report.finished = Some(now);
        }
    }
}

/// How many parts an object of so many bytes is worth, over so many connections.
fn parts(bytes: u64, legs: usize) -> usize {
    let worth = usize::try_from(bytes / LEAST_PART).unwrap_or(usize::MAX);
    worth.clamp(1, legs)
}

impl App for PageLoad {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.ask(now, hosts);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        if self.is_over() {
            return;
        }
        match event {
            PeerEvent::Connected => {
                self.report.connected.get_or_insert(now);
                self.connections.entry(host).or_default().state = ConnectionState::Connected;
                self.open(now, host, hosts);
            }
            PeerEvent::Available => self.open(now, host, hosts),
            PeerEvent::Readable(stream) | PeerEvent::Writable(stream) => {
                self.pump(now, host, stream, hosts);
            }
            PeerEvent::Closed(reason) => {
                self.report.failure = Some(closed(reason));
                return;
            }
            PeerEvent::Opened(_) => {}
        }
        self.ask(now, hosts);
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.ask(now, hosts);
    }

    fn next_timeout(&self) -> Option<Time> {
        let (at, _) = self.upcoming.first()?;
        (!self.is_over()).then_some(*at)
    }

    fn progress(&self) -> Progress {
        match (&self.report.failure, self.unread) {
            (Some(_), _) => Progress::Failed,
            (None, 0) => Progress::Idle,
            (None, _) => Progress::Working,
        }
    }

    fn report(&self) -> AppReport {
        let mut report = self.report.clone();
        let parts = self.objects.iter().filter_map(|object| object.read.as_ref());
        report.bytes += parts.map(|read| read.bytes).sum::<u64>();
        report.bytes += self.downloads.values().map(Download::body_read).sum::<u64>();
        report
    }
}
