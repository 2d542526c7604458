//! Whether the promised rate is there, for the safe variant of `guaranteed`.
//!
//! A promise is doubted for two reasons, each of which must last for a second and four round trips:
//!
//! - a queue is standing (the smoothed RTT is above the least one by a quarter, and by 15 ms and two datagrams at the
//!   floor) while the sender is at the floor or cannot even reach it: it, or others with it, exceed the capacity;
//! - at the floor less than three quarters of it are delivered: so much is no radio's loss.
//!
//! A third reason needs no time: twice within ten seconds high-speed mode lost packets at a standing queue, and the sender
//! came back to the floor for that: whoever has the floor to themselves does not overflow a queue by using it.
//!
//! The floor is then halved. Loss of more than a tenth is put to the test first: for a while the floor is half. A
//! radio loses as much then; if less than half as much is lost, it was congestion (behind a queue that was full from
//! the beginning, so that no delay betrays it), and half the floor it stays. Otherwise the floor is restored, and the
//! next test is after twice the time.
//!
//! A floor that was halved is doubled again, at most to the promise, once there has been no doubt for 10 s; each
//! time that this turns out to have been wrong, that wait doubles, up to 640 s. A promise broken for an hour is thus
//! tested once in ten minutes, for a second.

use posthaste_policy::Constant;
use posthaste_policy::sample::{AckSample, RttView};
use posthaste_units::{ByteCount, Duration, Rate, Time};

/// Doubt must last for this long,
const LEAST_DOUBT: Duration = Duration::from_secs(1);
/// and for this many smoothed round trips.
const DOUBT_ROUND_TRIPS: u64 = 4;
/// A queue stands if the smoothed RTT exceeds the least one by this share of it,
const QUEUE_DIVISOR: u64 = 4;
/// by at least this (a radio's scheduling is no queue), and by two datagrams' time at the floor.
const LEAST_QUEUE: Duration = Duration::from_millis(15);
/// Marks count as a standing queue for this many round trips.
const MARK_ROUND_TRIPS: u64 = 4;
/// Part of the floor that must be delivered, as a ratio.
const LEAST_DELIVERED: (u64, u64) = (3, 4);
/// Loss above this share is put to the test,
const SUSPICIOUS_LOSS: f64 = 0.1;
/// and was congestion if at half the floor less than this part of it is left.
const CONGESTIVE_PART: f64 = 0.5;
/// The test lasts for so many times as long as doubt must, after once that for what was sent before it.
const TEST_LENGTH: u64 = 2;
/// The floor is never halved below this: less is no rate to speak of.
const LEAST_FLOOR: Rate = Rate::from_bytes_per_second(1_250);
/// So many returns to the floor after losses at a standing queue,
const OVERRUNS: u32 = 2;
/// no further apart than this, break the promise.
const OVERRUN_SPAN: Duration = Duration::from_secs(10);
/// The first wait before the floor is doubled again, and the last.
const FIRST_WAIT: Duration = Duration::from_secs(10);
const GREATEST_WAIT: Duration = Duration::from_secs(640);

/// The constants, for people.
pub(super) fn constants() -> [Constant; 4] {
    let (part, whole) = LEAST_DELIVERED;
    [
        Constant::new(
            "standing queue",
            format!("smoothed RTT above the least by 1/{QUEUE_DIVISOR} and {} ms", LEAST_QUEUE.as_millis()),
        ),
        Constant::new(
            "floor halved",
            format!(
                "after {} s and {DOUBT_ROUND_TRIPS} RTT of a standing queue at the floor, or of less than \
                 {part}/{whole} of it delivered; after {OVERRUNS} losses at a standing queue in {} s",
                LEAST_DOUBT.as_secs_f64(),
                OVERRUN_SPAN.as_secs_f64()
            ),
        ),
        Constant::new(
            "floor tested",
            format!(
                "at half, once more than {SUSPICIOUS_LOSS} is lost: it stays so if less than \
                 {CONGESTIVE_PART} of that is left"
            ),
        ),
        Constant::new(
            "floor doubled",
            format!(
                "after {} s without doubt; twice that each time it was wrong, at most {} s",
                FIRST_WAIT.as_secs_f64(),
                GREATEST_WAIT.as_secs_f64()
            ),
        ),
    ]
}

/// Half the floor, for a while, to see what becomes of the loss.
#[derive(Debug, Clone, Copy)]
struct Test {
    /// The floor before it.
    floor: Rate,
    /// The share that was lost at it.
    loss: f64,
    /// What is lost from then on counts.
    from: Time,
    /// Bytes delivered and lost until then, once it has come.
    before: Option<(ByteCount, ByteCount)>,
}

