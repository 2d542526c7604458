//! A model of a phone's LTE radio: what a download of some duration costs in energy. Nothing is measured here.
//!
//! The form is promotion, then power while the radio is active times the time, then the tail in which it stays on.
//! Paper 003 names no constants; of LTE's power it cites Huang et al., `MobiSys` 2012, its reference 6. The constants below
//! are that paper's as they are commonly quoted (its tables of LTE's power and states, one phone of 2012); the text was
//! not at hand to check them.

use posthaste_units::ByteCount;

/// Joules until the radio is connected: 0.260 s at 1.211 W.
const PROMOTION: f64 = 0.315;
/// Watts while it receives, whatever the rate.
const ACTIVE: f64 = 1.288;
/// Watts for each Mbit/s of the rate down.
const PER_MEGABIT: f64 = 0.052;
/// Joules after the last packet: 11.58 s at 1.060 W.
const TAIL: f64 = 12.27;

/// Joules that a radio of this model spends on a download: while it runs, and with promotion and tail.
pub(super) fn energy(object: ByteCount, seconds: f64) -> (f64, f64) {
    let megabits = object.get() as f64 * 8e-6;
    // The rate times the time is the object, whatever the time.
    let active = ACTIVE * seconds + PER_MEGABIT * megabits;
    (active, PROMOTION + active + TAIL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_in_half_the_time_save_the_power_of_that_time_and_not_the_tail() {
        let object = ByteCount::new(1_000_000);
        let ((slow, slow_all), (fast, fast_all)) = (energy(object, 10.0), energy(object, 5.0));
        assert!((slow - 13.296).abs() < 1e-9, "{slow}");
        assert!((slow - fast - 5.0 * ACTIVE).abs() < 1e-9);
        assert!((slow_all - slow - 12.585).abs() < 1e-9 && (fast_all - fast - 12.585).abs() < 1e-9);
    }
}
