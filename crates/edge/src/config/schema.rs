//! The JSON Schema of the file, for editors.

use super::Config;

impl Config {
    /// The JSON Schema (draft 7) of the file. It refuses nothing that an edge accepts, but for lists in the place of
    /// tables, which nobody should write; relations between keys and what lies around the file are left to the edge.
    ///
    /// Written by hand: descriptions for users of the file, no attribute at each field, no dependency. Tests compare its
    /// keys and types with those that are read.
    pub const fn json_schema() -> &'static str {
        include_str!("schema.json")
    }
}

#[cfg(test)]
mod tests;