/// The promise, and what is left of it.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    promised: Rate,
    rate: Rate,
    /// Since when a queue has been standing while the floor was in use.
    queue_since: Option<Time>,
    /// Where the measurement of what the floor delivers began: when, delivered, lost.
    measured_from: Option<(Time, ByteCount, ByteCount)>,
    test: Option<Test>,
    /// No test before then, and the time after the next.
    test_at: Option<Time>,
    test_wait: Duration,
    last_ack: Option<Time>,
    /// Marks count until then.
    marked_until: Option<Time>,
    /// When there was reason to doubt for the last time.
    doubted_at: Option<Time>,
    wait: Duration,
    /// The floor has been doubled since it was last halved.
    was_raised: bool,
    /// Returns to the floor after losses at a standing queue, and the latest.
    overruns: u32,
    overran_at: Option<Time>,
    notice: Option<String>,
}

impl Promise {
    /// Another rate is promised from now on. What was doubted of the earlier one is doubted of this one.
    pub(super) fn change(&mut self, promised: Rate) {
        let before = std::mem::replace(&mut self.promised, promised).as_bits_per_second();
        let scaled = |rate: Rate| match before {
            0 => promised,
            before => rate.mul_ratio(promised.as_bits_per_second(), before).min(promised),
        };
        self.rate = scaled(self.rate);
        if let Some(test) = &mut self.test {
            test.floor = scaled(test.floor);
        }
        // What was delivered until now was of another floor.
        self.measured_from = None;
    }

    pub(super) fn new(promised: Rate) -> Self {
        Self {
            promised,
            rate: promised,
            queue_since: None,
            measured_from: None,
            test: None,
            test_at: None,
            test_wait: FIRST_WAIT,
            last_ack: None,
            marked_until: None,
            doubted_at: None,
            wait: FIRST_WAIT,
            was_raised: false,
            overruns: 0,
            overran_at: None,
            notice: None,
        }
    }

    /// The floor, on the wire.
    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    pub(super) fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// What was being measured is of no account: the peer was silent, or the sender has collapsed.
    pub(super) fn restart(&mut self) {
        self.queue_since = None;
        self.measured_from = None;
        self.last_ack = None;
        if let Some(test) = self.test.take() {
            self.rate = test.floor;
        }
    }

    /// True if a queue is standing, or packets have been marked lately.
    pub(super) fn is_congested(&self, now: Time, rtt: &RttView, datagram: ByteCount) -> bool {
        if self.marked_until.is_some_and(|until| now < until) {
            return true;
        }
        let spacing = self.rate.time_for(datagram);
        let margin = (rtt.min / QUEUE_DIVISOR).max(LEAST_QUEUE + spacing * 2);
        rtt.is_measured && rtt.smoothed > rtt.min + margin
    }

    /// Packets were marked CE.
    pub(super) fn on_mark(&mut self, now: Time, smoothed_rtt: Duration) {
        self.marked_until = Some(now + smoothed_rtt * MARK_ROUND_TRIPS);
        self.doubted_at = Some(now);
    }

    /// The sender comes back to the floor because packets were lost at a standing queue.
    pub(super) fn on_overrun(&mut self, now: Time) {
        self.doubted_at = Some(now);
        let is_recent = self.overran_at.replace(now).is_some_and(|last| now.since(last) <= OVERRUN_SPAN);
        self.overruns = if is_recent { self.overruns + 1 } else { 1 };
        if self.overruns >= OVERRUNS {
            self.halve(now, "a queue overflows each time that it is used");
        }
    }

    /// An ack of what was sent at the floor, `floor` being its payload.
    pub(super) fn on_floor_ack(&mut self, ack: &AckSample<'_>, datagram: ByteCount, floor: Rate) {
        let patience = patience(&ack.rtt);
        let gap = self.last_ack.replace(ack.now).map_or(Duration::ZERO, |last| ack.now.since(last));
        if ack.app_limited || gap > patience {
            // Nobody was there to deliver to, or nothing to deliver.
            self.queue_since = None;
            self.measured_from = None;
        }
        if ack.app_limited {
            return;
        }
        if self.is_standing(ack, datagram) {
            return self.halve(ack.now, "a queue is standing");
        }
        let is_tested = self.judge(ack);
        let (start, delivered, lost) = *self.measured_from.get_or_insert((ack.now, ack.delivered, ack.lost));
        let interval = ack.now.since(start);
        if interval >= patience {
            self.measured_from = Some((ack.now, ack.delivered, ack.lost));
            let (delivered, lost) = (ack.delivered - delivered, ack.lost - lost);
            let least = floor.mul_ratio(LEAST_DELIVERED.0, LEAST_DELIVERED.1);
            if Rate::from_transfer(delivered, interval) < least {
                return self.halve(ack.now, "less than three quarters of it are delivered");
            }
            if !is_tested {
                self.suspect(ack, loss_share(delivered, lost));
            }
        }
        self.raise(ack.now);
    }

