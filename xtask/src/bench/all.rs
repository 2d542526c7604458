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
    /// Measure bulk and requests as --prepare has built them, without looking for changes
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
    Requests,
    Handshakes,
    Idle,
    Files,
    Junk,
}

impl Part {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn title(self) -> &'static str {
        match self {
            Self::Bulk => "Bulk transfer",
            Self::Requests => "Requests",
            Self::Handshakes => "Handshakes",
            Self::Idle => "Idle connections",
            Self::Files => "Static files over HTTP/3",
            Self::Junk => "Junk",
        }
    }

    /// It writes Markdown of itself.
    fn has_markdown(self) -> bool {
        matches!(self, Self::Bulk | Self::Requests)
    }

    /// Less work.
    fn short(self) -> &'static [&'static str] {
        match self {
            Self::Bulk => &["--rounds", "1", "--bytes", "256MiB"],
            Self::Requests => &["--rounds", "1", "--requests", "40000"],
            Self::Handshakes => &["--rounds", "1", "--count", "500"],
            Self::Idle => &["--connections", "200"],
            Self::Files => &["--rounds", "1", "--requests", "10000"],
            Self::Junk => &["--rounds", "1", "--count", "20000"],
        }
    }
}

/// Runs the parts. False if one of them failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    if arguments.prepare {
        peers::build_rust()?;
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
        let mut words = vec!["bench", &name];
        if arguments.short {
            words.extend(part.short());
        }
        let shown = format!("cargo xtask {}", words.join(" "));
        eprintln!("\n{shown}");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&words).arg("--json").arg(&json);
        if part.has_markdown() {
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
    use super::section;

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
