//! Corner cases of clients, on a stack that does what it is told.

use bytes::Bytes;
use posthaste_units::{ByteCount, Duration, Rate, Rng, Time};

use super::fake::Bench;
use super::{
    App, Bulk, OnOff, Progress, READ_STEP, REQUEST_LENGTH, Request, RequestResponse, Responder, Video,
    VideoSpec,
};
use crate::peer::{PeerEvent, Read, StreamKey};

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A client of one object of 1,000 bytes, connected after 10 ms.
fn connected() -> Bench<Bulk> {
    let mut bench = Bench::start(Bulk::new(0, 1000, Time::ZERO));
    bench.event(ms(10), PeerEvent::Connected);
    bench
}

/// The failure of a client that finds `incoming` on its stream.
fn failure_of(incoming: impl IntoIterator<Item = Read>) -> String {
    let mut bench = connected();
    bench.peers.at(0).streams[0].incoming.extend(incoming);
    bench.event(ms(20), PeerEvent::Readable(StreamKey(0)));
    assert_eq!(bench.app.progress(), Progress::Failed);
    assert_eq!(bench.app.next_timeout(), None);
    bench.app.report().failure.expect("a reason")
}

#[test]
fn a_client_connects_when_its_time_has_come() {
    let mut bench = Bench::start(Bulk::new(0, 1000, ms(5)));
    assert_eq!((bench.peers.at(0).connects, bench.app.next_timeout()), (0, Some(ms(5))));
    assert_eq!(bench.fire(), ms(5));
    assert_eq!((bench.peers.at(0).connects, bench.app.next_timeout()), (1, None));
    bench.event(ms(10), PeerEvent::Connected);
    bench.respond(0, 0, 1000, ms(20));
    let report = bench.app.report();
    let times = (report.started, report.connected, report.finished);
    assert_eq!(times, (Some(ms(5)), Some(ms(10)), Some(ms(20))));
    assert_eq!((report.bytes, bench.app.progress()), (1000, Progress::Idle));
}

#[test]
fn a_request_that_finds_no_room_is_written_in_parts_and_finished_once() {
    let mut bench = Bench::start(Bulk::new(0, 1000, Time::ZERO));
    bench.peers.at(0).room = 100;
    bench.event(ms(10), PeerEvent::Connected);
    for (at, written, finishes) in [(11, 100, 0), (12, 250, 0), (13, 300, 1), (14, 300, 1)] {
        if at > 11 {
            bench.peers.at(0).room = 150;
            bench.event(ms(at), PeerEvent::Writable(StreamKey(0)));
        }
        let stream = &bench.peers.at(0).streams[0];
        assert_eq!((stream.written.len(), stream.finishes), (written, finishes), "at {at} ms");
    }
    let request = Request::decode(&bench.peers.at(0).streams[0].written);
    assert_eq!(request, Some(Request { body: 1000 }));
}

#[test]
fn a_client_that_may_not_open_waits_until_it_may() {
    let mut bench = Bench::start(Bulk::new(0, 1000, Time::ZERO));
    bench.peers.at(0).permits = 0;
    bench.event(ms(10), PeerEvent::Connected);
    assert_eq!(bench.app.next_timeout(), None, "only the peer can end the wait");
    bench.event(ms(20), PeerEvent::Writable(StreamKey(7)));
    assert!(bench.peers.at(0).streams.is_empty());
    bench.peers.at(0).permits = 1;
    bench.event(ms(30), PeerEvent::Available);
    bench.respond(0, 0, 1000, ms(40));
    let report = bench.app.report();
    assert_eq!(report.exchanges[0].requested, ms(10), "waiting for a stream is waiting");
    assert_eq!(report.finished, Some(ms(40)));
}

#[test]
fn wrong_responses_fail_with_a_reason() {
    let right = |length| Read::Data(super::content(0, length));
    assert_eq!(failure_of([Read::Reset]), "object 0: the stream was reset");
    assert_eq!(failure_of([right(100), Read::Reset]), "object 0: the stream was reset");
    assert_eq!(failure_of([Read::Finished]), "object 0: 0 bytes instead of 1200");
    assert_eq!(failure_of([right(1199), Read::Finished]), "object 0: 1199 bytes instead of 1200");
    assert_eq!(failure_of([right(1200), right(1)]), "object 0: more than 1200 bytes");
    let mut wrong = super::content(100, 50).to_vec();
    wrong[49] ^= 1;
    assert_eq!(failure_of([right(100), Read::Data(wrong.into())]), "object 0: wrong bytes near 100");
}

