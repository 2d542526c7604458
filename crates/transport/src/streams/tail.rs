//! The tail of a connection: everything has been sent, and the ends of streams are under way.

use super::send::Ending;

/// Streams by how far their ends are.
#[derive(Debug, Default)]
pub(super) struct Tail {
    unsent: usize,
    unacknowledged: usize,
}

impl Tail {
    /// Counts a stream as `to` instead of as `counted`.
    pub(super) fn change(&mut self, counted: &mut Ending, to: Ending) {
        if *counted == to {
            return;
        }
        if let Some(count) = self.count(*counted) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.count(to) {
            *count += 1;
        }
        *counted = to;
    }

    fn count(&mut self, ending: Ending) -> Option<&mut usize> {
        match ending {
            Ending::Open => None,
            Ending::Unsent => Some(&mut self.unsent),
            Ending::Unacknowledged => Some(&mut self.unacknowledged),
        }
    }

    /// True if no stream has unsent data, and at least one whose end has been sent has unacknowledged data.
    pub(super) fn is_reached(&self) -> bool {
        self.unsent == 0 && self.unacknowledged > 0
    }
}
