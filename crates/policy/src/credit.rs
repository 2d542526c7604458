//! The seam `credit`: how much a receiver lets its peer send.

use std::fmt::Debug;

use posthaste_units::ByteCount;

use crate::Description;
use crate::sample::{CreditMoment, WindowView};

/// How much a receiver lets its peer send on one window, a stream's or the connection's.
///
/// Monotone by construction: a policy can only advance the limit, as RFC 9000 section 4.1 demands.
pub trait Credit: Debug + Send {
    /// The window granted in the transport parameters.
    fn initial_window(&self) -> ByteCount;

    /// Whether to advertise more credit now: the bytes by which to advance the limit, none for "not yet".
    ///
    /// Asked at each [`CreditMoment`]. An answer is always carried out, so the policy may count it as sent.
    fn grant(&mut self, moment: CreditMoment, view: &WindowView) -> Option<ByteCount>;

    /// The window as it stands: how far ahead of consumption the policy means to keep the limit.
    fn window(&self) -> ByteCount;

    /// How updates travel that are granted at [`CreditMoment::AckLeaving`]; `None` for ordinary frames, as many as
    /// there are. Asked of the connection's policy, for all of its windows.
    fn rides_on_acks(&self) -> Option<AckRide> {
        None
    }
}

/// How window updates travel with acks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRide {
    /// A peer that knows such frames gets the window inside of the ACK frame, which need not be acknowledged.
    pub is_combined: bool,
    /// Most bytes that the updates in one packet may take; as many as fit if `None`.
    pub field: Option<u64>,
}

/// Builds the credit policy of each stream, or of each connection.
///
/// Implemented by every `Fn() -> impl Credit`.
pub trait CreditFactory: Send + Sync {
    /// The policy of one window.
    fn build(&self) -> Box<dyn Credit>;

    /// The first and the greatest window, where they are known.
    fn bounds(&self) -> Option<(ByteCount, ByteCount)> {
        None
    }

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, C> CreditFactory for F
where
    F: Fn() -> C + Send + Sync,
    C: Credit + 'static,
{
    fn build(&self) -> Box<dyn Credit> {
        Box::new(self())
    }
}
