//! Every profile against third parties. A profile decides about speed and nothing else: whoever is at the other end
//! must not notice which one ours has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use posthaste_schemes::selection::expand;

use super::case::Case;
use super::side::Side;
use super::{
    Arguments, Outcome, Role, Verdict, bench, build_ours, chosen_cases, chosen_peers, label, our_program,
    rows, run_cell, say, section, support, table,
};
use crate::Result;
use crate::peers::{self, Peer};

/// What every profile has to do, unless told otherwise: a short and a long answer, many at once, loss and reordering,
/// a history that is used in the first packets, and keys that change meanwhile.
const CASES: [&str; 6] = ["handshake", "transfer", "parallel", "lossy", "zerortt", "keyupdate"];

/// Who takes part in `--quick`: those that start in no time.
const QUICK_PEERS: [&str; 4] = ["curl", "quic-go", "quiche", "quinn"];

/// Third party, its part, and what is to be done.
type Cell<'a> = (&'static Peer, Role, &'a &'static Case);

/// Runs all profiles; true if every cell passes.
pub(super) fn run(arguments: &Arguments) -> Result<bool> {
    let profiles = expand(&arguments.profiles);
    for name in &profiles {
        posthaste_schemes::named(name)?;
    }
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let quick = arguments.quick && arguments.peers.is_empty();
    let peers = chosen_peers(&if quick { named(&QUICK_PEERS) } else { arguments.peers.clone() })?;
    let wanted = if arguments.cases.is_empty() { named(&CASES) } else { arguments.cases.clone() };
    let cases = chosen_cases(&wanted, false)?;
    let rows = rows(&peers, arguments.role);
    if rows.is_empty() {
        return Err("no peer can play that role".into());
    }
    if !arguments.no_build {
        eprintln!("building the peers");
        peers::build(peers.iter().copied())?;
        build_ours(&cases)?;
    }
    let program = our_program(arguments)?;
    let folder = tempfile::tempdir()?;
    let bench = bench(folder.path())?;
    let mut outcomes = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        let ours =
            Side::Posthaste { program: program.clone(), profile: Some(profile.clone()), application: None };
        let cells =
            if arguments.quick { in_turn(index, profiles.len(), &rows, &cases) } else { all(&rows, &cases) };
        for (peer, role, case) in cells {
            let outcome = run_cell(&bench, &ours, peer, role, case);
            say(&outcome);
            outcomes.push(outcome);
        }
    }
    let text = markdown(&profiles, &rows, &outcomes);
    println!("\n{text}");
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&outcomes)?)?;
    }
    if let Some(path) = &arguments.markdown {
        let section = format!("{}\n{text}", heading(arguments, &cases)?);
        std::fs::write(path, section::put(&section::read(path)?, &section))?;
    }
    Ok(outcomes.iter().all(|outcome| outcome.verdict != Verdict::Failed))
}

fn all<'a>(rows: &[(&'static Peer, Role)], cases: &'a [&'static Case]) -> Vec<Cell<'a>> {
    rows.iter().flat_map(|&(peer, role)| cases.iter().map(move |case| (peer, role, case))).collect()
}

/// For the profile at `index` of `count`: at least one cell of each role, the next one for the next profile, so that all
/// profiles together have every cell that can be.
fn in_turn<'a>(
    index: usize,
    count: usize,
    rows: &[(&'static Peer, Role)],
    cases: &'a [&'static Case],
) -> Vec<Cell<'a>> {
    let mut chosen = Vec::new();
    for role in [Role::Client, Role::Server] {
        let peers = || rows.iter().filter(|(_, other)| *other == role).map(|(peer, _)| *peer);
        let cells: Vec<Cell<'a>> = cases
            .iter()
            .flat_map(|case| peers().map(move |peer| (peer, role, case)))
            .filter(|(peer, role, case)| support::missing(peer.name, *role, case).is_none())
            .collect();
        let first = index % cells.len().max(1);
        chosen.extend(cells.iter().skip(first).step_by(count.max(1)).copied());
    }
    chosen
}

/// What the section begins with.
fn heading(arguments: &Arguments, cases: &[&Case]) -> Result<String> {
    let mut command = format!("cargo xtask interop --profiles {}", arguments.profiles.join(","));
    for (option, values) in [("peer", &arguments.peers), ("case", &arguments.cases)] {
        for value in values {
            let _ = write!(command, " --{option} {value}");
        }
    }
    if let Some(role) = arguments.role {
        let _ = write!(command, " --role {}", label(role));
    }
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    Ok(format!(
        "## Every profile\nOur side under each of its profiles, against third parties: `posthaste serve --profile NAME` for \
         clients, `posthaste get --profile NAME` for servers. The cases are {}, as above and with the same proofs.\n`{command} \
         --markdown FILE` wrote this section on {}, at commit {}.",
        names.join(", "),
        table::date()?,
        table::commit()?
    ))
}

/// The count, a row for each profile, and why what failed did so.
fn markdown(profiles: &[String], rows: &[(&'static Peer, Role)], outcomes: &[Outcome]) -> String {
    let mut text = format!("{}.\n\n| profile |", table::summary(outcomes));
    for (peer, role) in rows {
        let _ = write!(text, " {} as {} |", peer.name, label(*role));
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(rows.len()));
    let mut cells: BTreeMap<_, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        let profile = outcome.profile.as_deref().unwrap_or_default();
        cells.entry((profile, outcome.peer, label(outcome.role))).or_default().push(outcome);
    }
    for profile in profiles {
        let _ = write!(text, "| {profile} |");
        for (peer, role) in rows {
            let of_cell = cells.get(&(profile.as_str(), peer.name, label(*role)));
            let _ = write!(text, " {} |", of_cell.map_or_else(String::new, |outcomes| short(outcomes)));
        }
        text.push('\n');
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Failed) {
        // Where the logs are is of use here only.
        let detail = outcome.detail.split("; see ").next().unwrap_or_default();
        let profile = outcome.profile.as_deref().unwrap_or_default();
        let Outcome { peer, case, .. } = outcome;
        let _ = write!(text, "\n- FAILED: {profile}, {peer} as {}, {case}: {detail}", label(outcome.role));
    }
    text
}

/// How many cases passed and what they took, or which failed.
fn short(outcomes: &[&Outcome]) -> String {
    let of = |verdict| outcomes.iter().filter(move |outcome| outcome.verdict == verdict);
    let failed: Vec<&str> = of(Verdict::Failed).map(|outcome| outcome.case).collect();
    if failed.is_empty() {
        let seconds: f64 = outcomes.iter().map(|outcome| outcome.seconds).sum();
        format!("{} ok, {seconds:.1} s", of(Verdict::Passed).count())
    } else {
        format!("FAILED: {}", failed.join(", "))
    }
}

#[cfg(test)]
#[path = "profiles_tests.rs"]
mod tests;
