//! Who may work at the same time: slots for requests, and places for responses that wait for their clients.
//!
//! A request holds a slot while its service works and while the transport takes its response. When the client is what it
//! waits for, it gives the slot to others and takes one of the places instead. So clients that read slowly, or not at all,
//! use up places and no slots; and where places run out, the response that has waited longest for its client ends.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use posthaste_units::client_network;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::ServerOptions;

/// `least_wait` of a server.
const LEAST_WAIT: Duration = Duration::from_secs(5);

/// Shares of clients that are gone are looked for when there are twice as many as were left the last time, and this many.
const LEAST_SHARES: usize = 64;

/// The slots of a server and its places.
pub(super) struct Slots {
    all: Arc<Semaphore>,
    per_client: usize,
    shares: Mutex<Shares>,
    places: Mutex<Places>,
}

/// The slots that a client may have, by its address.
#[derive(Default)]
struct Shares {
    of: BTreeMap<IpAddr, Weak<Semaphore>>,
    /// So many are looked through for those that are gone.
    limit: usize,
}

struct Places {
    most: usize,
    /// How long a response waits at least, before others can need its place more.
    least_wait: Duration,
    /// By number, in the order in which they were taken. Most are given back soon: few are moved for it, as those that stay
    /// are in front.
    taken: VecDeque<(u64, Place)>,
    next: u64,
}

struct Place {
    since: Instant,
    /// Who waits, to be woken when another needs the place, which is gone then.
    waiting: Option<Waker>,
}

/// The right to work.
struct Slot {
    _of_client: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// What became of a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited<T> {
    Done(T),
    /// Another response needed the place.
    Evicted,
}

impl Slots {
    pub(super) fn new(options: &ServerOptions) -> Self {
        let slots = options.max_requests.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            all: Arc::new(Semaphore::new(slots)),
            per_client: options.max_requests_per_client.clamp(1, slots),
            shares: Mutex::default(),
            places: Mutex::new(Places::new(options.max_stalled)),
        }
    }

    /// A seat for a request of this client, with a slot as soon as there is one.
    pub(super) async fn seat(&self, client: IpAddr) -> Seat<'_> {
        let mut seat = Seat { slots: self, share: self.share(client), slot: None };
        seat.take_slot().await;
        seat
    }

    /// A seat for what a client is told at once; it needs no slot.
    pub(super) fn seat_without_slot(&self, client: IpAddr) -> Seat<'_> {
        Seat { slots: self, share: self.share(client), slot: None }
    }

    fn share(&self, client: IpAddr) -> Arc<Semaphore> {
        let mut shares = lock(&self.shares);
        let client = client_network(client);
        if let Some(share) = shares.of.get(&client).and_then(Weak::upgrade) {
            return share;
        }
        if shares.of.len() >= shares.limit.max(LEAST_SHARES) {
            shares.of.retain(|_, share| share.strong_count() > 0);
            shares.limit = 2 * shares.of.len();
        }
        let share = Arc::new(Semaphore::new(self.per_client));
        shares.of.insert(client, Arc::downgrade(&share));
        share
    }
}

impl Places {
    fn new(most: usize) -> Self {
        Self { most: most.max(1), least_wait: LEAST_WAIT, taken: VecDeque::new(), next: 0 }
    }

    /// Takes a place, if need be from the one who has waited longest, if that is long. Otherwise an error says from when on
    /// that is so.
    fn take(&mut self, now: Instant) -> Result<u64, Instant> {
        if self.taken.len() >= self.most
            && let Some((_, first)) = self.taken.front_mut()
        {
            let until = first.since + self.least_wait;
            if now < until {
                return Err(until);
            }
            if let Some(waiting) = first.waiting.take() {
                waiting.wake();
            }
            self.taken.pop_front();
        }
        let number = self.next;
        self.next += 1;
        self.taken.push_back((number, Place { since: now, waiting: None }));
        Ok(number)
    }

    /// Gives a place back, if it was not taken away.
    fn leave(&mut self, number: u64) {
        if let Some(index) = self.index(number) {
            self.taken.remove(index);
        }
    }

    fn index(&self, number: u64) -> Option<usize> {
        self.taken.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    /// Ready when another has needed the place.
    fn poll_lost(&mut self, number: u64, cx: &Context<'_>) -> Poll<()> {
        let place = self.index(number).and_then(|index| self.taken.get_mut(index));
        let Some((_, place)) = place else { return Poll::Ready(()) };
        match &mut place.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            None => place.waiting = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// A request, and the slot that it has while it needs one.
pub(super) struct Seat<'a> {
    slots: &'a Slots,
    share: Arc<Semaphore>,
    slot: Option<Slot>,
}

impl Seat<'_> {
    async fn take_slot(&mut self) {
        // Its own share first: who waits for that holds up nobody else. Neither semaphore is ever closed.
        let Ok(of_client) = acquire(&self.share).await else { return };
        let Ok(of_all) = acquire(&self.slots.all).await else { return };
        self.slot = Some(Slot { _of_client: of_client, _of_all: of_all });
    }

    /// Nothing is left to work on: what is still waited for needs no slot.
    pub(super) fn give_back(&mut self) {
        self.slot = None;
    }

    /// Waits for the client. If that takes time, the slot serves others meanwhile, as soon as there is a place.
    pub(super) async fn wait<T>(&mut self, mut operation: Pin<&mut impl Future<Output = T>>) -> Waited<T> {
        if let Poll::Ready(done) = futures::poll!(operation.as_mut()) {
            return Waited::Done(done);
        }
        let number = loop {
            let taken = lock(&self.slots.places).take(Instant::now());
            match taken {
                Ok(place) => break place,
                // Nobody waits for anything that this one has.
                Err(_) if self.slot.is_none() => return Waited::Done(operation.await),
                Err(until) => tokio::select! {
                    biased;
                    done = operation.as_mut() => return Waited::Done(done),
                    () = sleep_until(until) => {}
                },
            }
        };
        let _place = Leaving { slots: self.slots, number };
        let had_slot = self.slot.take().is_some();
        // The operation has just been polled, and will wake this task.
        let mut is_polled = true;
        let done = poll_fn(|cx| {
            if !std::mem::take(&mut is_polled)
                && let Poll::Ready(done) = operation.as_mut().poll(cx)
            {
                return Poll::Ready(Some(done));
            }
            lock(&self.slots.places).poll_lost(number, cx).map(|()| None)
        });
        let Some(done) = done.await else { return Waited::Evicted };
        if had_slot {
            self.take_slot().await;
        }
        Waited::Done(done)
    }
}

/// A permit, mostly at once. Those that wait come first: what is given back is theirs before it can be had here.
async fn acquire(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, AcquireError> {
    match Arc::clone(semaphore).try_acquire_owned() {
        Ok(permit) => Ok(permit),
        Err(_) => Arc::clone(semaphore).acquire_owned().await,
    }
}

/// Gives a place back.
struct Leaving<'a> {
    slots: &'a Slots,
    number: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        lock(&self.slots.places).leave(self.number);
    }
}

/// The data behind the locks are whole after every call, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
