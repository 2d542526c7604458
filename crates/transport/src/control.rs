//! Everything of one path that bears on how fast: the policies, the RTT estimate, the pacer, the delivery-rate
//! sampler, ECN validation and the bytes in flight.

pub(crate) mod budget;
mod first_window;
mod group;
pub(crate) mod outcome;
mod pacing;
mod packet_size;
pub(crate) mod rate_sample;
pub(crate) mod rtt;

use std::fmt;

use posthaste_policy::group::SILENT_PROBE_TIMEOUTS;
use posthaste_policy::sample::{
    AckSample, LossSample, PacketSample, PacketSpace, PathHistory, PathLoss, PathSummary, PathView, RttView,
    SentSample, SilenceSample, SpuriousSample,
};
use posthaste_policy::{
    Adjustment, Congestion, CongestionState, Jumps, Notice, Pacing, Phase, Silence, Start, Verdict,
};
use posthaste_units::{ByteCount, Duration, Rate, Time};

use crate::group::membership::Membership;
use crate::packet::ecn::{EcnCodepoint, EcnValidation};

use budget::{Budget, Limit};
use outcome::{AckOutcome, Acked};
use pacing::Pacer;
use packet_size::PacketSize;
use rate_sample::{RateSampler, Stamp};
use rtt::{MeasuredPath, RttEstimator};

/// When the flight was last bounded, and by what.
///
/// A flight is application-limited unless something else bounded it within the round trip between sending and
/// acknowledgement: the window was full at some moment, or the pacer held data back and the sender never ran dry.
/// (A sender that runs dry after each paced burst is slower than its rate; one that merely is slower than its
/// window because the pacer spreads it is not, RFC 9002 section 7.8.)
#[derive(Debug, Default)]
struct Bounds {
    window_full: Option<Time>,
    pacer_blocked: Option<Time>,
    ran_dry: Option<Time>,
}

impl Bounds {
    /// True if the sender itself bounded the flight whose oldest packet, of those acknowledged, left at `sent_at`.
    fn is_app_limited(&self, sent_at: Time) -> bool {
        let since = |moment: Option<Time>| moment.is_some_and(|at| at >= sent_at);
        let by_pacer = since(self.pacer_blocked) && !since(self.ran_dry);
        !(since(self.window_full) || by_pacer)
    }
}

/// Probe timeouts in a row.
#[derive(Debug, Clone, Copy)]
struct Unanswered {
    /// When the first of them expired.
    since: Time,
    probe_timeouts: u32,
}

/// One path's speed.
pub(crate) struct PathControl {
    /// Which of the connection's paths: packets of another bear on nothing here.
    pub(crate) id: u32,
    start: Box<dyn Start>,
    congestion: Box<dyn Congestion>,
    silence: Box<dyn Silence>,
    /// Probe timeouts have expired since the last ack.
    unanswered: Option<Unanswered>,
    pub(crate) rtt: RttEstimator,
    pub(crate) ecn: EcnValidation,
    /// How the present batch of datagrams is marked.
    marking: Option<EcnCodepoint>,
    pacer: Pacer,
    sampler: RateSampler,
    bounds: Bounds,
    /// A round trip has begun since anyone asked.
    round_started: bool,
    /// The start policy's jumps that the connection has counted.
    counted_jumps: Jumps,
    /// What was known of the path at its beginning.
    recalled: Option<PathHistory>,
    in_flight: ByteCount,
    max_datagram_size: ByteCount,
    /// Where the size of packets follows the window.
    packet_size: Option<PacketSize>,
    /// While the connection is in a group: what the group has not heard yet.
    membership: Option<Box<Membership>>,
}

impl PathControl {
    /// A path that nothing is known of: the controller is given the start policy's window.
    pub(crate) fn new(
        start: Box<dyn Start>,
        mut congestion: Box<dyn Congestion>,
        silence: Box<dyn Silence>,
        initial_rtt: Duration,
        max_datagram_size: ByteCount,
    ) -> Self {
        congestion.on_max_datagram_size(max_datagram_size);
        let window = Some(start.initial_window(max_datagram_size));
        congestion.adjust(&Adjustment { window, ..Adjustment::default() });
        Self {
            id: 0,
            start,
            congestion,
            silence,
            unanswered: None,
            rtt: RttEstimator::new(initial_rtt),
            ecn: EcnValidation::new(),
            marking: None,
            pacer: Pacer::default(),
            sampler: RateSampler::default(),
            bounds: Bounds::default(),
            round_started: false,
            counted_jumps: Jumps::default(),
            recalled: None,
            in_flight: ByteCount::ZERO,
            max_datagram_size,
            packet_size: None,
            membership: None,
        }
    }

