//! What has been measured, line by line: a long grid can be interrupted.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::ends::Shares;
use super::meeting::Conditions;
use super::origin::Origin;
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
    path: Option<PathBuf>,
    entries: Vec<Entry>,
}

impl Journal {
    pub(super) fn in_memory() -> Self {
        Self { path: None, entries: Vec::new() }
    }

    /// Reads what is there. A last line that an interruption has cut off is none.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let text = if path.exists() { std::fs::read_to_string(&path)? } else { String::new() };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let (whole, rest) = text.split_at(whole);
        if !rest.is_empty() && !rest.starts_with('{') {
            return Err(
                format!("{} is no journal of this command: --journal names another", path.display()).into()
            );
        }
        let mut entries = Vec::new();
        for (number, line) in whole.lines().enumerate() {
            let entry = serde_json::from_str(line).map_err(|error| {
                format!("{}, line {}: {error}; --fresh begins anew", path.display(), number + 1)
            })?;
            entries.push(entry);
        }
        if !rest.is_empty() {
            std::fs::write(&path, whole)?;
        }
        Ok(Self { path: Some(path), entries })
    }

    pub(super) fn add(&mut self, entry: Entry) -> Result<()> {
        if let Some(path) = &self.path {
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            writeln!(file, "{}", serde_json::to_string(&entry)?)?;
        }
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
    fn what_was_measured_is_found_again_and_a_cut_line_is_not() {
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
        Journal::open(path.clone()).unwrap().add(entry.clone()).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"cell\":");
        std::fs::write(&path, &text).unwrap();
        let mut journal = Journal::open(path.clone()).unwrap();
        assert_eq!(journal.of(&cell, &conditions).count(), 1);
        assert_eq!(journal.of(&cell.baseline(), &conditions).count(), 0);
        assert_eq!(journal.of(&cell, &Conditions { rtt: 41.0, ..conditions.clone() }).count(), 0);
        journal.add(entry).unwrap();
        assert_eq!(Journal::open(path).unwrap().of(&cell, &conditions).count(), 2);
    }

    #[test]
    fn a_journal_of_before_runs_had_an_origin_is_read_and_another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let old = r#"{"cell":{"contender":"cubic","rival":"bbr","flows":1,"megabits":30.0,"buffer":1.0},
            "conditions":{"rtt":40.0,"warm_up":5.0,"seconds":20.0},"seed":1,
            "shares":{"contender":1e6,"kernel":[2e6]},"lateness":1e-4}"#;
        std::fs::write(&path, old.replace('\n', "") + "\n").unwrap();
        let journal = Journal::open(path.clone()).unwrap();
        assert!(journal.entries.len() == 1 && journal.entries[0].origin.is_none());
        for other in ["notes", "a line\n"] {
            std::fs::write(&path, other).unwrap();
            assert!(Journal::open(path.clone()).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
    }
}
