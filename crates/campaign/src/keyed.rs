//! Results that are found again by what they follow from, so that an interrupted sweep goes on where it ended.
//!
//! A line is `{"key":"<32 hexadecimal digits>","result":{...}}`. The key is a digest of all that the result follows
//! from, the program among it: a program that was rebuilt never sees an old result. Unlike those of a
//! [`Journal`](crate::journal::Journal), lines can be made again, so one that is damaged counts as missing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::lines::Lines;

mod headed;

pub use headed::HeadedError;

/// Bytes that one journal may have; results beyond are not kept.
const MAX_JOURNAL: u64 = 1 << 30;
/// Journals that are kept.
const MAX_JOURNALS: usize = 16;
/// Bytes that all journals together may have.
const MAX_JOURNALS_BYTES: u64 = 2 << 30;
/// How journals' names end.
const EXTENSION: &str = "jsonl";

/// What a line begins with, up to its key.
const PREFIX: &[u8] = b"{\"key\":\"";

/// All that a result follows from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The key of what all these parts say.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(Identity::of_parts(parts).hexadecimal(16))
    }

    /// Its 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Serialize)]
struct Line<'a, T> {
    key: &'a str,
    result: &'a T,
}

#[derive(Deserialize)]
struct OwnedLine<T> {
    key: String,
    result: T,
}

/// A journal of one campaign and one build of the program.
#[derive(Debug)]
pub struct KeyedJournal<T> {
    path: PathBuf,
    program: Identity,
    lines: Lines,
    results: BTreeMap<Key, T>,
}

impl<T: Serialize + DeserializeOwned> KeyedJournal<T> {
    /// Opens the journal of `campaign` in `folder`, which is made if it is not there; `fresh` empties it.
    ///
    /// # Errors
    /// If it cannot be made or read.
    pub fn open(folder: &Path, campaign: &str, program: &Identity, fresh: bool) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}-{}.{EXTENSION}", plain(campaign), program.short()));
        let mut lines = Lines::open(&path, MAX_JOURNAL)?;
        if fresh {
            lines.clear()?;
        }
        if lines.tail()?.is_some() {
            lines.end_last()?;
        }
        Ok(Self::of_lines(&path, program, lines))
    }

    fn of_lines(path: &Path, program: &Identity, lines: Lines) -> Self {
        Self { path: path.to_owned(), program: program.clone(), lines, results: BTreeMap::new() }
    }

    /// Has it take fewer bytes in all than 1 GiB.
    #[must_use]
    pub fn bounded(mut self, bytes: u64) -> Self {
        self.lines.limit(bytes);
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The build that its results are of.
    pub fn program(&self) -> &Identity {
        &self.program
    }

    /// Reads what it has of `wanted`. What cannot be read is made again.
    pub fn load<'a>(&mut self, wanted: impl Iterator<Item = &'a Key>) {
        let wanted: BTreeSet<&[u8]> = wanted.map(|key| key.0.as_bytes()).collect();
        let results = &mut self.results;
        // A file that can be read no further has no further results.
        let _ = self.lines.try_each::<io::Error>(|line| {
            let key = line.strip_prefix(PREFIX).and_then(|rest| rest.get(..32));
            if key.is_some_and(|key| wanted.contains(key))
                && let Ok(OwnedLine { key, result }) = serde_json::from_slice(line)
            {
                results.insert(Key(key), result);
            }
            Ok(())
        });
    }

    /// The result that [`Self::load`] has found.
    pub fn take(&mut self, key: &Key) -> Option<T> {
        self.results.remove(key)
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// If it cannot be written, or the journal would be larger than its bound.
    pub fn append(&mut self, key: &Key, result: &T) -> io::Result<()> {
        self.lines.append(&Line { key: &key.0, result })
    }
}

/// A name that is safe in every file system: what is not plain becomes `_`, and a file is called by its last part.
fn plain(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.chars()
        .take(60)
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect()
}

/// Deletes the oldest journals in `folder` beyond what is kept, but never `present`. What cannot be deleted stays.
pub fn prune(folder: &Path, present: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut journals: Vec<(SystemTime, PathBuf, u64)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == EXTENSION))
        .filter_map(|entry| {
            let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((metadata.modified().ok()?, entry.path(), metadata.len()))
        })
        .filter(|(_, path, _)| path != present)
        .collect();
    journals.sort_unstable_by(|a, b| b.cmp(a));
    let mut bytes = std::fs::metadata(present).map_or(0, |metadata| metadata.len());
    for (index, (_, path, length)) in journals.iter().enumerate() {
        bytes = bytes.saturating_add(*length);
        if index + 1 >= MAX_JOURNALS || bytes > MAX_JOURNALS_BYTES {
            // Another program may have been faster.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
