//! The receive budget: how much all peers of an endpoint together may send without any of it having been read.
//!
//! Half of it is set aside, [`LEAST_GRANT`] for each connection, so that none is ever left without; connections for
//! which there is no such part are refused. The other half is shared: a connection may take as much of it as it leaves
//! over, so that whoever comes later finds something however much the others want. What a peer does bears on none of
//! that: it is granted what the account holds, before it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_units::ByteCount;
use posthaste_wire::Side;

use crate::flow::shared_memory::{Pool, Share, take};
use crate::limits::LEAST_GRANT;

/// A new connection of a client may take this part of what nobody has taken: peers that have not shown anything yet must
/// not take it all, however many they are.
const OPENING_SHARE: u64 = 16;

/// A new connection of a server may have this part of what is shared: 256 KiB of [`ReceiveBudget::DEFAULT`], which hardly
/// a client's first flight fills.
const SERVERS_OPENING_SHARE: u64 = 2048;

/// Bytes that peers may have under way or unread, over all connections that share it. Cloning shares it.
///
/// What counts is what has been granted on each connection (`MAX_DATA`, or the transport parameter) and has not been
/// read yet, sent or not. Limits of streams lie within their connection's. It counts bytes of streams: what keeping
/// them costs beside, where datagrams arrive out of order, has bounds of its own.
#[derive(Clone, Debug)]
pub struct ReceiveBudget(Arc<Ledger>);

#[derive(Debug)]
struct Ledger {
    /// Connections for which a part can be set aside.
    places: u64,
    places_taken: AtomicU64,
    /// Bytes that are shared.
    shared: Arc<Pool>,
}

impl ReceiveBudget {
    /// The budget of a configuration that says nothing: 1 GiB, which is 32,768 connections at the least.
    pub const DEFAULT: ByteCount = ByteCount::new(1 << 30);
    /// The least budget: two connections.
    pub const LEAST: ByteCount = ByteCount::new(4 * LEAST_GRANT);

    /// A budget of so many bytes; below [`Self::LEAST`] it is that.
    pub fn new(bytes: ByteCount) -> Self {
        let bytes = bytes.max(Self::LEAST).get();
        let places = bytes / 2 / LEAST_GRANT;
        Self(Arc::new(Ledger {
            places,
            places_taken: AtomicU64::new(0),
            shared: Arc::new(Pool::new(bytes - places * LEAST_GRANT)),
        }))
    }

    /// How many bytes it is.
    pub fn capacity(&self) -> ByteCount {
        ByteCount::new(self.0.places * LEAST_GRANT + self.0.shared.capacity())
    }

    /// How many of them are set aside or taken: never more than [`Self::capacity`].
    pub fn taken(&self) -> ByteCount {
        let places = self.0.places_taken.load(Ordering::Relaxed);
        ByteCount::new(places * LEAST_GRANT + self.0.shared.taken())
    }

    /// A share of what is shared, for what a connection keeps beyond what it has granted.
    pub(crate) fn open_kept(&self) -> Share {
        Share::of(&self.0.shared)
    }

    /// An account for one more connection; `None` if there is no place left.
    pub(crate) fn open(&self) -> Option<Account> {
        let Ledger { places, places_taken, shared } = &*self.0;
        take(places_taken, 1, *places).then(|| Account {
            ledger: Arc::clone(&self.0),
            extra: Share::of(shared),
            first: 0,
        })
    }
}

impl Default for ReceiveBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

/// What one connection holds of the budget; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Account {
    ledger: Arc<Ledger>,
    /// What it has taken of the shared part.
    extra: Share,
    /// Bytes that have come before more than the first grant is worth a frame: a sender that doubles its rate each round
    /// trip is granted more in time. Zero where the first grant was all that was wanted.
    first: u64,
}

impl Account {
    /// Holds what is granted in the transport parameters: `wanted` or, where that is more, what a new connection of this
    /// side may have. A server's grants are the same however many connections it has, or else what is set aside for
    /// each: the sessions that it issues are bound to them ([`crate::handshake::sessions`]). What a client sends
    /// beyond is granted as it comes.
    pub(crate) fn grant_first(&mut self, side: Side, wanted: u64) -> u64 {
        let shared = match side {
            Side::Client => self.extra.free() / OPENING_SHARE,
            // Those that only wait leave half of it to those that send.
            Side::Server if self.extra.free() < self.ledger.shared.capacity() / 2 => 0,
            Side::Server => self.ledger.shared.capacity() / SERVERS_OPENING_SHARE,
        };
        let shared = if shared < LEAST_GRANT { 0 } else { shared };
        let mut granted = wanted.min(LEAST_GRANT + shared);
        if self.hold(granted) < granted {
            granted = self.hold(granted.min(LEAST_GRANT));
        }
        self.first = if granted < wanted { granted / 4 } else { 0 };
        granted
    }

    /// Whether a peer that has sent so many bytes may use more than it was granted first: most send a request, and
    /// need no frame that grants them more.
    pub(crate) fn is_more_of_use(&self, received: u64) -> bool {
        received >= self.first
    }

