//! Finished runs in a file, one line of JSON each, so that a long campaign can be interrupted and continued.

use std::fs::File;
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

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
    file: Option<(File, PathBuf)>,
    runs: PhantomData<fn(&T)>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens or makes the file, and reads its runs in their order. A last line that a crash has cut off is removed.
    ///
    /// # Errors
    /// If the file cannot be used, or is not a journal of such runs.
    pub fn open(path: Option<&Path>) -> Result<(Self, Vec<T>), JournalError> {
        let Some(path) = path else { return Ok((Self { file: None, runs: PhantomData }, Vec::new())) };
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let file = File::options().create(true).append(true).read(true).open(path).map_err(failed)?;
        let text = std::fs::read_to_string(path).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (lines, rest) = text.split_at(whole);
        let mut runs = Vec::new();
        for (index, line) in lines.lines().enumerate() {
            runs.push(serde_json::from_str(line).map_err(|error| JournalError::Line {
                path: path.to_owned(),
                line: index + 1,
                message: error.to_string(),
            })?);
        }
        // Only what looks like the beginning of a run is cut off: another file is left alone.
        if !rest.is_empty() {
            if !rest.starts_with('{') {
                let (path, line) = (path.to_owned(), runs.len() + 1);
                return Err(JournalError::Line { path, line, message: "it is no JSON object".to_owned() });
            }
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok((Self { file: Some((file, path.to_owned())), runs: PhantomData }, runs))
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, run: &T) -> Result<(), JournalError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let failed = |source| JournalError::File { path: path.clone(), source };
        let mut line = serde_json::to_vec(run).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // One write, so that a line is whole or was cut off by a crash.
        file.write_all(&line).map_err(failed)
    }
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
