use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{ConnectionId, DecodeError, ResetToken};

fn decode(bytes: &[u8]) -> Vec<Result<Frame, DecodeError>> {
    Iter::new(Bytes::copy_from_slice(bytes)).collect()
}

fn decode_one(bytes: &[u8]) -> Result<Frame, DecodeError> {
    let mut frames = decode(bytes);
    assert_eq!(frames.len(), 1, "{frames:?}");
    frames.remove(0)
}

fn encode(frame: &Frame) -> Vec<u8> {
    let mut buffer = Vec::new();
    frame.write(&mut buffer);
    buffer
}

fn error_code(bytes: &[u8]) -> u64 {
    decode(bytes).pop().unwrap().unwrap_err().code
}

/// Integers of all four lengths, each as likely.
fn integer() -> impl Strategy<Value = u64> {
    (0..=varint::MAX, 0_u32..62).prop_map(|(value, shift)| value >> shift)
}

fn stream_id() -> impl Strategy<Value = StreamId> {
    integer().prop_map(StreamId::from_wire)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Bidirectional), Just(Direction::Unidirectional)]
}

fn data(least: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), least..200).prop_map(Bytes::from)
}

fn ack() -> impl Strategy<Value = AckFrame> {
    let counts = (integer(), integer(), integer());
    let counts = counts.prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
    let steps = vec((0_u64..100_000, 0_u64..100_000), 1..200);
    (integer(), steps, integer(), proptest::option::of(counts)).prop_map(|(delay, steps, top, ecn)| {
        let mut end = top.max(100_000_000);
        let mut ranges = Vec::new();
        for (gap, span) in steps {
            ranges.push(end - span..=end);
            end -= span + gap + 2;
        }
        AckFrame { delay, ranges, ecn }
    })
}

fn ack_window() -> impl Strategy<Value = AckWindowFrame> {
    let limit = || integer().prop_map(|limit| limit / ack_window::UNIT * ack_window::UNIT);
    let streams = vec((stream_id(), limit()), 0..=ack_window::MAX_STREAMS);
    (ack(), limit(), streams).prop_map(|(ack, max_data, streams)| AckWindowFrame {
        ack,
        update: WindowUpdate { max_data, streams },
    })
}

fn tail_code() -> impl Strategy<Value = TailCodeFrame> {
    let shape = (integer(), integer(), integer());
    (stream_id(), integer(), integer(), shape, vec(any::<u8>(), 0..300)).prop_map(
        |(id, base, length, (symbol_units, recovery_count, first), symbols)| {
            let length = length.min(varint::MAX - base);
            let head = TailCodeHead { id, base, length, symbol_units, recovery_count, first };
            TailCodeFrame { head, symbols: symbols.into() }
        },
    )
}

fn new_connection_id() -> impl Strategy<Value = NewConnectionId> {
    (integer(), integer(), vec(any::<u8>(), 1..=20), any::<[u8; 16]>()).prop_map(|(one, other, id, token)| {
        NewConnectionId {
            sequence: one.max(other),
            retire_prior_to: one.min(other),
            id: ConnectionId::new(&id).unwrap(),
            reset_token: ResetToken(token),
        }
    })
}

fn close() -> impl Strategy<Value = CloseFrame> {
    let kind = prop_oneof![
        Just(CloseKind::Application),
        integer().prop_map(|frame_type| CloseKind::Transport { frame_type })
    ];
    (integer(), kind, data(0)).prop_map(|(error_code, kind, reason)| CloseFrame { error_code, kind, reason })
}

