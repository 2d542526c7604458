//! What has become of a direction's packets.

use posthaste_units::ByteCount;

/// What has become of the packets so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Packets handed in.
    pub offered: u64,
    /// Packets handed out, copies included.
    pub delivered: u64,
    /// Bytes handed out, copies included.
    pub delivered_bytes: u64,
    /// Packets that the medium lost.
    pub lost: u64,
    /// Packets that a full queue, or a direction at its capacity, dropped.
    pub overflowed: u64,
    /// Packets that active queue management (`CoDel`) dropped.
    pub managed: u64,
    /// Packets that a queue gave a Congestion Experienced mark.
    pub marked: u64,
    /// Packets that were given a copy.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets that were held back to be overtaken.
    pub reordered: u64,
    /// The most bytes that have ever waited in the queue, headers included.
    pub peak_queue_bytes: ByteCount,
}

impl PathStats {
    /// What was counted after `earlier`; the peak is that since the start.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            offered: self.offered - earlier.offered,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            lost: self.lost - earlier.lost,
            overflowed: self.overflowed - earlier.overflowed,
            managed: self.managed - earlier.managed,
            marked: self.marked - earlier.marked,
            duplicated: self.duplicated - earlier.duplicated,
            corrupted: self.corrupted - earlier.corrupted,
            reordered: self.reordered - earlier.reordered,
            peak_queue_bytes: self.peak_queue_bytes,
        }
    }
}

impl std::ops::AddAssign for PathStats {
    /// Adds counts; of peaks it keeps the higher one.
    fn add_assign(&mut self, other: Self) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.delivered_bytes += other.delivered_bytes;
        self.lost += other.lost;
        self.overflowed += other.overflowed;
        self.managed += other.managed;
        self.marked += other.marked;
        self.duplicated += other.duplicated;
        self.corrupted += other.corrupted;
        self.reordered += other.reordered;
        self.peak_queue_bytes = self.peak_queue_bytes.max(other.peak_queue_bytes);
    }
}
