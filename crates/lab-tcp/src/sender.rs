//! The sending half of a connection: what of the bytes written leaves when.
//!
//! Owners: [`scoreboard`] what is outstanding, [`rack`] what counts as lost, [`recovery`] the states between loss
//! and repair with PRR and undo, [`congestion`] the window, [`delivery`] rate samples, [`pacer`] when a burst may leave,
//! [`rtt`] round trips and the timeout, [`timer`] when to probe, to retransmit and to probe a closed window.

mod congestion;
mod delivery;
mod pacer;
mod rack;
mod recovery;
mod rtt;
mod scoreboard;
mod timer;

use posthaste_units::{Duration, Rate, Rng, Time};

use crate::TcpController;
use crate::segment::Segment;
use crate::spans::Span;
use congestion::bbr::Ack;
use congestion::{Congestion, Moment};
use delivery::Delivery;
use pacer::Pacer;
use rack::Rack;
use recovery::{Recovery, State};
use rtt::Rtt;
pub(super) use rtt::{INITIAL_TIMEOUT, MAX_TIMEOUT};
use scoreboard::{Delivered, Scoreboard};
use timer::{Forced, Timer};

/// What an ack has brought, for those who act on it (the flags of Linux's `tcp_ack`).
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one ack")]
struct News {
    /// Segments newly known to have arrived.
    delivered: u32,
    /// The cumulative acknowledgement advanced.
    has_advanced: bool,
    /// Segments were newly acknowledged cumulatively, sacked before or not.
    has_acked: bool,
    /// Segments were newly sacked.
    has_sacked: bool,
    /// It reported data that arrived twice.
    has_dsack: bool,
    /// It brought data, opened the window or acknowledged something.
    is_plain: bool,
    /// Nothing new at all, not even a D-SACK.
    is_duplicate: bool,
    /// Segments that were sent once, before the present recovery began, have arrived.
    has_original: bool,
    /// A retransmission was found lost.
    has_lost_again: bool,
    /// The probe or retransmission timer begins anew.
    sets_timer: bool,
    /// The timestamp that the ack echoes.
    echo: Time,
    /// The round trip of the most recently sent segment that has arrived.
    newest_rtt: Option<Duration>,
    /// Segments in flight before it.
    prior_in_flight: u32,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SenderCounts {
    /// Retransmission timeouts.
    pub(super) timeouts: u64,
    /// Reductions of the window.
    pub(super) reductions: u64,
    /// Segments that D-SACKs have reported to have arrived twice.
    pub(super) spurious: u64,
    /// Segments deemed lost that were not sent again, for the loss was undone.
    pub(super) unmarked: u64,
    /// Time in which only the receiver's window kept data back.
    pub(super) blocked: Duration,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct Sender {
    mss: u64,
    /// Bytes written by the application.
    written: u64,
    /// The receiver permits bytes before this.
    window_edge: u64,
    board: Scoreboard,
    rack: Rack,
    recovery: Recovery,
    congestion: Congestion,
    rtt: Rtt,
    delivery: Delivery,
    pacer: Pacer,
    /// A segment waits for its time.
    paced_until: Option<Time>,
    timer: Option<Timer>,
    forced: Option<Forced>,
    /// Segments have left since the last call that found nothing to send.
    is_batch_open: bool,
    /// When data last left.
    last_sent: Time,
    /// Since when only the receiver's window keeps data back.
    blocked_since: Option<Time>,
    scratch: Vec<Delivered>,
    counts: SenderCounts,
    has_given_up: bool,
}

impl Sender {
    /// A sender of segments of at most `mss` bytes; what is random in its controller comes from `seed`.
    pub(super) fn new(mss: u64, controller: TcpController, seed: u64) -> Self {
        Self {
            mss,
            written: 0,
            window_edge: 0,
            board: Scoreboard::default(),
            rack: Rack::default(),
            recovery: Recovery::default(),
            congestion: Congestion::new(controller, Rng::from_test_seed(seed)),
            rtt: Rtt::default(),
            delivery: Delivery::default(),
            pacer: Pacer::default(),
            paced_until: None,
            timer: None,
            forced: None,
            is_batch_open: false,
            last_sent: Time::ZERO,
            blocked_since: None,
            scratch: Vec::new(),
            counts: SenderCounts::default(),
            has_given_up: false,
        }
    }

    /// The handshake is complete: `rtt` if it was measured, `retries` of the SYN or its answer, and the window in
    /// the other end's.
    pub(super) fn on_established(&mut self, now: Time, rtt: Option<Duration>, retries: u32, window: u64) {
        if let Some(rtt) = rtt {
            self.rtt.note_least(rtt);
            self.rtt.on_sample(rtt, 0, 0);
        }
        // One lost SYN is forgiven (RFC 6298 5.7 wants less trust only after a second).
        if retries > 1 {
            self.congestion.window = 1;
        }
        self.window_edge = window;
        self.last_sent = now;
        if let Some(bbr) = self.congestion.bbr() {
            bbr.begin(now, rtt, self.mss, &mut self.pacer);
        }
    }

    /// The application has written `length` more bytes.
    pub(super) fn write(&mut self, now: Time, length: u64) {
        let idle = now.since(self.last_sent);
        if self.board.outstanding() == 0 && self.unsent() == 0 && idle > self.rtt.timeout() {
            self.congestion.restart_after_idle(now, idle, self.rtt.timeout());
        }
        self.written += length;
    }

    /// Bytes written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.board.next()
    }

    /// The number of the next new byte.
    pub(super) fn next_sequence(&self) -> u64 {
        self.board.next()
    }

    /// Bytes that the congestion window has room for, outstanding ones included.
    pub(super) fn window_bytes(&self) -> u64 {
        u64::from(self.congestion.window) * self.mss
    }

    /// Bytes believed to be in the network.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        u64::from(self.board.in_flight()) * self.mss
    }

