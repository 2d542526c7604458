//! Packet size by the state of the window, for profiles that ask for it (`ModQUIC`, section 3.2.1).
//!
//! The thesis has three states, `W_u` = 1, 0 and -1, after the window of a round trip is above, equal to or below that of
//! the round before, and names no sizes. Here a window that shrank means the least size that every path of QUIC carries
//! (RFC 9000 section 14), one that grew the largest that this path is known to carry, and one that stayed the size of
//! before.

use posthaste_units::ByteCount;

use super::PathControl;
use crate::packet::builder::MIN_INITIAL_DATAGRAM;

/// The states of one path's window, compared once a round trip.
#[derive(Debug, Default)]
pub(super) struct PacketSize {
    /// The window at the start of the last round.
    before: Option<ByteCount>,
    has_shrunk: bool,
}

impl PacketSize {
    /// A round trip begins with this window.
    pub(super) fn on_round(&mut self, window: ByteCount) {
        if let Some(before) = self.before.replace(window)
            && before != window
        {
            self.has_shrunk = window < before;
        }
    }

    /// The size of datagrams, of at most `largest` bytes.
    pub(super) fn limit(&self, largest: usize) -> usize {
        if self.has_shrunk { MIN_INITIAL_DATAGRAM.min(largest) } else { largest }
    }
}

impl PathControl {
    /// The same with packets whose size follows the window, if `is_on`.
    pub(crate) fn with_packet_size_by_state(mut self, is_on: bool) -> Self {
        self.packet_size = is_on.then(PacketSize::default);
        self
    }

    /// The size of ordinary datagrams on a path that carries `largest` bytes.
    pub(crate) fn packet_size(&self, largest: usize) -> usize {
        self.packet_size.as_ref().map_or(largest, |size| size.limit(largest))
    }

    /// A round trip has begun.
    pub(super) fn size_packets(&mut self) {
        let window = self.window();
        if let Some(size) = &mut self.packet_size {
            size.on_round(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes after these windows, of three states and bounds of 1,452 bytes.
    fn sizes(windows: &[u64]) -> Vec<usize> {
        let mut size = PacketSize::default();
        let next = |window: &u64| {
            size.on_round(ByteCount::new(*window));
            size.limit(1452)
        };
        windows.iter().map(next).collect()
    }

    #[test]
    fn a_window_that_shrank_has_small_packets_until_one_grows() {
        assert_eq!(sizes(&[10, 20, 20, 14, 14, 15, 15]), [1452, 1452, 1452, 1200, 1200, 1452, 1452]);
    }

    #[test]
    fn the_first_window_and_one_that_stays_tell_nothing() {
        assert_eq!(sizes(&[5, 5, 5]), [1452; 3]);
        assert_eq!(sizes(&[]), [0; 0]);
    }

    #[test]
    fn no_packet_is_larger_than_the_path_carries() {
        let mut size = PacketSize::default();
        size.on_round(ByteCount::new(2));
        size.on_round(ByteCount::new(1));
        assert_eq!((size.limit(1200), size.limit(1252), size.limit(9000)), (1200, 1200, 1200));
        size.on_round(ByteCount::new(2));
        assert_eq!((size.limit(1200), size.limit(9000)), (1200, 9000));
    }
}
