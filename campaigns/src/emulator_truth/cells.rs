//! The grid: rate, delay, loss.

use posthaste_path::PathSpec;
use posthaste_units::ByteCount;

use crate::Result;

/// A path and an object.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// As a path file.
    pub(crate) path: &'static str,
    object: &'static str,
    /// Runs that count: few where they are nearly alike, many where losses make them differ.
    pub(crate) runs: u64,
    /// Runs at a time, each in namespaces of its own.
    pub(crate) parallel: u64,
}

/// All cells; queues of one bandwidth-delay product, loss towards the client.
pub(crate) const CELLS: [Cell; 8] = [
    steady("10 Mbit/s, 20 ms", "rate = \"10mbit\"\nrtt = \"20ms\"\n", "2MB"),
    steady("10 Mbit/s, 100 ms", "rate = \"10mbit\"\nrtt = \"100ms\"\n", "2MB"),
    steady("100 Mbit/s, 20 ms", "rate = \"100mbit\"\nrtt = \"20ms\"\n", "20MB"),
    steady("100 Mbit/s, 100 ms", "rate = \"100mbit\"\nrtt = \"100ms\"\n", "20MB"),
    lossy(
        "10 Mbit/s, 20 ms, 1 %",
        "rate = \"10mbit\"\nrtt = \"20ms\"\nloss = \"1%\"\nup-loss = 0.0\n",
        "2MB",
    ),
    lossy(
        "10 Mbit/s, 100 ms, 1 %",
        "rate = \"10mbit\"\nrtt = \"100ms\"\nloss = \"1%\"\nup-loss = 0.0\n",
        "1MB",
    ),
    lossy(
        "100 Mbit/s, 20 ms, 1 %",
        "rate = \"100mbit\"\nrtt = \"20ms\"\nloss = \"1%\"\nup-loss = 0.0\n",
        "2MB",
    ),
    lossy(
        "100 Mbit/s, 100 ms, 1 %",
        "rate = \"100mbit\"\nrtt = \"100ms\"\nloss = \"1%\"\nup-loss = 0.0\n",
        "1MB",
    ),
];

const fn steady(name: &'static str, path: &'static str, object: &'static str) -> Cell {
    Cell { name, path, object, runs: 5, parallel: 1 }
}

const fn lossy(name: &'static str, path: &'static str, object: &'static str) -> Cell {
    Cell { name, path, object, runs: 60, parallel: 6 }
}

impl Cell {
    pub(crate) fn path(&self) -> Result<PathSpec> {
        Ok(PathSpec::from_toml(self.path)?)
    }

    pub(crate) fn object(&self) -> Result<ByteCount> {
        Ok(self.object.parse()?)
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
    }
}
