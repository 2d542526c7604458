//! What a recorder hears of a server's first words.

use bytes::BytesMut;
use posthaste_wire::frame::CryptoFrame;
use posthaste_wire::packet::{TruncatedNumber, header, split};

use super::*;

const CHACHA20: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("eight bytes")
}

/// A `ServerHello`, or what asks the client for another key share.
fn message(is_retry_request: bool, cipher: CipherSuite, is_resumed: bool) -> Vec<u8> {
    let mut body = vec![3, 3];
    let random = if is_retry_request { [&RETRY_REQUEST[..], &[1; 24]].concat() } else { vec![7; 32] };
    body.extend(random);
    body.push(0);
    body.extend(u16::from(cipher).to_be_bytes());
    body.push(0);
    let mut extensions = vec![0, 43, 0, 2, 3, 4];
    if is_resumed {
        extensions.extend([0, 41, 0, 2, 0, 0]);
    }
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut message = vec![SERVER_HELLO, 0, 0, body.len() as u8];
    message.extend(body);
    message
}

/// An Initial packet of a server whose client began with `destination`.
fn initial(number: u32, destination: &ConnectionId, offset: u64, data: &[u8]) -> ProtectedPacket {
    let labels = if number == version::V2 { Version::V2 } else { Version::V1 };
    let suite =
        TLS13_AES_128_GCM_SHA256.tls13().and_then(rustls::Tls13CipherSuite::quic_suite).expect("a suite");
    let keys = suite.keys(destination.as_slice(), Side::Server, labels).local;
    let mut payload = Vec::new();
    CryptoFrame { offset, data: Bytes::copy_from_slice(data) }.write(&mut payload);
    payload.resize(payload.len().max(40), 0);
    let packet_number = TruncatedNumber::new(3, 2);
    let mut bytes = Vec::new();
    let layout =
        header::write_long(&mut bytes, PacketType::Initial, number, &id(9), &id(8), &[], packet_number);
    header::patch_length(&mut bytes, layout.length_at, 2 + payload.len() + 16);
    let tag = keys.packet.encrypt_in_place(3, &bytes, &mut payload).expect("sealed");
    bytes.extend(payload);
    bytes.extend(tag.as_ref());
    let sample: Vec<u8> = bytes[layout.number_at + 4..][..16].to_vec();
    let (before, number) = bytes.split_at_mut(layout.number_at);
    keys.header.encrypt_in_place(&sample, &mut before[0], &mut number[..4]).expect("protected");
    split(BytesMut::from(&bytes[..]), 0).next().expect("a packet").expect("whole")
}

/// A client's first packet, of which only the header counts.
fn first_of_client(destination: &ConnectionId) -> ProtectedPacket {
    let mut packet = initial(version::V1, destination, 0, &[0; 40]);
    if let header::Header::Initial { dcid, .. } = &mut packet.header {
        *dcid = *destination;
    }
    packet
}

#[test]
fn a_hello_in_two_packets_behind_a_retry_request_is_read() {
    let mut said = message(true, CHACHA20, false);
    said.extend(message(false, CHACHA20, true));
    let (first, second) = said.split_at(70);
    for number in [version::V1, version::V2] {
        let mut hellos = Hellos::default();
        hellos.client(&first_of_client(&id(1)));
        hellos.client(&first_of_client(&id(2)));
        hellos.server(&initial(number, &id(2), 70, second));
        assert_eq!(hellos.all(), []);
        hellos.server(&initial(number, &id(2), 0, first));
        assert_eq!(hellos.all(), [Hello { cipher: CHACHA20, is_resumed: true }]);
    }
}

#[test]
fn what_nobody_asked_for_is_not_read() {
    let said = message(false, CHACHA20, false);
    let mut hellos = Hellos::default();
    hellos.server(&initial(version::V1, &id(1), 0, &said));
    hellos.client(&first_of_client(&id(2)));
    hellos.server(&initial(version::V1, &id(1), 0, &said));
    assert_eq!(hellos.all(), []);
    hellos.client(&first_of_client(&id(1)));
    hellos.server(&initial(version::V1, &id(1), 0, &said));
    assert_eq!(hellos.all(), [Hello { cipher: CHACHA20, is_resumed: false }]);
}

#[test]
fn half_a_hello_says_nothing() {
    let said = message(false, CHACHA20, true);
    assert!(server_hello(&said).is_some());
    for end in 0..said.len() {
        assert_eq!(server_hello(&said[..end]), None, "{end}");
    }
}
