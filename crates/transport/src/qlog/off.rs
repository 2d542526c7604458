//! Stands for `qlog.rs` in a build without the feature `qlog`: the same hooks, which do nothing.

use bytes::Bytes;
use posthaste_policy::Notice;
use posthaste_units::Time;
use posthaste_wire::TransportParameters;
use posthaste_wire::frame::CloseFrame;
use posthaste_wire::packet::PacketType;

use crate::connection::Connection;
use crate::control::outcome::AckOutcome;
use crate::events::CloseReason;
use crate::handshake::birth::Birth;
use crate::packet::builder::{OpenPacket, Sealable};
use crate::packet::datagram::{Dropped, PacketContext};
use crate::packet::space::PacketSpace;
use crate::recovery::Expired;

/// No trace.
#[derive(Default)]
pub(crate) struct Log;

impl Log {
    pub(crate) fn new(_: Time, _: &Birth) -> Self {
        Self
    }

    pub(crate) fn is_on(&self) -> bool {
        false
    }

    pub(crate) fn packet_received(&mut self, _: &PacketContext, _: u64, _: &Bytes) {}

    pub(crate) fn packet_dropped(&mut self, _: Time, _: Option<PacketType>, _: Dropped) {}

    pub(crate) fn retry_received(&mut self, _: Time, _: usize) {}

    pub(crate) fn packet_kept(&mut self, _: Time, _: PacketType, _: usize) {}

    pub(crate) fn packet_sent(&mut self, _: Time, _: &OpenPacket, _: &Sealable<'_>, _: bool) {}

    pub(crate) fn packets_lost(&mut self, _: Time, _: &AckOutcome) {}

    pub(crate) fn recovery_timer_expired(&mut self, _: Time, _: Expired) {}

    pub(crate) fn notice(&mut self, _: Time, _: &Notice) {}

    pub(crate) fn peer_parameters(&mut self, _: Time, _: &TransportParameters) {}

    pub(crate) fn keys_updated_by_peer(&mut self) {}

    pub(crate) fn keys_discarded(&mut self, _: Time, _: PacketSpace, _: Option<u64>) {}

    pub(crate) fn closed(&mut self, _: Time, _: &CloseReason, _: Option<&CloseFrame>) {}
}

impl Connection {
    pub(crate) fn trace_state(&mut self, _: Time) {}
}
