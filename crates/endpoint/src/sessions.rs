//! A server's TLS sessions: what lets clients come back without a full handshake, and send early data.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU16;
use std::sync::{Mutex, PoisonError};

use rustls::server::StoresServerSessions;

use crate::clock;

/// Sessions kept; the oldest go first. At some 140 bytes each, and 60 of lists, that is 3.3 MB.
const MAX_SESSIONS: usize = 16_384;

/// Bytes of the blocks that sessions lie in, one behind the other. Each in a block of its own would keep a page of memory in
/// use that the connections of a crowd had, too.
const BLOCK: usize = 64 * 1024;

/// Seconds for which a session is good.
const LIFETIME: u64 = 24 * 3600;

/// Bytes of one key or value: what is longer is no session of rustls's.
const MAX_FIELD: usize = 16 * 1024;

/// Lists with less room than this keep it.
const LEAST_ROOM: usize = 1_024;

/// The first line of what [`SessionStore::export`] gives.
const HEADER: &[u8] = b"posthaste sessions 1\n";

/// Sessions in memory, each good once: whoever repeats a client's first flight finds its session used up, and what
/// was sent early is not read a second time (RFC 8446 section 8.1).
///
/// That must hold over restarts too. So what [`export`](Self::export) gives at the end of one process must be
/// [imported](Self::import) by one other at most: delete the file before the server starts. A process that ends
/// without exporting leaves no sessions, and its clients make full handshakes. The other way, to write each use to the
/// disk before early data are read, would cost every handshake a disk's delay.
#[derive(Default)]
pub struct SessionStore(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    /// In the order in which they came, by number; `None` where one has been used.
    by_number: VecDeque<Option<Session>>,
    /// The number of the first. Numbers wrap.
    first: u32,
    /// Numbers by the hashes of keys: a key lies with its session alone.
    numbers: HashMap<u32, u32>,
    hasher: RandomState,
    blocks: Blocks,
}

/// Where a session lies. A reference count for each block, as `bytes` has it, would be a small allocation of long life among
/// those of a crowd's connections: each keeps a page of the allocator's in use.
struct Session {
    /// Seconds since the Unix epoch.
    stored_at: u64,
    /// The number of its block.
    block: u32,
    start: u16,
    key_len: NonZeroU16,
    value_len: u16,
}

/// Keys and values in the order in which they came. A block's memory goes with the last of its sessions.
#[derive(Default)]
struct Blocks {
    blocks: VecDeque<Block>,
    /// The number of the first. Numbers wrap.
    first: u32,
}

struct Block {
    bytes: Vec<u8>,
    /// Sessions in it that are still kept.
    left: usize,
}

impl Blocks {
    /// Puts a session behind the last one. `None` if a field is too long or the key is empty.
    fn add(&mut self, key: &[u8], value: &[u8], stored_at: u64) -> Option<Session> {
        let key_len = NonZeroU16::new(u16::try_from(key.len()).ok()?)?;
        let value_len = u16::try_from(value.len()).ok()?;
        let length = key.len() + value.len();
        let has_room = |block: &Block| block.bytes.capacity() - block.bytes.len() >= length;
        if length > BLOCK {
            return None;
        }
        if !self.blocks.back().is_some_and(has_room) {
            self.blocks.push_back(Block { bytes: Vec::with_capacity(BLOCK), left: 0 });
        }
        let number = self.first.wrapping_add(u32::try_from(self.blocks.len()).ok()?).wrapping_sub(1);
        let block = self.blocks.back_mut()?;
        let start = u16::try_from(block.bytes.len()).ok()?;
        block.bytes.extend_from_slice(key);
        block.bytes.extend_from_slice(value);
        block.left += 1;
        Some(Session { stored_at, block: number, start, key_len, value_len })
    }

