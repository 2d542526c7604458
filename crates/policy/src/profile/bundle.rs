//! The choices that a profile makes: an enum for each seam, a variant for each policy.
//!
//! A new policy is a variant here and an arm in `build` and `report`; everything else stands in its own file.

use posthaste_units::{ByteCount, Duration, Rate};
use serde::Deserialize;

use crate::congestion::bbr1::Bbr1;
use crate::congestion::bbr3::Bbr3;
use crate::congestion::cubic::CubicIncrease;
use crate::congestion::newreno::AdditiveIncrease;
use crate::congestion::{LossBased, PathLimits, bbr1, bbr3, cubic, guaranteed, newreno};
use crate::credit::{autotune, fast, fixed, improved, on_ack};
use crate::group::{coordinated, ensemble, joint};
use crate::history::HistoryRules;
use crate::silence::{collapse, freeze};
use crate::slow_start::{self, classic, hybrid, hystart_pp};
use crate::start::{careful, history, initial};
use crate::{
    AckPolicy, Congestion, Constant, Credit, Group, PolicyReport, PolicyText, Repair, Seam, Silence,
    SlowStart, Start, ack, group, repair,
};

/// Parameters of a policy that has none.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// A profile's text, read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Bundle {
    pub(super) description: String,
    pub(super) start: StartChoice,
    pub(super) slow_start: SlowStartChoice,
    pub(super) congestion: CongestionChoice,
    pub(super) silence: SilenceChoice,
    pub(super) credit: CreditPair,
    pub(super) ack: AckChoice,
    pub(super) repair: RepairChoice,
    pub(super) group: GroupChoice,
}

impl Default for Bundle {
    fn default() -> Self {
        Self {
            description:
                "What the internet runs today, done carefully: CUBIC behind HyStart++, windows that grow."
                    .to_owned(),
            start: StartChoice::Initial(initial::Parameters::default()),
            slow_start: SlowStartChoice::HystartPp(hystart_pp::Parameters::default()),
            congestion: CongestionChoice::Cubic(cubic::Parameters::default()),
            silence: SilenceChoice::Collapse(NoParameters {}),
            credit: CreditPair::default(),
            ack: AckChoice::Standard(ack::standard::Parameters::default()),
            repair: RepairChoice::None(NoParameters {}),
            group: GroupChoice::Plain(NoParameters {}),
        }
    }
}

