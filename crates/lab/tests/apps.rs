//! Each workload over a clean path with the real transport, against what arithmetic says.

use posthaste_lab::apps::{
    App, AppReport, Bulk, Hosts, Page, PageLoad, Progress, READ_STEP, RESPONSE_HEADER_LENGTH, Responder,
    client,
};
use posthaste_lab::peer::PeerEvent;
use posthaste_lab::peers::{Settings, Stack};
use posthaste_lab::result::{FlowResult, Outcome, RunResult};
use posthaste_lab::run::run;
use posthaste_lab::spec::{FlowSpec, NetworkSpec, RunSpec, WorkloadSpec};
use posthaste_lab::world::{End, World};
use posthaste_path::{PathConfig, PathSpec, QueueSize};
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

const RTT: Duration = Duration::from_millis(50);

/// Headers of a packet and of what is in it, at the most; acknowledgements among them.
const OVERHEAD: u64 = 28 + 80;

fn workload(toml: &str) -> WorkloadSpec {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}: {error}"))
}

fn flow(stack: &str, workload: WorkloadSpec) -> FlowSpec {
    FlowSpec {
        name: String::new(),
        stack: stack.parse().expect("a stack"),
        workload,
        start: Duration::ZERO,
        start_within: Duration::ZERO,
        background: false,
        count: 1,
        warm_up: None,
    }
}

/// A path of 50 ms without loss.
fn spec(rate: Option<&str>, flows: Vec<FlowSpec>) -> RunSpec {
    let rate = rate.map(|rate| rate.parse::<Rate>().expect("a rate").into());
    let queue = QueueSize::Bytes(ByteCount::new(10_000_000));
    let path = PathSpec { rtt: RTT, rate, queue, ..PathSpec::default() };
    let network = NetworkSpec::Simple { path };
    RunSpec { network, flows, deadline: Duration::from_secs(120), datagram: 1252, series: None }
}

fn done(spec: &RunSpec) -> RunResult {
    run(spec, 1, None).expect("a sound description")
}

/// The result of one flow that must finish.
fn finished(rate: Option<&str>, stack: &str, toml: &str) -> FlowResult {
    let mut result = done(&spec(rate, vec![flow(stack, workload(toml))]));
    assert_eq!(result.outcome, Outcome::Completed);
    result.flows.remove(0)
}

#[track_caller]
fn assert_within(value: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&value), "{value} is not within {least} and {most}");
}

/// Exact but for the rounding of reals.
#[track_caller]
fn assert_same(value: f64, expected: f64) {
    assert_within(value, expected - 1e-9, expected + 1e-9);
}

#[test]
fn small_exchanges_take_a_round_trip_each_and_the_pauses_in_between() {
    let toml = "kind = \"request-response\"\nobject = \"1kB\"\ncount = 20\nthink = \"30ms\"";
    let flow = finished(None, "cubic", toml);
    assert_eq!((flow.bytes, flow.exchanges.len()), (20_000, 20));
    assert_same(flow.connect.expect("connected"), 0.05);
    for (index, exchange) in flow.exchanges.iter().enumerate() {
        assert_eq!((exchange.object, exchange.bytes), (index, 1000));
        assert_same(exchange.requested, 0.05 + index as f64 * 0.08);
        assert_same(exchange.finished - exchange.requested, 0.05);
    }
    assert_same(flow.completion.expect("finished"), 0.05 + 20.0 * 0.05 + 19.0 * 0.03);
    assert_same(flow.completion.expect("finished") - 0.05, workload(toml).least_time(RTT).as_secs_f64());
}

