//! Datagrams that reached another endpoint on the port than the one that owns them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::BytesMut;
use posthaste_transport::DatagramInfo;

/// Datagrams that may wait for an endpoint; further ones are lost, as they might be on the way.
const CAPACITY: usize = 256;

/// One endpoint's.
#[derive(Debug, Default)]
pub(super) struct Mailbox(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    datagrams: Vec<(DatagramInfo, BytesMut)>,
    /// The driver while it sleeps.
    reader: Option<Waker>,
}

impl Mailbox {
    /// Copies a datagram in, so that it does not pin the memory of who received it.
    pub(super) fn put(&self, info: DatagramInfo, data: &[u8]) {
        let reader = {
            let mut held = self.lock();
            if held.datagrams.len() >= CAPACITY {
                return;
            }
            held.datagrams.push((info, BytesMut::from(data)));
            held.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    /// All that waits, in the order in which it came.
    pub(super) fn take(&self) -> Vec<(DatagramInfo, BytesMut)> {
        std::mem::take(&mut self.lock().datagrams)
    }

    /// True if something waits; if not, `waker` is woken when it does.
    pub(super) fn wait(&self, waker: &Waker) -> bool {
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn info() -> DatagramInfo {
        DatagramInfo { remote: SocketAddr::from(([127, 0, 0, 1], 1)), local_ip: None, ecn: None }
    }

    #[test]
    fn a_full_mailbox_loses_what_comes_and_keeps_what_is_there() {
        let mailbox = Mailbox::default();
        for byte in 0..=255 {
            mailbox.put(info(), &[byte]);
        }
        mailbox.put(info(), b"one too many");
        let taken = mailbox.take();
        assert_eq!(taken.len(), CAPACITY);
        assert!(taken.iter().zip(0..=255).all(|((_, data), byte)| data[..] == [byte]), "in their order");
        assert!(mailbox.take().is_empty());
    }

    #[test]
    fn a_reader_that_waits_is_woken_once() {
        let (mailbox, count) = (Mailbox::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        assert!(!mailbox.wait(&waker));
        mailbox.put(info(), b"a");
        mailbox.put(info(), b"b");
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.wait(&waker), "there is no need to sleep");
        assert_eq!(mailbox.take().len(), 2);
    }
}
