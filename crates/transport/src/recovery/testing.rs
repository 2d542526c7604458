//! Policies that record what they are told, and a harness around [`Recovery`] and one path.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};

use posthaste_policy::sample::{
    AckSample, LossSample, PacketSample, PathView, RttView, SentSample, SpuriousSample,
};
use posthaste_policy::{
    Adjustment, Congestion, CongestionState, LossCause, Pacing, Phase, Silence, Start, Verdict,
};
use posthaste_units::{ByteCount, Duration, Time};
use posthaste_wire::frame::{AckFrame, EcnCounts};

use super::{Expired, HandshakeView, Outgoing, Recovery, Repeat};
use crate::control::PathControl;
use crate::control::outcome::{AckOutcome, LostPacket};
use crate::error::PeerError;
use crate::packet::sent_frame::{SentFrame, SentFrames};
use crate::packet::space::PacketSpace;

pub(crate) const MAX_DATAGRAM: ByteCount = ByteCount::new(1200);

/// An [`AckSample`] that owns its packets.
#[derive(Debug, Clone)]
pub(crate) struct AckNote {
    pub(crate) packets: Vec<PacketSample>,
    pub(crate) acked: u64,
    pub(crate) ack_delay: Duration,
    pub(crate) rtt_sample: Option<Duration>,
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    pub(crate) delivered: u64,
    pub(crate) round: u64,
    pub(crate) app_limited: bool,
    pub(crate) newly_marked: u64,
    pub(crate) largest_sent: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct LossNote {
    pub(crate) packets: Vec<PacketSample>,
    pub(crate) bytes: u64,
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    pub(crate) lost: u64,
}

impl LossNote {
    fn new(loss: &LossSample<'_>) -> Self {
        Self {
            packets: loss.packets.to_vec(),
            bytes: loss.bytes.get(),
            prior_in_flight: loss.prior_in_flight.get(),
            in_flight: loss.in_flight.get(),
            lost: loss.lost.get(),
        }
    }
}

/// What the policies were told, and what they answer.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) window: u64,
    pub(crate) pacing: Option<Pacing>,
    pub(crate) collapses: bool,
    pub(crate) sent: Vec<SentSample>,
    pub(crate) acks: Vec<AckNote>,
    pub(crate) losses: Vec<LossNote>,
    /// Losses of packets sent until then are excused.
    pub(crate) excused_until: Option<Time>,
    pub(crate) excused: Vec<LossNote>,
    pub(crate) marks: Vec<(Time, Time)>,
    pub(crate) spurious: Vec<SpuriousSample>,
    pub(crate) persistent: Vec<Time>,
    /// The window before the last loss, which a spurious one restores.
    pub(crate) before_loss: Option<u64>,
}

#[derive(Debug, Clone)]
struct Recorder(Arc<Mutex<Log>>);

impl Recorder {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().expect("no test panics while it holds the log")
    }
}

impl Start for Recorder {
    fn initial_window(&self, _: ByteCount) -> ByteCount {
        ByteCount::new(self.log().window)
    }
}

impl Silence for Recorder {
    fn probe_timeout(&self, base: Duration, count: u32) -> Duration {
        base * 1u64.checked_shl(count).unwrap_or(u64::MAX)
    }
    fn excuses(&self, sent_at: Time) -> bool {
        self.log().excused_until.is_some_and(|until| sent_at <= until)
    }
    fn on_loss(&mut self, _: &LossSample<'_>, _: LossCause, is_persistent: bool, _: &PathView) -> Verdict {
        if is_persistent && self.log().collapses { Verdict::Collapse } else { Verdict::Stand }
    }
}

