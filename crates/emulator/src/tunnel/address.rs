//! Which addresses a tunnel takes: one inside the other, so that nested ones need no routes of their own.
//!
//! All are from 198.18.0.0/15, which is set aside for tests of network equipment (RFC 2544 section 12.1.1). A tunnel
//! owns a block. Its two ends are the first two addresses; the rest is for the tunnels that commands inside it
//! start. Both ends' prefix is the whole block, which makes the kernel send all of it their way.

use std::net::Ipv4Addr;

/// The pool of tunnels that are not nested.
const POOL: Block = Block { first: u32::from_be_bytes([198, 18, 0, 0]), prefix: 15 };

/// The prefixes of blocks by depth.
const PREFIXES: [u8; 4] = [20, 24, 28, 30];

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    first: u32,
    /// Bits that all its addresses share.
    prefix: u8,
}

impl Block {
    /// The end in the namespace that the tunnel leads to.
    pub(super) fn far(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first + 1)
    }

    /// The end in the namespace that the tunnel is for.
    pub(super) fn near(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first + 2)
    }

    pub(super) fn prefix(self) -> u8 {
        self.prefix
    }

    /// The block that has `near` as its near end.
    pub(super) fn of_near_end(near: Ipv4Addr, prefix: u8) -> Option<Self> {
        let first = near.to_bits().checked_sub(2)?;
        let is_ours = first >> (32 - POOL.prefix) == POOL.first >> (32 - POOL.prefix);
        let is_aligned = first.trailing_zeros() >= u32::from(32u8.checked_sub(prefix)?);
        (is_ours && is_aligned && PREFIXES.contains(&prefix)).then_some(Self { first, prefix })
    }
}

/// The blocks that a tunnel may take in a namespace which itself is inside `around`.
pub(super) fn candidates(around: Option<Block>) -> Vec<Block> {
    let pool = around.unwrap_or(POOL);
    let Some(prefix) = PREFIXES.into_iter().find(|&prefix| prefix > pool.prefix) else { return Vec::new() };
    let count = 1u32 << (prefix - pool.prefix);
    // The first of a block's parts has its own ends.
    let skipped = u32::from(around.is_some());
    (skipped..count).map(|index| Block { first: pool.first + (index << (32 - prefix)), prefix }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_side_by_side_and_nested_never_share_an_address() {
        let outer = candidates(None);
        assert_eq!(outer.len(), 32);
        assert_eq!((outer[0].far(), outer[1].near()), ([198, 18, 0, 1].into(), [198, 18, 16, 2].into()));
        let nested = candidates(Some(outer[1]));
        assert_eq!(nested.len(), 15);
        assert_eq!((nested[0].far(), nested[0].prefix()), ([198, 18, 17, 1].into(), 24));
        let deepest = candidates(Some(candidates(Some(nested[3]))[2]));
        assert_eq!((deepest.len(), deepest[0].prefix()), (3, 30));
        assert!(candidates(Some(deepest[0])).is_empty(), "there is a depth at which it ends");
    }

    #[test]
    fn a_block_is_found_by_its_near_end() {
        let block = candidates(Some(candidates(None)[7]))[4];
        assert_eq!(Block::of_near_end(block.near(), block.prefix()), Some(block));
        for (address, prefix) in
            [([198, 18, 0, 1], 20), ([10, 0, 0, 2], 20), ([198, 18, 0, 2], 19), ([198, 18, 0, 2], 33)]
        {
            assert_eq!(Block::of_near_end(address.into(), prefix), None);
        }
        assert_eq!(Block::of_near_end(Ipv4Addr::UNSPECIFIED, 20), None);
    }
}
