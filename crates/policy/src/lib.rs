//! How fast: every decision about speed, as a policy behind a small trait.
//!
//! A policy does no I/O, reads no clock and knows no transport type: it is told what happened (see [`sample`])
//! and answers with bytes, rates and times. It can therefore be tested by its step response alone.
//! One file a policy; each opens with what it claims, its source, when to use it and when it breaks.
//!
//! A [`Profile`] names a bundle of policies; the transport builds one set of boxes a path from it.

pub mod ack;
pub mod congestion;
pub mod credit;
mod describe;
pub mod group;
pub mod history;
pub mod profile;
pub mod repair;
pub mod sample;
pub mod silence;
pub mod slow_start;
pub mod start;
mod variant;

#[cfg(test)]
mod testing;

use std::fmt::Debug;

use posthaste_units::{ByteCount, Duration, Rate, Time};

use sample::{
    AckRequest, AckSample, AckView, CreditMoment, LossSample, PathHistory, PathSummary, PathView,
    ReceivedSample, RttView, SentSample, SilenceSample, SpuriousSample, WindowView,
};

pub use describe::{Constant, PolicyReport, PolicyText, ProfileReport, Seam};
pub use group::Group;
pub use profile::{Profile, ProfileError};
pub use repair::Repair;
pub use variant::Variant;

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

    /// The name of what the policy is doing, where that is worth a line in a trace.
    fn phase(&self) -> Option<&'static str> {
        None
    }
}

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

/// Congestion control of one path: how much may be in flight, and how fast it may leave.
///
/// All byte counts are of in-flight packets (RFC 9002 section 2), whole UDP payloads.
pub trait Congestion: Debug + Send {
    /// Told of each in-flight packet sent.
    fn on_sent(&mut self, _sent: &SentSample) {}

    /// Told once for each ACK frame that newly acknowledges in-flight packets.
    fn on_ack(&mut self, ack: &AckSample<'_>);

    /// Told once for each batch of packets declared lost together; answers with what it takes for the cause, which the
    /// start and the silence policy are told.
    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause;

    /// Told instead of [`Self::on_loss`] of packets that were lost, but not to congestion ([`Silence::excuses`]): for
    /// controllers that keep accounts of their own. Neither window nor rate may fall.
    fn on_excused_loss(&mut self, _loss: &LossSample<'_>) {}

    /// Told that the peer was silent until now and that this time is not to count for any clock.
    fn on_silence_end(&mut self, _now: Time) {}

    /// What whoever runs the endpoint should know, once.
    fn take_notice(&mut self) -> Option<Notice> {
        None
    }

    /// Told of congestion without a loss of its own: an ack reported more packets marked CE, and the newest that it
    /// acknowledges was sent at `sent_at` (RFC 9002 section 7.1); or a group policy ordered a step back for a packet
    /// sent then. `in_flight` is what is in flight now.
    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, in_flight: ByteCount);

    /// Told that packets declared lost have been acknowledged after all.
    fn on_spurious_loss(&mut self, _spurious: &SpuriousSample) {}

    /// Told that persistent congestion was established (RFC 9002 section 7.6) and that the silence policy
    /// wants the window to collapse.
    fn on_persistent_congestion(&mut self, now: Time);

    /// Told that the path's datagram size has changed.
    fn on_max_datagram_size(&mut self, size: ByteCount);

    /// Told how many live connections this endpoint has with the peer's host, this one included.
    fn on_connections(&mut self, _count: u32) {}

    /// Puts the controller into a state that a start or a group policy decided.
    fn adjust(&mut self, adjustment: &Adjustment);

    /// Makes the controller one of several that count as one flow. One that goes on as it was, but for its part of the
    /// whole, does better than this default, which begins its course anew.
    fn take_share(&mut self, share: &FlowShare) {
        self.adjust(&Adjustment {
            window: Some(share.window),
            slow_start_threshold: share.slow_start_threshold,
            ..Adjustment::default()
        });
    }

    /// The bottleneck's rate, of controllers that have a model of it.
    fn model_rate(&self) -> Option<Rate> {
        None
    }

    /// Most bytes that may be in flight.
    fn window(&self) -> ByteCount;

    /// How fast packets may leave, or `None` for as fast as the window allows.
    fn pacing(&self, rtt: &RttView) -> Option<Pacing>;

    /// Where the controller stands, for logs, statistics and other policies.
    fn state(&self) -> CongestionState;
}

/// What a [`Congestion`] controller takes for the cause of a loss.
///
/// Controllers that take every loss for congestion (RFC 9002 section 7) always answer [`Self::Congestion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossCause {
    /// Congestion, which the controller has reacted to or is reacting to.
    #[default]
    Congestion,
    /// The path loses packets of its own, whatever the rate: the controller has not reacted.
    Path,
    /// Not known yet: the controller has not reacted, and may do so with later losses.
    Unknown,
}

/// A pacing rate and the burst that may leave at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// The rate at which the bucket fills.
    pub rate: Rate,
    /// The bucket's depth, at least one datagram.
    pub burst: ByteCount,
}