    /// Begins a test if so much loss calls for one.
    fn suspect(&mut self, ack: &AckSample<'_>, loss: f64) {
        let is_due = self.test_at.is_none_or(|at| ack.now >= at);
        if loss > SUSPICIOUS_LOSS && is_due && self.rate > LEAST_FLOOR {
            let from = ack.now + patience(&ack.rtt);
            self.test = Some(Test { floor: self.rate, loss, from, before: None });
            self.rate = self.rate.mul_ratio(1, 2).max(LEAST_FLOOR);
            self.measured_from = None;
        }
    }

    /// Ends a test once it has lasted long enough. True while there is one.
    fn judge(&mut self, ack: &AckSample<'_>) -> bool {
        let Some(test) = self.test.as_mut().filter(|test| ack.now >= test.from) else {
            return self.test.is_some();
        };
        let (delivered, lost) = *test.before.get_or_insert((ack.delivered, ack.lost));
        if ack.now.since(test.from) < patience(&ack.rtt) * TEST_LENGTH {
            return true;
        }
        let Test { floor, loss, .. } = *test;
        let rest = loss_share(ack.delivered - delivered, ack.lost - lost);
        self.rate = floor;
        if rest < loss * CONGESTIVE_PART {
            self.halve(ack.now, "at half of it less than half as much is lost");
        } else {
            self.test = None;
            self.measured_from = None;
            self.test_at = Some(ack.now + self.test_wait);
            self.test_wait = (self.test_wait * 2).min(GREATEST_WAIT);
        }
        false
    }

    /// A round trip above the floor, or in vain below it.
    pub(super) fn on_speed(&mut self, ack: &AckSample<'_>, datagram: ByteCount, is_below: bool) {
        self.measured_from = None;
        self.last_ack = None;
        self.judge(ack);
        if !is_below {
            self.queue_since = None;
        } else if self.is_standing(ack, datagram) {
            return self.halve(ack.now, "a queue is standing though less is sent");
        }
        self.raise(ack.now);
    }

    /// True if a queue has been standing for long enough.
    fn is_standing(&mut self, ack: &AckSample<'_>, datagram: ByteCount) -> bool {
        if !self.is_congested(ack.now, &ack.rtt, datagram) {
            self.queue_since = None;
            return false;
        }
        self.doubted_at = Some(ack.now);
        let since = *self.queue_since.get_or_insert(ack.now);
        ack.now.since(since) >= patience(&ack.rtt)
    }

    fn halve(&mut self, now: Time, why: &str) {
        if std::mem::take(&mut self.was_raised) {
            self.wait = (self.wait * 2).min(GREATEST_WAIT);
        }
        // A test that is under way has found its end: what it halved already is halved for good.
        if let Some(test) = self.test.take() {
            self.rate = test.floor;
        }
        self.doubted_at = Some(now);
        self.overruns = 0;
        self.queue_since = None;
        self.measured_from = None;
        let halved = self.rate.mul_ratio(1, 2).max(LEAST_FLOOR.min(self.promised));
        if halved < self.rate {
            self.rate = halved;
            let (promised, wait) = (self.promised, self.wait.as_secs_f64());
            self.notice = Some(format!(
                "the promised {promised} are not there: {why}; the floor is {halved} for {wait} s at least"
            ));
        }
    }

    /// Tries more of the promise again after a time without doubt.
    fn raise(&mut self, now: Time) {
        let is_due = self.test.is_none() && self.doubted_at.is_some_and(|at| now.since(at) >= self.wait);
        if self.rate < self.promised && is_due {
            self.rate = self.rate.mul_ratio(2, 1).min(self.promised);
            self.was_raised = true;
            self.doubted_at = Some(now);
            // What was delivered until now was of a lower floor.
            self.measured_from = None;
            let (rate, promised) = (self.rate, self.promised);
            self.notice = Some(format!("the floor is {rate} again, of the promised {promised}"));
        }
    }
}

fn loss_share(delivered: ByteCount, lost: ByteCount) -> f64 {
    lost.as_f64() / (delivered + lost).as_f64().max(1.0)
}

/// How long doubt must last.
fn patience(rtt: &RttView) -> Duration {
    LEAST_DOUBT.max(rtt.smoothed * DOUBT_ROUND_TRIPS)
}
