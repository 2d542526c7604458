//! `cargo xtask adverse`: many drawn bad paths in virtual time; the cases and their judge are the lab's. With `--sockets`
//! in real time, with the binary's two ends.

mod case;
mod sockets;
mod trial;

use clap::Args;

use crate::Result;
use crate::workspace::{cargo, run as run_command, target};

/// Of `cargo xtask adverse`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each seed draws stacks, path, weather and traffic. A run ends well with every byte in its place, or with
an idle timeout that there was reason for. With --sockets a file must come whole, over several clients if its server or
the first of them is killed, and nothing may hang, panic or bring a wrong byte. What fails is named with the command that repeats it; if the fault is
ours, its seed belongs in REGRESSIONS of crates/lab/tests/adverse.rs."
)]
pub(crate) struct Arguments {
    /// Cases
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Over real sockets instead, with `serve`, `get` and others that come and go
    #[arg(long, conflicts_with = "stack")]
    sockets: bool,
    /// Only against this stack
    #[arg(long, value_parser = ["ours", "noq", "quinn"])]
    stack: Option<String>,
    /// Cases at once; default as many as processors, with --sockets 8
    #[arg(long)]
    jobs: Option<u64>,
    /// Also print each case and how it ended
    #[arg(long)]
    verbose: bool,
}

/// Runs them; true if none failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.sockets {
        return sockets::run(arguments);
    }
    // Not a release build: debug assertions and overflow checks are part of the test.
    run_command(cargo().args(["build", "--quiet", "--package", "posthaste-lab", "--example", "adverse"]))?;
    let mut command = std::process::Command::new(target().join("debug/examples/adverse"));
    command.args(["--seeds", &arguments.seeds.to_string(), "--from", &arguments.from.to_string()]);
    if let Some(stack) = &arguments.stack {
        command.args(["--stack", stack]);
    }
    if let Some(jobs) = arguments.jobs {
        command.args(["--jobs", &jobs.to_string()]);
    }
    if arguments.verbose {
        command.arg("--verbose");
    }
    Ok(command.status()?.success())
}
