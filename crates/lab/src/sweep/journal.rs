//! Results that are kept, so that a sweep that was interrupted goes on where it ended.
//!
//! A journal is a file of lines, `{"key":"<32 hexadecimal digits>","result":{...}}`, one a run. The key says all that
//! a result follows from: the program, the run's description as it was understood (profiles and traces included), the
//! seed. A program that was rebuilt therefore never sees an old result. A line that is damaged or cut off is as
//! good as none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use posthaste_campaign::identity::Identity;
use posthaste_units::Duration;
use serde::{Deserialize, Serialize};

use crate::result::RunResult;
use crate::spec::RunSpec;

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

/// What a program and a run's description come to, for [`Key::new`]. The description's `Debug` text has everything that a run follows from, with
/// what names stood for: a path's trace, a profile's constants.
pub(super) fn digest_of(program: Option<&Identity>, spec: &RunSpec) -> [u8; 32] {
    let program = program.map_or(&[][..], |program| program.bytes());
    let spec = format!("{:?}", RunSpec { series: None, ..spec.clone() });
    *Identity::of_parts([program, spec.as_bytes()]).bytes()
}

/// All that a result follows from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(String);

impl Key {
    pub(super) fn new(digest: &[u8; 32], seed: u64, series: Option<Duration>) -> Self {
        let series = series.map_or(u64::MAX, Duration::as_nanos);
        let parts = [&digest[..], &seed.to_be_bytes(), &series.to_be_bytes()];
        Self(Identity::of_parts(parts).hexadecimal(16))
    }
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    result: &'a RunResult,
}

#[derive(Deserialize)]
struct OwnedLine {
    key: String,
    result: RunResult,
}

/// A journal of one experiment and one build of the program.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    program: Identity,
    file: File,
    bytes: u64,
    results: BTreeMap<Key, RunResult>,
}

impl Journal {
    /// Opens the journal of `experiment` in `folder`, which is made if it is not there; `fresh` empties it.
    ///
    /// # Errors
    /// If it cannot be made or read.
    pub fn open(folder: &Path, experiment: &str, program: &Identity, fresh: bool) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}-{}.{EXTENSION}", plain(experiment), program.short()));
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut bytes = file.metadata()?.len();
        if fresh || bytes > MAX_JOURNAL {
            file.set_len(0)?;
            bytes = 0;
        }
        // A line that was cut off must not spoil the next.
        if bytes > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Self { path, program: program.clone(), file, bytes, results: BTreeMap::new() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn program(&self) -> &Identity {
        &self.program
    }

    /// Reads what it has of `wanted`. What cannot be read is made again.
    pub(super) fn load<'a>(&mut self, wanted: impl Iterator<Item = &'a Key>) {
        let wanted: BTreeSet<&[u8]> = wanted.map(|key| key.0.as_bytes()).collect();
        if self.file.rewind().is_err() {
            return;
        }
        let mut reader = BufReader::new((&self.file).take(MAX_JOURNAL));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let key = line.strip_prefix(PREFIX).and_then(|rest| rest.get(..32));
            if key.is_some_and(|key| wanted.contains(key))
                && let Ok(OwnedLine { key, result }) = serde_json::from_slice(&line)
            {
                self.results.insert(Key(key), result);
            }
            line.clear();
        }
    }

    /// The result that [`Self::load`] has found.
    pub(super) fn take(&mut self, key: &Key) -> Option<RunResult> {
        self.results.remove(key)
    }

    /// Takes no more, as a full disk would.
    #[cfg(test)]
    pub(super) fn pretend_full(&mut self) {
        self.bytes = MAX_JOURNAL;
    }

    /// Keeps a result.
    ///
    /// # Errors
    /// If it cannot be written, or the journal would be larger than its bound.
    pub(super) fn append(&mut self, key: &Key, result: &RunResult) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Line { key: &key.0, result })?;
        line.push(b'\n');
        self.bytes += line.len() as u64;
        if self.bytes > MAX_JOURNAL {
            return Err(io::Error::other(format!("it would be larger than {MAX_JOURNAL} bytes")));
        }
        // One write, so that two sweeps at a time do not mix their lines.
        self.file.write_all(&line)
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
            // Another sweep may have been faster.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
