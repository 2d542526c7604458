//! Priorities of requests, independent of the order in which request, header and `PRIORITY_UPDATE` arrive.

use std::collections::{BTreeMap, VecDeque};

use crate::limits::MAX_REMEMBERED_UPDATES;
use crate::priority::Priority;

/// Priorities of a connection's requests at a server (RFC 9218 section 7).
///
/// An update overrides the header field, even one that is read later. Updates for requests that have not arrived are
/// stored, up to [`MAX_REMEMBERED_UPDATES`]; those for finished requests are ignored.
#[derive(Debug, Default)]
pub struct Priorities {
    /// Requests in progress, in the order of their stream IDs: what the last update said.
    current: VecDeque<(u64, Option<Priority>)>,
    /// What the last updates said of requests that have not arrived, by stream ID.
    early: BTreeMap<u64, Priority>,
    /// The lowest stream ID that has not arrived.
    next: u64,
}

impl Priorities {
    /// Registers the request on `stream`. Requests arrive in the order of their streams; each is reported once.
    pub fn on_arrival(&mut self, stream: u64) -> Option<Priority> {
        self.next = self.next.max(stream.saturating_add(4));
        let update = if self.early.is_empty() { None } else { self.early.remove(&stream) };
        self.current.push_back((stream, update));
        update
    }

    /// Returns the effective priority of the request on `stream`: the last update, or else `priority` from its header.
    pub fn on_header(&self, stream: u64, priority: Priority) -> Priority {
        let update = self.place(stream).and_then(|place| self.current.get(place)?.1);
        update.unwrap_or(priority)
    }

    /// Applies an update for the request on `stream`; returns true if the request is in progress, and its new priority.
    pub fn on_update(&mut self, stream: u64, priority: Priority) -> bool {
        let current = self.place(stream).and_then(|place| self.current.get_mut(place));
        if let Some((_, update)) = current {
            *update = Some(priority);
            return true;
        }
        // spec: rfc9218 7 latest-update-kept
        let is_known = self.early.contains_key(&stream);
        if stream >= self.next && (is_known || self.early.len() < MAX_REMEMBERED_UPDATES) {
            self.early.insert(stream, priority);
        }
        false
    }

    /// Removes the finished request on `stream`.
    pub fn on_end(&mut self, stream: u64) {
        if let Some(place) = self.place(stream) {
            self.current.remove(place);
        }
        if self.current.is_empty() {
            self.current = VecDeque::new();
        }
    }

    fn place(&self, stream: u64) -> Option<usize> {
        self.current.binary_search_by_key(&stream, |(stream, _)| *stream).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: Priority = Priority { urgency: 0, incremental: false };
    const LOW: Priority = Priority { urgency: 7, incremental: true };

    #[test]
    fn an_update_beats_the_header_whichever_comes_first() {
        // spec: rfc9218 7 latest-update-kept
        let mut priorities = Priorities::default();
        assert!(!priorities.on_update(4, LOW), "the request has not arrived");
        assert_eq!(priorities.on_arrival(0), None);
        assert_eq!(priorities.on_arrival(4), Some(LOW));
        assert_eq!(priorities.on_header(4, HIGH), LOW);
        assert_eq!(priorities.on_header(0, HIGH), HIGH);
        assert!(priorities.on_update(0, LOW));
        assert_eq!(priorities.on_header(0, HIGH), LOW);
        assert!(priorities.on_update(0, HIGH), "the last counts");
        assert_eq!(priorities.on_header(0, LOW), HIGH);
    }

    #[test]
    fn updates_for_the_past_are_dropped_and_those_for_the_future_bounded() {
        let mut priorities = Priorities::default();
        priorities.on_arrival(0);
        priorities.on_end(0);
        assert!(!priorities.on_update(0, HIGH));
        assert!(priorities.current.is_empty() && priorities.early.is_empty());
        for number in 1..2000 {
            priorities.on_update(number * 4, HIGH);
        }
        assert_eq!(priorities.early.len(), MAX_REMEMBERED_UPDATES);
        assert_eq!(priorities.on_arrival(4), Some(HIGH));
        priorities.on_end(4);
        priorities.on_update(8000, LOW);
        assert_eq!(priorities.early.len(), MAX_REMEMBERED_UPDATES, "there is room for another");
        priorities.on_update(8, LOW);
        assert_eq!(priorities.on_arrival(8), Some(LOW), "what is remembered can be changed");
    }
}
