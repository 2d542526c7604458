//! Comparisons of Posthaste with the real world, with models and with itself: `cargo campaigns --help`.

mod cells;
#[cfg(target_os = "linux")]
mod connection_cost;
#[cfg(target_os = "linux")]
mod emulated;
#[cfg(target_os = "linux")]
mod emulator_truth;
#[cfg(target_os = "linux")]
mod kernel_fairness;
#[cfg(target_os = "linux")]
mod migration;
#[cfg(target_os = "linux")]
mod page_rivals;
mod plots;
mod profiles;
mod raced;
mod virtual_real;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use posthaste_tools::exit_code;
pub(crate) use posthaste_tools::{Result, median, peers, workspace};

#[derive(Debug, Parser)]
#[command(name = "cargo campaigns", about = "Comparisons of Posthaste that take minutes to hours")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
    /// Measure time and CPU of a download by the number of its connections, and its energy by a model
    #[cfg(target_os = "linux")]
    ConnectionCost(connection_cost::Arguments),
    /// Let a profile share a bottleneck with the kernel's TCP, over a grid of rates, buffers and competitors
    #[cfg(target_os = "linux")]
    KernelFairness(kernel_fairness::Arguments),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EmulatorEnd(emulator_truth::End),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    ConnectionCostEnd(connection_cost::End),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    MigrationEnd(migration::End),
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    FairnessEnd(kernel_fairness::End),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        #[cfg(target_os = "linux")]
        Command::EmulatorTruth(arguments) => emulator_truth::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::PageRivals(arguments) => page_rivals::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::EmulatorEnd(end) => emulator_truth::play(&end),
        #[cfg(target_os = "linux")]
        Command::ConnectionCost(arguments) => connection_cost::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::ConnectionCostEnd(end) => connection_cost::play(&end),
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
    exit_code(outcome)
}
