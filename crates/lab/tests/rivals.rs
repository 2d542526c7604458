//! noq-proto and quinn-proto as peers: byte-exact, repeatable, and able to talk to our transport.

use bytes::Bytes;
use posthaste_lab::apps::{
    App, AppReport, Bulk, Hosts, Progress, RESPONSE_HEADER_LENGTH, Request, Responder, is_content,
};
use posthaste_lab::peer::{Peer, PeerEvent, Read, StreamKey};
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::result::{Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;
use posthaste_lab::world::{End, World};
use posthaste_path::{Bottleneck, GilbertElliott, PathConfig, Reordering};
use posthaste_units::{ByteCount, Duration, Rate, Time};

const RIVALS: [&str; 6] =
    ["noq:newreno", "noq:cubic", "noq:bbr3", "quinn:newreno", "quinn:cubic", "quinn:bbr"];

fn stack(name: &str) -> Stack {
    name.parse().expect("a stack")
}

/// 100 Mbit/s behind a queue of `queue` bandwidth-delay products.
fn path(rtt: u64, loss: f64, queue: f64) -> PathConfig {
    let rate = Rate::from_bits_per_second(100_000_000);
    let queue = ByteCount::from_f64(rate.bytes_in(Duration::from_millis(rtt)).as_f64() * queue);
    let delay = Duration::from_millis(rtt) / 2;
    PathConfig { delay, loss, bottleneck: Some(Bottleneck::new(rate, queue)), ..PathConfig::default() }
}

/// A connection between `client` and `server` over a path that is the same both ways; the two hosts.
fn connected(seed: u64, client: &str, server: &str, path: &PathConfig) -> (World, usize, usize) {
    with_settings(seed, client, server, path, &Settings::default())
}

fn with_settings(
    seed: u64,
    client: &str,
    server: &str,
    path: &PathConfig,
    settings: &Settings,
) -> (World, usize, usize) {
    let mut world = World::new(seed);
    let down = world.add_link("down", path.clone()).expect("a valid link");
    let up = world.add_link("up", path.clone()).expect("a valid link");
    let pair =
        Stack::mixed_pair(&stack(client), &stack(server), settings, world.rng()).expect("both speak QUIC");
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    world.add_app(Box::new(Responder::default()), &[server]);
    (world, client, server)
}

/// Runs `app`, which must complete; what it reports.
fn completed(world: &mut World, app: Box<dyn App>, client: usize, name: &str) -> AppReport {
    let app = world.add_app(app, &[client]);
    let end = world.run(Time::ZERO + Duration::from_secs(900));
    let report = world.app(app).report();
    assert_eq!(end, End::Completed, "{name}: {report:?}");
    report
}

/// A download of `bytes`, which [`Bulk`] checks one by one; its end, the trace's hash.
fn bulk(seed: u64, client: &str, server: &str, path: &PathConfig, bytes: u64) -> (Time, String) {
    let (mut world, host, _) = connected(seed, client, server, path);
    let app = Bulk::new(host, bytes, Time::ZERO);
    let name = format!("{client} from {server}, seed {seed}");
    let report = completed(&mut world, Box::new(app), host, &name);
    assert_eq!(report.bytes, bytes, "{name}");
    (report.finished.expect("it has finished"), world.trace_hash())
}

#[test]
fn a_clean_path_is_filled() {
    for name in RIVALS {
        let (end, _) = bulk(1, name, name, &path(50, 0.0, 1.0), 1_000_000);
        // Two round trips and the bytes take 0.18 s at least; slow start from ten packets seven round trips more.
        assert!(end > Time::ZERO + Duration::from_millis(180), "{name}: {end:?}");
        assert!(end < Time::ZERO + Duration::from_millis(500), "{name}: {end:?}");
    }
}

#[test]
fn losses_are_repaired_and_the_same_seed_gives_the_same_run() {
    for name in RIVALS {
        let first = bulk(7, name, name, &path(50, 0.02, 1.0), 1_000_000);
        if stack(name).is_repeatable() {
            assert_eq!(first, bulk(7, name, name, &path(50, 0.02, 1.0), 1_000_000), "{name}");
        }
        assert_ne!(first.1, bulk(8, name, name, &path(50, 0.02, 1.0), 1_000_000).1, "{name}");
    }
}

#[test]
fn only_noqs_bbr_does_not_repeat() {
    let not: Vec<&str> = RIVALS.into_iter().filter(|name| !stack(name).is_repeatable()).collect();
    assert_eq!(not, ["noq:bbr3"]);
    assert!(stack("cubic").is_repeatable());
    assert!(stack("tcp:cubic").is_repeatable());
}

/// quinn's BBR draws at random when it begins to probe for bandwidth; nothing that it sends may depend on that.
#[test]
fn what_quinns_bbr_draws_has_no_effect() {
    for seed in 0..3 {
        let first = bulk(seed, "quinn:bbr", "quinn:bbr", &path(38, 0.01, 1.0), 10_000_000);
        for _ in 0..2 {
            assert_eq!(
                first,
                bulk(seed, "quinn:bbr", "quinn:bbr", &path(38, 0.01, 1.0), 10_000_000),
                "{seed}"
            );
        }
    }
}

/// All datagrams are of one size, as they are for our transport.
#[test]
fn the_datagram_size_is_the_settings() {
    for name in ["cubic", "noq:cubic", "quinn:cubic"] {
        for size in [1200, 1252, 1472, 1600] {
            let settings = Settings { max_datagram_size: size, ..Settings::default() };
            let path = path(20, 0.0, 1.0);
            let (mut world, client, _) = with_settings(1, name, name, &path, &settings);
            let app = Bulk::new(client, 300_000, Time::ZERO);
            completed(&mut world, Box::new(app), client, name);
            // Data packets, and an acknowledgement for every second one at most; a few for the handshake.
            let data = 300_200 / (u64::from(size) - 60) + 1;
            let least = 300_200 / u64::from(size);
            assert!(world.packets() >= least, "{name} {size}: {}", world.packets());
            assert!(world.packets() <= data * 3 / 2 + 25, "{name} {size}: {}", world.packets());
        }
    }
}

/// The largest window that the adapters permit outlasts losses at random on a long fat path, and the bursts of a
/// slow start that overflows a short queue.
#[test]
fn bursts_of_loss_do_not_close_the_connection() {
    let bursts = GilbertElliott::from_mean(0.02, 5.0).expect("bursts that can be");
    let bursts = PathConfig { burst_loss: Some(bursts), ..path(188, 0.0, 1.0) };
    for name in RIVALS {
        bulk(3, name, name, &path(188, 0.08, 1.0), 10_000_000);
        bulk(3, name, name, &bursts, 10_000_000);
        bulk(3, name, name, &path(188, 0.0, 0.25), 10_000_000);
        bulk(3, name, name, &path(100, 0.0, 0.5), 10_000_000);
        bulk(3, name, name, &path(188, 0.0, 1.0), 20_000_000);
    }
}

/// Downloads objects of one size, each on a stream of its own, and reads at most so much at a time.
struct Reader {
    host: usize,
    objects: usize,
    bytes: u64,
    /// Bytes that are read at each tick, from all streams together; `None` reads at once.
    budget: Option<usize>,
    next_tick: Time,
    streams: Vec<(StreamKey, u64)>,
    opened: usize,
    report: AppReport,
}

/// Time between two ticks.
const TICK: Duration = Duration::from_millis(10);

impl Reader {
    fn new(host: usize, objects: usize, bytes: u64, budget: Option<usize>) -> Self {
        Self {
            host,
            objects,
            bytes,
            budget,
            next_tick: Time::ZERO,
            streams: Vec::new(),
            opened: 0,
            report: AppReport::default(),
        }
    }

    fn open(&mut self, now: Time, peer: &mut dyn Peer) {
        while self.opened < self.objects {
            let Some(stream) = peer.open(now) else { return };
            let mut request: Bytes = Request { body: self.bytes }.encode();
            peer.write(now, stream, &mut request);
            assert!(request.is_empty(), "a new stream has room for a request");
            peer.finish(now, stream);
            self.streams.push((stream, 0));
            self.opened += 1;
        }
    }

    fn read(&mut self, now: Time, peer: &mut dyn Peer) {
        let mut budget = self.budget.unwrap_or(usize::MAX);
        let length = self.bytes + RESPONSE_HEADER_LENGTH as u64;
        let mut index = 0;
        while index < self.streams.len() && budget > 0 {
            let (stream, read) = &mut self.streams[index];
            match peer.read(now, *stream, budget) {
                Read::Data(data) => {
                    assert!(data.len() <= budget, "more than was asked for");
                    assert!(is_content(*read, &data), "wrong bytes near {read}");
                    *read += data.len() as u64;
                    self.report.bytes += data.len() as u64;
                    budget -= data.len();
                }
                Read::Blocked => index += 1,
                Read::Finished => {
                    assert_eq!(*read, length, "an object's length");
                    assert_eq!(peer.read(now, *stream, 1), Read::Reset, "a stream is read once");
                    self.streams.remove(index);
                }
                Read::Reset => panic!("no stream is reset here"),
            }
        }
        if self.streams.is_empty() && self.opened == self.objects {
            self.report.finished = Some(now);
        }
    }
}

impl App for Reader {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        hosts.peer(self.host).connect(now);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected | PeerEvent::Available => self.open(now, hosts.peer(host)),
            PeerEvent::Closed(reason) => self.report.failure = Some(format!("closed: {reason:?}")),
            PeerEvent::Readable(_) if self.budget.is_none() => self.read(now, hosts.peer(host)),
            _ => {}
        }
    }

    fn on_timeout(&mut self, now: Time, hosts: &mut dyn Hosts) {
        self.next_tick = now + TICK;
        self.read(now, hosts.peer(self.host));
    }

    fn next_timeout(&self) -> Option<Time> {
        (self.budget.is_some() && self.report.finished.is_none()).then_some(self.next_tick)
    }

    fn progress(&self) -> Progress {
        match (&self.report.failure, self.report.finished) {
            (Some(_), _) => Progress::Failed,
            (None, Some(_)) => Progress::Idle,
            (None, None) => Progress::Working,
        }
    }

    fn report(&self) -> AppReport {
        self.report.clone()
    }
}

