//! The tail of a connection: everything has been sent, and the ends of streams are under way.

use super::Streams;
use super::map::Found;
use super::send::Ending;
use super::stream::Stream;
use crate::packet::sent_frame::SentFrame;

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
}

impl Streams {
    /// True if no stream has unsent data, and at least one whose end has been sent has unacknowledged data. A stream that
    /// may go on does not count.
    pub(crate) fn is_tail(&self) -> bool {
        self.tail.unsent == 0 && self.tail.unacknowledged > 0
    }

    /// True if one of the frames carries data of a stream whose end has been sent, and which is not yet acknowledged.
    pub(crate) fn has_ending(&mut self, frames: &[SentFrame]) -> bool {
        frames.iter().any(|frame| match frame {
            SentFrame::Stream { id, start, end, fin } => match self.map.find(*id) {
                Found::Live(Stream { send: Some(send), .. }) => {
                    send.ending() == Ending::Unacknowledged && send.misses(*start, *end, *fin)
                }
                _ => false,
            },
            _ => false,
        })
    }

    /// Stream bytes sent for the first time, and again.
    pub(crate) fn sent_and_resent(&self) -> (u64, u64) {
        (self.sent, self.resent)
    }
}
