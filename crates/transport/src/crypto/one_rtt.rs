//! 1-RTT keys and their update (RFC 9001 section 6).

use posthaste_units::Time;
use rustls::quic::{HeaderProtectionKey, KeyChange, PacketKey, PacketKeySet, Secrets};

use super::KeyLimits;
use super::{SealError, seal};
use crate::error::{PeerError, TransportErrorCode};

/// Packets sent in a phase after which the keys of the next are derived, away from receiving. Connections that are idle
/// after a request or two need no memory for them.
const SENT_BEFORE_NEXT: u64 = 64;

/// The keys of the 1-RTT space through all their phases.
pub(crate) struct OneRttKeys {
    local_header: Box<dyn HeaderProtectionKey>,
    remote_header: Box<dyn HeaderProtectionKey>,
    current: PacketKeySet,
    /// The phase to come, once it is derived: after [`SENT_BEFORE_NEXT`] packets, or by the first packet that is not
    /// opened with the current key. Such a packet costs an attempt to open it and this derivation, whether its phase bit
    /// made this end try the next key or the current one did not fit: time says nothing of the bit (section 6.3).
    next: Option<PacketKeySet>,
    previous: Option<PreviousKey>,
    secrets: Secrets,
    phase: bool,
    /// First packet number sent in the current phase, once one was sent.
    first_sent: Option<u64>,
    /// Least packet number received in the current phase, once one was received.
    first_received: Option<u64>,
    /// True once a packet of the current phase was acknowledged, which permits the next update (section 6.1).
    is_acknowledged: bool,
    /// True once this end has acknowledged a packet of the current phase: the peer may then update again.
    has_confirmed: bool,
    sealed: u64,
    forged: u64,
    updates: u64,
    /// Lower limits than the cipher's, perhaps.
    limits: KeyLimits,
}

/// The phase before the current one, for packets that were under way during the update.
struct PreviousKey {
    key: Box<dyn PacketKey>,
    /// Set when the first packet of the current phase arrives.
    expires: Option<Time>,
}

/// Which key opens a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenWith {
    /// The current phase's.
    Current,
    /// The phase before.
    Previous,
    /// The phase to come: the peer has updated its keys.
    Next,
}

impl OneRttKeys {
    /// The keys that the handshake yielded, or `None` if `change` is not the step to 1-RTT keys.
    pub(crate) fn new(change: KeyChange, limits: KeyLimits) -> Option<Self> {
        let KeyChange::OneRtt { keys, next: secrets } = change else { return None };
        Some(Self {
            local_header: keys.local.header,
            remote_header: keys.remote.header,
            current: PacketKeySet { local: keys.local.packet, remote: keys.remote.packet },
            next: None,
            previous: None,
            secrets,
            phase: false,
            first_sent: None,
            first_received: None,
            is_acknowledged: false,
            has_confirmed: false,
            sealed: 0,
            forged: 0,
            updates: 0,
            limits,
        })
    }

    /// The key phase bit of packets sent now.
    pub(crate) fn phase(&self) -> bool {
        self.phase
    }

    /// Key updates so far, by either end.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// The key that protects headers of packets received; it never changes.
    pub(crate) fn remote_header(&self) -> &dyn HeaderProtectionKey {
        &*self.remote_header
    }

    /// Seals a packet in place; see [`seal`].
    ///
    /// # Errors
    /// If the key has reached its confidentiality limit (section 6.6).
    pub(crate) fn seal(
        &mut self,
        packet: &mut [u8],
        number_at: usize,
        header_len: usize,
        number: u64,
    ) -> Result<(), SealError> {
        // spec: rfc9001 6.6 sealed-counted, 6.6 used-up-key-rests
        if self.sealed >= self.confidentiality_limit() {
            return Err(SealError);
        }
        self.first_sent.get_or_insert(number);
        self.sealed += 1;
        if self.sealed == SENT_BEFORE_NEXT {
            self.derive_next();
        }
        seal(packet, number_at, header_len, number, &*self.local_header, &*self.current.local)
    }

    /// Which key the packet with this phase bit and number needs (section 6.3).
    pub(crate) fn choose(&self, phase: bool, number: u64) -> OpenWith {
        if phase == self.phase {
            return OpenWith::Current;
        }
        // spec: rfc9001 5.5 later-packets-by-newer-keys, 6.4 old-after-new-closes
        let is_older = self.first_received.is_none_or(|first| number < first);
        if is_older && self.previous.is_some() { OpenWith::Previous } else { OpenWith::Next }
    }

