//! What a path carries.

use bytes::{Bytes, BytesMut};
use posthaste_units::ByteCount;

/// A packet as a link sees it: a length, bits that noise can flip, and an ECN field. Cloning makes the copy that
/// a duplicating link delivers.
pub trait Packet: Clone {
    /// Bytes that it takes on the link.
    fn length(&self) -> ByteCount;

    /// Flips one bit; `draw` is uniform over 64 bits and picks it. A packet without bits stays as it is.
    fn flip_bit(&mut self, draw: u64);

    /// Called on the copy that a duplicating link makes.
    fn mark_duplicate(&mut self) {}

    /// True if a queue may mark it instead of dropping it (RFC 3168: ECT(0) or ECT(1)).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Sets Congestion Experienced (RFC 3168). Only called on packets that are ECN-capable.
    fn mark_congestion_experienced(&mut self) {}
}

impl Packet for Bytes {
    fn length(&self) -> ByteCount {
        ByteCount::from(self.len())
    }

    fn flip_bit(&mut self, draw: u64) {
        let mut copy = BytesMut::from(&self[..]);
        flip_bit_of(&mut copy, draw);
        *self = copy.freeze();
    }
}

/// Flips the bit of `bytes` that `draw`, uniform over 64 bits, picks uniformly.
pub fn flip_bit_of(bytes: &mut [u8], draw: u64) {
    let bits = bytes.len() as u64 * 8;
    let bit = ((u128::from(draw) * u128::from(bits)) >> 64) as usize;
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}
