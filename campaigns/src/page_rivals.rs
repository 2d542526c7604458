//! `cargo campaigns page-rivals`: pages in a browser from our server, from nginx over the kernel's TCP, and from other
//! HTTP/3 servers, over the same paths in the same run.
//!
//! `posthaste page` does the work; this builds third parties and tells it how to start them.

mod rivals;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use posthaste_report::markdown::head;
use serde::Deserialize;

use crate::Result;
use crate::peers;
use crate::workspace::{build_posthaste, program, root, target};
use rivals::Rival;

/// The paths of the comparison.
const PATHS: &str = "good,average,bad,lte-trace,wifi-trace";

/// Our pages.
const PAGES: &str = "gr-page,news";

/// Our profiles, the ones that the comparison is about.
const PROFILES: &str = "mobile,cubic";

/// Of the short form: one path, one rival, few runs.
const SHORT_RUNS: u64 = 3;
const SHORT_ONLY: &str = "posthaste mobile,nginx-h2-cubic";

/// Of `cargo campaigns page-rivals`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without options: 2 pages x 5 paths x 9 servers x 20 runs, each with a cold and a warm visit. Every run is kept in the journal
as soon as it is made: the same command goes on where it was stopped, and Ctrl-C writes the report of what there is.
Every profile that a server alone can use, beside the rivals: --profiles all-server --path average --page gr-page --runs 5
Servers: posthaste mobile, posthaste cubic; nginx-h2-cubic, nginx-h2-bbr, nginx-h1-cubic, nginx-h1-bbr (the kernel's TCP), quiche, quic-go,
edge (`posthaste edge` in front of nginx).
Exit code: 0 if every run has loaded the page, else that of `posthaste page`; with --short also 0, with a word, where there can be none."
)]
pub(crate) struct Arguments {
    /// Runs of each server on each path
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    runs: u64,
    /// Paths, as `posthaste page` takes them
    #[arg(long, value_name = "NAME,...", default_value = PATHS)]
    path: String,
    /// Pages
    #[arg(long, value_name = "NAME,...", default_value = PAGES)]
    page: String,
    /// Profiles of our server; `all-server` are all that a server alone can use
    #[arg(long, value_name = "NAME,...", default_value = PROFILES)]
    profiles: String,
    /// Only these servers, such as "posthaste mobile,nginx-h2-cubic"
    #[arg(long, value_name = "NAME,...")]
    only: Option<String>,
    /// Runs at a time
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    parallel: u16,
    /// Where runs are kept [default: page-rivals/journal.jsonl in the target folder]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Where the report is written
    #[arg(long, value_name = "FILE", default_value = "page.html")]
    html: PathBuf,
    /// A few runs of one path, posthaste and nginx, without a report: CI runs this
    #[arg(long, conflicts_with_all = ["path", "page", "only", "journal", "html", "runs"])]
    short: bool,
    /// The `posthaste` to use, instead of a release build of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// More for `posthaste page`, such as --qlog DIR
    #[arg(last = true, value_name = "OPTION")]
    more: Vec<String>,
}

/// Builds what is needed, and runs `posthaste page`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let only = if arguments.short { Some(SHORT_ONLY) } else { arguments.only.as_deref() };
    let is_wanted = |rival: &Rival| only.is_none_or(|only| only.split(',').any(|name| name == rival.name));
    let controllers = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    let mut chosen = Vec::new();
    for rival in rivals::all().into_iter().filter(is_wanted) {
        match rival.obstacle(&controllers) {
            None => chosen.push(rival),
            Some(obstacle) if arguments.short => {
                println!("skipped: {obstacle}");
                return Ok(true);
            }
            Some(obstacle) => println!("{} is left out: {obstacle}", rival.name),
        }
    }
    peers::build(chosen.iter().filter_map(|rival| rival.peer))?;
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let folder = target().join("page-rivals");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("rivals.toml");
    std::fs::write(&file, rivals::file(&chosen, &program)?)?;
    let mut command = Command::new(program);
    command.arg("page").arg("--rivals").arg(&file).args(["--profiles", &arguments.profiles]);
    if arguments.short {
        return short(command);
    }
    if let Some(only) = only {
        command.args(["--only", only]);
    }
    let journal = arguments.journal.clone().unwrap_or_else(|| folder.join("journal.jsonl"));
    command.args(["--page", &arguments.page, "--path", &arguments.path]);
    command.args(["--runs", &arguments.runs.to_string(), "--parallel", &arguments.parallel.to_string()]);
    command.arg("--journal").arg(journal).arg("--html").arg(html(&arguments.html)?).args(&arguments.more);
    println!("{}", shown(&command));
    Ok(command.current_dir(root()).status()?.success())
}

/// Where the report is wanted, seen from where the command was given.
fn html(file: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(file)?)
}

/// The command for people.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// What of `posthaste page --json` is needed.
#[derive(Debug, Deserialize)]
struct Report {
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Cell {
    contestant: String,
    protocol: String,
    visit: String,
    runs: u64,
    failed: u64,
    void: u64,
    load: Option<Figures>,
}

#[derive(Debug, Deserialize)]
struct Figures {
    median: Option<f64>,
}

/// A few runs: passes if the page was loaded, however long it took. A busy machine is nobody's mistake.
fn short(mut command: Command) -> Result<bool> {
    command.args(["--only", SHORT_ONLY, "--runs", &SHORT_RUNS.to_string(), "--json", "--no-html"]);
    let output = command.stderr(std::process::Stdio::piped()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    // Before the first run it finds out what the machine has not.
    let is_impossible =
        ["there is no browser", "there can be no emulated path"].iter().any(|why| errors.contains(why));
    if is_impossible {
        println!("skipped: {}", errors.trim());
        return Ok(true);
    }
    eprint!("{errors}");
    let report: Report = serde_json::from_slice(&output.stdout)?;
    print!("{}", head(&["server", "visit", "protocol", "runs", "failed", "void", "page load, median s"]));
    for cell in &report.cells {
        let load = cell.load.as_ref().and_then(|load| load.median);
        let load = load.map_or_else(|| "-".to_owned(), |load| format!("{load:.3}"));
        let Cell { contestant, visit, protocol, runs, failed, void, .. } = cell;
        println!("| {contestant} | {visit} | {protocol} | {runs} | {failed} | {void} | {load} |");
    }
    Ok(verdict(&report.cells))
}

/// False if a server has not once loaded the page in a run that counts, though runs counted.
fn verdict(cells: &[Cell]) -> bool {
    if cells.iter().any(|cell| cell.runs == 0) {
        println!("some runs were void at every attempt: this machine is too busy to say anything");
    }
    cells.iter().all(|cell| cell.runs == 0 || cell.failed < cell.runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_never_loads_the_page_fails_and_a_busy_machine_does_not() {
        let cell = |runs, failed| Cell {
            contestant: "x".to_owned(),
            protocol: "h3".to_owned(),
            visit: "cold".to_owned(),
            runs,
            failed,
            void: 3 - runs,
            load: None,
        };
        assert!(verdict(&[cell(3, 0), cell(2, 1)]));
        assert!(verdict(&[cell(0, 0)]));
        assert!(!verdict(&[cell(3, 0), cell(1, 1)]));
    }

    #[test]
    fn nginx_is_found_or_asked_for() {
        let rival = rivals::all().into_iter().find(|rival| rival.name == "nginx-h2-cubic").unwrap();
        assert_eq!(rival.obstacle("reno cubic").is_none(), rivals::nginx().is_some());
        assert!(rival.obstacle("reno").unwrap().contains("no cubic"));
    }
}