#[test]
fn a_flow_begins_when_the_seed_says() {
    let object = workload("kind = \"bulk\"\nobject = \"1kB\"");
    let late = FlowSpec { start_within: Duration::from_secs(2), ..flow("cubic", object) };
    let spec = spec(None, vec![FlowSpec { start: Duration::from_secs(1), ..late }]);
    let begins = |seed| {
        let result = run(&spec, seed, None).expect("a sound description");
        assert_same(result.flows[0].completion.expect("finished"), 0.1);
        result.virtual_seconds - 0.1
    };
    let starts: Vec<_> = (0..20).map(begins).collect();
    assert!(starts.iter().all(|start| (1.0..3.0).contains(start)), "{starts:?}");
    assert!(starts.iter().any(|start| *start < 1.7) && starts.iter().any(|start| *start > 2.3), "{starts:?}");
}

#[test]
fn small_exchanges_take_their_serialisation_too() {
    let toml = "kind = \"request-response\"\nobject = \"5kB\"\ncount = 20\nthink = \"100ms\"";
    let flow = finished(Some("1mbit"), "cubic", toml);
    // At 8 us a byte: 300 bytes of request in one packet, 5,200 of response in five.
    let least = 0.05 + (300.0 + 5200.0) * 8e-6;
    let most = least + 6.0 * OVERHEAD as f64 * 8e-6;
    for exchange in &flow.exchanges[1..] {
        assert_within(exchange.finished - exchange.requested, least, most);
    }
    // The first request travels with the end of the handshake, in a datagram padded to 1,200 bytes (RFC 9000 14.1).
    let first = flow.exchanges[0].finished - flow.exchanges[0].requested;
    assert_within(first, least + 700.0 * 8e-6, most + 900.0 * 8e-6);
}

#[test]
fn a_page_of_small_objects_takes_its_depth_in_round_trips_and_its_parsing() {
    let page: Page = "description = \"\"\nhosts = [\"a\", \"b\"]\n\
        [[objects]]\nname = \"html\"\nhost = \"a\"\nsize = \"1kB\"\nparse = \"7ms\"\n\
        [[objects]]\nname = \"script\"\nhost = \"b\"\nsizes = [\"900B\", \"1kB\"]\nafter = [\"html\"]\nparse = \"11ms\"\n\
        [[objects]]\nname = \"image\"\nhost = \"b\"\nsize = \"500B\"\nafter = [\"script\"]\nparse = \"1s\"\n"
        .parse()
        .expect("a page");
    let load = |connections: usize| {
        let mut world = World::new(1);
        let one_way = PathConfig { delay: RTT / 2, loss: 0.0, ..PathConfig::default() };
        let down = world.add_link("down", one_way.clone()).expect("a valid link");
        let up = world.add_link("up", one_way).expect("a valid link");
        let stack: Stack = "cubic".parse().expect("a stack");
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            let pair = stack.pair(&Settings::default(), world.rng());
            let (client, server) = world.add_connection(pair, &[up], &[down]);
            clients.push(client);
            servers.push(server);
        }
        let map = vec![clients[0], clients[connections - 1]];
        let app = world.add_app(Box::new(PageLoad::new(page.clone().into(), map, Time::ZERO)), &clients);
        world.add_app(Box::new(Responder::default()), &servers);
        assert_eq!(world.run(Time::ZERO + Duration::from_secs(60)), End::Completed);
        world.app(app).report()
    };
    let least = page.least_time(RTT);
    assert_eq!(least, Duration::from_millis(3 * 50 + 7 + 11));
    let coalesced = load(1);
    assert_eq!((coalesced.bytes, coalesced.exchanges.len()), (3400, 4));
    assert_eq!(coalesced.finished, Some(Time::ZERO + RTT + least), "one handshake");
    assert_eq!(load(2).finished, Some(Time::ZERO + RTT * 2 + least), "the second host has one of its own");
}