#[test]
fn a_connection_that_is_over_before_the_end_is_a_failure_and_after_it_none() {
    let reset = || PeerEvent::Closed(Some("the peer was silent".to_owned()));
    let mut connecting = Bench::start(Bulk::new(0, 1000, Time::ZERO));
    connecting.event(ms(5), reset());
    let mut loading = connected();
    loading.event(ms(15), reset());
    let mut pausing = Bench::start(RequestResponse::new(0, 10, 2, Duration::from_secs(1), Time::ZERO));
    pausing.event(ms(10), PeerEvent::Connected);
    pausing.respond(0, 0, 10, ms(20));
    pausing.event(ms(30), reset());
    for report in [connecting.app.report(), loading.app.report(), pausing.app.report()] {
        assert_eq!(report.failure.as_deref(), Some("the peer was silent"));
        assert_eq!(report.finished, None);
    }
    assert_eq!(pausing.app.next_timeout(), None);
    assert_eq!(pausing.app.report().exchanges.len(), 1, "what was read stays read");

    let mut quiet = connected();
    quiet.event(ms(15), PeerEvent::Closed(None));
    assert_eq!(quiet.app.progress(), Progress::Failed);

    let mut done = connected();
    done.respond(0, 0, 1000, ms(20));
    done.event(ms(30), reset());
    assert_eq!((done.app.progress(), done.app.report().failure), (Progress::Idle, None));
}

#[test]
fn a_slow_reader_reads_its_rate_in_steps_and_sleeps_while_nothing_waits() {
    // 100 bytes a millisecond: 1,000 bytes a step.
    let rate = Rate::from_bytes_per_second(100_000);
    let mut bench = Bench::start(Bulk::new(0, 4800, Time::ZERO).with_read_rate(Some(rate)));
    bench.event(ms(100), PeerEvent::Connected);
    assert_eq!(bench.app.next_timeout(), None, "nothing has arrived");
    bench.peers.at(0).deliver(0, 0, 3500);
    bench.event(ms(200), PeerEvent::Readable(StreamKey(0)));
    let read = |bench: &mut Bench<Bulk>| bench.peers.at(0).streams[0].read;
    assert_eq!(read(&mut bench), 1000, "one step's worth was saved up");
    bench.event(ms(205), PeerEvent::Readable(StreamKey(0)));
    assert_eq!(read(&mut bench), 1000, "arrivals do not hurry a reader");
    for (at, total) in [(210, 2000), (220, 3000), (230, 3500)] {
        assert_eq!(bench.fire(), ms(at));
        assert_eq!(read(&mut bench), total);
    }
    assert_eq!(bench.app.next_timeout(), None, "it has read all that was there");
    // Of the last step half was left over.
    bench.peers.at(0).deliver(0, 3500, 5000);
    bench.peers.at(0).streams[0].incoming.push_back(Read::Finished);
    bench.event(ms(230), PeerEvent::Readable(StreamKey(0)));
    assert_eq!(read(&mut bench), 4000);
    assert_eq!(bench.fire(), ms(240));
    assert_eq!(bench.app.report().finished, Some(ms(240)), "the end itself costs nothing");
    assert_eq!(READ_STEP, Duration::from_millis(10));
}

#[test]
fn a_reader_slower_than_a_byte_a_step_still_reads() {
    let rate = Rate::from_bytes_per_second(50);
    let mut bench = Bench::start(Bulk::new(0, 0, Time::ZERO).with_read_rate(Some(rate)));
    bench.event(ms(1000), PeerEvent::Connected);
    bench.respond(0, 0, 0, ms(1000));
    let mut steps = 0;
    while bench.app.progress() == Progress::Working {
        bench.fire();
        steps += 1;
    }
    assert_eq!((steps, bench.app.report().finished), (199, Some(ms(1000 + 199 * 20))));
}

fn video(chunks: u32, buffer: u64) -> Bench<Video> {
    let spec = VideoSpec {
        rate: Rate::from_bytes_per_second(1000),
        chunk: Duration::from_secs(1),
        chunks,
        buffer: Duration::from_millis(buffer),
    };
    let mut bench = Bench::start(Video::new(0, spec, Time::ZERO));
    bench.event(ms(100), PeerEvent::Connected);
    bench
}

#[test]
fn a_player_fills_its_buffer_then_asks_as_it_plays() {
    let mut bench = video(4, 2500);
    bench.respond(0, 0, 1000, ms(200));
    assert_eq!(bench.peers.at(0).streams.len(), 2, "there is room for a second");
    bench.respond(0, 1, 1000, ms(300));
    // Playing since 0.2 s, it holds 1.9 s; a third fits once it holds 1.5 s.
    assert_eq!(bench.peers.at(0).streams.len(), 2);
    assert_eq!(bench.fire(), ms(700));
    assert_eq!(bench.peers.at(0).streams.len(), 3);
    bench.respond(0, 2, 1000, ms(800));
    assert_eq!(bench.fire(), ms(1700));
    bench.respond(0, 3, 1000, ms(1800));
    let report = bench.app.report();
    assert_eq!((report.stalled_seconds, report.stalls), (Some(0.0), Some(0)));
    assert_eq!(report.startup_seconds, Some(0.2));
    assert_eq!((report.finished, report.bytes, report.runs_dry), (Some(ms(1800)), 4000, None));
}

