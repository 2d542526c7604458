//! 0-RTT packets that the network delivers before the Initial that begins their connection (RFC 9000 section 5.2.2).
//!
//! Anybody can send what looks like them, so little is kept and not for long: [`limits::EARLY_IDS`] connection IDs,
//! [`limits::EARLY_DATAGRAMS`] datagrams of each and [`limits::EARLY_BYTES`] in all, for [`limits::EARLY_AGE`]. What
//! is dropped is sent again like any lost packet. Nothing here needs a timer: what is too old goes with the next
//! datagram that comes this way.

use std::collections::VecDeque;

use bytes::BytesMut;
use posthaste_units::Time;
use posthaste_wire::ConnectionId;

use crate::limits;
use crate::packet::datagram::DatagramInfo;

/// Datagrams for one connection that has not begun.
struct Waiting {
    id: ConnectionId,
    since: Time,
    datagrams: Vec<(DatagramInfo, BytesMut)>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.datagrams.iter().map(|(_, data)| data.len()).sum()
    }
}

/// Datagrams of connections that have not begun, the oldest connection first.
#[derive(Default)]
pub(super) struct EarlyArrivals {
    waiting: VecDeque<Waiting>,
}

impl EarlyArrivals {
    /// Keeps a datagram of 0-RTT packets that was sent to `id`. False if there is no room.
    pub(super) fn keep(&mut self, now: Time, info: &DatagramInfo, id: ConnectionId, data: &[u8]) -> bool {
        self.forget_old(now);
        let bytes: usize = self.waiting.iter().map(Waiting::bytes).sum();
        if bytes + data.len() > limits::EARLY_BYTES {
            return false;
        }
        // A copy: the datagram may be a slice of something larger.
        let datagram = (*info, BytesMut::from(data));
        if let Some(known) = self.waiting.iter_mut().find(|waiting| waiting.id == id) {
            let has_room = known.datagrams.len() < limits::EARLY_DATAGRAMS;
            if has_room {
                known.datagrams.push(datagram);
            }
            return has_room;
        }
        if self.waiting.len() >= limits::EARLY_IDS {
            return false;
        }
        self.waiting.push_back(Waiting { id, since: now, datagrams: vec![datagram] });
        true
    }

    /// The connection has begun, or will not: its datagrams, in the order in which they came.
    pub(super) fn take(&mut self, now: Time, id: &ConnectionId) -> Vec<(DatagramInfo, BytesMut)> {
        self.forget_old(now);
        let index = self.waiting.iter().position(|waiting| waiting.id == *id);
        index.and_then(|index| self.waiting.remove(index)).map_or_else(Vec::new, |known| known.datagrams)
    }

    fn forget_old(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|oldest| now.since(oldest.since) > limits::EARLY_AGE) {
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Duration;

    use super::*;

    fn info() -> DatagramInfo {
        DatagramInfo { remote: "127.0.0.1:1".parse().unwrap(), local_ip: None, ecn: None }
    }

    fn id(number: usize) -> ConnectionId {
        ConnectionId::new(&number.to_be_bytes()).unwrap()
    }

    #[test]
    fn ids_datagrams_and_bytes_are_bounded() {
        let mut early = EarlyArrivals::default();
        for number in 0..10_000 {
            let is_kept = early.keep(Time::ZERO, &info(), id(number), &[1; 100]);
            assert_eq!(is_kept, number < limits::EARLY_IDS, "{number}");
        }
        for count in 1..1000 {
            let is_kept = early.keep(Time::ZERO, &info(), id(3), &[1; 100]);
            assert_eq!(is_kept, count < limits::EARLY_DATAGRAMS, "{count}");
        }
        assert_eq!(early.take(Time::ZERO, &id(3)).len(), limits::EARLY_DATAGRAMS);
        assert_eq!(early.take(Time::ZERO, &id(3)).len(), 0, "once");
        let mut early = EarlyArrivals::default();
        for number in 0..1000 {
            early.keep(Time::ZERO, &info(), id(number % 5), &vec![1; 65_507]);
        }
        let bytes: usize =
            (0..5).flat_map(|n| early.take(Time::ZERO, &id(n))).map(|(_, data)| data.len()).sum();
        assert!(bytes <= limits::EARLY_BYTES && bytes + 65_507 > limits::EARLY_BYTES, "{bytes}");
    }

    #[test]
    fn what_is_old_makes_room() {
        let mut early = EarlyArrivals::default();
        for number in 0..limits::EARLY_IDS {
            assert!(early.keep(Time::ZERO, &info(), id(number), &[1]));
        }
        let later = Time::ZERO + limits::EARLY_AGE;
        assert!(!early.keep(later, &info(), id(999), &[1]));
        assert_eq!(early.take(later, &id(0)).len(), 1);
        let later = later + Duration::from_nanos(1);
        assert_eq!(early.take(later, &id(1)).len(), 0, "too old");
        assert!(early.keep(later, &info(), id(999), &[1]));
        assert_eq!(early.waiting.len(), 1);
    }
}