#[test]
fn the_built_in_pages_load_whole_over_one_connection_or_one_a_host() {
    for (name, objects, bytes) in [("gr-page", 100, 1_311_000), ("news", 59, 2_000_000)] {
        for (coalesce, connections) in [(true, 1), (false, 3)] {
            let toml = format!("kind = \"page\"\npage = \"{name}\"\ncoalesce = {coalesce}");
            let spec = workload(&toml);
            assert_eq!(spec.connections(&"cubic".parse().expect("a stack")), connections);
            assert_eq!(spec.connections(&"tcp:cubic".parse().expect("a stack")), 3);
            let flow = finished(Some("20mbit"), "cubic", &toml);
            assert_eq!((flow.exchanges.len(), flow.bytes), (objects, bytes));
            let completion = flow.completion.expect("finished");
            let serialised = bytes as f64 * 8.0 / 20e6;
            assert!(completion > 0.05 + spec.least_time(RTT).as_secs_f64(), "{name}: {completion}");
            assert!(completion > 0.05 + RTT.as_secs_f64() + serialised, "{name}: {completion}");
            let last = flow.exchanges.iter().map(|exchange| exchange.finished).fold(0.0, f64::max);
            assert_same(completion, last);
            let mut seen: Vec<usize> = flow.exchanges.iter().map(|exchange| exchange.object).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..objects), "each object once");
        }
    }
}

#[test]
fn a_page_of_more_objects_than_streams_are_permitted_waits_for_streams() {
    let sizes = vec!["\"100B\""; 600].join(", ");
    let page: Page = format!(
        "description = \"\"\nhosts = [\"a\"]\n[[objects]]\nname = \"icon\"\nhost = \"a\"\nsizes = [{sizes}]"
    )
    .parse()
    .expect("a page");
    let mut world = World::new(1);
    let one_way = PathConfig { delay: RTT / 2, loss: 0.0, ..PathConfig::default() };
    let down = world.add_link("down", one_way.clone()).expect("a valid link");
    let up = world.add_link("up", one_way).expect("a valid link");
    let stack: Stack = "cubic".parse().expect("a stack");
    let pair = stack.pair(&Settings::default(), world.rng());
    let (client, server) = world.add_connection(pair, &[up], &[down]);
    let app = PageLoad::new(page.into(), vec![client], Time::ZERO);
    let app = world.add_app(Box::new(app), &[client]);
    world.add_app(Box::new(Responder::default()), &[server]);
    assert_eq!(world.run(Time::ZERO + Duration::from_secs(60)), End::Completed);
    let report = world.app(app).report();
    assert_eq!((report.exchanges.len(), report.bytes), (600, 60_000));
}

/// Ten chunks of two seconds at 1 Mbit/s: 250 kB each.
const VIDEO: &str = "kind = \"video\"\nrate = \"1mbit\"\nchunk = \"2s\"\nchunks = 10\nbuffer = \"6s\"";

#[test]
fn video_at_twice_its_rate_never_stalls_and_keeps_its_buffer() {
    let flow = finished(Some("2mbit"), "cubic", VIDEO);
    assert_eq!((flow.bytes, flow.exchanges.len()), (2_500_000, 10));
    assert_eq!(flow.stalled_seconds, Some(0.0));
    // The last chunk fits once 14 of 18 seconds before it have been played; it takes more than one, less than two.
    let startup = flow.exchanges[0].finished;
    let last = &flow.exchanges[9];
    assert_same(last.requested, startup + 14.0);
    assert_within(last.finished - last.requested, 1.05, 1.5);
    assert!(flow.completion.expect("finished") > 0.05 + workload(VIDEO).least_time(RTT).as_secs_f64());
}

#[test]
fn video_at_half_its_rate_stalls_for_as_long_as_it_plays() {
    let flow = finished(Some("500kbit"), "cubic", VIDEO);
    assert_eq!(flow.bytes, 2_500_000);
    // Playback stands still while the link brings the other nine, but for the time that the first nine play.
    let (first, last) = (flow.exchanges[0].finished, flow.exchanges[9].finished);
    let stalled = flow.stalled_seconds.expect("a video");
    assert_same(stalled, last - first - 9.0 * 2.0);
    // Each takes a round trip and its part of the bytes on the wire.
    let chunk = RTT.as_secs_f64() + flow.down.bytes_sent as f64 / 10.0 * 8.0 / 500e3;
    assert_within(stalled, 9.0 * chunk - 18.0 - 0.2, 9.0 * chunk - 18.0 + 0.2);
    assert_within(flow.down.bytes_sent as f64, 2_500_000.0, 2_700_000.0);
}

