//! Window updates that travel with acknowledgements: asked for when an ACK frame is about to leave, in ordinary frames
//! of the same packet, or inside the ACK frame where both ends know `ACK_WINDOW` (docs/spec/ack-window.md).
//!
//! A frame that need not be acknowledged may be lost unnoticed, and yet no sender is left waiting. What is granted with
//! an ACK is granted because something that must be acknowledged has come, and the peer repeats that until it hears an
//! ACK of it; each of those repeats the newest limits. What is granted when no ACK is due goes in frames of its own.

use posthaste_policy::sample::CreditMoment;
use posthaste_wire::frame::WindowUpdate;
use posthaste_wire::{StreamId, varint};

use super::Streams;
use super::map::Found;
use super::recv::RecvHalf;
use super::stream::Stream;
use crate::flow::{CreditContext, Surroundings};

impl Streams {
    /// Whether the peer takes `ACK_WINDOW` frames, and this end may send them.
    pub(crate) fn set_ack_window(&mut self, is_understood: bool) {
        self.riding.is_understood = is_understood;
    }

    /// True if limits travel inside ACK frames.
    pub(crate) fn rides_in_acks(&self) -> bool {
        self.riding.is_combined()
    }

    /// What a window's policy is told of the rest; `is_ack_due` says that data have arrived in the window.
    pub(super) fn surroundings(&self, is_ack_due: bool) -> Surroundings {
        Surroundings {
            allowance: self.receive_window.allowance(),
            is_ack_due,
            rides: self.riding.is_combined(),
        }
    }

    /// An ACK is about to leave: asks the credit policies of the windows that have received data since the
    /// last one, so that updates can travel with it.
    pub(crate) fn on_ack_leaving(&mut self, context: &CreditContext) {
        if self.received_since_ack.is_empty() {
            return;
        }
        self.ask_connection(CreditMoment::AckLeaving, context);
        // In the long run the type of the frame and the longest limit of the connection are in each packet.
        let mut field = self.riding.field().saturating_sub(1 + varint::len(varint::MAX));
        let around = self.surroundings(false);
        let mut ids = std::mem::take(&mut self.received_since_ack);
        // Those for which there is no room come first the next time.
        ids.retain(|id| {
            let (Found::Live(Stream { recv: Some(recv), .. }), credit) = self.map.find_with_credit(*id)
            else {
                return false;
            };
            let highest = recv.window.advertised().saturating_mul(2).min(varint::MAX);
            let Some(left) = field.checked_sub(1 + WindowUpdate::stream_len(*id, highest)) else {
                return true;
            };
            recv.is_listed_for_ack = false;
            if recv.ask(CreditMoment::AckLeaving, context, &around, credit) {
                field = left;
                let rides = recv.window.is_ride_pending();
                self.refresh(*id);
                if rides {
                    self.remember(*id);
                }
            }
            false
        });
        self.received_since_ack = ids;
    }

    /// Puts a stream before all others whose limits are repeated. One too many is told by a frame of its own.
    fn remember(&mut self, id: StreamId) {
        if let Some(last) = self.riding.remember(id) {
            self.update_recv(last, RecvHalf::update_lost);
        }
    }

    /// The peer says that a limit blocks it which is not the newest, or that one has just been raised: the ACK of that
    /// shall tell.
    pub(super) fn repeat_limits(&mut self, id: Option<StreamId>) {
        if self.riding.is_combined() {
            self.riding.begin_edition();
            if let Some(id) = id {
                self.remember(id);
            }
        }
    }

    /// The limits that the ACK frame which leaves now is to carry, with their edition; `None` for a plain ACK.
    pub(crate) fn limits_to_ride(&mut self) -> Option<(WindowUpdate, u64)> {
        if !self.riding.is_combined() {
            return None;
        }
        let recent = std::mem::take(&mut self.riding.recent);
        let mut update = WindowUpdate { max_data: self.receive_window.advertised(), streams: Vec::new() };
        let mut is_news = self.receive_window.is_ride_pending();
        let mut is_partial = false;
        for id in recent {
            let Found::Live(Stream { recv: Some(recv), .. }) = self.map.find(id) else { continue };
            if !recv.wants_credit() {
                continue;
            }
            is_news |= recv.window.is_ride_pending();
            let limit = (id, recv.window.advertised());
            update.streams.push(limit);
            if update.encoded_len() > self.riding.field() {
                update.streams.pop();
                is_partial = true;
            }
            self.riding.recent.push_back(id);
        }
        self.riding.is_partial = is_partial;
        if is_news {
            self.riding.begin_edition();
        }
        self.riding.unconfirmed().map(|edition| (update, edition))
    }

    /// The ACK frame has left, with `update` or without any: what else has been granted goes in frames of its own.
    pub(crate) fn ack_left(&mut self, update: Option<&WindowUpdate>) {
        if !self.riding.is_combined() {
            return;
        }
        if let Some(update) = update {
            self.receive_window.rode();
            for (id, _) in &update.streams {
                self.update_recv(*id, |recv| recv.window.rode());
            }
        }
        self.receive_window.missed_ride();
        for index in 0..self.riding.recent.len() {
            if let Some(id) = self.riding.recent.get(index).copied() {
                self.update_recv(id, |recv| recv.window.missed_ride());
            }
        }
    }

    /// An `ACK_WINDOW` frame was lost in a packet with more than that: limits go by themselves, if nothing newer has
    /// left since.
    pub(super) fn limits_lost(&mut self, edition: u64) {
        if self.riding.unconfirmed() != Some(edition) {
            return;
        }
        self.receive_window.update_lost();
        for id in std::mem::take(&mut self.riding.recent) {
            self.update_recv(id, RecvHalf::update_lost);
        }
    }
}
