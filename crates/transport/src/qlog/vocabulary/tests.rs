use posthaste_wire::frame::{AckFrame, EcnCounts, StreamFrame};
use posthaste_wire::{Side, StreamId};

use super::*;

fn encode(frames: &[Frame]) -> Bytes {
    let mut payload = Vec::new();
    for frame in frames {
        frame.write(&mut payload);
    }
    payload.into()
}

#[test]
fn runs_of_padding_have_their_own_lengths() {
    let payload = Bytes::from_static(&[0, 0, 0, 1, 0, 0]);
    let expected = [
        QuicFrame::Padding { raw: data_len(3) },
        QuicFrame::Ping { raw: None },
        QuicFrame::Padding { raw: data_len(2) },
    ];
    assert_eq!(frames(payload, 3), expected);
}

#[test]
fn acks_show_their_ranges_counts_and_delay_in_milliseconds() {
    let ecn = Some(EcnCounts { ect0: 5, ect1: 0, ce: 2 });
    let ack = AckFrame { delay: 500, ranges: vec![9..=12, 3..=3], ecn };
    let expected = QuicFrame::Ack {
        ack_delay: Some(4.0),
        acked_ranges: Some(vec![AckRange::new(9, 12), AckRange::new(3, 3)]),
        ect1: Some(0),
        ect0: Some(5),
        ce: Some(2),
        raw: None,
    };
    assert_eq!(frames(encode(&[Frame::Ack(ack)]), 3), [expected]);
}

#[test]
fn streams_show_the_length_of_their_data() {
    let id = StreamId::new(Side::Client, Direction::Unidirectional, 2);
    let stream = StreamFrame { id, offset: 7, data: Bytes::from_static(b"hello"), fin: true };
    let expected =
        QuicFrame::Stream { stream_id: id.to_wire(), offset: Some(7), fin: Some(true), raw: data_len(5) };
    assert_eq!(frames(encode(&[Frame::Stream(stream)]), 3), [expected]);
}

#[test]
fn what_follows_a_malformed_frame_is_left_out() {
    let shown = frames(Bytes::from_static(&[1, 0x2f, 1]), 3);
    let unknown = QuicFrame::Unknown { frame_type_bytes: Some(0x2f), raw: None };
    assert_eq!(shown, [QuicFrame::Ping { raw: None }, unknown]);
}

#[test]
fn a_packet_full_of_pings_is_cut_short() {
    let shown = frames(Bytes::from(vec![1; 60_000]), 3);
    assert_eq!(shown.len(), limits::TRACED_FRAMES);
}
