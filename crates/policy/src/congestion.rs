//! The seam `congestion`: how much may be in flight, and how fast it may leave.

use std::any::Any;
use std::fmt::Debug;

use posthaste_units::{ByteCount, Rate, Time};

use crate::sample::{AckSample, LossSample, PathLoss, RttView, SentSample, SpuriousSample};
use crate::{Description, Notice, SlowStart};

/// What a controller must know of the path when it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathLimits {
    /// The size of a datagram, above zero.
    pub max_datagram_size: ByteCount,
    /// The window to begin with.
    pub initial_window: ByteCount,
    /// What a controller's randomness follows from: equal seeds, equal behaviour.
    pub seed: u64,
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

    /// Told instead of [`Self::on_loss`] of packets that were lost, but not to congestion ([`Silence::excuses`](crate::Silence::excuses)): for
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

    /// Told once, before anything is sent, of the rate on the wire that the client says its network guarantees it
    /// (docs/spec/guaranteed-rate.md): anything above zero, and nobody has checked it. A controller that does not trust
    /// the client passes over it, as this default does.
    fn on_stated_rate(&mut self, _rate: Rate) {}

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

    /// What is the path's own of the packets lost, for controllers that tell it from what they cause.
    fn own_loss(&self) -> PathLoss {
        PathLoss::UNKNOWN
    }

    /// Most bytes that may be in flight.
    fn window(&self) -> ByteCount;

    /// How fast packets may leave, or `None` for as fast as the window allows.
    fn pacing(&self, rtt: &RttView) -> Option<Pacing>;

    /// Where the controller stands, for logs, statistics and other policies.
    fn state(&self) -> CongestionState;
}

/// Builds the controller of each new path.
///
/// Implemented by every `Fn(PathLimits, Box<dyn SlowStart>) -> impl Congestion`.
pub trait CongestionFactory: Any + Send + Sync {
    /// The controller of one path. `slow_start` is the profile's, for controllers that have no startup of their own.
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion>;

    /// True if the controller finds the capacity by itself: the profile's slow start is then unused.
    fn has_own_startup(&self) -> bool {
        false
    }

    /// The guaranteed rate that an end with this controller states to servers; `None` for no statement.
    fn stated_rate(&self) -> Option<Rate> {
        None
    }

    /// True if packets are to be small after a round trip in which the window shrank, and as large as the path carries
    /// after one in which it grew.
    fn sizes_packets_by_state(&self) -> bool {
        false
    }

    /// What the policy says of itself.
    fn describe(&self) -> Description {
        Description::default()
    }
}

impl<F, C> CongestionFactory for F
where
    F: Fn(PathLimits, Box<dyn SlowStart>) -> C + Any + Send + Sync,
    C: Congestion + 'static,
{
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(self(limits, slow_start))
    }
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

/// A snapshot of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CongestionState {
    /// Most bytes that may be in flight; while a flight is shrunk to a reduced window, that window.
    pub window: ByteCount,
    /// The slow-start threshold, once there is one.
    pub slow_start_threshold: Option<ByteCount>,
    /// What the controller is doing.
    pub phase: Phase,
}

/// What a controller is doing, in qlog's words where it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Looking for the capacity.
    #[default]
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
