//! The window that a path begins with, if it is another than the start policy's own, and how often that policy raises it.

use posthaste_policy::sample::PathHistory;
use posthaste_policy::{Adjustment, Jumps, Start};
use posthaste_units::{ByteCount, Time};

use super::PathControl;

impl PathControl {
    /// Tells the start policy what is known of the path; it may begin with another window then.
    pub(crate) fn recall(&mut self, known: &PathHistory, now: Time) {
        self.recalled = Some(*known);
        self.begin_anew(|start| start.recall(known, now));
    }

    /// The client asks for this window; the start policy decides.
    pub(crate) fn on_stated_window(&mut self, window: ByteCount) {
        self.begin_anew(|start| start.on_stated_window(window));
    }

    fn begin_anew(&mut self, tell: impl FnOnce(&mut dyn Start)) {
        let before = self.start.initial_window(self.max_datagram_size);
        tell(&mut *self.start);
        let window = self.start.initial_window(self.max_datagram_size);
        if window != before {
            self.congestion.adjust(&Adjustment { window: Some(window), ..Adjustment::default() });
        }
    }

    /// The start policy's jumps since the last call.
    pub(crate) fn take_jumps(&mut self) -> Jumps {
        let all = self.start.jumps();
        let before = std::mem::replace(&mut self.counted_jumps, all);
        Jumps {
            taken: all.taken.saturating_sub(before.taken),
            undone: all.undone.saturating_sub(before.undone),
        }
    }

    /// What was known of the path at its beginning.
    pub(crate) fn recalled(&self) -> Option<PathHistory> {
        self.recalled
    }

    /// Begins with this window instead of the start policy's. For use before anything has been sent.
    pub(crate) fn begin_with(&mut self, window: ByteCount) {
        self.congestion.adjust(&Adjustment { window: Some(window), ..Adjustment::default() });
    }
}