fn flow_frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        integer().prop_map(Frame::MaxData),
        (stream_id(), integer()).prop_map(|(id, maximum)| Frame::MaxStreamData { id, maximum }),
        (direction(), 0..=flow::MAX_STREAMS)
            .prop_map(|(direction, maximum)| Frame::MaxStreams { direction, maximum }),
        integer().prop_map(Frame::DataBlocked),
        (stream_id(), integer()).prop_map(|(id, limit)| Frame::StreamDataBlocked { id, limit }),
        (direction(), 0..=flow::MAX_STREAMS)
            .prop_map(|(direction, limit)| Frame::StreamsBlocked { direction, limit }),
    ]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        Just(Frame::Padding),
        Just(Frame::Ping),
        Just(Frame::HandshakeDone),
        Just(Frame::ImmediateAck),
        [integer(), integer(), integer(), integer()].prop_map(|[sequence, threshold, delay, reordering]| {
            Frame::AckFrequency(AckFrequency {
                sequence,
                ack_eliciting_threshold: threshold,
                max_ack_delay: delay,
                reordering_threshold: reordering,
            })
        }),
        ack().prop_map(Frame::Ack),
        ack_window().prop_map(Frame::AckWindow),
        tail_code().prop_map(Frame::TailCode),
        (stream_id(), integer(), integer()).prop_map(|(id, error_code, final_size)| {
            Frame::ResetStream(ResetStream { id, error_code, final_size })
        }),
        (stream_id(), integer())
            .prop_map(|(id, error_code)| Frame::StopSending(StopSending { id, error_code })),
        (integer(), data(0)).prop_map(|(offset, data)| {
            Frame::Crypto(CryptoFrame { offset: offset.min(varint::MAX - data.len() as u64), data })
        }),
        data(1).prop_map(Frame::NewToken),
        data(0).prop_map(Frame::Datagram),
        (stream_id(), integer(), data(0), any::<bool>()).prop_map(|(id, offset, data, fin)| {
            let offset = offset.min(varint::MAX - data.len() as u64);
            Frame::Stream(StreamFrame { id, offset, data, fin })
        }),
        flow_frame(),
        new_connection_id().prop_map(Frame::NewConnectionId),
        integer().prop_map(Frame::RetireConnectionId),
        any::<[u8; 8]>().prop_map(Frame::PathChallenge),
        any::<[u8; 8]>().prop_map(Frame::PathResponse),
        any::<[u8; 16]>().prop_map(Frame::GroupToken),
        close().prop_map(Frame::Close),
    ]
}

/// One of each kind, for the tests that go through them all.
fn one_of_each() -> Vec<Frame> {
    let id = StreamId::from_wire(4);
    let ack = AckFrame { delay: 70, ranges: vec![90..=100, 3..=80, 0..=0], ecn: None };
    let ecn = Some(EcnCounts { ect0: 1, ect1: 2, ce: 100 });
    let data = Bytes::from_static(b"some data");
    let direction = Direction::Bidirectional;
    let transport = CloseKind::Transport { frame_type: 6 };
    let update =
        WindowUpdate { max_data: 1 << 31, streams: vec![(id, 1 << 20), (StreamId::from_wire(0), 1 << 16)] };
    let with_ecn = AckFrame { ecn, ..ack.clone() };
    vec![
        Frame::Padding,
        Frame::Ping,
        Frame::Ack(ack.clone()),
        Frame::Ack(AckFrame { ecn, ..ack }),
        Frame::ResetStream(ResetStream { id, error_code: 300, final_size: 70_000 }),
        Frame::StopSending(StopSending { id, error_code: 300 }),
        Frame::Crypto(CryptoFrame { offset: 1000, data: data.clone() }),
        Frame::NewToken(data.clone()),
        Frame::Stream(StreamFrame { id, offset: 0, data: data.clone(), fin: false }),
        Frame::Stream(StreamFrame { id, offset: 100_000, data: data.clone(), fin: true }),
        Frame::MaxData(100_000),
        Frame::MaxStreamData { id, maximum: 100_000 },
        Frame::MaxStreams { direction, maximum: 100 },
        Frame::MaxStreams { direction: Direction::Unidirectional, maximum: 100 },
        Frame::DataBlocked(100_000),
        Frame::StreamDataBlocked { id, limit: 100_000 },
        Frame::StreamsBlocked { direction, limit: 100 },
        Frame::StreamsBlocked { direction: Direction::Unidirectional, limit: 100 },
        Frame::NewConnectionId(NewConnectionId {
            sequence: 70,
            retire_prior_to: 3,
            id: ConnectionId::new(&[7; 8]).unwrap(),
            reset_token: ResetToken([9; 16]),
        }),
        Frame::RetireConnectionId(70),
        Frame::PathChallenge([1; 8]),
        Frame::PathResponse([2; 8]),
        Frame::Close(CloseFrame { error_code: 0x10a, kind: transport, reason: data.clone() }),
        Frame::Close(CloseFrame { error_code: 0x10a, kind: CloseKind::Application, reason: data }),
        Frame::HandshakeDone,
        Frame::ImmediateAck,
        Frame::AckFrequency(AckFrequency {
            sequence: 1,
            ack_eliciting_threshold: 9,
            max_ack_delay: 25_000,
            reordering_threshold: 3,
        }),
        Frame::GroupToken([3; 16]),
        Frame::AckWindow(AckWindowFrame {
            ack: AckFrame { ecn: None, ..with_ecn.clone() },
            update: update.clone(),
        }),
        Frame::AckWindow(AckWindowFrame { ack: with_ecn, update }),
        tail_code_of_two_symbols(),
        Frame::Datagram(Bytes::from_static(b"a message")),
    ]
}