#[test]
fn a_stall_at_the_end_of_a_run_counts() {
    let mut spec = spec(Some("500kbit"), vec![flow("cubic", workload(VIDEO))]);
    // The second chunk, done after more than eight seconds, is not there yet.
    spec.deadline = Duration::from_secs(8);
    let result = done(&spec);
    assert_eq!(result.outcome, Outcome::Deadline);
    let [first] = &result.flows[0].exchanges[..] else { panic!("one chunk") };
    assert_same(result.flows[0].stalled_seconds.expect("a video"), 8.0 - first.finished - 2.0);
}

#[test]
fn a_slow_reader_gets_its_rate_and_flow_control_holds_the_sender() {
    // 200 kB/s, so that the initial window of ten packets outlasts the first round trip, from a path of 12.5 MB/s. The
    // profile's windows are 1 MiB a stream and never grow.
    let toml = "kind = \"bulk\"\nobject = \"3MB\"\nread-rate = \"1.6mbit\"";
    let flow = finished(Some("100mbit"), "cubic-fixed", toml);
    let (completion, first_byte) = (flow.completion.expect("finished"), flow.first_byte.expect("a byte"));
    let paced = (3_000_000 + RESPONSE_HEADER_LENGTH) as f64 / 200e3;
    let step = READ_STEP.as_secs_f64();
    assert_within(completion - first_byte, paced - step, paced + step);
    assert_eq!(flow.bytes, 3_000_000);
    // The last bytes may leave once all but a window has been read: until then the sender waits, a few round trips aside.
    let blocked = flow.down.blocked_seconds.expect("our transport tells");
    assert_within(blocked, 0.9 * (3_000_000.0 - 1_572_864.0) / 200e3, completion);

    for seconds in [1, 5, 9] {
        let mut spec = spec(Some("100mbit"), vec![self::flow("cubic-fixed", workload(toml))]);
        spec.deadline = Duration::from_secs(seconds);
        let result = done(&spec);
        assert_eq!(result.outcome, Outcome::Deadline);
        let flow = &result.flows[0];
        assert_within(flow.bytes as f64, 200e3 * (seconds as f64 - 0.2), 200e3 * seconds as f64);
        // What has arrived and was not read is at most the window, and at least the half that is not yet renewed.
        let held = flow.down.bytes_received as f64 - flow.bytes as f64;
        let headers = flow.down.packets_received as f64 * OVERHEAD as f64 + 5000.0;
        assert_within(held, 524_288.0, 1_048_576.0 + headers);
    }
    let fast = finished(Some("100mbit"), "cubic-fixed", "kind = \"bulk\"\nobject = \"3MB\"");
    assert!(fast.completion.expect("finished") < completion / 10.0, "the path is not what slows the reader");
}

#[test]
fn requests_beside_a_transfer_begin_at_their_times_on_its_connection() {
    let toml =
        "kind = \"loaded-requests\"\nobject = \"10kB\"\ncount = 40\nafter = \"4s\"\ninterval = \"30ms\"";
    let flow = finished(Some("20mbit"), "mobile@code=false", toml);
    assert_eq!(flow.exchanges.len(), 40);
    let mut requested: Vec<(usize, f64)> =
        flow.exchanges.iter().map(|exchange| (exchange.object, exchange.requested)).collect();
    requested.sort_by_key(|(object, _)| *object);
    let connect = flow.connect.expect("connected");
    for (index, (object, at)) in requested.into_iter().enumerate() {
        assert_eq!(object, index);
        // They leave 30 ms apart, although each takes a round trip of 50.
        assert_same(at, connect + 4.0 + index as f64 * 0.03);
    }
    let bytes = 10_200.0 * 8.0 / 20e6;
    for exchange in &flow.exchanges {
        assert_eq!(exchange.bytes, 10_000);
        // A round trip and a half and the bytes: the transfer's data do not come first.
        assert_within(exchange.finished - exchange.requested, 0.05 + bytes, 0.075 + bytes);
    }
    // The transfer fills the link all the time, and counts.
    let completion = flow.completion.expect("the last request ends the run");
    let last = connect + 4.0 + 39.0 * 0.03;
    assert_within(completion, last + 0.05, last + 0.08);
    assert_within(flow.goodput, 16e6, 20e6);
}

