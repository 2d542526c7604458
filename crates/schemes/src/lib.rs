//! The policies that come with Posthaste, one file per policy, and the profiles made of them.
//!
//! Each file opens with what its policy claims, its source, when to use it and when it breaks, and ends in an
//! [`Entry`] of the [`registry`]: a policy is added by one file and one line there. A `Definition` is a profile as a
//! text names it; `named` and `from_toml` build a profile of one, and [`default_profile`] needs no text at all.
//!
//! Everything about names and texts is in the feature `profiles-toml`, which is on by default. Without it the policies and
//! the default profile are there, and the crate compiles without the TOML parser.
//!
//! ```
//! let profile = posthaste_schemes::named("cubic-iw32")?;
//! assert_eq!(profile.start().initial_window(1200.into()), 38_400.into());
//! let promised = posthaste_schemes::named("quicming@min_rate=1mbit")?;
//! assert_eq!(promised.name(), "quicming@min_rate=1mbit");
//! let error = posthaste_schemes::named("cubik").unwrap_err();
//! assert!(error.to_string().contains("cubic-iw32"));
//! # Ok::<(), posthaste_schemes::ProfileError>(())
//! ```

#![cfg_attr(not(feature = "profiles-toml"), allow(dead_code, unused_imports))]

pub mod ack;
#[cfg(feature = "profiles-toml")]
mod built_in;
pub mod congestion;
pub mod credit;
mod default;
#[cfg(feature = "profiles-toml")]
mod definition;
mod entry;
#[cfg(feature = "profiles-toml")]
mod error;
pub mod group;
pub mod registry;
pub mod repair;
#[cfg(feature = "profiles-toml")]
pub mod selection;
pub mod silence;
pub mod slow_start;
pub mod start;
mod value;
mod values;
mod variant;

#[cfg(test)]
mod testing;
#[cfg(all(test, feature = "profiles-toml"))]
mod tests;

#[cfg(feature = "profiles-toml")]
use posthaste_policy::Profile;

#[cfg(feature = "profiles-toml")]
pub use built_in::{comparison_names, names};
pub use default::default_profile;
#[cfg(feature = "profiles-toml")]
pub use definition::{Definition, is_file};
pub use entry::{Entry, Need, Property, Required};
#[cfg(feature = "profiles-toml")]
pub use error::ProfileError;
pub use variant::Variant;

/// The profile with this name, built-in or for comparison ([`comparison_names`]); parameters may follow:
/// `NAME@key=value[,key=value]`.
///
/// # Errors
/// [`ProfileError::Unknown`] with the names that there are; [`ProfileError::Parameter`] for a parameter that the
/// profile does not have, that is out of range, or that is missing.
#[cfg(feature = "profiles-toml")]
pub fn named(name: &str) -> Result<Profile, ProfileError> {
    Definition::named(name)?.build()
}

/// The profile with this name ([`named`]), or in the file with this path ([`is_file`]); parameters may follow either.
///
/// # Errors
/// As [`named`] and [`from_toml`]; [`ProfileError::File`] if the file cannot be read.
#[cfg(feature = "profiles-toml")]
pub fn find(name: &str) -> Result<Profile, ProfileError> {
    Definition::find(name)?.build()
}

/// A profile from its TOML text; `name` is for reports. The form is described at [`Definition`].
///
/// # Errors
/// [`ProfileError::Invalid`] for a text that is not TOML, for keys and policies that are unknown, for values out of
/// range and for policies that do not go together; the message lists what is valid. [`ProfileError::Parameter`] if a
/// parameter is missing.
#[cfg(feature = "profiles-toml")]
pub fn from_toml(name: &str, text: &str) -> Result<Profile, ProfileError> {
    Definition::from_toml(name, text)?.build()
}

/// The examples of the package's README are tests, too.
#[cfg(all(doctest, feature = "profiles-toml"))]
#[doc = include_str!("../README.md")]
struct Readme;
