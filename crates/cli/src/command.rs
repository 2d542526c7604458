//! The commands, a file each. Each is a feature of this package, or shares one (`files`).

#[cfg(feature = "edge")]
pub(crate) mod edge;
#[cfg(feature = "emulate")]
pub(crate) mod emulate;
#[cfg(feature = "files")]
mod exposure;
#[cfg(feature = "files")]
pub(crate) mod get;
#[cfg(feature = "files")]
pub(crate) mod history;
#[cfg(feature = "lab")]
pub(crate) mod lab;
#[cfg(feature = "manual")]
pub(crate) mod manual;
#[cfg(feature = "files")]
mod memory;
#[cfg(feature = "page")]
pub(crate) mod page;
pub(crate) mod profiles;
#[cfg(feature = "race")]
pub(crate) mod race;
#[cfg(feature = "files")]
mod running;
#[cfg(any(feature = "page", feature = "race"))]
mod runs;
#[cfg(feature = "files")]
pub(crate) mod serve;
#[cfg(feature = "files")]
mod workers;