#[test]
fn background_load_lasts_as_long_as_what_is_watched_and_repeats() {
    let on_off = "kind = \"on-off\"\nobject = \"20kB\"\npause = \"50ms\"";
    let watched = "kind = \"request-response\"\nobject = \"1kB\"\ncount = 40\nthink = \"50ms\"";
    let run_of = |seed| {
        let mut load = flow("cubic", workload(on_off));
        load.background = true;
        let mut endless = flow("cubic", workload("kind = \"endless\""));
        endless.background = true;
        endless.start = Duration::from_secs(1);
        let spec = spec(Some("20mbit"), vec![flow("cubic", workload(watched)), load, endless]);
        run(&spec, seed, None).expect("a sound description")
    };
    let result = run_of(1);
    assert_eq!(result.outcome, Outcome::Completed);
    let [watched, load, endless] = &result.flows[..] else { panic!("three flows") };
    assert_same(result.virtual_seconds, watched.completion.expect("finished"));
    assert!(result.virtual_seconds > 4.0);
    assert_eq!((load.completion, endless.completion), (None, None));
    assert!(load.exchanges.len() > 10, "{}", load.exchanges.len());
    assert!(load.bytes >= load.exchanges.iter().map(|exchange| exchange.bytes).sum());
    assert_same(endless.goodput, endless.bytes as f64 * 8.0 / (result.virtual_seconds - 1.0));
    assert_within(endless.goodput, 10e6, 20e6);
    assert_eq!(result, run_of(1));
    assert_ne!(result.trace_hash, run_of(2).trace_hash);
}

/// An application whose connection is over from the beginning.
struct Broken;

impl App for Broken {
    fn start(&mut self, _now: Time, _hosts: &mut dyn Hosts) {}
    fn on_event(&mut self, _now: Time, _host: usize, _event: PeerEvent, _hosts: &mut dyn Hosts) {}
    fn on_timeout(&mut self, _now: Time, _hosts: &mut dyn Hosts) {}
    fn next_timeout(&self) -> Option<Time> {
        None
    }
    fn progress(&self) -> Progress {
        Progress::Failed
    }
    fn report(&self) -> AppReport {
        AppReport { failure: Some("broken".to_owned()), ..AppReport::default() }
    }
}

#[test]
fn a_failure_ends_the_run_unless_it_is_in_the_background() {
    for is_background in [false, true] {
        let mut world = World::new(1);
        let link = PathConfig { delay: RTT / 2, loss: 0.0, ..PathConfig::default() };
        let link = world.add_link("both", link).expect("a valid link");
        let pair = "cubic".parse::<Stack>().expect("a stack").pair(&Settings::default(), world.rng());
        let (client, server) = world.add_connection(pair, &[link], &[link]);
        let bulk = world.add_app(Box::new(Bulk::new(client, 10_000, Time::ZERO)), &[client]);
        world.add_app(Box::new(Responder::default()), &[server]);
        let broken = world.add_app(Box::new(Broken), &[]);
        world.set_background(broken, is_background);
        let end = world.run(Time::ZERO + Duration::from_secs(10));
        let (expected, bytes) =
            if is_background { (End::Completed, 10_000) } else { (End::Failed(broken), 0) };
        assert_eq!((end, world.app(bulk).report().bytes), (expected, bytes));
    }
}

