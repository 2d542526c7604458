//! Developer and CI commands: `cargo xtask --help`.

mod adverse;
mod bench;
mod check;
mod compliance;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod emulator_truth;
mod fuzz;
mod h3spec;
mod identity;
mod interop;
#[cfg(target_os = "linux")]
mod kernel_fairness;
#[cfg(target_os = "linux")]
mod migration;
#[cfg(target_os = "linux")]
mod page_rivals;
mod peers;
mod plots;
mod process;
mod profiles;
mod virtual_real;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Errors end the command with a message.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

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
    /// Run client and server against other stacks on random adverse paths, in virtual time
    Adverse(adverse::Arguments),
    /// Fuzz the parsers of network input
    Fuzz(fuzz::Arguments),
    /// Compare CPU time and memory with other QUIC libraries
    #[command(subcommand)]
    Bench(bench::Command),
    /// Compare the lab's virtual time with real sockets over the same paths, cell by cell
    VirtualReal(virtual_real::Arguments),
    /// Compare the emulator with its model, and the lab's TCP with the kernel's, over a grid of paths
    #[cfg(target_os = "linux")]
    EmulatorTruth(emulator_truth::Arguments),
    /// Draw the pictures of the README and of docs/schemes from runs of the lab
    Plots(plots::Arguments),
    /// Race every profile over real sockets, and show its required support
    Profiles(profiles::Arguments),
    /// Load pages in Chromium from our server, nginx, quiche and quic-go, over emulated paths
    #[cfg(target_os = "linux")]
    PageRivals(page_rivals::Arguments),
    /// Take a download's network away half-way, and see it go on over another
    #[cfg(target_os = "linux")]
    Migration(migration::Arguments),
    /// Let a profile share a bottleneck with the kernel's TCP, over a grid of rates, buffers and competitors
    #[cfg(target_os = "linux")]
    KernelFairness(kernel_fairness::Arguments),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EmulatorEnd(emulator_truth::End),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    MigrationEnd(migration::End),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    FairnessEnd(kernel_fairness::End),
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
        Command::Adverse(arguments) => adverse::run(&arguments),
        Command::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Command::Bench(command) => bench::run(&command),
        #[cfg(target_os = "linux")]
        Command::EmulatorTruth(arguments) => emulator_truth::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::PageRivals(arguments) => page_rivals::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::EmulatorEnd(end) => emulator_truth::play(&end),
        #[cfg(target_os = "linux")]
        Command::Migration(arguments) => migration::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::MigrationEnd(end) => migration::play(&end),
        #[cfg(target_os = "linux")]
        Command::KernelFairness(arguments) => kernel_fairness::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::FairnessEnd(end) => kernel_fairness::play(&end),
        Command::Plots(arguments) => plots::run(&arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::VirtualReal(arguments) => virtual_real::run(&arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
