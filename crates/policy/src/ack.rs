//! The seam `ack`: when to acknowledge.

use std::fmt::Debug;

use posthaste_units::{Duration, Time};

use crate::Description;
use crate::sample::{AckRequest, AckView, ReceivedSample};

/// The `max_ack_delay` of endpoints that send none (RFC 9000 section 18.2).
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// When to acknowledge 1-RTT packets. (Initial and Handshake packets are acknowledged at once,
/// RFC 9000 section 13.2.1.)
pub trait AckPolicy: Debug + Send {
    /// Told of each packet that arrives.
    fn on_packet(&mut self, packet: &ReceivedSample);

    /// When an ACK frame must leave: a time that has passed means at once, `None` that nothing is owed.
    fn deadline(&self) -> Option<Time>;

    /// Told that an ACK frame has been sent that covers everything received.
    fn on_ack_sent(&mut self);

    /// Told what the peer asks of this end's acks from now on. Its reordering threshold is already in
    /// [`ReceivedSample::out_of_order`].
    fn on_request(&mut self, request: &AckRequest);

    /// What to ask of the peer's acks, of a peer that can be asked; `None` leaves what it was asked for last. Asked
    /// once a round trip.
    fn ask(&mut self, _view: &AckView) -> Option<AckRequest> {
        None
    }
}

/// Builds the ack policy of each connection.
///
/// Implemented by every `Fn(Duration) -> impl AckPolicy`, which is given the `max_ack_delay` that was promised.
pub trait AckFactory: Send + Sync {
    /// The policy of one connection, given the `max_ack_delay` that was promised to the peer.
    fn build(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy>;

    /// The `max_ack_delay` to promise (RFC 9000 section 18.2), in whole milliseconds. Default 25 ms.
    fn max_ack_delay(&self) -> Duration {
        DEFAULT_MAX_ACK_DELAY
    }

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, A> AckFactory for F
where
    F: Fn(Duration) -> A + Send + Sync,
    A: AckPolicy + 'static,
{
    fn build(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        Box::new(self(max_ack_delay))
    }
}
