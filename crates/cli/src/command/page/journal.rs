//! Runs in a file, so that a long comparison can be stopped and go on.

use std::path::Path;

use posthaste_campaign::journal::{Journal, JournalError};

use super::record::Record;
use crate::exit::Failure;

/// Opens the file, and reads what it has; of a run that was made again, the last. Without a file, nothing is kept.
pub(super) fn open(path: Option<&Path>) -> Result<(Journal<Record>, Vec<Record>), Failure> {
    let (journal, all) = Journal::<Record>::open(path).map_err(|error| {
        let hint = match error {
            JournalError::File { .. } => "choose a writable file with --journal FILE",
            JournalError::Line { .. } => "name another file with --journal FILE, or remove this one",
        };
        Failure::usage(error.to_string()).hint(hint)
    })?;
    let mut records: Vec<Record> = Vec::new();
    for record in all {
        records.retain(|earlier| earlier.key != record.key);
        records.push(record);
    }
    Ok((journal, records))
}

#[cfg(test)]
mod tests {
    use super::super::record::Build;
    use super::super::tally::tests::record;
    use super::*;

    #[test]
    fn what_runs_were_made_with_is_kept_and_old_journals_have_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = open(Some(&path)).unwrap();
        let build = Build { program: "p".to_owned(), path: "q".to_owned(), server: "s".to_owned() };
        journal.add(&record("a", 1, 1.5)).unwrap();
        journal.add(&Record { build: Some(build.clone()), ..record("a", 2, 1.5) }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.lines().next().unwrap().contains("build"), "as journals were before");
        let (_, kept) = open(Some(&path)).unwrap();
        assert_eq!((&kept[0].build, &kept[1].build), (&None, &Some(build)));
    }

    #[test]
    fn a_run_that_was_made_again_replaces_the_void_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = open(Some(&path)).unwrap();
        let late = Record { faults: vec!["late".to_owned()], ..record("a", 1, 9.0) };
        for record in [&late, &record("a", 2, 1.5), &record("a", 1, 1.5)] {
            journal.add(record).unwrap();
        }
        let (_, kept) = open(Some(&path)).unwrap();
        assert_eq!(kept.iter().map(|record| record.key.round).collect::<Vec<_>>(), [2, 1]);
        assert!(kept.iter().all(Record::is_valid));
    }
}
