//! The results, for people.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::case::Case;
use super::side::Side;
use super::{Outcome, Role, Verdict, label};
use crate::Result;
use crate::peers::Peer;
use crate::workspace::root;

/// On stdout: a line a case, a column for each peer and role.
pub(crate) fn print(ours: &Side, rows: &[(&Peer, Role)], cases: &[&Case], outcomes: &[Outcome]) {
    print!("\n{:<22}", format!("against {}", ours.name()));
    for &(peer, role) in rows {
        print!("{:>12}", peer.name);
        debug_assert!(role == Role::Client || peer.server);
    }
    print!("\n{:<22}", "as");
    for &(_, role) in rows {
        print!("{:>12}", label(role));
    }
    println!();
    for (column, case) in cases.iter().enumerate() {
        print!("{:<22}", case.name);
        for row in 0..rows.len() {
            print!("{:>12}", short(&outcomes[row * cases.len() + column]));
        }
        println!();
    }
    println!("{}", summary(outcomes));
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Failed) {
        println!("FAILED {} as {}, {}: {}", outcome.peer, label(outcome.role), outcome.case, outcome.detail);
    }
}

fn short(outcome: &Outcome) -> String {
    match outcome.verdict {
        Verdict::Passed => format!("ok {:.2} s", outcome.seconds),
        Verdict::Failed => "FAILED".to_owned(),
        Verdict::Unsupported => "unsupported".to_owned(),
    }
}

pub(super) fn summary(outcomes: &[Outcome]) -> String {
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
    format!(
        "{} cells pass, {} fail, {} are unsupported by the third party",
        count(Verdict::Passed),
        count(Verdict::Failed),
        count(Verdict::Unsupported)
    )
}

/// The same with versions, date, and a reason for each cell that did not pass.
pub(crate) fn markdown(
    ours: &Side,
    rows: &[(&Peer, Role)],
    cases: &[&Case],
    outcomes: &[Outcome],
) -> Result<String> {
    let mut text = format!("# Third parties against {}\n", ours.name());
    writeln!(
        text,
        "`cargo xtask interop --markdown FILE` wrote this on {}, at commit {}.",
        date()?,
        commit()?
    )?;
    writeln!(text, "{}.\n", summary(outcomes))?;
    write!(text, "| case |")?;
    for &(peer, role) in rows {
        write!(text, " {} as {} |", peer.name, label(role))?;
    }
    writeln!(text, "\n|---|{}", "---|".repeat(rows.len()))?;
    for (column, case) in cases.iter().enumerate() {
        write!(text, "| {}: {} |", case.name, case.about)?;
        for row in 0..rows.len() {
            let outcome = &outcomes[row * cases.len() + column];
            let mark =
                if outcome.verdict == Verdict::Unsupported { "–".to_owned() } else { short(outcome) };
            write!(text, " {mark} |")?;
        }
        writeln!(text)?;
    }
    for (verdict, title) in [(Verdict::Failed, "Failed"), (Verdict::Unsupported, "Unsupported (–)")] {
        let chosen: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.verdict == verdict).collect();
        if !chosen.is_empty() {
            writeln!(text, "\n## {title}")?;
        }
        for outcome in chosen {
            // Where the logs are is of use here only.
            let detail = outcome.detail.split("; see ").next().unwrap_or_default();
            writeln!(text, "- {} as {}, {}: {detail}", outcome.peer, label(outcome.role), outcome.case)?;
        }
    }
    writeln!(text, "\n## What was seen")?;
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Passed) {
        writeln!(
            text,
            "- {} as {}, {}: {}",
            outcome.peer,
            label(outcome.role),
            outcome.case,
            outcome.detail
        )?;
    }
    writeln!(text, "\n## Versions")?;
    versions(&mut text)?;
    Ok(text)
}

/// Read from what pins them.
fn versions(text: &mut String) -> Result<()> {
    let interop = root().join("interop");
    let python = std::fs::read_to_string(interop.join("python/requirements.txt"))?;
    for (package, about) in
        [("aioquic", ""), ("playwright", " (drives Chromium)"), ("pycurl", " (curl with ngtcp2)")]
    {
        let pinned = python.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
        let version = pinned.ok_or_else(|| format!("{package} is not pinned"))?;
        writeln!(text, "- {package} {version}{about}")?;
    }
    let go = std::fs::read_to_string(interop.join("go/go.mod"))?;
    if let Some(line) = go.lines().find(|line| line.contains("quic-go/quic-go ")) {
        writeln!(text, "- {}", line.trim().trim_start_matches("require "))?;
    }
    for name in ["quiche", "quinn", "h3"] {
        writeln!(text, "- {name} {}", locked(&interop.join("Cargo.lock"), name)?)?;
    }
    Ok(())
}

/// The version of a package in a lock file.
fn locked(file: &Path, name: &str) -> Result<String> {
    let lock = std::fs::read_to_string(file)?;
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\"")).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    Ok(version.ok_or_else(|| format!("{name} is not locked"))?.trim_matches('"').to_owned())
}

pub(crate) fn date() -> Result<String> {
    output(Command::new("date").args(["-u", "+%Y-%m-%d"]))
}

pub(crate) fn commit() -> Result<String> {
    output(Command::new("git").current_dir(root()).args(["rev-parse", "--short", "HEAD"]))
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    } else {
        Err(format!("{command:?}: {}", output.status).into())
    }
}
