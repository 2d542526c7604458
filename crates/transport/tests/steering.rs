//! An endpoint that shares its port with others.

use std::num::NonZeroU16;

use crate::support::{Pair, tls};
use bytes::BytesMut;
use posthaste_transport::{DatagramInfo, Endpoint, Misplaced, ServerConfig, Steering};
use posthaste_units::Time;

const TWO: NonZeroU16 = NonZeroU16::new(2).unwrap();

fn steering(index: u16) -> Steering {
    Steering::new([11, 13, 17, 19], TWO, index).unwrap()
}

fn server(index: u16) -> ServerConfig {
    ServerConfig { steering: Some(steering(index)), ..tls::server_config(1) }
}

fn info() -> DatagramInfo {
    DatagramInfo { remote: "127.0.0.1:1000".parse().unwrap(), local_ip: None, ecn: None }
}

/// An ID that the first endpoint owns.
fn foreign_id() -> [u8; 8] {
    (0..100_u64).map(u64::to_be_bytes).find(|id| steering(1).owner(id) == Some(0)).unwrap()
}

/// Neither a reset nor a version negotiation: its owner may know the connection.
#[test]
fn what_another_owns_is_given_back_and_not_answered() {
    let mut endpoint = Endpoint::new([1; 32], Some(server(1)));
    let id = foreign_id();
    let short = [&[0x40][..], &id, &[0; 1190]].concat();
    let long = [&[0xc0, 0, 0, 0, 9, 8][..], &id, &[0; 1190]].concat();
    for datagram in [short, long] {
        let misplaced = endpoint.on_datagram(Time::ZERO, &info(), BytesMut::from(&datagram[..]));
        assert_eq!(misplaced, Some(Misplaced { owner: 0, data: BytesMut::from(&datagram[..]) }));
    }
    assert_eq!(endpoint.poll_transmit(Time::ZERO, &mut Vec::new(), 1), None);
    assert_eq!(endpoint.stats().misplaced, 2);
    // The owner itself does answer.
    let mut owner = Endpoint::new([1; 32], Some(server(0)));
    let short = [&[0x40][..], &id, &[0; 1190]].concat();
    assert_eq!(owner.on_datagram(Time::ZERO, &info(), BytesMut::from(&short[..])), None);
    assert_eq!(owner.stats().resets_sent, 1);
}

#[test]
fn every_id_that_an_endpoint_gives_is_its_own() {
    // The client chooses the first ID of itself, so one of the two takes the connection.
    let mut pair = Pair::with_server(1, server(0));
    pair.capture = Some(Vec::new());
    let client = pair.connect();
    pair.drain();
    let first = pair.capture.as_ref().unwrap()[0].1.clone();
    let owner = steering(0).owner(&first[6..14]).unwrap();
    let mut pair = Pair::with_server(1, server(owner));
    pair.capture = Some(Vec::new());
    let (again, _) = pair.establish();
    assert_eq!(again, client, "the same run");
    let captured = pair.capture.take().unwrap();
    let to_server = captured.iter().filter(|(from_client, data)| *from_client && data[0] & 0x80 == 0);
    let owners: Vec<_> = to_server.map(|(_, data)| steering(0).owner(&data[1..9])).collect();
    assert!(!owners.is_empty() && owners.iter().all(|found| *found == Some(owner)), "{owners:?}");
    assert_eq!(pair.server.endpoint.stats().misplaced, 0);
}
