//! Connection IDs: those that name this end ([`LocalIds`]) and those that name the peer ([`RemoteIds`])
//! (RFC 9000 section 5.1).

use std::collections::VecDeque;

use posthaste_units::Time;
use posthaste_wire::frame::NewConnectionId;
use posthaste_wire::{ConnectionId, Frame, ResetToken};

use crate::error::{PeerError, TransportErrorCode};
use crate::limits;
use crate::limits::rate_cap::RateCap;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// Length of the connection IDs that this end chooses, in bytes.
// spec: rfc9000 10.3.2 id-length-known, 19.15 not-without-ids
pub(crate) const LOCAL_ID_LEN: usize = 8;

/// A connection ID with its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Issued {
    sequence: u64,
    id: ConnectionId,
    reset_token: Option<ResetToken>,
}

/// An ID of this end's, as the peer was told of it.
#[derive(Debug, Clone, Copy)]
struct Named {
    issued: Issued,
    /// Its frame asks for the retirement of the IDs below this. A copy of the frame says the same as the first one:
    /// the ID itself may have been retired since, and then there would be no other to go on with.
    retire_prior_to: u64,
}

/// The IDs that the peer may use to name this end.
pub(crate) struct LocalIds {
    active: Vec<Named>,
    next_sequence: u64,
    /// Sequence numbers whose `NEW_CONNECTION_ID` is to be sent (again).
    unsent: Vec<u64>,
    limit: u64,
    /// The peer is asked to retire the IDs below this.
    retire_prior_to: u64,
    /// The peer has not shown that it has any of the IDs that replace all it had.
    is_replacing: bool,
    /// Moves of this end for each of which the peer needs an ID that it has not used, less the IDs that it has
    /// retired since.
    claimed: u64,
    retirements: RateCap,
    /// IDs that the router must learn of or forget.
    changes: Vec<RouteChange>,
}

/// A change in the names that datagrams for a connection carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteChange {
    /// Datagrams to this ID are the connection's.
    Add(ConnectionId),
    /// They no longer are.
    Remove(ConnectionId),
}

impl LocalIds {
    /// The ID of the handshake has sequence number 0 (section 5.1.1).
    pub(crate) fn new(handshake_id: ConnectionId) -> Self {
        let issued = Issued { sequence: 0, id: handshake_id, reset_token: None };
        Self {
            active: vec![Named { issued, retire_prior_to: 0 }],
            next_sequence: 1,
            unsent: Vec::new(),
            limit: 1,
            retire_prior_to: 0,
            is_replacing: false,
            claimed: 0,
            retirements: storm_cap(),
            changes: Vec::new(),
        }
    }

    /// The ID that this end puts into long headers.
    pub(crate) fn handshake_id(&self) -> ConnectionId {
        self.active.first().map_or(ConnectionId::EMPTY, |named| named.issued.id)
    }

