//! Options of commands that end with a table and an HTML page.

/// Forms of the result. The command itself has `--html FILE`, whose default differs.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportOutput {
    /// Do not write an HTML page
    #[arg(long, conflicts_with = "html")]
    pub(crate) no_html: bool,

    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}
