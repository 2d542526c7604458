//! `posthaste get --connections`: one file over several connections, as processes over loopback.
#![cfg(unix)]

mod common;

use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folders, PATIENCE, Server, posthaste, read, run, sample, wait};

/// A server whose profile coordinates connections. What is published first is old enough for a strong entity tag.
fn serve(folders: &Folders) -> Server {
    std::thread::sleep(Duration::from_millis(60));
    Server::start(folders, &["--profile", "mquic-cubic"])
}

/// Fetches into the folder and gives what is said of it.
fn fetch(server: &Server, folders: &Folders, name: &str, more: &[&str]) -> (serde_json::Value, String) {
    let mut get = server.get();
    get.arg(server.url(name)).args(["--json", "-o"]).arg(folders.path("in").join("copy")).args(more);
    let (code, stdout, stderr) = run(&mut get);
    assert_eq!(code, 0, "{stderr}");
    let report: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    (report, stderr)
}

/// Repeats `fetch` until as many connections carried it as wanted, never more: on a busy machine the last byte may be there
/// before the last handshake is over.
fn in_some_run(wanted: usize, fetch: impl FnMut() -> usize) {
    let used: Vec<usize> =
        std::iter::repeat_with(fetch).take(20).take_while(|used| *used != wanted).collect();
    assert!(
        used.len() < 20 && used.iter().all(|used| (1..wanted).contains(used)),
        "{wanted} wanted: {used:?}"
    );
}

/// Fetches a file of `size` bytes over so many connections at most, and says how many it was.
fn fetch_split(server: &Server, folders: &Folders, size: usize, connections: &str) -> usize {
    let (report, stderr) = fetch(server, folders, &size.to_string(), &["--connections", connections]);
    assert!(read(&folders.path("in").join("copy")) == sample(size), "{size} over {connections}");
    assert_eq!(folders.fetched(), ["copy"]);
    let transfer = &report["transfers"][0];
    assert_eq!(transfer["bytes"].as_u64(), Some(size as u64));
    let split = &transfer["split"];
    match connections {
        "1" => assert!(split.is_null(), "{report}"),
        _ if size < 512 * 1024 => assert!(split["single"].is_string(), "{report}"),
        _ => assert!(split["grouped"] == true, "{report}"),
    }
    assert_eq!(stderr, "");
    report["connections"].as_array().unwrap().len()
}

#[test]
fn files_of_all_sizes_arrive_whole() {
    let folders = Folders::new();
    let sizes = [0, 1, 300_000, 600_000, 10_000_000];
    for size in sizes {
        folders.publish(&size.to_string(), &sample(size));
    }
    let server = serve(&folders);
    for size in sizes {
        // A group of ours has eight members, a file a connection for each 256 KiB.
        let parts = (size / (256 * 1024)).clamp(1, 8);
        for (connections, wanted) in [("1", 1), ("3", parts.min(3)), ("16", parts)] {
            in_some_run(wanted, || fetch_split(&server, &folders, size, connections));
        }
    }
}

#[test]
fn a_file_arrives_whole_over_as_many_connections_as_are_found_worth_it() {
    let folders = Folders::new();
    for size in [0, 300_000, 20_000_000] {
        folders.publish(&size.to_string(), &sample(size));
    }
    let server = serve(&folders);
    for size in [0, 300_000, 20_000_000] {
        let used = fetch_split(&server, &folders, size, "auto");
        assert!((1..=8).contains(&used), "{size}: {used}");
        assert!(size > 512 * 1024 || used == 1, "{size}: {used}");
    }
}

#[test]
fn what_was_worth_it_is_known_in_later_runs() {
    let folders = Folders::new();
    folders.publish("file", &sample(20_000_000));
    let server = serve(&folders);
    let state = folders.path("known");
    std::fs::create_dir(&state).unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let origin = server.url("");
    let own = origin.trim_end_matches('/');
    let known: Vec<String> =
        ["127.0.0.1", "::"].map(|network| format!("{own} {network} {now} 1 1000 2 2000 4 4000\n")).into();
    let more = ["--connections", "auto", "--state", state.to_str().unwrap()];
    in_some_run(4, || {
        std::fs::write(state.join("connection-gains"), known.concat()).unwrap();
        let (report, stderr) = fetch(&server, &folders, "file", &more);
        assert_eq!(stderr, "");
        report["connections"].as_array().unwrap().len().min(4)
    });
    let kept = std::fs::read_to_string(state.join("connection-gains")).unwrap();
    assert!(kept.lines().count() == 2 && kept.starts_with(own), "{kept}");
}

#[test]
fn each_file_of_several_arrives_over_the_same_connections() {
    let folders = Folders::new();
    for name in ["a", "b", "c"] {
        folders.publish(name, &sample(2_000_000 + name.len()));
    }
    let server = serve(&folders);
    let urls = ["a", "b", "c"].map(|name| server.url(name));
    in_some_run(3, || {
        let mut get = server.get();
        get.args(&urls).args(["--connections", "3", "--json", "-O"]).arg(folders.path("in"));
        let (code, stdout, stderr) = run(&mut get);
        assert_eq!((code, stderr.as_str()), (0, ""));
        for name in ["a", "b", "c"] {
            assert!(read(&folders.path("in").join(name)) == sample(2_000_001));
        }
        let report: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
        report["connections"].as_array().unwrap().len()
    });
}

