//! `posthaste manual`.

use std::path::PathBuf;

/// Write man pages and completions for shells below a directory.
///
/// There is a page for each command: posthaste(1), posthaste-edge(1), posthaste-edge-check(1) and so on. Completions are for
/// bash, zsh and fish. Folders are made as they are in /usr/share, and files of earlier versions are replaced.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste manual ~/.local/share            for yourself
  sudo posthaste manual /usr/local/share     for everyone on this machine
  man posthaste-edge

man finds pages in ~/.local/share/man if ~/.local/bin is in PATH. zsh finds completions only in directories of its fpath:
put DIR/zsh/vendor-completions there.")]
pub(crate) struct Manual {
    /// Where to write; it is made if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
