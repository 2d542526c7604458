//! Answers that need no connection: version negotiation (RFC 9000 section 6), stateless resets (section 10.3), Retry
//! and the refusal of a bad token (section 8.1.2).

use std::collections::VecDeque;

use posthaste_units::{Duration, Rng, Time};
use posthaste_wire::ResetToken;
use posthaste_wire::packet::{RawInvariants, version, write_version_negotiation};

use crate::datagram::{DatagramInfo, Transmit};

/// Answers that may wait to be sent: more would only help a flood.
const MAX_WAITING: usize = 32;

/// The smallest datagram that a reset may answer: a reset must be shorter than its trigger, so that two endpoints
/// do not reset each other for ever, and looks like a packet only from 21 bytes on (section 10.3.3).
const MIN_TRIGGER: usize = 22;

/// Longest reset sent: as long as a short packet with little in it.
const MAX_RESET: usize = 42;

/// Time for each reset on average (section 10.3.3 wants their rate bounded).
const RESET_INTERVAL: Duration = Duration::from_millis(1);

/// Resets that may follow one another without a pause: clients that a restarted server has lost come all at once.
const RESET_BURST: u64 = 100;

/// Answers that wait to be sent.
#[derive(Default)]
pub(crate) struct Stateless {
    waiting: VecDeque<(DatagramInfo, Vec<u8>)>,
    /// When the allowance of resets would be whole again.
    resets_paid_at: Time,
}

impl Stateless {
    /// Answers a client whose version is unknown with those that are known. False if too many answers wait.
    pub(crate) fn negotiate_version(
        &mut self,
        info: &DatagramInfo,
        to: &RawInvariants<'_>,
        random: u32,
    ) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        let mut datagram = Vec::new();
        // A reserved version keeps clients from taking the list for complete (section 6.3).
        let versions = [version::V1, version::V2, version::reserved(random)];
        // spec: rfc9000 17.2.1 source-echoed, 17.2.1 destination-echoed, 17.2.1 one-answer
        write_version_negotiation(&mut datagram, to.scid, to.dcid, &versions, random as u8);
        self.waiting.push_back((*info, datagram));
        true
    }

    /// Sends a datagram that was made elsewhere. False if too many answers wait.
    pub(crate) fn answer(&mut self, info: &DatagramInfo, datagram: Vec<u8>) -> bool {
        if self.waiting.len() >= MAX_WAITING {
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
        if self.waiting.len() >= MAX_WAITING || trigger_len < MIN_TRIGGER {
            return false;
        }
        if self.resets_paid_at.since(now) > RESET_INTERVAL * (RESET_BURST - 1) {
            return false;
        }
        self.resets_paid_at = self.resets_paid_at.max(now) + RESET_INTERVAL;
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
