//! One run: hosts, links and applications on one virtual clock.
//!
//! Data flow: an application uses its hosts' stacks ([`Peer`]); what a stack sends enters the first link of its
//! host's route; a link hands packets on to the next, the last one to the stack at the other end; its events go to
//! the application there. Everything that happens at one time happens in a fixed order (links, stacks,
//! applications, each by index), so that a run depends on nothing but its parts and its seed.

use posthaste_path::{ConfigError, Path, PathConfig};
use posthaste_units::{Duration, Rng, Time};

use crate::apps::{App, Hosts, Progress};
use crate::measure::{Arrivals, Sampler};
use crate::packet::Packet;
use crate::peer::Peer;
use crate::peers::Pair;
use crate::trace_hash::TraceHash;

/// Steps at one time after which the run has gone wrong: a stack that always has a timer due and never acts.
const MAX_STANDING: u32 = 100_000;

/// A link direction.
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) path: Path<Packet>,
    due: Time,
}

/// One end of a connection, and where its packets go.
pub(crate) struct Host {
    pub(crate) peer: Box<dyn Peer>,
    /// Links in the order in which packets that this host sends pass them.
    route: Vec<usize>,
    /// The host at the other end.
    other: usize,
    /// Index of its application.
    app: usize,
    /// What this host has sent and what of it has arrived.
    pub(crate) arrivals: Arrivals,
    due: Time,
    is_touched: bool,
}

struct AppSlot {
    app: Box<dyn App>,
    /// The run neither waits for it nor ends if it fails.
    is_background: bool,
    due: Time,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// No application works any more.
    Completed,
    /// The deadline came first.
    Deadline,
    /// An application can never get what it wanted; its index.
    Failed(usize),
    /// Nothing will ever happen again, or the clock stands still; why.
    Stuck(String),
}

/// The parts of a run.
pub struct World {
    now: Time,
    rng: Rng,
    pub(crate) links: Vec<Link>,
    pub(crate) hosts: Vec<Host>,
    apps: Vec<AppSlot>,
    hash: TraceHash,
    packets: u64,
    pub(crate) sampler: Option<Sampler>,
}

/// The stacks as applications see them: touching one marks it.
struct Touch<'a>(&'a mut [Host]);

impl Hosts for Touch<'_> {
    fn peer(&mut self, host: usize) -> &mut dyn Peer {
        let host = &mut self.0[host];
        host.is_touched = true;
        &mut *host.peer
    }
}

