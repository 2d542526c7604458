//! Results that are kept: what a run follows from.

use posthaste_campaign::identity::Identity;
use posthaste_campaign::keyed::{Key, KeyedJournal};
use posthaste_units::Duration;

use crate::result::RunResult;
use crate::spec::RunSpec;

/// The journal of one experiment and one build of the program.
pub type Journal = KeyedJournal<RunResult>;

/// What a program and a run's description come to, for [`key`]. The description's `Debug` text has everything that a run
/// follows from, with what names stood for: a path's trace, a profile's constants.
pub(super) fn digest_of(program: Option<&Identity>, spec: &RunSpec) -> [u8; 32] {
    let program = program.map_or(&[][..], |program| program.bytes());
    let spec = format!("{:?}", RunSpec { series: None, ..spec.clone() });
    *Identity::of_parts([program, spec.as_bytes()]).bytes()
}

/// All that a result follows from.
pub(super) fn key(digest: &[u8; 32], seed: u64, series: Option<Duration>) -> Key {
    let series = series.map_or(u64::MAX, Duration::as_nanos);
    Key::new([&digest[..], &seed.to_be_bytes(), &series.to_be_bytes()])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiment::Experiment;

    /// Stacks that are written out may share a name and differ in constants alone.
    #[test]
    fn cells_whose_profiles_differ_in_constants_have_other_keys() {
        let experiment = Experiment::built_in("cg-iw").unwrap();
        let digests: BTreeSet<_> = experiment.cells.iter().map(|cell| digest_of(None, &cell.spec)).collect();
        assert_eq!(digests.len(), experiment.cells.len());
    }

    #[test]
    fn another_program_or_description_has_other_keys() {
        let programs = [1, 2].map(|byte: u8| Identity::of_parts([&[byte][..]]));
        let experiment = Experiment::built_in("smoke").unwrap();
        let spec = &experiment.cells[0].spec;
        let digests: BTreeSet<_> = [None, Some(&programs[0]), Some(&programs[1])]
            .into_iter()
            .flat_map(|program| experiment.cells.iter().map(move |cell| digest_of(program, &cell.spec)))
            .collect();
        assert_eq!(digests.len(), 3 * experiment.cells.len());
        let series = RunSpec { series: Some(Duration::from_millis(1)), ..spec.clone() };
        assert_eq!(digest_of(None, spec), digest_of(None, &series), "the series is the key's");
        assert_ne!(key(&[0; 32], 1, None), key(&[0; 32], 1, series.series));
    }
}