/// A wire type less the bits that say how the frame is written.
fn without_flags(frame: &Frame, wire_type: u64) -> u64 {
    match frame {
        Frame::Stream(_) => wire_type & !7,
        Frame::Datagram(_) => wire_type & !1,
        _ => wire_type,
    }
}

#[test]
fn a_datagram_without_length_takes_the_rest_of_the_packet() {
    // spec: rfc9221 4 no-length-to-the-end
    let datagram = |data: &'static [u8]| Frame::Datagram(Bytes::from_static(data));
    assert_eq!(decode(&[0x30, 9, 8, 1]), [Ok(datagram(&[9, 8, 1]))]);
    assert_eq!(decode(&[0x30]), [Ok(datagram(&[]))]);
    assert_eq!(decode(&[0x31, 1, 9, 0x31, 0, 1]), [Ok(datagram(&[9])), Ok(datagram(&[])), Ok(Frame::Ping)]);
}

#[test]
fn wire_types_are_those_of_table_3() {
    // spec: rfc9000 12.4 shortest-type
    let types: Vec<u64> = one_of_each().iter().map(Frame::frame_type).collect();
    let expected = [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        8,
        0x10,
        0x11,
        0x12,
        0x13,
        0x14,
        0x15,
        0x16,
        0x17,
        0x18,
        0x19,
        0x1a,
        0x1b,
        0x1c,
        0x1d,
        0x1e,
        0x1f,
        0xaf,
        0x2d5c_1a79,
        0x2b1c,
        0x2b1d,
        0x2a65,
        0x30,
    ];
    assert_eq!(types, expected);
    for frame in one_of_each() {
        let encoded = encode(&frame);
        let first = Reader::new(&encoded).varint().unwrap();
        assert_eq!(without_flags(&frame, first), frame.frame_type());
    }
}

#[test]
fn frames_cut_at_every_byte_are_encoding_errors() {
    for frame in one_of_each() {
        let bytes = encode(&frame);
        assert_eq!(decode_one(&bytes), Ok(frame.clone()));
        for cut in varint::len(frame.frame_type())..bytes.len() {
            let error = decode(&bytes[..cut]).pop().unwrap().unwrap_err();
            assert_eq!(error.code, DecodeError::FRAME_ENCODING_ERROR, "{frame:?} cut to {cut}");
            assert_eq!(without_flags(&frame, error.frame_type), frame.frame_type());
        }
    }
}

