//! Congestion control `guaranteed`: never slower than what the network has promised.
//!
//! - Claims: on a path with a guaranteed speed the first packet and the one after a burst of radio loss leave at that
//!   speed; above it, capacity is looked for as CUBIC does.
//! - Source: QUICMING ("guaranteed rate"). *Wireless mode* sends a datagram every minGT = MTU / minGS, whatever is
//!   lost and however long acks take; after N acks in a row that report no loss, *high-speed mode* goes on with CUBIC
//!   from the bytes in flight (`W_max` = window, K = 0, no slow start), until what is delivered over a round trip
//!   falls below minGS.
//! - Use when: somebody stands surety for the speed: a private radio network, a VPN with a reserved rate, a LAN.
//! - Breaks when: nobody does. `paper` then takes the promised rate from whoever shares the path, for ever.
//! - Experiments: `gr-page`; `gr-broken-promise` for what becomes of a promise that is not kept.
//!
//! The variant `safe` differs in this: a loss or a CE mark while a queue is standing (or the marking lasts) is
//! congestion, answered as CUBIC answers it, and wireless mode is not returned to until that is over; a promise that
//! does not hold is halved and tried again later (see `guaranteed/promise.rs`), and whoever runs the endpoint is told;
//! what is in flight is bounded by two round trips at the floor, so that nothing is sent into a silence; and
//! persistent congestion collapses the window (RFC 9002 section 7.6.2).
//!
//! minGS is a rate on the wire: each datagram counts with its IPv6 and UDP headers. It is the operator's word
//! (`min_rate`), or the client's (`stated_rate` at its end, docs/spec/guaranteed-rate.md), of which a server takes at
//! most `max_stated_rate` for all connections of a host together. Clients that state nothing get CUBIC then. With
//! neither there is no promise, and a profile cannot be used.

mod promise;
mod stated;

use posthaste_policy::sample::{AckSample, LossSample, RttView, SentSample, SpuriousSample};
use posthaste_policy::{
    Adjustment, Congestion, CongestionFactory, CongestionState, Constant, Description, LossCause, Notice,
    Pacing, PathLimits, Phase, PolicyText, Seam, SlowStart,
};
use posthaste_units::{ByteCount, Duration, Rate, Time};
use serde::Deserialize;

use super::Shrinking;
use super::cubic::{self, Cubic, CubicIncrease};
use crate::entry::{Chosen, Install};
use crate::values::{Error, Values, parse};
use crate::{Entry, Property, Required, Variant, value};
use promise::Promise;
use stated::Stated;

/// What the policy says of itself.
pub const TEXT: PolicyText = PolicyText {
    name: "guaranteed",
    claims: "never slower than the promised rate, from the first packet and through radio loss; CUBIC above it",
    source: "QUICMING (guaranteed rate): wireless and high-speed mode; the safe variant's doubts are ours",
    use_when: "somebody stands surety for the rate: a private radio network, a VPN with a reserved rate, a LAN",
    breaks_when: "nobody does: others on the path are starved (paper), or the floor is halved again and again (safe)",
};

/// The policy in the registry.
pub const ENTRY: Entry = Entry::new::<Parameters>(&[Seam::Congestion], TEXT, read)
    .with(&[Property::CutByLoss])
    .requiring(&[Required {
        key: "min_rate",
        or: Some("max_stated_rate"),
        what: "the rate on the wire that the network guarantees, from 10 kbit/s to 100 Gbit/s",
        example: "1mbit",
    }]);

/// Reads the parameters; without a rate there is nothing to build.
fn read(value: Values<'_>) -> Result<Chosen, Error> {
    let parameters: Parameters = parse(value)?;
    let install = parameters
        .promised()
        .map(|promised| -> Install { Box::new(move |builder, _| builder.congestion(promised)) });
    Ok(Chosen { description: parameters.describe(), has_own_startup: false, install })
}

/// Bytes of IPv6 and UDP headers: part of the MTU and of the promised rate. IPv4's are 20 less.
const HEADERS: u64 = 48;
/// The floor's burst beyond one datagram: a timer that is late by less than this loses nothing of the rate.
const LATENESS: Duration = Duration::from_millis(1);
/// Room that wireless mode keeps above what is in flight, in datagrams: the pacer, not the window, is its bound.
const ROOM_DATAGRAMS: u64 = 2;
/// The safe variant's bound on the flight: this many round trips at the floor,
const FLIGHT_ROUND_TRIPS: u64 = 2;
/// and what acks may be late by,
const FLIGHT_SLACK: Duration = Duration::from_millis(100);
/// and an initial window.
const FLIGHT_DATAGRAMS: u64 = 10;
/// The round trip before there is a sample (RFC 9002 section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// No window is greater, as with CUBIC.
const GREATEST_WINDOW: ByteCount = ByteCount::new(1 << 36);

