//! Datagrams that reached another endpoint on the port than the one that owns them.

use std::sync::PoisonError;
use std::task::Waker;

use bytes::BytesMut;
use posthaste_transport::DatagramInfo;

use crate::concurrency::{Mutex, MutexGuard};

/// Datagrams that may wait for an endpoint; further ones are lost, as they might be on the way.
pub(super) const CAPACITY: usize = 256;

/// One endpoint's.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    datagrams: Vec<(DatagramInfo, BytesMut)>,
    /// The driver while it sleeps.
    reader: Option<Waker>,
}

impl Mailbox {
    /// Copies a datagram in, so that it does not pin the memory of who received it; false if there is no room for it.
    pub(crate) fn put(&self, info: DatagramInfo, data: &[u8]) -> bool {
        let reader = {
            let mut held = self.lock();
            if held.datagrams.len() >= CAPACITY {
                return false;
            }
            held.datagrams.push((info, BytesMut::from(data)));
            held.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
        true
    }

    /// All that waits, in the order in which it came.
    pub(crate) fn take(&self) -> Vec<(DatagramInfo, BytesMut)> {
        std::mem::take(&mut self.lock().datagrams)
    }

    /// True if something waits; if not, `waker` is woken when it does.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        let mut held = self.lock();
        if held.datagrams.is_empty() {
            crate::wakers::store(&mut held.reader, waker);
        }
        !held.datagrams.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
