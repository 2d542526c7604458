use std::sync::Arc;

use rustls::quic::{ClientConnection, Connection, KeyChange, ServerConnection, Version};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::*;
use crate::crypto::{Opened, TAG_LEN, open, remove_header_protection};

/// The first byte of a short header with a packet number of one byte.
const FIRST: u8 = 0x40;

/// The keys of both ends of a fresh connection.
fn pair() -> [OneRttKeys; 2] {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone()).unwrap();
    let key = identity.signing_key.serialize_der().try_into().unwrap();
    let tls13 = &[&rustls::version::TLS13];
    let server = ServerConfig::builder_with_protocol_versions(tls13);
    let server = server.with_no_client_auth().with_single_cert(vec![identity.cert.into()], key).unwrap();
    let client = ClientConfig::builder_with_protocol_versions(tls13);
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(client), Version::V1, name, Vec::new()).unwrap();
    let server = ServerConnection::new(Arc::new(server), Version::V1, Vec::new()).unwrap();
    let mut ends: [Connection; 2] = [client.into(), server.into()];
    let mut keys = [None, None];
    while keys.iter().any(Option::is_none) {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut said = Vec::new();
            if let Some(change @ KeyChange::OneRtt { .. }) = ends[from].write_hs(&mut said) {
                keys[from] = OneRttKeys::new(change, KeyLimits::default());
            } else if !said.is_empty() {
                ends[to].read_hs(&said).unwrap();
                continue;
            }
            ends[to].read_hs(&said).unwrap();
        }
    }
    keys.map(Option::unwrap)
}

/// A packet with a PING, as it leaves.
fn sealed(keys: &mut OneRttKeys, number: u8) -> Vec<u8> {
    let phase = if keys.phase() { 4 } else { 0 };
    let mut packet = vec![FIRST | phase, number, 1, 0, 0, 0];
    packet.resize(packet.len() + TAG_LEN, 0);
    keys.seal(&mut packet, 1, 2, number.into()).unwrap();
    packet
}

/// Opens a packet as a connection does; `None` if no key fits.
fn opened(keys: &mut OneRttKeys, packet: &[u8], number: u64) -> Option<Opened> {
    let mut packet = bytes::BytesMut::from(packet);
    let unmasked = remove_header_protection(&mut packet, 1, keys.remote_header()).unwrap();
    let which = keys.choose(unmasked.first & 4 != 0, number);
    let opened = open(packet, 1, unmasked, number, keys.open_key(which).unwrap());
    match &opened {
        Some(_) => keys.on_opened(which, number, Time::FAR_FUTURE).unwrap(),
        None => assert!(!keys.on_forged()),
    }
    opened
}

#[test]
fn the_next_phase_is_derived_by_the_first_packet_that_does_not_open_whatever_its_phase_bit() {
    // spec: rfc9001 6.3 no-timing-signal
    for flipped in [0, 4] {
        let [mut client, mut server] = pair();
        let packet = sealed(&mut client, 0);
        assert!(opened(&mut server, &packet, 0).is_some());
        assert!(client.next.is_none() && server.next.is_none(), "nobody needs it yet");
        let mut forged = sealed(&mut client, 1);
        forged[0] ^= flipped;
        *forged.last_mut().unwrap() ^= 1;
        assert!(opened(&mut server, &forged, 1).is_none());
        assert!(server.next.is_some(), "flipped bit: {}", flipped != 0);
    }
}

#[test]
fn both_ends_may_update_before_the_next_phase_was_derived() {
    let [mut client, mut server] = pair();
    for number in 0..4 {
        client.rotate();
        let packet = sealed(&mut client, number);
        assert!(opened(&mut server, &packet, number.into()).is_some(), "update {number}");
        assert_eq!(server.updates(), u64::from(number) + 1);
        server.on_ack_sent(number.into());
        server.on_time(Time::FAR_FUTURE);
    }
}

#[test]
fn a_busy_end_derives_the_next_phase_while_it_sends() {
    let [mut client, _] = pair();
    for number in 0..SENT_BEFORE_NEXT {
        assert!(client.next.is_none(), "after {number} packets");
        sealed(&mut client, number as u8);
    }
    assert!(client.next.is_some());
}
