//! A connection over HTTP/1.1 that works while somebody who has it asks it to.
//!
//! hyper's connections are futures, usually of a task each. Here the task of the exchange polls its connection: what is
//! read for it needs no way through another task, and no wake-up of one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use http::uri::Authority;
use hyper::client::conn::http1::{Connection, SendRequest};

use crate::link::Link;
use crate::upload::Outgoing;

/// Turns of a connection on which others wait for their own.
const TURNS: usize = 16;

/// The task that has a connection, if it waits for it.
#[derive(Debug, Default)]
pub(crate) struct Owner(AtomicWaker);

impl Owner {
    /// Wakes this one from now on.
    pub(crate) fn set(&self, waker: &Waker) {
        self.0.register(waker);
    }
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

/// Wakes a connection.
#[derive(Debug)]
struct Alarm {
    /// The connection has something to do.
    is_due: AtomicBool,
    owner: Arc<Owner>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.owner.0.wake();
    }
}

/// A connection to an upstream. Nothing happens on it but in [`Self::poll_until`] and [`Self::settle`].
pub(crate) struct Driven {
    /// Whose name it was made for.
    pub(crate) name: Authority,
    connection: Pin<Box<dyn Future<Output = ()> + Send>>,
    sender: SendRequest<Outgoing>,
    alarm: Arc<Alarm>,
    /// That of `alarm`.
    wakes_connection: Waker,
    /// That of its owner: what the connection itself does needs no other turn of it.
    wakes_owner: Waker,
    is_over: bool,
}

impl Driven {
    pub(crate) fn new(
        name: Authority,
        sender: SendRequest<Outgoing>,
        connection: Connection<Link, Outgoing>,
    ) -> Self {
        let owner = Arc::<Owner>::default();
        // It has not begun.
        let alarm = Arc::new(Alarm { is_due: AtomicBool::new(true), owner: Arc::clone(&owner) });
        let connection = async {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to an upstream has ended");
            }
        };
        Self {
            name,
            connection: Box::pin(connection),
            sender,
            wakes_connection: Arc::clone(&alarm).into(),
            wakes_owner: owner.into(),
            alarm,
            is_over: false,
        }
    }

    /// What sends a request.
    pub(crate) fn sender(&mut self) -> &mut SendRequest<Outgoing> {
        &mut self.sender
    }

    /// Works until `step` is ready, which may wait for nothing but this connection. `None` if that has ended before.
    pub(crate) fn poll_until<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Option<T>> {
        // Nobody need be woken by what happens in here.
        self.alarm.owner.0.take();
        for _ in 0..TURNS {
            if let Poll::Ready(done) = step(&mut Context::from_waker(&self.wakes_owner)) {
                return Poll::Ready(Some(done));
            }
            if self.is_over {
                return Poll::Ready(None);
            }
            if !self.is_due() {
                self.alarm.owner.set(cx.waker());
                // It may have become due before.
                if !self.is_due() {
                    return Poll::Pending;
                }
                self.alarm.owner.0.take();
            }
            self.drive();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what is due and tells `next` of what comes. True if the connection can take a request.
    pub(crate) fn settle(&mut self, next: &Waker) -> bool {
        self.alarm.owner.0.take();
        for _ in 0..TURNS {
            if self.is_over || !self.is_due() {
                break;
            }
            self.drive();
        }
        self.alarm.owner.set(next);
        if self.is_due() {
            next.wake_by_ref();
        }
        !self.is_over && self.sender.is_ready()
    }

    /// Whether there is something to do on it.
    pub(crate) fn is_due(&self) -> bool {
        self.alarm.is_due.load(Ordering::Acquire)
    }

    fn drive(&mut self) {
        self.alarm.is_due.store(false, Ordering::Release);
        let cx = &mut Context::from_waker(&self.wakes_connection);
        self.is_over = self.connection.as_mut().poll(cx).is_ready();
    }

    /// Leaves the connection to a task of its own, until its exchange has ended and it is closed as its protocol wants it.
    pub(crate) fn detach(self) {
        if !self.is_over {
            tokio::spawn(self.connection);
        }
    }
}