#[test]
fn where_frames_may_come() {
    // spec: rfc9221 4 only-protected
    // Table 3 by hand, in the order of `one_of_each`: I and H alike, 0, 1.
    let allowed = "IH01 IH01 IH-1 IH-1 --01 --01 IH-1 ---1 --01 --01 --01 --01 --01 --01 --01 --01 --01 --01 \
                   --01 --01 --01 ---1 IH01 --01 ---1 --01 --01 ---1 ---1 ---1 ---1 --01";
    let packets = [PacketType::Initial, PacketType::Handshake, PacketType::ZeroRtt, PacketType::Short];
    for (frame, allowed) in one_of_each().iter().zip(allowed.split_whitespace()) {
        for (packet, mark) in packets.into_iter().zip(allowed.chars()) {
            assert_eq!(is_allowed_in(frame, packet), mark != '-', "{frame:?} in {packet:?}");
        }
        assert!(!is_allowed_in(frame, PacketType::Retry));
        assert!(!is_allowed_in(frame, PacketType::VersionNegotiation));
    }
}

#[test]
fn ack_eliciting_and_probing() {
    // spec: rfc9000 19.21 extension-acked
    for frame in one_of_each() {
        let frame_type = frame.frame_type();
        let elicits_none = [0, 2, 3, 0x1c, 0x1d, 0x2b1c, 0x2b1d];
        assert_eq!(frame.is_ack_eliciting(), !elicits_none.contains(&frame_type), "{frame:?}");
        assert_eq!(frame.is_probing(), [0, 0x18, 0x1a, 0x1b].contains(&frame_type), "{frame:?}");
    }
}

#[test]
fn ack_window_names_a_bounded_number_of_streams_and_says_no_more_than_it_holds() {
    let frame = |count: u64, entries: usize| {
        let mut bytes = Vec::new();
        varint::write(&mut bytes, ack_window::TYPE);
        varint::write(&mut bytes, 1000);
        varint::write(&mut bytes, count);
        (0..entries).for_each(|_| bytes.extend_from_slice(&[4, 7]));
        bytes.extend_from_slice(&[9, 0, 0, 9]);
        bytes
    };
    let most = ack_window::MAX_STREAMS;
    assert!(decode_one(&frame(most as u64, most)).is_ok());
    let error = decode(&frame(most as u64 + 1, most + 1)).pop().unwrap().unwrap_err();
    assert_eq!((error.code, error.frame_type), (DecodeError::FRAME_ENCODING_ERROR, ack_window::TYPE));
    assert_eq!(error_code(&frame(varint::MAX, 2)), DecodeError::FRAME_ENCODING_ERROR);
    let mut overflowing = Vec::new();
    for value in [ack_window::TYPE, varint::MAX / ack_window::UNIT + 1, 0, 9, 0, 0, 9] {
        varint::write(&mut overflowing, value);
    }
    assert_eq!(error_code(&overflowing), DecodeError::FRAME_ENCODING_ERROR);
    // The ranges are checked as those of an ACK: one below packet number 0.
    let mut below = frame(0, 0);
    *below.last_mut().unwrap() = 10;
    assert_eq!(error_code(&below), DecodeError::FRAME_ENCODING_ERROR);
}

fn tail_code_of_two_symbols() -> Frame {
    let id = StreamId::from_wire(4);
    let head = TailCodeHead { id, base: 1000, length: 5000, symbol_units: 1, recovery_count: 10, first: 3 };
    Frame::TailCode(TailCodeFrame { head, symbols: Bytes::from_static(&[7; 128]) })
}

#[test]
fn tail_code_is_whole_and_within_offsets() {
    let bytes = encode(&tail_code_of_two_symbols());
    for end in 0..bytes.len() {
        assert!(decode_one(&bytes[..end]).is_err(), "{end} of {} bytes", bytes.len());
    }
    let frame = |base: u64, length: u64| {
        let mut bytes = Vec::new();
        for value in [tail_code::TYPE, 4, base, length, 1, 1, 0, 1] {
            varint::write(&mut bytes, value);
        }
        bytes.push(7);
        bytes
    };
    assert!(decode_one(&frame(varint::MAX - 9, 9)).is_ok());
    let error = decode(&frame(varint::MAX - 9, 10)).pop().unwrap().unwrap_err();
    assert_eq!((error.code, error.frame_type), (DecodeError::FRAME_ENCODING_ERROR, tail_code::TYPE));
}

