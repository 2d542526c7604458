use proptest::prelude::*;

use super::*;

/// Feeds one stream to a peer, in one piece and byte by byte; both must agree.
fn feed(role: Role, stream: &[u8]) -> Result<(Next, Vec<Event>), Code> {
    let run = |size: usize| {
        let mut peer = Peer::new(role);
        let mut uni = UniStream::default();
        let mut events = Vec::new();
        let mut next = Next::Read;
        for chunk in stream.chunks(size) {
            next = peer.on_data(&mut uni, Bytes::copy_from_slice(chunk), |event| events.push(event))?;
            if next != Next::Read {
                break;
            }
        }
        Ok::<_, Error>((next, events))
    };
    let whole = run(stream.len().max(1));
    let split = run(1);
    assert_eq!(whole, split);
    whole.map_err(|error| error.code)
}

/// A control stream that begins well.
fn control(frames: &[u8]) -> Vec<u8> {
    [b"\x00\x04\x00", frames].concat()
}

#[test]
fn settings_come_first_and_once() {
    // spec: rfc9114 6.2.1 missing-settings-closes, 7.2.4 second-closes, 7.1 wrong-length-closes, 7.2.4.1 http2-closes
    let settings = Settings { max_field_section_size: 5, ..Settings::default() };
    let expected = (Next::Read, vec![Event::Settings(settings)]);
    assert_eq!(feed(Role::Server, b"\x00\x04\x02\x06\x05"), Ok(expected));
    for first in [b"\x00\x07\x01\x00".as_slice(), b"\x00\x21\x00", b"\x00\x00\x00", b"\x00\x0d\x01\x00"] {
        assert_eq!(feed(Role::Server, first), Err(Code::H3_MISSING_SETTINGS), "{first:?}");
    }
    assert_eq!(feed(Role::Server, &control(b"\x04\x00")), Err(Code::H3_FRAME_UNEXPECTED));
    assert_eq!(feed(Role::Server, b"\x00\x04\x01\x06"), Err(Code::H3_FRAME_ERROR));
    assert_eq!(feed(Role::Server, b"\x00\x04\x02\x02\x00"), Err(Code::H3_SETTINGS_ERROR));
    assert_eq!(feed(Role::Server, b"\x00\x04\x50\x01"), Err(Code::H3_EXCESSIVE_LOAD));
}

#[test]
fn frames_that_have_no_place_on_a_control_stream_are_refused() {
    // spec: rfc9218 7.2 from-server-closes
    // spec: rfc9114 7.2.1 data-on-control-closes, 7.2.2 headers-on-control-closes, 7.2.5 promise-on-control-closes
    // spec: rfc9114 7.2.7 from-server-closes, 7.2.8 http2-closes, 7.2.8 reserved-mean-nothing
    for frame in
        [b"\x00\x00".as_slice(), b"\x01\x00", b"\x05\x00", b"\x02\x00", b"\x06\x00", b"\x08\x00", b"\x09\x00"]
    {
        for role in [Role::Server, Role::Client] {
            assert_eq!(feed(role, &control(frame)), Err(Code::H3_FRAME_UNEXPECTED), "{frame:?}");
        }
    }
    for frame in [b"\x0d\x01\x00".as_slice(), b"\x80\x0f\x07\x00\x01\x00", b"\x80\x0f\x07\x01\x01\x00"] {
        assert_eq!(feed(Role::Client, &control(frame)), Err(Code::H3_FRAME_UNEXPECTED), "{frame:?}");
    }
    // A reserved one, and one of 2^62 - 1 bytes: passed over.
    let unknown = control(b"\x21\x03abc\x40\x40\xff\xff\xff\xff\xff\xff\xff\xff...");
    assert_eq!(feed(Role::Server, &unknown).unwrap().1.len(), 1);
}

#[test]
fn identifiers_fill_their_frames() {
    // spec: rfc9114 7.1 payload-is-its-fields, 7.1 wrong-length-closes, 7.1 lengths-agree, 10.8 frame-lengths-match
    for frame_type in [0x03, 0x07, 0x0d] {
        for payload in [
            b"\x00".as_slice(),
            b"\x01\x40",
            b"\x02\x00\x00",
            b"\x03\x00\x00\x00",
            b"\x05\x00\x00\x00\x00\x00",
        ] {
            let frame = [&[frame_type], payload].concat();
            assert_eq!(feed(Role::Server, &control(&frame)), Err(Code::H3_FRAME_ERROR), "{frame:?}");
        }
    }
}

#[test]
fn goaway_never_grows() {
    // spec: rfc9114 5.2 larger-goaway-closes, 7.2.6 goaway-of-no-request-closes
    let (_, events) = feed(Role::Client, &control(b"\x07\x01\x08\x07\x01\x08\x07\x01\x04")).unwrap();
    assert_eq!(events[1..], [Event::GoAway(8), Event::GoAway(8), Event::GoAway(4)]);
    assert_eq!(feed(Role::Client, &control(b"\x07\x01\x04\x07\x01\x08")), Err(Code::H3_ID_ERROR));
    assert_eq!(feed(Role::Client, &control(b"\x07\x01\x05")), Err(Code::H3_ID_ERROR), "no request stream");
    assert_eq!(feed(Role::Server, &control(b"\x07\x01\x05")).unwrap().1[1], Event::GoAway(5), "a push ID");
}

