//! `cargo xtask hostile`: the released binary from outside, with peers, readers and networks that are hostile or faulty.
//!
//! Each case is a claim of [SECURITY.md](../../SECURITY.md) or of the command line's help. What a case judges does not
//! depend on how fast the machine is; what does is printed as a figure.

mod careful;
mod cases;
mod crowds;
mod edge;
mod files;
mod floods;
mod limits;
mod path;
mod scene;

use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::Args;
use serde::Serialize;

use crate::Result;
use crate::workspace::{build_posthaste, program};
use scene::Scene;

/// Of `cargo xtask hostile`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Smaller loads, no long outages or silences: two to three minutes
    #[arg(long)]
    short: bool,
    /// Print one JSON object per case
    #[arg(long)]
    json: bool,
    /// Another binary than the one that is built
    #[arg(long, value_name = "FILE")]
    program: Option<std::path::PathBuf>,
    /// Only cases with this in their name
    #[arg(long = "match", value_name = "TEXT")]
    wanted: Option<String>,
}

/// Cases that wait which run at a time.
const AT_ONCE: usize = 5;

/// A figure and its unit.
pub(crate) type Figure = (&'static str, f64, &'static str);

/// A case: what must hold, and how it is found out.
struct Case {
    name: &'static str,
    claim: &'static str,
    run: fn(&Scene, bool) -> Result<Vec<Figure>>,
    /// It waits most of its time, and judges nothing that a busy machine changes: it may run beside others.
    waits: bool,
}

const CASES: [Case; 22] = [
    Case {
        name: "slow-readers",
        claim: "clients that do not read their responses leave the others theirs",
        run: cases::slow_readers,
        waits: true,
    },
    Case {
        name: "request-slots",
        claim: "20 connections of 256 requests each, of which nothing is read, leave the others theirs",
        run: crowds::request_slots,
        waits: false,
    },
    Case {
        name: "memory",
        claim: "memory is back 30 s after slow connections have left, while another client is served",
        run: crowds::memory,
        waits: false,
    },
    Case {
        name: "migration",
        claim: "connections that move together are followed, each of them, each time",
        run: crowds::migration,
        waits: false,
    },
    Case {
        name: "hung-files",
        claim: "a file system that does not answer holds up those who ask it, and nobody else",
        run: files::hung_files,
        waits: true,
    },
    Case {
        name: "hung-state",
        claim: "where traces and state are kept nothing answers: the server serves, and ends when it is told to",
        run: files::hung_state,
        waits: true,
    },
    Case {
        name: "certificates",
        claim: "a clock that is a year off loses no certificate, and is told",
        run: files::certificates,
        waits: true,
    },
    Case {
        name: "log-not-read",
        claim: "a server whose output nobody reads serves, and stops when it is told to",
        run: cases::log_not_read,
        waits: true,
    },
    Case {
        name: "secrets",
        claim: "hidden files are not served, nor is a state directory; what is kept is its owner's alone",
        run: cases::secrets,
        waits: true,
    },
    Case {
        name: "initials",
        claim: "a flood of first packets is answered with three times its bytes at most, and shuts nobody out",
        run: floods::initials,
        waits: false,
    },
    Case {
        name: "handshakes",
        claim: "handshakes of one address that nobody goes on with shut out no other",
        run: floods::handshakes,
        waits: false,
    },
    Case {
        name: "near-limits",
        claim: "a server with places for few more connections gives them 0-RTT",
        run: limits::near_limits,
        waits: false,
    },
    Case {
        name: "moved-flights",
        claim: "clients whose port changes behind their first flight, with 0-RTT or without, are followed",
        run: limits::moved_flights,
        waits: false,
    },
    Case {
        name: "refused-sends",
        claim: "sends that the system refuses are survived and hardly fill the log",
        run: limits::refused_sends,
        waits: true,
    },
    Case {
        name: "blackout",
        claim: "a transfer goes on within 1 s of an outage's end, or two round trips after the first sign of life",
        run: cases::blackout,
        waits: false,
    },
    Case {
        name: "drain",
        claim: "SIGTERM leaves clients the time to read what they have asked for",
        run: cases::drain,
        waits: true,
    },
    Case {
        name: "second-signal",
        claim: "a second SIGTERM ends the server at once, and its clients are told",
        run: cases::second_signal,
        waits: true,
    },
    Case {
        name: "careful-get",
        claim: "get believes no forged version negotiation and no 206 that it has not asked for, goes on with what it has, \
                and keeps modes",
        run: careful::careful,
        waits: true,
    },
    Case {
        name: "edge-slow",
        claim: "256 heads and 256 bodies that come a byte a second leave others theirs; heads end after 10 s, bodies are whole",
        run: edge::slow_streams,
        waits: true,
    },
    Case {
        name: "edge-given-up",
        claim: "an application behind the edge learns within 100 ms that a client has given up",
        run: edge::given_up,
        waits: false,
    },
    Case {
        name: "edge-websocket",
        claim: "a WebSocket behind the edge carries 1 GiB both ways over each version of HTTP (--short: 16 MiB)",
        run: edge::websocket,
        waits: false,
    },
    Case {
        name: "edge-events",
        claim: "an event stream behind the edge survives 10 min of silence over each version of HTTP (--short: 35 s)",
        run: edge::silent_events,
        waits: true,
    },
];

