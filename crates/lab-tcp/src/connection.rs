//! One end of one TCP connection: handshake, a sender and a receiver, and the segments between them. It knows
//! sequence numbers only; what they stand for is the tape's.

use posthaste_units::{Duration, Time};

use super::receiver::Receiver;
use super::sender::{INITIAL_TIMEOUT, MAX_TIMEOUT, Sender, SenderCounts};
use crate::TcpController;
use crate::segment::{Kind, Segment};

/// SYNs sent again before a client gives up, and answers before a server does (Linux's `tcp_syn_retries` and
/// `tcp_synack_retries`).
const MAX_SYN_RETRIES: u32 = 6;
const MAX_SYN_ACK_RETRIES: u32 = 5;

/// Linux's `tcp_syn_linear_timeouts`: after the first SYN as many are sent a second apart before the gaps double.
const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// What both ends of all connections of a host pair are built with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters {
    /// Payload bytes of a full segment beside the timestamps option.
    pub(super) mss: u64,
    /// Largest receive window.
    pub(super) receive_window: u64,
    /// The sender's controller.
    pub(super) controller: TcpController,
    /// Of what is random in it; the connection's number is added.
    pub(super) seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A client's SYN awaits its answer, or is yet to be sent.
    SynSent,
    /// A server's answer awaits its acknowledgement.
    SynReceived,
    Established,
    /// Nothing more happens.
    Dead(Death),
}

/// Why nothing more happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Death {
    /// An end wished so.
    Wished,
    /// The other end does not answer.
    GivenUp(&'static str),
}

/// What the model counts on a connection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) pure_acks: u64,
    pub(super) acks: u64,
    pub(super) ack_eliciting: u64,
    pub(super) syn_timeouts: u64,
}

/// One end.
#[derive(Debug)]
pub(super) struct Connection {
    number: u16,
    state: State,
    pub(super) sender: Sender,
    receiver: Receiver,
    /// How often the SYN or its answer was sent again.
    syn_retries: u32,
    syn_timer: Option<Time>,
    is_syn_due: bool,
    is_reset_due: bool,
    /// The kernel completes the handshake before the application hears of it and can write.
    is_bare_ack_due: bool,
    counts: Counts,
}

impl Connection {
    /// A client's end, which begins at once.
    pub(super) fn client(number: u16, parameters: &Parameters) -> Self {
        Self::new(number, parameters, State::SynSent)
    }

    /// A server's end, made by the arrival of a SYN.
    pub(super) fn server(number: u16, parameters: &Parameters) -> Self {
        Self::new(number, parameters, State::SynReceived)
    }

    fn new(number: u16, parameters: &Parameters, state: State) -> Self {
        Self {
            number,
            state,
            sender: Sender::new(
                parameters.mss,
                parameters.controller,
                parameters.seed.wrapping_add(u64::from(number)),
            ),
            receiver: Receiver::new(parameters.mss, parameters.receive_window),
            syn_retries: 0,
            syn_timer: None,
            is_syn_due: state == State::SynSent,
            is_reset_due: false,
            is_bare_ack_due: false,
            counts: Counts::default(),
        }
    }

    /// True once the handshake is complete here.
    pub(super) fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Why nothing more happens, once that is so.
    pub(super) fn death(&self) -> Option<Death> {
        match self.state {
            State::Dead(death) => Some(death),
            _ => None,
        }
    }

    /// All bytes before this have arrived in order.
    pub(super) fn arrived(&self) -> u64 {
        self.receiver.arrived()
    }

    /// Counts of segments and of the sender.
    pub(super) fn counts(&self) -> (Counts, (SenderCounts, u64, u64)) {
        (self.counts, self.sender.counts())
    }

    /// The application has taken all bytes before `consumed`.
    pub(super) fn on_consumed(&mut self, now: Time, consumed: u64) {
        if self.is_established() {
            self.receiver.on_consumed(now, consumed);
        }
    }

    /// Ends the connection at once; the other end hears of it unless that segment is lost.
    pub(super) fn reset(&mut self) {
        self.is_reset_due = self.death().is_none();
        self.state = State::Dead(Death::Wished);
    }