/// An application that reads 2 MB/s of a sender that could send six times as much: the windows fill, with loss and
/// without, at their bound and when they are small.
#[test]
fn a_slow_reader_gets_all() {
    let small = Settings {
        stream_window: ByteCount::new(64_000),
        connection_window: ByteCount::new(100_000),
        ..Settings::default()
    };
    for name in RIVALS {
        for (settings, loss) in [(&Settings::default(), 0.0), (&Settings::default(), 0.01), (&small, 0.01)] {
            let (mut world, client, _) = with_settings(5, name, name, &path(20, loss, 1.0), settings);
            let app = Reader::new(client, 1, 6_000_000, Some(20_000));
            let report = completed(&mut world, Box::new(app), client, name);
            let end = report.finished.expect("it has finished");
            // 6,000,200 bytes at 20,000 a tick, the first after the handshake.
            assert!(end >= Time::ZERO + TICK * 300, "{name}: {end:?}");
        }
    }
}

/// More streams than may be open at once, in windows that hold none of them whole.
#[test]
fn many_streams_share_a_connection() {
    let small = Settings {
        stream_window: ByteCount::new(10_000),
        // Room for the requests on 256 streams.
        connection_window: ByteCount::new(100_000),
        ..Settings::default()
    };
    for name in RIVALS {
        for settings in [&Settings::default(), &small] {
            let (mut world, client, _) = with_settings(9, name, name, &path(20, 0.01, 1.0), settings);
            let app = Reader::new(client, 600, 12_000, None);
            let report = completed(&mut world, Box::new(app), client, name);
            assert_eq!(report.bytes, 600 * (12_000 + RESPONSE_HEADER_LENGTH as u64), "{name}");
        }
    }
}

