//! What the tests of the TCP model share: downloads over the lab's links, and a wire on which a test decides the
//! fate of every single segment.

#![allow(dead_code, reason = "each test file uses a part")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use posthaste_lab::apps::{
    App, AppReport, Bulk, Hosts, Progress, REQUEST_LENGTH, RESPONSE_HEADER_LENGTH, Request, Responder,
    is_content,
};
use posthaste_lab::packet::{Body, Packet};
use posthaste_lab::peer::{Counters, Peer, PeerEvent, Read, StreamKey};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::world::{End, World};
use posthaste_lab_peer::segment::Segment;
use posthaste_path::{Bottleneck, PathConfig, Reordering};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

/// Payload of a full segment: an IP packet of 1,280 bytes less 52 of headers.
pub(crate) const MSS: u64 = 1228;

pub(crate) fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

/// One download over one path.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) stack: &'static str,
    pub(crate) bytes: u64,
    pub(crate) rtt: Duration,
    pub(crate) rate: Option<Rate>,
    /// Queue in bytes.
    pub(crate) queue: u64,
    pub(crate) loss: f64,
    /// Reordering, duplication and corruption: probabilities, both ways.
    pub(crate) mess: [f64; 3],
    pub(crate) seed: u64,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            stack: "tcp:cubic",
            bytes: 1_000_000,
            rtt: Duration::from_millis(50),
            rate: Some(Rate::from_bits_per_second(100_000_000)),
            queue: 625_000,
            loss: 0.0,
            mess: [0.0; 3],
            seed: 1,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) connected: f64,
    pub(crate) finished: f64,
    pub(crate) hash: String,
    pub(crate) packets: u64,
}

/// The download in the lab's world; its application checks every byte.
pub(crate) fn download(case: &Case) -> Outcome {
    let mut world = World::new(case.seed);
    let bottleneck = case.rate.map(|rate| Bottleneck::new(rate, ByteCount::new(case.queue)));
    let [reordering, duplication, corruption] = case.mess;
    let link = PathConfig {
        delay: case.rtt / 2,
        loss: case.loss,
        reordering: Reordering { probability: reordering, extra_delay: case.rtt / 4, correlation: 0.0 },
        duplication,
        corruption,
        bottleneck,
        ..PathConfig::default()
    };
    let down = world.add_link("down", link.clone()).expect("a valid link");
    let up = world.add_link("up", link).expect("a valid link");
    let stack: Stack = case.stack.parse().expect("a stack");
    let pair = stack.pair(&Settings::default(), world.rng());
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    let app = world.add_app(Box::new(Bulk::new(client, case.bytes, Time::ZERO)), &[client]);
    world.add_app(Box::new(Responder::default()), &[server]);
    let end = world.run(at(3600.0));
    let report = world.app(app).report();
    let seconds = |time: Option<Time>| time.map_or(f64::NAN, Time::as_secs_f64);
    Outcome {
        end,
        connected: seconds(report.connected),
        finished: seconds(report.finished),
        hash: world.trace_hash(),
        packets: world.packets(),
    }
}

/// Which way a segment goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// A segment as it left.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) at: f64,
    pub(crate) way: Way,
    pub(crate) segment: Segment,
}

/// Two hosts and an infinitely fast wire; the test's filter answers how much later than usual each segment
/// arrives, or `None` if it is lost.
pub(crate) struct Wire {
    hosts: [Box<dyn Peer>; 2],
    one_way: Duration,
    now: Time,
    under_way: BTreeMap<(Time, u64), (usize, Packet)>,
    count: u64,
    pub(crate) sent: Vec<Sent>,
    /// The server's window and in-flight bytes whenever something has happened, at most once a time.
    pub(crate) windows: Vec<(f64, u64)>,
}

struct Two<'a>(&'a mut [Box<dyn Peer>; 2]);

impl Hosts for Two<'_> {
    fn peer(&mut self, host: usize) -> &mut dyn Peer {
        &mut *self.0[host]
    }
}

impl Wire {
    pub(crate) fn new(stack: &str, rtt: Duration) -> Self {
        let stack: Stack = stack.parse().expect("a stack");
        let pair = stack.pair(&Settings::default(), &mut Rng::from_test_seed(1));
        Self {
            hosts: [pair.client, pair.server],
            one_way: rtt / 2,
            now: Time::ZERO,
            under_way: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// What the server has counted so far.
    pub(crate) fn counters(&self) -> Counters {
        self.server().counters(self.now)
    }

    pub(crate) fn server(&self) -> &dyn Peer {
        &*self.hosts[1]
    }

    /// Runs until the application is no longer working; false if `deadline` comes first.
    pub(crate) fn run(
        &mut self,
        app: &mut dyn App,
        deadline: f64,
        mut filter: impl FnMut(&Sent) -> Option<Duration>,
    ) -> bool {
        let mut responder = Responder::default();
        app.start(self.now, &mut Two(&mut self.hosts));
        loop {
            self.settle(app, &mut responder, &mut filter);
            if app.progress() != Progress::Working {
                return app.progress() == Progress::Idle;
            }
            let arrival = self.under_way.first_key_value().map(|((time, _), _)| *time);
            let timers = self.hosts.iter_mut().filter_map(|host| host.next_timeout());
            let next = timers.chain(arrival).chain(app.next_timeout()).min();
            let Some(next) = next.filter(|next| *next <= at(deadline)) else { return false };
            self.now = self.now.max(next);
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, packet) = entry.remove();
                self.hosts[to].on_packet(self.now, packet);
            }
            for host in &mut self.hosts {
                if host.next_timeout().is_some_and(|at| at <= self.now) {
                    host.on_timeout(self.now);
                }
            }
            if app.next_timeout().is_some_and(|at| at <= self.now) {
                app.on_timeout(self.now, &mut Two(&mut self.hosts));
            }
        }
    }

