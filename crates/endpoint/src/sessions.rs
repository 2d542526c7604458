//! A server's TLS sessions: what lets clients come back without a full handshake, and send early data.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use rustls::server::StoresServerSessions;

use crate::clock;

/// Sessions kept; the oldest go first. At some 140 bytes each, and 70 of lists, that is 3.5 MB.
const MAX_SESSIONS: usize = 16_384;

/// Bytes of the blocks that sessions lie in, one behind the other. Each in a block of its own would keep a page of memory in
/// use that the connections of a crowd had, too.
const BLOCK: usize = 64 * 1024;

/// Seconds for which a session is good.
const LIFETIME: u64 = 24 * 3600;

/// Bytes of one key or value: what is longer is no session of rustls's.
const MAX_FIELD: usize = 16 * 1024;

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
    /// The number of the first.
    first: u64,
    /// Numbers by the hashes of keys: a key lies with its session alone.
    numbers: HashMap<u64, u64>,
    hasher: RandomState,
    /// What is left of the newest block. A block goes with the last of its sessions, and those of one block go at about the
    /// same time.
    room: BytesMut,
}

struct Session {
    key_and_value: Bytes,
    key_len: usize,
    /// Seconds since the Unix epoch.
    stored_at: u64,
}

impl Session {
    fn key(&self) -> &[u8] {
        self.key_and_value.get(..self.key_len).unwrap_or_default()
    }

    fn value(&self) -> &[u8] {
        self.key_and_value.get(self.key_len..).unwrap_or_default()
    }

    fn value_at(&self, now: u64) -> Option<Vec<u8>> {
        (now.saturating_sub(self.stored_at) <= LIFETIME).then(|| self.value().to_vec())
    }
}

impl Sessions {
    /// Adds one, in place of one with the same key.
    fn insert(&mut self, key: &[u8], value: &[u8], stored_at: u64) {
        let length = key.len() + value.len();
        if self.room.capacity() < length {
            self.room = BytesMut::with_capacity(BLOCK.max(length));
        }
        self.room.extend_from_slice(key);
        self.room.extend_from_slice(value);
        let key_and_value = self.room.split().freeze();
        let session = Session { key_and_value, key_len: key.len(), stored_at };
        let number = self.first + self.by_number.len() as u64;
        self.by_number.push_back(Some(session));
        // Two keys with one hash are as unlikely as they are harmless: one client makes a full handshake.
        if let Some(before) = self.numbers.insert(self.hasher.hash_one(key), number)
            && let Some(place) = self.place(before)
        {
            *place = None;
        }
        while self.numbers.len() > MAX_SESSIONS || self.by_number.len() > 2 * MAX_SESSIONS {
            let Some(oldest) = self.by_number.pop_front() else { return };
            self.first += 1;
            if let Some(oldest) = oldest {
                self.numbers.remove(&self.hasher.hash_one(oldest.key()));
            }
        }
    }

    fn place(&mut self, number: u64) -> Option<&mut Option<Session>> {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok())?;
        self.by_number.get_mut(index)
    }

    /// The session with this key.
    fn find(&mut self, key: &[u8]) -> Option<&mut Option<Session>> {
        let number = *self.numbers.get(&self.hasher.hash_one(key))?;
        self.place(number).filter(|place| place.as_ref().is_some_and(|session| session.key() == key))
    }

    /// Takes out the session with this key.
    fn take(&mut self, key: &[u8]) -> Option<Session> {
        let session = self.find(key)?.take();
        self.numbers.remove(&self.hasher.hash_one(key));
        session
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
            for field in [session.key(), session.value()] {
                bytes.extend_from_slice(&(field.len() as u32).to_be_bytes());
                bytes.extend_from_slice(field);
            }
        }
        bytes
    }

    /// Adds what [`Self::export`] gave to another store; how many sessions that were. Those that are too old are left
    /// out, and what is damaged ends it.
    pub fn import(&self, bytes: &[u8]) -> usize {
        let Some(mut rest) = bytes.strip_prefix(HEADER) else { return 0 };
        let now = clock::unix_time().as_secs();
        let mut sessions = self.lock();
        let mut count = 0;
        while let Some((stored_at, key, value)) = read_session(&mut rest) {
            if stored_at <= now && now - stored_at <= LIFETIME {
                sessions.insert(key, value, stored_at);
                count += 1;
            }
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
        if key.len() > MAX_FIELD || value.len() > MAX_FIELD {
            return false;
        }
        self.lock().insert(&key, &value, clock::unix_time().as_secs());
        true
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = clock::unix_time().as_secs();
        self.lock().find(key)?.as_ref()?.value_at(now)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let now = clock::unix_time().as_secs();
        // spec: rfc9001 9.2 replay-protected
        self.lock().take(key)?.value_at(now)
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
    fn sessions_lie_one_behind_the_other_in_few_blocks() {
        let (store, count) = (SessionStore::new(), 10_000);
        for number in 0..count {
            store.put(key(number), vec![7; 100]);
        }
        let sessions = store.lock();
        let all = sessions.by_number.iter().flatten();
        let places: Vec<_> = all.map(|session| session.key_and_value.as_ptr_range()).collect();
        let gaps = places.windows(2).filter(|pair| pair[0].end != pair[1].start).count();
        let bytes = count as usize * (key(0).len() + 100);
        assert!(gaps <= bytes / BLOCK + 1, "{gaps} gaps in {bytes} bytes");
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
