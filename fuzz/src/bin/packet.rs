//! A datagram into its packets, up to the packet number: no panic, no byte invented. The first byte of the input is
//! not part of the datagram: it picks the length of local connection IDs.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use posthaste_wire::packet::{
    self, Header, HeaderError, Invariants, ProtectedPacket, RawInvariants, TruncatedNumber,
};
use posthaste_wire::{ConnectionId, packet::header, packet::number};

fuzz_target!(|input: &[u8]| {
    let Some((choice, datagram)) = input.split_first() else { return };
    let local_cid_len = usize::from(*choice) % 24;
    let invariants = Invariants::parse(datagram, local_cid_len);
    let raw = RawInvariants::parse(datagram);
    if let (Ok(invariants), Some(raw)) = (&invariants, &raw) {
        assert_eq!((invariants.dcid.as_slice(), invariants.scid.as_slice()), (raw.dcid, raw.scid));
        assert_eq!((invariants.is_long, invariants.version), (true, raw.version));
    }
    let mut taken = 0;
    let mut packets = packet::split(BytesMut::from(datagram), local_cid_len).peekable();
    if let Some(Ok(first)) = packets.peek() {
        let invariants = invariants.expect("a packet has invariants");
        assert_eq!(invariants.dcid, first.header.dcid());
    }
    for result in packets {
        match result {
            Ok(packet) => {
                taken += packet.bytes.len();
                check_packet(&packet);
            }
            Err(HeaderError::UnknownVersion(unknown)) => assert!(unknown.is_long),
            Err(_) => {}
        }
    }
    assert!(taken <= datagram.len(), "more bytes than came");
});

fn check_packet(packet: &ProtectedPacket) {
    assert!(packet.number_at <= packet.bytes.len());
    let kind = packet.header.packet_type();
    assert_eq!(kind.is_long(), packet.bytes[0] & header::FORM != 0);
    if let Some(sample) = packet.sample() {
        assert!(kind.is_numbered());
        assert_eq!(packet.bytes[packet.number_at + number::MAX_LEN..][..sample.len()], sample[..]);
        check_number(packet);
    }
    check_rewriting(packet);
}

/// As if header protection were off already: any number must be congruent to what was sent.
fn check_number(packet: &ProtectedPacket) {
    let len = header::number_len(packet.bytes[0]);
    let truncated = number::read(&packet.bytes[packet.number_at..packet.number_at + len]);
    let seed =
        packet.sample().and_then(|sample| sample.first_chunk()).map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let largest = (!seed.is_multiple_of(3)).then_some(seed);
    let full = number::decode(largest, truncated, len as u8);
    assert!(full <= posthaste_wire::varint::MAX);
    assert_eq!(TruncatedNumber::new(full, len as u8).value, truncated);
    // What a sender would truncate, its peer restores.
    let next = largest.map_or(0, |largest| largest.min(posthaste_wire::varint::MAX - 1) + 1);
    let sent = number::encode(next, next.checked_sub(1));
    assert_eq!(number::decode(next.checked_sub(1), sent.value, sent.len), next);
}

/// The writers give back the header that was read (but for the length of the Length field and unused bits).
fn check_rewriting(packet: &ProtectedPacket) {
    let mut buffer = Vec::new();
    let number = TruncatedNumber::new(1, 2);
    let local_cid_len = packet.header.dcid().len();
    match &packet.header {
        Header::Initial { version, dcid, scid, .. }
        | Header::ZeroRtt { version, dcid, scid }
        | Header::Handshake { version, dcid, scid } => {
            let kind = packet.header.packet_type();
            let layout = header::write_long(&mut buffer, kind, *version, dcid, scid, packet.token(), number);
            header::patch_length(&mut buffer, layout.length_at, number.len());
        }
        Header::Retry { version, dcid, scid, integrity_tag, .. } => {
            packet::write_retry(&mut buffer, *version, dcid, scid, packet.token(), 0);
            buffer.extend_from_slice(integrity_tag);
        }
        Header::VersionNegotiation { dcid, scid, versions } => {
            packet::write_version_negotiation(&mut buffer, dcid, scid, versions, 0);
        }
        Header::Short { dcid } => {
            header::write_short(&mut buffer, false, false, dcid, number);
        }
    }
    let mut again = packet::split(BytesMut::from(&buffer[..]), local_cid_len);
    let read = again.next().expect("a packet").expect("a good one");
    assert_eq!(read.header.packet_type(), packet.header.packet_type());
    assert_eq!((read.header.dcid(), read.header.scid()), (packet.header.dcid(), packet.header.scid()));
    assert_eq!(read.token(), packet.token());
    assert!(again.next().is_none());
    assert!(ConnectionId::new(read.header.dcid().as_slice()).is_some());
}
