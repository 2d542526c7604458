use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_schemes::credit::fixed::{Fixed, Parameters};
use posthaste_units::Rng;
use posthaste_wire::Frame;
use posthaste_wire::frame::{Iter, ResetStream, StopSending, StreamFrame};
use proptest::prelude::*;

use super::*;
use crate::error::{PeerError, TransportErrorCode};
use crate::flow::receive_budget::ReceiveBudget;
use crate::flow::send_budget::SendBudget;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::{SentFrame, SentFrames};

mod rest;
mod unsent;
mod urgency;

const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

fn credit(window: u64) -> Box<dyn Credit> {
    Box::new(Fixed::new(Parameters { window: ByteCount::new(window) }))
}

fn context() -> CreditContext {
    CreditContext::unmeasured()
}

/// Streams that grant `stream` bytes a stream, `connection` in all and `count` streams of each direction.
fn streams(side: Side, stream: u64, connection: u64, count: u64) -> Streams {
    Streams::new(StreamsConfig {
        side,
        max_streams_bidi: count,
        max_streams_uni: count,
        send_share: SendBudget::default().open(),
        send_buffer: ByteCount::new(1 << 20),
        unsent_limit: ByteCount::new(64 << 10),
        stream_credit: Box::new(move || credit(stream)),
        connection_credit: credit(connection),
        // Servers grant what is asked for here.
        account: ReceiveBudget::new(ByteCount::new(1 << 40)).open().unwrap(),
    })
}

fn parameters(limits: LocalLimits) -> TransportParameters {
    TransportParameters {
        initial_max_data: limits.max_data,
        initial_max_stream_data_bidi_local: limits.max_stream_data,
        initial_max_stream_data_bidi_remote: limits.max_stream_data,
        initial_max_stream_data_uni: limits.max_stream_data,
        initial_max_streams_bidi: limits.max_streams_bidi,
        initial_max_streams_uni: limits.max_streams_uni,
        ..TransportParameters::default()
    }
}

/// A client and a server that know each other's limits.
fn pair(stream: u64, connection: u64, count: u64) -> (Streams, Streams) {
    let mut client = streams(Side::Client, stream, connection, count);
    let mut server = streams(Side::Server, stream, connection, count);
    client.set_peer_limits(&parameters(server.local_limits()));
    server.set_peer_limits(&parameters(client.local_limits()));
    (client, server)
}

/// One packet of frames, with its record.
fn packet(from: &mut Streams, size: usize) -> (Vec<u8>, SentFrames) {
    let mut buffer = Vec::new();
    let mut writer = FrameWriter::new(&mut buffer, size);
    from.on_ack_leaving(&context());
    from.write_control(&mut writer);
    from.write_data(&mut writer);
    let (records, _, _) = writer.finish();
    assert!(buffer.len() <= size);
    (buffer, records)
}

fn frames(payload: &[u8]) -> Vec<Frame> {
    if payload.is_empty() {
        return Vec::new();
    }
    Iter::new(Bytes::copy_from_slice(payload))
        .map(|frame| frame.expect("frames that this end wrote"))
        .collect()
}

fn receive(to: &mut Streams, frame: Frame) -> Result<(), PeerError> {
    let context = context();
    match frame {
        Frame::Stream(frame) => to.on_stream(frame, &context),
        Frame::ResetStream(frame) => to.on_reset_stream(&frame, &context),
        Frame::StopSending(frame) => to.on_stop_sending(&frame),
        Frame::MaxData(maximum) => {
            to.on_max_data(maximum);
            Ok(())
        }
        Frame::MaxStreamData { id, maximum } => to.on_max_stream_data(id, maximum),
        Frame::MaxStreams { direction, maximum } => to.on_max_streams(direction, maximum),
        Frame::DataBlocked(limit) => {
            to.on_data_blocked(limit, &context);
            Ok(())
        }
        Frame::StreamDataBlocked { id, limit } => to.on_stream_data_blocked(id, limit, &context),
        Frame::StreamsBlocked { direction, limit } => to.on_streams_blocked(direction, limit),
        Frame::Padding => Ok(()),
        frame => panic!("no frame of streams: {frame:?}"),
    }
}

/// Sends everything that `from` has, loses nothing, and acknowledges it.
fn transfer(from: &mut Streams, to: &mut Streams) -> usize {
    let mut packets = 0;
    while from.has_control() || from.has_data() {
        let (payload, records) = packet(from, 1200);
        assert!(!records.is_empty(), "something was due, and nothing was written");
        for frame in frames(&payload) {
            receive(to, frame).unwrap();
        }
        records.iter().for_each(|record| assert!(from.on_acked(record)));
        packets += 1;
    }
    packets
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

fn write_all(streams: &mut Streams, id: StreamId, data: &[u8]) {
    let mut data = Bytes::copy_from_slice(data);
    let length = data.len();
    assert_eq!(streams.write(id, &mut data), Ok(length));
}

fn read_all(streams: &mut Streams, id: StreamId) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match streams.read(id, usize::MAX, &context()).unwrap() {
            Read::Data(data) => all.extend_from_slice(&data),
            Read::Finished => return (all, true),
            Read::Blocked => return (all, false),
        }
    }
}

