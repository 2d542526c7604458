//! Answers that need no connection: version negotiation (RFC 9000 section 6), stateless resets (section 10.3), Retry
//! and the refusal of a bad token (section 8.1.2).

use std::collections::VecDeque;

use posthaste_units::{Rng, Time};
use posthaste_wire::ResetToken;
use posthaste_wire::packet::{RawInvariants, version, write_version_negotiation};

use crate::limits;
use crate::limits::rate_cap::RateCap;
use crate::packet::datagram::{DatagramInfo, Transmit};

/// Longest reset sent: as long as a short packet with little in it.
const MAX_RESET: usize = 42;

/// Answers that wait to be sent.
pub(crate) struct Stateless {
    waiting: VecDeque<(DatagramInfo, Vec<u8>)>,
    resets: RateCap,
    negotiations: RateCap,
}

impl Default for Stateless {
    fn default() -> Self {
        let cap = || RateCap::new(limits::STATELESS_BURST, limits::STATELESS_PER_SECOND);
        Self { waiting: VecDeque::new(), resets: cap(), negotiations: cap() }
    }
}

impl Stateless {
    /// Answers a client whose version is unknown with those that are known. False if too many answers wait or have been
    /// given lately.
    pub(crate) fn negotiate_version(
        &mut self,
        now: Time,
        info: &DatagramInfo,
        to: &RawInvariants<'_>,
        random: u32,
    ) -> bool {
        if self.waiting.len() >= limits::WAITING_ANSWERS || !self.negotiations.take(now) {
            return false;
        }
        let mut datagram = Vec::new();
        // A reserved version keeps clients from taking the list for complete (section 6.3).
        // spec: rfc9368 2.1 offered-listed
        let versions = [version::V1, version::V2, version::reserved(random)];
        // spec: rfc9000 17.2.1 source-echoed, 17.2.1 destination-echoed, 17.2.1 one-answer
        write_version_negotiation(&mut datagram, to.scid, to.dcid, &versions, random as u8);
        self.waiting.push_back((*info, datagram));
        true
    }

    /// Sends a datagram that was made elsewhere. False if too many answers wait.
    pub(crate) fn answer(&mut self, info: &DatagramInfo, datagram: Vec<u8>) -> bool {
        if self.waiting.len() >= limits::WAITING_ANSWERS {
            return false;
        }
        self.waiting.push_back((*info, datagram));
        true
    }

    /// Answers a datagram of `trigger_len` bytes for an unknown connection. False if that would do harm. The token,
    /// which costs more than all the rest, is made only for an answer that leaves.
    pub(crate) fn reset(
        &mut self,
        now: Time,
        info: &DatagramInfo,
        trigger_len: usize,
        token: impl FnOnce() -> ResetToken,
        rng: &mut Rng,
    ) -> bool {
        if self.waiting.len() >= limits::WAITING_ANSWERS || trigger_len < limits::LEAST_RESET_TRIGGER {
            return false;
        }
        if !self.resets.take(now) {
            return false;
        }
        let token = token();
        // spec: rfc9000 10.3 reset-not-amplified, 10.3.3 reset-shrinks
        let len = (trigger_len - 1).min(MAX_RESET);
        let mut datagram = vec![0; len - token.0.len()];
        rng.fill(&mut datagram);
        if let Some(first) = datagram.first_mut() {
            // spec: rfc9000 10.3 reset-looks-short
            *first = 0x40 | (*first & 0x3f); // A short header's form and fixed bits.
        }
        datagram.extend_from_slice(&token.0);
        self.waiting.push_back((*info, datagram));
        true
    }

    /// The next answer, appended to `buffer`.
    pub(crate) fn poll(&mut self, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let (info, datagram) = self.waiting.pop_front()?;
        buffer.extend_from_slice(&datagram);
        let size = datagram.len();
        Some(Transmit { remote: info.remote, local_ip: info.local_ip, ecn: None, size, segment_size: None })
    }
}
