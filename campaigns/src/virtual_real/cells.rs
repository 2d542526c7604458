//! What is compared: paths and objects.

use crate::cells::Cell;

/// Without loss or jitter: rate and delay alone.
const STEADY: &str = "rate = \"10mbit\"\nrtt = \"40ms\"\n";
const FAST: &str = "rate = \"100mbit\"\nrtt = \"50ms\"\n";

/// All cells. The median of lossy ones must be known to less than the 5 % that are judged.
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
    parallel: u64,
) -> Cell {
    Cell { name, path, object, runs, parallel }
}

/// True for a cell that takes seconds: no losses, and a small object.
pub(super) fn is_quick(cell: &Cell) -> bool {
    cell.path == STEADY && cell.object != "5MB"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_can_be_run_and_have_names_of_their_own() {
        crate::cells::check(&CELLS);
        assert_eq!(CELLS.iter().filter(|cell| is_quick(cell)).count(), 2);
    }
}
