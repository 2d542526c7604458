//! What can be wrong with a page.

use super::Page;

/// Why a page cannot be loaded; every message names the culprit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// No page of this name comes with Posthaste.
    #[error("there is no page `{name}`; there are {}", Page::names().collect::<Vec<_>>().join(", "))]
    UnknownPage {
        /// The name.
        name: String,
    },
    /// It is not TOML, or has other keys or values than pages have.
    #[error("{0}")]
    Syntax(Box<toml::de::Error>),
    /// It has no objects.
    #[error("a page needs one object at least: [[objects]] with name, host and size")]
    Empty,
    /// It has too many objects.
    #[error("a page of {count} objects is too large: at most {max}")]
    TooMany {
        /// Its objects.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// Two things have one name.
    #[error("two {kind} have the name `{name}`")]
    Duplicate {
        /// `hosts` or `objects`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An object has no size, or two.
    #[error("object `{object}` needs either `size` or `sizes` (a list that is not empty)")]
    Size {
        /// The object.
        object: String,
    },
    /// An object is on a host that the page does not list.
    #[error("object `{object}` is on the unknown host `{host}`; there are {}", hosts.join(", "))]
    UnknownHost {
        /// The object.
        object: String,
        /// Its host.
        host: String,
        /// The hosts that the page lists.
        hosts: Vec<String>,
    },
    /// A host has no object.
    #[error("no object is on the host `{host}`")]
    UnusedHost {
        /// The host.
        host: String,
    },
    /// An object waits for something that is not there.
    #[error("object `{object}` comes after `{dependency}`, which the page does not have")]
    UnknownObject {
        /// The object.
        object: String,
        /// What it waits for.
        dependency: String,
    },
    /// Objects wait for each other.
    #[error("objects wait for each other: {}", names.join(" after "))]
    Cycle {
        /// The objects, the first once more at the end.
        names: Vec<String>,
    },
}