    /// What may leave now. `app_wants` says that there is data that would: being refused is then remembered as
    /// being bounded by the window or the pacer.
    ///
    /// The window's room is that of [`budget::room`]; the pacer's is whole datagrams.
    pub(crate) fn budget(&mut self, now: Time, app_wants: bool) -> Budget {
        let budget = self.ask_budget(now);
        let is_blocked = app_wants && budget.bytes.is_zero();
        let budget = if is_blocked && budget.limited_by == Limit::Window {
            let view = self.view(now);
            let answer = self.start.on_blocked(&view);
            // More may be possible now.
            if self.carry_out(answer) { self.ask_budget(now) } else { budget }
        } else {
            budget
        };
        if app_wants && budget.bytes.is_zero() {
            match budget.limited_by {
                Limit::Window => self.bounds.window_full = Some(now),
                Limit::Pacer { .. } => self.bounds.pacer_blocked = Some(now),
            }
        }
        budget
    }

    fn ask_budget(&mut self, now: Time) -> Budget {
        let datagram = self.max_datagram_size;
        let room = budget::room(self.window(), self.in_flight, datagram);
        let start = self.start.pacing(&self.rtt.view(), datagram);
        self.pacer.grant(start.map_or(ByteCount::ZERO, |pacing| pacing.burst));
        let pacing = self.pacing_after(start);
        let tokens = self.pacer.available(now, pacing.as_ref(), datagram);
        match (tokens, pacing) {
            (Some(tokens), Some(pacing)) if budget::whole_datagrams(tokens, datagram) < room => {
                let bytes = budget::whole_datagrams(tokens, datagram);
                let until = self.pacer.ready_at(&pacing, datagram, bytes);
                Budget { bytes, limited_by: Limit::Pacer { until } }
            }
            _ => Budget { bytes: room, limited_by: Limit::Window },
        }
    }

    /// Puts the controller into the state that the start policy wants; true if it wants one.
    fn carry_out(&mut self, adjustment: Option<Adjustment>) -> bool {
        if let Some(adjustment) = &adjustment {
            self.congestion.adjust(adjustment);
        }
        adjustment.is_some()
    }

    /// What the start policy is shown.
    fn view(&self, now: Time) -> PathView {
        PathView {
            now,
            in_flight: self.in_flight,
            max_datagram_size: self.max_datagram_size,
            rtt: self.rtt.view(),
            congestion: self.congestion_state(),
        }
    }

    /// What the path is known to lose from earlier connections.
    pub(crate) fn known_loss(&self) -> PathLoss {
        self.start.known_loss()
    }

    /// What the start policy wants to be remembered of the path.
    pub(crate) fn remember(&self) -> Option<PathHistory> {
        self.start.remember(&self.summary())
    }

    /// True if what was known of the path has proved wrong.
    pub(crate) fn has_start_failed(&self) -> bool {
        self.start.has_failed()
    }