#[test]
fn pushes_are_out_of_the_question() {
    // spec: rfc9114 7.2.7 reduced-closes, 7.2.3 cancel-beyond-closes, 7.2.3 cancel-of-no-promise-closes
    // spec: rfc9114 6.2.2 client-push-closes, 4.6 unpermitted-push-closes
    assert_eq!(feed(Role::Server, &control(b"\x0d\x01\x05\x0d\x01\x05\x0d\x01\x06")).unwrap().1.len(), 1);
    assert_eq!(feed(Role::Server, &control(b"\x0d\x01\x05\x0d\x01\x04")), Err(Code::H3_ID_ERROR));
    for role in [Role::Server, Role::Client] {
        assert_eq!(feed(role, &control(b"\x03\x01\x00")), Err(Code::H3_ID_ERROR));
    }
    assert_eq!(feed(Role::Server, b"\x01"), Err(Code::H3_STREAM_CREATION_ERROR));
    assert_eq!(feed(Role::Client, b"\x01"), Err(Code::H3_ID_ERROR));
}

#[test]
fn priorities_are_told() {
    // spec: rfc9218 7.2 no-promise-closes, 7.2 no-request-closes
    let (_, events) = feed(Role::Server, &control(b"\x80\x0f\x07\x00\x07\x08u=1, i")).unwrap();
    let priority = Priority { urgency: 1, incremental: true };
    assert_eq!(events[1], Event::PriorityUpdate { stream: 8, priority });
    let (_, events) = feed(Role::Server, &control(b"\x80\x0f\x07\x00\x01\x08")).unwrap();
    assert_eq!(events[1], Event::PriorityUpdate { stream: 8, priority: Priority::default() });
    assert_eq!(feed(Role::Server, &control(b"\x80\x0f\x07\x00\x02\x08=")).unwrap().1.len(), 1, "ignored");
    assert_eq!(feed(Role::Server, &control(b"\x80\x0f\x07\x00\x00")), Err(Code::H3_FRAME_ERROR));
    for id in 1..4 {
        let frame = [b"\x80\x0f\x07\x00\x01".as_slice(), &[id]].concat();
        assert_eq!(feed(Role::Server, &control(&frame)), Err(Code::H3_ID_ERROR), "stream {id}");
    }
    assert_eq!(feed(Role::Server, &control(b"\x80\x0f\x07\x01\x01\x00")), Err(Code::H3_ID_ERROR), "a push");
    assert_eq!(feed(Role::Server, &control(b"\x80\x0f\x07\x00\x50\x01")), Err(Code::H3_EXCESSIVE_LOAD));
}

#[test]
fn each_critical_stream_is_there_once_and_stays() {
    // spec: rfc9204 4.2 second-closes, 4.2 closed-closes
    // spec: rfc9114 6.2.1 second-closes, 6.2.1 closed-closes, 6.2 end-before-type-tolerated
    for stream_type in [0x00, 0x02, 0x03] {
        let mut peer = Peer::new(Role::Server);
        let mut first = UniStream::default();
        let begin = Bytes::copy_from_slice(&[stream_type]);
        assert_eq!(peer.on_data(&mut first, begin.clone(), |_| {}), Ok(Next::Read));
        let error = peer.on_data(&mut UniStream::default(), begin, |_| {}).unwrap_err();
        assert_eq!(error.code, Code::H3_STREAM_CREATION_ERROR);
        assert_eq!(peer.on_end(&first).unwrap_err().code, Code::H3_CLOSED_CRITICAL_STREAM);
    }
    let peer = Peer::new(Role::Server);
    assert_eq!(peer.on_end(&UniStream::default()), Ok(()), "before its type has arrived");
}

#[test]
fn streams_of_other_types_are_stopped() {
    // spec: rfc9114 6.2 unknown-type-not-read, 6.2 unknown-type-no-error, 6.2.3 reserved-streams-mean-nothing
    // spec: rfc9114 9 unknown-streams-not-read
    for stream in [b"\x21".as_slice(), b"\x40\x54...", b"\x04\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff"] {
        let stop = Next::Stop(Code::H3_STREAM_CREATION_ERROR);
        assert_eq!(feed(Role::Server, stream), Ok((stop, vec![])), "{stream:?}");
    }
    assert_eq!(feed(Role::Server, b"\x40"), Ok((Next::Read, vec![])), "half a type");
}

#[test]
fn qpack_streams_are_read() {
    assert_eq!(feed(Role::Server, b"\x02\x20"), Ok((Next::Read, vec![])));
    assert_eq!(feed(Role::Server, b"\x02\x3f\x45"), Err(Code::QPACK_ENCODER_STREAM_ERROR));
    assert_eq!(feed(Role::Server, b"\x03\x44"), Ok((Next::Read, vec![])));
    assert_eq!(feed(Role::Server, b"\x03\x00"), Err(Code::QPACK_DECODER_STREAM_ERROR));
}

proptest! {
    #[test]
    fn nonsense_is_judged_alike_however_it_is_cut(
        stream in prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3, 4, 7, 13, 0x20, 0x40, 0x80, 0xff_u8]), 0..60),
        is_server in any::<bool>(),
    ) {
        let role = if is_server { Role::Server } else { Role::Client };
        let _ = feed(role, &stream);
        let _ = feed(role, &control(&stream));
    }
}
