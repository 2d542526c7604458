//! What window and pacer let out at one moment, and what room a window has.

use posthaste_units::{ByteCount, Time};

/// Up to so many datagrams a window's rest is worth a datagram of its own size. Beyond, it is less than 6 % of the
/// window, and batches of one size are worth more.
const SMALL_WINDOW_DATAGRAMS: u64 = 16;

/// The least rest that is used, as a part of a datagram: one in so many. It is the half below which RFC 1122 section
/// 4.2.3.4 calls a segment silly: whoever sends less pays a header, and a chance of being lost, for too little.
const LEAST_REST: u64 = 2;

/// What may leave now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Bytes of in-flight packets: zero, a whole number of full datagrams, or one smaller datagram ([`room`]).
    /// Packets of ACK alone and probes need none.
    pub(crate) bytes: ByteCount,
    /// What keeps `bytes` from being more.
    pub(crate) limited_by: Limit,
}

/// What bounds a [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The congestion window: only an ack or a loss makes room.
    Window,
    /// The pacer.
    Pacer {
        /// When to ask again, once the budget has been used.
        until: Time,
    },
}

/// Bytes that may join the flight: whole datagrams, and when none fits, what is left of a small window.
///
/// Strict, as RFC 9002 section 7 demands: a packet that would take the flight beyond the window must wait. But half a
/// datagram is what a window of whole datagrams leaves unused on average, an eighth of a window of four; so the rest
/// goes out as a datagram of its own size, if it is worth one. An empty pipe always lets a full one through.
pub(crate) fn room(window: ByteCount, in_flight: ByteCount, datagram: ByteCount) -> ByteCount {
    // spec: rfc9002 7 within-window
    let rest = window - in_flight;
    if in_flight.is_zero() {
        return whole_datagrams(rest.max(datagram), datagram);
    }
    let whole = whole_datagrams(rest, datagram);
    let is_worth_while = window < datagram * SMALL_WINDOW_DATAGRAMS && rest * LEAST_REST >= datagram;
    if whole.is_zero() && is_worth_while { rest } else { whole }
}

/// `bytes` down to a whole number of datagrams.
pub(crate) fn whole_datagrams(bytes: ByteCount, datagram: ByteCount) -> ByteCount {
    let size = datagram.get().max(1);
    ByteCount::new(bytes.get() - bytes.get() % size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_is_used_to_its_end_and_never_beyond() {
        // spec: rfc9002 7 within-window
        // (window, in flight) -> room, with datagrams of 1,200 bytes
        let table = [
            ((12_000, 0), 12_000),
            ((12_000, 10_800), 1200),
            ((12_700, 0), 12_000),
            // Whole datagrams first, then the rest if it is half of one.
            ((4_400, 1_200), 2_400),
            ((4_400, 3_600), 800),
            ((4_200, 3_600), 600),
            ((4_199, 3_600), 0),
            ((12_000, 10_801), 1199),
            ((12_000, 12_000), 0),
            ((12_000, 50_000), 0),
            // Of a window of sixteen and more the rest stays.
            ((19_199, 18_000), 1_199),
            ((19_200, 18_001), 0),
            // An empty pipe lets one through, whatever the policy says.
            ((0, 0), 1200),
            ((700, 0), 1200),
        ];
        for ((window, in_flight), expected) in table {
            let room = room(ByteCount::new(window), ByteCount::new(in_flight), ByteCount::new(1200));
            assert_eq!(room.get(), expected, "window {window}, in flight {in_flight}");
        }
    }
}
