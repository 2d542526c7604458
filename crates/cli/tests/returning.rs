//! Clients and servers that come back: what they keep between two runs, and what that is good for.
#![cfg(unix)]

mod common;

use std::path::Path;

use common::{Folders, Server, run, sample};

/// How many times the text stands in the traces of a folder.
fn count_in_traces(folder: &Path, text: &str) -> usize {
    let traces = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    traces.map(|trace| std::fs::read_to_string(trace).unwrap().matches(text).count()).sum()
}

#[test]
fn a_client_with_a_state_folder_is_asked_for_its_address_once() {
    let folders = Folders::new();
    folders.publish("file", &sample(1000));
    let state = folders.path("client-state");
    let fetch = |server: &Server, traces: &Path, has_state: bool| {
        std::fs::create_dir(traces).unwrap();
        let mut get = server.get();
        get.arg(server.url("file")).arg("--qlog").arg(traces);
        if has_state {
            get.arg("--state").arg(&state);
        }
        let (code, stdout, stderr) = run(&mut get);
        assert_eq!((code, stderr.as_str()), (0, ""));
        assert_eq!(stdout, sample(1000));
        // A Retry answers each datagram of the first flight; the client takes the first.
        count_in_traces(traces, "\"packet_type\":\"retry\"") > 0
    };
    let server = Server::start(&folders, &["--retry", "always"]);
    assert!(fetch(&server, &folders.path("q1"), true), "it is a stranger");
    assert!(!fetch(&server, &folders.path("q2"), true), "it has a token");
    assert!(!fetch(&server, &folders.path("q3"), true), "each visit brings the next token");
    assert!(fetch(&server, &folders.path("q4"), false), "nothing is kept without a place");
    let port = server.port().to_string();
    drop(server);
    // The next server has the secret of the one before; the client knows it by its port.
    let listen = format!("127.0.0.1:{port}");
    let next = Server::start_at(&folders, &listen, &["--retry", "always"]);
    assert!(!fetch(&next, &folders.path("q5"), true));
    drop(next);
    let careless = Server::start_at(&folders, &listen, &["--retry", "never"]);
    assert!(!fetch(&careless, &folders.path("q6"), false));
}

#[test]
fn a_server_keeps_its_sessions_for_its_next_run_alone() {
    let folders = Folders::new();
    folders.publish("file", b"content");
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap().to_string();
    drop(free);
    let kept = folders.path("state").join(format!("sessions-{}", listen.rsplit(':').next().unwrap()));
    let mut server = Server::start_at(&folders, &listen, &[]);
    assert_eq!(run(server.get().arg(server.url("file"))).0, 0);
    assert!(!kept.exists());
    server.signal("INT");
    assert!(server.wait().success());
    let len = std::fs::metadata(&kept).unwrap().len();
    assert!(len > 100, "{len} bytes of sessions");
    let server = Server::start_at(&folders, &listen, &[]);
    assert!(!kept.exists(), "taken before the first of them is used");
    drop(server);
}

#[test]
fn an_unusable_secret_is_an_error_that_says_what_to_do() {
    let folders = Folders::new();
    std::fs::create_dir(folders.path("state")).unwrap();
    std::fs::write(folders.path("state").join("secret"), b"too short").unwrap();
    let mut serve = common::posthaste();
    serve.arg("serve").arg(folders.path("www")).args(["--listen", "127.0.0.1:0", "--state"]);
    let (code, _, stderr) = run(serve.arg(folders.path("state")));
    assert_eq!(code, 1);
    assert!(stderr.contains("32 bytes") && stderr.contains("--state"), "{stderr}");
}

#[test]
fn what_is_fetched_again_is_asked_for_with_the_first_packets() {
    let folders = Folders::new();
    folders.publish("file", &sample(100_000));
    let server = Server::start(&folders, &[]);
    let target = folders.path("in").join("copy");
    let (code, stdout, stderr) =
        run(server.get().arg(server.url("file")).args(["--repeat", "3", "--json", "-o"]).arg(&target));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(common::read(&target), sample(100_000), "the last time's");
    let report: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    let connections = report["connections"].as_array().unwrap();
    let early: Vec<_> =
        connections.iter().map(|one| (one["resumed"].clone(), one["early_data"].clone())).collect();
    let (first, again) = ((false.into(), serde_json::Value::Null), (true.into(), "accepted".into()));
    assert_eq!(early, [first, again.clone(), again]);
    let carried: Vec<_> =
        report["transfers"].as_array().unwrap().iter().map(|one| one["connection"].clone()).collect();
    assert_eq!(carried, [0, 1, 2]);
}
