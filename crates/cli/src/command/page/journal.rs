//! Runs in a file, a line of JSON each, so that a long comparison can be stopped and go on.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::record::Record;
use crate::exit::Failure;

/// A file that takes runs.
#[derive(Debug)]
pub(super) struct Journal {
    file: Option<File>,
}

impl Journal {
    /// Opens the file, and reads what it has. Without one, nothing is kept.
    pub(super) fn open(path: Option<&Path>) -> Result<(Self, Vec<Record>), Failure> {
        let Some(path) = path else { return Ok((Self { file: None }, Vec::new())) };
        let failed = |error: std::io::Error| {
            Failure::usage(format!("cannot keep runs in {}: {error}", path.display()))
                .hint("choose a writable file with --journal FILE")
        };
        let file = File::options().create(true).append(true).read(true).open(path).map_err(failed)?;
        let mut text = std::fs::read_to_string(path).map_err(failed)?;
        // What a crash has cut off is no line; its run is made again.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let is_ours = text[whole..].is_empty() || text[whole..].starts_with('{');
        if is_ours {
            file.set_len(whole as u64).map_err(failed)?;
            text.truncate(whole);
        }
        let mut records: Vec<Record> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let record: Record = serde_json::from_str(line).map_err(|error| {
                let place = format!("{}, line {}", path.display(), number + 1);
                Failure::usage(format!("{place} is not a run of a page: {error}"))
                    .hint("name another file with --journal FILE, or remove this one")
            })?;
            // One that was void has been made again.
            records.retain(|earlier| earlier.key != record.key);
            records.push(record);
        }
        Ok((Self { file: Some(file) }, records))
    }

    /// Keeps a run.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), Failure> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut line = serde_json::to_vec(record).map_err(Failure::runtime)?;
        line.push(b'\n');
        // At once, so that a line is whole or was cut off by a crash.
        file.write_all(&line).map_err(|error| Failure::runtime(format!("cannot keep a run: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Build;
    use super::super::tally::tests::record;
    use super::*;

    #[test]
    fn what_was_kept_comes_back_and_half_a_line_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, none) = Journal::open(Some(&path)).unwrap();
        assert!(none.is_empty());
        for round in 1..=2 {
            journal.add(&record("a", round, 1.5)).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
        let (mut journal, one) = Journal::open(Some(&path)).unwrap();
        assert_eq!(one.iter().map(|record| record.key.round).collect::<Vec<_>>(), [1]);
        journal.add(&record("a", 3, 1.5)).unwrap();
        let (_, two) = Journal::open(Some(&path)).unwrap();
        assert_eq!(two.iter().map(|record| record.key.round).collect::<Vec<_>>(), [1, 3]);
        let objects = |index: usize| &two[index].seen.visits[0].objects;
        assert_eq!((objects(0), objects(1)), (&one[0].seen.visits[0].objects, objects(0)));
    }

    #[test]
    fn what_runs_were_made_with_is_kept_and_old_journals_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(Some(&path)).unwrap();
        let build = Build { program: "p".to_owned(), path: "q".to_owned(), server: "s".to_owned() };
        journal.add(&record("a", 1, 1.5)).unwrap();
        journal.add(&Record { build: Some(build.clone()), ..record("a", 2, 1.5) }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.lines().next().unwrap().contains("build"), "as journals were before");
        let (_, kept) = Journal::open(Some(&path)).unwrap();
        assert_eq!((&kept[0].build, &kept[1].build), (&None, &Some(build)));
    }

    #[test]
    fn a_run_that_was_made_again_replaces_the_void_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = Journal::open(Some(&path)).unwrap();
        let late = Record { faults: vec!["late".to_owned()], ..record("a", 1, 9.0) };
        for record in [&late, &record("a", 2, 1.5), &record("a", 1, 1.5)] {
            journal.add(record).unwrap();
        }
        let (_, kept) = Journal::open(Some(&path)).unwrap();
        assert_eq!(kept.iter().map(|record| record.key.round).collect::<Vec<_>>(), [2, 1]);
        assert!(kept.iter().all(Record::is_valid));
    }

    #[test]
    fn another_file_is_not_taken_for_a_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        for text in ["x = 1\n", "x = 1"] {
            std::fs::write(&path, text).unwrap();
            assert!(Journal::open(Some(&path)).unwrap_err().to_string().contains("line 1"));
            assert_eq!(std::fs::read(&path).unwrap(), text.as_bytes(), "and it is left alone");
        }
    }
}
