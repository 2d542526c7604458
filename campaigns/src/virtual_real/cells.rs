//! What is compared: paths and objects.

use posthaste_path::PathSpec;
use posthaste_units::ByteCount;

use crate::Result;

/// A path and an object.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// As `posthaste race --path FILE` and the lab's experiments read it.
    pub(crate) path: &'static str,
    object: &'static str,
    /// Real runs that count. Few where all runs are nearly alike, many where losses make them differ: the median
    /// must be known to less than the 5 % that are judged.
    pub(crate) runs: u64,
    /// Real runs at a time. What lossy paths carry keeps a processor idle, so several do not hinder each other.
    pub(crate) parallel: u16,
}

/// Without loss or jitter: rate and delay alone.
const STEADY: &str = "rate = \"10mbit\"\nrtt = \"40ms\"\n";
const FAST: &str = "rate = \"100mbit\"\nrtt = \"50ms\"\n";

/// All cells.
pub(crate) const CELLS: [Cell; 10] = [
    cell("steady 100 kB", STEADY, "100kB", 15, 1),
    cell("steady 1 MB", STEADY, "1MB", 15, 1),
    cell("steady 5 MB", STEADY, "5MB", 15, 1),
    cell("fast 10 MB", FAST, "10MB", 15, 1),
    cell("good 100 kB", "base = \"good\"", "100kB", 400, 4),
    cell("good 1 MB", "base = \"good\"", "1MB", 400, 8),
    cell("average 1 MB", "base = \"average\"", "1MB", 800, 16),
    cell("bad 100 kB", "base = \"bad\"", "100kB", 400, 16),
    cell("lte 1 MB", "base = \"lte\"", "1MB", 200, 2),
    cell("wifi 1 MB", "base = \"wifi\"", "1MB", 200, 2),
];

const fn cell(
    name: &'static str,
    path: &'static str,
    object: &'static str,
    runs: u64,
    parallel: u16,
) -> Cell {
    Cell { name, path, object, runs, parallel }
}

impl Cell {
    pub(crate) fn path(&self) -> Result<PathSpec> {
        Ok(PathSpec::from_toml(self.path)?)
    }

    pub(crate) fn object(&self) -> Result<ByteCount> {
        Ok(self.object.parse()?)
    }

    /// True if it takes seconds: no losses, and a small object.
    pub(crate) fn is_quick(&self) -> bool {
        self.path == STEADY && self.object != "5MB"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_can_be_run_and_have_names_of_their_own() {
        for (index, cell) in CELLS.iter().enumerate() {
            cell.path().unwrap_or_else(|error| panic!("{}: {error}", cell.name)).validate().unwrap();
            cell.object().unwrap();
            assert!(CELLS[..index].iter().all(|other| other.name != cell.name));
        }
        assert_eq!(CELLS.iter().filter(|cell| cell.is_quick()).count(), 2);
    }
}