/// Parameters of [`Guaranteed`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// minGS, the guaranteed rate on the wire: 10 kbit/s to 100 Gbit/s, such as "1 Mbit/s". `None`: not said
    /// yet.
    #[serde(deserialize_with = "value::min_rate")]
    pub min_rate: Option<Rate>,
    /// What is granted at most, of the rates that clients state, to all connections of a host together: as `min_rate`.
    /// `None`, the default, grants nothing.
    #[serde(deserialize_with = "value::min_rate")]
    pub max_stated_rate: Option<Rate>,
    /// On a client: the rate that it states to servers, as `min_rate`. `None`, the default, states nothing.
    #[serde(deserialize_with = "value::min_rate")]
    pub stated_rate: Option<Rate>,
    /// N: acks in a row without loss that end wireless mode, 1 to 1,000. The paper has 10.
    #[serde(deserialize_with = "value::clean_acks")]
    pub acks: u32,
    /// Flows for which high-speed mode's CUBIC stands, 1 to 64: Chromium's of 2017 stands for 2.
    #[serde(deserialize_with = "value::flows")]
    pub flows: u32,
    /// The paper's form or the safe one.
    pub variant: Variant,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            min_rate: None,
            max_stated_rate: None,
            stated_rate: None,
            acks: 10,
            flows: 1,
            variant: Variant::Safe,
        }
    }
}

impl Parameters {
    /// The constants, for people.
    pub fn constants(&self) -> Vec<Constant> {
        let rate = match (self.min_rate, self.max_stated_rate) {
            (Some(rate), _) => rate.to_string(),
            (None, Some(_)) => "none but the client's".into(),
            (None, None) => "none: it must be set (NAME@min_rate=1mbit)".into(),
        };
        let mut constants = vec![
            Constant::new("variant", self.variant),
            Constant::new("min_rate", rate),
            Constant::new("acks", self.acks),
        ];
        let stated = [("max_stated_rate", self.max_stated_rate), ("stated_rate", self.stated_rate)];
        constants.extend(stated.into_iter().filter_map(|(name, rate)| Some(Constant::new(name, rate?))));
        if self.variant == Variant::Safe {
            constants.extend(promise::constants());
        }
        constants.extend(self.cubic().constants());
        constants
    }

    /// High-speed mode's CUBIC. A loss reduces its window at once: with it falls the rate, and with that the mode ends.
    fn cubic(&self) -> cubic::Parameters {
        cubic::Parameters {
            recovery: Shrinking::AtOnce,
            flows: cubic::Flows::Fixed(self.flows),
            ..cubic::Parameters::default()
        }
    }

    /// What the policy says of itself with these parameters.
    pub fn describe(&self) -> Description {
        Description::of(TEXT).with_constants(self.constants()).with_breaks(self.breaks())
    }

    /// The factory of controllers with this promise; `None` if there is none, the client's neither.
    pub fn promised(self) -> Option<Promised> {
        self.min_rate.or(self.max_stated_rate).map(|_| Promised(self))
    }

    /// The MUSTs that the variant breaks.
    pub fn breaks(&self) -> Vec<&'static str> {
        match self.variant {
            Variant::Safe => vec![
                "RFC 9002 sections 7.3.1 and 7.3.2: a loss reduces the window (here: unless it looks like the radio's)",
            ],
            Variant::Paper => vec![
                "RFC 9002 sections 7.3.1, 7.3.2 and 7.6.2: losses, marks and persistent congestion reduce the window",
                "RFC 8085 section 3.1: a sender slows down when packets are lost",
            ],
        }
    }
}

/// Parameters with a promise: the factory of [`Guaranteed`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Promised(Parameters);

impl CongestionFactory for Promised {
    fn build(&self, limits: PathLimits, slow_start: Box<dyn SlowStart>) -> Box<dyn Congestion> {
        Box::new(Guaranteed::new(self.0, slow_start, limits))
    }

    fn stated_rate(&self) -> Option<Rate> {
        self.0.stated_rate
    }

    fn describe(&self) -> Description {
        self.0.describe()
    }
}

/// What the controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// At the floor; acks without a loss so far.
    Wireless { clean_acks: u32 },
    /// CUBIC, since then. Losses that the very ack reports that brought it about still belong to wireless mode.
    HighSpeed { since: Time },
}