/// Everything that a path can do to a packet, more of it than any real one.
fn impaired() -> PathConfig {
    PathConfig {
        loss: 0.03,
        reordering: Reordering {
            probability: 0.05,
            extra_delay: Duration::from_millis(8),
            ..Reordering::default()
        },
        duplication: 0.03,
        corruption: 0.02,
        ..path(30, 0.0, 1.0)
    }
}

/// Our client at each rival's server, each rival's client at our server, and the rivals with each other.
#[test]
fn stacks_can_be_mixed() {
    let pairs = [
        ("cubic", "noq:cubic"),
        ("cubic", "quinn:cubic"),
        ("noq:cubic", "cubic"),
        ("quinn:cubic", "cubic"),
        ("noq:newreno", "quinn:bbr"),
        ("quinn:newreno", "noq:bbr3"),
    ];
    for (client, server) in pairs {
        for seed in 0..5 {
            let first = bulk(seed, client, server, &impaired(), 300_000);
            if seed == 0 && stack(server).is_repeatable() {
                assert_eq!(first, bulk(seed, client, server, &impaired(), 300_000), "{client} {server}");
            }
            let (mut world, host, _) = connected(seed, client, server, &impaired());
            let app = Reader::new(host, 300, 2_000, None);
            completed(&mut world, Box::new(app), host, &format!("{client} from {server}, seed {seed}"));
        }
    }
}

/// Closes once connected, and waits for the other end to learn of it.
struct Closer {
    client: usize,
    /// What each end has been told.
    told: Vec<(usize, Option<String>)>,
}

impl App for Closer {
    fn start(&mut self, now: Time, hosts: &mut dyn Hosts) {
        hosts.peer(self.client).connect(now);
    }

    fn on_event(&mut self, now: Time, host: usize, event: PeerEvent, hosts: &mut dyn Hosts) {
        match event {
            PeerEvent::Connected if host == self.client => {
                let _ = hosts.peer(host).open(now).map(|stream| hosts.peer(host).finish(now, stream));
            }
            PeerEvent::Opened(_) => hosts.peer(host).close(now),
            PeerEvent::Closed(reason) => self.told.push((host, reason)),
            _ => {}
        }
    }

