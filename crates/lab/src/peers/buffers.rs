//! Memory of the datagrams that are under way.

use bytes::BytesMut;

/// Bytes of one allocation: about a dozen datagrams. A host that has sent anything keeps one.
const BLOCK: usize = 16 << 10;

/// Makes datagrams that share allocations: one for each would cost more than their copies.
#[derive(Debug, Default)]
pub(super) struct Buffers(BytesMut);

impl Buffers {
    /// A datagram of its own with these bytes.
    pub(super) fn datagram(&mut self, bytes: &[u8]) -> BytesMut {
        if self.0.capacity() < bytes.len() {
            // The same block again, if all that were in it are gone.
            self.0.reserve(bytes.len().max(BLOCK));
        }
        self.0.extend_from_slice(bytes);
        self.0.split()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_share_memory_and_no_bytes() {
        let mut buffers = Buffers::default();
        let sizes = [1_200, 1, 0, 9_000, 9_000, 70_000, 40];
        let mut all: Vec<BytesMut> =
            sizes.iter().zip(1..).map(|(&size, fill)| buffers.datagram(&vec![fill; size])).collect();
        all[3].fill(77);
        for (index, (datagram, size)) in all.iter().zip(sizes).enumerate() {
            let fill = if index == 3 { 77 } else { index as u8 + 1 };
            assert_eq!(datagram[..], vec![fill; size]);
        }
        assert_eq!(all[0].as_ptr().wrapping_add(1_200), all[1].as_ptr(), "one allocation");
    }
}
