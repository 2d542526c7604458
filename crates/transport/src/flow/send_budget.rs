//! The send budget: how much all connections of an endpoint together keep until it is acknowledged.
//!
//! [`LEAST_KEPT`] a connection is not counted: each may always keep that, so that none waits for another's peer. What
//! goes beyond is shared as the receive budget is: a connection may take as much as it leaves over. A peer that
//! acknowledges nothing, or grants more than it takes, costs the budget's share and no more.

use std::sync::Arc;

use posthaste_units::ByteCount;

use crate::flow::shared_memory::{Pool, Share};
use crate::limits::LEAST_KEPT;

/// Shares are taken and given back in steps of so many bytes, so that not every packet touches what all threads share.
const STEP: u64 = 64 * 1024;

/// Bytes of stream data that are kept until they are acknowledged, over all connections that share it. Cloning shares
/// it.
#[derive(Clone, Debug)]
pub struct SendBudget(Arc<Pool>);

impl SendBudget {
    /// The budget of a configuration that says nothing: 1 GiB.
    pub const DEFAULT: ByteCount = ByteCount::new(1 << 30);

    /// A budget of so many bytes; 64 KiB each connection may always keep in addition.
    pub fn new(bytes: ByteCount) -> Self {
        Self(Arc::new(Pool::new(bytes.get())))
    }

    /// How many bytes it is.
    pub fn capacity(&self) -> ByteCount {
        ByteCount::new(self.0.capacity())
    }

    /// How many of them are taken: never more than [`Self::capacity`].
    pub fn taken(&self) -> ByteCount {
        ByteCount::new(self.0.taken())
    }

    /// A share for one more connection.
    pub(crate) fn open(&self) -> SendShare {
        SendShare(Share::of(&self.0))
    }
}

impl Default for SendBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

/// What one connection holds of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct SendShare(Share);

impl SendShare {
    /// How much the connection may keep now.
    pub(crate) fn allowance(&self) -> u64 {
        LEAST_KEPT.saturating_add(self.0.allowance())
    }

    /// What it holds of the budget.
    pub(crate) fn held(&self) -> u64 {
        self.0.held()
    }

    /// Makes the share `bytes` of the budget, as far as there are any: whole steps. Returns how many it is.
    pub(crate) fn hold(&mut self, bytes: u64) -> u64 {
        self.0.hold(bytes.checked_next_multiple_of(STEP).unwrap_or(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_later_finds_something_and_all_is_given_back() {
        let budget = SendBudget::new(ByteCount::new(64 << 20));
        let mut shares: Vec<SendShare> = (0..100).map(|_| budget.open()).collect();
        for share in &mut shares {
            let allowance = share.allowance();
            assert!(allowance >= LEAST_KEPT && share.hold(allowance - LEAST_KEPT) == share.held());
            assert!(budget.taken() <= budget.capacity());
        }
        assert!(shares[0].hold(u64::MAX >> 1) >= 32 << 20);
        assert_eq!(budget.taken(), budget.capacity());
        assert_eq!(budget.open().hold(10), 0, "nothing is left");
        drop(shares);
        assert_eq!(budget.taken(), ByteCount::ZERO);
    }

    #[test]
    fn nobody_keeps_more_than_there_is() {
        let budget = SendBudget::new(ByteCount::new(1 << 20));
        let (mut one, mut other) = (budget.open(), budget.open());
        assert_eq!(one.hold(u64::MAX >> 1), 1 << 20);
        assert_eq!(other.hold(1 << 30), 0);
        assert_eq!(other.allowance(), LEAST_KEPT);
        one.hold(0);
        assert_eq!(other.allowance(), LEAST_KEPT + (1 << 19));
        assert_eq!(budget.taken(), ByteCount::ZERO);
    }
}
