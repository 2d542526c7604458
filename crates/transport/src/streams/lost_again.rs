//! What of a stream is lost for the second time: it leaves twice.
//!
//! Each further loss costs a round trip, and at the end of a transfer the whole waits for the packet that had most of
//! them. Of packets lost with probability p only p^2 are lost twice, so a second copy of these costs next to nothing.

use super::ranges::RangeSet;

/// The share of a stream's bytes that copies may take, as numerator and denominator.
pub(super) type Share = (u32, u32);

/// Ranges of one stream that were lost, and copies of those that were lost again.
#[derive(Debug, Default)]
pub(super) struct LostAgain {
    /// Not acknowledged, and lost at least once.
    before: RangeSet,
    /// To be sent once more than other lost data.
    copies: RangeSet,
    /// Bytes of copies so far.
    copied: u64,
}

impl LostAgain {
    /// `start..end`, of which nothing has been acknowledged, was lost. Copies take at most `share` of the `sent` bytes of
    /// the stream.
    pub(super) fn lost(&mut self, start: u64, end: u64, sent: u64, (numerator, denominator): Share) {
        let most = sent / u64::from(denominator.max(1)) * u64::from(numerator);
        for (low, high) in self.before.overlapping(start, end) {
            let (low, high) = (low.max(start), high.min(end));
            if self.copied + (high - low) <= most {
                self.copied += high - low;
                self.copies.insert(low, high);
            }
        }
        self.before.insert(start, end);
    }

    /// The lowest range of which a copy is to be sent.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.copies.first()
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// True if nothing is kept of any loss.
    pub(super) fn is_blank(&self) -> bool {
        self.before.is_empty() && self.copies.is_empty() && self.copied == 0
    }

    /// A copy of `start..end` has been written into a packet.
    pub(super) fn sent(&mut self, start: u64, end: u64) {
        self.copies.remove(start, end);
    }

    /// `start..end` has arrived.
    pub(super) fn acked(&mut self, start: u64, end: u64) {
        if !self.before.is_empty() {
            self.before.remove(start, end);
            self.copies.remove(start, end);
        }
    }
}
