//! The directory for what is kept between runs.

use std::path::PathBuf;

use crate::exit::Failure;

/// Where state is kept if the command line does not say: the platform's place for it.
pub(crate) fn default() -> Result<PathBuf, Failure> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")))
    };
    base.map(|base| base.join("posthaste")).ok_or_else(|| {
        Failure::runtime("cannot keep a certificate: there is no home directory")
            .hint("name a directory with --state DIR")
    })
}
