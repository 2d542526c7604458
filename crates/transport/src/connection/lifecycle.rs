//! The end of a connection: closing, draining, drained (RFC 9000 section 10.2).

use posthaste_wire::frame::CloseFrame;

/// Where a connection stands between its first packet and being forgotten.
#[derive(Debug)]
pub(crate) enum Lifecycle {
    /// Packets flow.
    Open,
    /// This end has closed; it answers what still arrives with its close.
    Closing(Box<Closing>),
    /// The peer has closed, or a reset or the idle timeout ended it: nothing is sent any more.
    Draining,
    /// The time for stragglers is over: the connection can be forgotten.
    Drained,
}

/// The closing state: a close to repeat, ever more rarely.
#[derive(Debug)]
pub(crate) struct Closing {
    /// What to send.
    pub(crate) frame: CloseFrame,
    is_due: bool,
    received: u32,
    answer_after: u32,
}

impl Lifecycle {
    /// Enters the closing state, with the close due at once.
    pub(crate) fn close(&mut self, frame: CloseFrame) {
        if self.is_open() {
            let closing = Closing { frame, is_due: true, received: 0, answer_after: 1 };
            *self = Self::Closing(Box::new(closing));
        }
    }

    /// True while neither end has closed.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// True once the connection can be forgotten.
    pub(crate) fn is_drained(&self) -> bool {
        matches!(self, Self::Drained)
    }

    /// A datagram arrived. In the closing state the close becomes due again after 1, 2, 4, ... datagrams, so
    /// that two closed ends do not answer each other for ever (section 10.2.1).
    pub(crate) fn on_datagram(&mut self) {
        if let Self::Closing(closing) = self {
            closing.received += 1;
            if closing.received >= closing.answer_after {
                closing.received = 0;
                closing.answer_after = closing.answer_after.saturating_mul(2);
                closing.is_due = true;
            }
        }
    }

    /// The close to send now, if one is due; it is then no longer.
    pub(crate) fn take_due_close(&mut self) -> Option<CloseFrame> {
        match self {
            Self::Closing(closing) if closing.is_due => {
                closing.is_due = false;
                Some(closing.frame.clone())
            }
            _ => None,
        }
    }
}
