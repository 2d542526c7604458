//! The command line of `posthaste history`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// Show or clear what a server has learnt of its clients' paths.
///
/// With a profile such as `history`, `posthaste serve` remembers how much the path to each client carried, so that the
/// client's next connection need not find out. This is the file in which it does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste history show                    what is known, the latest first
  posthaste history show --state DIR --json for programs
  posthaste history clear                   forget all of it

The file can be read and cleared while a server runs; that server keeps what it has in memory until it ends.
With --json stdout is one JSON object: `file`, `paths`, each with `path`, `window_bytes`, `min_rtt_seconds`, `samples`
and `age_seconds`.
Exit code: 0 if it worked, 1 if the file cannot be used, 2 if it is used wrongly.")]
pub(crate) struct History {
    #[command(subcommand)]
    pub(crate) command: HistoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Show the paths that are known: window, least round-trip time, age
    Show(HistoryFile),
    /// Forget all paths
    Clear(HistoryFile),
}

/// Where the file is, and who reads.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryFile {
    /// The server's folder [default: $XDG_STATE_HOME/posthaste or the like]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a server keeps what it learns of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryPlace {
    /// In the state folder
    Store,
    /// With the clients, sealed in their address tokens: servers of one secret share it
    Token,
    /// Nowhere
    None,
}
