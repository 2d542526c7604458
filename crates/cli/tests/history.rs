//! What a server learns of its clients' paths, with real sockets: over a path of 30 ms, from the disk, from the client's
//! token, over a crash and a full disk, with 0-RTT.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use common::{Folders, PATIENCE, Server, free_port, path_of_30_ms, run, sample};
use posthaste_emulator::UdpRelay;
use serde_json::Value;

/// Many round trips: where the machine is busy slow start may end early, and the window has to grow all the same.
const SIZE: usize = 3_000_000;

/// A server behind a path: clients come by the relay, from one address.
struct Stage {
    folders: Folders,
    runtime: tokio::runtime::Runtime,
    listen: String,
    traces: usize,
    /// They stay until the end: a client's last words are still under way in one when the client has gone, and a server
    /// that does not get them waits out its grace.
    relays: Vec<UdpRelay>,
}

impl Stage {
    fn new() -> Self {
        let folders = Folders::new();
        folders.publish("file", &sample(SIZE));
        let listen = format!("127.0.0.1:{}", free_port());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { folders, runtime, listen, traces: 0, relays: Vec::new() }
    }

    /// A server, and the folder of its traces.
    fn serve(&mut self, more: &[&str]) -> (Server, PathBuf) {
        self.traces += 1;
        let traces = self.folders.path(&format!("traces-{}", self.traces));
        let qlog = traces.display().to_string();
        let more: Vec<&str> = more.iter().copied().chain(["--qlog", &qlog]).collect();
        (Server::start_at(&self.folders, &self.listen, &more), traces)
    }

    /// A server none of whose files may grow beyond 8 blocks of 512 bytes: to it that is as if the disk were full. The
    /// signal for that is ignored.
    fn serve_on_a_full_disk(&self) -> Server {
        let mut shell = Command::new("sh");
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        shell.env_remove("RUST_LOG").args(["-c", script, "sh", env!("CARGO_BIN_EXE_posthaste")]);
        Server::start_with(shell, &self.folders, &self.listen, &["--profile", "history"])
    }

    /// Fetches the file `times` times over one path, each over a connection of its own; the report.
    fn get(&mut self, server: &Server, times: u16) -> Value {
        let relay = self.runtime.block_on(UdpRelay::start(path_of_30_ms(&self.listen))).unwrap();
        let url = format!("https://{}/file", relay.local_addr());
        let target = self.folders.path("in").join("copy");
        let mut get = server.get();
        get.args(["--json", "--repeat", &times.to_string(), "--state"]).arg(self.folders.path("client"));
        let (code, stdout, stderr) = run(get.arg("-o").arg(&target).arg(url));
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert!(common::read(&target) == sample(SIZE), "another file");
        self.relays.push(relay);
        serde_json::from_slice(&stdout).unwrap()
    }

    fn shown(&self) -> Vec<Value> {
        let mut show = common::posthaste();
        show.args(["history", "show", "--json", "--state"]).arg(self.folders.path("state"));
        let (code, stdout, stderr) = run(&mut show);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let shown: Value = serde_json::from_slice(&stdout).unwrap();
        shown["paths"].as_array().unwrap().clone()
    }

