//! Journals in files that the user names: their first line says what they are of.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::KeyedJournal;
use crate::identity::Identity;
use crate::lines::Lines;

/// Bytes of the longest first line.
const MAX_HEADER: u64 = 1 << 20;

/// A file cannot be used as a journal. It is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum HeadedError<H> {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] io::Error),
    /// Its first line says nothing of the kind.
    #[error("it is no such journal")]
    Foreign,
    /// It is of something else.
    #[error("it is of something else")]
    Other(Box<H>),
}

#[derive(Serialize, Deserialize)]
struct First<H> {
    journal: H,
}

impl<T: Serialize + DeserializeOwned> KeyedJournal<T> {
    /// Opens the journal of `header` in the file `path`, which is made if it is not there; `fresh` empties a journal,
    /// whatever it is of. Its size has no bound.
    ///
    /// # Errors
    /// If the file cannot be used, is no journal, or is one of another header.
    pub fn open_file<H: Serialize + DeserializeOwned + PartialEq>(
        path: &Path,
        header: &H,
        program: &Identity,
        fresh: bool,
    ) -> Result<Self, HeadedError<H>> {
        let mut lines = Lines::open(path, u64::MAX)?;
        if !lines.is_empty() {
            let found = header_of(&mut lines)?;
            if fresh {
                lines.clear()?;
            } else if found != *header {
                return Err(HeadedError::Other(Box::new(found)));
            }
        }
        if lines.is_empty() {
            lines.append(&First { journal: header })?;
        } else if lines.tail()?.is_some() {
            lines.end_last()?;
        }
        Ok(Self::of_lines(path, program, lines))
    }

    /// Opens a journal with a header to read it. The file is not changed, and [`Self::append`] fails.
    ///
    /// # Errors
    /// If the file cannot be read or is no such journal.
    pub fn read_file<H: DeserializeOwned>(
        path: &Path,
        program: &Identity,
    ) -> Result<(H, Self), HeadedError<H>> {
        let mut lines = Lines::read_only(path)?;
        let header = header_of(&mut lines)?;
        Ok((header, Self::of_lines(path, program, lines)))
    }
}

fn header_of<H: DeserializeOwned>(lines: &mut Lines) -> Result<H, HeadedError<H>> {
    let first = lines.first(MAX_HEADER)?.ok_or(HeadedError::Foreign)?;
    serde_json::from_slice::<First<H>>(&first).map(|first| first.journal).map_err(|_| HeadedError::Foreign)
}

#[cfg(test)]
mod tests {
    use super::super::Key;
    use super::*;

    type Journal = KeyedJournal<u64>;

    fn program() -> Identity {
        Identity::of_text("program")
    }

    fn open(path: &Path, header: &str, fresh: bool) -> Result<Journal, HeadedError<String>> {
        Journal::open_file(path, &header.to_owned(), &program(), fresh)
    }

    fn key(number: u8) -> Key {
        Key::new([&[number][..]])
    }

    #[test]
    fn what_was_kept_is_found_by_who_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        open(&path, "a", false).unwrap().append(&key(1), &10).unwrap();
        open(&path, "a", false).unwrap().append(&key(2), &20).unwrap();
        let before = std::fs::read(&path).unwrap();
        let (header, mut journal) = Journal::read_file::<String>(&path, &program()).unwrap();
        assert_eq!(header, "a");
        let keys = [key(1), key(2), key(3)];
        journal.load(keys.iter());
        assert_eq!(keys.each_ref().map(|key| journal.take(key)), [Some(10), Some(20), None]);
        journal.append(&key(3), &30).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_line_that_was_cut_off_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut journal = open(&path, "a", false).unwrap();
        journal.append(&key(1), &10).unwrap();
        journal.append(&key(2), &20).unwrap();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        open(&path, "a", false).unwrap().append(&key(3), &30).unwrap();
        let (_, mut journal) = Journal::read_file::<String>(&path, &program()).unwrap();
        let keys = [key(1), key(2), key(3)];
        journal.load(keys.iter());
        assert_eq!(keys.each_ref().map(|key| journal.take(key)), [Some(10), None, Some(30)]);
    }

    #[test]
    fn what_is_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        open(&path, "a", false).unwrap().append(&key(1), &10).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(open(&path, "b", false), Err(HeadedError::Other(found)) if *found == "a"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        drop(open(&path, "b", true).unwrap());
        assert!(!std::fs::read_to_string(&path).unwrap().contains("key"), "emptied on wish");

        let path = folder.path().join("notes");
        for text in ["notes", "notes\n", "{\"journal\":1}\n", "{\"key\":\"a\"}\n"] {
            std::fs::write(&path, text).unwrap();
            for fresh in [false, true] {
                assert!(matches!(open(&path, "a", fresh), Err(HeadedError::Foreign)), "{text}");
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let missing = Journal::read_file::<String>(&folder.path().join("missing"), &program());
        assert!(matches!(missing, Err(HeadedError::File(_))));
    }
}