    /// New bytes that the receiver still permits.
    pub(super) fn credit(&self) -> u64 {
        self.window_edge.saturating_sub(self.board.next())
    }

    /// True if only the receiver's window keeps data back.
    pub(super) fn is_blocked(&self) -> bool {
        let wanted = self.unsent().min(self.mss);
        wanted > self.credit() && self.board.in_flight() < self.congestion.window
    }

    /// The pacing rate, where there is one.
    pub(super) fn pacing(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// The smoothed RTT.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// True once retransmission has been given up: the connection is dead.
    pub(super) fn has_given_up(&self) -> bool {
        self.has_given_up
    }

    /// Counts, with segments lost, segments and bytes sent again.
    pub(super) fn counts(&self) -> (SenderCounts, u64, u64) {
        (self.counts, self.board.total_lost, self.board.total_resent_bytes)
    }

    fn moment(&self, now: Time) -> Moment {
        Moment {
            now,
            una: self.board.una(),
            next: self.board.next(),
            mss: self.mss,
            smoothed: self.rtt.smoothed(),
        }
    }

    /// Takes in what a segment acknowledges.
    pub(super) fn on_ack(&mut self, now: Time, segment: &Segment) {
        if segment.acknowledged > self.board.next() {
            return;
        }
        let had_outstanding = self.board.outstanding() > 0;
        let prior_in_flight = self.board.in_flight();
        let mut news = News { echo: segment.echo, prior_in_flight, ..News::default() };
        news.has_advanced = segment.acknowledged > self.board.una();
        if news.has_advanced {
            self.recovery.consecutive_timeouts = 0;
        }
        let edge = segment.acknowledged + segment.window;
        let opens_window = edge > self.window_edge;
        self.window_edge = self.window_edge.max(edge);
        self.take_acknowledged(now, segment, &mut news);
        news.is_plain = segment.length > 0 || opens_window || news.has_acked;
        news.is_duplicate = !news.is_plain && !news.has_advanced && !news.has_dsack;
        if had_outstanding {
            self.react(now, segment, news);
        }
        self.after_window_change(now);
    }

    /// Recovery, timers and growth of the window, in Linux's order.
    fn react(&mut self, now: Time, segment: &Segment, mut news: News) {
        self.rack.update_window(self.board.una(), self.board.next());
        self.process_probe_ack(segment.acknowledged, &news);
        let lost_before = self.board.total_lost;
        if !news.is_plain || news.has_sacked || news.has_dsack || self.recovery.state != State::Open {
            self.recover(now, &mut news);
        }
        if news.sets_timer {
            self.restart_timer(now);
        }
        let newly_lost = self.board.total_lost - lost_before;
        if self.congestion.bbr().is_some() {
            self.steer(now, &news, newly_lost as u32);
        } else if self.recovery.state == State::Recovery {
            self.reduce(news.delivered, newly_lost > 0, news.has_advanced);
        } else if news.has_acked || self.rack.is_reordering_wide() && news.has_sacked {
            let moment = self.moment(now);
            self.congestion.on_delivered(news.delivered, &moment);
        }
    }

    /// BBR decides about window and pacing in every state.
    fn steer(&mut self, now: Time, news: &News, lost: u32) {
        let sample = self.delivery.end_ack(now, self.rtt.least());
        let ack = Ack {
            now,
            sample: delivery::Sample {
                rtt: news.newest_rtt,
                acked: news.delivered,
                lost,
                prior_in_flight: news.prior_in_flight,
                in_flight: self.board.in_flight(),
                ..sample
            },
            delivered: self.delivery.delivered,
            total_lost: self.board.total_lost,
            state: self.recovery.state,
            mss: self.mss,
        };
        let window = self.congestion.window;
        if let Some(bbr) = self.congestion.bbr() {
            let window = bbr.on_ack(&ack, window, &mut self.pacer);
            let is_probing_rtt = bbr.is_probing_rtt();
            self.congestion.window = window;
            if is_probing_rtt {
                self.delivery.on_app_limited(ack.sample.in_flight);
            }
        }
    }

    /// Takes acknowledged and sacked segments off the scoreboard, with all that their times tell.
    fn take_acknowledged(&mut self, now: Time, segment: &Segment, news: &mut News) {
        let highest_before = self.board.highest_sacked();
        let mut delivered = std::mem::take(&mut self.scratch);
        let mut blocks = segment.sack.as_slice();
        if let Some(first) = blocks.first().filter(|first| is_dsack(segment, first)) {
            news.has_dsack = true;
            self.on_dsack(*first);
            blocks = &blocks[1..];
        }
        for block in blocks {
            self.board.sack(*block, &mut delivered);
        }
        news.has_sacked = !delivered.is_empty();
        let removed = self.board.acknowledge(segment.acknowledged, &mut delivered);
        news.has_acked = removed > 0;
        news.sets_timer = removed > 0;
        news.delivered = delivered.len() as u32;
        let mut times = Times::default();
        for Delivered { sent, is_sacked } in &delivered {
            self.rack.on_delivered(now, sent, self.rtt.least());
            self.delivery.on_delivered(sent.sent_at, sent.span.end, sent.departure);
            if sent.was_retransmitted {
                times.has_retransmitted |= !is_sacked;
                continue;
            }
            news.has_original |= sent.span.end <= self.recovery.high;
            times.add(sent.sent_at, *is_sacked);
            if sent.span.start < highest_before {
                self.rack.on_reordered(sent.span.start, self.board.highest_sacked(), self.mss);
            }
        }
        delivered.clear();
        self.scratch = delivered;
        self.take_rtt(now, &times, news);
    }

    /// Round-trip times of what has arrived.
    fn take_rtt(&mut self, now: Time, times: &Times, news: &mut News) {
        let acked = times.acked.filter(|_| !times.has_retransmitted);
        let newest = times.sacked.or(acked).map(|(_, newest)| now.since(newest));
        if let Some(newest) = newest {
            self.rtt.note_least(newest);
        }
        let oldest = acked.or(times.sacked).map(|(oldest, _)| now.since(oldest));
        // A retransmitted segment's RTT is known from its timestamp (RFC 7323 4.1).
        let sample = oldest.or_else(|| news.has_acked.then(|| now.since(news.echo)));
        let head_age = self.board.head().map(|head| now.since(head.sent_at));
        if let Some(sample) = sample {
            self.rtt.on_sample(sample, self.board.una(), self.board.next());
            // Acks of data sent after the head show that the path is alive.
            if acked.is_none() && times.sacked.is_some() && head_age.is_some_and(|age| sample > age) {
                news.sets_timer = true;
            }
        }
        news.newest_rtt = newest;
        if let Some(newest) = newest {
            let moment = self.moment(now);
            self.congestion.on_rtt(newest, &moment);
        }
    }

    /// A D-SACK: the receiver got `block` twice.
    fn on_dsack(&mut self, block: Span) {
        self.counts.spurious += 1;
        // Copies that the network made are no sign of our own haste.
        if self.counts.spurious > self.board.total_resent {
            return;
        }
        self.rack.on_dsack();
        self.recovery.on_dsack(block);
    }

    /// Lets time pass. The caller asks [`Self::next_timeout`] before.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.timer.is_some_and(|timer| timer.at <= now) {
            self.on_timer(now);
        }
    }

    /// When [`Self::on_timeout`] must be called.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.timer.map(|timer| timer.at).into_iter().chain(self.paced_until).min()
    }

    /// The next segment to send now, empty for a window probe; call until `None`.
    pub(super) fn poll(&mut self, now: Time) -> Option<Span> {
        self.paced_until = None;
        if let Some(span) = self.poll_forced(now) {
            return Some(span);
        }
        if self.waits_for_its_time(now) {
            return None;
        }
        if !self.recovery.prefers_new_data
            && let Some(span) = self.poll_lost(now)
        {
            return Some(span);
        }
        if let Some(span) = self.poll_new(now) {
            return Some(span);
        }
        if self.recovery.gives_up_on_new_data(self.board.next()) {
            return self.poll(now);
        }
        self.end_batch(now);
        None
    }

    /// True if something could leave, but for the pacer.
    fn waits_for_its_time(&mut self, now: Time) -> bool {
        let next = self.pacer.next(now);
        let is_wanted = self.board.next_lost().is_some() || self.unsent() > 0;
        if next <= now || !is_wanted || !self.has_room() {
            return false;
        }
        self.pacer.end_burst();
        self.paced_until = Some(next);
        true
    }

    fn has_room(&self) -> bool {
        self.board.in_flight() < self.congestion.window
    }

    fn poll_lost(&mut self, now: Time) -> Option<Span> {
        if !self.has_room() {
            return None;
        }
        let start = self.board.next_lost()?;
        let is_head = start == self.board.una();
        let span = self.send_again(now, start)?;
        if is_head {
            self.restart_timer_for_head(now);
        }
        Some(span)
    }

    fn send_again(&mut self, now: Time, start: u64) -> Option<Span> {
        self.recovery.on_sent_again(now);
        self.last_sent = now;
        let departure = self.delivery.on_sent(now, false);
        let span = self.board.on_sent_again(now, start, departure)?;
        self.pacer.on_sent(now, span.length(), self.mss);
        Some(span)
    }

    fn poll_new(&mut self, now: Time) -> Option<Span> {
        if !self.has_room() {
            return None;
        }
        self.send_new(now)
    }

    /// The next new segment, as far as the receiver's window permits.
    fn send_new(&mut self, now: Time) -> Option<Span> {
        let length = self.unsent().min(self.mss);
        // A part of a segment waits for a larger window (RFC 9293 3.8.6.2.1).
        if length == 0 || length > self.credit() {
            return None;
        }
        let was_idle = self.board.outstanding() == 0;
        if was_idle {
            self.congestion.on_sending_resumed(now, self.last_sent);
            self.resume_bbr(now);
        }
        let departure = self.delivery.on_sent(now, was_idle);
        let span = self.board.on_sent(now, length, departure);
        self.pacer.on_sent(now, length, self.mss);
        self.recovery.on_sent_new();
        self.last_sent = now;
        self.is_batch_open = true;
        self.on_new_data_sent(now, was_idle);
        Some(span)
    }

    fn resume_bbr(&mut self, now: Time) {
        if !self.delivery.is_app_limited() {
            return;
        }
        let mut window = self.congestion.window;
        if let Some(bbr) = self.congestion.bbr() {
            bbr.on_resumed(now, &mut window, self.mss, &mut self.pacer);
            self.congestion.window = window;
        }
    }

    /// Nothing more can leave now.
    fn end_batch(&mut self, now: Time) {
        self.after_window_change(now);
        self.pacer.end_burst();
        if self.unsent() < self.mss && self.has_room() && self.board.lost() <= self.board.again() {
            self.delivery.on_app_limited(self.board.in_flight());
        }
        if let Some(since) = self.blocked_since.take() {
            self.counts.blocked += now.since(since);
        }
        self.blocked_since = self.is_blocked().then_some(now);
        let is_full = !self.has_room();
        let is_held_back = is_full && self.unsent() > 0;
        if !std::mem::take(&mut self.is_batch_open) && !is_held_back {
            return;
        }
        let moment = self.moment(now);
        let can_shrink = self.recovery.state == State::Open;
        self.congestion.on_batch(is_full, self.board.outstanding(), can_shrink, self.rtt.timeout(), &moment);
    }
}

/// RFC 2883 4: the first block is below the cumulative acknowledgement or inside the second.
fn is_dsack(segment: &Segment, first: &Span) -> bool {
    let is_inside = |second: &Span| second.contains(*first);
    first.end <= segment.acknowledged || segment.sack.as_slice().get(1).is_some_and(is_inside)
}

/// Oldest and newest sending times of segments that were sent once.
#[derive(Debug, Default)]
struct Times {
    acked: Option<(Time, Time)>,
    sacked: Option<(Time, Time)>,
    /// A segment that was sent more than once was acknowledged cumulatively.
    has_retransmitted: bool,
}

impl Times {
    fn add(&mut self, sent_at: Time, is_sacked: bool) {
        let times = if is_sacked { &mut self.sacked } else { &mut self.acked };
        let (oldest, newest) = times.unwrap_or((sent_at, sent_at));
        *times = Some((oldest.min(sent_at), newest.max(sent_at)));
    }
}
