//! Retry packets (RFC 9000 section 17.2.5) and their integrity tag (RFC 9001 section 5.8).

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use posthaste_wire::ConnectionId;
use posthaste_wire::packet::header::RETRY_TAG_LEN;
use posthaste_wire::packet::{version, write_retry};

/// The key and the nonce of the tag: not secret, they only tie a Retry to the Initial that it answers (RFC 9001
/// section 5.8, RFC 9369 section 3.3.3).
const fn key_and_nonce(version: u32) -> ([u8; 16], [u8; 12]) {
    match version {
        version::V2 => (
            [0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92],
            [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a],
        ),
        _ => (
            [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e],
            [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb],
        ),
    }
}

/// The tag of a Retry packet that stands in `packet` without it, in answer to an Initial that was sent to `original`.
fn integrity_tag(version: u32, original: &ConnectionId, packet: &[u8]) -> Option<[u8; RETRY_TAG_LEN]> {
    let (key, nonce) = key_and_nonce(version);
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
    let mut pseudo_packet = Vec::with_capacity(1 + original.len() + packet.len());
    pseudo_packet.push(original.len() as u8);
    pseudo_packet.extend_from_slice(original.as_slice());
    pseudo_packet.extend_from_slice(packet);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&pseudo_packet), &mut []).ok()?;
    tag.as_ref().try_into().ok()
}

/// A whole Retry packet that names the server `source` and answers the Initial that `client` sent to `original`.
pub(crate) fn packet(
    version: u32,
    client: &ConnectionId,
    source: &ConnectionId,
    original: &ConnectionId,
    token: &[u8],
    random: u8,
) -> Option<Vec<u8>> {
    let mut packet = Vec::new();
    write_retry(&mut packet, version, client, source, token, random);
    let tag = integrity_tag(version, original, &packet)?;
    packet.extend_from_slice(&tag);
    Some(packet)
}

/// True if the tag at the packet's end is that of an answer to an Initial that was sent to `original`.
pub(crate) fn is_intact(version: u32, original: &ConnectionId, packet: &[u8]) -> bool {
    let Some((body, tag)) = packet.split_last_chunk::<RETRY_TAG_LEN>() else { return false };
    integrity_tag(version, original, body).is_some_and(|expected| expected == *tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// RFC 9001 appendix A.4 and RFC 9369 appendix A.4.
    #[test]
    fn the_tags_are_those_of_the_examples() {
        // spec: rfc9369 3 as-version-1
        // spec: rfc9000 17.2.5.2 retry-tag-checked
        let original = ConnectionId::new(&bytes("8394c8f03e515708")).unwrap();
        let server = ConnectionId::new(&bytes("f067a5502a4262b5")).unwrap();
        for (number, example) in [
            (version::V1, "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba"),
            (version::V2, "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6"),
        ] {
            let example = bytes(example);
            assert!(is_intact(number, &original, &example));
            let made = packet(number, &ConnectionId::EMPTY, &server, &original, b"token", 0xf).unwrap();
            assert_eq!(made, example, "version {number:#x}");
            for at in 0..example.len() {
                let mut forged = example.clone();
                forged[at] ^= 1;
                assert!(!is_intact(number, &original, &forged), "byte {at}");
            }
            assert!(!is_intact(number, &server, &example), "an answer to another Initial");
        }
    }
}