    /// The chosen key; `None` if it has been discarded.
    pub(crate) fn open_key(&mut self, which: OpenWith) -> Option<&dyn PacketKey> {
        match which {
            OpenWith::Current => Some(&*self.current.remote),
            OpenWith::Next => Some(&*self.derive_next().remote),
            OpenWith::Previous => self.previous.as_ref().map(|previous| &*previous.key),
        }
    }

    /// A packet was opened: follows the peer's key update, and times the previous key out after `discard_at`.
    ///
    /// # Errors
    /// `KEY_UPDATE_ERROR` if the peer updates again before this end has acknowledged the last update (section 6.2).
    pub(crate) fn on_opened(
        &mut self,
        which: OpenWith,
        number: u64,
        discard_at: Time,
    ) -> Result<(), PeerError> {
        match which {
            OpenWith::Previous => return Ok(()),
            OpenWith::Current => {}
            OpenWith::Next => {
                if self.updates > 0 && !self.has_confirmed {
                    let reason = "keys updated again before the last update was acknowledged";
                    return Err(PeerError::new(TransportErrorCode::KEY_UPDATE_ERROR, reason));
                }
                // spec: rfc9001 6.2 send-keys-follow, 6.2 followed-before-ack
                self.rotate();
            }
        }
        let first = self.first_received.get_or_insert(number);
        *first = (*first).min(number);
        if let Some(previous) = &mut self.previous {
            previous.expires.get_or_insert(discard_at);
        }
        Ok(())
    }

    /// A packet could not be opened. True once the AEAD's integrity limit is reached (section 6.6).
    pub(crate) fn on_forged(&mut self) -> bool {
        // spec: rfc9001 6.3 no-timing-signal
        self.derive_next();
        // spec: rfc9001 6.6 forged-counted
        self.forged += 1;
        self.forged >= self.current.remote.integrity_limit().min(self.limits.forged)
    }

    /// Packets up to `largest` have been acknowledged.
    pub(crate) fn on_acked(&mut self, largest: u64) {
        self.is_acknowledged |= self.first_sent.is_some_and(|first| largest >= first);
    }

    /// An ACK frame leaves that acknowledges packets up to `largest`.
    pub(crate) fn on_ack_sent(&mut self, largest: u64) {
        self.has_confirmed |= self.first_received.is_some_and(|first| largest >= first);
    }

    /// Drops the previous phase's key once its time is over.
    pub(crate) fn on_time(&mut self, now: Time) {
        self.previous.take_if(|previous| previous.expires.is_some_and(|expires| expires <= now));
    }

    /// When [`Self::on_time`] has something to drop.
    pub(crate) fn old_key_expires(&self) -> Option<Time> {
        self.previous.as_ref().and_then(|previous| previous.expires)
    }

    /// True if this end may begin an update: the last one is acknowledged and its old key gone (section 6.5).
    pub(crate) fn may_update(&self) -> bool {
        // spec: rfc9001 6.1 not-before-acked
        self.is_acknowledged && self.previous.is_none()
    }

    /// True once the key should be replaced, with a margin to the confidentiality limit (section 6.6).
    pub(crate) fn wants_update(&self) -> bool {
        // spec: rfc9001 5.3 update-before-aead-limit, 6.6 update-before-limit
        self.sealed >= self.confidentiality_limit() / 2 && self.may_update()
    }

    /// True once the key should be replaced and only an acknowledgement is wanting for that: an end that merely
    /// acknowledges would never get one.
    pub(crate) fn wants_acknowledgement(&self) -> bool {
        self.sealed >= self.confidentiality_limit() / 2 && !self.is_acknowledged
    }

    /// The next phase's keys, derived if they are not there.
    fn derive_next(&mut self) -> &mut PacketKeySet {
        self.next.get_or_insert_with(|| self.secrets.next_packet_keys())
    }

    fn confidentiality_limit(&self) -> u64 {
        self.current.local.confidentiality_limit().min(self.limits.sealed)
    }

    /// Steps to the next phase.
    pub(crate) fn rotate(&mut self) {
        // spec: rfc9001 6.1 old-keys-kept, 6.3 two-key-sets, 6.4 keys-never-older
        let next = self.next.take().unwrap_or_else(|| self.secrets.next_packet_keys());
        let current = std::mem::replace(&mut self.current, next);
        self.previous = Some(PreviousKey { key: current.remote, expires: None });
        self.phase = !self.phase;
        self.first_sent = None;
        self.first_received = None;
        self.is_acknowledged = false;
        self.has_confirmed = false;
        self.sealed = 0;
        self.updates += 1;
    }
}

#[cfg(test)]
mod tests;
