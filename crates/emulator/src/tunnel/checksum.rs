//! Checksums of TCP and UDP that a kernel has left to its network hardware.
//!
//! Such a packet has, where the checksum belongs, the sum of its pseudo-header alone, not inverted. Everything else is
//! left as it is: a checksum that noise on another path has made wrong must stay wrong.

use std::ops::Range;

/// IANA's numbers of protocols.
const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DESTINATION_OPTIONS: u8 = 60;

/// Lengths of the headers before options (RFC 9293 section 3.1, RFC 768).
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// More Fragments, and the offset of a fragment (RFC 791 section 3.1).
const FRAGMENT: u16 = 0x3fff;

/// What is behind the headers of IP.
struct Payload {
    protocol: u8,
    bytes: Range<usize>,
    /// Where both addresses are.
    addresses: Range<usize>,
}

/// Completes the checksum of an IP packet if the kernel has not.
pub(super) fn complete(packet: &mut [u8]) {
    let _ = try_complete(packet);
}

/// `None` where there is nothing to complete.
fn try_complete(packet: &mut [u8]) -> Option<()> {
    let Payload { protocol, bytes, addresses } = payload(packet)?;
    let at = match protocol {
        TCP if bytes.len() >= TCP_HEADER => 16,
        UDP if bytes.len() >= UDP_HEADER => 6,
        _ => return None,
    };
    let field = bytes.start + at..bytes.start + at + 2;
    // RFC 9293 section 3.1, RFC 768, RFC 8200 section 8.1. Words of zeros add nothing.
    let length = u32::try_from(bytes.len()).ok()?;
    let pseudo = sum_of(packet.get(addresses)?) + u64::from(protocol) + u64::from(length);
    let found = sum_of(packet.get(field.clone())?);
    // UDP's zero says that there is none.
    if found == 0 || found != u64::from(folded(pseudo)) {
        return None;
    }
    packet.get_mut(field.clone())?.fill(0);
    let checksum = match (!folded(pseudo + sum_of(packet.get(bytes)?)), protocol) {
        (0, UDP) => 0xffff,
        (checksum, _) => checksum,
    };
    packet.get_mut(field)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

fn payload(packet: &[u8]) -> Option<Payload> {
    match packet.first()? >> 4 {
        4 => payload_of_version_4(packet),
        6 => payload_of_version_6(packet),
        _ => None,
    }
}

/// RFC 791 section 3.1. `None` for fragments: checksums are made before those are.
fn payload_of_version_4(packet: &[u8]) -> Option<Payload> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let total = usize::from(word(packet, 2)?);
    let is_whole = word(packet, 6)? & FRAGMENT == 0;
    (header >= 20 && (header..=packet.len()).contains(&total) && is_whole).then_some(Payload {
        protocol: *packet.get(9)?,
        bytes: header..total,
        addresses: 12..20,
    })
}

/// RFC 8200 sections 3 and 4. `None` for headers that change the addresses, for fragments, and what is not known.
fn payload_of_version_6(packet: &[u8]) -> Option<Payload> {
    let mut protocol = *packet.get(6)?;
    let mut start = 40;
    let total = start + usize::from(word(packet, 4)?);
    while [HOP_BY_HOP, DESTINATION_OPTIONS].contains(&protocol) {
        protocol = *packet.get(start)?;
        start += 8 + 8 * usize::from(*packet.get(start + 1)?);
    }
    (start..=packet.len()).contains(&total).then_some(Payload {
        protocol,
        bytes: start..total,
        addresses: 8..40,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// The sum of 16-bit words, the last one filled up with zeros (RFC 1071 section 1), not folded.
fn sum_of(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(2);
    let sum: u64 = words.by_ref().map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    sum + words.remainder().first().map_or(0, |&last| u64::from(last) << 8)
}

/// The ones' complement sum of 16 bits.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
#[path = "checksum_tests.rs"]
mod tests;