    /// Round trips so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.sampler.round()
    }

    /// Bytes that have arrived.
    pub(crate) fn delivered(&self) -> ByteCount {
        self.sampler.delivered()
    }

    /// The sender has run dry (of data, or of the peer's flow-control credit). Call it whenever nothing is left to
    /// send, even if the pacer would not let it out; it means nothing while the window is full.
    pub(crate) fn on_app_limited(&mut self, now: Time) {
        if self.is_window_full() {
            return;
        }
        self.bounds.ran_dry = Some(now);
        self.sampler.on_app_limited(self.in_flight);
    }

    fn is_window_full(&self) -> bool {
        self.in_flight + self.max_datagram_size > self.window()
    }

    /// An in-flight packet leaves. `is_demand` is false for copies: a window that they fill is not one that the
    /// application has filled.
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        space: PacketSpace,
        number: u64,
        bytes: ByteCount,
        is_demand: bool,
    ) -> Stamp {
        let prior_in_flight = self.in_flight;
        let stamp = self.sampler.on_sent(now, prior_in_flight, bytes);
        self.in_flight += bytes;
        self.pacer.on_sent(bytes);
        let app_limited = stamp.app_limited;
        let sample = SentSample { now, space, number, bytes, prior_in_flight, app_limited };
        self.congestion.on_sent(&sample);
        let view = self.view(now);
        let answers = [self.silence.on_sent(&sample, &view), self.start.on_sent(&sample, &view)];
        for answer in answers {
            self.carry_out(answer);
        }
        if let Some(membership) = &mut self.membership {
            membership.on_sent();
        }
        if is_demand && self.is_window_full() {
            self.bounds.window_full = Some(now);
        }
        stamp
    }

    /// The path as recovery sees it while it looks at an ACK frame.
    pub(crate) fn measured(&mut self) -> MeasuredPath<'_> {
        MeasuredPath { id: self.id, rtt: &mut self.rtt }
    }

    /// Tells the policies what a step of loss recovery has found out: of losses that were none, then of
    /// acknowledgements, then of losses.
    pub(crate) fn on_outcome(&mut self, now: Time, outcome: &mut AckOutcome) {
        if let Some(late) = outcome.late {
            self.on_spurious_loss(&late.sample(now), late.bytes);
        }
        if let Some(acked) = outcome.acked {
            let report = |counts| self.ecn.on_ack(acked.space, acked.ecn_marked, counts);
            outcome.newly_marked = acked.ecn.map_or(0, report);
            self.on_acked(&acked, &outcome.acked_packets, outcome.newly_marked);
        }
        if !outcome.forgotten.is_zero() {
            self.on_forgotten(now, outcome.forgotten);
        }
        if outcome.lost_marked > 0 {
            self.ecn.on_lost(outcome.lost_marked);
        }
        // spec: rfc9000 13.3 loss-slows, rfc9002 7.4 later-losses-count
        if let Some(space) = outcome.lost_packets.first().map(|packet| packet.space) {
            self.on_lost(now, space, outcome);
        }
    }

    /// Packets of the path have been acknowledged, unless `packets` is empty.
    fn on_acked(&mut self, acked: &Acked, packets: &[PacketSample], newly_marked: u64) {
        let (Some(oldest), Some(newest)) = (packets.first(), &acked.newest) else { return };
        if let Some(unanswered) = self.unanswered.take() {
            self.on_answer(acked.now, unanswered);
        }
        let app_limited = self.bounds.is_app_limited(oldest.sent_at);
        let bytes = packets.iter().map(|packet| packet.bytes).sum();
        let prior_in_flight = self.in_flight;
        self.in_flight -= bytes;
        let rtt = self.rtt.view();
        let (delivery_rate, round_started) = self.sampler.on_acked(acked.now, bytes, newest, rtt.min);
        self.round_started |= round_started;
        let sample = AckSample {
            now: acked.now,
            space: acked.space,
            packets,
            acked: bytes,
            ack_delay: acked.ack_delay,
            rtt_sample: acked.rtt_sample,
            rtt,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.sampler.delivered(),
            lost: self.sampler.lost(),
            delivery_rate,
            round: self.sampler.round(),
            round_started,
            app_limited,
            newly_marked,
            largest_sent: acked.largest_sent,
        };
        let before = self.tell_ack(&sample);
        if round_started {
            self.size_packets();
        }
        if newly_marked > 0 {
            self.tell_marks(acked.now, newest.sent_at);
        }
        self.note_reaction(acked.now, before, newest.sent_at);
    }

    /// Tells all policies of an acknowledgement; where the controller stood before it heard of it.
    fn tell_ack(&mut self, sample: &AckSample<'_>) -> CongestionState {
        // An ack of what another policy has sent on its own account earns the controller nothing.
        let is_withheld = self.start.is_in_charge() || self.silence.is_in_charge();
        let view = self.view(sample.now);
        if let Some(adjustment) = self.start.on_ack(sample, &view) {
            self.congestion.adjust(&adjustment);
        }
        if let Some(adjustment) = self.silence.on_ack(sample) {
            self.congestion.adjust(&adjustment);
        }
        let before = self.congestion.state();
        if !is_withheld {
            self.congestion.on_ack(sample);
        }
        if let Some(membership) = &mut self.membership {
            membership.on_acked(sample);
        }
        before
    }

    /// Packets up to one sent at `sent_at` have been marked as having met congestion.
    fn tell_marks(&mut self, now: Time, sent_at: Time) {
        self.congestion.on_congestion_experienced(now, sent_at, self.in_flight);
        let view = self.view(now);
        let answer = self.start.on_congestion_experienced(&view);
        self.carry_out(answer);
        let answer = self.silence.on_congestion_experienced(&view);
        self.carry_out(answer);
    }

    /// A probe timeout for 1-RTT packets has expired, the `count`th in a row.
    pub(crate) fn on_probe_timeout(&mut self, now: Time, count: u32) {
        let unanswered = self.unanswered.get_or_insert(Unanswered { since: now, probe_timeouts: 0 });
        unanswered.probe_timeouts = unanswered.probe_timeouts.saturating_add(1);
        self.silence.on_probe_timeout(&SilenceSample { now, count, state: self.congestion.state() });
    }

    /// The first ack after probe timeouts.
    fn on_answer(&mut self, now: Time, unanswered: Unanswered) {
        if self.silence.on_end(now, self.max_datagram_size) {
            self.congestion.on_silence_end(now);
        }
        let was_silent = unanswered.probe_timeouts >= SILENT_PROBE_TIMEOUTS;
        if let Some(membership) = self.membership.as_mut().filter(|_| was_silent) {
            membership.on_answer();
        }
    }

    /// True if the peer is silent and nothing but probes is to leave. Only while something is in flight whose
    /// acknowledgement would end the silence: without it there would be no probe, and no end.
    pub(crate) fn holds_back(&self) -> bool {
        self.unanswered.is_some() && self.silence.holds_back()
    }

    /// Packets of one space have been declared lost: the controller hears of each once, of those that the silence
    /// policy excuses as such.
    fn on_lost(&mut self, now: Time, space: PacketSpace, outcome: &mut AckOutcome) {
        let silence = &self.silence;
        outcome.excused.extend(outcome.lost.extract_if(.., |packet| silence.excuses(packet.sent_at)));
        if !outcome.excused.is_empty() {
            let sample = self.loss_sample(now, space, &outcome.excused);
            self.congestion.on_excused_loss(&sample);
            self.note_idle(now);
        }
        if !outcome.lost.is_empty() {
            let sample = self.loss_sample(now, space, &outcome.lost);
            self.on_counted_loss(&sample, outcome.persistent_congestion);
        }
        if outcome.persistent_congestion {
            self.rtt.forget_minimum();
        }
    }

    /// Takes `packets` out of the flight and says so.
    fn loss_sample<'a>(
        &mut self,
        now: Time,
        space: PacketSpace,
        packets: &'a [PacketSample],
    ) -> LossSample<'a> {
        let bytes = packets.iter().map(|packet| packet.bytes).sum();
        let prior_in_flight = self.in_flight;
        self.in_flight -= bytes;
        self.sampler.on_lost(bytes);
        LossSample {
            now,
            space,
            packets,
            bytes,
            prior_in_flight,
            in_flight: self.in_flight,
            rtt: self.rtt.view(),
            delivered: self.sampler.delivered(),
            lost: self.sampler.lost(),
        }
    }

    fn on_counted_loss(&mut self, sample: &LossSample<'_>, is_persistent: bool) {
        let before = self.congestion.state();
        let cause = self.congestion.on_loss(sample);
        let answer = self.start.on_loss(sample, cause, &self.view(sample.now));
        self.carry_out(answer);
        let sent_at = sample.packets.last().map_or(sample.now, |packet| packet.sent_at);
        self.note_reaction(sample.now, before, sent_at);
        if is_persistent {
            self.start.on_persistent_congestion();
        }
        if let Some(membership) = &mut self.membership {
            membership.on_lost(sample, is_persistent);
        }
        let view = self.view(sample.now);
        match self.silence.on_loss(sample, cause, is_persistent, &view) {
            Verdict::Stand => {}
            // spec: rfc9002 7.6.2 window-collapses
            Verdict::Collapse => self.congestion.on_persistent_congestion(sample.now),
            Verdict::Adjust(adjustment) => self.congestion.adjust(&adjustment),
        }
    }

    /// Packets declared lost have been acknowledged after all: `bytes` of them.
    fn on_spurious_loss(&mut self, spurious: &SpuriousSample, bytes: ByteCount) {
        self.sampler.on_late_delivery(spurious.now, bytes);
        // What the controller never reduced for it must not undo.
        if self.silence.excuses(spurious.sent_at) {
            return;
        }
        let before = self.congestion.state();
        self.congestion.on_spurious_loss(spurious);
        if let Some(membership) = &mut self.membership {
            membership.on_refutation(before, self.congestion.state(), spurious);
        }
    }

    /// Packets leave the flight without a verdict: their keys are gone, or they count as never sent.
    pub(crate) fn on_forgotten(&mut self, now: Time, bytes: ByteCount) {
        self.in_flight -= bytes;
        self.note_idle(now);
    }

    /// The path begins anew under another identity: what was in flight is no longer its own.
    pub(crate) fn forget_flight(&mut self, now: Time) {
        let answer = self.start.on_path_change(&self.view(now));
        self.carry_out(answer);
        self.in_flight = ByteCount::ZERO;
        self.unanswered = None;
        self.silence.on_path_change();
        if let Some(membership) = &mut self.membership {
            membership.on_idle(now);
        }
    }

    /// The path carries datagrams of another size now.
    pub(crate) fn set_max_datagram_size(&mut self, size: ByteCount) {
        self.max_datagram_size = size;
        self.congestion.on_max_datagram_size(size);
    }

    /// There are so many live connections with the peer's host.
    pub(crate) fn on_connections(&mut self, count: u32) {
        self.congestion.on_connections(count);
    }

    /// The client states a guaranteed rate.
    pub(crate) fn on_stated_rate(&mut self, rate: Rate) {
        self.congestion.on_stated_rate(rate);
    }

    /// Bytes declared lost.
    pub(crate) fn lost_bytes(&self) -> ByteCount {
        self.sampler.lost()
    }

    /// True if a round trip has begun since the last call.
    pub(crate) fn take_round_started(&mut self) -> bool {
        std::mem::take(&mut self.round_started)
    }

    /// The RTT estimate.
    pub(crate) fn rtt(&self) -> RttView {
        self.rtt.view()
    }

    /// Where the congestion controller stands; while a start policy has a phase of its own, under that one's name.
    pub(crate) fn state(&self) -> CongestionState {
        let state = self.congestion_state();
        let phase = self.start.phase().map_or(state.phase, Phase::Named);
        CongestionState { phase, ..state }
    }

    /// Bytes in flight.
    pub(crate) fn bytes_in_flight(&self) -> ByteCount {
        self.in_flight
    }

    /// The pacing rate and burst, if the controller paces.
    pub(crate) fn pacing(&self) -> Option<Pacing> {
        self.pacing_after(self.start.pacing(&self.rtt.view(), self.max_datagram_size))
    }

    /// The same where the start policy's answer is known.
    fn pacing_after(&self, start: Option<Pacing>) -> Option<Pacing> {
        let rtt = self.rtt.view();
        start.or_else(|| self.silence.pacing(&rtt, self.max_datagram_size)).or_else(|| self.own_pacing(&rtt))
    }

    /// True if the start policy measures the path by how far apart the handshake's datagrams are acknowledged.
    pub(crate) fn measures_handshake(&self) -> bool {
        self.start.measures_handshake()
    }

    /// The next 1-RTT packet is to end a datagram of the handshake.
    pub(crate) fn on_datagram_end(&mut self, number: u64) {
        self.start.on_datagram_end(number);
    }

    /// What the policies have to say to whoever runs the endpoint.
    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.congestion.take_notice()
    }

    /// A batch of datagrams begins: it is marked as a whole, whatever validation makes of its packets one by one.
    pub(crate) fn begin_batch(&mut self) {
        self.marking = self.ecn.codepoint();
    }

    /// How the packets of the present batch are marked.
    pub(crate) fn ecn_codepoint(&self) -> Option<EcnCodepoint> {
        self.marking
    }

    /// The wait before probe number `count` (from 0) of a silence, `base` being the probe timeout.
    pub(crate) fn probe_timeout(&self, base: Duration, count: u32) -> Duration {
        self.silence.probe_timeout(base, count)
    }

    /// True while the sender is known to have run dry within the present flight.
    #[cfg(test)]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.sampler.is_app_limited()
    }

    /// What there is to remember of the path.
    pub(crate) fn summary(&self) -> PathSummary {
        PathSummary {
            congestion: self.congestion_state(),
            rtt: self.rtt.view(),
            delivered: self.sampler.delivered(),
            max_datagram_size: self.max_datagram_size,
            own_loss: self.congestion.own_loss(),
        }
    }
}

impl fmt::Debug for PathControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathControl")
            .field("congestion", &self.congestion)
            .field("rtt", &self.rtt)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