impl Congestion for Recorder {
    fn on_sent(&mut self, sent: &SentSample) {
        self.log().sent.push(*sent);
    }
    fn on_ack(&mut self, ack: &AckSample<'_>) {
        self.log().acks.push(AckNote {
            packets: ack.packets.to_vec(),
            acked: ack.acked.get(),
            ack_delay: ack.ack_delay,
            rtt_sample: ack.rtt_sample,
            prior_in_flight: ack.prior_in_flight.get(),
            in_flight: ack.in_flight.get(),
            delivered: ack.delivered.get(),
            round: ack.round,
            app_limited: ack.app_limited,
            newly_marked: ack.newly_marked,
            largest_sent: ack.largest_sent,
        });
    }
    fn on_loss(&mut self, loss: &LossSample<'_>) -> LossCause {
        let mut log = self.log();
        log.before_loss = Some(log.window);
        log.window /= 2;
        log.losses.push(LossNote::new(loss));
        LossCause::Congestion
    }
    fn on_excused_loss(&mut self, loss: &LossSample<'_>) {
        self.log().excused.push(LossNote::new(loss));
    }
    fn on_congestion_experienced(&mut self, now: Time, sent_at: Time, _in_flight: ByteCount) {
        self.log().marks.push((now, sent_at));
    }
    fn on_spurious_loss(&mut self, spurious: &SpuriousSample) {
        let mut log = self.log();
        log.spurious.push(*spurious);
        if let Some(window) = log.before_loss.take() {
            log.window = window;
        }
    }
    fn on_persistent_congestion(&mut self, now: Time) {
        self.log().persistent.push(now);
    }
    fn on_max_datagram_size(&mut self, _: ByteCount) {}
    fn adjust(&mut self, adjustment: &Adjustment) {
        if let Some(window) = adjustment.window {
            self.log().window = window.get();
        }
    }
    fn window(&self) -> ByteCount {
        ByteCount::new(self.log().window)
    }
    fn pacing(&self, _: &RttView) -> Option<Pacing> {
        self.log().pacing
    }
    fn state(&self) -> CongestionState {
        CongestionState { window: self.window(), slow_start_threshold: None, phase: Phase::SlowStart }
    }
}

/// The outcomes of several steps together.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) acked: Vec<(PacketSpace, SentFrame)>,
    pub(crate) lost: Vec<(PacketSpace, SentFrame)>,
    pub(crate) lost_packets: Vec<LostPacket>,
    pub(crate) spurious_packets: u64,
    pub(crate) newly_marked: u64,
    pub(crate) persistent_congestion: bool,
}

