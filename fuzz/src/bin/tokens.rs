//! Address tokens of first packets, at a server that demands one: no panic, no connection for a token that it has not given,
//! and no more than one answer to each, of three times its size at most. Records of one byte for the length, and a token.

#![no_main]

use std::sync::Arc;

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use posthaste_transport::{DatagramInfo, Endpoint, RetryPolicy, ServerConfig};
use posthaste_units::{Duration, Time};
use posthaste_wire::ConnectionId;
use posthaste_wire::packet::{PacketType, TruncatedNumber, header};

#[path = "../../../crates/transport/tests/support/mod.rs"]
mod support;

/// Bytes of a client's first datagram (RFC 9000 section 14.1).
const FULL: usize = 1200;

fuzz_target!(|input: &[u8]| {
    let config = ServerConfig { retry: RetryPolicy::Always, ..support::tls::server_config(1) };
    let config = config.with_transport(Arc::new(support::defaults()));
    let mut endpoint = Endpoint::new([1; 32], Some(config));
    let (mut now, mut rest, mut answer) = (Time::ZERO, input, Vec::new());
    let info =
        DatagramInfo { remote: "127.0.0.1:666".parse().expect("an address"), local_ip: None, ecn: None };
    while let Some((length, after)) = rest.split_first() {
        let (token, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        // Another one each time, as of other clients.
        let id = ConnectionId::new(&(rest.len() as u64).to_be_bytes()).expect("it is short");
        let mut datagram = Vec::new();
        let number = TruncatedNumber::new(0, 1);
        let kind = PacketType::Initial;
        let layout = header::write_long(&mut datagram, kind, 1, &id, &id, token, number);
        let payload = FULL.saturating_sub(datagram.len()).max(64);
        header::patch_length(&mut datagram, layout.length_at, number.len() + payload);
        datagram.resize(datagram.len() + payload, 0);
        endpoint.on_datagram(now, &info, BytesMut::from(&datagram[..]));
        answer.clear();
        if let Some(transmit) = endpoint.poll_transmit(now, &mut answer, 1) {
            assert!(transmit.size <= 3 * datagram.len(), "{} for {}", transmit.size, datagram.len());
        }
        answer.clear();
        assert!(endpoint.poll_transmit(now, &mut answer, 1).is_none(), "a second answer");
        assert_eq!(endpoint.connections(), 0, "a token that nobody gave");
        now += Duration::from_millis(1);
    }
});
