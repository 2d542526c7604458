//! What the table of speed is made of, one measurement after another.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::{Args, ValueEnum};

use super::{cost, files};
use crate::Result;
use crate::interop::{commit, date};
use crate::peers;

/// Of `cargo xtask bench all`.
#[derive(Debug, Args)]
#[command(
    after_help = "Runs `cargo xtask bench PART` for each part and puts what they print on one page, with the commands, the date, the
commit and the machine. Each part says by `cargo xtask bench PART --help` what its figures are. A part that fails, or of
which a run is void, is on the page with that word; the others go on, and the command fails at its end.

  cargo xtask bench all --prepare                             only build (10 minutes the first time)
  cargo xtask bench all --short                               a look at everything: one round, few requests
  cargo xtask bench all --markdown docs/results/speed.md      the truth, on an idle machine
  cargo xtask bench all --part bulk --part requests"
)]
pub(crate) struct Arguments {
    /// Only these parts (repeatable)
    #[arg(long = "part", value_name = "NAME")]
    parts: Vec<Part>,
    /// One round of each, with less work
    #[arg(long)]
    short: bool,
    /// Only build everything
    #[arg(long)]
    prepare: bool,
    /// Compare the peers as --prepare has built them, without looking for changes
    #[arg(long, conflicts_with = "prepare")]
    as_built: bool,
    /// Write the page here
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write what the parts have measured here, by their names
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// In the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Bulk,
    BulkBlockOn,
    BulkJumbo,
    BulkStreams,
    BulkConnections,
    Requests,
    Requests1000,
    Requests5000,
    Sessions,
    Handshakes,
    Idle,
    Files,
    Junk,
}

impl Part {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn title(self) -> &'static str {
        match self {
            Self::Bulk => "Bulk transfer",
            Self::BulkBlockOn => "Bulk transfer in `block_on`",
            Self::BulkJumbo => "Bulk transfer in jumbo frames",
            Self::BulkStreams => "100 streams at once",
            Self::BulkConnections => "100 connections at once",
            Self::Requests => "Requests",
            Self::Requests1000 => "Requests over 1,000 connections",
            Self::Requests5000 => "Requests over 5,000 connections",
            Self::Sessions => "Handshakes over sockets",
            Self::Handshakes => "Handshakes",
            Self::Idle => "Idle connections",
            Self::Files => "Static files over HTTP/3",
            Self::Junk => "Junk",
        }
    }

    /// The subcommand, and what makes it this part.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Bulk => &["bulk"],
            Self::BulkBlockOn => &["bulk", "--block-on"],
            Self::BulkJumbo => &["bulk", "--udp-payload", "8972"],
            Self::BulkStreams => &["bulk", "--streams", "100", "--bytes", "10MB"],
            Self::BulkConnections => &["bulk", "--connections", "100", "--bytes", "10MB"],
            Self::Requests => &["requests"],
            Self::Requests1000 => &["requests", "--connections", "1000"],
            Self::Requests5000 => &["requests", "--connections", "5000"],
            Self::Sessions => &["sessions"],
            Self::Handshakes => &["handshakes"],
            Self::Idle => &["idle"],
            Self::Files => &["files"],
            Self::Junk => &["junk"],
        }
    }

    /// It compares peers, writes Markdown of itself, and can do without building them again.
    fn compares_peers(self) -> bool {
        !matches!(self, Self::Handshakes | Self::Idle | Self::Files | Self::Junk)
    }

    /// The same with less work.
    fn short(self) -> &'static [&'static str] {
        match self {
            Self::Bulk => &["bulk", "--rounds", "1", "--bytes", "256MiB"],
            Self::BulkBlockOn => &["bulk", "--block-on", "--rounds", "1", "--bytes", "256MiB"],
            Self::BulkJumbo => &["bulk", "--udp-payload", "8972", "--rounds", "1", "--bytes", "256MiB"],
            Self::BulkStreams => &["bulk", "--streams", "100", "--rounds", "1", "--bytes", "1MB"],
            Self::BulkConnections => &["bulk", "--connections", "100", "--rounds", "1", "--bytes", "1MB"],
            Self::Requests => &["requests", "--rounds", "1", "--requests", "40000"],
            Self::Requests1000 => {
                &["requests", "--connections", "1000", "--rounds", "1", "--requests", "20000"]
            }
            Self::Requests5000 => {
                &["requests", "--connections", "5000", "--rounds", "1", "--requests", "20000"]
            }
            Self::Sessions => &["sessions", "--rounds", "1", "--count", "300"],
            Self::Handshakes => &["handshakes", "--rounds", "1", "--count", "500"],
            Self::Idle => &["idle", "--connections", "200"],
            Self::Files => &["files", "--rounds", "1", "--requests", "10000"],
            Self::Junk => &["junk", "--rounds", "1", "--count", "20000"],
        }
    }
}

