//! Packets from 198.18.0.1 to 198.18.0.2 whose checksums were computed elsewhere.

use super::*;

/// A segment of TCP with three bytes; its checksum is at the 16th byte, and is `TCP_PARTIAL` where it was left over.
const TCP_SEGMENT: &str = "1bbc9c40010203040a0b0c0d501801f6000000006f6464";
const TCP_AT: usize = 16;
const TCP_PARTIAL: [u8; 2] = [0x8c, 0x45];
const TCP_WHOLE: [u8; 2] = [0x7c, 0x2c];

const PLAIN: &str = "4500002b1c4600004006d25fc6120001c6120002";
const WITH_OPTIONS: &str = "4600002f1c4600004006cf59c6120001c612000201010101";

fn bytes(parts: &[&str]) -> Vec<u8> {
    let text = parts.concat();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// What becomes of a packet with these two bytes at that place.
fn completed(mut packet: Vec<u8>, at: usize, found: [u8; 2]) -> [u8; 2] {
    packet[at..at + 2].copy_from_slice(&found);
    let before = packet.clone();
    complete(&mut packet);
    let field = [packet[at], packet[at + 1]];
    packet[at..at + 2].copy_from_slice(&found);
    assert_eq!(packet, before, "nothing else is touched");
    field
}

#[test]
fn tcp() {
    let packet = || bytes(&[PLAIN, TCP_SEGMENT]);
    assert_eq!(completed(packet(), 20 + TCP_AT, TCP_PARTIAL), TCP_WHOLE);
    assert_eq!(completed(packet(), 20 + TCP_AT, TCP_WHOLE), TCP_WHOLE);
    for wrong in [[0, 0], [0xff, 0xff], [0x8c, 0x46]] {
        assert_eq!(completed(packet(), 20 + TCP_AT, wrong), wrong, "what noise has made stays");
    }
}

#[test]
fn tcp_behind_options_and_before_padding() {
    let packet = bytes(&[WITH_OPTIONS, TCP_SEGMENT]);
    assert_eq!(completed(packet.clone(), 24 + TCP_AT, TCP_PARTIAL), TCP_WHOLE);
    // Ethernet fills short frames up.
    let padded = [packet, vec![0xaa; 3]].concat();
    assert_eq!(completed(padded, 24 + TCP_AT, TCP_PARTIAL), TCP_WHOLE);
}

#[test]
fn udp() {
    let packet = || bytes(&["450000201c4600004011d25fc6120001c6120002", "00351151000c000061626364"]);
    assert_eq!(completed(packet(), 26, [0x8c, 0x45]), [0x9d, 0x61]);
    assert_eq!(completed(packet(), 26, [0, 0]), [0, 0], "zero says that there is none");
    let sums_to_zero = bytes(&["4500001e1c4600004011d261c6120001c6120002", "00351151000a0000622c"]);
    assert_eq!(completed(sums_to_zero, 26, [0x8c, 0x43]), [0xff, 0xff]);
}

#[test]
fn version_6() {
    let addresses = "20010db800000000000000000000000120010db8000000000000000000000002";
    let plain = bytes(&["6000000000170640", addresses, TCP_SEGMENT]);
    assert_eq!(completed(plain, 40 + TCP_AT, [0x5b, 0x92]), [0xac, 0xdf]);
    // Hop-by-hop options, then destination options, with padding.
    let extended = bytes(&[
        "60000000002f0040",
        addresses,
        "3c00010400000000",
        "0601010c00000000",
        "0000000000000000",
        TCP_SEGMENT,
    ]);
    assert_eq!(completed(extended.clone(), 64 + TCP_AT, [0x5b, 0x92]), [0xac, 0xdf]);
    // The same place, but a fragment's header before it.
    let mut fragment = extended;
    fragment[40] = 44;
    assert_eq!(completed(fragment, 64 + TCP_AT, [0x5b, 0x92]), [0x5b, 0x92]);
}

#[test]
fn what_has_no_such_checksum_is_left_alone() {
    let icmp = bytes(&["4500001c1c4600004001d273c6120001c6120002", "0800f7fd00010001"]);
    assert_eq!(completed(icmp, 22, [0x8c, 0x45]), [0x8c, 0x45]);
    for fragment in [[0x20, 0x00], [0x00, 0xb9]] {
        let mut packet = bytes(&[PLAIN, TCP_SEGMENT]);
        packet[6..8].copy_from_slice(&fragment);
        assert_eq!(completed(packet, 20 + TCP_AT, TCP_PARTIAL), TCP_PARTIAL);
    }
}

#[test]
fn what_is_cut_short_does_no_harm() {
    let addresses = "20010db800000000000000000000000120010db8000000000000000000000002";
    for whole in [
        bytes(&[PLAIN, TCP_SEGMENT]),
        bytes(&[
            "60000000002f0040",
            addresses,
            "3c00010400000000",
            "0601010c00000000",
            "0000000000000000",
            TCP_SEGMENT,
        ]),
    ] {
        for length in 0..whole.len() {
            let mut packet = whole[..length].to_vec();
            complete(&mut packet);
            assert_eq!(packet, whole[..length]);
        }
    }
    let mut long_header = bytes(&[PLAIN]);
    long_header[0] = 0x4f;
    complete(&mut long_header);
}
