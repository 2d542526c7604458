//! The grid: rate, delay, loss.

use crate::cells::Cell;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_can_be_run_and_have_names_of_their_own() {
        crate::cells::check(&CELLS);
    }
}