    /// Waits until the disk has a path.
    fn until_known(&self) -> Value {
        let began = Instant::now();
        loop {
            if let Some(path) = self.shown().first() {
                return path.clone();
            }
            assert!(began.elapsed() < PATIENCE, "nothing is written");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// How many connections of a server have jumped, by its traces.
fn jumps(traces: &Path) -> usize {
    let files = std::fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| std::fs::read_to_string(file).unwrap().contains("\"unvalidated\"")).count()
}

/// Ends the server so that its traces are whole.
fn stop(mut server: Server) {
    server.signal("INT");
    assert!(server.wait().success());
}

#[test]
fn a_client_that_comes_back_with_0_rtt_starts_at_speed_from_the_store() {
    let mut stage = Stage::new();
    let (server, traces) = stage.serve(&["--profile", "history"]);
    let report = stage.get(&server, 3);
    let early: Vec<_> =
        report["connections"].as_array().unwrap().iter().map(|one| one["early_data"].clone()).collect();
    assert_eq!(early, [Value::Null, "accepted".into(), "accepted".into()]);
    let known = stage.until_known();
    assert_eq!(known["path"], "127.0.0.1/32");
    assert!(known["window_bytes"].as_u64().unwrap() > 40_000, "{known}");
    assert!((0.03..0.3).contains(&known["min_rtt_seconds"].as_f64().unwrap()), "{known}");
    stop(server);
    assert!(jumps(&traces) >= 1, "none of the later connections has jumped");

    // Killed in the midst of things: the next one knows all the same.
    let (server, _) = stage.serve(&["--profile", "history"]);
    stage.get(&server, 1);
    stage.until_known();
    std::thread::sleep(std::time::Duration::from_millis(600));
    server.signal("KILL");
    drop(server);
    assert_eq!(stage.shown().len(), 1);
    let (server, traces) = stage.serve(&["--profile", "history"]);
    stage.get(&server, 1);
    stop(server);
    assert_eq!(jumps(&traces), 1, "from the disk");

    let mut clear = common::posthaste();
    clear.args(["history", "clear", "--state"]).arg(stage.folders.path("state"));
    let (code, stdout, _) = run(&mut clear);
    assert_eq!(code, 0);
    assert!(String::from_utf8(stdout).unwrap().starts_with("1 paths forgotten"));
    assert!(stage.shown().is_empty());
    let (server, traces) = stage.serve(&["--profile", "history"]);
    stage.get(&server, 1);
    stop(server);
    assert_eq!(jumps(&traces), 0, "forgotten");
}

#[test]
fn with_no_store_at_all_the_client_brings_it_along_over_a_restart() {
    let mut stage = Stage::new();
    let (server, _) = stage.serve(&["--profile", "history", "--history", "token"]);
    // Tokens are kept by port: the relay's is another each time, so one visit has to be enough for the next two.
    let report = stage.get(&server, 3);
    assert_eq!(report["transfers"].as_array().unwrap().len(), 3);
    stop(server);
    assert!(!stage.folders.path("state").join("history.redb").exists());
    let traces = stage.folders.path("traces-1");
    assert!(jumps(&traces) >= 1, "the token has told nothing");
}

/// Ends the server; what it has said.
fn last_words(mut server: Server) -> String {
    server.signal("INT");
    let code = server.wait();
    let said = std::io::read_to_string(server.child.stderr.take().unwrap()).unwrap();
    assert!(code.success(), "{said}");
    said
}

#[test]
fn a_disk_that_is_full_at_the_start_costs_the_history_and_nothing_else() {
    let mut stage = Stage::new();
    // The certificate and the secret are there already.
    drop(stage.serve(&["--profile", "cubic"]));
    let file = stage.folders.path("state").join("history.redb");
    let server = stage.serve_on_a_full_disk();
    let report = stage.get(&server, 2);
    assert!(report["transfers"].as_array().unwrap().iter().all(|one| one["ok"] == true), "{report}");
    let said = last_words(server);
    assert!(said.contains("history.redb") && said.contains("in memory only"), "{said}");
    assert!(!file.exists(), "half a file would pass for a damaged one");

    // With room again all is as ever.
    let (server, _) = stage.serve(&["--profile", "history"]);
    stage.get(&server, 1);
    stop(server);
    assert_eq!(stage.shown().len(), 1);
    // And where there is a file, a full disk does not take what is in it.
    let server = stage.serve_on_a_full_disk();
    assert_eq!(stage.get(&server, 1)["transfers"][0]["ok"], true);
    last_words(server);
    assert_eq!(stage.shown().len(), 1, "what was known still is");
    assert!(!stage.folders.path("state").join("history.redb.damaged").exists());
}

#[test]
fn a_place_that_cannot_be_is_told_at_the_start() {
    let stage = Stage::new();
    let folder = stage.folders.path("state");
    std::fs::create_dir_all(folder.join("history.redb")).unwrap();
    let mut serve = common::posthaste();
    serve.arg("serve").arg(stage.folders.path("www"));
    serve.args(["--listen", &stage.listen, "--profile", "history", "--state"]).arg(&folder);
    let (code, _, stderr) = run(&mut serve);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("history.redb") && stderr.contains("--state"), "{stderr}");
}

#[test]
fn a_disk_that_goes_while_the_server_runs_costs_the_history_and_nothing_else() {
    let mut stage = Stage::new();
    let folder = stage.folders.path("state");
    let (server, _) = stage.serve(&["--profile", "history"]);
    let aside = stage.folders.path("state-was");
    std::fs::rename(&folder, &aside).unwrap();
    let certificate = aside.join("localhost-certificate.pem");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&certificate, folder.join("localhost-certificate.pem")).unwrap();
    std::fs::create_dir(folder.join("history.redb")).unwrap();
    let report = stage.get(&server, 2);
    assert!(report["transfers"].as_array().unwrap().iter().all(|one| one["ok"] == true), "{report}");
}

