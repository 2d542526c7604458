//! Finished runs in a file, one line of JSON each, so that a long campaign can be interrupted and continued.

use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lines::Lines;

/// A journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot keep runs in {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not a run of this campaign. The file is left as it is.
    #[error("{}, line {line} is not a run of this command: {message}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// Why.
        message: String,
    },
}

/// A file that takes runs, or none: then nothing is kept.
#[derive(Debug)]
pub struct Journal<T> {
    lines: Option<(Lines, PathBuf)>,
    runs: PhantomData<fn(&T)>,
}

/// Why lines cannot be read; [`JournalError`] names the file, too.
enum Unread {
    File(io::Error),
    Line(usize, String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens or makes the file, and reads its runs in their order. A last line that a crash has cut off is removed.
    ///
    /// # Errors
    /// If the file cannot be used, or is not a journal of such runs.
    pub fn open(path: Option<&Path>) -> Result<(Self, Vec<T>), JournalError> {
        let Some(path) = path else { return Ok((Self { lines: None, runs: PhantomData }, Vec::new())) };
        let (lines, runs) = read(path).map_err(|error| match error {
            Unread::File(source) => JournalError::File { path: path.to_owned(), source },
            Unread::Line(line, message) => JournalError::Line { path: path.to_owned(), line, message },
        })?;
        Ok((Self { lines: Some((lines, path.to_owned())), runs: PhantomData }, runs))
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, run: &T) -> Result<(), JournalError> {
        let Some((lines, path)) = &mut self.lines else { return Ok(()) };
        lines.append(run).map_err(|source| JournalError::File { path: path.clone(), source })
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<(Lines, Vec<T>), Unread> {
    let mut lines = Lines::open(path, u64::MAX)?;
    let tail = lines.tail()?;
    let mut runs = Vec::new();
    lines.try_each(|line| match serde_json::from_slice(line) {
        Ok(run) => {
            runs.push(run);
            Ok(())
        }
        Err(_) if tail.as_ref().is_some_and(|tail| tail.text == line) => Ok(()),
        Err(error) => Err(Unread::Line(runs.len() + 1, error.to_string())),
    })?;
    if let Some(tail) = tail {
        if serde_json::from_slice::<T>(&tail.text).is_ok() {
            lines.end_last()?;
        } else if tail.text.starts_with(b"{") {
            lines.remove(&tail)?;
        } else {
            // Only what looks like the beginning of a run is removed: another file is left alone.
            return Err(Unread::Line(runs.len() + 1, "it is no JSON object".to_owned()));
        }
    }
    Ok((lines, runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, none) = Journal::<(u64, String)>::open(Some(&path)).unwrap();
        assert!(none.is_empty());
        let runs = [(1, "a".to_owned()), (2, "b\n".to_owned())];
        for run in &runs {
            journal.add(run).unwrap();
        }
        assert_eq!(Journal::<(u64, String)>::open(Some(&path)).unwrap().1, runs);
    }

    #[test]
    fn a_line_that_was_cut_off_is_removed_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let run = |number: u64| std::collections::BTreeMap::from([("run".to_owned(), number)]);
        std::fs::write(&path, "{\"run\":1}\n{\"ru").unwrap();
        let (mut journal, one) =
            Journal::<std::collections::BTreeMap<String, u64>>::open(Some(&path)).unwrap();
        assert_eq!(one, [run(1)]);
        journal.add(&run(2)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"run\":1}\n{\"run\":2}\n");
    }

    #[test]
    fn another_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        for text in ["notes\n", "notes"] {
            std::fs::write(&path, text).unwrap();
            let error = Journal::<std::collections::BTreeMap<String, u64>>::open(Some(&path)).unwrap_err();
            assert!(error.to_string().contains("line 1"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn without_a_file_nothing_is_kept() {
        let (mut journal, none) = Journal::<u64>::open(None).unwrap();
        assert!(none.is_empty());
        journal.add(&1).unwrap();
    }
}