/// Runs the parts. False if one of them failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.prepare {
        for (peer, reason) in peers::build_for_benches()? {
            eprintln!("{peer} will not be measured: {reason}");
        }
        cost::build()?;
        files::build()?;
        return Ok(true);
    }
    let folder = tempfile::tempdir()?;
    let mut page = head(arguments.short)?;
    let mut measured = serde_json::Map::new();
    let mut is_good = true;
    for &part in Part::value_variants() {
        if !arguments.parts.is_empty() && !arguments.parts.contains(&part) {
            continue;
        }
        let (json, markdown) = (folder.path().join("json"), folder.path().join("markdown"));
        let name = part.name();
        let mut words = vec!["bench"];
        words.extend(if arguments.short { part.short() } else { part.words() });
        let shown = format!("cargo xtask {}", words.join(" "));
        eprintln!("\n{shown}");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&words).arg("--json").arg(&json);
        if part.compares_peers() {
            command.arg("--markdown").arg(&markdown).args(arguments.as_built.then_some("--as-built"));
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        let table = std::fs::read_to_string(&markdown);
        // What is left must not pass for the next part's.
        let _ = std::fs::remove_file(&markdown);
        page += &section(part.title(), &shown, output.status.success(), table.ok().as_deref(), &text);
        is_good &= output.status.success();
        if let Ok(text) = std::fs::read_to_string(&json) {
            measured.insert(name, serde_json::from_str(&text)?);
            std::fs::remove_file(&json)?;
        }
    }
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, page)?;
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&measured)?)?;
    }
    Ok(is_good)
}

/// The page's first lines: where and when.
fn head(is_short: bool) -> Result<String> {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let (form, note) = if is_short {
        (" --short", " One round of each with less work: a look, not a result.")
    } else {
        ("", "")
    };
    Ok(format!(
        "# Speed\n`cargo xtask bench all{form} --markdown FILE` wrote this on {}, at commit {}, on {} cores ({}).{note}\n\n",
        date()?,
        commit()?,
        std::thread::available_parallelism()?,
        model.map_or("model unknown", |(_, model)| model),
    ))
}

/// A part of the page: its own table, or what it printed.
fn section(title: &str, command: &str, is_good: bool, table: Option<&str>, printed: &str) -> String {
    let state = if is_good { "" } else { " It failed, or a run is void." };
    let body = match table {
        Some(table) => table.trim().to_owned(),
        None => format!("```\n{}\n```", printed.trim_matches('\n')),
    };
    format!("## {title}\n`{command}`{state}\n\n{body}\n\n")
}

#[cfg(test)]
mod tests {
    use clap::{Parser, ValueEnum};

    use super::{Part, section};
    use crate::bench::Command;

    #[derive(Debug, Parser)]
    struct Bench {
        #[command(subcommand)]
        _command: Command,
    }

    #[test]
    fn each_part_is_a_command_that_there_is_in_both_forms() {
        for part in Part::value_variants() {
            for words in [part.words(), part.short()] {
                let parsed = Bench::try_parse_from(["bench"].iter().chain(words));
                assert!(parsed.is_ok(), "{}: {:?}", part.name(), parsed.err());
            }
            assert_eq!(part.words().first(), part.short().first());
        }
    }

    #[test]
    fn a_section_has_the_parts_table_or_its_print_and_says_what_went_wrong() {
        let whole = section("Bulk", "cargo xtask bench bulk", true, Some("| a |\n"), "a");
        assert_eq!(whole, "## Bulk\n`cargo xtask bench bulk`\n\n| a |\n\n");
        let failed = section("Junk", "cargo xtask bench junk", false, None, "\nwork  us\n");
        assert_eq!(
            failed,
            "## Junk\n`cargo xtask bench junk` It failed, or a run is void.\n\n```\nwork  us\n```\n\n"
        );
    }
}
