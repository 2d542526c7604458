//! Passing datagrams on among endpoints that share a port.

use std::sync::Arc;
use std::task::Waker;

use posthaste_transport::{DatagramInfo, Misplaced};

use super::mailbox::Mailbox;

/// An endpoint's place among those that share its port.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Of all of them, by index.
    mailboxes: Arc<[Mailbox]>,
    index: usize,
}

impl Seat {
    /// The place of the endpoint with this index.
    pub(crate) fn among(mailboxes: Arc<[Mailbox]>, index: usize) -> Self {
        Self { mailboxes, index }
    }

    /// The place of an endpoint that has its port for itself.
    pub(crate) fn alone() -> Self {
        Self { mailboxes: Arc::new([]), index: 0 }
    }

    /// True if the port is shared.
    pub(crate) fn is_shared(&self) -> bool {
        !self.mailboxes.is_empty()
    }

    /// Passes a datagram on to its owner; false if it is lost, because that has too many to read.
    pub(crate) fn pass_on(&self, info: &DatagramInfo, misplaced: &Misplaced) -> bool {
        let owner = self.mailboxes.get(usize::from(misplaced.owner));
        owner.is_some_and(|mailbox| mailbox.put(*info, &misplaced.data))
    }

    /// Takes what others have passed on.
    pub(crate) fn take(&self) -> Vec<(DatagramInfo, bytes::BytesMut)> {
        self.mailboxes.get(self.index).map(Mailbox::take).unwrap_or_default()
    }

    /// True if something has been passed on already; if not, `waker` is woken when it is.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        self.mailboxes.get(self.index).is_some_and(|mailbox| mailbox.wait(waker))
    }
}