impl Bundle {
    /// What no value alone can show to be wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let CreditPair { stream, connection } = &self.credit;
        for (key, choice) in [("credit.stream", stream), ("credit.connection", connection)] {
            let (initial, maximum) = choice.bounds();
            if initial > maximum {
                return Err(format!("{key}: `initial` is above `maximum`"));
            }
        }
        let ((stream_initial, stream_maximum), (initial, maximum)) = (stream.bounds(), connection.bounds());
        if initial < stream_initial || maximum < stream_maximum {
            return Err("credit.connection is smaller than credit.stream: no stream could use its window; \
                        give the connection at least 1.5 times the stream's"
                .to_owned());
        }
        self.check_group()
    }

    /// Group policies that know how to deal with some controllers only.
    fn check_group(&self) -> Result<(), String> {
        let has_model = self.congestion.own_startup().is_some();
        match (&self.group, &self.congestion) {
            (GroupChoice::Joint(_), CongestionChoice::Bbr3(_)) => {}
            (GroupChoice::Joint(_), _) => {
                return Err("group.joint has one BBRv3 for all connections: it needs [congestion.bbr3]; \
                            for newreno and cubic there is [group.ensemble]"
                    .to_owned());
            }
            (GroupChoice::Ensemble(_), _) if has_model => {
                return Err(
                    "group.ensemble divides windows that losses cut, and a BBR has a model instead: \
                            [group.joint] with [congestion.bbr3], or [group.coordinated] with either BBR"
                        .to_owned(),
                );
            }
            _ => {}
        }
        Ok(())
    }

    /// All policies, in the order of [`Seam`].
    pub(super) fn reports(&self) -> Vec<PolicyReport> {
        let report = |seam, (text, constants)| PolicyReport { seam, text, constants, breaks: Vec::new() };
        let mut reports = vec![
            report(Seam::Start, self.start.report()),
            report(
                Seam::SlowStart,
                self.congestion.own_startup().unwrap_or_else(|| self.slow_start.report()),
            ),
            report(Seam::Congestion, self.congestion.report()),
            report(Seam::Silence, self.silence.report()),
            report(Seam::StreamCredit, self.credit.stream.report()),
            report(Seam::ConnectionCredit, self.credit.connection.report()),
            report(Seam::Ack, self.ack.report()),
            report(Seam::Repair, self.repair.report()),
            report(Seam::Group, self.group.report()),
        ];
        for report in &mut reports {
            report.breaks = self.breaks(report.seam);
        }
        reports
    }

    /// The MUSTs that the policy of a seam breaks.
    fn breaks(&self, seam: Seam) -> Vec<&'static str> {
        match (seam, &self.congestion, &self.silence) {
            (Seam::Congestion, CongestionChoice::Guaranteed(parameters), _) => parameters.breaks(),
            (Seam::Silence, _, SilenceChoice::Freeze(parameters)) => parameters.breaks(),
            _ => Vec::new(),
        }
    }

    /// The policy that wants a promised rate, if one does.
    pub(super) fn guaranteed(&self) -> Option<&guaranteed::Parameters> {
        match &self.congestion {
            CongestionChoice::Guaranteed(parameters) => Some(parameters),
            _ => None,
        }
    }

    /// Sets the promised rate, where a policy wants one.
    pub(super) fn set_min_rate(&mut self, rate: Rate) {
        if let CongestionChoice::Guaranteed(parameters) = &mut self.congestion {
            parameters.min_rate = Some(rate);
        }
    }
}

/// Policies of the seam `start`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StartChoice {
    Initial(initial::Parameters),
    Careful(careful::Parameters),
    History(history::Parameters),
}

impl StartChoice {
    pub(super) fn build(&self) -> Box<dyn Start> {
        match self {
            Self::Careful(parameters) => Box::new(careful::Careful::new(*parameters)),
            Self::History(parameters) => Box::new(history::History::new(*parameters)),
            Self::Initial(parameters) => Box::new(initial::Initial::new(*parameters)),
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Initial(parameters) => (initial::TEXT, parameters.constants()),
            Self::Careful(parameters) => (careful::TEXT, parameters.constants()),
            Self::History(parameters) => (history::TEXT, parameters.constants()),
        }
    }

    /// How what is learnt of paths is kept, where it is of use.
    pub(super) fn history_rules(&self) -> Option<HistoryRules> {
        match self {
            Self::Initial(_) => None,
            Self::Careful(parameters) => Some(parameters.rules()),
            Self::History(parameters) => Some(parameters.rules()),
        }
    }
}

/// Policies of the seam `slow_start`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SlowStartChoice {
    Classic(NoParameters),
    Hybrid(NoParameters),
    HystartPp(hystart_pp::Parameters),
}

impl SlowStartChoice {
    pub(super) fn build(&self, max_datagram_size: ByteCount) -> Box<dyn SlowStart> {
        match self {
            Self::Classic(_) => Box::new(classic::Classic),
            Self::Hybrid(_) => Box::new(hybrid::Hybrid::new(max_datagram_size)),
            Self::HystartPp(parameters) => {
                Box::new(hystart_pp::HystartPlusPlus::new(*parameters, max_datagram_size))
            }
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Classic(_) => (classic::TEXT, Vec::new()),
            Self::Hybrid(_) => (hybrid::TEXT, hybrid::constants()),
            Self::HystartPp(parameters) => (hystart_pp::TEXT, parameters.constants()),
        }
    }
}