#[test]
fn load_without_end_that_is_watched_lasts_until_the_deadline() {
    let mut spec = spec(Some("10mbit"), vec![flow("cubic", workload("kind = \"endless\""))]);
    spec.deadline = Duration::from_secs(3);
    let result = done(&spec);
    assert_eq!((result.outcome, result.virtual_seconds), (Outcome::Deadline, 3.0));
    assert_within(result.flows[0].goodput, 8e6, 10e6);
}

#[test]
fn workloads_say_what_they_need() {
    let of = |toml: &str| {
        let spec = workload(toml);
        (spec.body_bytes(), spec.request_rounds(), spec.least_time(RTT).as_millis())
    };
    assert_eq!(of("kind = \"bulk\"\nobject = \"1MB\""), (Some(1_000_000), 1, 50));
    assert_eq!(of("kind = \"bulk\"\nobject = \"1MB\"\nread-rate = \"8mbit\""), (Some(1_000_000), 1, 1050));
    assert_eq!(of("kind = \"endless\"").0, None);
    assert_eq!(of("kind = \"on-off\"\nobject = \"1kB\"\npause = \"1s\"").0, None);
    assert_eq!(of("kind = \"request-response\"\nobject = \"1kB\"\ncount = 7"), (Some(7000), 7, 350));
    let loaded = "kind = \"loaded-requests\"\nobject = \"1kB\"\ncount = 3\nafter = \"2s\"\ninterval = \"1s\"";
    assert_eq!(of(loaded), (None, 1, 4050));
    assert_eq!(of("kind = \"page\"\npage = \"gr-page\""), (Some(1_311_000), 3, 150));
    // The last chunk is asked for once 14 s have been played, which began a round trip after the first request.
    assert_eq!(of(VIDEO), (Some(2_500_000), 10, 14_100));
}

#[test]
fn wrong_workloads_are_refused_by_what_is_wrong() {
    let unread = |toml: &str| toml::from_str::<WorkloadSpec>(toml).expect_err(toml).to_string();
    assert!(unread("kind = \"bulks\"\nobject = \"1MB\"").contains("request-response"));
    assert!(unread("kind = \"bulk\"\nobject = \"1MB\"\nread_rate = \"1mbit\"").contains("`read-rate`"));
    assert!(unread("kind = \"bulk\"\nobject = 5").contains("unit"));
    let refused = |toml: &str| workload(toml).validate().expect_err(toml).to_string();
    assert!(refused("kind = \"page\"\npage = \"old\"").contains("gr-page, news"));
    assert_eq!(
        refused("kind = \"bulk\"\nobject = \"1MB\"\nread-rate = \"0bit\""),
        "workload bulk: `read-rate` must be greater than zero"
    );
    assert_eq!(
        refused("kind = \"request-response\"\nobject = \"1kB\"\ncount = 10001"),
        "workload request-response: `count` must be 1 to 10000"
    );
    assert!(refused(&VIDEO.replace("\"6s\"", "\"1s\"")).contains("`buffer` must be at least a chunk"));
    assert!(refused(&VIDEO.replace("chunks = 10", "chunks = 0")).contains("`chunks`"));
    assert!(refused(&VIDEO.replace("\"2s\"", "\"0s\"")).contains("`chunk`"));
    let loaded = "kind = \"loaded-requests\"\nobject = \"1kB\"\ncount = 3\nafter = \"0s\"\ninterval = \"0s\"";
    assert!(refused(loaded).contains("`interval` must be greater than zero"));
    assert!(refused(&loaded.replace("count = 3", "count = 0")).contains("`count`"));
    assert!(refused("kind = \"on-off\"\nobject = \"0B\"\npause = \"1s\"").contains("`object`"));
    let page = workload("kind = \"page\"\npage = \"news\"");
    let error = client(&page, &[0, 1], Time::ZERO, Rng::from_test_seed(1)).err().expect("two of three hosts");
    assert_eq!(error.to_string(), "the workload needs 1 or 3 connections and got 2");
}
