//! What the path answers to the first flights: whether its link has room for them.
//!
//! A sender that begins while others fill the link takes their queue for the path's own delay, so the RTT's level tells it
//! nothing. The RTT's change does: the trains of a start policy tell the link's rate, from which follows how long a queue
//! the sender's packets make on an empty link. What they are delayed beyond that, others have put before them. Where the
//! queue is full already, packets are dropped instead: less arrives than the link could have delivered. Either makes the
//! link crowded, and startup ends at a part of what the link holds; a shadow (`neighbour.rs`) goes on from there. This is
//! the reasoning of probe-gap methods (Spruce, IMC 2003) with the sender's own data as probes.

use posthaste_policy::Constant;
use posthaste_policy::sample::{AckSample, PacketSpace};
use posthaste_units::{Duration, Time};

use super::outage::is_outage;
use super::{Mobile, Part};
use crate::congestion::model::Sample;

/// Acks in a row that must show it: radio links delay single ones.
const ACKS: usize = 12;
/// Acks that come more than so many times as fast as the link count as one.
const FASTEST: f64 = 2.0;
/// The delay beyond the sender's own queue that counts, at least, and in jitters.
const LEAST_EXCESS: Duration = Duration::from_millis(6);
const JITTERS: f64 = 2.0;
/// The same as a part of the time in which the packets left, and of what they take of it at the link's rate: others that
/// fill the link delay them by all of that, and a train that showed half too much by a third.
const PART_OF_TIME: f64 = 0.35;
const PART_OF_SENT: f64 = 0.5;
/// How much it must have grown over those acks, as a part of what they brought at the link's rate: others that fill the
/// link go on delaying each packet, where a radio link's delay steps and stays.
const GROWTH: f64 = 0.25;
/// Less than this of what the link could have delivered has arrived: its queue is full.
const ARRIVED: f64 = 0.8;
/// Datagrams that it could have delivered by then, and the excess that must stand.
const LEAST_COMPARED: f64 = 32.0;
const FULL_EXCESS: Duration = Duration::from_millis(2);
/// Where startup ends: the part of what link and queue hold. Four neighbours leave a fifth.
const PART: f64 = 0.25;

/// The constants, for people.
pub(super) fn constants() -> [Constant; 1] {
    [Constant::new(
        "crowded link",
        format!(
            "{ACKS} acks delayed ever more, {LEAST_EXCESS} or more beyond the own queue (what comes {FASTEST} times as fast as \
             the link is one), or less than {ARRIVED} of what could arrive: startup ends at {PART} of rate x RTT"
        ),
    )]
}

/// The link, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownLink {
    /// Bytes a second.
    pub(super) rate: f64,
    pub(super) least_rtt: Duration,
    /// Bytes.
    pub(super) datagram: f64,
    /// An outage is no sign of others.
    pub(super) may_be_away: bool,
}

/// The first flights and their acks, since the link's rate is known. Seconds are reals here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Response {
    /// When the newest acknowledged packet was sent, and its number.
    newest: Option<(Time, u64)>,
    /// When the first of them, or the first after an outage or a pause of half a round trip, was sent and when it was acknowledged.
    sent_from: Time,
    acked_from: Time,
    /// The queue that the sender's own packets make, seconds.
    own: f64,
    /// What was sent and what arrived of it, in seconds of the link's rate.
    sent: f64,
    arrived: f64,
    /// Delays of the last acks beyond the own queue, and what had arrived by then: a ring.
    excess: [(f64, f64); ACKS],
    acks: usize,
    /// When the last of them came that counts by itself, and what has arrived since, in seconds of the link's rate.
    counted_at: Time,
    uncounted: f64,
    /// Less has arrived than the link could have delivered.
    is_short: bool,
}