/// Policies of the seam `congestion`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CongestionChoice {
    Newreno(newreno::Parameters),
    Cubic(cubic::Parameters),
    Bbr1(NoParameters),
    Bbr3(bbr3::Parameters),
    Guaranteed(guaranteed::Parameters),
}

impl CongestionChoice {
    pub(super) fn build(&self, slow_start: Box<dyn SlowStart>, limits: PathLimits) -> Box<dyn Congestion> {
        match self {
            Self::Newreno(parameters) => {
                let controller = LossBased::new(AdditiveIncrease, slow_start, limits);
                Box::new(controller.with_shrinking(parameters.recovery))
            }
            Self::Cubic(parameters) => {
                let controller = LossBased::new(CubicIncrease::new(*parameters), slow_start, limits);
                Box::new(controller.with_shrinking(parameters.recovery))
            }
            Self::Bbr1(_) => Box::new(Bbr1::new(limits)),
            Self::Bbr3(parameters) => Box::new(Bbr3::new(*parameters, limits)),
            Self::Guaranteed(parameters) => match parameters.min_rate {
                Some(rate) => Box::new(guaranteed::Guaranteed::new(*parameters, rate, slow_start, limits)),
                None => Self::Cubic(cubic::Parameters::default()).build(slow_start, limits),
            },
        }
    }

    /// What is to be said of slow start if the controller has one of its own.
    fn own_startup(&self) -> Option<(PolicyText, Vec<Constant>)> {
        matches!(self, Self::Bbr1(_) | Self::Bbr3(_)).then(|| (slow_start::OWN, Vec::new()))
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Newreno(parameters) => (newreno::TEXT, parameters.constants()),
            Self::Cubic(parameters) => (cubic::TEXT, parameters.constants()),
            Self::Bbr1(_) => (bbr1::TEXT, bbr1::constants()),
            Self::Bbr3(parameters) => (bbr3::TEXT, parameters.constants()),
            Self::Guaranteed(parameters) => (guaranteed::TEXT, parameters.constants()),
        }
    }
}

/// Policies of the seam `silence`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SilenceChoice {
    Collapse(NoParameters),
    Freeze(freeze::Parameters),
}

impl SilenceChoice {
    pub(super) fn build(&self) -> Box<dyn Silence> {
        match self {
            Self::Collapse(_) => Box::new(collapse::Collapse),
            Self::Freeze(parameters) => Box::new(freeze::Freeze::new(*parameters)),
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Collapse(_) => (collapse::TEXT, collapse::constants()),
            Self::Freeze(parameters) => (freeze::TEXT, parameters.constants()),
        }
    }
}

/// The seam `credit`: one policy for each stream, one for the connection.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CreditPair {
    pub(super) stream: CreditChoice,
    pub(super) connection: CreditChoice,
}

impl Default for CreditPair {
    /// The connection has 1.5 times a stream's window: with less, two streams that share it stall each other.
    fn default() -> Self {
        let window = |initial_kib: u64, maximum_kib: u64| {
            CreditChoice::Autotune(autotune::Parameters {
                initial: ByteCount::new(initial_kib << 10),
                maximum: ByteCount::new(maximum_kib << 10),
            })
        };
        Self { stream: window(1024, 16 * 1024), connection: window(1536, 24 * 1024) }
    }
}

/// Policies of the seam `credit`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CreditChoice {
    Fixed(fixed::Parameters),
    Improved(fixed::Parameters),
    Autotune(autotune::Parameters),
    Fast(fast::Parameters),
    OnAck(on_ack::Parameters),
}

impl CreditChoice {
    pub(super) fn build(&self) -> Box<dyn Credit> {
        match self {
            Self::Fixed(parameters) => Box::new(fixed::Fixed::new(*parameters)),
            Self::Improved(parameters) => Box::new(improved::Improved::new(*parameters)),
            Self::Autotune(parameters) => Box::new(autotune::Autotune::new(*parameters)),
            Self::Fast(parameters) => Box::new(fast::Fast::new(*parameters)),
            Self::OnAck(parameters) => Box::new(on_ack::OnAck::new(*parameters)),
        }
    }