    fn on_timeout(&mut self, _now: Time, _hosts: &mut dyn Hosts) {}

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn progress(&self) -> Progress {
        if self.told.len() < 2 { Progress::Working } else { Progress::Idle }
    }

    fn report(&self) -> AppReport {
        AppReport { failure: Some(format!("{:?}", self.told)), ..AppReport::default() }
    }
}

#[test]
fn a_close_is_told_once_at_both_ends() {
    let all = ["cubic", "noq:cubic", "quinn:cubic"];
    for (client, server) in all.iter().flat_map(|client| all.iter().map(move |server| (client, server))) {
        let mut world = World::new(1);
        let down = world.add_link("down", path(20, 0.0, 1.0)).expect("a valid link");
        let up = world.add_link("up", path(20, 0.0, 1.0)).expect("a valid link");
        let settings = Settings::default();
        let pair = Stack::mixed_pair(&stack(client), &stack(server), &settings, world.rng())
            .expect("both speak QUIC");
        let (host, other) = world.add_connection(pair, &[up], &[down]);
        let app = world.add_app(Box::new(Closer { client: host, told: Vec::new() }), &[host, other]);
        assert_eq!(world.run(Time::ZERO + Duration::from_secs(60)), End::Completed, "{client} {server}");
        let told = world.app(app).report().failure;
        assert_eq!(told.as_deref(), Some("[(1, None), (0, None)]"), "{client} {server}");
    }
}

#[test]
fn a_dead_path_is_told() {
    for name in ["noq:cubic", "quinn:cubic"] {
        let (mut world, client, _) = connected(1, name, name, &path(50, 1.0, 1.0));
        let app = world.add_app(Box::new(Bulk::new(client, 1, Time::ZERO)), &[client]);
        assert_eq!(world.run(Time::ZERO + Duration::from_secs(4000)), End::Failed(app), "{name}");
        assert_eq!(world.app(app).report().failure.as_deref(), Some("timed out"), "{name}");
    }
}

/// A run of one download over a path as a specification has it.
fn run_over(path: &str, name: &str, object: &str) -> RunResult {
    let spec = format!(
        r#"
        network = {{ kind = "simple", path = {path} }}
        flows = [{{ stack = "{name}", workload = {{ kind = "bulk", object = "{object}" }} }}]
        series = "20ms"
        "#
    );
    let spec: RunSpec = toml::from_str(&spec).expect("a valid description");
    let result = run(&spec, 4, None).expect("a run");
    assert_eq!(result.outcome, Outcome::Completed, "{name}");
    result
}

/// The loss-based controllers slow down at marks, before anything is lost.
#[test]
fn marks_are_heeded() {
    let path = r#"{ rtt = "20ms", rate = "20mbit", queue = "200kB", ecn = true, mark-above = "20kB" }"#;
    for name in ["noq:newreno", "noq:cubic", "quinn:newreno", "quinn:cubic"] {
        let result = run_over(path, name, "3MB");
        let down = &result.links[1];
        assert_eq!((down.name.as_str(), down.dropped), ("path down", 0), "{name}");
        assert!(down.marked > 20, "{name}: {}", down.marked);
        let counters = &result.flows[0].down.counters;
        assert_eq!(counters.lost, Some(0), "{name}");
        assert!(counters.congestion_events.is_some_and(|events| events > 2), "{name}: {counters:?}");
    }
}

#[test]
fn counters_and_gauges_are_told() {
    for name in RIVALS {
        let result = run_over(r#""average""#, name, "1MB");
        let (down, up) = (&result.flows[0].down, &result.flows[0].up);
        let lost = down.counters.lost.expect("quinn and noq count losses");
        // One link loses data; what overflows its queue is lost too.
        let lost_there: u64 = result.links.iter().map(|link| link.lost + link.dropped).sum();
        assert!(lost > 0 && lost <= lost_there, "{name}: {lost} of {lost_there}");
        assert!(down.counters.congestion_events.is_some_and(|events| events > 0 && events <= lost), "{name}");
        assert!(up.counters.acks_sent.is_some_and(|acks| acks > 100 && acks <= up.packets_sent), "{name}");
        let series = result.series.expect("a series was asked for");
        let told: Vec<&str> = series.gauges.iter().map(|gauge| gauge.quantity.as_str()).collect();
        for quantity in ["window", "rtt"] {
            assert!(told.contains(&quantity), "{name}: {quantity} is not in {told:?}");
        }
        assert_eq!(told.contains(&"pacing"), name == "noq:bbr3", "{name}: {told:?}");
        let window = series.gauges.iter().find(|gauge| gauge.quantity == "window").expect("it is there");
        let largest = window.values.iter().flatten().copied().fold(0.0, f64::max);
        assert!((12_000.0..2e6).contains(&largest), "{name}: {largest}");
    }
}