    /// The peer keeps this many IDs (its `active_connection_id_limit`).
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.limit = limit.min(limits::LOCAL_CONNECTION_IDS);
    }

    /// True if another ID should be issued.
    pub(crate) fn wants_more(&self) -> bool {
        // spec: rfc9000 5.1.1 within-peers-id-limit
        self.lasting() < self.limit
    }

    /// IDs that the peer has and is not asked to retire.
    fn lasting(&self) -> u64 {
        self.active.iter().filter(|named| named.issued.sequence >= self.retire_prior_to).count() as u64
    }

    /// True if this end may move to another address: by all that is known here, the peer has an ID left that it has
    /// not sent to. Without one it could not follow, nor even say so (section 9.5).
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.lasting() > 1 + self.claimed
    }

    /// This end moves: the peer will take an ID that it has not sent to, and retire another once it has followed.
    pub(crate) fn claim(&mut self) {
        self.claimed += 1;
    }

    /// The peer has had time enough to retire what it wants to retire.
    pub(crate) fn release_claims(&mut self) {
        self.claimed = 0;
    }

    /// The peer does not answer where this end is now, perhaps for want of an ID: it gets as many others as it keeps,
    /// and is to retire all that it has (sections 5.1.1 and 9.5). Until it has obeyed, that is not repeated for ever.
    pub(crate) fn replace_all(&mut self) {
        if self.active.len() as u64 + self.limit <= limits::UNRETIRED_IDS {
            self.retire_prior_to = self.next_sequence;
            self.is_replacing = true;
            self.claimed = 1;
        }
    }

    /// A probe is due: until the peer has IDs to answer by, nothing else can be of use to it.
    pub(crate) fn on_probe(&mut self) {
        if self.is_replacing {
            let lasting = self.active.iter().filter(|named| named.issued.sequence >= self.retire_prior_to);
            self.unsent = lasting.map(|named| named.issued.sequence).collect();
        }
    }

    /// A `NEW_CONNECTION_ID` was acknowledged.
    fn on_id_acked(&mut self, sequence: u64) {
        self.is_replacing &= sequence < self.retire_prior_to;
    }

    /// Issues an ID; its `NEW_CONNECTION_ID` is then to be sent.
    pub(crate) fn issue(&mut self, id: ConnectionId, reset_token: ResetToken) {
        let sequence = self.next_sequence;
        // spec: rfc9000 5.1.1 sequence-rises-by-one
        self.next_sequence += 1;
        let issued = Issued { sequence, id, reset_token: Some(reset_token) };
        self.active.push(Named { issued, retire_prior_to: self.retire_prior_to });
        self.unsent.push(sequence);
        self.changes.push(RouteChange::Add(id));
    }

    /// The peer uses an ID no longer (section 19.16). `packet_destination` is what its packet was sent to.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` if the ID was never issued, or is the one that the packet itself was sent to;
    /// `CONNECTION_ID_LIMIT_ERROR` for a storm: each retirement makes this end issue another.
    pub(crate) fn retire(
        &mut self,
        now: Time,
        sequence: u64,
        packet_destination: &ConnectionId,
    ) -> Result<(), PeerError> {
        let violation = |reason| PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        // spec: rfc9000 19.16 unissued-closes
        if sequence >= self.next_sequence {
            return Err(violation("retired a connection ID that was never issued"));
        }
        let Some(index) = self.active.iter().position(|named| named.issued.sequence == sequence) else {
            return Ok(());
        };
        // spec: rfc9000 19.16 not-the-one-in-use
        if self.active.get(index).is_some_and(|named| named.issued.id == *packet_destination) {
            return Err(violation("retired the connection ID that the packet was sent to"));
        }
        if !self.retirements.take(now) {
            return Err(storm());
        }
        let retired = self.active.remove(index).issued;
        self.unsent.retain(|unsent| *unsent != sequence);
        // What it was told to retire says nothing of what it has left.
        if sequence >= self.retire_prior_to {
            self.claimed = self.claimed.saturating_sub(1);
        }
        // spec: rfc9000 5.1.1 issued-ids-work
        self.changes.push(RouteChange::Remove(retired.id));
        Ok(())
    }

    /// The next `NEW_CONNECTION_ID` to send.
    fn next_unsent(&self) -> Option<NewConnectionId> {
        let sequence = *self.unsent.first()?;
        let Named { issued, retire_prior_to } =
            *self.active.iter().find(|named| named.issued.sequence == sequence)?;
        let reset_token = issued.reset_token?;
        // spec: rfc9000 19.15 retires-earlier-only
        Some(NewConnectionId { sequence, retire_prior_to, id: issued.id, reset_token })
    }

    /// The frame that [`Self::next_unsent`] gave has been sent.
    fn on_sent(&mut self) {
        if !self.unsent.is_empty() {
            self.unsent.remove(0);
        }
    }

    /// A `NEW_CONNECTION_ID` was lost: it is sent again unless the ID has been retired since.
    fn on_id_lost(&mut self, sequence: u64) {
        let is_active = self.active.iter().any(|named| named.issued.sequence == sequence);
        if is_active && !self.unsent.contains(&sequence) {
            self.unsent.push(sequence);
        }
    }

    /// What the router must change, in order.
    pub(crate) fn take_changes(&mut self) -> Vec<RouteChange> {
        std::mem::take(&mut self.changes)
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.active.shrink_to_fit();
        self.unsent.shrink_to_fit();
    }

    /// Every ID in use, for the router to forget at the end.
    pub(crate) fn all(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.active.iter().map(|named| named.issued.id)
    }
}

