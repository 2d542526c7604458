//! The command line of `posthaste history`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

/// Show or clear a server's path histories.
///
/// With a profile such as `history`, `posthaste serve` remembers how much data the path to each client carried. The
/// client's next connection can then resume near that rate. These commands read and clear the file with the histories.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste history show                    known paths, the latest first
  posthaste history show --state DIR --json output for programs
  posthaste history clear                   delete all histories

The file can be read and cleared while a server runs; the server keeps its copy in memory until it ends.
With --json stdout is one JSON object: `file`, `paths`, each with `path`, `window_bytes`, `min_rtt_seconds`, `loss` (the
share of packets lost where no queue stood; null if unknown), `loss_packets` (of how many), `samples` and `age_seconds`.
Exit code: 0 on success, 1 if the file cannot be used, 2 for a usage error.")]
pub(crate) struct History {
    #[command(subcommand)]
    pub(crate) command: HistoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Show known paths: window, smallest round-trip time, loss, age
    Show(HistoryFile),
    /// Delete all histories
    Clear(HistoryFile),
}

/// Location of the file and output format.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryFile {
    /// State directory of the server [default: $XDG_STATE_HOME/posthaste or equivalent]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a server keeps path histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryPlace {
    /// In the state directory
    Store,
    /// In memory, until the server ends
    Memory,
    /// In the clients' address tokens, encrypted; shared by servers with the same secret
    Token,
    /// Nowhere
    None,
}
