//! `cargo campaigns profiles`: every profile through `posthaste race`, as a page with who has to have each.
//!
//! Passes if every download of every profile arrives whole. How fast they are is published and not judged.

mod page;

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use posthaste_campaign::raced::{Race, Racer};
use posthaste_schemes::selection::expand;

use crate::Result;
use crate::raced::race;
use crate::workspace::{build_posthaste, program, root};

/// Of `cargo campaigns profiles`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cargo campaigns profiles --path average --object 100kB --runs 1     does every profile work?
  cargo campaigns profiles --parallel 12 --markdown docs/results/profiles.md  1 MB over average and bad, five runs each: 5 minutes

Both ends have the profile. There is one connection at a time, so a group has one member. The servers of profiles that
make use of a history remember earlier rounds. Profiles with a guaranteed part are promised 1 Mbit/s.
Exit code: 0 if every download of every profile has arrived whole.")]
pub(crate) struct Arguments {
    /// Profiles; `all-server` are those that a server alone can use
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "all")]
    profiles: Vec<String>,
    /// Paths, as `posthaste race` takes them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "average,bad")]
    path: Vec<String>,
    /// Size of the object
    #[arg(long, value_name = "SIZE", default_value = "1MB")]
    object: String,
    /// Downloads of each profile over each path
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    runs: u64,
    /// Downloads at a time [default: what `posthaste race` chooses]
    #[arg(long, value_name = "COUNT")]
    parallel: Option<u16>,
    /// The `posthaste` to use, instead of a release build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Also write a page in Markdown, such as docs/results/profiles.md
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Races all profiles over each path and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let profiles = expand(&arguments.profiles);
    let mut races = Vec::new();
    for path in &arguments.path {
        eprintln!("{} profiles, {} runs each over {path}", profiles.len(), arguments.runs);
        let mut command = Command::new(&program);
        command.args(["race", "--json", "--no-html", "--path", path, "--object", &arguments.object]);
        command.args(["--profiles", &profiles.join(","), "--runs", &arguments.runs.to_string()]);
        if let Some(parallel) = arguments.parallel {
            command.args(["--parallel", &parallel.to_string()]);
        }
        races.push(race(command.current_dir(root()))?);
    }
    println!("{}", page::table(&races));
    for (race, racer, reason) in failures(&races) {
        println!("FAILED {} over {}: {reason}", racer.profile, race.path.name);
    }
    if let Some(file) = &arguments.markdown {
        std::fs::write(file, page::page(&races, &command_line(arguments), &arguments.object)?)?;
    }
    Ok(failures(&races).next().is_none())
}

fn failures(races: &[Race]) -> impl Iterator<Item = (&Race, &Racer, &str)> {
    races.iter().flat_map(|race| {
        race.profiles.iter().flat_map(move |racer| {
            racer.runs.iter().filter_map(move |run| Some((race, racer, run.failure.as_deref()?)))
        })
    })
}

/// The command that repeats it.
fn command_line(arguments: &Arguments) -> String {
    let Arguments { profiles, path, object, runs, parallel, .. } = arguments;
    let parallel = parallel.map(|count| format!(" --parallel {count}")).unwrap_or_default();
    format!(
        "cargo campaigns profiles --profiles {} --path {} --object {object} --runs {runs}{parallel}",
        profiles.join(","),
        path.join(",")
    )
}
