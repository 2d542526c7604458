//! What a connection does with 0-RTT.

use posthaste_units::Time;
use posthaste_wire::packet::ProtectedPacket;
use posthaste_wire::{Side, TransportParameters};

use crate::connection::Connection;
use crate::crypto::Opened;
use crate::error::{PeerError, TransportErrorCode};
use crate::events::Event;
use crate::handshake::early::{EarlyData, KEEP_PROBE_TIMEOUTS, Remembered};
use crate::packet::space::PacketSpace;

impl Connection {
    /// On a client: true while stream data that is written leaves before the handshake is complete. Whoever is on
    /// the path can make the server read such data again: send only what may be repeated (RFC 8446 section 8).
    pub fn may_send_early(&self) -> bool {
        self.side() == Side::Client
            && matches!(self.setup.early, EarlyData::Offered(_))
            && self.is_handshaking()
    }

    /// On a server: the client has sent early data, which are read. Until the handshake is complete
    /// ([`Self::is_handshaking`]) all data are such that may have been repeated by somebody else.
    ///
    /// On a client whose handshake is complete: the server has read what was sent before.
    pub fn is_early_data_accepted(&self) -> bool {
        self.setup.early == EarlyData::Accepted
    }

    /// 0-RTT keys have come; on a client with the server's parameters of last time.
    pub(crate) fn on_early_keys(&mut self, remembered: Option<&TransportParameters>) {
        let Some(parameters) = remembered else {
            self.setup.early = EarlyData::Accepted;
            self.emit(Event::EarlyDataAccepted);
            return;
        };
        if parameters.max_udp_payload_size < self.path.max_datagram_size() as u64 {
            self.handshake.drop_early_keys(); // Not worth the trouble.
            return;
        }
        // spec: rfc9000 7.4.1 early-by-old-values, 7.4.1 early-not-by-new-values
        let remembered = Remembered::of(parameters);
        self.streams.set_peer_limits(&remembered.parameters());
        self.setup.early = EarlyData::Offered(Box::new(remembered));
    }

    /// On a client: the server has told whether it has taken the early data, and what its parameters are this time.
    pub(crate) fn on_early_verdict(
        &mut self,
        now: Time,
        is_accepted: bool,
        parameters: &TransportParameters,
    ) -> Result<(), PeerError> {
        let EarlyData::Offered(remembered) = &self.setup.early else { return Ok(()) };
        let remembered = **remembered;
        if is_accepted {
            if remembered.is_reduced_by(&Remembered::of(parameters)) {
                let reason = "0-RTT data accepted, and limits reduced";
                return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
            }
            self.setup.early = EarlyData::Accepted;
            self.emit(Event::EarlyDataAccepted);
            return Ok(());
        }
        self.setup.early = EarlyData::Rejected;
        // All of it goes again, in 1-RTT packets with higher numbers; that it was dropped says nothing of congestion.
        let forgotten = self.recovery.requeue_all(PacketSpace::Data, self.outcome.get_or_insert_default());
        self.path.control.on_forgotten(now, forgotten);
        self.settle_outcome(now);
        // spec: rfc9001 4.6.2 rejected-resets
        self.streams.start_over();
        self.emit(Event::EarlyDataRejected);
        Ok(())
    }

    /// On a server: a 0-RTT packet has come that nobody can read. What it was is not known without keys, so this is for
    /// counters alone.
    pub(crate) fn note_early_refusal(&mut self) {
        if self.side() == Side::Server && self.setup.early == EarlyData::None {
            self.setup.early = EarlyData::Rejected;
            self.emit(Event::EarlyDataRejected);
        }
    }

    /// Opens a 0-RTT packet; `None` if it is not authentic or the keys are gone.
    pub(crate) fn open_early(&self, packet: ProtectedPacket) -> Option<Opened> {
        // spec: rfc9001 4.6.2 rejected-not-processed
        let keys = self.handshake.early_keys()?;
        keys.open(packet, self.acks.received[PacketSpace::Data].largest())
    }

    /// A server's handshake is complete: 0-RTT packets may still come, but not for long.
    pub(crate) fn limit_early_keys(&mut self, now: Time) {
        // spec: rfc9001 4.9.3 early-keys-dropped
        let expires = now + self.probe_timeout() * KEEP_PROBE_TIMEOUTS;
        if let Some(keys) = self.handshake.early_keys_mut() {
            keys.expires = Some(expires);
        }
    }

    /// Drops 0-RTT keys whose time is over. Nothing hangs on the moment: it is enough to look now and then.
    pub(crate) fn expire_early_keys(&mut self, now: Time) {
        let expires = self.handshake.early_keys().and_then(|keys| keys.expires);
        if expires.is_some_and(|expires| expires <= now) {
            self.handshake.drop_early_keys();
        }
    }
}