    fn settle(
        &mut self,
        app: &mut dyn App,
        responder: &mut Responder,
        filter: &mut impl FnMut(&Sent) -> Option<Duration>,
    ) {
        for _ in 0..2 {
            for host in 0..2 {
                let user: &mut dyn App = if host == 0 { app } else { responder };
                while let Some(event) = self.hosts[host].poll_event() {
                    user.on_event(self.now, host, event, &mut Two(&mut self.hosts));
                }
                while let Some(packet) = self.hosts[host].poll_transmit(self.now) {
                    self.send(host, packet, filter);
                }
            }
        }
        let window = self.hosts[1].snapshot().window.map_or(0, ByteCount::get);
        self.windows.push((self.now.as_secs_f64(), window));
    }

    fn send(&mut self, from: usize, packet: Packet, filter: &mut impl FnMut(&Sent) -> Option<Duration>) {
        let Body::Tcp(segment) = &packet.body else { panic!("the TCP model sends segments") };
        let way = if from == 0 { Way::Up } else { Way::Down };
        let sent = Sent { at: self.now.as_secs_f64(), way, segment: (**segment).clone() };
        let fate = filter(&sent);
        self.sent.push(sent);
        if let Some(extra) = fate {
            self.count += 1;
            let arrival = self.now + self.one_way + extra;
            self.under_way.insert((arrival, self.count), (1 - from, packet));
        }
    }
}

/// On time.
pub(crate) const ON_TIME: Option<Duration> = Some(Duration::ZERO);

/// Some objects of one size, all requested in batches; reading may begin late.
pub(crate) struct Fetch {
    batches: Vec<usize>,
    bytes: u64,
    open: BTreeMap<StreamKey, u64>,
    /// Nothing is read before.
    pub(crate) reads_from: Time,
    /// When each object was complete, in order.
    pub(crate) finished: Rc<RefCell<Vec<f64>>>,
    is_failed: bool,
}

impl Fetch {
    pub(crate) fn new(batches: &[usize], bytes: u64) -> Self {
        Self {
            batches: batches.to_vec(),
            bytes,
            open: BTreeMap::new(),
            reads_from: Time::ZERO,
            finished: Rc::default(),
            is_failed: false,
        }
    }

    fn begin(&mut self, now: Time, peer: &mut dyn Peer) {
        if self.batches.is_empty() {
            return;
        }
        for _ in 0..self.batches.remove(0) {
            let key = peer.open(now).expect("a stream can be opened");
            let mut request = Request { body: self.bytes }.encode();
            assert_eq!(request.len(), REQUEST_LENGTH);
            peer.write(now, key, &mut request);
            peer.finish(now, key);
            self.open.insert(key, 0);
        }
    }

    fn pump(&mut self, now: Time, peer: &mut dyn Peer) {
        if now < self.reads_from {
            return;
        }
        for key in self.open.keys().copied().collect::<Vec<_>>() {
            loop {
                let read = self.open.get_mut(&key).expect("it is open");
                match peer.read(now, key, usize::MAX) {
                    Read::Data(data) => {
                        assert!(is_content(*read, &data), "wrong bytes");
                        *read += data.len() as u64;
                    }
                    Read::Blocked => break,
                    Read::Reset => {
                        self.is_failed = true;
                        break;
                    }
                    Read::Finished => {
                        assert_eq!(*read, self.bytes + RESPONSE_HEADER_LENGTH as u64);
                        self.finished.borrow_mut().push(now.as_secs_f64());
                        self.open.remove(&key);
                        break;
                    }
                }
            }
        }
        if self.open.is_empty() {
            self.begin(now, peer);
        }
    }
}

impl App for Fetch {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        hosts.peer(0).connect(now);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected => self.begin(now, hosts.peer(host)),
            PeerEvent::Closed(_) => self.is_failed = true,
            _ => self.pump(now, hosts.peer(host)),
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.reads_from = Time::ZERO;
        self.pump(now, hosts.peer(0));
    }

    fn next_timeout(&self) -> Option<Time> {
        (self.reads_from > Time::ZERO).then_some(self.reads_from)
    }

    fn progress(&self) -> Progress {
        if self.is_failed {
            Progress::Failed
        } else if self.open.is_empty() && self.batches.is_empty() {
            Progress::Idle
        } else {
            Progress::Working
        }
    }

    fn report(&self) -> AppReport {
        AppReport::default()
    }
}
