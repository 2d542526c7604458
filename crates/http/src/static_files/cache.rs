//! Small files, kept in memory: answers to requests for them need no trip to a blocking thread.
//!
//! A file is answered from memory only if its path was seen to lead to the same state of the same file at most
//! [`FRESH`] ago. `in_place.rs` can look again without blocking; where it cannot, a blocking thread does.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::Instant;

use super::answer;
use super::described::Described;
use super::in_place;
use super::stamp::Stamp;
use crate::service::{Body, Response};

/// Files kept at once.
pub(super) const MAX_FILES: usize = 4096;

/// Bytes of content that a cache holds: what it keeps, and what it no longer keeps but responses still send.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// Greatest length of a file that is kept, in bytes.
pub(super) const MAX_LENGTH: u64 = 256 << 10;

/// Greatest length of a request's path whose file is kept, in bytes.
const MAX_PATH: usize = 512;

/// How long a file's state is taken for what was last seen.
pub(super) const FRESH: Duration = Duration::from_millis(5);

/// The files kept for one served directory.
#[derive(Debug)]
pub(super) struct Cache {
    files: Mutex<Files>,
    /// Bytes of content in memory.
    held: Arc<AtomicUsize>,
    began: Instant,
}

#[derive(Debug, Default)]
struct Files {
    /// By the path of the request, as the client wrote it (`precompressed.rs`: and by what it accepts).
    entries: HashMap<Arc<str>, Arc<Kept>>,
    /// The same paths in the order in which they are judged when room is needed.
    order: VecDeque<Arc<str>>,
}

/// A file in memory.
#[derive(Debug)]
pub(super) struct Kept {
    described: Described,
    content: Bytes,
    /// The files that led here, and their states.
    sources: Vec<Source>,
    /// Whether the file system answers without waiting for anybody.
    is_local: bool,
    /// When it counts no more, in nanoseconds of the cache's life.
    expires: u64,
    /// When the path was last seen to lead here, in nanoseconds of the cache's life.
    seen: AtomicU64,
    /// Whether it was asked for since it was last judged.
    is_used: AtomicBool,
}

/// Where a path led to, below the served directory, and in which state that was.
type Source = (PathBuf, Stamp);

/// A file that was opened for a request's path.
pub(super) struct Opened<'a> {
    /// The file itself first, then what decided that it is the one.
    pub(super) sources: Vec<Source>,
    pub(super) file: &'a File,
    pub(super) described: &'a Described,
    /// A time after which all of it was seen to be so.
    pub(super) seen: Instant,
    /// The same as the file system has it.
    pub(super) now: SystemTime,
}

/// Content in memory; its bytes are free again when the last response that sends it is gone.
struct Content {
    bytes: Vec<u8>,
    held: Arc<AtomicUsize>,
}

impl Kept {
    /// Answers a GET or HEAD request with these fields.
    pub(super) fn answer(&self, asked: &HeaderMap, is_head: bool) -> Response {
        let part = |start, end| {
            // The description is of this content.
            let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
            Ok::<_, Infallible>(Body::from(self.content.slice(range)))
        };
        let Ok(response) = answer(&self.described, asked, is_head, part);
        response
    }
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self { files: Mutex::default(), held: Arc::default(), began: Instant::now() }
    }
}

impl Cache {
    /// What the request's path leads to, if that is known without blocking.
    pub(super) fn find(&self, path: &str) -> Option<Arc<Kept>> {
        let kept = self.files().entries.get(path).map(Arc::clone)?;
        let now = self.clock(Instant::now());
        if now >= kept.expires {
            return None;
        }
        let is_fresh = now.saturating_sub(kept.seen.load(Ordering::Relaxed)) < FRESH.as_nanos() as u64;
        if !is_fresh {
            let is_unchanged = |(path, stamp): &Source| in_place::is_unchanged(path, stamp);
            if !kept.is_local || !kept.sources.iter().all(is_unchanged) {
                return None;
            }
            kept.seen.fetch_max(now, Ordering::Relaxed);
        }
        kept.is_used.store(true, Ordering::Relaxed);
        Some(kept)
    }

    /// Keeps a file by `key` for at most `lifetime`, if it is small, at rest and readable, and if there is room. Leaves its
    /// position alone. Blocks on the file system.
    pub(super) fn keep(&self, key: &str, opened: Opened<'_>, lifetime: Duration) -> Option<Arc<Kept>> {
        let Some(content) = self.content(key, &opened) else {
            self.forget(key);
            return None;
        };
        let seen = self.clock(opened.seen);
        let kept = Arc::new(Kept {
            described: opened.described.clone(),
            content: Bytes::from_owner(content),
            sources: opened.sources,
            is_local: in_place::is_local(opened.file),
            expires: seen.saturating_add(u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX)),
            seen: AtomicU64::new(seen),
            is_used: AtomicBool::new(false),
        });
        let path: Arc<str> = key.into();
        let mut files = self.files();
        while files.entries.len() >= MAX_FILES && files.give_up_one() {}
        if files.entries.insert(Arc::clone(&path), Arc::clone(&kept)).is_none() {
            files.order.push_back(path);
        }
        Some(kept)
    }

    /// Keeps nothing for this path any more.
    pub(super) fn forget(&self, path: &str) {
        let files = &mut *self.files();
        if files.entries.remove(path).is_some() {
            files.order.retain(|other| **other != *path);
        }
    }

    /// The content of a file that may be kept.
    fn content(&self, key: &str, opened: &Opened<'_>) -> Option<Content> {
        let (_, stamp) = opened.sources.first()?;
        let are_settled = opened.sources.iter().all(|(_, stamp)| stamp.is_settled(opened.now));
        if stamp.length() > MAX_LENGTH || key.len() > MAX_PATH || !are_settled {
            return None;
        }
        let length = usize::try_from(stamp.length()).ok()?;
        let mut files = self.files();
        // What responses still send remains in memory, and may leave no room.
        while self.held.load(Ordering::Relaxed) + length > MAX_BYTES && files.give_up_one() {}
        let held = self.held.fetch_add(length, Ordering::Relaxed) + length;
        drop(files);
        // From here on its end gives the bytes back.
        let mut content = Content { bytes: vec![0; length], held: Arc::clone(&self.held) };
        (held <= MAX_BYTES && read(opened.file, &mut content.bytes, stamp)).then_some(content)
    }

    fn clock(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_nanos() as u64
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        // The data are whole after every call, so a panic elsewhere does not spoil them.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Keeps one file less: the first that nobody has asked for since it was last judged. False if there is none.
    fn give_up_one(&mut self) -> bool {
        while let Some(path) = self.order.pop_front() {
            let Some(kept) = self.entries.get(&path) else { continue };
            if !kept.is_used.swap(false, Ordering::Relaxed) {
                self.entries.remove(&path);
                return true;
            }
            self.order.push_back(path);
        }
        false
    }
}

/// Reads the whole file; false if it is not, or no longer, in the state of `stamp`.
fn read(file: &File, content: &mut [u8], stamp: &Stamp) -> bool {
    #[cfg(unix)]
    {
        let is_read = std::os::unix::fs::FileExt::read_exact_at(file, content, 0).is_ok();
        is_read && file.metadata().is_ok_and(|metadata| Stamp::of(&metadata) == *stamp)
    }
    #[cfg(not(unix))]
    {
        let _ = (file, content, stamp);
        false
    }
}

#[cfg(test)]
mod tests;
