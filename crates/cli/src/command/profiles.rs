//! `posthaste profiles`: what decides about speed.

use std::fmt::Write;
use std::process::ExitCode;

use posthaste_policy::{PolicyReport, ProfileReport};
use posthaste_schemes::Definition;

use crate::args::Profiles;
use crate::exit::Failure;
use crate::{printer, profile};

pub(crate) fn run(args: &Profiles) -> Result<ExitCode, Failure> {
    let printed = if let Some(name) = &args.name {
        let report = profile::find(name)?.describe();
        if args.json { printer::json(&report) } else { printer::line(describe(&report).trim_end()) }
    } else {
        let reports = all()?;
        if args.json { printer::json(&reports) } else { printer::line(overview(&reports).trim_end()) }
    };
    printer::unless_reader_left(printed)
        .map_err(|error| Failure::runtime(format!("cannot write the profiles: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

/// Options of `mobile` for programs that have both ends.
const OPTIONS: [(&str, &str); 4] = [
    ("mobile@ack=frequency", "asks the peer for fewer acks"),
    ("mobile@credit=on_ack", "receive windows that are renewed with each ack"),
    ("mobile@group=coordinated", "parallel connections of a client share their rates"),
    ("mobile@code=false", "copies instead of a code over the ends of streams"),
];

fn all() -> Result<Vec<ProfileReport>, Failure> {
    let describe = |name: &&str| Definition::named(name).map(|profile| profile.describe());
    posthaste_schemes::names().iter().map(describe).collect::<Result<_, _>>().map_err(Failure::runtime)
}

fn overview(reports: &[ProfileReport]) -> String {
    let width = reports.iter().map(|report| report.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (index, report) in reports.iter().enumerate() {
        let default = if index == 0 { " (default)" } else { "" };
        let breaks = report.policies.iter().any(|policy| !policy.breaks.is_empty());
        let exception = if breaks { " (breaks a MUST: only if you choose it)" } else { "" };
        let (name, description) = (&report.name, &report.description);
        let _ = writeln!(text, "\x1b[1m{name:width$}\x1b[0m  {description}{default}{exception}");
    }
    let _ = writeln!(text, "\nPolicies and constants of one: posthaste profiles NAME");
    let _ = writeln!(text, "Parameters of one: NAME@key=value[,key=value], wherever a profile is named");
    let _ = writeln!(text, "Another policy for one of its seams: NAME@SEAM=POLICY");
    for (option, what) in OPTIONS {
        let _ = writeln!(text, "  {option:28} {what}");
    }
    let comparisons = posthaste_schemes::comparison_names().join(", ");
    let _ = writeln!(
        text,
        "For comparison only (schemes as published, baselines), in experiments/profiles: {comparisons}"
    );
    text
}

fn describe(report: &ProfileReport) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m  {}\n", report.name, report.description);
    for policy in &report.policies {
        describe_policy(policy, &mut text);
    }
    text
}

fn describe_policy(policy: &PolicyReport, text: &mut String) {
    let _ = writeln!(text, "\n\x1b[1m{}: {}\x1b[0m", policy.seam.name(), policy.text.name);
    for (label, value) in [
        ("claims", policy.text.claims),
        ("source", policy.text.source),
        ("use when", policy.text.use_when),
        ("breaks when", policy.text.breaks_when),
    ] {
        let _ = writeln!(text, "  {label:12} {value}");
    }
    for must in &policy.breaks {
        let _ = writeln!(text, "  {:12} {must}", "BREAKS");
    }
    for constant in &policy.constants {
        let _ = writeln!(text, "  {:24} {}", constant.name, constant.value);
    }
}
