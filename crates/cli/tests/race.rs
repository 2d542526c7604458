//! `posthaste race` as a process. Nothing here asks how fast it is.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{posthaste, read, run, send_signal, wait};

/// A folder for a race, in which it runs.
struct Ground {
    guard: tempfile::TempDir,
}

impl Ground {
    fn new(path: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        std::fs::write(guard.path().join("path.toml"), path).unwrap();
        Self { guard }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = posthaste();
        command.args(["race", "--path", "path.toml"]).args(arguments).current_dir(&self.guard);
        command
    }

    /// Exit code, stdout, stderr.
    fn race(&self, arguments: &[&str]) -> (i32, String, String) {
        let (code, stdout, stderr) = run(&mut self.command(arguments));
        (code, String::from_utf8(stdout).unwrap(), stderr)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.guard.path().join(name)
    }

    /// All files, hidden ones too.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.guard.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Quick, but not perfect: packets are lost and corrupted, and every byte must be right all the same.
const QUICK: &str = "rate = \"100mbit\"\nrtt = \"8ms\"\nloss = 0.01\ncorrupt = 0.02\n";

#[test]
fn a_race_ends_with_a_table_and_a_page_of_its_own() {
    let ground = Ground::new(QUICK);
    let (code, stdout, stderr) =
        ground.race(&["--profiles", "cubic,standard", "--object", "60kB", "--runs", "3"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    for expected in
        ["60 kB", "profile", "median", "p95", "x limit", "saves against standard", "Limit", "Timing"]
    {
        assert!(stdout.contains(expected), "{expected} is not in {stdout}");
    }
    for racer in ["cubic", "standard"] {
        let row = stdout.lines().find(|line| line.starts_with(&format!("{racer} "))).unwrap();
        assert_eq!(row.split_whitespace().nth(1), Some("3"), "runs in {row}");
        assert_eq!(stderr.matches(&format!("/3 {racer} ")).count(), 3, "a line a run: {stderr}");
    }
    assert!(!stdout.contains('\u{1b}'), "no colours in a pipe");
    assert_eq!(ground.files(), ["path.toml", "race.html"]);

    let page = String::from_utf8(read(&ground.path("race.html"))).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"));
    for outside in ["src=\"http", "href=\"http", "url(http", "@import", "<script src", "<link"] {
        assert!(!page.contains(outside), "the page needs no network: {outside}");
    }
    assert!(
        page.contains("posthaste race --path path.toml --object 60000B --profiles cubic,standard --runs 3")
    );
}

#[test]
fn json_has_every_run_and_nothing_else_is_printed() {
    let ground = Ground::new(QUICK);
    let arguments = [
        "--object",
        "30kB",
        "--runs",
        "2",
        "--seed",
        "11",
        "--profiles",
        "cubic-iw32,cubic",
        "--json",
        "--no-html",
    ];
    let (code, stdout, stderr) = ground.race(&arguments);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["object_bytes"], &report["baseline"]), (&30_000.into(), &"cubic-iw32".into()));
    assert!(report["limit"]["seconds"].as_f64().unwrap() > 0.016, "two round trips at the least");
    let profiles = report["profiles"].as_array().unwrap();
    let names: Vec<_> = profiles.iter().map(|profile| profile["profile"].as_str().unwrap()).collect();
    assert_eq!(names, ["cubic-iw32", "cubic"]);
    for profile in profiles {
        assert_eq!((&profile["completed"], &profile["failed"]), (&2.into(), &0.into()));
        let runs = profile["runs"].as_array().unwrap();
        let seeds: Vec<_> = runs.iter().map(|run| run["seed"].as_u64().unwrap()).collect();
        assert_eq!(seeds, [11, 12]);
        for run in runs {
            assert_eq!(run["bytes"], 30_000);
            assert!(run["down"]["delivered_bytes"].as_u64().unwrap() > 30_000, "over the path: {run}");
            let seconds = |key: &str| run[key].as_f64().unwrap();
            assert!(0.008 <= seconds("connect"), "{run}");
            assert!(seconds("connect") + 0.008 <= seconds("first_byte"), "{run}");
            assert!(seconds("first_byte") <= seconds("seconds"), "{run}");
            assert!(run["lateness"]["p99"].as_f64().is_some() && run["failure"].is_null());
        }
    }
    assert_eq!(ground.files(), ["path.toml"]);
}

#[test]
fn models_race_over_every_path_and_are_marked() {
    let ground = Ground::new(QUICK);
    std::fs::write(ground.path("other.toml"), "rate = \"20mbit\"\nrtt = \"20ms\"\n").unwrap();
    let mut command = posthaste();
    let arguments = ["race", "--path", "path.toml,other.toml", "--profiles", "cubic,tcp:cubic"];
    command.args(arguments).args(["--object", "60kB", "--runs", "2"]).current_dir(&ground.guard);
    let (code, stdout, stderr) = run(&mut command);
    let stdout = String::from_utf8(stdout).unwrap();
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(stdout.matches("tcp:cubic (model)  ").count(), 2, "a row for each path: {stdout}");
    assert_eq!(stdout.matches("Models  computed in virtual time").count(), 2, "{stdout}");
    let page = String::from_utf8(read(&ground.path("race.html"))).unwrap();
    assert!(page.contains("path.toml") && page.contains("other.toml") && page.contains("tcp:cubic (model)"));

    let (code, stdout, _) =
        ground.race(&["--profiles", "tcp:cubic", "--object", "60kB", "--runs", "2", "--json", "--no-html"]);
    assert_eq!(code, 0, "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let racer = &report["profiles"][0];
    assert_eq!((&racer["model"], &racer["completed"]), (&true.into(), &2.into()));
    // Requests take fewer packets than the object.
    let packets = |direction: &str| racer["runs"][0][direction]["delivered_bytes"].as_u64().unwrap();
    assert!(packets("down") > 60_000 && packets("up") < 30_000, "{racer}");
}

#[test]
fn requests_have_latencies_and_a_video_a_startup_over_real_sockets_and_in_models() {
    let ground = Ground::new(QUICK);
    let race = |workload: &str| {
        let arguments = ["--profiles", "cubic,tcp:cubic", "--runs", "2", "--json", "--no-html"];
        let (code, stdout, stderr) = ground.race(&[&arguments[..], &["--workload", workload]].concat());
        assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
        serde_json::from_str::<serde_json::Value>(&stdout).unwrap()
    };
    let requests = race("requests@count=4,object=5kB,think=10ms");
    assert_eq!((&requests["workload"], &requests["settings"]["count"]), (&"requests".into(), &"4".into()));
    let video = race("video@rate=400kbit,chunk=200ms,chunks=4,buffer=400ms");
    assert_eq!(video["object_bytes"], 10_000);
    for racer in 0..2 {
        let of = |report: &serde_json::Value, key: &str| report["profiles"][racer]["figures"][key].as_f64();
        let (median, p95) = (of(&requests, "latency").unwrap(), of(&requests, "latency-p95").unwrap());
        assert!((0.008..1.0).contains(&median) && median <= p95, "a round trip at the least: {requests}");
        for run in requests["profiles"][racer]["runs"].as_array().unwrap() {
            assert_eq!((&run["bytes"], run["latencies"].as_array().unwrap().len()), (&20_000.into(), 4));
            // Four round trips behind the handshake's, and three pauses.
            assert!(run["seconds"].as_f64().unwrap() >= 5.0 * 0.008 + 0.03, "{run}");
            assert!(run["stalled"].is_null());
        }
        assert!(of(&video, "startup").unwrap() >= 0.016, "{video}");
        assert!((0.0..=1.0).contains(&of(&video, "stalled-share.mean").unwrap()), "{video}");
        assert!(of(&video, "chunk-rate").unwrap() > 400_000.0, "faster than it plays: {video}");
        for run in video["profiles"][racer]["runs"].as_array().unwrap() {
            assert_eq!((&run["bytes"], run["latencies"].as_array().unwrap().len()), (&40_000.into(), 4));
            // It plays 800 ms, and has 400 ms of it in the buffer when it asks for the last chunk.
            assert!(run["seconds"].as_f64().unwrap() >= 0.4, "{run}");
        }
    }
}

#[test]
fn a_video_that_is_too_fast_for_its_path_stands_still() {
    let ground = Ground::new("rate = \"2mbit\"\nrtt = \"20ms\"\n");
    let workload = "video@rate=4mbit,chunk=100ms,chunks=6,buffer=200ms";
    let (code, stdout, stderr) =
        ground.race(&["--profiles", "cubic,tcp:cubic", "--runs", "1", "--workload", workload]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    for expected in ["a video of 6 chunks of 100ms at 4 Mbit/s", "startup", "stalled", "share", "chunk rate"]
    {
        assert!(stdout.contains(expected), "{expected} is not in {stdout}");
    }
    for racer in ["cubic ", "tcp:cubic (model)"] {
        let row = stdout.lines().find(|line| line.starts_with(racer)).unwrap();
        // Half of the rate that it plays at: it stands still for half of the time or so.
        let share: f64 =
            row.split(" %").next().and_then(|left| left.split(' ').next_back()).unwrap().parse().unwrap();
        assert!((30.0..80.0).contains(&share), "{row}");
    }
    let page = String::from_utf8(read(&ground.path("race.html"))).unwrap();
    assert!(page.contains("stalled, share") && page.contains("rate of chunks"), "figures of a video");
    let again = "--workload video@rate=4mbit,chunk=100ms,chunks=6,buffer=200ms --profiles cubic,tcp:cubic";
    assert!(page.contains(again), "the command that repeats it");
}

#[test]
fn workloads_that_are_not_there_are_refused_with_the_choices() {
    let ground = Ground::new(QUICK);
    for (workload, expected) in [
        ("films", "there are file, requests, video"),
        ("video@bitrate=1mbit", "it has rate, chunk, chunks, buffer"),
    ] {
        let (code, _, stderr) = ground.race(&["--workload", workload]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let (code, _, stderr) = ground.race(&["--workload", "video", "--object", "1MB", "--profiles", "cubic"]);
    assert!(code == 2 && stderr.contains("rate x chunk"), "{stderr}");
    assert_eq!(ground.files(), ["path.toml"]);
}

#[test]
fn every_profile_goes_through_a_race() {
    let ground = Ground::new(QUICK);
    let arguments = ["--profiles", "all", "--object", "200kB", "--runs", "1", "--json", "--no-html"];
    let (code, stdout, stderr) = ground.race(&arguments);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let profiles = report["profiles"].as_array().unwrap();
    let names: Vec<_> = profiles.iter().map(|profile| profile["profile"].as_str().unwrap()).collect();
    let bare: Vec<_> = names.iter().map(|name| name.split('@').next().unwrap()).collect();
    assert_eq!(bare, posthaste_schemes::names());
    assert!(names.contains(&"quicming@min_rate=1mbit"), "it wants a rate: {names:?}");
    for profile in profiles {
        assert_eq!((&profile["completed"], &profile["failed"]), (&1.into(), &0.into()), "{profile}");
        assert_eq!(profile["runs"][0]["bytes"], 200_000, "{profile}");
    }
}

#[test]
fn a_path_that_carries_nothing_fails_every_run_and_says_so() {
    let ground = Ground::new("rtt = \"1ms\"\nloss = 1.0\n");
    let (code, stdout, _) = ground.race(&["--runs", "1", "--profiles", "cubic", "--timeout", "0.3"]);
    assert_eq!(code, 1, "{stdout}");
    let row = stdout.lines().find(|line| line.starts_with("cubic ")).unwrap();
    assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), ["1", "1", "-", "-", "-"]);
    assert!(stdout.contains("Failed  cubic in round 1, after 0 bytes"), "{stdout}");
    assert!(ground.path("race.html").exists(), "failures are worth a page, too");
}

#[test]
fn ctrl_c_shows_what_was_measured_and_leaves_nothing_behind() {
    let ground = Ground::new(QUICK);
    // Far more than anyone would wait for.
    let arguments = ["--object", "30kB", "--runs", "10000", "--profiles", "cubic"];
    let mut race = ground.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(race.stderr.take().unwrap()).lines();
    // Two runs are over.
    for _ in 0..2 {
        lines.next().unwrap().unwrap();
    }
    send_signal(race.id(), "INT");
    // Lines go on being read, so that the race does not wait for that.
    let rest = std::thread::spawn(move || lines.count());
    assert_eq!(wait(&mut race).code(), Some(130));
    rest.join().unwrap();
    let stdout = std::io::read_to_string(race.stdout.take().unwrap()).unwrap();
    assert!(stdout.contains("Interrupted: ") && stdout.contains("of 10000 runs were made"), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("cubic ")), "{stdout}");
    assert_eq!(ground.files(), ["path.toml", "race.html"], "no half a page");
    assert!(String::from_utf8(read(&ground.path("race.html"))).unwrap().contains("Interrupted"));
}

#[test]
fn ctrl_c_before_the_first_run_is_over_leaves_no_page() {
    let ground = Ground::new("rtt = \"1ms\"\nloss = 1.0\n");
    let mut race = ground
        .command(&["--runs", "1", "--profiles", "cubic", "--timeout", "300"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The announcement is printed once signals are listened for.
    let mut stdout = BufReader::new(race.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    send_signal(race.id(), "INT");
    assert_eq!(wait(&mut race).code(), Some(130));
    assert!(std::io::read_to_string(stdout).unwrap().contains("0 of 1 runs were made"));
    assert_eq!(ground.files(), ["path.toml"]);
}
