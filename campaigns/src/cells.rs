//! Cells of a comparison with the lab: a path, an object, and how many runs.

use posthaste_lab::peers::Stack;
use posthaste_lab::run::run as run_in_lab;
use posthaste_lab::spec::RunSpec;
use posthaste_path::PathSpec;
use posthaste_units::{ByteCount, Duration};

use crate::Result;

/// A path and an object.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// As a path file.
    pub(crate) path: &'static str,
    pub(crate) object: &'static str,
    /// Runs that count: few where they are nearly alike, many where losses make them differ.
    pub(crate) runs: u64,
    /// Runs at a time. What lossy paths carry keeps a processor idle, so several do not hinder each other.
    pub(crate) parallel: u64,
}

impl Cell {
    pub(crate) fn path(&self) -> Result<PathSpec> {
        Ok(PathSpec::from_toml(self.path)?)
    }

    pub(crate) fn object(&self) -> Result<ByteCount> {
        Ok(self.object.parse()?)
    }

    /// Completion times in the lab over paths with these seeds, in seconds; infinite where a run did not complete.
    ///
    /// A path with the same seed loses packets with the same numbers. Over paths of its own the lab's median would be
    /// another one: with 1 % of loss at 100 Mbit/s and 100 ms the medians of 60 seeds differ by a third.
    pub(crate) fn virtual_times(
        &self,
        stack: &Stack,
        seeds: impl IntoIterator<Item = u64>,
        (deadline, datagram): (Duration, u16),
    ) -> Result<Vec<f64>> {
        let download = RunSpec::download(self.path()?, stack.clone(), self.object()?);
        let spec = RunSpec { deadline, datagram, ..download };
        let time = |seed| {
            let result = run_in_lab(&spec, seed, None)?;
            Ok(result.flows.first().and_then(|flow| flow.completion).unwrap_or(f64::INFINITY))
        };
        seeds.into_iter().map(time).collect()
    }
}

/// The cells that a command line names: all if it names none, those that `is_quick` accepts if it asks for a `short` run.
pub(crate) fn chosen(
    cells: &'static [Cell],
    names: &[String],
    short: bool,
    is_quick: impl Fn(&Cell) -> bool,
) -> Result<Vec<&'static Cell>> {
    if let Some(unknown) = names.iter().find(|name| cells.iter().all(|cell| cell.name != **name)) {
        let names: Vec<&str> = cells.iter().map(|cell| cell.name).collect();
        return Err(format!("no cell {unknown:?}; there are: {}", names.join(", ")).into());
    }
    let is_wanted = |cell: &&Cell| {
        if short { is_quick(cell) } else { names.is_empty() || names.iter().any(|name| name == cell.name) }
    };
    Ok(cells.iter().filter(is_wanted).collect())
}

/// Fails if a cell cannot be run, or has the name of another.
#[cfg(test)]
pub(crate) fn check(cells: &[Cell]) {
    for (index, cell) in cells.iter().enumerate() {
        cell.path().unwrap_or_else(|error| panic!("{}: {error}", cell.name)).validate().unwrap();
        cell.object().unwrap();
        assert!(cells[..index].iter().all(|other| other.name != cell.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CELLS: [Cell; 2] = [
        Cell { name: "one", path: "base = \"good\"", object: "1kB", runs: 1, parallel: 1 },
        Cell { name: "two", path: "base = \"bad\"", object: "1kB", runs: 1, parallel: 1 },
    ];

    fn names(wanted: &[&str], short: bool) -> Result<Vec<&'static str>> {
        let wanted: Vec<String> = wanted.iter().map(|&name| name.to_owned()).collect();
        let found = chosen(&CELLS, &wanted, short, |cell| cell.name == "one")?;
        Ok(found.into_iter().map(|cell| cell.name).collect())
    }

    #[test]
    fn cells_are_chosen_by_name_and_the_quick_ones_for_a_short_run() {
        assert_eq!(names(&[], false).unwrap(), ["one", "two"]);
        assert_eq!(names(&["two"], false).unwrap(), ["two"]);
        assert_eq!(names(&[], true).unwrap(), ["one"]);
        assert_eq!(names(&["x"], false).unwrap_err().to_string(), "no cell \"x\"; there are: one, two");
    }
}
