//! The in-flight packets of one space, in order of packet number.
//!
//! Only in-flight packets have a slot, so packets of ACK alone and skipped numbers cost nothing however long the
//! oldest packet stays unacknowledged. A number is found by its distance from the front, where numbers are dense,
//! and by bisection where they are not. An acknowledged packet leaves an empty slot until all before it are gone;
//! runs of empty slots are jumped over, so an ACK frame that repeats old ranges costs no more than its ranges.

use std::collections::VecDeque;

use posthaste_units::ByteCount;

use super::Repeat;
use crate::control::rate_sample::Stamp;
use crate::packet::sent_frame::{SentFrame, SentFrames};

/// An in-flight packet.
#[derive(Debug)]
pub(super) struct SentPacket {
    pub(super) number: u64,
    pub(super) bytes: ByteCount,
    pub(super) stamp: Stamp,
    pub(super) ack_eliciting: bool,
    pub(super) ecn_marked: bool,
    /// The path that it was sent on.
    pub(super) path: u32,
    /// True once a probe timeout or a copy has had its frames sent again: its loss is no news to their owners.
    pub(super) requeued: bool,
    pub(super) repeat: Repeat,
    pub(super) frames: SentFrames,
}

impl SentPacket {
    /// True if it tries a size: its loss says nothing of congestion (RFC 9000 section 14.4).
    pub(super) fn is_mtu_probe(&self) -> bool {
        self.frames.iter().any(|frame| matches!(frame, SentFrame::MtuProbe { .. }))
    }
}

#[derive(Debug)]
enum Slot {
    Outstanding(SentPacket),
    /// Acknowledged; the next outstanding packet is at least `skip` slots on.
    Acked {
        number: u64,
        skip: usize,
    },
}

impl Slot {
    fn number(&self) -> u64 {
        match self {
            Self::Outstanding(packet) => packet.number,
            Self::Acked { number, .. } => *number,
        }
    }
}

/// What stands at the front of [`SentPackets`].
pub(super) enum Front<'a> {
    /// The oldest outstanding packet.
    Outstanding(&'a SentPacket),
    /// A packet that has been acknowledged.
    Acked,
}

/// The in-flight packets of one space.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    slots: VecDeque<Slot>,
    ack_eliciting: usize,
    /// Empty slots looked at, for the test of what hostile acks cost.
    #[cfg(test)]
    steps: usize,
}

impl SentPackets {
    pub(super) const NONE: Self = Self {
        slots: VecDeque::new(),
        ack_eliciting: 0,
        #[cfg(test)]
        steps: 0,
    };

    /// Appends a packet, whose number is above all before it.
    pub(super) fn push(&mut self, packet: SentPacket) {
        self.ack_eliciting += usize::from(packet.ack_eliciting);
        self.slots.push_back(Slot::Outstanding(packet));
    }

    /// Gives back room that is not in use.
    pub(super) fn shrink(&mut self) {
        self.slots.shrink_to_fit();
    }

    /// True if an ack-eliciting packet is outstanding.
    pub(super) fn has_ack_eliciting(&self) -> bool {
        self.ack_eliciting > 0
    }

    /// Bytes of the outstanding packets.
    pub(super) fn bytes(&self) -> ByteCount {
        self.iter().map(|packet| packet.bytes).sum()
    }

    /// The outstanding packets, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SentPacket> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Outstanding(packet) => Some(packet),
            Slot::Acked { .. } => None,
        })
    }

    /// The outstanding packets, oldest first.
    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut SentPacket> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Outstanding(packet) => Some(packet),
            Slot::Acked { .. } => None,
        })
    }

    /// What stands at the front, if anything does.
    pub(super) fn front(&self) -> Option<Front<'_>> {
        self.slots.front().map(|slot| match slot {
            Slot::Outstanding(packet) => Front::Outstanding(packet),
            Slot::Acked { .. } => Front::Acked,
        })
    }

    /// Removes the slot at the front; the packet, if it was outstanding.
    pub(super) fn pop_front(&mut self) -> Option<SentPacket> {
        match self.slots.pop_front()? {
            Slot::Outstanding(packet) => {
                self.ack_eliciting -= usize::from(packet.ack_eliciting);
                Some(packet)
            }
            Slot::Acked { .. } => None,
        }
    }

    /// Takes the outstanding packets numbered `first..=last` out, in ascending order.
    pub(super) fn take_range(&mut self, first: u64, last: u64, mut taken: impl FnMut(SentPacket)) {
        let mut index = self.position(first);
        loop {
            index = self.next_outstanding(index);
            let Some(slot) = self.slots.get_mut(index) else { return };
            let number = slot.number();
            if number > last {
                return;
            }
            if let Slot::Outstanding(packet) = std::mem::replace(slot, Slot::Acked { number, skip: 1 }) {
                self.ack_eliciting -= usize::from(packet.ack_eliciting);
                taken(packet);
            }
            index += 1;
        }
    }

    /// Index of the first slot whose number is at least `number`.
    fn position(&self, number: u64) -> usize {
        let Some(front) = self.slots.front() else { return 0 };
        let Some(distance) = number.checked_sub(front.number()) else { return 0 };
        // Numbers ascend by at least one a slot: the slot can only lie at this distance or before it.
        let guess = usize::try_from(distance).unwrap_or(usize::MAX);
        if self.slots.get(guess).is_some_and(|slot| slot.number() == number) {
            return guess;
        }
        self.slots.partition_point(|slot| slot.number() < number)
    }

    /// Index of the first outstanding slot from `index` on, or the length. Shortens the jumps that it takes, so that
    /// a run of empty slots is walked once.
    fn next_outstanding(&mut self, index: usize) -> usize {
        let mut end = index;
        while let Some(Slot::Acked { skip, .. }) = self.slots.get(end) {
            end += skip;
            #[cfg(test)]
            {
                self.steps += 1;
            }
        }
        let mut at = index;
        while let Some(Slot::Acked { skip, .. }) = self.slots.get_mut(at) {
            let next = at + *skip;
            *skip = end - at;
            at = next;
        }
        end
    }
}

#[cfg(test)]
mod tests;