    /// Takes in a segment.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        if segment.is_corrupted || self.death().is_some() {
            return;
        }
        match segment.kind {
            Kind::Reset => self.state = State::Dead(Death::Wished),
            Kind::Syn if self.state == State::SynReceived => {
                self.receiver.on_syn(segment.sent_at);
                self.is_syn_due = true;
            }
            Kind::SynAck if self.state == State::SynSent => {
                self.establish(now, segment);
                self.is_bare_ack_due = true;
            }
            // The handshake's last acknowledgement was lost.
            Kind::Syn | Kind::SynAck => self.receiver.require_ack(),
            Kind::Plain => {
                match self.state {
                    State::SynReceived => self.establish(now, segment),
                    State::Established => {}
                    State::SynSent | State::Dead(_) => return,
                }
                self.sender.on_ack(now, segment);
                self.receiver.on_segment(now, segment);
            }
        }
    }

    fn establish(&mut self, now: Time, segment: &Segment) {
        self.state = State::Established;
        self.syn_timer = None;
        self.is_syn_due = false;
        // The timestamp tells even after a retry (RFC 7323 4.1).
        let rtt = now.since(segment.echo);
        let edge = segment.acknowledged + segment.window;
        self.sender.on_established(now, Some(rtt), self.syn_retries, edge);
        self.receiver.on_established(now, segment.sent_at);
    }

    /// Lets time pass.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.syn_timer.is_some_and(|at| at <= now) {
            self.on_syn_timer();
        }
        if self.is_established() {
            self.sender.on_timeout(now);
            self.receiver.on_timeout(now);
            if self.sender.has_given_up() {
                self.state = State::Dead(Death::GivenUp("retransmission was given up"));
            }
        }
    }

    fn on_syn_timer(&mut self) {
        let max = if self.state == State::SynSent { MAX_SYN_RETRIES } else { MAX_SYN_ACK_RETRIES };
        self.syn_timer = None;
        if self.syn_retries >= max {
            self.state = State::Dead(Death::GivenUp("the TCP handshake was given up"));
            return;
        }
        self.syn_retries += 1;
        self.counts.syn_timeouts += 1;
        self.is_syn_due = true;
    }

    /// When [`Self::on_timeout`] must be called.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self.state {
            State::Dead(_) => None,
            State::SynSent | State::SynReceived => self.syn_timer,
            State::Established => {
                self.sender.next_timeout().into_iter().chain(self.receiver.next_timeout()).min()
            }
        }
    }

    /// The next segment to send now; call until `None`.
    pub(super) fn poll(&mut self, now: Time) -> Option<Segment> {
        match self.state {
            State::Dead(_) => std::mem::take(&mut self.is_reset_due).then(|| self.bare(now, Kind::Reset)),
            State::SynSent | State::SynReceived => self.poll_syn(now),
            State::Established => self.poll_established(now),
        }
    }

    fn bare(&self, now: Time, kind: Kind) -> Segment {
        Segment { connection: self.number, kind, sent_at: now, ..Segment::default() }
    }

    fn poll_syn(&mut self, now: Time) -> Option<Segment> {
        if !std::mem::take(&mut self.is_syn_due) {
            return None;
        }
        let is_client = self.state == State::SynSent;
        self.syn_timer = Some(now + syn_timeout(self.syn_retries, is_client));
        self.counts.ack_eliciting += 1;
        let mut segment = self.bare(now, if is_client { Kind::Syn } else { Kind::SynAck });
        self.receiver.acknowledge(now, &mut segment, false);
        Some(segment)
    }

    fn poll_established(&mut self, now: Time) -> Option<Segment> {
        if std::mem::take(&mut self.is_bare_ack_due) {
            return Some(self.acknowledgement(now));
        }
        if let Some(span) = self.sender.poll(now) {
            let mut segment = self.bare(now, Kind::Plain);
            segment.sequence = span.start;
            segment.length = span.length();
            // Blocks do not fit beside a full payload: they leave on an acknowledgement of their own.
            let leaves_blocks = self.receiver.has_reports() && self.receiver.is_ack_due();
            self.counts.ack_eliciting += u64::from(segment.length > 0);
            self.counts.acks += u64::from(self.receiver.wants_ack());
            self.receiver.acknowledge(now, &mut segment, false);
            if leaves_blocks {
                self.receiver.require_ack();
            }
            return Some(segment);
        }
        self.receiver.is_ack_due().then(|| self.acknowledgement(now))
    }

    fn acknowledgement(&mut self, now: Time) -> Segment {
        let mut segment = self.bare(now, Kind::Plain);
        segment.sequence = self.sender.next_sequence();
        self.counts.pure_acks += 1;
        self.counts.acks += 1;
        self.receiver.acknowledge(now, &mut segment, true);
        segment
    }
}

/// How long a SYN or its answer waits after `retries` others.
fn syn_timeout(retries: u32, is_client: bool) -> Duration {
    let doublings = if is_client { retries.saturating_sub(LINEAR_SYN_TIMEOUTS) } else { retries };
    (INITIAL_TIMEOUT * (1 << doublings.min(16))).min(MAX_TIMEOUT)
}