#[test]
fn a_history_with_holes_is_refused_without_the_text_of_a_panic() {
    let mut stage = Stage::new();
    let (server, _) = stage.serve(&["--profile", "history"]);
    stage.get(&server, 1);
    stop(server);
    let file = stage.folders.path("state").join("history.redb");
    // The header stays, so that redb believes what follows, and panics.
    let mut bytes = common::read(&file);
    let middle = bytes.len() / 2;
    bytes[4096..middle].fill(0x55);
    std::fs::write(&file, &bytes).unwrap();
    let mut show = common::posthaste();
    let (code, _, stderr) = run(show.args(["history", "show", "--state"]).arg(stage.folders.path("state")));
    assert_eq!(code, 1);
    assert!(stderr.contains("its structure is broken") && !stderr.contains("panicked"), "{stderr}");
    let (mut server, _) = stage.serve(&["--profile", "history"]);
    assert_eq!(stage.get(&server, 1)["transfers"][0]["ok"], true);
    let stderr = server.child.stderr.take().unwrap();
    stop(server);
    let said = std::io::read_to_string(stderr).unwrap();
    assert!(said.contains("history.redb") && !said.contains("panicked"), "{said}");
}

#[test]
fn files_that_are_no_history_are_refused_with_a_reason_and_a_server_begins_anew() {
    let mut stage = Stage::new();
    let folder = stage.folders.path("state");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("history.redb"), b"nonsense").unwrap();
    for what in ["show", "clear"] {
        let mut command = common::posthaste();
        let (code, _, stderr) = run(command.args(["history", what, "--state"]).arg(&folder));
        assert_eq!(code, 1);
        assert!(stderr.contains("history.redb") && stderr.contains("starts a new one"), "{stderr}");
    }
    let (server, _) = stage.serve(&["--profile", "history"]);
    assert_eq!(stage.get(&server, 1)["transfers"][0]["ok"], true);
    assert!(folder.join("history.redb.damaged").is_file());
    assert_eq!(stage.until_known()["path"], "127.0.0.1/32");
}

#[test]
fn a_history_that_nobody_would_use_is_refused() {
    let folders = Folders::new();
    let mut serve = common::posthaste();
    serve.arg("serve").arg(folders.path("www")).args(["--profile", "cubic", "--history", "store", "--state"]);
    let (code, _, stderr) = run(serve.arg(folders.path("state")));
    assert_eq!(code, 2);
    assert!(stderr.contains("cubic") && stderr.contains("--profile history"), "{stderr}");
    let mut show = common::posthaste();
    let (code, stdout, _) = run(show.args(["history", "show", "--state"]).arg(folders.path("state")));
    assert_eq!(code, 0);
    assert!(String::from_utf8(stdout).unwrap().contains("Nothing is known"));
}