    /// The first and the greatest window.
    fn bounds(&self) -> (ByteCount, ByteCount) {
        match self {
            Self::Fixed(parameters) | Self::Improved(parameters) => (parameters.window, parameters.window),
            Self::Autotune(parameters) => (parameters.initial, parameters.maximum),
            Self::Fast(parameters) => (parameters.initial, parameters.maximum),
            Self::OnAck(parameters) => (parameters.initial, parameters.maximum),
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Fixed(parameters) => (fixed::TEXT, parameters.constants()),
            Self::Improved(parameters) => (improved::TEXT, improved::constants(parameters)),
            Self::Autotune(parameters) => (autotune::TEXT, parameters.constants()),
            Self::Fast(parameters) => (fast::TEXT, parameters.constants()),
            Self::OnAck(parameters) => (on_ack::TEXT, parameters.constants()),
        }
    }
}

/// Policies of the seam `ack`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AckChoice {
    Standard(ack::standard::Parameters),
    Frequency(ack::frequency::Parameters),
}

impl AckChoice {
    pub(super) fn build(&self, max_ack_delay: Duration) -> Box<dyn AckPolicy> {
        match self {
            Self::Standard(parameters) => Box::new(ack::standard::Standard::new(*parameters, max_ack_delay)),
            Self::Frequency(parameters) => {
                Box::new(ack::frequency::Frequency::new(*parameters, max_ack_delay))
            }
        }
    }

    pub(super) fn max_ack_delay(&self) -> Duration {
        match self {
            Self::Standard(parameters) => parameters.max_ack_delay,
            Self::Frequency(parameters) => parameters.max_ack_delay,
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Standard(parameters) => (ack::standard::TEXT, parameters.constants()),
            Self::Frequency(parameters) => (ack::frequency::TEXT, parameters.constants()),
        }
    }
}

/// Policies of the seam `repair`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RepairChoice {
    None(NoParameters),
}

impl RepairChoice {
    pub(super) fn build(&self) -> Box<dyn Repair> {
        match self {
            Self::None(_) => Box::new(repair::Nothing),
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::None(_) => (repair::NONE, Vec::new()),
        }
    }
}

/// Policies of the seam `group`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GroupChoice {
    Plain(NoParameters),
    Coordinated(coordinated::Parameters),
    Ensemble(ensemble::Parameters),
    Joint(NoParameters),
}

impl GroupChoice {
    /// `congestion` is the members' controller.
    pub(super) fn build(&self, congestion: &CongestionChoice) -> Option<Box<dyn Group>> {
        match (self, congestion) {
            (Self::Joint(_), CongestionChoice::Bbr3(parameters)) => {
                Some(Box::new(joint::Joint::new(*parameters)))
            }
            // `Bundle::check` refuses it.
            (Self::Joint(_), _) => None,
            (choice, _) => choice.build_around_controllers(),
        }
    }

    /// A policy of members that each have a controller of their own.
    fn build_around_controllers(&self) -> Option<Box<dyn Group>> {
        match self {
            Self::Plain(_) | Self::Joint(_) => None,
            Self::Coordinated(parameters) => Some(Box::new(coordinated::Coordinated::new(*parameters))),
            Self::Ensemble(_) => Some(Box::new(ensemble::Ensemble::new())),
        }
    }

    fn report(&self) -> (PolicyText, Vec<Constant>) {
        match self {
            Self::Plain(_) => (group::PLAIN, Vec::new()),
            Self::Coordinated(parameters) => (coordinated::TEXT, parameters.constants()),
            Self::Ensemble(_) => (ensemble::TEXT, ensemble::Parameters::constants()),
            Self::Joint(_) => (joint::TEXT, joint::constants()),
        }
    }
}
