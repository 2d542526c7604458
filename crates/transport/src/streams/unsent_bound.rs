//! How much a stream may leave unsent before writes to it block.

use super::send::SendHalf;
use crate::flow::SendWindow;
use crate::limits;

/// The bound on what a stream may leave unsent.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsentBound {
    limit: u64,
    /// The connection's credit, if so many streams have unsent data that it decides.
    credit: Option<u64>,
}

impl UnsentBound {
    /// The bound while `waiting` streams have unsent data.
    pub(super) fn new(limit: u64, waiting: usize, is_limits_known: bool, connection: &SendWindow) -> Self {
        let is_crowded = waiting > limits::STREAMS_THAT_BUFFER_FREELY;
        Self { limit, credit: (is_crowded && is_limits_known).then(|| connection.available()) }
    }

    pub(super) fn of(self, send: &SendHalf) -> u64 {
        match self.credit {
            None => self.limit,
            Some(credit) => {
                let credit = credit.min(send.window.available());
                self.limit.min(credit.saturating_add(limits::UNSENT_WITHOUT_CREDIT))
            }
        }
    }
}