/// A controller with a floor; see the module.
#[derive(Debug)]
pub struct Guaranteed {
    acks: u32,
    /// The rate on the wire that the promise allows as it stands.
    promise: Promise,
    /// What the client's word is worth.
    stated: Stated,
    variant: Variant,
    mode: Mode,
    cubic: Cubic,
    datagram: ByteCount,
    in_flight: ByteCount,
    smoothed_rtt: Duration,
    /// Where the measurement of the delivery rate began: when, and what had been delivered.
    measured_from: Option<(Time, ByteCount)>,
    /// High-speed mode has lost packets at a standing queue.
    overran: bool,
}

impl Guaranteed {
    /// A controller for a new path: at the floor if `min_rate` is promised, else CUBIC until the client states a rate.
    pub fn new(parameters: Parameters, slow_start: Box<dyn SlowStart>, limits: PathLimits) -> Self {
        let increase = CubicIncrease::new(parameters.cubic());
        let mode = match parameters.min_rate {
            Some(_) => Mode::Wireless { clean_acks: 0 },
            None => Mode::HighSpeed { since: Time::ZERO },
        };
        Self {
            acks: parameters.acks,
            promise: Promise::new(parameters.min_rate.unwrap_or(Rate::ZERO)),
            stated: Stated::new(parameters.min_rate, parameters.max_stated_rate),
            variant: parameters.variant,
            mode,
            cubic: Cubic::new(increase, slow_start, limits).with_shrinking(Shrinking::AtOnce),
            datagram: limits.max_datagram_size,
            in_flight: ByteCount::ZERO,
            smoothed_rtt: INITIAL_RTT,
            measured_from: None,
            overran: false,
        }
    }

    fn is_safe(&self) -> bool {
        self.variant == Variant::Safe
    }

    fn is_wireless(&self) -> bool {
        matches!(self.mode, Mode::Wireless { .. })
    }

    /// The floor in bytes of UDP payload a second: one datagram every minGT.
    fn floor(&self) -> Rate {
        let datagram = self.datagram.get().max(1);
        self.promise.rate().mul_ratio(datagram, datagram + HEADERS).max(Rate::from_bytes_per_second(1))
    }

    /// True if a loss now would have to be taken for congestion.
    fn is_congested(&self, now: Time, rtt: &RttView) -> bool {
        self.is_safe() && self.promise.is_congested(now, rtt, self.datagram)
    }

    fn begin_wireless(&mut self) {
        self.mode = Mode::Wireless { clean_acks: 0 };
        self.measured_from = None;
    }

    /// CUBIC takes over with what is in flight: on its plateau, and not in slow start.
    fn begin_high_speed(&mut self, now: Time, in_flight: ByteCount) {
        self.mode = Mode::HighSpeed { since: now };
        self.measured_from = None;
        let window = in_flight.max(self.least_window());
        self.cubic.adjust(&Adjustment {
            window: Some(window),
            slow_start_threshold: Some(window),
            ..Adjustment::default()
        });
    }

    fn least_window(&self) -> ByteCount {
        self.datagram * 2
    }

    /// The delivery rate over the last smoothed round trip or more, once that has passed; what an application held
    /// back says nothing, and neither does what was sent before `since`.
    fn measure(&mut self, ack: &AckSample<'_>, since: Time) -> Option<Rate> {
        let is_its_own = ack.packets.first().is_some_and(|packet| packet.sent_at > since);
        if ack.app_limited || !is_its_own {
            self.measured_from = None;
            return None;
        }
        let (start, before) = *self.measured_from.get_or_insert((ack.now, ack.delivered));
        let interval = ack.now.since(start);
        if interval < ack.rtt.smoothed || interval.is_zero() {
            return None;
        }
        self.measured_from = Some((ack.now, ack.delivered));
        Some(Rate::from_transfer(ack.delivered - before, interval))
    }

    /// Most that wireless mode may have in flight.
    fn greatest_flight(&self) -> ByteCount {
        if !self.is_safe() {
            return GREATEST_WINDOW;
        }
        let span = self.smoothed_rtt * FLIGHT_ROUND_TRIPS + FLIGHT_SLACK;
        (self.floor().bytes_in(span) + self.datagram * FLIGHT_DATAGRAMS).min(GREATEST_WINDOW)
    }

    /// What takes an ack in high-speed mode: back to the floor if it is faster.
    fn on_fast_ack(&mut self, ack: &AckSample<'_>, since: Time) {
        self.cubic.on_ack(ack);
        let Some(rate) = self.measure(ack, since) else { return };
        let is_below = rate < self.floor() && self.promise.rate() > Rate::ZERO;
        if self.is_safe() {
            self.promise.on_speed(ack, self.datagram, is_below);
        }
        // RFC 9002 would have the window stay; a floor that a queue contradicts is none.
        if is_below && !self.is_congested(ack.now, &ack.rtt) {
            if std::mem::take(&mut self.overran) {
                self.promise.on_overrun(ack.now);
            }
            self.begin_wireless();
        }
    }
}

