//! Several connections' acks and losses as those of one.

use std::collections::VecDeque;

use posthaste_policy::Congestion;
use posthaste_policy::group::{MAX_MEMBERS, MemberAck, MemberId, MemberLoss, MemberView};
use posthaste_policy::sample::{
    AckSample, LossSample, PacketSample, PacketSpace, RateSample, RttView, SentSample,
};
use posthaste_units::{ByteCount, Duration, Rate, Time};

use super::datagram;
use crate::congestion::bbr3::Bbr3;

/// Moments whose sums are kept: what a packet's acknowledgement is compared with.
const KEPT_STAMPS: usize = 1024;
/// They are this part of a round trip apart at the least, so that the kept ones reach back over four.
const STAMPS_A_ROUND_TRIP: u64 = 256;
/// Lost packets of one report that are told one by one; each stands for as many of the rest as the others.
const MOST_LOST: u64 = 64;
/// A pause of the acks of all members that is a silence, in probe timeouts (RFC 9002 section 7.6.1).
const SILENCE: u64 = 3;

/// All members' sums at a moment at which one of them was acknowledged.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    at: Time,
    delivered: ByteCount,
    lost: ByteCount,
    in_flight: ByteCount,
    /// When the newest packet was sent that had arrived by then.
    newest_sent_at: Time,
}

/// What is known of one member.
#[derive(Debug, Clone, Copy)]
struct Known {
    id: MemberId,
    delivered: ByteCount,
    lost: ByteCount,
    /// What its window was when it joined.
    brought: ByteCount,
    /// Whether it had no more to send when what arrived last was sent; `None` before anything has, or has again after
    /// a pause.
    app_limited: Option<bool>,
}

/// What all members have in flight together, but for those whose peers are silent: theirs is nowhere any more. No
/// connection works with less than its least window: where the model wants less than the sum of these, for `ProbeRTT`
/// above all, it is told that it has been obeyed, or it would wait for ever.
pub(super) fn flight(members: &[MemberView], model: &Bbr3) -> ByteCount {
    let heard = || members.iter().filter(|view| view.silent_since.is_none());
    let sum: ByteCount = heard().map(|view| view.in_flight).sum();
    let least: ByteCount = heard().map(|view| view.least_window).sum();
    if model.window() < least { sum.min(model.window()) } else { sum }
}

/// The sums over all members, and over their past.
#[derive(Debug, Default)]
pub(super) struct Merge {
    known: Vec<Known>,
    delivered: ByteCount,
    lost: ByteCount,
    stamps: VecDeque<Stamp>,
    next_number: u64,
    last_ack: Option<Time>,
    /// The last silence of all members ended then.
    silent_until: Option<Time>,
    round: u64,
    round_ends_at: ByteCount,
}

impl Merge {
    /// A member whose packets count from here on.
    pub(super) fn join(&mut self, view: &MemberView) {
        debug_assert!(self.known.len() < MAX_MEMBERS, "the router lets no more in");
        let MemberView { id, delivered, lost, congestion, .. } = *view;
        self.known.push(Known { id, delivered, lost, brought: congestion.window, app_limited: None });
    }

    /// The member is none any more; the window that it brought.
    pub(super) fn leave(&mut self, member: MemberId) -> Option<ByteCount> {
        let place = self.known.iter().position(|known| known.id == member)?;
        Some(self.known.remove(place).brought)
    }

    pub(super) fn has_delivered_nothing(&self) -> bool {
        self.delivered.is_zero()
    }

    /// True if the member had less to send than it might have.
    pub(super) fn is_app_limited(&self, member: MemberId) -> bool {
        self.known.iter().any(|known| known.id == member && known.app_limited == Some(true))
    }

    /// True if nobody takes more. One member's want of data is none of the whole while another takes what it leaves; who
    /// has nothing in flight, or is not heard, takes nothing, whatever it did before.
    pub(super) fn lacks_data(&self, members: &[MemberView]) -> bool {
        let is_sending = |view: &MemberView| view.idle_since.is_none() && view.silent_since.is_none();
        let takes_more = |known: &Known| {
            known.app_limited == Some(false)
                && members.iter().any(|view| view.id == known.id && is_sending(view))
        };
        !self.known.iter().any(takes_more)
    }

    /// True if the ack of this very moment ended a silence of all members.
    pub(super) fn was_silent_until(&self, now: Time) -> bool {
        self.silent_until == Some(now)
    }

    /// The sums as they were when a packet was sent; at the beginning, nothing.
    fn at(&self, sent_at: Time) -> Stamp {
        let later = self.stamps.partition_point(|stamp| stamp.at <= sent_at);
        let stamp = later.checked_sub(1).and_then(|index| self.stamps.get(index)).or(self.stamps.front());
        stamp.copied().unwrap_or(Stamp {
            at: sent_at,
            delivered: ByteCount::ZERO,
            lost: ByteCount::ZERO,
            in_flight: ByteCount::ZERO,
            newest_sent_at: sent_at,
        })
    }

    fn stamp(&mut self, now: Time, smoothed: Duration, newest_sent_at: Time, in_flight: ByteCount) {
        let spacing = smoothed / STAMPS_A_ROUND_TRIP;
        if self.stamps.back().is_some_and(|last| now.since(last.at) < spacing) {
            return;
        }
        if self.stamps.len() == KEPT_STAMPS {
            self.stamps.pop_front();
        }
        let newest_sent_at =
            self.stamps.back().map_or(newest_sent_at, |last| last.newest_sent_at.max(newest_sent_at));
        let Self { delivered, lost, .. } = *self;
        self.stamps.push_back(Stamp { at: now, delivered, lost, in_flight, newest_sent_at });
    }