    /// Key and value of a session that is kept.
    fn read(&self, session: &Session) -> (&[u8], &[u8]) {
        let block = self.blocks.get(session.block.wrapping_sub(self.first) as usize);
        let key_start = usize::from(session.start);
        let value_start = key_start + usize::from(session.key_len.get());
        let bytes =
            |from: usize, to: usize| block.and_then(|block| block.bytes.get(from..to)).unwrap_or_default();
        (bytes(key_start, value_start), bytes(value_start, value_start + usize::from(session.value_len)))
    }

    /// A session is no longer kept.
    fn release(&mut self, session: &Session) {
        let Some(block) = self.blocks.get_mut(session.block.wrapping_sub(self.first) as usize) else {
            return;
        };
        block.left = block.left.saturating_sub(1);
        if block.left == 0 {
            block.bytes = Vec::new();
        }
        while self.blocks.front().is_some_and(|block| block.left == 0) {
            self.blocks.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// True if a session of this time is still good.
fn is_good(stored_at: u64, now: u64) -> bool {
    now.saturating_sub(stored_at) <= LIFETIME
}

impl Sessions {
    /// Adds one, in place of one with the same key; false if it is none of rustls's. `now` in seconds since the Unix epoch.
    fn insert(&mut self, key: &[u8], value: &[u8], stored_at: u64, now: u64) -> bool {
        if key.len() > MAX_FIELD || value.len() > MAX_FIELD {
            return false;
        }
        let Some(session) = self.blocks.add(key, value, stored_at) else { return false };
        let number = self.first.wrapping_add(self.by_number.len() as u32);
        self.by_number.push_back(Some(session));
        // Two keys with one hash are as unlikely as they are harmless: one client makes a full handshake.
        if let Some(before) = self.numbers.insert(self.hash(key), number)
            && let Some(before) = self.place(before).and_then(Option::take)
        {
            self.blocks.release(&before);
        }
        self.forget_the_oldest(now);
        true
    }

    /// Drops what is used or too old from the front, and the oldest if there are too many.
    fn forget_the_oldest(&mut self, now: u64) {
        while let Some(oldest) = self.by_number.front() {
            let is_useful = oldest.as_ref().is_some_and(|oldest| is_good(oldest.stored_at, now));
            if is_useful && self.numbers.len() <= MAX_SESSIONS && self.by_number.len() <= 2 * MAX_SESSIONS {
                break;
            }
            if let Some(oldest) = self.by_number.pop_front().flatten() {
                let hash = self.hash(self.blocks.read(&oldest).0);
                self.numbers.remove(&hash);
                self.blocks.release(&oldest);
            }
            self.first = self.first.wrapping_add(1);
        }
        self.shrink();
    }

    /// Gives room back when three quarters of it are free.
    fn shrink(&mut self) {
        if self.by_number.capacity() > LEAST_ROOM.max(4 * self.by_number.len()) {
            self.by_number.shrink_to(2 * self.by_number.len());
        }
        if self.numbers.capacity() > LEAST_ROOM.max(4 * self.numbers.len()) {
            self.numbers.shrink_to(2 * self.numbers.len());
        }
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    fn place(&mut self, number: u32) -> Option<&mut Option<Session>> {
        self.by_number.get_mut(number.wrapping_sub(self.first) as usize)
    }

    /// The number and the value of the session with this key, if it is still good.
    fn find(&self, key: &[u8], now: u64) -> Option<(u32, &[u8])> {
        let number = *self.numbers.get(&self.hash(key))?;
        let session = self.by_number.get(number.wrapping_sub(self.first) as usize)?.as_ref()?;
        let (found, value) = self.blocks.read(session);
        (found == key && is_good(session.stored_at, now)).then_some((number, value))
    }

    /// Takes out the session with this key: its value.
    fn take(&mut self, key: &[u8], now: u64) -> Option<Vec<u8>> {
        let (number, value) = self.find(key, now)?;
        let value = value.to_vec();
        let session = self.place(number)?.take()?;
        self.blocks.release(&session);
        self.numbers.remove(&self.hash(key));
        self.shrink();
        Some(value)
    }
}

impl SessionStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many sessions are kept.
    pub fn len(&self) -> usize {
        self.lock().numbers.len()
    }

    /// True if no session is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all sessions out, to be imported by the next process. They are secrets: who reads them can read what
    /// their clients send early.
    pub fn export(&self) -> Vec<u8> {
        let sessions = std::mem::take(&mut *self.lock());
        let mut bytes = HEADER.to_vec();
        for session in sessions.by_number.iter().flatten() {
            bytes.extend_from_slice(&session.stored_at.to_be_bytes());
            for field in <[&[u8]; 2]>::from(sessions.blocks.read(session)) {
                bytes.extend_from_slice(&(field.len() as u32).to_be_bytes());
                bytes.extend_from_slice(field);
            }
        }
        bytes
    }

    /// Adds what [`Self::export`] gave to another store; how many sessions that were. Those that are too old are left
    /// out, and what is damaged ends it.
    pub fn import(&self, bytes: &[u8]) -> usize {
        let mut rest = bytes.strip_prefix(HEADER).unwrap_or_default();
        let now = clock::unix_time().as_secs();
        let mut sessions = self.lock();
        let mut count = 0;
        while let Some((stored_at, key, value)) = read_session(&mut rest) {
            if stored_at <= now && is_good(stored_at, now) && sessions.insert(key, value, stored_at, now) {
                count += 1;
            }
        }
        if !bytes.starts_with(HEADER) || !rest.is_empty() {
            tracing::warn!(
                count,
                "the sessions of the last run are damaged: other clients make full handshakes"
            );
        }
        count
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time, the key and the value.
type Exported<'a> = (u64, &'a [u8], &'a [u8]);

fn read_session<'a>(rest: &mut &'a [u8]) -> Option<Exported<'a>> {
    let (stored_at, mut tail) = rest.split_first_chunk()?;
    let mut field = || {
        let (length, behind) = tail.split_first_chunk()?;
        let length =
            usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| *length <= MAX_FIELD)?;
        let (field, behind) = behind.split_at_checked(length)?;
        tail = behind;
        Some(field)
    };
    let (key, value) = (field()?, field()?);
    *rest = tail;
    Some((u64::from_be_bytes(*stored_at), key, value))
}

impl StoresServerSessions for SessionStore {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        let now = clock::unix_time().as_secs();
        self.lock().insert(&key, &value, now, now)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = clock::unix_time().as_secs();
        self.lock().find(key, now).map(|(_, value)| value.to_vec())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = clock::unix_time().as_secs();
        // spec: rfc9001 9.2 replay-protected
        self.lock().take(key, now)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Vec<u8> {
        number.to_be_bytes().to_vec()
    }

    #[test]
    fn a_session_is_good_once() {
        let store = SessionStore::new();
        assert!(store.put(key(1), b"one".to_vec()));
        assert_eq!(store.get(&key(1)), Some(b"one".to_vec()));
        assert_eq!(store.take(&key(1)), Some(b"one".to_vec()));
        assert_eq!(store.take(&key(1)), None);
        assert_eq!(store.len(), 0);
    }

    #[test]
    fn the_oldest_sessions_go_when_there_are_too_many() {
        let store = SessionStore::new();
        let count = 3 * MAX_SESSIONS as u32;
        for number in 0..count {
            store.put(key(number), vec![1; 10]);
            if number % 2 == 0 {
                store.take(&key(number));
            }
        }
        assert!(store.len() <= MAX_SESSIONS);
        assert!(store.lock().by_number.len() <= 2 * MAX_SESSIONS);
        assert!(store.get(&key(count - 1)).is_some());
        assert!(store.get(&key(1)).is_none());
        // A key that comes again and again takes one place.
        let store = SessionStore::new();
        for _ in 0..count {
            store.put(key(7), vec![1; 10]);
        }
        assert_eq!(store.len(), 1);
        assert!(store.lock().by_number.len() <= 2 * MAX_SESSIONS);
    }

    #[test]
    fn sessions_lie_in_few_blocks_that_go_with_them() {
        let (store, count) = (SessionStore::new(), 10_000);
        for number in 0..count {
            store.put(key(number), vec![7; 100]);
        }
        let bytes = count as usize * (key(0).len() + 100);
        assert!(store.lock().blocks.blocks.len() <= bytes / BLOCK + 1);
        // One that stays keeps its own block alone.
        for number in (0..count).filter(|number| *number != 5_000) {
            assert!(store.take(&key(number)).is_some());
        }
        assert_eq!(store.get(&key(5_000)), Some(vec![7; 100]));
        let held = |store: &SessionStore| {
            store.lock().blocks.blocks.iter().filter(|block| block.bytes.capacity() > 0).count()
        };
        assert_eq!(held(&store), 1);
        assert!(store.lock().numbers.capacity() <= 2 * LEAST_ROOM);
        store.put(key(count), vec![8; 100]);
        assert_eq!(store.take(&key(5_000)), Some(vec![7; 100]));
        assert_eq!((held(&store), store.take(&key(count))), (1, Some(vec![8; 100])));
        store.put(key(0), vec![9; 100]);
        assert!(store.lock().by_number.len() == 1 && store.lock().by_number.capacity() <= LEAST_ROOM);
    }

    #[test]
    fn sessions_that_are_too_old_go_and_their_room_with_them() {
        let mut sessions = Sessions::default();
        for number in 0..10_000 {
            assert!(sessions.insert(&key(number), &[7; 100], 1_000, 1_000));
        }
        assert!(sessions.find(&key(1), 1_000 + LIFETIME).is_some());
        assert!(sessions.find(&key(1), 1_001 + LIFETIME).is_none());
        assert_eq!(sessions.take(&key(1), 1_001 + LIFETIME), None);
        assert!(sessions.insert(&key(10_000), &[7; 100], 1_001 + LIFETIME, 1_001 + LIFETIME));
        assert_eq!(
            (sessions.by_number.len(), sessions.numbers.len(), sessions.blocks.blocks.len()),
            (1, 1, 1)
        );
        assert!(sessions.by_number.capacity().max(sessions.numbers.capacity()) <= 2 * LEAST_ROOM);
    }

    #[test]
    fn numbers_wrap() {
        let mut sessions = Sessions { first: u32::MAX - 5, ..Sessions::default() };
        sessions.blocks.first = u32::MAX;
        for number in 0..5_000 {
            assert!(sessions.insert(&key(number), &[number as u8; 100], 1, 1));
        }
        for number in 0..5_000 {
            assert_eq!(sessions.take(&key(number), 1), Some(vec![number as u8; 100]));
        }
        assert!(!sessions.insert(&[], &[1], 1, 1) && !sessions.insert(&vec![1; MAX_FIELD + 1], &[1], 1, 1));
    }

    #[test]
    fn what_is_exported_can_be_imported_once_and_whole() {
        let store = SessionStore::new();
        for number in 0..100 {
            store.put(key(number), vec![number as u8; number as usize]);
        }
        store.take(&key(50));
        let exported = store.export();
        assert!(store.is_empty(), "the sessions have moved");
        let other = SessionStore::new();
        assert_eq!(other.import(&exported), 99);
        assert_eq!(other.take(&key(99)), Some(vec![99; 99]));
        assert_eq!(other.take(&key(50)), None);
        for cut in 0..exported.len() {
            assert!(SessionStore::new().import(&exported[..cut]) < 99);
        }
        let mut old = exported;
        old[HEADER.len()..HEADER.len() + 8].fill(0);
        assert_eq!(SessionStore::new().import(&old), 98, "one is of 1970");
        let mut huge = HEADER.to_vec();
        huge.extend_from_slice(&[0xff; 100]);
        assert_eq!(SessionStore::new().import(&huge), 0);
    }
}