impl World {
    /// An empty world; all randomness of the run follows from `seed`, TLS's on this thread too.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::from_test_seed(seed);
        crate::tls::seed_thread(rng.fork());
        Self {
            now: Time::ZERO,
            rng,
            links: Vec::new(),
            hosts: Vec::new(),
            apps: Vec::new(),
            hash: TraceHash::EMPTY,
            packets: 0,
            sampler: None,
        }
    }

    /// The run's generator, to build stacks and workloads from.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Samples all gauges every `interval` from now on.
    pub fn sample_every(&mut self, interval: Duration) {
        self.sampler = Some(Sampler::new(interval));
    }

    /// Adds a link direction; its index.
    ///
    /// # Errors
    /// If the configuration is out of range.
    pub fn add_link(&mut self, name: impl Into<String>, config: PathConfig) -> Result<usize, ConfigError> {
        let path = Path::new(config, self.rng.fork())?;
        self.links.push(Link { name: name.into(), path, due: Time::FAR_FUTURE });
        Ok(self.links.len() - 1)
    }

    /// Adds a connection: the client's packets pass the links `up`, the server's `down`. The two hosts' indices.
    /// Applications are added with [`Self::add_app`].
    pub fn add_connection(&mut self, pair: Pair, up: &[usize], down: &[usize]) -> (usize, usize) {
        let (client, server) = (self.hosts.len(), self.hosts.len() + 1);
        let host = |peer, route: &[usize], other| Host {
            peer,
            route: route.to_vec(),
            other,
            app: usize::MAX,
            arrivals: Arrivals::default(),
            due: Time::FAR_FUTURE,
            is_touched: true,
        };
        self.hosts.push(host(pair.client, up, server));
        self.hosts.push(host(pair.server, down, client));
        (client, server)
    }

    /// Adds an application that gets the events of `hosts`; its index.
    pub fn add_app(&mut self, app: Box<dyn App>, hosts: &[usize]) -> usize {
        let index = self.apps.len();
        for &host in hosts {
            self.hosts[host].app = index;
        }
        self.apps.push(AppSlot { app, is_background: false, due: Time::FAR_FUTURE });
        index
    }

    /// Says whether the run goes on without waiting for an application, and whether or not that fails.
    pub fn set_background(&mut self, app: usize, is_background: bool) {
        self.apps[app].is_background = is_background;
    }

    /// The application at an index.
    pub fn app(&self, index: usize) -> &dyn App {
        &*self.apps[index].app
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Packets that have left hosts.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets of a host that are neither lost nor received yet, without the copies that links have made.
    pub(crate) fn under_way_from(&self, host: usize) -> u64 {
        let to = self.hosts[host].other;
        let held = self.links.iter().flat_map(|link| link.path.held());
        held.filter(|packet| packet.tag.to == to && !packet.tag.is_copy).count() as u64
    }

    /// The hash over all of them: 16 hexadecimal digits.
    pub fn trace_hash(&self) -> String {
        self.hash.digits()
    }

    /// Runs until no application is working, or until `deadline`.
    pub fn run(&mut self, deadline: Time) -> End {
        let end = self.run_on(deadline);
        self.catch_up(self.now);
        end
    }

    fn run_on(&mut self, deadline: Time) -> End {
        for slot in &mut self.apps {
            slot.app.start(self.now, &mut Touch(&mut self.hosts));
            slot.due = slot.app.next_timeout().unwrap_or(Time::FAR_FUTURE);
        }
        let mut standing = 0;
        loop {
            self.settle();
            if let Some(end) = self.end() {
                return end;
            }
            let next = self.next_time();
            if next > deadline {
                self.sample_until(deadline);
                self.now = deadline;
                return End::Deadline;
            }
            if next == Time::FAR_FUTURE {
                return End::Stuck("nothing will ever happen again".to_owned());
            }
            standing = if next > self.now { 0 } else { standing + 1 };
            if standing > MAX_STANDING {
                return End::Stuck(format!("the clock stands still at {:?}", self.now));
            }
            self.sample_until(next);
            self.now = self.now.max(next);
            self.advance();
        }
    }

    fn end(&self) -> Option<End> {
        let mut is_working = false;
        for (index, slot) in self.apps.iter().enumerate().filter(|(_, slot)| !slot.is_background) {
            match slot.app.progress() {
                Progress::Failed => return Some(End::Failed(index)),
                Progress::Working => is_working = true,
                Progress::Idle => {}
            }
        }
        (!is_working).then_some(End::Completed)
    }

    fn next_time(&self) -> Time {
        let links = self.links.iter().map(|link| link.due);
        let hosts = self.hosts.iter().map(|host| host.due);
        let apps = self.apps.iter().map(|slot| slot.due);
        links.chain(hosts).chain(apps).min().unwrap_or(Time::FAR_FUTURE)
    }

    /// Lets everything act whose time has come.
    fn advance(&mut self) {
        let now = self.now;
        for index in 0..self.links.len() {
            if self.links[index].due <= now {
                self.drain_link(index);
            }
        }
        for host in &mut self.hosts {
            if host.due <= now {
                host.peer.on_timeout(now);
                host.is_touched = true;
            }
        }
        for slot in &mut self.apps {
            if slot.due <= now {
                slot.app.on_timeout(now, &mut Touch(&mut self.hosts));
                slot.due = slot.app.next_timeout().unwrap_or(Time::FAR_FUTURE);
            }
        }
    }

    /// Hands on what has passed a link.
    fn drain_link(&mut self, index: usize) {
        while let Some(mut packet) = self.links[index].path.poll(self.now) {
            let from = self.hosts[packet.tag.to].other;
            packet.tag.hop += 1;
            if let Some(&next) = self.hosts[from].route.get(packet.tag.hop) {
                self.enter_link(next, packet);
            } else {
                self.hosts[from].arrivals.on_arrival(self.now, &packet);
                let host = &mut self.hosts[packet.tag.to];
                host.is_touched = true;
                host.peer.on_packet(self.now, packet);
            }
        }
        self.links[index].due = self.links[index].path.next_arrival().unwrap_or(Time::FAR_FUTURE);
    }

    fn enter_link(&mut self, index: usize, packet: Packet) {
        let link = &mut self.links[index];
        link.path.on_packet(self.now, packet);
        link.due = link.path.next_arrival().unwrap_or(Time::FAR_FUTURE);
    }

    /// Passes events to applications and packets to links until nothing is left to do at this time.
    fn settle(&mut self) {
        while let Some(index) = self.hosts.iter().position(|host| host.is_touched) {
            self.hosts[index].is_touched = false;
            self.pass_events(index);
            self.transmit(index);
            let host = &mut self.hosts[index];
            host.due = host.peer.next_timeout().unwrap_or(Time::FAR_FUTURE);
        }
    }

    fn pass_events(&mut self, index: usize) {
        while let Some(event) = self.hosts[index].peer.poll_event() {
            let Some(slot) = self.apps.get_mut(self.hosts[index].app) else { continue };
            slot.app.on_event(self.now, index, event, &mut Touch(&mut self.hosts));
            slot.due = slot.app.next_timeout().unwrap_or(Time::FAR_FUTURE);
        }
    }

    fn transmit(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        let (to, first) = (host.other, host.route[0]);
        let mut has_sent = false;
        while let Some(mut packet) = self.hosts[index].peer.poll_transmit(self.now) {
            has_sent = true;
            self.hash.add(self.now, index, &packet);
            self.packets += 1;
            packet.tag = crate::packet::Tag { to, hop: 0, sent_at: self.now, is_copy: false };
            self.hosts[index].arrivals.on_sent(self.now, &packet);
            self.links[first].path.on_packet(self.now, packet);
        }
        // The window moves with acknowledgements, which make a sender send.
        if has_sent {
            let host = &mut self.hosts[index];
            let snapshot = host.peer.snapshot();
            host.arrivals.on_settled(self.now, &snapshot);
        }
        let link = &mut self.links[first];
        link.due = link.path.next_arrival().unwrap_or(Time::FAR_FUTURE);
    }

    /// Samples the present state for every sampling time before `until`: nothing else changes in between.
    fn sample_until(&mut self, until: Time) {
        let Some(mut sampler) = self.sampler.take() else { return };
        while let Some(at) = sampler.due_before(until) {
            self.catch_up(at);
            sampler.sample(self);
        }
        self.sampler = Some(sampler);
    }

    /// Links are looked at when a packet may arrive; what has left their bottlenecks by `now` counts all the same.
    fn catch_up(&mut self, now: Time) {
        for link in &mut self.links {
            link.path.advance(now);
        }
    }
}