    /// Counts what is new of a member's sums.
    fn count(&mut self, view: &MemberView) {
        let Some(known) = self.known.iter_mut().find(|known| known.id == view.id) else { return };
        // A loss that proves to be none raises one sum and lowers the other.
        self.delivered += view.delivered - known.delivered;
        self.lost += view.lost - known.lost;
        (known.delivered, known.lost) = (view.delivered, view.lost);
    }

    /// A member's packets have arrived.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &MemberAck,
        view: &MemberView,
        members: &[MemberView],
        model: &mut Bbr3,
    ) {
        self.count(view);
        if let Some(known) = self.known.iter_mut().find(|known| known.id == view.id) {
            known.app_limited = Some(ack.app_limited);
        }
        let pause = self.last_ack.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        if pause >= (view.rtt.smoothed + view.rtt.variance * 4) * SILENCE {
            self.silent_until = Some(now);
        }
        let in_flight = flight(members, model);
        let prior_in_flight = in_flight + ack.acked;
        let app_limited = ack.app_limited && self.lacks_data(members);
        let stamp = self.at(ack.sent_at);
        let packet = PacketSample {
            number: self.take_number(),
            sent_at: ack.sent_at,
            bytes: ack.acked,
            in_flight: stamp.in_flight.max(ack.acked),
            delivered: stamp.delivered,
            lost: stamp.lost,
            app_limited,
        };
        // Each member may leave less than a datagram of its part unused.
        let slack = datagram(view) * (self.known.len() as u64);
        model.on_sent(&SentSample {
            now,
            space: PacketSpace::Data,
            number: packet.number,
            bytes: slack,
            prior_in_flight: prior_in_flight.max(ByteCount::new(1)),
            app_limited,
        });
        let round_started = stamp.delivered >= self.round_ends_at;
        if round_started {
            self.round += 1;
            self.round_ends_at = self.delivered;
        }
        model.on_ack(&AckSample {
            now,
            space: PacketSpace::Data,
            packets: &[packet],
            acked: ack.acked,
            ack_delay: Duration::ZERO,
            rtt_sample: None,
            rtt: view.rtt,
            prior_in_flight,
            in_flight,
            delivered: self.delivered,
            lost: self.lost,
            delivery_rate: self.rate(now, &stamp, &packet, &view.rtt),
            round: self.round,
            round_started,
            app_limited,
            newly_marked: 0,
            largest_sent: packet.number,
        });
        self.stamp(now, view.rtt.smoothed, ack.sent_at, in_flight);
    }

    /// The delivery rate of all members together (draft-ietf-ccwg-bbr section 4.1).
    fn rate(&self, now: Time, stamp: &Stamp, packet: &PacketSample, rtt: &RttView) -> Option<RateSample> {
        let interval = now.since(stamp.at).max(packet.sent_at.since(stamp.newest_sent_at));
        let delivered = self.delivered - stamp.delivered;
        let is_valid = interval >= rtt.min && !interval.is_zero();
        is_valid.then(|| RateSample {
            rate: Rate::from_transfer(delivered, interval),
            delivered,
            interval,
            app_limited: packet.app_limited,
        })
    }

    /// A member's packets are lost.
    pub(super) fn on_loss(
        &mut self,
        now: Time,
        loss: &MemberLoss,
        view: &MemberView,
        members: &[MemberView],
        model: &mut Bbr3,
    ) {
        self.count(view);
        let in_flight = flight(members, model);
        let count = loss.packets.clamp(1, MOST_LOST);
        let span = loss.newest_sent_at.since(loss.oldest_sent_at);
        // A number is left out: losses of two reports are apart.
        self.next_number += 1;
        let packets: Vec<PacketSample> = (0..count)
            .map(|index| {
                let sent_at = loss.oldest_sent_at + span * index / count;
                let stamp = self.at(sent_at);
                let bytes = loss.bytes / count;
                PacketSample {
                    number: self.take_number(),
                    sent_at,
                    bytes,
                    in_flight: stamp.in_flight.max(bytes),
                    delivered: stamp.delivered,
                    lost: stamp.lost,
                    app_limited: false,
                }
            })
            .collect();
        model.on_loss(&LossSample {
            now,
            space: PacketSpace::Data,
            packets: &packets,
            bytes: loss.bytes,
            prior_in_flight: in_flight + loss.bytes,
            in_flight,
            rtt: view.rtt,
            delivered: self.delivered,
            lost: self.lost,
        });
        for (index, packet) in (0..).zip(&packets) {
            let stands_for = loss.packets / count + u64::from(index < loss.packets % count);
            model.on_untold_losses(packet.sent_at, stands_for.saturating_sub(1));
        }
    }

    /// A member sends again after a pause: if no other sends, that is the end of the whole flow's pause.
    pub(super) fn on_resumed(
        &mut self,
        now: Time,
        view: &MemberView,
        members: &[MemberView],
        model: &mut Bbr3,
    ) {
        // That it had enough to send before the pause says nothing of now.
        if let Some(known) = self.known.iter_mut().find(|known| known.id == view.id) {
            known.app_limited = known.app_limited.filter(|app_limited| *app_limited);
        }
        let others = members.iter().filter(|other| other.id != view.id && other.silent_since.is_none());
        if others.map(|other| other.in_flight).sum::<ByteCount>().is_zero() {
            let number = self.take_number();
            let (bytes, prior_in_flight) = (datagram(view), ByteCount::ZERO);
            model.on_sent(&SentSample {
                now,
                space: PacketSpace::Data,
                number,
                bytes,
                prior_in_flight,
                app_limited: true,
            });
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }
}
