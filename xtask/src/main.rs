//! Developer and CI commands: `cargo xtask --help`.

mod adverse;
mod bench;
mod check;
mod compliance;
mod fuzz;
mod h2spec;
mod h3spec;
mod hostile;
mod identity;
mod interop;
mod interrupt;
mod process;
mod site;
mod soak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use posthaste_tools::exit_code;
pub(crate) use posthaste_tools::{Result, median, peers, workspace};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer and CI commands of Posthaste")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check formatting, lints, documentation, the public API, file sizes, duplicates and wording
    Check(check::Arguments),
    /// Report which MUSTs of the RFCs code and tests cite
    Compliance(compliance::Arguments),
    /// Build the documentation, refusing broken links
    Docs,
    /// Compare the public API of the libraries with docs/api
    Api(check::api::Arguments),
    /// Publish the libraries in a dry run, and compile them from their packages
    Packages,
    /// Run third-party HTTP/3 clients and servers against Posthaste
    Interop(interop::Arguments),
    /// Run h3spec, which breaks the protocol, against the server
    H3spec(h3spec::Arguments),
    /// Run h2spec, which breaks HTTP/2, against the edge; needs go
    H2spec,
    /// Run client and server against other stacks on random adverse paths, in virtual time
    Adverse(adverse::Arguments),
    /// Treat the released binary as hostile and faulty peers, readers and networks do
    Hostile(hostile::Arguments),
    /// Serve clients that come and go for minutes or hours; judge that memory and descriptors do not grow
    Soak(soak::Arguments),
    /// Fuzz the parsers of network input
    Fuzz(fuzz::Arguments),
    /// Compare CPU time and memory with other QUIC libraries
    #[command(subcommand)]
    Bench(bench::Command),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Check(arguments) => check::check(&arguments),
        Command::Compliance(arguments) => compliance::run(&arguments),
        Command::Docs => check::docs(),
        Command::Api(arguments) => check::api::run(&arguments),
        Command::Packages => check::packages::run(),
        Command::Interop(arguments) => interop::run(&arguments),
        Command::H3spec(arguments) => h3spec::run(&arguments),
        Command::H2spec => h2spec::run(),
        Command::Adverse(arguments) => adverse::run(&arguments),
        Command::Hostile(arguments) => hostile::run(&arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Command::Bench(command) => bench::run(&command),
    };
    exit_code(outcome)
}