#[test]
fn a_stall_lasts_from_the_last_frame_to_the_next_chunk_and_shows_while_it_goes_on() {
    let mut bench = video(3, 10_000);
    assert_eq!(bench.app.report().startup_seconds, None);
    assert_eq!(bench.app.report().stalled_until(ms(5000)), Some(0.0), "playback has not begun");
    bench.respond(0, 0, 1000, ms(200));
    assert_eq!(bench.app.report().runs_dry, Some(ms(1200)));
    assert_eq!(bench.app.report().stalled_until(ms(1100)), Some(0.0));
    bench.respond(0, 1, 1000, ms(1500));
    let report = bench.app.report();
    assert_eq!((report.stalled_seconds, report.stalls), (Some(0.3), Some(1)));
    assert_eq!(report.stalled_until(ms(2700)), Some(0.5), "dry again since 2.5 s");
    bench.respond(0, 2, 1000, ms(2400));
    let report = bench.app.report();
    assert_eq!((report.stalled_seconds, report.stalls, report.runs_dry), (Some(0.3), Some(1), None));
}

#[test]
fn on_off_load_draws_sizes_and_pauses_with_their_means_and_never_ends() {
    let run = |seed| {
        let (object, pause) = (ByteCount::new(10_000), Duration::from_millis(500));
        let app = OnOff::new(0, object, pause, Time::ZERO, Rng::from_test_seed(seed));
        let mut bench = Bench::start(app);
        bench.event(ms(10), PeerEvent::Connected);
        let mut now = ms(10);
        let (mut bytes, mut paused) = (0, Duration::ZERO);
        for index in 0..12_000 {
            let request = Request::decode(&bench.peers.at(0).streams[index].written).expect("a request");
            bytes += request.body;
            bench.respond(0, index, request.body, now);
            let at = bench.fire();
            paused += at.since(now);
            now = at;
        }
        assert_eq!(bench.app.progress(), Progress::Working);
        let report = bench.app.report();
        assert_eq!((report.bytes, report.exchanges.len()), (bytes, super::MAX_EXCHANGES));
        (bytes as f64 / 12_000.0, paused.as_secs_f64() / 12_000.0)
    };
    let (mean, pause) = run(1);
    // An exponential distribution deviates by its mean: 99.9 % of means of 12,000 draws are within 3 %.
    assert!((mean / 10_000.0 - 1.0).abs() < 0.03, "{mean}");
    assert!((pause / 0.5 - 1.0).abs() < 0.03, "{pause}");
    assert_eq!(run(1), (mean, pause));
    assert_ne!(run(2), (mean, pause));
}

#[test]
fn the_responder_answers_in_parts_and_forgets_what_is_over() {
    let mut bench = Bench::start(Responder::default());
    let stream = bench.peers.at(0).streams.len();
    let peer = bench.peers.at(0);
    peer.streams.push(super::fake::FakeStream::default());
    let request = Request { body: 1000 }.encode();
    peer.streams[stream].incoming.push_back(Read::Data(request.slice(..200)));
    peer.room = 700;
    bench.event(ms(1), PeerEvent::Opened(StreamKey(0)));
    assert_eq!(bench.peers.at(0).streams[0].written.len(), 0, "the request is not complete");
    // More than a request: what is beyond is not kept.
    let tail = [request.slice(200..), Bytes::from(vec![9; 10 * REQUEST_LENGTH])];
    bench.peers.at(0).streams[0].incoming.extend(tail.map(Read::Data));
    bench.peers.at(0).streams[0].incoming.push_back(Read::Finished);
    bench.event(ms(2), PeerEvent::Readable(StreamKey(0)));
    assert_eq!(bench.peers.at(0).streams[0].written.len(), 700);
    bench.peers.at(0).room = 10_000;
    bench.event(ms(3), PeerEvent::Writable(StreamKey(0)));
    let stream = &bench.peers.at(0).streams[0];
    assert_eq!((stream.written.len(), stream.finishes), (1200, 1));
    assert!(super::is_content(0, &stream.written));
    bench.event(ms(4), PeerEvent::Writable(StreamKey(0)));
    assert_eq!(bench.peers.at(0).streams[0].finishes, 1, "it is over");
}
