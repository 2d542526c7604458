//! The seam `start`: what a new path may send first.

use std::fmt::Debug;

use posthaste_units::{ByteCount, Time};

use crate::history::HistoryRules;
use crate::sample::{
    AckSample, LossSample, PathHistory, PathLoss, PathSummary, PathView, RttView, SentSample,
};
use crate::{Adjustment, Description, LossCause, Pacing};

/// Increases of the window to a saved or measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jumps {
    /// Those made.
    pub taken: u64,
    /// Of these, those taken back: their packets met congestion, or the path proved to be another.
    pub undone: u64,
}

/// What a new path may send first, and what is worth remembering of it.
///
/// Beside [`Self::initial_window`] every method has a default that does nothing: most starts are over with the first
/// flight. A start that has more to say sets the controller's state ([`Adjustment`]), and while
/// [`Self::is_in_charge`] it alone does.
pub trait Start: Debug + Send {
    /// The congestion window that a new path starts with.
    fn initial_window(&self, max_datagram_size: ByteCount) -> ByteCount;

    /// Told at `now` what is known of the path, before data are sent on it; [`Self::initial_window`] is asked again
    /// after it.
    fn recall(&mut self, _known: &PathHistory, _now: Time) {}

    /// Told once, before anything is sent, of the window that the client asks for (docs/spec/initial-window.md): any number
    /// of bytes above zero, and nobody has checked it; [`Self::initial_window`] is asked again after it. A start that
    /// grants clients nothing passes over it, as this default does.
    fn on_stated_window(&mut self, _window: ByteCount) {}

    /// What the path is known to lose from earlier connections, if this is the same path as far as can be told.
    fn known_loss(&self) -> PathLoss {
        PathLoss::UNKNOWN
    }

    /// True if the policy learns from the acknowledgements of the handshake's datagrams how fast the path is. A server
    /// then sends its first flight in at least two full datagrams.
    fn measures_handshake(&self) -> bool {
        false
    }

    /// Told, just before it is told of the packet itself, that the 1-RTT packet `number` carries no data: it ends a datagram
    /// of the handshake's first flight, and is acknowledged at once, whatever the client sends besides.
    fn on_datagram_end(&mut self, _number: u64) {}

    /// Told of each in-flight packet sent, after the controller.
    fn on_sent(&mut self, _sent: &SentSample, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told that more data wait than the window permits.
    fn on_blocked(&mut self, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told of each ack before the controller is; may answer with a state to put the controller into
    /// (a jump that has been validated, or taken back).
    fn on_ack(&mut self, _ack: &AckSample<'_>, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told of each loss after the controller, whose answer it may lower, and of what the controller takes for its
    /// cause.
    fn on_loss(&mut self, _loss: &LossSample<'_>, _cause: LossCause, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told that packets were marked CE, after the controller.
    fn on_congestion_experienced(&mut self, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told that persistent congestion was established.
    fn on_persistent_congestion(&mut self) {}

    /// Told that the peer's address has changed in a way that may mean another path, while the controller is kept.
    fn on_path_change(&mut self, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// True while the controller is not shown acks: its window is what this policy has set.
    fn is_in_charge(&self) -> bool {
        false
    }

    /// The pacing to use instead of the controller's, where this policy has sent the window up itself.
    fn pacing(&self, _rtt: &RttView, _max_datagram_size: ByteCount) -> Option<Pacing> {
        None
    }

    /// What to remember of the path when the connection ends or is sampled.
    fn remember(&self, _summary: &PathSummary) -> Option<PathHistory> {
        None
    }

    /// True if what was recalled has proved wrong: it is to be forgotten, so that nobody else relies on it.
    fn has_failed(&self) -> bool {
        false
    }

    /// How often the policy has raised the window to what it recalls or measured, since the path began.
    fn jumps(&self) -> Jumps {
        Jumps::default()
    }

    /// The name of what the policy is doing, where that is worth a line in a trace.
    fn phase(&self) -> Option<&'static str> {
        None
    }
}

/// Builds the start of each new path.
///
/// Implemented by every `Fn() -> impl Start`.
pub trait StartFactory: Send + Sync {
    /// The start of one path.
    fn build(&self) -> Box<dyn Start>;

    /// How what is learnt of paths is to be kept for this start; `None` if it makes nothing of it.
    fn history_rules(&self) -> Option<HistoryRules> {
        None
    }

    /// On a client: the window that it asks servers to begin with; `None`, the default, asks for none.
    fn stated_window(&self) -> Option<ByteCount> {
        None
    }

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, S> StartFactory for F
where
    F: Fn() -> S + Send + Sync,
    S: Start + 'static,
{
    fn build(&self) -> Box<dyn Start> {
        Box::new(self())
    }
}
