//! Explicit congestion notification: marking and the validation of what the peer reports
//! (RFC 9000 sections 13.4.2 and A.4).

use posthaste_wire::frame::EcnCounts;

use crate::packet::space::{PacketSpace, PerSpace};

/// The ECN field of an IP packet that takes part (RFC 3168 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// ECT(0), what this transport sends.
    Ect0,
    /// ECT(1), of L4S senders.
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// Packets marked before the peer has reported any (RFC 9000 section A.4).
const TESTING_PACKETS: u64 = 10;

/// Where the validation of ECN on a path stands (RFC 9000 section 13.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnState {
    /// The first packets are marked to see what becomes of them.
    #[default]
    Testing,
    /// Enough have been marked; none is until the peer reports those.
    Unknown,
    /// Marks arrive and are reported.
    Capable,
    /// The path or the peer gets marks wrong: no packet is marked any more.
    Failed,
}

/// What one space's acks have reported and what was sent in it.
#[derive(Debug, Default)]
struct Counts {
    sent_marked: u64,
    reported: EcnCounts,
}

/// The validation of one path.
#[derive(Debug)]
pub(crate) struct EcnValidation {
    state: EcnState,
    spaces: PerSpace<Counts>,
    sent: u64,
    lost: u64,
}

impl EcnValidation {
    /// Validation at its start.
    pub(crate) fn new() -> Self {
        Self { state: EcnState::Testing, spaces: PerSpace::default(), sent: 0, lost: 0 }
    }

    /// Begins anew on another path (RFC 9000 section 13.4.2). The peer's counts are the connection's, so they go on
    /// from where they were on the path `before`.
    pub(crate) fn begin_after(&mut self, before: &mut Self) {
        let Self { spaces, .. } = std::mem::replace(before, Self::new());
        *self = Self { spaces, ..Self::new() };
    }

    /// Where validation stands.
    pub(crate) fn state(&self) -> EcnState {
        self.state
    }

    /// How the next packet is to be marked.
    pub(crate) fn codepoint(&self) -> Option<EcnCodepoint> {
        // spec: rfc9000 13.4.2.2 failure-disables, 13.4.2.2 later-failure-disables
        matches!(self.state, EcnState::Testing | EcnState::Capable).then_some(EcnCodepoint::Ect0)
    }

    /// A marked packet has been sent.
    pub(crate) fn on_sent(&mut self, space: PacketSpace) {
        self.spaces[space].sent_marked += 1;
        self.sent += 1;
        if self.state == EcnState::Testing && self.sent >= TESTING_PACKETS {
            self.state = EcnState::Unknown;
        }
    }

    /// So many marked packets have been declared lost.
    pub(crate) fn on_lost(&mut self, packets: u64) {
        self.lost += packets;
        // All that were marked are lost: the path may drop marked packets (section 13.4.2.1). A path that has
        // delivered some does not.
        if self.state == EcnState::Unknown && self.lost >= self.sent {
            self.state = EcnState::Failed;
        }
    }

    /// Packets of a space are forgotten with its keys, so its counts are of no further use.
    pub(crate) fn on_space_discarded(&mut self, space: PacketSpace) {
        self.spaces[space] = Counts::default();
    }

    /// An ACK frame that raises the largest acknowledged number has newly acknowledged `marked` marked packets and
    /// carries `counts`. Returns how many more packets it reports as CE.
    ///
    /// Frames that do not raise it may be out of order and must not be given here (section 13.4.2.1).
    pub(crate) fn on_ack(&mut self, space: PacketSpace, marked: u64, counts: Option<EcnCounts>) -> u64 {
        if self.state == EcnState::Failed {
            return 0;
        }
        let Some(counts) = counts else {
            if marked > 0 {
                self.state = EcnState::Failed;
            }
            return 0;
        };
        let Counts { sent_marked, reported } = &mut self.spaces[space];
        let (Some(ect0), Some(ect1), Some(ce)) = (
            counts.ect0.checked_sub(reported.ect0),
            counts.ect1.checked_sub(reported.ect1),
            counts.ce.checked_sub(reported.ce),
        ) else {
            self.state = EcnState::Failed;
            return 0;
        };
        let accounted = ect0.saturating_add(ce) >= marked;
        // ECT(1) is never sent, and no more marks can arrive than were sent.
        let possible = ect1 == 0 && counts.ect0.saturating_add(counts.ce) <= *sent_marked;
        if !accounted || !possible {
            self.state = EcnState::Failed;
            return 0;
        }
        *reported = counts;
        if marked > 0 {
            self.state = EcnState::Capable;
        }
        ce
    }
}

#[cfg(test)]
mod tests;