/// A state that another policy imposes on a [`Congestion`] controller; `None` leaves a part as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Adjustment {
    /// The new window.
    pub window: Option<ByteCount>,
    /// The new slow-start threshold; `ByteCount::MAX` puts the controller back into slow start.
    pub slow_start_threshold: Option<ByteCount>,
    /// The bottleneck's rate, for controllers that have a model of it; others pass over it.
    pub rate: Option<Rate>,
    /// The most that the bottleneck's rate can be as far as is known, at which startup ends; for controllers that have a
    /// model of it, others pass over it.
    pub rate_ceiling: Option<Rate>,
}

/// The part of a flow that a [`Congestion`] controller is from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowShare {
    /// How many controllers are the flow, at least 1: together they grow as one does.
    pub controllers: u32,
    /// The window of this one.
    pub window: ByteCount,
    /// Its slow-start threshold; `ByteCount::MAX` for one that has not been found yet, `None` leaves it as it is.
    pub slow_start_threshold: Option<ByteCount>,
}

/// What a group policy has in the place of a member's controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// Most bytes that may be in flight.
    pub window: ByteCount,
    /// How fast packets may leave, or `None` for as fast as the window allows.
    pub pacing: Option<Pacing>,
}

/// What a policy has to say to whoever runs the endpoint: it ends up in logs and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The policy's name.
    pub policy: &'static str,
    /// What has happened, in a sentence.
    pub text: String,
}

/// A snapshot of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionState {
    /// Most bytes that may be in flight; while a flight is shrunk to a reduced window, that window.
    pub window: ByteCount,
    /// The slow-start threshold, once there is one.
    pub slow_start_threshold: Option<ByteCount>,
    /// What the controller is doing.
    pub phase: Phase,
}

/// What a controller is doing, in qlog's words where it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Looking for the capacity.
    SlowStart,
    /// Probing around it.
    CongestionAvoidance,
    /// Within one round trip of a reduction.
    Recovery,
    /// A phase of a model-based controller, by name.
    Named(&'static str),
}

impl Phase {
    /// The phase's name in reports and in qlog's `congestion_state_updated`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::Named(name) => name,
        }
    }
}

/// What a peer that has gone silent means: when to probe it, and what to make of the silence once it is over.
///
/// A silence begins with a probe timeout for 1-RTT packets and ends with the next ack that newly acknowledges one.
/// Every answer is carried out after the controller has been told of the same thing.
pub trait Silence: Debug + Send {
    /// The wait before the next probe: `base` is the probe timeout (RFC 9002 section 6.2.1) and `count` the
    /// number of probe timeouts in a row.
    fn probe_timeout(&self, base: Duration, count: u32) -> Duration;

    /// Told that a probe timeout for 1-RTT packets has expired; two probes are about to leave.
    fn on_probe_timeout(&mut self, _silence: &SilenceSample) {}

    /// True if nothing but probes may leave for now, whatever the window says.
    fn holds_back(&self) -> bool {
        false
    }

    /// Told that the silence is over: an ack has arrived, of which controller and policy are about to be told. True
    /// if the time of silence does not count for the controller's clocks.
    fn on_end(&mut self, _now: Time, _max_datagram_size: ByteCount) -> bool {
        false
    }

    /// True if a packet sent then, and lost, was lost to the silence: it is repaired, but is no congestion.
    fn excuses(&self, _sent_at: Time) -> bool {
        false
    }

    /// Told of each in-flight packet sent; `view` counts it.
    fn on_sent(&mut self, _sent: &SentSample, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told of each ack before the controller is.
    fn on_ack(&mut self, _ack: &AckSample<'_>) -> Option<Adjustment> {
        None
    }

    /// True while the controller is not told of acks, which would raise a window that nothing has proved.
    fn is_in_charge(&self) -> bool {
        false
    }

    /// Told of losses that are not excused, after the controller; `is_persistent` if they establish persistent
    /// congestion (RFC 9002 section 7.6).
    fn on_loss(
        &mut self,
        _loss: &LossSample<'_>,
        _cause: LossCause,
        is_persistent: bool,
        _view: &PathView,
    ) -> Verdict {
        // spec: rfc9002 7.6.2 window-collapses
        if is_persistent { Verdict::Collapse } else { Verdict::Stand }
    }

    /// Told that an ack reported CE marks, after the controller.
    fn on_congestion_experienced(&mut self, _view: &PathView) -> Option<Adjustment> {
        None
    }

    /// Told that the path has become another: what is known of a silence is of no account.
    fn on_path_change(&mut self) {}

    /// The pacing that takes the place of the controller's, while there is one.
    fn pacing(&self, _rtt: &RttView, _max_datagram_size: ByteCount) -> Option<Pacing> {
        None
    }
}

/// What losses mean for the window, besides what the controller has made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Stand,
    /// It collapses: [`Congestion::on_persistent_congestion`].
    Collapse,
    /// It is put into this state.
    Adjust(Adjustment),
}

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
