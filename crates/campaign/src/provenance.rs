//! Runs of other builds: a journal outlives programs and the files that it was begun with.

use std::collections::{BTreeMap, BTreeSet};

/// How many runs are of each kind, as `2 of another build, 1 of another path`. A run is of the kind with its number, or
/// of none. `None` if all are of none.
pub fn count_kinds(kinds: &[&str], runs: impl IntoIterator<Item = Option<usize>>) -> Option<String> {
    let mut counts = vec![0_u64; kinds.len()];
    for kind in runs.into_iter().flatten() {
        if let Some(count) = counts.get_mut(kind) {
            *count += 1;
        }
    }
    let text: Vec<String> = kinds
        .iter()
        .zip(counts)
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    (!text.is_empty()).then(|| text.join(", "))
}

/// Names under which not all runs had the same, with the number of different ones.
pub fn changed<'a, N: Ord>(digests: impl IntoIterator<Item = (N, &'a str)>) -> Vec<(N, usize)> {
    let mut by_name: BTreeMap<N, BTreeSet<&str>> = BTreeMap::new();
    for (name, digest) in digests {
        by_name.entry(name).or_default().insert(digest);
    }
    let counts = by_name.into_iter().map(|(name, digests)| (name, digests.len()));
    counts.filter(|(_, count)| *count > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_kind_in_the_order_of_kinds() {
        let kinds = ["of a path", "of a build"];
        assert_eq!(count_kinds(&kinds, [None, None]), None);
        let counted = count_kinds(&kinds, [Some(1), None, Some(0), Some(1), Some(7)]).unwrap();
        assert_eq!(counted, "1 of a path, 2 of a build", "there is no kind 7");
    }

    #[test]
    fn what_was_changed_has_several_digests_under_one_name() {
        assert_eq!(changed([("a", "1"), ("b", "1"), ("a", "2"), ("b", "1")]), [("a", 2)]);
    }
}
