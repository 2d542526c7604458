//! What has been measured, line by line: a long grid can be interrupted.

use std::path::Path;

use posthaste_campaign::journal;
use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::ends::Shares;
use super::origin::Origin;
use super::run::Conditions;
use crate::Result;

/// A valid run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) cell: Cell,
    pub(super) conditions: Conditions,
    pub(super) seed: u64,
    pub(super) shares: Shares,
    /// Greatest 99th percentile of the emulator's lateness, in seconds.
    pub(super) lateness: f64,
    /// Of which build it is, and when it was made; older journals do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<Origin>,
}

/// All valid runs so far.
#[derive(Debug)]
pub(super) struct Journal {
    file: journal::Journal<Entry>,
    entries: Vec<Entry>,
}

impl Journal {
    /// Reads what is there; without a file, nothing is kept.
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let (file, entries) = journal::Journal::open(path)
            .map_err(|error| format!("{error}; --journal names another file, --fresh begins anew"))?;
        Ok(Self { file, entries })
    }

    pub(super) fn add(&mut self, entry: Entry) -> Result<()> {
        self.file.add(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    /// All runs of these cells under these conditions.
    pub(super) fn of_all(&self, cells: &[Cell], conditions: &Conditions) -> Vec<&Entry> {
        let is_one = |entry: &&Entry| entry.conditions == *conditions && cells.contains(&entry.cell);
        self.entries.iter().filter(is_one).collect()
    }

    /// The runs of a cell under these conditions.
    pub(super) fn of<'a>(
        &'a self,
        cell: &'a Cell,
        conditions: &'a Conditions,
    ) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.cell == *cell && entry.conditions == *conditions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::{Contender, Rival};
    use super::*;

    #[test]
    fn what_was_measured_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let conditions = Conditions { rtt: 40.0, warm_up: 5.0, seconds: 20.0 };
        let contender = Contender::Profile("standard".to_owned());
        let cell = Cell { contender, rival: Rival::Bbr, flows: 2, megabits: 10.0, buffer: 0.25 };
        let entry = Entry {
            cell: cell.clone(),
            conditions: conditions.clone(),
            seed: 3,
            shares: Shares { contender: 1e6, kernel: vec![2e6, 3e6] },
            lateness: 1e-4,
            origin: None,
        };
        Journal::open(Some(&path)).unwrap().add(entry.clone()).unwrap();
        let mut journal = Journal::open(Some(&path)).unwrap();
        assert_eq!(journal.of(&cell, &conditions).count(), 1);
        assert_eq!(journal.of(&cell.baseline(), &conditions).count(), 0);
        assert_eq!(journal.of(&cell, &Conditions { rtt: 41.0, ..conditions.clone() }).count(), 0);
        journal.add(entry).unwrap();
        assert_eq!(Journal::open(Some(&path)).unwrap().of(&cell, &conditions).count(), 2);
    }

    #[test]
    fn a_journal_of_before_runs_had_an_origin_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let old = r#"{"cell":{"contender":"cubic","rival":"bbr","flows":1,"megabits":30.0,"buffer":1.0},
            "conditions":{"rtt":40.0,"warm_up":5.0,"seconds":20.0},"seed":1,
            "shares":{"contender":1e6,"kernel":[2e6]},"lateness":1e-4}"#;
        std::fs::write(&path, old.replace('\n', "") + "\n").unwrap();
        let journal = Journal::open(Some(&path)).unwrap();
        assert!(journal.entries.len() == 1 && journal.entries[0].origin.is_none());
    }
}
