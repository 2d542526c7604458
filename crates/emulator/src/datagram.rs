//! What the relay puts on a path: UDP datagrams, counted as the IP packets that they travel in.

use std::net::SocketAddr;

use bytes::Bytes;
use posthaste_path::Packet;
use posthaste_units::ByteCount;

/// The ECN field's two bits (RFC 3168 section 5).
const ECN_MASK: u8 = 0b11;

/// Congestion Experienced.
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// A UDP datagram with the ECN field of its packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) payload: Bytes,
    /// 0 to 3.
    pub(crate) ecn: u8,
    /// Bytes of IP and UDP headers.
    headers: u8,
}

impl Datagram {
    /// `ecn` is the field's two low bits, what stands above them is not looked at.
    pub(crate) fn new(payload: Bytes, ecn: u8, headers: u8) -> Self {
        Self { payload, ecn: ecn & ECN_MASK, headers }
    }
}

/// Bytes of the IP header (without options) and UDP's in front of each payload that goes to this address.
pub(crate) fn headers_towards(address: SocketAddr) -> u8 {
    if address.is_ipv4() { 20 + 8 } else { 40 + 8 }
}

impl Packet for Datagram {
    fn length(&self) -> ByteCount {
        ByteCount::from(self.payload.len()) + ByteCount::new(self.headers.into())
    }

    fn flip_bit(&mut self, draw: u64) {
        self.payload.flip_bit(draw);
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn != 0
    }

    fn mark_congestion_experienced(&mut self) {
        self.ecn = CONGESTION_EXPERIENCED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_sees_the_whole_ip_packet() {
        let v4 = headers_towards("127.0.0.1:1".parse().expect("an address"));
        let v6 = headers_towards("[::1]:1".parse().expect("an address"));
        let payload = Bytes::from_static(&[0; 1_000]);
        assert_eq!(Datagram::new(payload.clone(), 0, v4).length(), ByteCount::new(1_028));
        assert_eq!(Datagram::new(payload.clone(), 0, v6).length(), ByteCount::new(1_048));
        let mut marked = Datagram::new(payload, 0b1010_1010, v4);
        assert!(marked.is_ecn_capable());
        assert_eq!(marked.ecn, 0b10);
        marked.mark_congestion_experienced();
        assert_eq!(marked.ecn, 0b11);
    }
}
