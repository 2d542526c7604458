//! The command line.
#![expect(clippy::doc_markdown, reason = "these comments are the help's text")]

#[cfg(not(feature = "full"))]
use std::ffi::OsString;
use std::time::Duration;

use clap::{Parser, Subcommand};
#[cfg(feature = "files")]
use posthaste_units::{ParseQuantityError, Rate};

#[cfg(feature = "edge")]
mod edge;
#[cfg(feature = "emulate")]
mod emulate;
#[cfg(feature = "files")]
mod get;
#[cfg(feature = "files")]
mod history;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "manual")]
mod manual;
#[cfg(feature = "page")]
mod page;
#[cfg(all(feature = "edge", feature = "page"))]
mod prove;
#[cfg(feature = "race")]
mod race;
#[cfg(any(feature = "page", feature = "race"))]
mod report_output;
#[cfg(feature = "files")]
mod serve;
#[cfg(feature = "race")]
mod workload;

#[cfg(feature = "edge")]
pub(crate) use edge::{Edge, EdgeCheck, EdgeCommand, EdgeDoctor, EdgeStatus};
#[cfg(feature = "emulate")]
pub(crate) use emulate::{Device, Emulate, EmulateInside, Meter};
#[cfg(feature = "lab")]
pub(crate) use lab::{Lab, LabCommand, LabItems, LabList, LabMerge, LabRun, Seeds};
#[cfg(feature = "manual")]
pub(crate) use manual::Manual;
#[cfg(feature = "page")]
pub(crate) use page::{Page, PageRelay, PageVisit};
#[cfg(all(feature = "edge", feature = "page"))]
pub(crate) use prove::{EdgeProve, Pin};
#[cfg(all(feature = "edge", feature = "page"))]
pub(crate) use report_output::ReportOutput;
#[cfg(feature = "files")]
pub(crate) use {
    get::{Connections, Get, GuaranteedRate, QuicVersion},
    history::{History, HistoryCommand, HistoryFile, HistoryPlace},
    serve::{Cipher, Retry, Serve},
};
#[cfg(feature = "race")]
pub(crate) use {race::Race, workload::Workload};

/// Fast HTTP/3 over poor networks, on a QUIC transport with replaceable policies.
#[derive(Debug, Parser)]
#[command(
    name = "posthaste",
    version,
    about,
    after_help = "\
Examples:
  posthaste race                           race profiles over an emulated path (about a minute)
  posthaste serve ./public                 serve ./public on https://127.0.0.1:4433/
  posthaste edge --beside https://127.0.0.1 --cert CHAIN --key KEY  serve an existing site over HTTP/3
  posthaste get https://host/file -o file  fetch one file, with progress
  posthaste profiles                       list the profiles and what each is for
  posthaste lab run smoke                  measure stacks over emulated paths in virtual time
  posthaste emulate --path lte -- bash     open a shell behind an emulated path
  posthaste page --path lte                load web pages in a browser over an emulated path

Environment:
  RUST_LOG       log filter for stderr, for example RUST_LOG=posthaste_transport=debug
  SSLKEYLOGFILE  append TLS secrets to this file, for Wireshark

For help on one command: posthaste serve --help"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "race")]
    Race(Race),
    #[cfg(feature = "files")]
    Serve(Serve),
    #[cfg(feature = "edge")]
    Edge(Box<Edge>),
    #[cfg(feature = "files")]
    Get(Get),
    Profiles(Profiles),
    #[cfg(feature = "files")]
    History(History),
    #[cfg(feature = "lab")]
    Lab(Lab),
    #[cfg(feature = "emulate")]
    Emulate(Emulate),
    #[cfg(feature = "emulate")]
    #[command(hide = true)]
    EmulateInside(EmulateInside),
    #[cfg(feature = "page")]
    Page(Page),
    #[cfg(feature = "page")]
    #[command(hide = true)]
    PageVisit(PageVisit),
    #[cfg(feature = "page")]
    #[command(hide = true)]
    PageRelay(PageRelay),
    #[cfg(feature = "manual")]
    Manual(Manual),
    /// A command that was not compiled, or that does not exist.
    #[cfg(not(feature = "full"))]
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// List the profiles, or show the policies and constants of one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posthaste profiles              the profiles, and what each is for
  posthaste profiles cubic        its policies: claims, benefits and limits
  posthaste profiles ./mine.toml  the same for your own profile")]
pub(crate) struct Profiles {
    /// Name of a profile, or a TOML file
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a time from a millisecond to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.001..=86_400.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be from 0.001 to 86400 seconds".to_owned())
    }
}

/// Parses a rate that a network may guarantee.
#[cfg(feature = "files")]
fn guaranteed_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: ParseQuantityError| error.to_string())?;
    if (10_000..=100_000_000_000).contains(&rate.as_bits_per_second()) {
        Ok(rate)
    } else {
        Err("must be from 10kbit to 100Gbit".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "x", "-1", "0", "NaN", "inf", "1e99"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
