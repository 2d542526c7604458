//! `posthaste edge --workers 2`: each worker has sockets and upstream connections of its own, and together they are one
//! server.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::edge::{Edge, certificate};
use common::{Folders, PATIENCE, posthaste, run, wait};

/// Half answers, and whether they may be completed.
type Slow = (Mutex<(usize, bool)>, Condvar);

/// An application that answers `well`; `/slow` in two halves, the second when it is told to.
#[derive(Clone, Default)]
struct Application {
    connections: Arc<AtomicUsize>,
    slow: Arc<Slow>,
}

impl Application {
    fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let application = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                application.connections.fetch_add(1, Ordering::Relaxed);
                let application = application.clone();
                std::thread::spawn(move || application.serve(&stream));
            }
        });
        address
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        while let Some(first) = lines.next() {
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe").unwrap();
            if first.contains(" /slow ") {
                let (state, changed) = &*self.slow;
                state.lock().unwrap().0 += 1;
                changed.notify_all();
                drop(changed.wait_while(state.lock().unwrap(), |state| !state.1).unwrap());
            }
            stream.write_all(b"ll").unwrap();
        }
    }

    /// Waits until this many answers are half given.
    fn wait_for_slow(&self, count: usize) {
        let (state, changed) = &*self.slow;
        let waited = changed.wait_timeout_while(state.lock().unwrap(), PATIENCE, |state| state.0 < count);
        assert!(!waited.unwrap().1.timed_out());
    }

    fn release(&self) {
        self.slow.0.lock().unwrap().1 = true;
        self.slow.1.notify_all();
    }
}

const WORKERS: [&str; 6] = ["--workers", "2", "--redirect", "127.0.0.1:0", "--grace", "60"];

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn curl(edge: &Edge, folders: &Folders, path: &str, version: &str) -> Option<Command> {
    let mut command = edge.curl(folders, path)?;
    command.arg(version);
    Some(command)
}

fn get(edge: &Edge, folders: &Folders, path: &str) -> Command {
    let mut command = edge.get(folders, path);
    command.args(["--output", "-"]);
    command
}

/// With one client at a time, each worker needs one connection to the application; in 24 connections of clients, one of two
/// workers is left out once in eight million times.
#[test]
fn clients_meet_both_workers_over_tcp_and_over_udp() {
    let (folders, application) = (Folders::new(), Application::default());
    certificate(&folders);
    let address = application.start();
    for transport in ["udp", "tcp"] {
        let admin = ["--admin", "127.0.0.1:0"];
        let mut edge = Edge::to(&folders, &format!("http://{address}"), &[&WORKERS[..], &admin].concat());
        let before = application.connections.load(Ordering::Relaxed);
        for turn in 0..24 {
            let command = match transport {
                "udp" => get(&edge, &folders, "/"),
                _ => match curl(&edge, &folders, "/", ["--http1.1", "--http2"][turn % 2]) {
                    Some(command) => command,
                    None => return,
                },
            };
            let (code, stdout, stderr) = run(&mut { command });
            assert_eq!((code, stdout.as_slice(), stderr.as_str()), (0, &b"well"[..], ""), "{transport}");
            assert_eq!(edge.event()["status"], 200);
        }
        assert_eq!(application.connections.load(Ordering::Relaxed) - before, 2, "{transport}");
        let (_, status, _) =
            run(posthaste().args(["edge", "status", "--json", "--admin"]).arg(admin_of(&edge)));
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        let connections = if transport == "udp" { 24 } else { 0 };
        assert_eq!(
            (&status["requests"]["all"], &status["http3"]["connections"]),
            (&24.into(), &connections.into()),
            "{status}"
        );
        assert!(edge.stop().success());
    }
}

fn admin_of(edge: &Edge) -> &str {
    edge.start["admin"].as_str().unwrap()
}

