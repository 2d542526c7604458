//! The seam `slow_start`: how the window grows until the path's capacity is found.

use std::fmt::Debug;

use posthaste_units::ByteCount;

use crate::sample::AckSample;
use crate::{Description, PolicyText};

/// How the window grows until the path's capacity is found, and when that is.
pub trait SlowStart: Debug + Send {
    /// The growth that this ack earns, and whether slow start ends with it.
    ///
    /// Called only while the controller is in slow start and outside recovery, with a sender that was limited
    /// by its window. `acked` is the part of the ack that counts for growth.
    fn on_ack(&mut self, ack: &AckSample<'_>, acked: ByteCount, window: ByteCount) -> SlowStartStep;

    /// Slow start begins anew (a path change, persistent congestion): rounds and baselines are forgotten.
    ///
    /// `threshold` is the slow-start threshold that is known already, at which growth will end; `None` if the
    /// capacity is as unknown as at the connection's start.
    fn restart(&mut self, threshold: Option<ByteCount>);
}

/// What one ack does to a window in slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowStartStep {
    /// Bytes to add to the window.
    pub growth: ByteCount,
    /// Set when slow start is over: the window to go on with (after `growth`), which becomes `ssthresh` too.
    pub exit: Option<ByteCount>,
}

/// Builds the slow start of each new path.
///
/// Implemented by every `Fn(ByteCount) -> impl SlowStart`, which is given the size of a datagram.
pub trait SlowStartFactory: Send + Sync {
    /// The slow start of one path whose datagrams have this size, above zero.
    fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart>;

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, S> SlowStartFactory for F
where
    F: Fn(ByteCount) -> S + Send + Sync,
    S: SlowStart + 'static,
{
    fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        Box::new(self(max_datagram_size))
    }
}

/// The window grows by what is acknowledged until a loss or a mark ends it; what a profile has that names no slow start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Classic;

impl SlowStart for Classic {
    fn on_ack(&mut self, _ack: &AckSample<'_>, acked: ByteCount, _window: ByteCount) -> SlowStartStep {
        SlowStartStep { growth: acked, exit: None }
    }

    fn restart(&mut self, _threshold: Option<ByteCount>) {}
}

impl SlowStartFactory for Classic {
    fn build(&self, _max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        Box::new(*self)
    }

    fn describe(&self) -> Description {
        Description::of(CLASSIC)
    }
}

/// What [`Classic`] says of itself.
pub const CLASSIC: PolicyText = PolicyText {
    name: "classic",
    claims: "doubles the window each round trip until a loss or an ECN mark, whatever the delay does",
    source: "RFC 9002 section 7.3.1",
    use_when: "delay says nothing (a wildly jittering radio), or as the baseline",
    breaks_when: "buffers are deep: it overshoots to twice the capacity and loses up to half a window",
};

/// What stands in this seam's place where the controller has a startup of its own.
pub const OWN: PolicyText = PolicyText {
    name: "own",
    claims: "the controller finds the capacity by its own startup",
    source: "the controller's",
    use_when: "the controller has a model of the path (bbr1, bbr3)",
    breaks_when: "as the controller does",
};
