//! What can be read off a run, by name.

/// All metrics' names, in the catalogue's order.
pub fn names() -> Vec<&'static str> {
    vec!["completion"]
}