/// What became of a case.
#[derive(Serialize)]
struct Line<'a> {
    case: &'a str,
    claim: &'a str,
    passed: bool,
    error: Option<String>,
    figures: Vec<Figure>,
}

/// Runs them; true if none failed. First those that wait, [`AT_ONCE`] at a time, then the others one by one.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let program = program(arguments.program.as_deref(), build_posthaste)?;
    let clients = scene::build_clients()?;
    let run = |case: &Case| {
        let outcome = Scene::new(&program, &clients).and_then(|scene| (case.run)(&scene, arguments.short));
        let (error, figures) = match outcome {
            Ok(figures) => (None, figures),
            Err(error) => (Some(error.to_string()), Vec::new()),
        };
        let line = Line { case: case.name, claim: case.claim, passed: error.is_none(), error, figures };
        print(&line, arguments.json);
        line.passed
    };
    let is_wanted = |case: &&Case| arguments.wanted.as_deref().is_none_or(|text| case.name.contains(text));
    let (waiting, working): (Vec<&Case>, Vec<&Case>) =
        CASES.iter().filter(is_wanted).partition(|case| case.waits);
    // The longest are at the end of the list.
    let queue = Mutex::new(waiting);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let run_waiting = || std::iter::from_fn(next).fold(true, |all, case| run(case) & all);
    let mut all_passed = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run_waiting)).collect();
        threads.into_iter().fold(true, |all, thread| thread.join().is_ok_and(|passed| passed) & all)
    });
    for case in working {
        all_passed &= run(case);
    }
    Ok(all_passed)
}

fn print(line: &Line<'_>, is_json: bool) {
    if is_json {
        println!("{}", serde_json::json!(line));
        return;
    }
    let figures = line.figures.iter().map(|(name, value, unit)| {
        let value = if value.fract() == 0.0 { format!("{value}") } else { format!("{value:.3}") };
        format!("{name} {value} {unit}").trim_end().to_owned()
    });
    let details = line.error.clone().unwrap_or_else(|| figures.collect::<Vec<_>>().join(", "));
    println!(
        "{} {:<14} {}\n       {details}",
        if line.passed { "ok    " } else { "FAILED" },
        line.case,
        line.claim
    );
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::workspace::root;

    /// All Rust code below a folder.
    fn code(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                code(&path, text);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn the_threat_model_names_tests_that_exist() {
        let security = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
        let model = security.split("## Threat model").nth(1).unwrap();
        let model = model.split("\n## ").next().unwrap();
        let mut text = String::new();
        code(&root().join("crates"), &mut text);
        let rows = model.lines().filter(|line| line.starts_with("| o") || line.starts_with("| r"));
        let mut tests = 0;
        for row in rows {
            let last = row.trim_end_matches('|').rsplit('|').next().unwrap();
            let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "no test: {row}");
            for name in names {
                assert!(text.contains(&format!("fn {name}(")), "there is no test {name}");
                tests += 1;
            }
        }
        assert!(tests >= 30, "{tests}");
    }
}
