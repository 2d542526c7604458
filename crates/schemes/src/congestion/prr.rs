//! Proportional rate reduction (RFC 9937): how much may be in flight while a loss is being recovered from.
//!
//! - Claims: the flight shrinks over the whole round trip, in step with what arrives, instead of in a silence at its
//!   start; and where losses have emptied the path below the new window, it is refilled no faster than data arrive.
//! - Source: RFC 9937 section 5. Its names are in the comments. A QUIC recovery period ends one round trip after it
//!   began (RFC 9002 section 7.3.2); there is no cumulative acknowledgment, so an ack is "safe" if no loss is found
//!   with it.
//! - Use when: always; `recovery = "at_once"` is RFC 9002's letter, and the baseline.
//! - Breaks when: losses are random and heavy: a window of losses is not refilled at once.

use posthaste_units::ByteCount;

/// What one ACK frame has delivered, and what it leaves in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Delivery {
    /// Bytes newly acknowledged (`DeliveredData`).
    pub(super) newly: ByteCount,
    /// Bytes in flight after it, without what is known to be lost (`inflight`).
    pub(super) in_flight: ByteCount,
}

/// One recovery period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prr {
    /// The window to end with (`ssthresh`).
    target: ByteCount,
    /// The flight to begin with (`RecoverFS`).
    flight: ByteCount,
    /// Bytes delivered in recovery (`prr_delivered`).
    delivered: ByteCount,
    /// Bytes sent in recovery (`prr_out`).
    out: ByteCount,
    /// A datagram (`MSS`).
    datagram: ByteCount,
    /// `cwnd`.
    window: ByteCount,
}

impl Prr {
    /// A period that `delivery` has begun, towards a window of `target`; `flight` is what was in flight before that
    /// ack and before anything was declared lost.
    pub(super) fn begin(
        target: ByteCount,
        flight: ByteCount,
        delivery: Delivery,
        datagram: ByteCount,
    ) -> Self {
        let mut period = Self {
            target,
            flight: flight.max(ByteCount::new(1)),
            delivered: delivery.newly,
            out: ByteCount::ZERO,
            datagram,
            window: ByteCount::ZERO,
        };
        period.set_window(delivery, false);
        period
    }

    /// A packet leaves.
    pub(super) fn on_sent(&mut self, bytes: ByteCount) {
        self.out += bytes;
    }

    /// An ack arrives that has revealed no loss yet.
    pub(super) fn on_ack(&mut self, delivery: Delivery) {
        self.delivered += delivery.newly;
        self.set_window(delivery, true);
    }

    /// More losses of this period are found: with the ack that [`Self::on_ack`] was told of, or (`newly` is zero)
    /// without one.
    pub(super) fn on_loss(&mut self, delivery: Delivery) {
        self.set_window(delivery, false);
    }

    fn set_window(&mut self, delivery: Delivery, is_safe: bool) {
        self.window = delivery.in_flight + self.send_count(delivery, is_safe);
    }

    /// `SndCnt`: the bytes that may leave now.
    fn send_count(&self, delivery: Delivery, is_safe: bool) -> ByteCount {
        let count = if delivery.in_flight > self.target {
            // Proportional rate reduction: of what was in flight, as much is sent as the target is of it.
            self.share() - self.out
        } else {
            // The conservative bound: what has arrived may leave again. In good progress one datagram more, which
            // is slow start towards the target.
            let bound = (self.delivered - self.out).max(delivery.newly);
            let bound = if is_safe { bound + self.datagram } else { bound };
            bound.min(self.target - delivery.in_flight)
        };
        if self.out.is_zero() && count < self.datagram {
            // The retransmission that recovery begins with. (Less than a datagram cannot leave.)
            return self.datagram;
        }
        count
    }

    /// `CEIL(prr_delivered * ssthresh / RecoverFS)`.
    fn share(&self) -> ByteCount {
        let wide = u128::from(self.delivered.get()) * u128::from(self.target.get());
        ByteCount::new(u64::try_from(wide.div_ceil(u128::from(self.flight.get()))).unwrap_or(u64::MAX))
    }

    /// Most bytes that may be in flight now.
    pub(super) fn window(&self) -> ByteCount {
        self.window
    }
}

#[cfg(test)]
mod tests;