/// What bounds a peer that keeps either end busy with retiring IDs.
fn storm_cap() -> RateCap {
    RateCap::new(limits::RETIRED_IDS_BURST, limits::RETIRED_IDS_PER_SECOND)
}

fn storm() -> PeerError {
    PeerError::new(TransportErrorCode::CONNECTION_ID_LIMIT_ERROR, "a storm of retired connection IDs")
}

/// The IDs that this end may use to name the peer.
pub(crate) struct RemoteIds {
    active: Issued,
    /// IDs of paths that are not in use.
    lent: Vec<Issued>,
    /// Others have come into use, or their tokens have, since the router last asked.
    is_renewed: bool,
    retirements: RateCap,
    /// IDs in reserve, by ascending sequence number.
    spare: Vec<Issued>,
    retire_prior_to: u64,
    /// The sequence numbers retired last: a late copy of their `NEW_CONNECTION_ID` must not bring them back.
    retired: VecDeque<u64>,
    /// Sequence numbers whose `RETIRE_CONNECTION_ID` is to be sent (again).
    unsent_retirements: Vec<u64>,
    /// Retirements that the peer has not acknowledged, those to be sent included.
    pending_retirements: usize,
}

impl RemoteIds {
    /// The peer is named `id` until its handshake packets say otherwise.
    pub(crate) fn new(id: ConnectionId) -> Self {
        Self {
            active: Issued { sequence: 0, id, reset_token: None },
            lent: Vec::new(),
            is_renewed: false,
            retirements: storm_cap(),
            spare: Vec::new(),
            retire_prior_to: 0,
            retired: VecDeque::new(),
            unsent_retirements: Vec::new(),
            pending_retirements: 0,
        }
    }

    /// The ID that packets are sent to.
    pub(crate) fn current(&self) -> &ConnectionId {
        &self.active.id
    }

    /// The peer chose its handshake ID (section 7.2).
    pub(crate) fn set_handshake_id(&mut self, id: ConnectionId) {
        self.active.id = id;
    }

    /// The server's transport parameters carried a reset token for its handshake ID.
    pub(crate) fn set_handshake_token(&mut self, token: ResetToken) {
        if self.active.sequence == 0 {
            self.active.reset_token = Some(token);
            self.is_renewed = true;
        }
    }

    /// True if a datagram that ends with `token` is the peer's stateless reset. Only the tokens of IDs in use
    /// count: those of IDs not used yet or retired must not be checked (section 10.3.1).
    pub(crate) fn is_reset_token(&self, token: &[u8; 16]) -> bool {
        // spec: rfc9000 10.3.1 only-tokens-in-use, 10.3.1 comparison-tells-nothing
        // The tokens are compared in full whatever the outcome, so that timing tells nothing of them.
        let is_equal = |known: ResetToken| {
            let difference = known.0.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
            difference == 0
        };
        self.reset_tokens().fold(false, |any, known| any | is_equal(known))
    }

