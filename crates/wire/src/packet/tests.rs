use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ConnectionId;

const TAG_AND_PAYLOAD: [u8; 30] = [0xab; 30];

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn connection_id() -> impl Strategy<Value = ConnectionId> {
    vec(any::<u8>(), 0..=20).prop_map(|bytes| id(&bytes))
}

fn split_all(bytes: &[u8], local_cid_len: usize) -> Vec<Result<ProtectedPacket, HeaderError>> {
    split(BytesMut::from(bytes), local_cid_len).collect()
}

/// Appends a long packet with a payload that says nothing.
fn long_packet(
    buffer: &mut Vec<u8>,
    kind: PacketType,
    ids: (&ConnectionId, &ConnectionId),
    token: &[u8],
) -> LongLayout {
    let number = number::encode(7, None);
    let layout = header::write_long(buffer, kind, version::V1, ids.0, ids.1, token, number);
    buffer.extend_from_slice(&TAG_AND_PAYLOAD);
    header::patch_length(buffer, layout.length_at, number.len() + TAG_AND_PAYLOAD.len());
    layout
}

#[test]
fn rfc_9000_appendix_a2_samples() {
    let largest_acked = Some(0xab_e8b3);
    let expected = TruncatedNumber { value: 0x5c02, len: 2 };
    assert_eq!(number::encode(0xac_5c02, largest_acked), expected);
    let expected = TruncatedNumber { value: 0xac_e8fe, len: 3 };
    assert_eq!(number::encode(0xac_e8fe, largest_acked), expected);
}

#[test]
fn rfc_9000_appendix_a3_sample() {
    assert_eq!(number::decode(Some(0xa82f_30ea), 0x9b32, 2), 0xa82f_9b32);
}

#[test]
fn first_packet_numbers() {
    // spec: rfc9000 17.1 full-number-first
    assert_eq!(number::encode(0, None), TruncatedNumber { value: 0, len: 1 });
    assert_eq!(number::decode(None, 0, 1), 0);
    assert_eq!(number::decode(None, 0xff, 1), 0xff);
}

#[test]
fn packet_number_length_is_more_than_twice_the_distance() {
    // spec: rfc9000 17.1 number-long-enough
    for (distance, len) in
        [(1, 1), (127, 1), (128, 2), (32_767, 2), (32_768, 3), (8_388_607, 3), (8_388_608, 4)]
    {
        assert_eq!(number::encode(1_000_000 + distance, Some(1_000_000)).len, len, "{distance}");
    }
}

#[test]
fn packet_numbers_stay_below_two_to_the_62() {
    let last = crate::varint::MAX;
    assert_eq!(number::decode(Some(last), 0, 1), last - 0xff);
    assert_eq!(number::decode(Some(last - 1), 0xff, 1), last);
    assert_eq!(number::decode(Some(u64::MAX), 0, 0), last - 0xff);
}

#[test]
fn first_bytes_of_a_short_header() {
    // spec: rfc9000 17.3.1 short-reserved-zero
    let mut buffer = vec![9];
    let number = TruncatedNumber::new(0x01_0203, 3);
    let dcid = id(&[1, 2, 3, 4]);
    assert_eq!(header::write_short(&mut buffer, true, true, &dcid, number), 6);
    assert_eq!(buffer, [9, 0x40 | 0x20 | 0x04 | 0x02, 1, 2, 3, 4, 1, 2, 3]);
    assert_eq!(header::number_len(buffer[1]), 3);
    assert_eq!(number::read(&buffer[6..]), 0x01_0203);
}