impl Response {
    /// An ack arrives from `link`.
    pub(super) fn on_ack(&mut self, ack: &AckSample<'_>, link: &KnownLink) {
        let KnownLink { rate, least_rtt: least, datagram, may_be_away } = *link;
        let Some(newest) = ack.packets.last().filter(|_| ack.space == PacketSpace::Data) else { return };
        let delay = ack.now.since(newest.sent_at).saturating_sub(least).as_secs_f64();
        let Some((mut sent_at, mut number)) = self.newest else {
            // What has been sent until now is the own queue, whatever is in it.
            self.newest = Some((newest.sent_at, newest.number));
            (self.sent_from, self.acked_from, self.own) = (newest.sent_at, ack.now, delay);
            return;
        };
        let known = number;
        for packet in ack.packets.iter().filter(|packet| packet.number > known) {
            let (seconds, pause) = (packet.bytes.as_f64() / rate, packet.sent_at.since(sent_at));
            let is_away = may_be_away && is_outage(packet.number - number, pause, rate / datagram);
            if is_away || pause > least / 2 {
                (self.sent_from, self.acked_from) = (packet.sent_at, ack.now);
                (self.sent, self.arrived) = (0.0, 0.0);
            }
            self.own = (self.own - pause.as_secs_f64()).max(0.0) + seconds;
            self.arrived += seconds;
            self.uncounted += seconds;
            self.sent += (packet.number - number) as f64 * datagram / rate;
            (sent_at, number) = (packet.sent_at, packet.number);
        }
        self.newest = Some((sent_at, number));
        // No link delivers so fast: they have waited for the receiver, and the last one the least.
        if ack.now.since(self.counted_at).as_secs_f64() * FASTEST < self.uncounted {
            self.acks = self.acks.saturating_sub(1);
        } else {
            (self.counted_at, self.uncounted) = (ack.now, 0.0);
        }
        let possible = self.sent.min(ack.now.since(self.acked_from).as_secs_f64());
        self.is_short = possible * rate > LEAST_COMPARED * datagram && self.arrived < ARRIVED * possible;
        if let Some(excess) = self.excess.get_mut(self.acks % ACKS) {
            *excess = (delay - self.own, self.arrived);
        }
        self.acks += 1;
    }

    /// True if others fill the link.
    pub(super) fn is_crowded(&self, jitter: Duration) -> bool {
        if self.acks < ACKS {
            return false;
        }
        let least = self.excess.iter().map(|(excess, _)| *excess).fold(f64::INFINITY, f64::min);
        let time = self.newest.map_or(0.0, |(sent_at, _)| sent_at.since(self.sent_from).as_secs_f64());
        let jitter = JITTERS * jitter.as_secs_f64();
        // Others can put no more before a packet than they send meanwhile.
        let is_delayed = self.is_growing()
            && least.min(time) > LEAST_EXCESS.as_secs_f64().max(jitter)
            && least > (PART_OF_TIME * time).max(PART_OF_SENT * self.arrived.min(time));
        is_delayed || self.is_short && least > FULL_EXCESS.as_secs_f64()
    }

    /// True if the last acks were delayed ever more.
    fn is_growing(&self) -> bool {
        let oldest = self.excess.get(self.acks % ACKS).copied().unwrap_or_default();
        let newest = self.excess.get((self.acks + ACKS - 1) % ACKS).copied().unwrap_or_default();
        newest.0 - oldest.0 > GROWTH * (newest.1 - oldest.1).max(0.0)
    }
}

impl Mobile {
    /// True if startup has met a link that others fill.
    pub(super) fn is_link_crowded(&self) -> bool {
        let may_be = self.parameters.shadow && self.has(Part::Crowded) && !self.reach.is_resumed;
        may_be && self.response.is_crowded(self.path.jitter())
    }

    /// Startup ends beside others.
    pub(super) fn leave_to_others(&mut self, sample: &Sample) {
        let held = self.reach.ceiling.unwrap_or(0.0) * sample.rtt.as_secs_f64();
        // Where flights were dropped, what has arrived of them may be less.
        let most = if self.reach.is_overrun() { self.window } else { f64::INFINITY };
        let window = (PART * held).min(most).max(self.minimum_pipe());
        self.path.raise_bandwidth(window / super::seconds(self.path.least_rtt()));
        // An ease ends what startup has left behind; there is nothing of our own to drain, so none follows.
        self.start_ease(sample.now);
        self.join_others(sample, window);
        self.start_hold();
    }
}