#[test]
fn a_reload_reaches_all_workers_and_a_drain_waits_for_all_their_requests() {
    let (folders, application) = (Folders::new(), Application::default());
    certificate(&folders);
    let config = |to: &str| {
        let text = format!(
            "[edge]\nlisten = \"127.0.0.1:0\"\nworkers = 2\ngrace = \"1m\"\n[site.localhost]\n{to}\n\
             certificate = {{ chain = \"cert.pem\", key = \"key.pem\" }}\n"
        );
        std::fs::write(folders.path("edge.toml"), text).unwrap();
    };
    config("reply = \"200 before\"");
    let mut edge = Edge::start(&folders, &["--config", "edge.toml", "--no-access-log"]);
    assert_eq!(run(&mut get(&edge, &folders, "/")).1, b"before");
    config(&format!("to = \"http://{}\"", application.start()));
    edge.signal("HUP");
    assert!(edge.note().contains("reloaded"));
    let mut clients = Vec::new();
    for turn in 0..16 {
        assert_eq!(run(&mut get(&edge, &folders, "/")).1, b"well");
        clients.push(spawn(get(&edge, &folders, "/slow")));
        let version = ["--http1.1", "--http2"][turn % 2];
        clients.extend(curl(&edge, &folders, "/slow", version).map(spawn));
    }
    application.wait_for_slow(clients.len());
    edge.signal("TERM");
    assert!(edge.note().contains("stopping"));
    // By now no worker takes another client.
    let (code, ..) = run(get(&edge, &folders, "/").args(["--timeout", "5"]));
    assert_ne!(code, 0);
    application.release();
    for mut client in clients {
        let mut body = Vec::new();
        client.stdout.take().unwrap().read_to_end(&mut body).unwrap();
        assert!(wait(&mut client).success() && body == b"well");
    }
    assert!(wait(&mut edge.child).success());
    assert_eq!(edge.event()["requests_cut_off"], 0);
}

#[test]
fn limits_hold_for_all_workers_together() {
    let folders = Folders::new();
    certificate(&folders);
    let text = "[edge]\nlisten = \"127.0.0.1:0\"\nworkers = 2\n[edge.limits]\nconnections = 100\n\
                connections-per-client = 5\n[site.localhost]\nreply = \"200 well\"\n\
                certificate = { chain = \"cert.pem\", key = \"key.pem\" }\n";
    std::fs::write(folders.path("edge.toml"), text).unwrap();
    let edge = Edge::start(&folders, &["--config", "edge.toml"]);
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", edge.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    };
    let is_closed = |mut stream: &TcpStream| matches!(stream.read(&mut [0; 1]), Ok(0));
    // More than all workers may have; whichever are accepted first stay.
    let streams: Vec<TcpStream> = (0..12).map(|_| connect()).collect();
    assert_eq!(streams.iter().filter(|stream| !is_closed(stream)).count(), 5);
}

#[test]
fn what_cannot_be_the_number_of_workers_is_named() {
    let folders = Folders::new();
    certificate(&folders);
    let usual = ["edge", "--to", "http://127.0.0.1:1", "--cert", "cert.pem", "--key", "key.pem", "--workers"];
    for number in ["0", "1025", "many"] {
        let (code, _, stderr) = run(posthaste().args(usual).arg(number).current_dir(folders.path("")));
        assert!(code == 2 && stderr.contains("must be from 1 to 1024, or `auto`"), "{stderr}");
        let quoted = if number == "many" { "\"many\"" } else { number };
        std::fs::write(folders.path("edge.toml"), format!("[edge]\nworkers = {quoted}\n")).unwrap();
        let (code, _, stderr) = run(posthaste().args(["edge", "check"]).arg(folders.path("edge.toml")));
        assert!(code == 2 && stderr.contains("edge.toml:2:11"), "{stderr}");
        assert!(stderr.contains("must be from 1 to 1024, or `auto`"), "{stderr}");
    }
    let mut printed = posthaste();
    printed.args(usual).args(["auto", "--print-config"]).current_dir(folders.path(""));
    assert!(String::from_utf8(run(&mut printed).1).unwrap().contains("workers = \"auto\"\n"));
}