#[test]
fn rfc_9001_appendix_a2_client_initial_header() {
    // spec: rfc9000 17.2 long-reserved-zero
    let dcid = id(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
    let mut buffer = Vec::new();
    let number = TruncatedNumber::new(2, 4);
    let layout = header::write_long(
        &mut buffer,
        PacketType::Initial,
        version::V1,
        &dcid,
        &ConnectionId::EMPTY,
        &[],
        number,
    );
    header::patch_length(&mut buffer, layout.length_at, 1182);
    let expected =
        [0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e, 0, 0, 0, 2];
    assert_eq!(buffer, expected);
    assert_eq!(layout.number_at, 18);
}

#[test]
fn rfc_9001_appendix_a4_retry() {
    // The sample of RFC 9001 appendix A.4: token "token", tag behind it.
    let tag =
        [0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba];
    let scid = id(&[0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5]);
    let mut bytes = Vec::new();
    write_retry(&mut bytes, version::V1, &ConnectionId::EMPTY, &scid, b"token", 0x0f);
    assert_eq!(bytes[..7], [0xff, 0, 0, 0, 1, 0, 8]);
    bytes.extend_from_slice(&tag);
    let packets = split_all(&bytes, 8);
    let [Ok(packet)] = &packets[..] else { panic!("{packets:?}") };
    assert_eq!(packet.token(), b"token");
    let Header::Retry { integrity_tag, scid: read, .. } = &packet.header else { panic!("{packet:?}") };
    assert_eq!((integrity_tag, *read), (&tag, scid));
    assert_eq!(packet.sample(), None);
}

#[test]
fn a_retry_without_token_is_refused() {
    // spec: rfc9000 17.2.5.2 empty-token-dropped
    let mut bytes = Vec::new();
    write_retry(&mut bytes, version::V1, &ConnectionId::EMPTY, &ConnectionId::EMPTY, b"x", 0);
    bytes.pop();
    bytes.extend_from_slice(&[0; 16]);
    assert_eq!(split_all(&bytes, 8), [Err(HeaderError::EmptyRetryToken)]);
    bytes.pop();
    assert_eq!(split_all(&bytes, 8), [Err(HeaderError::Truncated)]);
}

#[test]
fn coalesced_packets_come_apart() {
    // spec: rfc9000 12.2 coalesced-taken
    let (dcid, scid) = (id(&[1; 8]), id(&[2; 5]));
    let mut datagram = Vec::new();
    let kinds = [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake];
    let mut lengths = Vec::new();
    for kind in kinds {
        let start = datagram.len();
        let token: &[u8] = if kind == PacketType::Initial { b"a token" } else { b"" };
        let layout = long_packet(&mut datagram, kind, (&dcid, &scid), token);
        lengths.push((datagram.len() - start, layout.number_at - start));
    }
    let start = datagram.len();
    let number_at = header::write_short(&mut datagram, false, false, &dcid, number::encode(1, None));
    datagram.extend_from_slice(&TAG_AND_PAYLOAD);
    lengths.push((datagram.len() - start, number_at - start));

    let packets: Vec<_> = split_all(&datagram, 8).into_iter().map(Result::unwrap).collect();
    let read: Vec<_> = packets.iter().map(|packet| packet.header.packet_type()).collect();
    assert_eq!(read, [&kinds[..], &[PacketType::Short]].concat());
    let read: Vec<_> = packets.iter().map(|packet| (packet.bytes.len(), packet.number_at)).collect();
    assert_eq!(read, lengths);
    assert_eq!(packets[0].token(), b"a token");
    assert_eq!(packets[1].token(), b"");
    let joined: Vec<u8> = packets.iter().flat_map(|packet| packet.bytes.to_vec()).collect();
    assert_eq!(joined, datagram);
    assert!(packets.iter().all(|packet| packet.header.dcid() == dcid));
    assert_eq!(packets[3].header.scid(), None);
    assert!(packets.iter().all(|packet| packet.sample() == Some(&[0xab; 16])));
}

#[test]
fn trailing_garbage_is_an_error_behind_good_packets() {
    let (dcid, scid) = (id(&[1; 8]), id(&[2; 8]));
    for (garbage, error) in [
        (&[0_u8; 40][..], HeaderError::FixedBitClear),
        (&[0x40], HeaderError::Truncated),
        (&[0xff; 3], HeaderError::Truncated),
        (&[0xff; 600], HeaderError::ConnectionIdTooLong { version: 0xffff_ffff }),
        (&[0x45; 40], HeaderError::OtherDestination),
    ] {
        let mut datagram = Vec::new();
        long_packet(&mut datagram, PacketType::Handshake, (&dcid, &scid), b"");
        datagram.extend_from_slice(garbage);
        let results = split_all(&datagram, 8);
        assert_eq!(results.len(), 2);
        assert!(results[0].is_ok());
        assert_eq!(results[1], Err(error));
    }
}

#[test]
fn packets_behind_one_for_another_destination_still_count() {
    let (dcid, other, scid) = (id(&[1; 8]), id(&[3; 8]), id(&[2; 8]));
    let mut datagram = Vec::new();
    long_packet(&mut datagram, PacketType::Initial, (&dcid, &scid), b"");
    long_packet(&mut datagram, PacketType::Initial, (&other, &scid), b"");
    long_packet(&mut datagram, PacketType::Handshake, (&dcid, &scid), b"");
    let results = split_all(&datagram, 8);
    assert!(results[0].is_ok() && results[2].is_ok() && results.len() == 3);
    assert_eq!(results[1], Err(HeaderError::OtherDestination));
}

#[test]
fn a_clear_fixed_bit_is_refused() {
    // spec: rfc9000 17.2 long-fixed-bit, 17.3.1 short-fixed-bit
    let mut datagram = Vec::new();
    long_packet(&mut datagram, PacketType::Initial, (&id(&[1; 8]), &id(&[2; 8])), b"");
    datagram[0] &= !header::FIXED;
    assert_eq!(split_all(&datagram, 8), [Err(HeaderError::FixedBitClear)]);
    let mut short = [0; 40];
    assert_eq!(split_all(&short, 8), [Err(HeaderError::FixedBitClear)]);
    short[0] = header::FIXED;
    assert!(split_all(&short, 8)[0].is_ok());
}

#[test]
fn an_unknown_version_tells_the_invariants() {
    let mut datagram = Vec::new();
    long_packet(&mut datagram, PacketType::Initial, (&id(&[1; 8]), &id(&[2; 9])), b"");
    datagram[1..5].copy_from_slice(&0x1a2a_3a4a_u32.to_be_bytes());
    let expected = Invariants { is_long: true, version: 0x1a2a_3a4a, dcid: id(&[1; 8]), scid: id(&[2; 9]) };
    assert_eq!(split_all(&datagram, 8), [Err(HeaderError::UnknownVersion(expected))]);
    assert_eq!(Invariants::parse(&datagram, 8), Ok(expected));
    assert!(version::is_reserved(0x1a2a_3a4a) && !version::is_supported(0x1a2a_3a4a));
    assert!(version::is_reserved(version::reserved(0x1234_5678)) && !version::is_reserved(version::V1));
}

#[test]
fn long_connection_ids_of_other_versions_can_be_answered() {
    // spec: rfc9000 17.2.1 foreign-id-rules, 17.2.1 version-zero, 17.2 long-destination-dropped
    let mut datagram = vec![0xc0, 1, 2, 3, 4, 21];
    datagram.extend_from_slice(&[7; 21]);
    datagram.push(255);
    datagram.extend_from_slice(&[8; 255]);
    let error = HeaderError::ConnectionIdTooLong { version: 0x0102_0304 };
    assert_eq!(Invariants::parse(&datagram, 8), Err(error));
    let raw = RawInvariants::parse(&datagram).unwrap();
    assert_eq!((raw.version, raw.dcid, raw.scid), (0x0102_0304, &[7; 21][..], &[8; 255][..]));
    let mut answer = Vec::new();
    write_version_negotiation(&mut answer, raw.scid, raw.dcid, &version::SUPPORTED, 0);
    let answer = RawInvariants::parse(&answer).unwrap();
    assert_eq!((answer.version, answer.dcid, answer.scid), (0, raw.scid, raw.dcid));
    datagram.pop();
    assert_eq!(RawInvariants::parse(&datagram), None);
    assert_eq!(RawInvariants::parse(&[0x40; 30]), None);
}

#[test]
fn version_negotiation_lists_must_be_whole() {
    let mut bytes = Vec::new();
    write_version_negotiation(&mut bytes, id(&[1]), id(&[2]), &[], 0);
    assert_eq!(split_all(&bytes, 8), [Err(HeaderError::MalformedVersionList)]);
    bytes.extend_from_slice(&[0, 0, 0, 1, 0]);
    assert_eq!(split_all(&bytes, 8), [Err(HeaderError::MalformedVersionList)]);
}

#[test]
fn packets_cut_at_every_byte_are_truncated() {
    for kind in [PacketType::Initial, PacketType::ZeroRtt, PacketType::Handshake] {
        let token: &[u8] = if kind == PacketType::Initial { &[5; 70] } else { b"" };
        let mut bytes = Vec::new();
        long_packet(&mut bytes, kind, (&id(&[1; 8]), &id(&[2; 20])), token);
        for cut in 1..bytes.len() {
            assert_eq!(split_all(&bytes[..cut], 8), [Err(HeaderError::Truncated)], "{kind:?} cut to {cut}");
        }
    }
    for cut in 1..9 {
        assert_eq!(split_all(&[0x40; 9][..cut], 8), [Err(HeaderError::Truncated)]);
        assert_eq!(Invariants::parse(&[0x40; 9][..cut], 8), Err(HeaderError::Truncated));
    }
    assert!(split_all(&[0x40; 9], 8)[0].is_ok());
    assert!(split_all(&[], 8).is_empty());
}

proptest! {
    #[test]
    fn packet_numbers_round_trip(acked in proptest::option::of(0..1_u64 << 61), ahead in 1..1_u64 << 31, shift in 0_u32..31, seen: u64) {
        // spec: rfc9000 17.1 number-long-enough
        let ahead = (ahead >> shift).max(1);
        let number = acked.map_or(ahead - 1, |acked| acked + ahead);
        let truncated = number::encode(number, acked);
        // The receiver has seen at least what it acknowledged, and at most the packet before.
        let first = acked.map_or(0, |acked| acked + 1);
        let expected = first + seen % (number - first + 1);
        let largest_received = expected.checked_sub(1);
        prop_assert_eq!(number::decode(largest_received, truncated.value, truncated.len), number);
        let mut bytes = Vec::new();
        truncated.write(&mut bytes);
        prop_assert_eq!(bytes.len(), truncated.len());
        prop_assert_eq!(number::read(&bytes), truncated.value);
    }

    #[test]
    fn decoded_numbers_are_congruent(largest in proptest::option::of(any::<u64>()), truncated: u32, len: u8) {
        let number = number::decode(largest, truncated, len);
        prop_assert!(number <= crate::varint::MAX);
        let again = TruncatedNumber::new(number, len);
        prop_assert_eq!(again.value, TruncatedNumber::new(u64::from(truncated), len).value);
    }

    #[test]
    fn long_headers_round_trip(
        kind in prop_oneof![Just(PacketType::Initial), Just(PacketType::ZeroRtt), Just(PacketType::Handshake)],
        dcid in connection_id(), scid in connection_id(), token in vec(any::<u8>(), 0..100),
        number: u64, len in 1_u8..=4, payload in vec(any::<u8>(), 0..300), prefix in 0_usize..50,
    ) {
        let token = if kind == PacketType::Initial { token } else { Vec::new() };
        let number = TruncatedNumber::new(number, len);
        let mut buffer = vec![0; prefix];
        let layout = header::write_long(&mut buffer, kind, version::V1, &dcid, &scid, &token, number);
        prop_assert_eq!(buffer.len() - prefix, header::long_header_len(kind, &dcid, &scid, &token, number));
        buffer.extend_from_slice(&payload);
        header::patch_length(&mut buffer, layout.length_at, number.len() + payload.len());
        let packets = split_all(&buffer[prefix..], 8);
        prop_assert_eq!(packets.len(), 1);
        let packet = packets[0].as_ref().unwrap();
        prop_assert_eq!(packet.header.packet_type(), kind);
        prop_assert_eq!((packet.header.dcid(), packet.header.scid()), (dcid, Some(scid)));
        prop_assert_eq!(packet.token(), &token[..]);
        prop_assert_eq!(packet.number_at, layout.number_at - prefix);
        prop_assert_eq!(header::number_len(packet.bytes[0]), number.len());
        let end = packet.number_at + number.len();
        prop_assert_eq!(number::read(&packet.bytes[packet.number_at..end]), number.value);
        prop_assert_eq!(&packet.bytes[end..], &payload[..]);
    }

    #[test]
    fn short_headers_round_trip(dcid in connection_id(), spin: bool, phase: bool, number: u64, len in 1_u8..=4) {
        let number = TruncatedNumber::new(number, len);
        let mut buffer = Vec::new();
        let number_at = header::write_short(&mut buffer, spin, phase, &dcid, number);
        prop_assert_eq!(buffer.len(), header::short_header_len(&dcid, number));
        let packets = split_all(&buffer, dcid.len());
        let packet = packets[0].as_ref().unwrap();
        prop_assert_eq!(&packet.header, &Header::Short { dcid });
        prop_assert_eq!(packet.number_at, number_at);
        prop_assert_eq!(packet.bytes[0] & header::SPIN != 0, spin);
        prop_assert_eq!(packet.bytes[0] & header::KEY_PHASE != 0, phase);
        prop_assert_eq!(packet.bytes[0] & header::SHORT_RESERVED, 0);
        prop_assert_eq!(number::read(&buffer[number_at..]), number.value);
    }

    #[test]
    fn version_negotiation_round_trips(
        dcid in connection_id(), scid in connection_id(), versions in vec(any::<u32>(), 1..20), random: u8,
    ) {
        let mut buffer = Vec::new();
        write_version_negotiation(&mut buffer, dcid, scid, &versions, random);
        let packets = split_all(&buffer, 8);
        let expected = Header::VersionNegotiation { dcid, scid, versions };
        prop_assert_eq!(&packets[0].as_ref().unwrap().header, &expected);
    }

    #[test]
    fn arbitrary_datagrams_never_panic(bytes in vec(any::<u8>(), 0..300), local_cid_len in 0_usize..25) {
        let results = split_all(&bytes, local_cid_len);
        let total: usize = results.iter().flatten().map(|packet| packet.bytes.len()).sum();
        prop_assert!(total <= bytes.len());
        for packet in results.into_iter().flatten() {
            prop_assert!(packet.number_at <= packet.bytes.len());
        }
    }

    #[test]
    fn arbitrary_version_1_datagrams_never_panic(first in 0xc0_u8.., bytes in vec(0_u8..40, 0..300)) {
        let datagram = [&[first, 0, 0, 0, 1], &bytes[..]].concat();
        for packet in split_all(&datagram, 8).into_iter().flatten() {
            prop_assert!(packet.number_at <= packet.bytes.len() && packet.token().len() <= bytes.len());
        }
    }
}

/// Asserts that a truncated number is restored to a number with these low bytes, and that no such number is nearer to what
/// was expected (RFC 9000 appendix A.3).
fn assert_nearest(expected: u64, truncated: u32, len: u8) {
    let window = 1_u64 << (8 * u32::from(len));
    let full = number::decode(expected.checked_sub(1), truncated, len);
    assert!(full <= crate::varint::MAX);
    assert_eq!(full % window, u64::from(truncated), "{expected} {truncated}");
    let above = full.checked_add(window).filter(|other| *other <= crate::varint::MAX);
    for other in [full.checked_sub(window), above].into_iter().flatten() {
        let is_nearest = full.abs_diff(expected) <= other.abs_diff(expected);
        assert!(
            is_nearest,
            "{full} instead of {other} for {truncated} of {len} where {expected} was expected"
        );
    }
}

/// Exhaustive for one byte near both ends and a carry; for two and three bytes, all numbers at edges of the window; for four,
/// those around what is expected and both ends of its window.
#[test]
fn every_truncated_number_is_restored_to_the_nearest() {
    let last = crate::varint::MAX;
    for expected in (0..=0x300).chain(0xfe80..=0x1_0180).chain(last - 0x300..=last) {
        for truncated in 0..=0xff {
            assert_nearest(expected, truncated, 1);
        }
    }
    let edges =
        [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1_0000, 0x1_8000, last - 0x1_0000, last - 0x8000, last];
    for expected in edges {
        for truncated in 0..=0xffff {
            assert_nearest(expected, truncated, 2);
        }
    }
    for expected in [0x80_0001, last - 0x80_0000] {
        for truncated in 0..=0xff_ffff {
            assert_nearest(expected, truncated, 3);
        }
    }
    let half = 1_u64 << 31;
    for expected in [0, half - 1, half, half + 1, 2 * half - 1, 2 * half, last - 2 * half, last - half, last]
    {
        for centre in [expected, expected.wrapping_add(half), expected.wrapping_sub(half)] {
            for offset in 0..=0x4000_u64 {
                // The lowest four bytes, whatever is above them.
                assert_nearest(expected, centre.wrapping_add(offset).wrapping_sub(0x2000) as u32, 4);
            }
        }
    }
}

/// What a sender truncates, its peer restores, whatever of the packets since the acknowledged one it has received:
/// exhaustive for one byte, and for two bytes at both ends of what it may have.
#[test]
fn every_number_that_is_sent_is_restored() {
    for acked in [0, 0x7f, 0xff80, 1 << 40] {
        for distance in 1..=0x8000_u64 {
            let sent = number::encode(acked + distance, Some(acked));
            let ends = [acked, acked + distance / 2, acked + distance - 1];
            let all = acked..acked + if distance <= 0x80 { distance } else { 0 };
            for largest in ends.into_iter().chain(all) {
                let restored = number::decode(Some(largest), sent.value, sent.len);
                assert_eq!(restored, acked + distance, "{acked} acknowledged, {largest} received");
            }
        }
    }
}
