//! Acknowledgements as their sender: the packets that have arrived, when to acknowledge them, and what the peer is asked to
//! acknowledge (RFC 9000 section 13.2, draft-ietf-quic-ack-frequency).

pub(crate) mod arrivals;
pub(crate) mod frequency;
pub(crate) mod received;

use posthaste_policy::AckPolicy;
use posthaste_policy::sample::{AckRequest, AckView, ArrivalView};
use posthaste_units::{Duration, Time};
use posthaste_wire::frame::AckFrequency;
use posthaste_wire::packet::PacketType;

use crate::error::PeerError;
use crate::packet::datagram::PacketContext;
use crate::packet::early_spaces::EarlySpaces;
use crate::packet::space::PacketSpace;

use arrivals::Arrivals;
use frequency::AckRequests;
use received::{Arrival, ReceivedPackets};

/// What one connection has to acknowledge, and what both ends have asked of each other's acknowledgements.
pub(crate) struct Acks {
    pub(crate) received: EarlySpaces<ReceivedPackets>,
    pub(crate) requests: AckRequests,
    arrivals: Arrivals,
}

impl Acks {
    /// Nothing has been received yet; `policy` decides in the 1-RTT space, the others acknowledge at once.
    pub(crate) fn new(policy: Box<dyn AckPolicy>) -> Self {
        let received = EarlySpaces::with_data(ReceivedPackets::with_policy(policy));
        Self { received, requests: AckRequests::default(), arrivals: Arrivals::default() }
    }

    /// A packet has been authenticated. `rtt` is the smoothed round-trip time once it has been measured.
    pub(crate) fn on_packet(
        &mut self,
        context: &PacketContext,
        number: u64,
        rtt: Option<Duration>,
    ) -> Arrival {
        let arrival = self.received[context.space].on_packet(number);
        if arrival != Arrival::Duplicate && context.packet_type == PacketType::Short {
            self.arrivals.on_packet(context.now, number, context.size, rtt);
        }
        arrival
    }

    /// The rates and gaps of received packets.
    pub(crate) fn arrivals(&self) -> ArrivalView {
        self.arrivals.view()
    }

    /// `ACK_FREQUENCY`: the peer asks for other acknowledgements.
    ///
    /// # Errors
    /// As [`AckRequests::on_frame`].
    pub(crate) fn on_frequency(&mut self, frame: &AckFrequency) -> Result<(), PeerError> {
        if let Some(request) = self.requests.on_frame(frame)? {
            self.received[PacketSpace::Data].on_request(&request);
        }
        Ok(())
    }

    /// The peer shall hear at once of what has been received in the 1-RTT space.
    pub(crate) fn on_immediate(&mut self, now: Time) {
        self.received[PacketSpace::Data].on_immediate(now);
    }

    /// What the peer is asked anew, if the policy wants other acknowledgements of it.
    pub(crate) fn ask(&mut self, view: &AckView) -> Option<AckRequest> {
        let request = self.received[PacketSpace::Data].ask(view)?;
        self.requests.ask(request).then_some(request)
    }

    /// Gives back room that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.received.used().for_each(ReceivedPackets::shrink);
    }

    /// A space's keys are gone: nothing in it can be acknowledged.
    pub(crate) fn discard_space(&mut self, space: PacketSpace) {
        self.received.discard(space);
    }
}
