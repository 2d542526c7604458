//! What a tunnel puts on a path: IP packets as they are.

use posthaste_path::{Packet, flip_bit_of};
use posthaste_units::{ByteCount, Duration};

/// Congestion Experienced in the ECN field (RFC 3168 section 5).
const CONGESTION_EXPERIENCED: u8 = 0b11;

/// Where the first byte ends whose bits noise may flip. The interface takes no packet whose version is neither 4 nor
/// 6, and would count it as dropped outside the model.
const VERSION: usize = 1;

/// An IP packet of either version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IpPacket {
    bytes: Vec<u8>,
    /// How much later than it arrived, at most, it was put on the path.
    pub(super) waited: Duration,
}

impl IpPacket {
    pub(super) fn new(bytes: &[u8], waited: Duration) -> Self {
        Self { bytes: bytes.to_vec(), waited }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of the traffic class with the ECN field, and by how much it is shifted there.
    fn ecn(&self) -> Option<(usize, u32)> {
        match self.bytes.first()? >> 4 {
            4 if self.bytes.len() >= 20 => Some((1, 0)),
            6 if self.bytes.len() >= 40 => Some((1, 4)),
            _ => None,
        }
    }
}

impl Packet for IpPacket {
    fn length(&self) -> ByteCount {
        ByteCount::from(self.bytes.len())
    }

    fn flip_bit(&mut self, draw: u64) {
        if let Some(bytes) = self.bytes.get_mut(VERSION..) {
            flip_bit_of(bytes, draw);
        }
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn().is_some_and(|(byte, shift)| self.bytes[byte] >> shift & CONGESTION_EXPERIENCED != 0)
    }

    fn mark_congestion_experienced(&mut self) {
        let Some((byte, shift)) = self.ecn() else { return };
        let before = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        self.bytes[byte] |= CONGESTION_EXPERIENCED << shift;
        let after = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        // IPv6 has no header checksum, and pseudo-headers leave the traffic class out.
        if self.bytes[0] >> 4 == 4 {
            let checksum = u16::from_be_bytes([self.bytes[10], self.bytes[11]]);
            let updated = updated_checksum(checksum, before, after);
            self.bytes[10..12].copy_from_slice(&updated.to_be_bytes());
        }
    }
}

/// The Internet checksum after a word of what it covers has changed (RFC 1624 section 3, equation 3).
fn updated_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of 20 bytes with a right checksum.
    fn ipv4(type_of_service: u8) -> IpPacket {
        let mut bytes = vec![0; 28];
        bytes[0] = 0x45;
        bytes[1] = type_of_service;
        bytes[3] = 28;
        bytes[8..10].copy_from_slice(&[64, 17]);
        bytes[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
        let checksum = !sum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        IpPacket::new(&bytes, Duration::ZERO)
    }

    /// The ones' complement sum; `0xffff` over a header with a right checksum (RFC 1071).
    fn sum(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for type_of_service in [1, 2, 0xb9, 0xfe] {
            let mut packet = ipv4(type_of_service);
            assert!(packet.is_ecn_capable());
            packet.mark_congestion_experienced();
            assert_eq!(packet.bytes()[1], type_of_service | 3);
            assert_eq!(sum(&packet.bytes()[..20]), 0xffff);
        }
        assert!(!ipv4(0xb8).is_ecn_capable());
    }

    #[test]
    fn version_six_has_its_field_elsewhere() {
        let mut bytes = [0; 40];
        bytes[0] = 0x60;
        bytes[1] = 0x2f;
        let mut packet = IpPacket::new(&bytes, Duration::ZERO);
        assert!(packet.is_ecn_capable());
        packet.mark_congestion_experienced();
        assert_eq!(packet.bytes()[1], 0x3f);
        bytes[1] = 0xcf;
        assert!(!IpPacket::new(&bytes, Duration::ZERO).is_ecn_capable());
    }

    #[test]
    fn what_is_no_ip_packet_does_no_harm() {
        for bytes in [&[][..], &[0x45], &[0x60; 39], &[0xff; 60]] {
            let mut packet = IpPacket::new(bytes, Duration::ZERO);
            assert!(!packet.is_ecn_capable());
            packet.mark_congestion_experienced();
            packet.flip_bit(u64::MAX);
        }
    }

    #[test]
    fn noise_spares_the_version() {
        for draw in 0..64u64 {
            let mut packet = ipv4(0);
            packet.flip_bit(draw << 58);
            assert_eq!(packet.bytes()[0], 0x45);
            assert_ne!(packet, ipv4(0));
        }
    }
}