    /// How much may be granted and unread now: of the shared part as much as is left over then.
    pub(crate) fn allowance(&self) -> u64 {
        LEAST_GRANT + self.extra.allowance()
    }

    /// Makes the account hold `bytes`, or as many as there are. Returns how many it holds.
    pub(crate) fn hold(&mut self, bytes: u64) -> u64 {
        let wanted = bytes.saturating_sub(LEAST_GRANT);
        let extra = self.extra.hold(wanted);
        if extra == wanted { bytes } else { LEAST_GRANT + extra }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.ledger.places_taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn budget(bytes: u64) -> ReceiveBudget {
        ReceiveBudget::new(ByteCount::new(bytes))
    }

    #[test]
    fn each_connection_has_its_place_and_those_beyond_are_refused() {
        let budget = budget(MIB);
        let accounts: Vec<Account> = std::iter::from_fn(|| budget.open()).collect();
        assert_eq!(accounts.len() as u64, MIB / 2 / LEAST_GRANT);
        assert_eq!(budget.taken(), ByteCount::new(MIB / 2));
        drop(accounts);
        assert_eq!(budget.taken(), ByteCount::ZERO);
        assert!(budget.open().is_some());
        assert_eq!(ReceiveBudget::new(ByteCount::ZERO).capacity(), ReceiveBudget::LEAST);
    }

    #[test]
    fn whoever_comes_later_finds_something() {
        let budget = budget(2 * MIB);
        let mut accounts = Vec::new();
        for _ in 0..20 {
            let mut account = budget.open().unwrap();
            assert!(account.grant_first(Side::Client, u64::MAX) > LEAST_GRANT);
            accounts.push(account);
        }
        // In the long run all have the same: each takes what it may, again and again.
        for _ in 0..200 {
            for account in &mut accounts {
                account.hold(0);
                account.hold(account.allowance());
            }
        }
        let extras: Vec<u64> = accounts.iter().map(|account| account.allowance() - LEAST_GRANT).collect();
        let even = MIB / 21;
        assert!(extras.iter().all(|extra| extra.abs_diff(even) < even / 10), "{extras:?}, even {even}");
    }

    #[test]
    fn a_server_grants_the_same_first_however_many_connections_it_has() {
        let budget = budget(1024 * MIB);
        let first = |_| {
            let mut account = budget.open().unwrap();
            (account.grant_first(Side::Server, 3 * MIB), account)
        };
        let (granted, accounts): (Vec<u64>, Vec<Account>) = (0..5000).map(first).unzip();
        let (with_room, without) = granted.split_at(SERVERS_OPENING_SHARE as usize / 2 + 1);
        assert!(with_room.iter().all(|bytes| *bytes == LEAST_GRANT + MIB / 4));
        assert!(without.iter().all(|bytes| *bytes == LEAST_GRANT));
        let left = budget.open().unwrap().allowance();
        assert!(left > 127 * MIB, "one that sends finds {left} bytes");
        drop(accounts);
        assert_eq!(budget.taken(), ByteCount::ZERO);
        let mut account = budget.open().unwrap();
        account.grant_first(Side::Server, 3 * MIB);
        assert!(!account.is_more_of_use(69_000) && account.is_more_of_use(70_000));
        // A profile may want less.
        assert_eq!(account.grant_first(Side::Server, 1000), 1000);
        assert!(account.is_more_of_use(0));
    }

    #[test]
    fn what_is_held_is_never_more_than_there_is() {
        let budget = budget(MIB);
        let (mut one, mut other) = (budget.open().unwrap(), budget.open().unwrap());
        assert_eq!(one.hold(u64::MAX), LEAST_GRANT + MIB / 2);
        assert_eq!(other.hold(u64::MAX), LEAST_GRANT);
        assert_eq!(other.allowance(), LEAST_GRANT);
        assert_eq!(one.hold(100), 100);
        assert_eq!(other.hold(MIB / 4), MIB / 4);
    }

    proptest! {
        #[test]
        fn the_sum_is_what_is_held(
            capacity in 0_u64..4 * MIB,
            steps in prop::collection::vec((0_usize..8, 0_u64..MIB, any::<bool>()), 1..100),
        ) {
            let budget = budget(capacity);
            let mut accounts: Vec<Option<Account>> = (0..8).map(|_| budget.open()).collect();
            let mut held = [0; 8];
            for (index, bytes, is_closed) in steps {
                if is_closed {
                    accounts[index] = None;
                    held[index] = 0;
                } else if let Some(account) = &mut accounts[index] {
                    held[index] = account.hold(bytes);
                    prop_assert!(held[index] <= bytes.max(LEAST_GRANT));
                } else {
                    accounts[index] = budget.open();
                }
                prop_assert!(budget.taken() <= budget.capacity());
                let sum: u64 = held.iter().sum();
                prop_assert!(sum <= budget.capacity().get());
            }
        }
    }
}
