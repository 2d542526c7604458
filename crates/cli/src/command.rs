//! The commands, a file each.

pub(crate) mod emulate;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod page;
pub(crate) mod profiles;
pub(crate) mod race;
pub(crate) mod serve;