#[test]
fn ack_window_tells_whole_units() {
    let id = StreamId::from_wire(4);
    let ack = AckFrame { delay: 0, ranges: vec![0..=9], ecn: None };
    let update = WindowUpdate { max_data: 2047, streams: vec![(id, 3000)] };
    let told = WindowUpdate { max_data: 1024, streams: vec![(id, 2048)] };
    let frame = |update| Frame::AckWindow(AckWindowFrame { ack: ack.clone(), update });
    assert_eq!(decode_one(&encode(&frame(update))), Ok(frame(told)));
}

proptest! {
    /// However little room there is, the window is whole, the ranges are the highest, and nothing goes beyond.
    #[test]
    fn ack_window_fills_its_room(frame in ack_window(), limit in 0_usize..600) {
        let mut buffer = vec![0xee];
        let ranges = frame.ack.ranges.iter().cloned();
        let count = ack_window::write(&mut buffer, &frame.update, frame.ack.delay, ranges, frame.ack.ecn, limit);
        prop_assert!(buffer.len() <= limit + 1);
        if count == 0 {
            prop_assert_eq!(buffer, vec![0xee]);
        } else {
            let mut shorter = frame.clone();
            shorter.ack.ranges.truncate(count);
            prop_assert_eq!(decode_one(&buffer[1..]), Ok(Frame::AckWindow(shorter)));
        }
    }
}

#[test]
fn runs_of_padding_are_one_frame() {
    assert_eq!(decode(&[0, 0, 0, 1, 0, 0]), [Ok(Frame::Padding), Ok(Frame::Ping), Ok(Frame::Padding)]);
}

#[test]
fn an_empty_payload_is_a_protocol_violation() {
    // spec: rfc9000 12.4 empty-packet-closes
    assert_eq!(error_code(&[]), DecodeError::PROTOCOL_VIOLATION);
}

#[test]
fn a_frame_type_longer_than_needed_is_a_protocol_violation() {
    assert_eq!(error_code(&[0x40, 0x01]), DecodeError::PROTOCOL_VIOLATION);
    assert_eq!(error_code(&[0x80, 0, 0, 0x06, 0, 0]), DecodeError::PROTOCOL_VIOLATION);
}

#[test]
fn unknown_types_are_encoding_errors_and_end_the_packet() {
    // spec: rfc9000 12.4 unknown-frame-closes
    for bytes in [&[0x20, 1][..], &[0x2f, 1], &[0x32, 1], &[0x40, 0xae, 1], &[0xc0, 0, 0, 1, 0, 0, 0, 0]] {
        let results = decode(bytes);
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].as_ref().unwrap_err().code, DecodeError::FRAME_ENCODING_ERROR);
    }
    assert_eq!(decode(&[0x40, 0xae])[0].as_ref().unwrap_err().frame_type, 0xae);
}

