//! The connection's trace (qlog): hooks only, until the writer lands.

use posthaste_units::Time;
use posthaste_wire::{ConnectionId, Frame, Side, TransportParameters};

use crate::config::QlogSink;
use crate::receive::PacketContext;
use crate::recovery::LostPacket;
use crate::sent_frame::SentFrames;
use crate::space::SpaceId;

#[derive(Debug, Default)]
pub(crate) struct Log;

#[allow(clippy::unused_self)]
impl Log {
    pub(crate) fn open(_sink: Option<&dyn QlogSink>, _id: &ConnectionId, _side: Side, _now: Time) -> Self {
        Self
    }
    pub(crate) fn packet_received(&mut self, _context: &PacketContext, _number: u64, _len: usize) {}
    pub(crate) fn frame_received(&mut self, _frame: &Frame) {}
    pub(crate) fn packet_received_end(&mut self) {}
    pub(crate) fn packet_sent(
        &mut self,
        _now: Time,
        _space: SpaceId,
        _number: u64,
        _size: usize,
        _frames: &SentFrames,
    ) {
    }
    pub(crate) fn packets_lost(&mut self, _now: Time, _packets: &[LostPacket]) {}
    pub(crate) fn peer_parameters(&mut self, _parameters: &TransportParameters) {}
    pub(crate) fn keys_discarded(&mut self, _now: Time, _space: SpaceId) {}
    pub(crate) fn closed(&mut self, _now: Time, _by: &'static str) {}
}
