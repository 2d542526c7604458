//! `posthaste page` with a real browser. Where there is none, or where the system permits no network namespaces, the
//! tests that need them say so and pass. Nothing here asks how fast it is.
#![cfg(target_os = "linux")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::browser::{self, processes_with};
use common::{posthaste, run, send_signal};
use serde_json::Value;

/// A browser on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(120);

/// A path that is no obstacle.
const PATH: &str = "rtt = \"20ms\"\nrate = \"50mbit\"\n";

/// A folder with a path in it; `None`, and a remark on stderr, where there can be no runs.
fn ground() -> Option<tempfile::TempDir> {
    if !browser::can_load_pages() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("path.toml"), PATH).unwrap();
    Some(folder)
}

fn page(folder: &Path, runs: &str, arguments: &[&str]) -> Command {
    let mut command = posthaste();
    command.args(["page", "--path", "./path.toml", "--profiles", "cubic", "--runs", runs]).args(arguments);
    command.current_dir(folder).env("TMPDIR", folder);
    command
}

#[test]
fn a_page_comes_whole_by_http3_cold_and_warm_and_the_journal_keeps_it() {
    let Some(folder) = ground() else { return };
    let arguments = ["--json", "--journal", "journal", "--html", "report.html"];
    let (code, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    let record = &report["runs"][0];
    assert_eq!(record["failure"], Value::Null, "{record}");
    // A busy machine makes runs void, and no test fails by that; but it has to be said.
    let is_valid = record["faults"].as_array().unwrap().is_empty();
    assert_eq!(code == 0, is_valid, "{code}: {stderr}");
    let visits = record["visits"].as_array().unwrap();
    assert_eq!(visits.len(), 2);
    for visit in visits {
        let objects = visit["objects"].as_array().unwrap();
        assert_eq!(objects.len(), 100);
        assert!(objects.iter().all(|object| object["protocol"] == "h3" && object["status"] == 200));
        let mut connections: Vec<u64> =
            objects.iter().map(|object| object["connection"].as_u64().unwrap()).collect();
        connections.sort_unstable();
        connections.dedup();
        assert_eq!(connections.len(), 3, "one for each host");
        assert_eq!(objects[0]["is_reused"], false, "a visit over new connections");
        // Three round trips at the least: connections, document, what it names, what that names; the first may be
        // spared to who comes back.
        assert!(visit["load"].as_f64().unwrap() > 0.06, "{}", visit["load"]);
        assert!(visit["first_paint"].as_f64().is_some() && visit["largest_paint"].as_f64().is_some());
    }
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(html.contains("<html"), "{html}");
    if is_valid {
        assert!(html.contains("posthaste cubic") && html.contains("page.html, "));
        a_run_that_was_kept_is_not_made_again(folder.path(), &arguments, &report);
    } else {
        eprintln!(
            "the run was void: its picture and whether it is kept were not looked at: {}",
            record["faults"]
        );
    }
    assert_eq!(left_in(folder.path()), ["journal", "path.toml", "report.html"]);
}

/// `report` is of the run that the journal holds.
fn a_run_that_was_kept_is_not_made_again(folder: &Path, arguments: &[&str], report: &Value) {
    let began = std::fs::read(folder.join("journal")).unwrap();
    let (_, again, stderr) = run(&mut page(folder, "1", arguments));
    let again: Value = serde_json::from_slice(&again).unwrap();
    assert!(stderr.contains("1 of them kept"), "{stderr}");
    assert_eq!(again["runs"], report["runs"]);
    assert_eq!(std::fs::read(folder.join("journal")).unwrap(), began);
}

#[test]
fn firefox_loads_the_page_by_http3_and_comes_back_over_new_connections() {
    let has_firefox =
        ["firefox", "firefox-esr"].iter().any(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(folder) = ground().filter(|_| has_firefox) else {
        eprintln!("SKIPPED, nothing was tested: Firefox {has_firefox}");
        return;
    };
    let arguments = ["--browser", "firefox", "--json", "--no-html"];
    let (code, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    let record = &report["runs"][0];
    assert_eq!(record["failure"], Value::Null, "{record}");
    assert!(record["browser"].as_str().unwrap().starts_with("Firefox/"), "{record}");
    let visits = record["visits"].as_array().unwrap();
    assert_eq!(visits.len(), 2);
    for visit in visits {
        let objects = visit["objects"].as_array().unwrap();
        assert_eq!(objects.len(), 100);
        assert!(objects.iter().all(|object| object["protocol"] == "h3" && object["status"] == 200));
        assert_eq!(objects[0]["is_reused"], false, "a visit over new connections");
        assert!(visit["load"].as_f64().unwrap() > 0.06, "{}", visit["load"]);
    }
    assert_eq!(left_in(folder.path()), ["path.toml"]);
}

fn left_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_comes_by_another_protocol_is_a_failure() {
    let Some(folder) = ground() else { return };
    // Our server has no TCP, so a browser that is told not to use QUIC finds nobody.
    let rival = "[[rival]]\nname = \"silent\"\nprotocol = \"h2\"\n\
                 command = \"echo nobody listens here >&2; for port in $POSTHASTE_PORTS; do \
                 python3 -m http.server $port >/dev/null & done; wait\"\n";
    std::fs::write(folder.path().join("rivals.toml"), rival).unwrap();
    let arguments = ["--rivals", "rivals.toml", "--only", "silent", "--json", "--no-html"];
    let (code, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    let failure = report["runs"][0]["failure"].as_str().unwrap();
    assert_eq!((code, &report["cells"][0]["failed"]), (1, &Value::from(1)));
    assert!(failure.contains("nobody listens here"), "{failure}");
}

#[test]
fn an_interrupt_ends_browser_and_servers_and_leaves_nothing() {
    let Some(folder) = ground() else { return };
    let mut child = page(folder.path(), "5", &["--json", "--no-html"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let marker = folder.path().to_str().unwrap().to_owned();
    let is_browser = |words: &String| words.contains("--remote-debugging-pipe");
    wait_until(|| {
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        processes_with(&marker).iter().any(is_browser)
    });
    send_signal(child.id(), "INT");
    let mut status = None;
    wait_until(|| {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(130));
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert_eq!(left_in(folder.path()), ["path.toml"]);
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn downloads_beside_the_page_take_their_part_and_are_kept() {
    let Some(folder) = ground() else { return };
    let arguments = ["--background", "2", "--cold-only", "--json", "--no-html", "--journal", "journal"];
    let (code, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
    if code == 1 && stderr.contains("apt-get install iperf3") {
        return eprintln!("SKIPPED, nothing was tested: {stderr}");
    }
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    let record = &report["runs"][0];
    assert_eq!((&record["failure"], &record["background"]), (&Value::Null, &Value::from(2)), "{record}");
    assert!(record["background_rate"].as_f64().is_some_and(|rate| rate > 0.0), "{record}");
    // The journal's run is none of a command without them.
    let other = ["--cold-only", "--json", "--no-html", "--journal", "journal", "--background", "1"];
    let mut child =
        page(folder.path(), "1", &other).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let announcement = std::io::BufReader::new(child.stderr.take().unwrap());
    for line in std::io::BufRead::lines(announcement).map_while(Result::ok) {
        if line.contains("runs each") {
            send_signal(child.id(), "INT");
        }
        said.push_str(&line);
    }
    child.wait().unwrap();
    assert!(said.contains("1 in all") && !said.contains("kept"), "{said}");
}

#[test]
fn without_iperf3_it_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("path.toml"), PATH).unwrap();
    let mut command = page(folder.path(), "1", &["--background", "1", "--browser", "/bin/true"]);
    let (code, _, stderr) = run(command.env("PATH", folder.path()));
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("is not installed") && stderr.contains("apt-get install iperf3"), "{stderr}");
}

#[test]
fn a_server_that_is_not_at_the_far_end_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    // An address for documentation; the path is the default one.
    let url = "https://192.0.2.1:4433/";
    let mut command = posthaste();
    command.args(["page", url, "--browser", "/bin/true"]).current_dir(folder.path());
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("192.0.2.1 is another machine") && stderr.contains("--path none"), "{stderr}");
    assert!(left_in(folder.path()).is_empty());
}

#[test]
fn runs_of_another_build_are_told_from_ones_own() {
    let Some(folder) = ground() else { return };
    let arguments = ["--cold-only", "--json", "--no-html", "--journal", "journal"];
    let (code, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    assert!(!stderr.contains("warning"), "{stderr}");
    let build = report["runs"][0]["build"]["program"].as_str().unwrap();
    assert_eq!(report["builds"], Value::from(vec![build]));
    let journal = folder.path().join("journal");
    let kept = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, kept.replace(build, "0123456789ab")).unwrap();
    if report["runs"][0]["faults"].as_array().is_some_and(Vec::is_empty) {
        let (_, stdout, stderr) = run(&mut page(folder.path(), "1", &arguments));
        let report: Value = serde_json::from_slice(&stdout).unwrap();
        assert!(stderr.contains("1 of another build of posthaste; to start over"), "{stderr}");
        assert_eq!(report["builds"], Value::from(vec!["0123456789ab"]), "it is used, and said");
    }
}

#[test]
fn wrong_use_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("path.toml"), PATH).unwrap();
    for (arguments, expected) in [
        (&["--page", "nonesuch"][..], "there is no page `nonesuch`; there are gr-page, news"),
        (&["--browser", "./nowhere"], "apt-get install chromium"),
        (&["--only", "x"], "there are: posthaste cubic"),
        (&["--path", "none"], "--path none is for URLs"),
        (&["--background", "65"], "65 is not in"),
        (&["--journal", "/nowhere/x"], "cannot keep runs in /nowhere/x"),
        (&["--html", "/nowhere/x"], "no such folder"),
    ] {
        let mut command = posthaste();
        command.args(["page", "--profiles", "cubic", "--browser", "/bin/true"]).args(arguments);
        if arguments[0] == "--browser" {
            command = posthaste();
            command.args(["page"]).args(arguments);
        }
        let (code, _, stderr) = run(command.current_dir(folder.path()));
        assert!(code == 2 || code == 1, "{arguments:?}: {code}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(left_in(folder.path()), ["path.toml"]);
}

#[test]
fn a_service_worker_puts_an_object_together_from_pieces_of_three_origins() {
    let Some(folder) = ground() else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/split-page/run.sh");
    let mut command = Command::new("sh");
    command.args([script, env!("CARGO_BIN_EXE_posthaste"), "./path.toml", "1", "300000"]);
    let (code, stdout, stderr) = run(command.current_dir(folder.path()).env("TMPDIR", folder.path()));
    let text = String::from_utf8_lossy(&stdout);
    assert_eq!(code, 0, "{text}{stderr}");
    // The same hash as that of the whole object, from pieces that have come over a connection to each origin.
    assert!(text.contains("report?same=true&pieces=3&"), "{text}{stderr}");
    for port in 4433..4436 {
        assert!(text.contains(&format!("{port}: 1 pieces")), "{text}");
    }
    assert!(text.contains("\"protocol\":\"h3\"") && !text.contains("\"protocol\":\"h2\""), "{text}");
}
