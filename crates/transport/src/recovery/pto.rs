//! The loss detection timer: time-threshold losses and probe timeouts (RFC 9002 section 6.2, Appendices A.8 and
//! A.9).

use posthaste_units::{Duration, Time};

use super::{Expired, HandshakeView, Recovery};
use crate::control::PathControl;
use crate::control::outcome::AckOutcome;
use crate::control::rtt::{GRANULARITY, RttEstimator};
use crate::packet::space::PacketSpace;

/// Packets that a probe timeout sends: two, so that one may be lost (section 6.2.4).
const PROBE_PACKETS: u8 = 2;

/// Probe timeouts in a row from which on each sends one packet: what is lost then is lost to an outage.
const SINGLE_PROBES_AFTER: u32 = 6;

/// Probe timeouts without a word from the peer after which its next packet counts as the end of an outage.
const OUTAGE_TIMEOUTS: u32 = 2;

/// Where the back-off stops doubling as long as nothing has answered: RFC 8961 section 4, rule 3c permits 60 s and more.
const LONGEST_UNANSWERED_WAIT: Duration = Duration::from_secs(60);

/// Doublings that a u64 shift can hold; the bound above comes first.
const GREATEST_DOUBLINGS: u32 = 40;

/// The packet that a client without anything in flight sends so that a server short of credit goes on.
const ANTI_DEADLOCK_PACKETS: u8 = 1;

impl Recovery {
    /// When to call [`Self::on_timeout`]: the loss time if there is one, else the probe timeout.
    pub(crate) fn timeout(&self, view: HandshakeView, path: &PathControl) -> Option<Time> {
        // spec: rfc9002 6.2.1 no-probe-beside-loss-timer
        if let Some((at, _)) = self.loss_time() {
            return Some(at);
        }
        if view.amplification_blocked {
            // spec: rfc9002 6.2.2.1 blocked-server-waits
            // A server that may not send arms no probe timeout (section 6.2.2.1).
            return None;
        }
        self.probe_time(view, path).map(|probe| probe.at)
    }

    /// The timer of [`Self::timeout`] has expired; harmless if it has not.
    ///
    /// After [`Expired::Probe`] the caller tells the path of it, sends that many ack-eliciting packets, window or not,
    /// and may ask [`Self::frames_to_probe`] first for something to put into them.
    pub(crate) fn on_timeout(
        &mut self,
        now: Time,
        view: HandshakeView,
        path: &PathControl,
        outcome: &mut AckOutcome,
    ) -> Expired {
        if let Some((at, space)) = self.loss_time() {
            if at > now {
                return Expired::Nothing;
            }
            self.detect_lost(now, space, path.id, &path.rtt, outcome);
            return Expired::LossDetected;
        }
        if view.amplification_blocked {
            return Expired::Nothing;
        }
        match self.probe_time(view, path) {
            Some(Probe { at, space, packets }) if at <= now => {
                // spec: rfc9002 6.2 probe-marks-nothing-lost, 6.2.1 back-off-doubles
                self.pto_count = self.pto_count.saturating_add(1);
                self.probed_at = now;
                Expired::Probe { space, packets }
            }
            _ => Expired::Nothing,
        }
    }

    /// The probe timeout of 1-RTT packets as it stands, without back-off: what closing, key retirement and path
    /// validation count in.
    pub(crate) fn pto_interval(&self, rtt: &RttEstimator) -> Duration {
        rtt.probe_base() + self.peer_max_ack_delay
    }

    /// An authentic packet of the peer has come, after the handshake was confirmed. If it ends an outage, probing starts
    /// again at once: the peer's acknowledgements may have been lost with all else. Where the peer was heard all the
    /// time, it is this end's packets that are lost, and the back-off goes on.
    pub(crate) fn on_peer_heard(&mut self) {
        if self.pto_count.saturating_sub(self.heard_at_count) >= OUTAGE_TIMEOUTS {
            self.pto_count = 0;
        }
        self.heard_at_count = self.pto_count;
    }

    /// There is reason to think that the path works again: the back-off begins anew.
    pub(crate) fn restart_probing(&mut self) {
        self.pto_count = 0;
        self.heard_at_count = 0;
    }

    /// Probe timeouts in a row.
    pub(crate) fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// The earliest loss time and its space.
    fn loss_time(&self) -> Option<(Time, PacketSpace)> {
        PacketSpace::ALL.into_iter().filter_map(|id| self.spaces[id].loss_time.map(|at| (at, id))).min()
    }

    /// The earliest probe timeout over the spaces (Appendix A.8).
    fn probe_time(&self, view: HandshakeView, path: &PathControl) -> Option<Probe> {
        let mut earliest: Option<Probe> = None;
        for id in PacketSpace::ALL {
            let space = &self.spaces[id];
            // spec: rfc9002 6.2.1 no-data-probe-early
            // No probe timeout for application data before the handshake is confirmed (section 6.2.1): the peer
            // may have no keys to read the probe, and the handshake spaces have timers of their own.
            if !space.sent.has_ack_eliciting() || (id == PacketSpace::Data && !view.is_confirmed) {
                continue;
            }
            let wait = if id == PacketSpace::Data {
                path.probe_timeout(self.pto_interval(&path.rtt), self.pto_count)
            } else {
                self.handshake_wait(view, path)
            };
            let at = self.probe_from(space.last_ack_eliciting_at, wait);
            // spec: rfc9002 6.2.1 earlier-of-handshake
            if earliest.as_ref().is_none_or(|probe| at < probe.at) {
                let is_outage = id == PacketSpace::Data && self.pto_count >= SINGLE_PROBES_AFTER;
                let packets = if is_outage { 1 } else { PROBE_PACKETS };
                earliest = Some(Probe { at, space: id, packets });
            }
        }
        if earliest.is_none() && view.is_client && !view.peer_address_validated {
            // spec: rfc9002 6.2.2.1 client-stays-armed, 6.2.2.1 client-sends-handshake
            // spec: rfc9002 6.2.2.1 client-sends-initial, rfc9000 8.1 client-probes, 8.1 probe-by-keys
            // The server may be out of anti-amplification credit: only the client can go on (section 6.2.2.1).
            let space = if view.has_handshake_keys { PacketSpace::Handshake } else { PacketSpace::Initial };
            let at = self.probe_from(self.last_event_at, self.handshake_wait(view, path));
            earliest = Some(Probe { at, space, packets: ANTI_DEADLOCK_PACKETS });
        }
        earliest
    }

    /// The wait before the handshake's next probe: as with data once the peer is known to be there, so that an outage ends
    /// for the handshake when it ends for the path. Until then twice the last, up to a minute: a server that is overloaded
    /// is left alone, and so is an address that others may have given for theirs.
    fn handshake_wait(&self, view: HandshakeView, path: &PathControl) -> Duration {
        let base = path.rtt.probe_base();
        if view.is_peer_present {
            return path.probe_timeout(base, self.pto_count);
        }
        // spec: rfc9002 6.2.1 back-off-doubles
        (base * (1 << self.pto_count.min(GREATEST_DOUBLINGS))).min(LONGEST_UNANSWERED_WAIT.max(base))
    }

    /// A probe's time. A probe timeout that could not send anything counts as a start, too: the timer always moves.
    fn probe_from(&self, start: Time, wait: Duration) -> Time {
        // spec: rfc9002 6.2.1 probe-floor
        start.max(self.probed_at) + wait.max(GRANULARITY)
    }
}

/// A probe that will be due.
struct Probe {
    at: Time,
    space: PacketSpace,
    packets: u8,
}

#[cfg(test)]
mod tests;
