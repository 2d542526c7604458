//! What has been measured, line by line: a long grid can be interrupted.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::ends::Shares;
use super::meeting::Conditions;
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
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut entries = Vec::new();
        for (number, line) in whole.lines().enumerate() {
            let entry = serde_json::from_str(line).map_err(|error| {
                format!("{}, line {}: {error}; --fresh begins anew", path.display(), number + 1)
            })?;
            entries.push(entry);
        }
        if whole.len() + 1 < text.len() {
            std::fs::write(&path, if whole.is_empty() { String::new() } else { format!("{whole}\n") })?;
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
}
