//! One budget of memory for all files that are being sent.
//!
//! It counts bytes that have been read and that the transport has not taken yet. How much a response may read at once
//! depends on what is free: clients that do not read leave less for each further one, and where nothing is left,
//! responses read pieces. What the transport has taken counts there (`TransportConfig::send_budget`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes read at once while there is room.
pub(super) const CHUNK: u64 = 256 * 1024;

/// Bytes read at once where there is none: what each response holds at most beyond the budget.
pub(super) const PIECE: u64 = 8 * 1024;

/// Bytes that all files of one [`StaticFiles`](super::StaticFiles) hold, but for one [`PIECE`] each.
pub(super) const TOTAL: u64 = 32 * 1024 * 1024;

/// A response takes one part in so many of what is free, so that the first ones leave something for the next.
const PARTS: u64 = 64;

/// The budget. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadBudget(Arc<AtomicU64>);

impl ReadBudget {
    /// Room for `wanted` bytes, or for as many as a response may read now: at most [`CHUNK`], at least [`PIECE`] if
    /// that much is wanted.
    pub(super) fn take(&self, wanted: u64) -> Held {
        let free = TOTAL.saturating_sub(self.0.load(Ordering::Relaxed));
        let share = (free / PARTS / PIECE * PIECE).clamp(PIECE, CHUNK);
        let bytes = wanted.min(share);
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Held { budget: self.clone(), bytes }
    }

    /// True if so much is free that responses may read before the transport asks.
    pub(super) fn permits_reading_ahead(&self) -> bool {
        self.0.load(Ordering::Relaxed) < TOTAL / 2
    }
}

/// Bytes taken of the budget; dropped, they are given back.
#[derive(Debug)]
pub(super) struct Held {
    budget: ReadBudget,
    bytes: u64,
}

impl Held {
    /// How many they are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_shrink_to_pieces_and_all_is_given_back() {
        let budget = ReadBudget::default();
        let held: Vec<_> = (0..5_000).map(|_| budget.take(u64::MAX)).collect();
        assert_eq!(held[0].bytes(), CHUNK);
        assert!(held.windows(2).all(|pair| pair[0].bytes() >= pair[1].bytes()));
        assert_eq!(held[4_999].bytes(), PIECE);
        let all: u64 = held.iter().map(Held::bytes).sum();
        assert!(all <= TOTAL + 5_000 * PIECE, "{all}");
        assert!(!budget.permits_reading_ahead());
        assert_eq!(budget.take(100).bytes(), 100, "less than a piece");
        drop(held);
        assert_eq!((budget.0.load(Ordering::Relaxed), budget.take(CHUNK).bytes()), (0, CHUNK));
    }
}