#[test]
fn a_server_without_groups_gets_one_connection_unless_the_user_insists() {
    let folders = Folders::new();
    folders.publish("file", &sample(10_000_000));
    std::thread::sleep(Duration::from_millis(60));
    let server = Server::start(&folders, &[]);
    let (report, stderr) = fetch(&server, &folders, "file", &["--connections", "3"]);
    assert!(read(&folders.path("in").join("copy")) == sample(10_000_000));
    assert_eq!(report["connections"].as_array().unwrap().len(), 1);
    assert!(stderr.contains("does not coordinate connections") && stderr.contains("--ungrouped"), "{stderr}");

    in_some_run(3, || {
        let (report, stderr) = fetch(&server, &folders, "file", &["--connections", "3", "--ungrouped"]);
        assert!(read(&folders.path("in").join("copy")) == sample(10_000_000));
        assert_eq!(report["transfers"][0]["split"]["grouped"], false);
        assert_eq!(stderr, "");
        report["connections"].as_array().unwrap().len()
    });
}

#[test]
fn a_connection_that_ends_midway_is_replaced_by_the_others() {
    let folders = Folders::new();
    folders.publish("file", &sample(50_000_000));
    let server = serve(&folders);
    let more = ["--connections", "3", "--drop-after", "10000000"];
    let (report, _) = fetch(&server, &folders, "file", &more);
    assert!(read(&folders.path("in").join("copy")) == sample(50_000_000));
    assert_eq!(report["transfers"][0]["split"]["lost_connections"], 1, "{report}");
}

/// The file is replaced again and again while it is fetched: what arrives is one state of it, and no mixture.
#[test]
fn a_file_that_is_replaced_midway_arrives_in_one_state() {
    let folders = Folders::new();
    let size = 40_000_000;
    let state = |number: u8| vec![number; size];
    folders.publish("file", &state(0));
    let server = serve(&folders);
    let target = folders.path("in").join("copy");
    let mut command = server.get();
    command.arg(server.url("file")).args(["--connections", "3", "-o"]).arg(&target);
    let mut get = command.stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let mut number = 0;
    while get.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE);
        number += 1;
        folders.publish("new", &state(number));
        std::fs::rename(folders.path("www").join("new"), folders.path("www").join("file")).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(wait(&mut get).code(), Some(0), "{:?}", std::io::read_to_string(get.stderr.take().unwrap()));
    let copy = read(&target);
    assert!(copy.len() == size && copy.iter().all(|byte| *byte == copy[0]), "a mixture");
    assert_eq!(folders.fetched(), ["copy"]);
}

/// Written into while it is fetched: the state that arrives is that of the end, or the transfer fails.
#[test]
fn a_file_that_grows_midway_is_no_mixture_of_lengths() {
    let folders = Folders::new();
    folders.publish("file", &sample(20_000_000));
    let server = serve(&folders);
    let target = folders.path("in").join("copy");
    let mut command = server.get();
    command.arg(server.url("file")).args(["--connections", "3", "-o"]).arg(&target);
    let mut get = command.stderr(Stdio::null()).spawn().unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(folders.path("www").join("file")).unwrap();
    file.write_all(&[7; 1000]).unwrap();
    if wait(&mut get).code() == Some(0) {
        let length = std::fs::File::open(&target).unwrap().metadata().unwrap().len();
        assert!(length == 20_000_000 || length == 20_001_000, "{length}");
        let mut last = [0; 1];
        std::fs::File::open(&target).unwrap().read_exact_at(&mut last, length - 1).unwrap();
        assert_eq!(last[0], if length == 20_001_000 { 7 } else { sample(20_000_000)[19_999_999] });
    } else {
        assert!(folders.fetched().is_empty());
    }
}

#[test]
fn counts_have_bounds_and_stdout_takes_no_parts() {
    for (count, code) in [("0", 2), ("17", 2), ("-1", 2), ("x", 2), ("1000000", 2)] {
        let (found, _, stderr) = run(posthaste()
            .args(["get", "https://127.0.0.1:9/", "-o", "x"])
            .arg(format!("--connections={count}")));
        assert_eq!(found, code, "{stderr}");
        assert!(stderr.contains("--connections"), "{stderr}");
        assert!(count.parse::<u32>().is_err() || stderr.contains("1 to 16"), "{stderr}");
    }
    for more in [&[][..], &["-o", "-"]] {
        let mut get = posthaste();
        let (code, stdout, stderr) =
            run(get.args(["get", "https://127.0.0.1:9/", "--connections", "3"]).args(more));
        assert_eq!((code, stdout.len()), (2, 0));
        assert!(stderr.contains("stdout") && stderr.contains("-o FILE"), "{stderr}");
    }
    let (code, _, stderr) = run(posthaste().args(["get", "https://127.0.0.1:9/", "-o", "x", "--ungrouped"]));
    assert!(code != 0 && !stderr.is_empty());
    let (code, stdout, _) = run(posthaste().args(["get", "--help"]));
    let help = String::from_utf8(stdout).unwrap();
    assert!(code == 0 && help.contains("--connections <COUNT>") && help.contains("--ungrouped"), "{help}");
}

#[test]
fn what_takes_bytes_in_order_only_is_refused_before_anything_is_fetched() {
    let folders = Folders::new();
    folders.publish("file", &sample(1_000_000));
    let server = serve(&folders);
    let pipe = folders.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut reader = std::process::Command::new("cat").arg(&pipe).stdout(Stdio::null()).spawn().unwrap();
    let (code, _, stderr) =
        run(server.get().arg(server.url("file")).args(["--connections", "2", "-o"]).arg(&pipe));
    assert_eq!(code, 1);
    assert!(stderr.contains("needs them in order") && stderr.contains("--connections 1"), "{stderr}");
    wait(&mut reader);
    // A device that forgets takes them in any.
    let (code, _, stderr) =
        run(server.get().arg(server.url("file")).args(["--connections", "2", "-o", "/dev/null"]));
    assert_eq!((code, stderr.as_str()), (0, ""));
}