impl Seen {
    fn add(&mut self, outcome: &AckOutcome) {
        self.acked.extend(&outcome.acked_frames);
        self.lost.extend(&outcome.lost_frames);
        self.lost_packets.extend(&outcome.lost_packets);
        self.spurious_packets += outcome.spurious_packets();
        self.newly_marked += outcome.newly_marked;
        self.persistent_congestion |= outcome.persistent_congestion;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Recovery and one path, at a time of the test's choosing.
#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) recovery: Recovery,
    pub(crate) path: PathControl,
    /// What came of the last step, all of which the path has been told.
    pub(crate) outcome: AckOutcome,
    /// What came of all steps since the test cleared it.
    pub(crate) seen: Seen,
    pub(crate) view: HandshakeView,
    pub(crate) now: Time,
    pub(crate) peer_ecn: Option<EcnCounts>,
    /// What the next packets repeat.
    pub(crate) repeat: Repeat,
    log: Arc<Mutex<Log>>,
    next_frame: u64,
}

pub(crate) fn at_millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// An ACK frame; ranges highest first.
pub(crate) fn ack_frame(ranges: &[RangeInclusive<u64>]) -> AckFrame {
    AckFrame { delay: 0, ranges: ranges.to_vec(), ecn: None }
}

impl Harness {
    /// A client whose handshake is confirmed, with a window of 100 datagrams and no pacing.
    pub(crate) fn new() -> Self {
        let log = Arc::new(Mutex::new(Log { window: 120_000, collapses: true, ..Log::default() }));
        let recorder = Recorder(Arc::clone(&log));
        let path = PathControl::new(
            Box::new(recorder.clone()),
            Box::new(recorder.clone()),
            Box::new(recorder),
            Duration::from_millis(333),
            MAX_DATAGRAM,
        );
        let view = HandshakeView {
            is_client: true,
            has_handshake_keys: true,
            is_confirmed: true,
            peer_address_validated: true,
            amplification_blocked: false,
            is_peer_present: false,
        };
        Self {
            recovery: Recovery::new(),
            path,
            outcome: AckOutcome::default(),
            seen: Seen::default(),
            view,
            now: Time::ZERO,
            peer_ecn: None,
            repeat: Repeat::default(),
            log,
            next_frame: 0,
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no test panics while it holds the log")
    }

    pub(crate) fn at(&mut self, millis: u64) -> &mut Self {
        self.now = at_millis(millis);
        self
    }

    /// Sends a full ack-eliciting datagram with one frame of its own; its number.
    pub(crate) fn send(&mut self, space: PacketSpace) -> u64 {
        self.send_as(space, 1200, true, true)
    }

    pub(crate) fn send_data(&mut self, count: usize) {
        for _ in 0..count {
            self.send(PacketSpace::Data);
        }
    }

    pub(crate) fn send_as(
        &mut self,
        space: PacketSpace,
        bytes: usize,
        ack_eliciting: bool,
        in_flight: bool,
    ) -> u64 {
        let start = self.next_frame;
        self.next_frame += 1;
        let frame = SentFrame::Crypto { start, end: start + 1 };
        self.send_frame(space, frame, bytes, ack_eliciting, in_flight)
    }

    /// Sends a probe of the path's datagram size; its number.
    pub(crate) fn send_mtu_probe(&mut self) -> u64 {
        let frame = SentFrame::MtuProbe { path: self.path.id, size: 1400 };
        self.send_frame(PacketSpace::Data, frame, 1400, true, true)
    }

    fn send_frame(
        &mut self,
        space: PacketSpace,
        frame: SentFrame,
        bytes: usize,
        ack_eliciting: bool,
        in_flight: bool,
    ) -> u64 {
        let number = self.recovery.next_number(space);
        let frames = SentFrames::from_elem(frame, 1);
        let ecn_marked = in_flight && self.path.ecn_codepoint().is_some() && self.peer_ecn.is_some();
        let now = self.now;
        let repeat = self.repeat;
        let packet =
            Outgoing { space, number, now, bytes, ack_eliciting, in_flight, ecn_marked, repeat, frames };
        self.recovery.on_packet_sent(packet, &mut self.path);
        number
    }

    pub(crate) fn ack(&mut self, space: PacketSpace, ranges: &[RangeInclusive<u64>]) {
        let frame = AckFrame { delay: 0, ranges: ranges.to_vec(), ecn: self.peer_ecn };
        self.on_ack(space, &frame).expect("the ack is legal");
    }

    pub(crate) fn ack_data(&mut self, ranges: &[RangeInclusive<u64>]) {
        self.ack(PacketSpace::Data, ranges);
    }

    pub(crate) fn on_ack(&mut self, space: PacketSpace, frame: &AckFrame) -> Result<(), PeerError> {
        let Self { recovery, path, outcome, view, now, .. } = self;
        let answer = recovery.on_ack(*now, space, frame, *view, &mut path.measured(), outcome);
        self.settle();
        answer
    }

    /// Tells the path what recovery has found out, and takes note of it.
    pub(crate) fn settle(&mut self) {
        self.path.on_outcome(self.now, &mut self.outcome);
        self.seen.add(&self.outcome);
        self.outcome.clear();
    }

    /// Has everything that is outstanding in the space sent again.
    pub(crate) fn requeue_all(&mut self, space: PacketSpace) {
        let forgotten = self.recovery.requeue_all(space, &mut self.outcome);
        self.path.on_forgotten(self.now, forgotten);
        self.settle();
    }

    pub(crate) fn discard_space(&mut self, space: PacketSpace) {
        let forgotten = self.recovery.discard_space(space);
        self.path.on_forgotten(self.now, forgotten);
        self.path.ecn.on_space_discarded(space);
    }

    pub(crate) fn frames_to_probe(&mut self, space: PacketSpace) {
        self.recovery.frames_to_probe(space, &mut self.outcome);
        self.settle();
    }

    pub(crate) fn frames_to_repair(&mut self, is_wanted: impl Fn(Repeat) -> bool) -> Option<Repeat> {
        let Self { recovery, path, outcome, .. } = self;
        let is_wanted = |repeat, _, _: &[SentFrame]| is_wanted(repeat);
        let repeat = recovery.frames_to_repair(PacketSpace::Data, path.id, is_wanted, outcome);
        self.settle();
        repeat
    }

    pub(crate) fn timeout(&self) -> Option<Time> {
        self.recovery.timeout(self.view, &self.path)
    }

    pub(crate) fn on_timeout(&mut self) -> Expired {
        let Self { recovery, path, outcome, view, now, .. } = self;
        let expired = recovery.on_timeout(*now, *view, path, outcome);
        if let Expired::Probe { space: PacketSpace::Data, .. } = expired {
            path.on_probe_timeout(*now, recovery.pto_count());
        }
        self.settle();
        expired
    }

    /// Moves to the next timeout and lets it expire.
    pub(crate) fn expire(&mut self) -> Expired {
        self.now = self.now.max(self.timeout().expect("a timer is set"));
        self.on_timeout()
    }

    /// Frames sent so far: each packet carries the next one.
    pub(crate) fn frames_sent(&self) -> u64 {
        self.next_frame
    }

    /// Numbers declared lost so far.
    pub(crate) fn lost_numbers(&self) -> Vec<u64> {
        self.seen.lost_packets.iter().map(|packet| packet.number).collect()
    }
}
