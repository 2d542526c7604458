//! A socket, and when it can be read from and written to.

#[cfg(unix)]
pub(super) use unix::Io;

#[cfg(not(unix))]
pub(super) use portable::Io;

/// What a read has taken from a socket.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken<T> {
    pub(super) value: T,
    /// There was less than there was room for, so that nothing is left.
    pub(super) is_all: bool,
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::net::UdpSocket;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use super::Taken;

    /// Resolves when the socket has an error to report. Boxed: tokio has no function that polls for errors.
    type Failing = Pin<Box<dyn Future<Output = ()> + Send>>;

    /// The runtime watches it for reading and errors alone. Watched for writing too, as tokio's own socket is, it would wake
    /// the runtime once more after each send, when the network card has taken the datagrams.
    pub(in super::super) struct Io {
        reads: Arc<AsyncFd<UdpSocket>>,
        /// An error alone, with nothing to read, makes the socket ready neither for reading nor for writing.
        failing: Mutex<Failing>,
        /// The same socket while it waits for room to write.
        writes: Mutex<Option<AsyncFd<UdpSocket>>>,
    }

    #[expect(
        deprecated,
        reason = "the successor is unsafe: it asks for a descriptor that stays open and the same, as a socket's does"
    )]
    fn watch(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket, interest)
    }

    fn failing(socket: &Arc<AsyncFd<UdpSocket>>) -> Failing {
        let socket = Arc::clone(socket);
        Box::pin(async move {
            match socket.ready(Interest::ERROR).await {
                Ok(mut ready) => ready.clear_ready(),
                // The runtime stops, which the next read reports: it is told nothing more.
                Err(_) => std::future::pending().await,
            }
        })
    }

    impl std::fmt::Debug for Io {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.debug_struct("Io").field("socket", self.socket()).finish_non_exhaustive()
        }
    }

    impl Io {
        /// Takes a socket that does not block; must be called inside a tokio runtime.
        pub(in super::super) fn new(socket: UdpSocket) -> io::Result<Self> {
            let reads = Arc::new(watch(socket, Interest::READABLE | Interest::ERROR)?);
            Ok(Self { failing: Mutex::new(failing(&reads)), reads, writes: Mutex::new(None) })
        }

        /// The socket itself.
        pub(in super::super) fn socket(&self) -> &UdpSocket {
            self.reads.get_ref()
        }

        /// Reads by `receive` as soon as there may be something, data or an error. An error of the kind `WouldBlock`, if there
        /// was not after all: call it again. Once a read has taken all, the system is asked again only when it tells of
        /// more: whatever comes after the read has begun, it tells of.
        pub(in super::super) fn poll_read<T>(
            &self,
            cx: &mut Context<'_>,
            receive: impl FnOnce(&UdpSocket) -> io::Result<Taken<T>>,
        ) -> Poll<io::Result<T>> {
            let Poll::Ready(ready) = self.reads.poll_read_ready(cx) else {
                ready!(self.poll_failing(cx));
                return Poll::Ready(receive(self.socket()).map(|taken| taken.value));
            };
            let mut ready = ready?;
            let received = receive(self.socket());
            let is_over = match &received {
                Ok(taken) => taken.is_all,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
            if is_over {
                ready.clear_ready();
            }
            Poll::Ready(received.map(|taken| taken.value))
        }

        /// Ready once for each error that the system has told of.
        fn poll_failing(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
            ready!(failing.as_mut().poll(cx));
            *failing = self::failing(&self.reads);
            Poll::Ready(())
        }

        /// Ready when there may be room to write. To be called after a write for which there was none.
        pub(in super::super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
            if writes.is_none() {
                // A second descriptor, because the runtime watches each for one set of events.
                let watched = self.socket().try_clone().and_then(|socket| watch(socket, Interest::WRITABLE));
                let Ok(watched) = watched else {
                    // No descriptor is left, or the runtime stops.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                };
                *writes = Some(watched);
            }
            let is_ready = writes.as_ref().is_none_or(|watched| watched.poll_write_ready(cx).is_ready());
            if is_ready {
                *writes = None;
                return Poll::Ready(());
            }
            Poll::Pending
        }
    }
}

#[cfg(not(unix))]
mod portable {
    use std::io;
    use std::task::{Context, Poll, ready};

    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use super::Taken;

    /// tokio's own socket.
    #[derive(Debug)]
    pub(in super::super) struct Io(UdpSocket);

    impl Io {
        /// Takes a socket that does not block; must be called inside a tokio runtime.
        pub(in super::super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            UdpSocket::from_std(socket).map(Self)
        }

        /// The socket itself.
        pub(in super::super) fn socket(&self) -> &UdpSocket {
            &self.0
        }

        /// Reads by `receive` as soon as there may be something. An error of the kind `WouldBlock`, if there was not after
        /// all: call it again.
        pub(in super::super) fn poll_read<T>(
            &self,
            cx: &mut Context<'_>,
            receive: impl FnOnce(&UdpSocket) -> io::Result<Taken<T>>,
        ) -> Poll<io::Result<T>> {
            ready!(self.0.poll_recv_ready(cx))?;
            Poll::Ready(self.0.try_io(Interest::READABLE, || receive(&self.0)).map(|taken| taken.value))
        }

        /// Ready when there may be room to write. To be called after a write for which there was none.
        pub(in super::super) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
            // Clears what the runtime remembers of an earlier room.
            let _ =
                self.0.try_io(Interest::WRITABLE, || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into()));
            self.0.poll_send_ready(cx).map(drop)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::future::poll_fn;
    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::{Io, Taken};

    /// A socket whose sends block once its peer has some datagrams to read: UDP's do only where a network card is slow.
    fn blocking_pair() -> (Io, UnixDatagram) {
        let (socket, peer) = UnixDatagram::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        peer.set_nonblocking(true).unwrap();
        (Io::new(UdpSocket::from(OwnedFd::from(socket))).unwrap(), peer)
    }

    /// Reads one datagram, which says nothing of further ones.
    fn receive(socket: &UdpSocket) -> io::Result<Taken<usize>> {
        socket.recv(&mut [0; 8]).map(|value| Taken { value, is_all: false })
    }

    fn would_block<T>(result: &io::Result<T>) -> bool {
        result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    #[tokio::test]
    async fn who_finds_no_room_is_woken_when_there_is_some_each_time() {
        let (io, peer) = blocking_pair();
        for _ in 0..3 {
            while !would_block(&io.socket().send(b"x")) {}
            let mut writable = pin!(poll_fn(|cx| io.poll_writable(cx)));
            let waited = tokio::time::timeout(Duration::from_millis(30), &mut writable).await;
            assert!(waited.is_err(), "there is no room");
            while peer.recv(&mut [0]).is_ok() {}
            tokio::time::timeout(Duration::from_secs(20), writable).await.expect("nobody woke it");
            assert!(io.socket().send(b"x").is_ok());
        }
    }

    #[tokio::test]
    async fn what_is_received_is_read_and_then_waited_for() {
        let (io, peer) = blocking_pair();
        let read = |cx: &mut Context<'_>| io.poll_read(cx, receive);
        for length in 1..4 {
            peer.send(&vec![1; length]).unwrap();
            let received = loop {
                let received = poll_fn(read).await;
                if !would_block(&received) {
                    break received;
                }
            };
            assert_eq!(received.unwrap(), length);
        }
        let mut cx = Context::from_waker(Waker::noop());
        assert!(match read(&mut cx) {
            Poll::Pending => true,
            Poll::Ready(received) => would_block(&received),
        });
        assert!(
            read(&mut cx).is_pending(),
            "a read that found nothing clears what is known of earlier datagrams"
        );
    }

    #[tokio::test]
    async fn a_read_that_took_all_is_the_last_until_more_comes() {
        let (io, peer) = blocking_pair();
        let mut cx = Context::from_waker(Waker::noop());
        let take_all = |socket: &UdpSocket| {
            let value = socket.recv(&mut [0; 8])?;
            Ok(Taken { value, is_all: true })
        };
        for _ in 0..3 {
            peer.send(b"x").unwrap();
            let read =
                tokio::time::timeout(Duration::from_secs(20), poll_fn(|cx| io.poll_read(cx, take_all)));
            assert_eq!(read.await.expect("nobody woke it").unwrap(), 1);
            let mut reads = 0;
            let read = io.poll_read(&mut cx, |socket| {
                reads += 1;
                receive(socket)
            });
            assert!(read.is_pending() && reads == 0, "the system was asked in vain");
        }
        // What comes while a read is under way is told of, although the read took all that it saw.
        peer.send(b"1").unwrap();
        let read = poll_fn(|cx| {
            io.poll_read(cx, |socket| {
                let taken = take_all(socket);
                peer.send(b"2").unwrap();
                taken
            })
        });
        assert_eq!(read.await.unwrap(), 1);
        let read = tokio::time::timeout(Duration::from_secs(20), poll_fn(|cx| io.poll_read(cx, receive)));
        assert_eq!(read.await.expect("nobody woke it").unwrap(), 1);
    }

    /// An ICMP message that nobody listens, to a socket with one peer: there is nothing to read.
    #[tokio::test]
    async fn an_error_alone_wakes_who_reads_and_is_told_once() {
        // Nobody gets port 1 without asking for it.
        let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(nobody).unwrap();
        socket.set_nonblocking(true).unwrap();
        let io = Io::new(socket).unwrap();
        for _ in 0..3 {
            let mut turns = 0;
            let mut reading = pin!(poll_fn(|cx| {
                turns += 1;
                loop {
                    match io.poll_read(cx, receive) {
                        Poll::Ready(received) if would_block(&received) => {}
                        outcome => return outcome,
                    }
                }
            }));
            let waited = tokio::time::timeout(Duration::from_millis(30), &mut reading).await;
            assert!(waited.is_err(), "{waited:?} without a cause");
            io.socket().send(b"x").unwrap();
            let told = tokio::time::timeout(Duration::from_secs(20), reading).await.expect("nobody woke it");
            assert_eq!(told.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
            assert!(turns < 10, "{turns} turns: it does not sleep");
        }
    }
}