fn stream_frame(id: StreamId, offset: u64, length: usize, fin: bool) -> Frame {
    Frame::Stream(StreamFrame { id, offset, data: vec![7; length].into(), fin })
}

fn reset_frame(id: StreamId, final_size: u64) -> Frame {
    Frame::ResetStream(ResetStream { id, error_code: 9, final_size })
}

fn theirs(direction: Direction, index: u64) -> StreamId {
    StreamId::new(Side::Client, direction, index)
}

fn ours(direction: Direction, index: u64) -> StreamId {
    StreamId::new(Side::Server, direction, index)
}

/// Each way in which a peer can break the rules of streams, as a server sees it that has opened one stream of
/// each direction and grants 1000 bytes a stream, 1500 in all and 3 streams of each direction.
#[test]
#[expect(clippy::too_many_lines, reason = "a flat table")]
fn each_violation_closes_with_the_rfcs_error() {
    // spec: rfc9000 19.4 reset-of-send-only, 19.5 stop-of-unopened, 19.5 stop-of-receive-only
    // spec: rfc9000 19.8 data-for-unopened, 19.8 data-for-send-only, 19.10 credit-for-unopened
    // spec: rfc9000 19.10 credit-for-receive-only, 19.13 blocked-for-send-only, 4.1 excess-closes
    // spec: rfc9000 4.5 final-size-holds, 4.6 excess-streams-close
    use TransportErrorCode as Code;
    let id = theirs(BIDI, 0);
    let cases: Vec<(&str, Vec<Frame>, Code)> = vec![
        ("stream limit", vec![stream_frame(theirs(BIDI, 3), 0, 1, false)], Code::STREAM_LIMIT_ERROR),
        (
            "stream limit, largest",
            vec![stream_frame(theirs(UNI, (1 << 60) - 1), 0, 1, false)],
            Code::STREAM_LIMIT_ERROR,
        ),
        (
            "stream limit by stop",
            vec![Frame::StopSending(StopSending { id: theirs(BIDI, 3), error_code: 0 })],
            Code::STREAM_LIMIT_ERROR,
        ),
        ("data on our uni stream", vec![stream_frame(ours(UNI, 0), 0, 1, false)], Code::STREAM_STATE_ERROR),
        ("reset of our uni stream", vec![reset_frame(ours(UNI, 0), 0)], Code::STREAM_STATE_ERROR),
        (
            "blocked on our uni stream",
            vec![Frame::StreamDataBlocked { id: ours(UNI, 0), limit: 0 }],
            Code::STREAM_STATE_ERROR,
        ),
        (
            "stop of its uni stream",
            vec![Frame::StopSending(StopSending { id: theirs(UNI, 0), error_code: 0 })],
            Code::STREAM_STATE_ERROR,
        ),
        (
            "credit for its uni stream",
            vec![Frame::MaxStreamData { id: theirs(UNI, 0), maximum: 9 }],
            Code::STREAM_STATE_ERROR,
        ),
        (
            "data on a stream not opened",
            vec![stream_frame(ours(BIDI, 1), 0, 1, false)],
            Code::STREAM_STATE_ERROR,
        ),
        (
            "stop of a stream not opened",
            vec![Frame::StopSending(StopSending { id: ours(BIDI, 1), error_code: 0 })],
            Code::STREAM_STATE_ERROR,
        ),
        (
            "credit for a stream not opened",
            vec![Frame::MaxStreamData { id: ours(UNI, 1), maximum: 9 }],
            Code::STREAM_STATE_ERROR,
        ),
        ("beyond the stream's limit", vec![stream_frame(id, 1, 1000, false)], Code::FLOW_CONTROL_ERROR),
        ("far beyond", vec![stream_frame(id, (1 << 62) - 2, 1, false)], Code::FLOW_CONTROL_ERROR),
        (
            "beyond the connection's limit",
            vec![stream_frame(id, 999, 1, false), stream_frame(theirs(UNI, 0), 500, 1, false)],
            Code::FLOW_CONTROL_ERROR,
        ),
        ("reset beyond the stream's limit", vec![reset_frame(id, 1001)], Code::FLOW_CONTROL_ERROR),
        (
            "reset beyond the connection's limit",
            vec![stream_frame(id, 999, 1, false), reset_frame(theirs(UNI, 0), 501)],
            Code::FLOW_CONTROL_ERROR,
        ),
        (
            "data beyond the end",
            vec![stream_frame(id, 0, 5, true), stream_frame(id, 5, 1, false)],
            Code::FINAL_SIZE_ERROR,
        ),
        (
            "two ends",
            vec![stream_frame(id, 0, 5, true), stream_frame(id, 0, 4, true)],
            Code::FINAL_SIZE_ERROR,
        ),
        (
            "end below data",
            vec![stream_frame(id, 10, 5, false), stream_frame(id, 0, 5, true)],
            Code::FINAL_SIZE_ERROR,
        ),
        (
            "reset below data",
            vec![stream_frame(id, 10, 5, false), reset_frame(id, 14)],
            Code::FINAL_SIZE_ERROR,
        ),
        (
            "reset unlike the end",
            vec![stream_frame(id, 10, 5, true), reset_frame(id, 16)],
            Code::FINAL_SIZE_ERROR,
        ),
        ("two resets", vec![reset_frame(id, 16), reset_frame(id, 17)], Code::FINAL_SIZE_ERROR),
        (
            "data beyond a reset",
            vec![reset_frame(id, 16), stream_frame(id, 16, 1, false)],
            Code::FINAL_SIZE_ERROR,
        ),
        (
            "too many streams permitted",
            vec![Frame::MaxStreams { direction: UNI, maximum: (1 << 60) + 1 }],
            Code::FRAME_ENCODING_ERROR,
        ),
        (
            "blocked at too many streams",
            vec![Frame::StreamsBlocked { direction: BIDI, limit: (1 << 60) + 1 }],
            Code::FRAME_ENCODING_ERROR,
        ),
    ];
    for (name, frames, code) in cases {
        let mut server = pair_server();
        let (last, before) = frames.split_last().unwrap();
        for frame in before {
            receive(&mut server, frame.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let error = receive(&mut server, last.clone()).expect_err(name);
        assert_eq!(error.code, code, "{name}");
        assert_eq!(error.frame_type, last.frame_type(), "{name}");
    }
}

fn pair_server() -> Streams {
    let (_, mut server) = pair(1000, 1500, 3);
    assert_eq!((server.open(BIDI), server.open(UNI)), (Ok(ours(BIDI, 0)), Ok(ours(UNI, 0))));
    server
}

/// The same frames at the very edge of what is permitted.
#[test]
fn what_is_just_permitted_is_accepted() {
    let id = theirs(BIDI, 2);
    let mut server = pair_server();
    let frames = [
        stream_frame(id, 0, 1000, false),
        stream_frame(id, 0, 1000, false),
        stream_frame(id, 1000, 0, true),
        stream_frame(id, 1000, 0, true),
        reset_frame(id, 1000),
        reset_frame(theirs(UNI, 2), 500),
        stream_frame(theirs(UNI, 2), 499, 1, true),
        stream_frame(ours(BIDI, 0), 0, 0, true),
        Frame::MaxStreams { direction: UNI, maximum: 1 << 60 },
        Frame::MaxStreamData { id, maximum: (1 << 62) - 1 },
        Frame::MaxStreamData { id, maximum: 0 },
    ];
    for frame in frames {
        receive(&mut server, frame.clone()).unwrap_or_else(|error| panic!("{frame:?}: {error}"));
    }
    assert_eq!(server.map.table(Side::Client, BIDI).touched().count(), 1, "lower streams cost no memory");
    let accepted: Vec<_> = std::iter::from_fn(|| server.accept(BIDI)).collect();
    assert_eq!(accepted, [0, 1, 2].map(|index| theirs(BIDI, index)));
}

#[test]
fn a_stream_flows_both_ways_and_is_forgotten() {
    let (mut client, mut server) = pair(10_000, 20_000, 3);
    let id = client.open(BIDI).unwrap();
    write_all(&mut client, id, b"question");
    client.finish(id).unwrap();
    transfer(&mut client, &mut server);
    assert_eq!(events(&mut client), [StreamEvent::SendComplete(id)]);
    assert_eq!(events(&mut server), [StreamEvent::Opened { direction: BIDI }, StreamEvent::Readable(id)]);
    assert_eq!((server.accept(BIDI), server.accept(BIDI)), (Some(id), None));
    assert_eq!(read_all(&mut server, id), (b"question".to_vec(), true));
    assert_eq!(server.read(id, 1, &context()), Err(ReadError::Local(LocalError::UnknownStream(id))));
    write_all(&mut server, id, b"answer");
    server.finish(id).unwrap();
    assert_eq!(server.finish(id), Err(WriteError::Local(LocalError::Finished(id))));
    assert_eq!(server.write(id, &mut Bytes::from_static(b"x")), Err(LocalError::Finished(id).into()));
    transfer(&mut server, &mut client);
    assert_eq!(read_all(&mut client, id), (b"answer".to_vec(), true));
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
    assert!(client.is_idle() && server.is_idle());
    assert_eq!(receive(&mut server, stream_frame(id, 0, 8, true)), Ok(()), "late frames are ignored");
    assert_eq!(receive(&mut server, reset_frame(id, 8)), Ok(()));
    assert_eq!(receive(&mut client, Frame::MaxStreamData { id, maximum: 1 << 40 }), Ok(()));
}

#[test]
fn the_wrong_calls_are_told_apart() {
    // spec: rfc9000 4.5 nothing-beyond-the-end
    let (mut client, mut server) = pair(10_000, 20_000, 3);
    let id = client.open(UNI).unwrap();
    let unopened = theirs(BIDI, 7);
    assert_eq!(client.read(id, 1, &context()), Err(LocalError::WrongDirection(id).into()));
    assert_eq!(client.stop_sending(id, 0), Err(LocalError::WrongDirection(id)));
    assert_eq!(client.finish(unopened), Err(LocalError::UnknownStream(unopened).into()));
    write_all(&mut client, id, b"x");
    transfer(&mut client, &mut server);
    assert_eq!(server.finish(id), Err(LocalError::WrongDirection(id).into()));
    server.stop_sending(id, 5).unwrap();
    assert_eq!(server.read(id, 1, &context()), Err(LocalError::Finished(id).into()));
    client.reset(id, 1).unwrap();
    assert_eq!(client.reset(id, 1), Err(LocalError::Finished(id)));
}

#[test]
fn streams_opened_before_the_limits_are_known_wait_for_them() {
    // spec: rfc9000 4.6 opener-keeps-limit, 19.11 within-count
    let mut client = streams(Side::Client, 10_000, 20_000, 3);
    let mut server = streams(Side::Server, 10_000, 20_000, 1);
    let ids = [client.open(BIDI).unwrap(), client.open(BIDI).unwrap()];
    for id in ids {
        write_all(&mut client, id, b"early");
        client.finish(id).unwrap();
    }
    assert!(!client.has_control() && !client.has_data());
    client.set_peer_limits(&parameters(server.local_limits()));
    transfer(&mut client, &mut server);
    assert_eq!((server.accept(BIDI), server.accept(BIDI)), (Some(ids[0]), None), "only one is permitted");
    assert_eq!(client.open(BIDI), Err(LocalError::StreamLimit));
    assert_eq!(read_all(&mut server, ids[0]), (b"early".to_vec(), true));
    server.finish(ids[0]).unwrap();
    transfer(&mut server, &mut client);
    transfer(&mut client, &mut server);
    assert_eq!(server.accept(BIDI), Some(ids[1]));
    assert_eq!(read_all(&mut server, ids[1]), (b"early".to_vec(), true));
}

#[test]
fn a_reset_voids_what_is_unread_and_gives_its_credit_back() {
    // spec: rfc9000 4.5 final-size-is-counted, 4.2 credit-without-being-asked, 4.6 streams-without-being-asked
    let (mut client, mut server) = pair(1000, 1000, 3);
    for _ in 0..10 {
        let id = client.open(UNI).unwrap();
        write_all(&mut client, id, &[1; 900]);
        transfer(&mut client, &mut server);
        client.reset(id, 77).unwrap();
        transfer(&mut client, &mut server);
        assert_eq!(server.accept(UNI), Some(id));
        assert_eq!(server.read(id, 10, &context()), Err(ReadError::Reset(77)));
        transfer(&mut server, &mut client);
    }
    assert_eq!((client.open_streams(), server.open_streams(), client.stats().buffered.get()), (0, 0, 0));
}

#[test]
fn after_a_reset_nothing_of_the_stream_is_sent_and_the_other_direction_goes_on() {
    // spec: rfc9000 3.3 no-data-after-reset, 4.4 other-direction-goes-on, 11.2 reset-by-application
    let (mut client, mut server) = pair(1000, 5000, 3);
    let id = client.open(BIDI).unwrap();
    write_all(&mut client, id, &[1; 2000]);
    let (payload, sent) = packet(&mut client, 600);
    for frame in frames(&payload) {
        receive(&mut server, frame).unwrap();
    }
    client.reset(id, 5).unwrap();
    sent.iter().for_each(|record| assert!(client.on_lost(record)));
    let (payload, _) = packet(&mut client, 1200);
    let frames = frames(&payload);
    assert!(matches!(frames[..], [Frame::ResetStream(ResetStream { error_code: 5, .. })]), "{frames:?}");
    receive(&mut server, frames[0].clone()).unwrap();
    assert!(!client.has_control() && !client.has_data());
    for _ in 0..3 {
        write_all(&mut server, id, &[2; 1000]);
        transfer(&mut server, &mut client);
        assert_eq!(read_all(&mut client, id), (vec![2; 1000], false));
        transfer(&mut client, &mut server);
    }
}

#[test]
fn no_stream_comes_twice_and_lower_counts_are_void() {
    // spec: rfc9000 2.1 id-names-one-stream, 4.6 lower-count-is-void, 19.11 lower-count-ignored, 4.6 opener-keeps-limit
    let (mut client, _) = pair(1000, 1000, 1);
    assert_eq!(client.open(UNI), Ok(theirs(UNI, 0)));
    for maximum in [3, 2, 0] {
        client.on_max_streams(UNI, maximum).unwrap();
    }
    assert_eq!((client.open(UNI), client.open(UNI)), (Ok(theirs(UNI, 1)), Ok(theirs(UNI, 2))));
    assert_eq!(client.open(UNI), Err(LocalError::StreamLimit));
    client.reset(theirs(UNI, 0), 1).unwrap();
    let (_, sent) = packet(&mut client, 1200);
    sent.iter().for_each(|record| assert!(client.on_acked(record)));
    assert_eq!(client.open(UNI), Err(LocalError::StreamLimit), "a stream that is over counts, too");
}

#[test]
fn a_reset_after_everything_has_arrived_takes_nothing_back() {
    let (_, mut server) = pair(1000, 1000, 3);
    let id = theirs(UNI, 0);
    receive(&mut server, stream_frame(id, 0, 10, true)).unwrap();
    receive(&mut server, reset_frame(id, 10)).unwrap();
    assert_eq!(read_all(&mut server, id), (vec![7; 10], true));
}

#[test]
fn stopping_a_stream_resets_it_and_frees_its_credit() {
    // spec: rfc9000 3.5 stop-answered-by-reset
    let (mut client, mut server) = pair(1000, 1000, 3);
    for _ in 0..10 {
        let id = client.open(UNI).unwrap();
        write_all(&mut client, id, &[1; 2000]);
        transfer(&mut client, &mut server);
        server.stop_sending(id, 5).unwrap();
        transfer(&mut server, &mut client);
        assert!(events(&mut client).contains(&StreamEvent::Stopped { id, error_code: 5 }));
        assert_eq!(client.write(id, &mut Bytes::from_static(b"x")), Err(WriteError::Stopped(5)));
        assert_eq!(client.reset(id, 9), Ok(()));
        transfer(&mut client, &mut server);
        transfer(&mut server, &mut client);
    }
    assert_eq!((client.open_streams(), server.open_streams(), client.stats().buffered.get()), (0, 0, 0));
}

#[test]
fn lost_resets_stops_and_stream_limits_are_sent_again_until_they_are_pointless() {
    // spec: rfc9000 13.3 reset-stays-the-same, 3.3 terminal-state-is-silent
    let (mut client, mut server) = pair(1000, 1500, 1);
    let id = client.open(UNI).unwrap();
    write_all(&mut client, id, &[1; 10]);
    transfer(&mut client, &mut server);
    server.stop_sending(id, 5).unwrap();
    let stop = SentFrame::StopSending(id);
    assert_eq!(packet(&mut server, 1200).1.as_slice(), [stop]);
    assert!(server.on_lost(&stop));
    let (payload, _) = packet(&mut server, 1200);
    assert_eq!(frames(&payload), [Frame::StopSending(StopSending { id, error_code: 5 })]);
    receive(&mut client, frames(&payload).remove(0)).unwrap();
    let reset = SentFrame::ResetStream(id);
    assert_eq!(packet(&mut client, 1200).1.as_slice(), [reset]);
    assert!(client.on_lost(&reset));
    let (payload, _) = packet(&mut client, 1200);
    assert_eq!(frames(&payload), [Frame::ResetStream(ResetStream { id, error_code: 5, final_size: 10 })]);
    receive(&mut server, frames(&payload).remove(0)).unwrap();
    assert!(client.on_acked(&reset));
    assert_eq!((client.open_streams(), server.open_streams()), (0, 0));
    let limit = SentFrame::MaxStreams(UNI);
    assert_eq!(packet(&mut server, 1200).1.as_slice(), [limit]);
    assert!(server.on_lost(&stop));
    assert!(server.on_lost(&limit));
    let (payload, _) = packet(&mut server, 1200);
    assert_eq!(frames(&payload), [Frame::MaxStreams { direction: UNI, maximum: 2 }]);
    assert!(client.on_lost(&reset));
    assert!(!client.has_control() && !server.has_control());
}

#[test]
fn a_blocked_sender_says_so_once_and_again_if_that_is_lost() {
    // spec: rfc9000 4.1 sender-keeps-limits, 19.9 sum-within-limit, 19.10 stream-within-limit
    let (mut client, _) = pair(1000, 1500, 3);
    let ids = [client.open(UNI).unwrap(), client.open(UNI).unwrap()];
    for id in ids {
        write_all(&mut client, id, &[1; 2000]);
    }
    let mut records = Vec::new();
    for _ in 0..5 {
        records.extend(packet(&mut client, 1200).1);
    }
    let blocked: Vec<_> =
        records.iter().filter(|record| !matches!(record, SentFrame::Stream { .. })).collect();
    assert_eq!(blocked, [&SentFrame::StreamDataBlocked(ids[0]), &SentFrame::DataBlocked]);
    assert!(!client.has_control() && !client.has_data());
    let stats = client.stats();
    assert_eq!((stats.sent.get(), stats.blocked_streams, stats.is_connection_blocked), (1500, 1, true));
    assert!(client.on_lost(&SentFrame::DataBlocked));
    assert!(client.on_lost(&SentFrame::StreamDataBlocked(ids[0])));
    let again = packet(&mut client, 1200).1;
    assert_eq!(again.as_slice(), [SentFrame::DataBlocked, SentFrame::StreamDataBlocked(ids[0])]);
    client.on_max_data(10_000);
    assert!(client.on_lost(&SentFrame::DataBlocked));
    assert!(client.has_data() && !client.has_control(), "the limit has moved: no report of the old one");
}

#[test]
fn a_lost_limit_is_announced_again_with_its_newest_value() {
    let (mut client, mut server) = pair(1000, 1000, 1);
    let id = client.open(UNI).unwrap();
    write_all(&mut client, id, &[1; 3000]);
    transfer(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id).0.len(), 1000);
    let (lost, records) = packet(&mut server, 1200);
    assert_eq!(frames(&lost), [Frame::MaxData(2000), Frame::MaxStreamData { id, maximum: 2000 }]);
    records.iter().for_each(|record| assert!(server.on_lost(record)));
    let (payload, _) = packet(&mut server, 1200);
    assert_eq!(frames(&payload), [Frame::MaxData(2000), Frame::MaxStreamData { id, maximum: 2000 }]);
}

#[test]
fn packets_are_filled_to_the_last_byte() {
    let (mut client, mut server) = pair(1 << 20, 1 << 20, 3);
    let id = client.open(UNI).unwrap();
    write_all(&mut client, id, &vec![1; 50_000]);
    let (payload, _) = packet(&mut client, 1200);
    assert_eq!((payload.len(), payload[0] & 0x02), (1200, 0), "full, and without a length");
    for frame in frames(&payload) {
        receive(&mut server, frame).unwrap();
    }
    // Whatever room there is, what is written is whole and fits.
    for size in 1..1300 {
        let (payload, records) = packet(&mut client, size);
        for frame in frames(&payload) {
            receive(&mut server, frame).unwrap();
        }
        // What is left over is too little for another frame worth its header.
        assert!(payload.len() + 45 > size, "{} of {size}", payload.len());
        records.iter().for_each(|record| assert!(client.on_lost(record)));
    }
    transfer(&mut client, &mut server);
    assert_eq!(read_all(&mut server, id), (vec![1; 50_000], false));
}

/// Frames whose data nearly fill the packet, where a length field may or may not fit.
#[test]
fn a_frame_that_nearly_fills_its_packet_is_whole() {
    for length in 1180..1200 {
        for fin in [false, true] {
            let (mut client, mut server) = pair(1 << 20, 1 << 20, 3);
            let id = client.open(UNI).unwrap();
            write_all(&mut client, id, &vec![5; length]);
            if fin {
                client.finish(id).unwrap();
            }
            let packets = transfer(&mut client, &mut server);
            assert_eq!(packets, if length <= 1198 { 1 } else { 2 }, "length {length}");
            assert_eq!(read_all(&mut server, id), (vec![5; length], fin));
        }
    }
}

#[test]
fn writers_that_found_no_room_are_told_when_there_is_some() {
    let (mut client, mut server) = pair(1 << 22, 1 << 22, 100);
    let ids: Vec<_> = (0..20).map(|_| client.open(UNI).unwrap()).collect();
    let mut taken = 0;
    for id in &ids {
        taken += client.write(*id, &mut Bytes::from(vec![1; 1 << 20])).unwrap();
    }
    assert_eq!(taken, 1 << 20, "16 streams fill their unsent limit, and with that the connection's buffer");
    assert_eq!(client.write(ids[0], &mut Bytes::from_static(b"x")), Ok(0));
    assert_eq!(events(&mut client), []);
    transfer(&mut client, &mut server);
    let waiting = [0, 16, 17, 18, 19].map(|index| StreamEvent::Writable(ids[index]));
    let woken = events(&mut client);
    assert_eq!(woken.len(), waiting.len());
    assert!(waiting.iter().all(|event| woken.contains(event)), "{woken:?}");
    assert_eq!(client.stats().buffered, ByteCount::ZERO);
}

#[test]
fn more_urgent_streams_are_sent_first_and_equals_share() {
    let (mut client, mut server) = pair(1 << 20, 1 << 22, 10);
    let ids: Vec<_> = (0..4).map(|_| client.open(UNI).unwrap()).collect();
    for id in &ids[..2] {
        write_all(&mut client, *id, &vec![1; 65_536]);
    }
    transfer(&mut client, &mut server);
    for id in &ids {
        write_all(&mut client, *id, &vec![1; 40_000]);
    }
    client.set_priority(ids[3], Priority { urgency: 0, incremental: false }).unwrap();
    client.set_priority(ids[2], Priority { urgency: 6, incremental: true }).unwrap();
    let mut order = Vec::new();
    while client.has_data() {
        for record in packet(&mut client, 1210).1 {
            if let SentFrame::Stream { id, .. } = record {
                order.push(id.index());
            }
        }
    }
    order.dedup();
    assert_eq!(order[..1], [3]);
    assert_eq!(order[1..5], [0, 1, 0, 1]);
    assert_eq!(order.last(), Some(&2));
}

/// 10,000 short streams pass through a limit of 16 while one stays open, and leave nothing behind.
#[test]
fn many_short_streams_cycle_through_a_small_limit() {
    let (mut client, mut server) = pair(2000, 4000, 16);
    let long = client.open(BIDI).unwrap();
    write_all(&mut client, long, b"stays open");
    transfer(&mut client, &mut server);
    assert_eq!(server.accept(BIDI), Some(long));
    let mut finished = 0;
    while finished < 10_000 {
        let mut waiting = Vec::new();
        while let Ok(id) = client.open(BIDI) {
            write_all(&mut client, id, &id.to_wire().to_be_bytes());
            client.finish(id).unwrap();
            waiting.push(id);
        }
        assert!(!waiting.is_empty(), "the limit does not move");
        transfer(&mut client, &mut server);
        while let Some(id) = server.accept(BIDI) {
            assert_eq!(read_all(&mut server, id), (id.to_wire().to_be_bytes().to_vec(), true));
            server.finish(id).unwrap();
        }
        transfer(&mut server, &mut client);
        for id in waiting {
            assert_eq!(read_all(&mut client, id), (vec![], true));
            finished += 1;
        }
        assert!(events(&mut client).contains(&StreamEvent::Available(BIDI)));
        events(&mut server);
        for streams in [&mut client, &mut server] {
            assert_eq!(streams.open_streams(), 1);
            assert!(streams.map.table(Side::Client, BIDI).footprint() <= 64 + 6 * 17);
            assert!(streams.received_since_ack.len() <= 64 && streams.control.is_empty());
            assert!(streams.memory_waiters.is_empty() && streams.events.is_empty());
        }
    }
}

/// One end of the lossy pair: what it writes and has read, by stream.
struct End {
    streams: Streams,
    /// Streams that this end sends on: how much is to be written and has been.
    sending: Vec<(StreamId, usize, usize)>,
    received: BTreeMap<StreamId, (Vec<u8>, bool)>,
    /// Packets on their way to the other end, and packets whose fate is not known yet here: whether they
    /// arrived.
    wire: Vec<(Vec<u8>, SentFrames)>,
    fates: Vec<(SentFrames, bool)>,
    /// Packets declared lost that have arrived: their ack comes yet.
    spurious: Vec<SentFrames>,
}

fn content(id: StreamId, side: Side, length: usize) -> Vec<u8> {
    let salt = id.to_wire() as usize * 7 + side as usize;
    (0..length).map(|offset| (offset.wrapping_mul(13) ^ (offset >> 7) ^ salt) as u8).collect()
}

impl End {
    fn new(streams: Streams) -> Self {
        let (sending, wire, fates, spurious) = Default::default();
        Self { streams, sending, received: BTreeMap::new(), wire, fates, spurious }
    }

    /// The application: writes, finishes and reads a little.
    fn act(&mut self, rng: &mut Rng) {
        let side = self.streams.side;
        for (id, length, written) in &mut self.sending {
            if *written > *length || rng.chance(0.3) {
                continue;
            }
            let upto = (*written + 1 + rng.below(3000) as usize).min(*length);
            let mut data = Bytes::from(content(*id, side, upto)).slice(*written..);
            *written += self.streams.write(*id, &mut data).unwrap();
            // Often later than the last byte, so that the end travels alone.
            if *written == *length && rng.chance(0.3) {
                self.streams.finish(*id).unwrap();
                *written += 1;
            }
        }
        for direction in [BIDI, UNI] {
            while let Some(id) = self.streams.accept(direction) {
                self.received.insert(id, Default::default());
                if direction == BIDI {
                    self.sending.push((id, rng.below(20_000) as usize, 0));
                }
            }
        }
        for (id, (data, is_finished)) in &mut self.received {
            if *is_finished || rng.chance(0.3) {
                continue;
            }
            match self.streams.read(*id, 1 + rng.below(4000) as usize, &context()).unwrap() {
                Read::Data(more) => data.extend_from_slice(&more),
                Read::Finished => *is_finished = true,
                Read::Blocked => {}
            }
        }
        while self.streams.poll_event().is_some() {}
    }

    fn send(&mut self, rng: &mut Rng) {
        if self.wire.len() < 20 && (self.streams.has_control() || self.streams.has_data()) {
            let size = 100 + rng.below(1100) as usize;
            self.wire.push(packet(&mut self.streams, size));
        }
    }

    /// Learns what became of some packets; a packet that arrived may first be taken for lost.
    fn learn(&mut self, rng: &mut Rng) {
        while !self.fates.is_empty() && rng.chance(0.7) {
            let (records, has_arrived) = self.fates.swap_remove(rng.below(self.fates.len() as u64) as usize);
            let is_acked = has_arrived && !rng.chance(0.1);
            for record in &records {
                let streams = &mut self.streams;
                assert!(if is_acked { streams.on_acked(record) } else { streams.on_lost(record) });
            }
            if has_arrived && !is_acked && rng.chance(0.8) {
                self.spurious.push(records);
            }
        }
        if rng.chance(0.3)
            && let Some(records) = self.spurious.pop()
        {
            records.iter().for_each(|record| assert!(self.streams.on_acked(record)));
        }
    }

    fn is_done(&self) -> bool {
        self.sending.iter().all(|(_, length, written)| written > length)
            && self.received.values().all(|(_, is_finished)| *is_finished)
            && self.streams.is_idle()
            && self.streams.open_streams() == 0
    }
}

/// Takes packets off the wire: in any order, some never, some twice.
fn deliver(from: &mut End, to: &mut End, rng: &mut Rng) {
    while !from.wire.is_empty() && rng.chance(0.8) {
        let (payload, records) = from.wire.swap_remove(rng.below(from.wire.len() as u64) as usize);
        let has_arrived = !rng.chance(0.15);
        let copies = if has_arrived { 1 + usize::from(rng.chance(0.1)) } else { 0 };
        for _ in 0..copies {
            for frame in frames(&payload) {
                receive(&mut to.streams, frame).unwrap();
            }
        }
        from.fates.push((records, has_arrived));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Both ends write on streams of both directions over a path that loses, reorders and duplicates, with
    /// windows small enough to block: every byte arrives, every stream ends, nothing is left.
    #[test]
    fn everything_arrives_whatever_the_path_does(seed in any::<u64>(), window in 1100u64..20_000) {
        let rng = &mut Rng::from_test_seed(seed);
        let (client, server) = pair(window, window * 3 / 2, 4);
        let (mut client, mut server) = (End::new(client), End::new(server));
        for end in [&mut client, &mut server] {
            for direction in [BIDI, BIDI, UNI, UNI] {
                let id = end.streams.open(direction).unwrap();
                let priority = Priority { urgency: rng.below(8) as u8, incremental: rng.chance(0.5) };
                end.streams.set_priority(id, priority).unwrap();
                end.sending.push((id, rng.below(20_000) as usize, 0));
                if direction == BIDI {
                    end.received.insert(id, Default::default());
                }
            }
        }
        let mut rounds = 0;
        while !(client.is_done() && server.is_done()) {
            rounds += 1;
            prop_assert!(rounds < 20_000, "stuck: {:?} {:?}", client.streams.stats(), server.streams.stats());
            client.act(rng);
            server.act(rng);
            client.send(rng);
            server.send(rng);
            deliver(&mut client, &mut server, rng);
            deliver(&mut server, &mut client, rng);
            client.learn(rng);
            server.learn(rng);
        }
        for (from, to) in [(&client, &server), (&server, &client)] {
            prop_assert_eq!(from.sending.len(), 6);
            for (id, length, _) in &from.sending {
                let (data, _) = &to.received[id];
                prop_assert!(*data == content(*id, from.streams.side, *length), "{:?} differs", id);
            }
        }
    }
}

/// Any frame about any of a few streams, with numbers small, at the edges and huge.
fn any_frame() -> impl Strategy<Value = Frame> {
    let id = prop_oneof![8 => 0u64..20, 1 => Just(varint::MAX)].prop_map(StreamId::from_wire);
    let number = || prop_oneof![6 => 0u64..3000, 1 => 0..=varint::MAX, 1 => Just(varint::MAX)];
    let direction = prop_oneof![Just(BIDI), Just(UNI)];
    (id, number(), 0usize..600, any::<bool>(), direction, 0..10).prop_map(
        |(id, number, length, fin, direction, kind)| match kind {
            0..4 => stream_frame(id, number.min(varint::MAX - length as u64), length, fin),
            4 => reset_frame(id, number),
            5 => Frame::StopSending(StopSending { id, error_code: number }),
            6 => Frame::MaxStreamData { id, maximum: number },
            7 if fin => Frame::MaxData(number),
            7 => Frame::DataBlocked(number),
            8 if fin => Frame::MaxStreams { direction, maximum: number },
            8 => Frame::StreamsBlocked { direction, limit: number },
            _ => Frame::StreamDataBlocked { id, limit: number },
        },
    )
}

proptest! {
    /// Whatever frames come, while the application works on: no panic, and nothing counted twice or lost.
    #[test]
    fn no_frames_do_harm(frames in prop::collection::vec(any_frame(), 1..150), seed in any::<u64>()) {
        let rng = &mut Rng::from_test_seed(seed);
        let (_, server) = pair(2000, 8000, 3);
        let mut server = End::new(server);
        for direction in [BIDI, UNI] {
            let id = server.streams.open(direction).unwrap();
            write_all(&mut server.streams, id, &[1; 1500]);
        }
        for frame in frames {
            // An error closes the connection; going on all the same must do no harm either.
            let _ = receive(&mut server.streams, frame);
            let id = StreamId::from_wire(rng.below(20));
            match rng.below(8) {
                0 => drop(server.streams.stop_sending(id, 1)),
                1 => drop(server.streams.reset(id, 2)),
                2 => drop(server.streams.write(id, &mut Bytes::from(vec![3; 700]))),
                3 => drop(server.streams.finish(id)),
                4 => drop(server.streams.accept(BIDI)),
                _ => drop(server.streams.read(id, 300, &context())),
            }
            server.send(rng);
            server.fates.extend(server.wire.drain(..).map(|(_, records)| (records, true)));
            server.learn(rng);
            let window = &server.streams.receive_window;
            prop_assert!(window.consumed() <= window.received() && window.received() <= window.advertised());
            prop_assert!(server.streams.open_streams() <= 8);
        }
    }
}