    /// The reset tokens of the IDs in use.
    pub(crate) fn reset_tokens(&self) -> impl Iterator<Item = ResetToken> + '_ {
        self.lent.iter().chain([&self.active]).filter_map(|issued| issued.reset_token)
    }

    /// True if [`Self::reset_tokens`] may give others than at the last call.
    pub(crate) fn take_renewal(&mut self) -> bool {
        std::mem::take(&mut self.is_renewed)
    }

    /// True if there is an ID that was never sent to.
    pub(crate) fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Takes an ID that was never sent to for a path that is not in use; its sequence number.
    pub(crate) fn lend(&mut self) -> Option<u64> {
        // spec: rfc9000 9.5 id-for-one-local-address, 9.5 id-for-one-remote-address
        if self.spare.is_empty() {
            return None;
        }
        let issued = self.spare.remove(0);
        self.lent.push(issued);
        self.is_renewed = true;
        Some(issued.sequence)
    }

    /// The ID that was lent under this number, unless the peer has had it retired since.
    pub(crate) fn lent(&self, sequence: u64) -> Option<ConnectionId> {
        self.lent.iter().find(|issued| issued.sequence == sequence).map(|issued| issued.id)
    }

    /// The path that this ID was lent to comes into use; the number of the ID that was in use and is lent to the old
    /// path now. `None` if the ID is gone: the one in use stays.
    pub(crate) fn activate(&mut self, sequence: u64) -> Option<u64> {
        let lent = self.lent.iter_mut().find(|issued| issued.sequence == sequence)?;
        let old = std::mem::replace(lent, self.active);
        self.active = old;
        Some(lent.sequence)
    }

    /// The path that this ID was lent to is forgotten: the ID is retired.
    pub(crate) fn give_back(&mut self, sequence: u64) {
        if let Some(index) = self.lent.iter().position(|issued| issued.sequence == sequence) {
            self.lent.remove(index);
            self.is_renewed = true;
            self.retire(sequence);
        }
    }

    /// The peer offers another ID (section 19.15).
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` for an ID that contradicts an earlier one or for a peer that chose to have none;
    /// `CONNECTION_ID_LIMIT_ERROR` for more than this end keeps, or for a storm of retirements.
    pub(crate) fn on_new(&mut self, now: Time, frame: &NewConnectionId) -> Result<(), PeerError> {
        let violation = |reason| PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let too_many = |reason| PeerError::new(TransportErrorCode::CONNECTION_ID_LIMIT_ERROR, reason);
        // spec: rfc9000 19.15 from-empty-id-closes
        if self.active.id.is_empty() {
            return Err(violation("a peer with an empty connection ID offers another"));
        }
        let offered = Issued { sequence: frame.sequence, id: frame.id, reset_token: Some(frame.reset_token) };
        let is_related = |known: &&Issued| known.sequence == offered.sequence || known.id == offered.id;
        let related = self.spare.iter().chain(&self.lent).chain([&self.active]).find(is_related).copied();
        // spec: rfc9000 19.15 repeats-tolerated
        if let Some(known) = related {
            if known.sequence != offered.sequence || known.id != offered.id {
                return Err(violation("two connection IDs with one sequence number, or one ID with two"));
            }
            if known.reset_token.is_some_and(|token| token != frame.reset_token) {
                return Err(violation("two reset tokens for one connection ID"));
            }
        } else if self.retired.contains(&offered.sequence) {
            // The peer has not heard yet that it is retired.
        } else if !self.retirements.take(now) {
            return Err(storm());
        } else if offered.sequence < self.retire_prior_to {
            // spec: rfc9000 19.15 late-id-retired
            self.retire(offered.sequence);
        } else {
            let index = self.spare.partition_point(|spare| spare.sequence < offered.sequence);
            self.spare.insert(index, offered);
        }
        self.retire_below(frame.retire_prior_to)?;
        // spec: rfc9000 5.1.1 excess-ids-close
        if (self.spare.len() + self.lent.len()) as u64 + 1 > limits::PEER_CONNECTION_IDS {
            return Err(too_many("more connection IDs than active_connection_id_limit"));
        }
        if self.pending_retirements > limits::PENDING_RETIREMENTS {
            return Err(too_many("too many connection IDs to retire"));
        }
        Ok(())
    }

    fn retire_below(&mut self, sequence: u64) -> Result<(), PeerError> {
        // spec: rfc9000 19.15 lower-retirement-void, 5.1.2 retirement-obeyed, 5.1.2 none-forgotten
        // spec: rfc9000 19.16 not-the-one-in-use
        self.retire_prior_to = self.retire_prior_to.max(sequence);
        while self.spare.first().is_some_and(|spare| spare.sequence < self.retire_prior_to) {
            let retired = self.spare.remove(0);
            self.retire(retired.sequence);
        }
        while let Some(old) = self.lent.iter().find(|lent| lent.sequence < self.retire_prior_to) {
            self.give_back(old.sequence);
        }
        if self.active.sequence < self.retire_prior_to {
            if self.spare.is_empty() {
                let reason = "asked to retire every connection ID";
                return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
            }
            let retired = std::mem::replace(&mut self.active, self.spare.remove(0));
            self.is_renewed = true;
            self.retire(retired.sequence);
        }
        Ok(())
    }

    fn retire(&mut self, sequence: u64) {
        if self.retired.len() >= limits::REMEMBERED_RETIREMENTS {
            self.retired.pop_front();
        }
        self.retired.push_back(sequence);
        // A frame that repeats an ID retired before (its packet was retransmitted) must not count again.
        if !self.unsent_retirements.contains(&sequence) {
            self.unsent_retirements.push(sequence);
            self.pending_retirements += 1;
        }
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.lent.shrink_to_fit();
        self.spare.shrink_to_fit();
        self.retired.shrink_to_fit();
        self.unsent_retirements.shrink_to_fit();
    }

    /// The next `RETIRE_CONNECTION_ID` to send.
    fn next_retirement(&self) -> Option<u64> {
        self.unsent_retirements.first().copied()
    }

    /// The frame that [`Self::next_retirement`] gave has been sent.
    fn on_retirement_sent(&mut self) {
        if !self.unsent_retirements.is_empty() {
            self.unsent_retirements.remove(0);
        }
    }

    /// A `RETIRE_CONNECTION_ID` was acknowledged.
    fn on_retirement_acked(&mut self) {
        self.pending_retirements = self.pending_retirements.saturating_sub(1);
    }

    /// A `RETIRE_CONNECTION_ID` was lost.
    fn on_retirement_lost(&mut self, sequence: u64) {
        if !self.unsent_retirements.contains(&sequence) {
            self.unsent_retirements.push(sequence);
        }
    }
}

impl FrameOwner for LocalIds {
    fn has_unsent(&self) -> bool {
        self.next_unsent().is_some()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        while let Some(new) = self.next_unsent() {
            let record = SentFrame::NewConnectionId(new.sequence);
            if !writer.push(&Frame::NewConnectionId(new), Some(record)) {
                break;
            }
            self.on_sent();
        }
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::NewConnectionId(sequence) = *frame else { return false };
        self.on_id_acked(sequence);
        true
    }

    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::NewConnectionId(sequence) = *frame else { return false };
        self.on_id_lost(sequence);
        true
    }
}

impl FrameOwner for RemoteIds {
    fn has_unsent(&self) -> bool {
        self.next_retirement().is_some()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        while let Some(sequence) = self.next_retirement() {
            let record = SentFrame::RetireConnectionId(sequence);
            if !writer.push(&Frame::RetireConnectionId(sequence), Some(record)) {
                break;
            }
            self.on_retirement_sent();
        }
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        let is_own = matches!(frame, SentFrame::RetireConnectionId(_));
        if is_own {
            self.on_retirement_acked();
        }
        is_own
    }

    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::RetireConnectionId(sequence) = *frame else { return false };
        self.on_retirement_lost(sequence);
        true
    }
}

#[cfg(test)]
mod tests;
