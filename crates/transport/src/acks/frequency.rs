//! What the ends ask of each other's acks (draft-ietf-quic-ack-frequency): who asked what last, and what of it has
//! to be sent. When to ask, and how to answer, is the ack policy's.

use posthaste_policy::sample::AckRequest;
use posthaste_units::Duration;
use posthaste_wire::Frame;
use posthaste_wire::frame::AckFrequency;

use crate::error::{PeerError, TransportErrorCode};
use crate::limits::LONGEST_ACK_DELAY;
use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// The least ack delay that a peer may ask for: a driver's timers are no finer.
pub(crate) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// Both directions of asking.
#[derive(Debug, Default)]
pub(crate) struct AckRequests {
    /// The highest sequence number that the peer has asked with.
    heard: Option<u64>,
    /// Set once the peer is known to take requests: the least delay that it can be asked for.
    peer_least_delay: Option<Duration>,
    /// The newest request and its sequence number.
    asked: Option<(u64, AckRequest)>,
    is_unsent: bool,
    /// The peer's acks wait this long from now on, as nobody has been told yet.
    agreed: Option<Duration>,
}

impl AckRequests {
    /// The peer's `min_ack_delay` parameter, in microseconds.
    pub(crate) fn set_peer_least_delay(&mut self, micros: Option<u64>) {
        self.peer_least_delay = micros.map(Duration::from_micros);
    }

    /// The least delay that the peer can be asked for, if it can be asked at all.
    pub(crate) fn peer_least_delay(&self) -> Option<Duration> {
        self.peer_least_delay
    }

    /// The peer asks. `None` if it has asked for something newer before.
    ///
    /// # Errors
    /// `PROTOCOL_VIOLATION` for a delay below what this end said it can do (section 4).
    pub(crate) fn on_frame(&mut self, frame: &AckFrequency) -> Result<Option<AckRequest>, PeerError> {
        let max_ack_delay = Duration::from_micros(frame.max_ack_delay);
        if max_ack_delay < MIN_ACK_DELAY {
            let reason = "asks for an ack delay below min_ack_delay";
            return Err(PeerError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
        }
        if self.heard.is_some_and(|heard| frame.sequence <= heard) {
            return Ok(None);
        }
        self.heard = Some(frame.sequence);
        Ok(Some(AckRequest {
            ack_eliciting_threshold: frame.ack_eliciting_threshold,
            max_ack_delay: max_ack_delay.min(LONGEST_ACK_DELAY),
            reordering_threshold: frame.reordering_threshold,
        }))
    }

    /// Asks the peer, unless that is what it has been asked already. True if it is news.
    pub(crate) fn ask(&mut self, request: AckRequest) -> bool {
        let next = match &self.asked {
            Some((_, asked)) if *asked == request => return false,
            Some((sequence, _)) => sequence + 1,
            None => 0,
        };
        self.asked = Some((next, request));
        self.is_unsent = true;
        true
    }

    /// The frame to send, if one is due.
    fn next_unsent(&self) -> Option<AckFrequency> {
        let (sequence, request) = self.asked.filter(|_| self.is_unsent)?;
        Some(AckFrequency {
            sequence,
            ack_eliciting_threshold: request.ack_eliciting_threshold,
            max_ack_delay: request.max_ack_delay.as_micros(),
            reordering_threshold: request.reordering_threshold,
        })
    }

    /// The frame that [`Self::next_unsent`] gave has been sent.
    fn on_sent(&mut self) {
        self.is_unsent = false;
    }

    /// A frame was lost: only the newest request is worth repeating.
    fn on_request_lost(&mut self, sequence: u64) {
        self.is_unsent |= self.asked.is_some_and(|(newest, _)| newest == sequence);
    }

    /// A frame has arrived: the peer's acks wait this long from now on, if no newer one is under way.
    fn on_request_acked(&mut self, sequence: u64) {
        let newest = self.asked.filter(|(newest, _)| *newest == sequence);
        self.agreed = newest.map(|(_, request)| request.max_ack_delay).or(self.agreed);
    }

    /// The delay of the peer's acks, once, if it has got a request since the last call and no newer one is under way.
    pub(crate) fn take_agreed(&mut self) -> Option<Duration> {
        self.agreed.take()
    }
}

impl FrameOwner for AckRequests {
    fn has_unsent(&self) -> bool {
        self.is_unsent && self.asked.is_some()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        if let Some(request) = self.next_unsent() {
            let record = SentFrame::AckFrequency(request.sequence);
            if writer.push(&Frame::AckFrequency(request), Some(record)) {
                self.on_sent();
            }
        }
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::AckFrequency(sequence) = *frame else { return false };
        self.on_request_acked(sequence);
        true
    }

    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        let SentFrame::AckFrequency(sequence) = *frame else { return false };
        self.on_request_lost(sequence);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(sequence: u64, micros: u64) -> AckFrequency {
        AckFrequency { sequence, ack_eliciting_threshold: 9, max_ack_delay: micros, reordering_threshold: 3 }
    }

    fn request(packets: u64) -> AckRequest {
        AckRequest {
            ack_eliciting_threshold: packets,
            max_ack_delay: Duration::from_millis(5),
            reordering_threshold: 1,
        }
    }

    #[test]
    fn only_newer_requests_hold_and_impossible_delays_are_refused() {
        let mut requests = AckRequests::default();
        assert!(requests.on_frame(&frame(3, 5000)).unwrap().is_some());
        assert_eq!(requests.on_frame(&frame(3, 6000)), Ok(None));
        assert_eq!(requests.on_frame(&frame(2, 6000)), Ok(None));
        let huge = requests.on_frame(&frame(4, u64::MAX >> 2)).unwrap().unwrap();
        assert_eq!(huge.max_ack_delay, LONGEST_ACK_DELAY);
        assert!(requests.on_frame(&frame(5, 999)).is_err());
    }

    #[test]
    fn a_request_is_sent_once_and_again_only_if_the_newest_was_lost() {
        let mut requests = AckRequests::default();
        assert_eq!(requests.next_unsent(), None);
        assert!(requests.ask(request(9)));
        assert!(!requests.ask(request(9)), "nothing new");
        assert_eq!(requests.next_unsent().map(|frame| frame.sequence), Some(0));
        requests.on_sent();
        assert_eq!(requests.next_unsent(), None);
        requests.on_request_lost(0);
        assert!(requests.next_unsent().is_some());
        assert!(requests.ask(request(5)));
        requests.on_sent();
        requests.on_request_lost(0);
        assert_eq!(requests.next_unsent(), None, "an old request is not repeated");
        requests.on_request_acked(0);
        assert_eq!(requests.take_agreed(), None);
        requests.on_request_acked(1);
        assert_eq!(requests.take_agreed(), Some(Duration::from_millis(5)));
    }
}