impl Congestion for Guaranteed {
    fn on_sent(&mut self, sent: &SentSample) {
        self.in_flight = sent.prior_in_flight + sent.bytes;
        self.cubic.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &AckSample<'_>) {
        self.in_flight = ack.in_flight;
        self.smoothed_rtt = ack.rtt.smoothed;
        match self.mode {
            Mode::Wireless { clean_acks } => {
                let clean_acks = clean_acks.saturating_add(1);
                self.mode = Mode::Wireless { clean_acks };
                if self.is_safe() {
                    self.promise.on_floor_ack(ack, self.datagram, self.floor());
                }
                if clean_acks >= self.acks {
                    self.begin_high_speed(ack.now, ack.in_flight);
                }
            }
            Mode::HighSpeed { since } => self.on_fast_ack(ack, since),
        }
    }

    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        self.in_flight = loss.in_flight;
        let is_congested = self.is_congested(loss.now, &loss.rtt);
        self.overran |= is_congested;
        match self.mode {
            Mode::HighSpeed { since } if since != loss.now => self.cubic.on_loss(loss),
            // At the floor, or the ack that was to end it reports a loss.
            _ if is_congested => {
                self.begin_high_speed(loss.now, loss.prior_in_flight);
                self.cubic.on_loss(loss)
            }
            _ => {
                self.begin_wireless();
                LossCause::Path
            }
        }
    }

    fn on_excused_loss(&mut self, loss: &LossSample<'_>) {
        self.in_flight = loss.in_flight;
    }

    fn on_silence_end(&mut self, now: Time) {
        self.cubic.on_silence_end(now);
        self.measured_from = None;
        self.promise.restart();
    }

    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, in_flight: ByteCount) {
        self.in_flight = in_flight;
        if self.is_safe() {
            self.promise.on_mark(now, self.smoothed_rtt);
            if self.is_wireless() {
                self.begin_high_speed(now, in_flight);
            }
        }
        if !self.is_wireless() {
            self.cubic.on_congestion_experienced(now, sent_at, in_flight);
        }
    }

    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        if !self.is_wireless() {
            self.cubic.on_spurious_loss(spurious);
        }
    }

    fn on_persistent_congestion(&mut self, now: Time) {
        if self.is_safe() && self.is_wireless() {
            self.begin_high_speed(now, self.in_flight);
        }
        if !self.is_wireless() {
            self.cubic.on_persistent_congestion(now);
            self.promise.restart();
        }
    }

    fn on_max_datagram_size(&mut self, size: ByteCount) {
        self.datagram = size;
        self.cubic.on_max_datagram_size(size);
    }

    fn adjust(&mut self, adjustment: &Adjustment) {
        // The floor is a rate; no window bears on it.
        if !self.is_wireless() {
            self.cubic.adjust(adjustment);
        }
    }

    fn take_notice(&mut self) -> Option<Notice> {
        let text = self.stated.take_notice().or_else(|| self.promise.take_notice());
        text.map(|text| Notice { policy: TEXT.name, text })
    }

    fn on_stated_rate(&mut self, rate: Rate) {
        if let Some(floor) = self.stated.on_stated(rate) {
            self.promise = Promise::new(floor);
            self.begin_wireless();
        }
    }

    fn on_connections(&mut self, count: u32) {
        let Some(floor) = self.stated.on_connections(count) else { return };
        self.promise.change(floor);
        if floor == Rate::ZERO && self.is_wireless() {
            // `since` is for losses that the same ack reports, and there is no ack.
            self.begin_high_speed(Time::ZERO, self.in_flight);
        }
    }

    fn window(&self) -> ByteCount {
        if !self.is_wireless() {
            return self.cubic.window();
        }
        let room = self.in_flight + self.datagram * ROOM_DATAGRAMS;
        room.min(self.greatest_flight()).max(self.least_window())
    }

    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        if !self.is_wireless() {
            return self.cubic.pacing(rtt);
        }
        let rate = self.floor();
        Some(Pacing { rate, burst: self.datagram + rate.bytes_in(LATENESS) })
    }

    fn state(&self) -> CongestionState {
        if !self.is_wireless() {
            return self.cubic.state();
        }
        let phase = Phase::Named("wireless");
        CongestionState { window: self.window(), slow_start_threshold: None, phase }
    }
}

#[cfg(test)]
mod tests;
