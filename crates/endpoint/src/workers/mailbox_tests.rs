//! The mailbox by itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use posthaste_transport::DatagramInfo;

use super::mailbox::{CAPACITY, Mailbox};

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