#[test]
fn stream_counts_stop_at_two_to_the_60() {
    // spec: rfc9000 4.6 impossible-count-closes, 19.11 count-limit, 19.14 blocked-count-limit
    for frame_type in [0x12, 0x13, 0x16, 0x17] {
        let mut bytes = vec![frame_type];
        varint::write(&mut bytes, 1 << 60);
        assert!(decode_one(&bytes).is_ok());
        let mut bytes = vec![frame_type];
        varint::write(&mut bytes, (1 << 60) + 1);
        assert_eq!(error_code(&bytes), DecodeError::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn offsets_stop_at_two_to_the_62() {
    // spec: rfc9000 19.6 crypto-offset-limit, 19.8 stream-offset-limit
    let mut crypto = Vec::new();
    crypto::write_header(&mut crypto, varint::MAX - 1, 1);
    let mut stream = Vec::new();
    stream::write_header(&mut stream, StreamId::from_wire(0), varint::MAX - 1, None, false);
    for header in [crypto, stream] {
        let fits = [&header[..], &[5]].concat();
        assert!(decode_one(&fits).is_ok());
    }
    let mut crypto = Vec::new();
    crypto::write_header(&mut crypto, varint::MAX - 1, 2);
    let mut stream = Vec::new();
    stream::write_header(&mut stream, StreamId::from_wire(0), varint::MAX - 1, None, false);
    for header in [crypto, stream] {
        let too_long = [&header[..], &[5, 5]].concat();
        assert_eq!(error_code(&too_long), DecodeError::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn new_connection_id_bounds() {
    // spec: rfc9000 19.15 id-length-checked, 19.15 retires-itself-closes
    let frame = |retire: u8, length: u8| {
        let mut bytes = vec![0x18, 5, retire, length];
        bytes.extend(std::iter::repeat_n(1, usize::from(length) + 16));
        bytes
    };
    assert!(decode_one(&frame(5, 20)).is_ok());
    for wrong in [frame(6, 8), frame(0, 0), frame(0, 21), frame(0, 255)] {
        assert_eq!(error_code(&wrong), DecodeError::FRAME_ENCODING_ERROR);
    }
}

#[test]
fn an_empty_token_is_an_encoding_error() {
    // spec: rfc9000 19.7 empty-token-closes
    assert_eq!(error_code(&[0x07, 0]), DecodeError::FRAME_ENCODING_ERROR);
}

#[test]
fn a_stream_without_length_takes_the_rest() {
    let mut payload = vec![0x01];
    stream::write_header(&mut payload, StreamId::from_wire(8), 5, None, true);
    payload.extend_from_slice(b"to the end");
    let frames = decode(&payload);
    let data = Bytes::from_static(b"to the end");
    let expected = Frame::Stream(StreamFrame { id: StreamId::from_wire(8), offset: 5, data, fin: true });
    assert_eq!(frames, [Ok(Frame::Ping), Ok(expected)]);
}

#[test]
fn data_are_slices_of_the_payload() {
    let mut payload = Vec::new();
    stream::write_header(&mut payload, StreamId::from_wire(0), 0, Some(3), false);
    payload.extend_from_slice(b"abc");
    stream::write_header(&mut payload, StreamId::from_wire(4), 0, None, false);
    payload.extend_from_slice(b"defg");
    let payload = Bytes::from(payload);
    let addresses = payload.as_ptr_range();
    let mut count = 0;
    for frame in Iter::new(payload.clone()) {
        let Ok(Frame::Stream(stream)) = frame else { panic!("{frame:?}") };
        let data = stream.data.as_ptr_range();
        assert!(addresses.start <= data.start && data.end <= addresses.end);
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn ack_ranges_below_zero_are_encoding_errors() {
    // spec: rfc9000 19.3.1 negative-number-closes
    // Largest 5, first range 6 packets below it.
    assert_eq!(error_code(&[0x02, 5, 0, 0, 6]), DecodeError::FRAME_ENCODING_ERROR);
    // 5..=5, then a gap that leads to -1 and one that leads to 0.
    assert_eq!(error_code(&[0x02, 5, 0, 1, 0, 4, 0]), DecodeError::FRAME_ENCODING_ERROR);
    let ack = AckFrame { delay: 0, ranges: vec![5..=5, 0..=0], ecn: None };
    assert_eq!(decode_one(&[0x02, 5, 0, 1, 0, 3, 0]), Ok(Frame::Ack(ack)));
    assert_eq!(error_code(&[0x02, 5, 0, 1, 0, 3, 1]), DecodeError::FRAME_ENCODING_ERROR);
}

#[test]
fn an_announced_range_count_allocates_nothing() {
    let mut bytes = vec![0x02, 5, 0];
    varint::write(&mut bytes, varint::MAX);
    bytes.extend_from_slice(&[0; 20]);
    assert_eq!(error_code(&bytes), DecodeError::FRAME_ENCODING_ERROR);
}

#[test]
fn ack_write_stops_at_an_ascending_range_in_release_builds_only() {
    // The caller's mistake must not become an ACK of packets that never came.
    let ranges = [10..=20, 20..=21];
    let result = std::panic::catch_unwind(|| {
        let mut buffer = Vec::new();
        ack::write(&mut buffer, 0, ranges.into_iter(), None, 100)
    });
    assert_eq!(result.ok(), if cfg!(debug_assertions) { None } else { Some(1) });
}

fn check_ack_within(ack: &AckFrame, limit: usize) -> Result<(), TestCaseError> {
    let mut buffer = vec![0xee];
    let count = ack::write(&mut buffer, ack.delay, ack.ranges.iter().cloned(), ack.ecn, limit);
    prop_assert_eq!(buffer[0], 0xee);
    prop_assert!(buffer.len() - 1 <= limit);
    let with = |count: usize| AckFrame { ranges: ack.ranges[..count].to_vec(), ..ack.clone() };
    if count == 0 {
        prop_assert_eq!(buffer.len(), 1);
    } else {
        prop_assert_eq!(decode_one(&buffer[1..]), Ok(Frame::Ack(with(count))));
        prop_assert_eq!(buffer.len() - 1, with(count).encoded_len());
    }
    // No further range would have fitted.
    if count < ack.ranges.len() {
        prop_assert!(with(count + 1).encoded_len() > limit);
    }
    Ok(())
}

#[test]
fn an_ack_of_very_many_ranges_has_a_longer_count() {
    for count in [63_u64, 64, 65, 16_383, 16_384, 16_385, 16_386] {
        let ranges: Vec<RangeInclusive<u64>> =
            (0..count).map(|index| 3 * (count - index)..=3 * (count - index)).collect();
        let ack = AckFrame { delay: 1, ranges, ecn: None };
        let frame = Frame::Ack(ack);
        assert_eq!(encode(&frame).len(), frame.encoded_len());
        assert_eq!(decode_one(&encode(&frame)), Ok(frame));
    }
}

proptest! {
    #[test]
    fn round_trip(frame in any_frame()) {
        // spec: rfc9000 19.3 both-ack-types
        let bytes = encode(&frame);
        prop_assert_eq!(bytes.len(), frame.encoded_len());
        prop_assert_eq!(decode_one(&bytes), Ok(frame));
    }

    #[test]
    fn round_trip_of_packets(frames in vec(any_frame(), 1..8)) {
        let mut payload = Vec::new();
        for frame in &frames {
            frame.write(&mut payload);
        }
        let mut expected = frames;
        expected.dedup_by(|one, other| *one == Frame::Padding && *other == Frame::Padding);
        prop_assert_eq!(decode(&payload), expected.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        let results = decode(&bytes);
        let errors = results.iter().filter(|result| result.is_err()).count();
        prop_assert!(errors <= 1);
        prop_assert!(results.iter().rev().skip(1).all(Result::is_ok));
    }

    #[test]
    fn acks_keep_to_their_limit(ack in ack(), limit in 0_usize..600) {
        check_ack_within(&ack, limit)?;
    }

    #[test]
    fn stream_headers(
        id in stream_id(), offset in integer(), length in proptest::option::of(0_usize..100_000), fin: bool,
    ) {
        let mut buffer = Vec::new();
        stream::write_header(&mut buffer, id, offset, length, fin);
        prop_assert_eq!(buffer.len(), stream::header_len(id, offset, length));
    }

    #[test]
    fn crypto_headers(offset in integer(), length in 0_usize..100_000) {
        let mut buffer = Vec::new();
        crypto::write_header(&mut buffer, offset, length);
        prop_assert_eq!(buffer.len(), crypto::header_len(offset, length));
    }
}
