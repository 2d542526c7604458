//! `posthaste serve` as a process of its own, and what tests do with it.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod application;
pub(crate) mod browser;
pub(crate) mod edge;

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use posthaste_emulator::RelayConfig;
use posthaste_path::PathSpec;

/// Nothing on loopback takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A port of 127.0.0.1 that is free, UDP and TCP, and that no other program gets unless it asks for it.
///
/// It is below those that kernels give to sockets of port 0: such a one may be taken by the next connection of any test
/// that runs meanwhile, and stays taken for a minute after its end.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Programs that run side by side begin apart.
    let begin = std::process::id().wrapping_mul(40_503) % PORTS;
    for _ in 0..1000 {
        let turn = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + ((begin + turn) % PORTS) as u16;
        let address = ("127.0.0.1", port);
        if UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok() {
            return port;
        }
    }
    panic!("no port is free from {FIRST_PORT} on");
}

const FIRST_PORT: u16 = 12_000;
const PORTS: u32 = 20_000;

/// The command under test.
pub(crate) fn posthaste() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.env_remove("RUST_LOG").env_remove("SSLKEYLOGFILE");
    command
}

/// A folder to serve, a state folder, and a folder to fetch into.
pub(crate) struct Folders {
    guard: tempfile::TempDir,
}

impl Folders {
    pub(crate) fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        for name in ["www", "in"] {
            std::fs::create_dir(guard.path().join(name)).unwrap();
        }
        Self { guard }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.guard.path().join(name)
    }

    pub(crate) fn publish(&self, name: &str, content: &[u8]) {
        std::fs::write(self.path("www").join(name), content).unwrap();
    }

    /// What is in the folder that is fetched into, hidden files too.
    pub(crate) fn fetched(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("in")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Bytes that look random and are always the same.
pub(crate) fn sample(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A server process; killed when it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) start: serde_json::Value,
}

impl Server {
    pub(crate) fn start(folders: &Folders, more: &[&str]) -> Self {
        Self::start_at(folders, "127.0.0.1:0", more)
    }

    pub(crate) fn start_at(folders: &Folders, listen: &str, more: &[&str]) -> Self {
        Self::start_with(posthaste(), folders, listen, more)
    }

    /// By a command that ends where the arguments of `posthaste` begin.
    pub(crate) fn start_with(mut command: Command, folders: &Folders, listen: &str, more: &[&str]) -> Self {
        let mut child = command
            .arg("serve")
            .arg(folders.path("www"))
            .args(["--json", "--listen", listen, "--state"])
            .arg(folders.path("state"))
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let start = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"));
        Self { child, stdout, start }
    }

    pub(crate) fn text(&self, field: &str) -> String {
        self.start[field].as_str().unwrap_or_else(|| panic!("no {field} in {}", self.start)).to_owned()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.text("url"))
    }

    pub(crate) fn port(&self) -> u16 {
        self.text("address").rsplit(':').next().unwrap().parse().unwrap()
    }

    /// A `get` that trusts this server.
    pub(crate) fn get(&self) -> Command {
        let mut command = posthaste();
        command.args(["get", "--ca", &self.text("certificate")]);
        command
    }

    pub(crate) fn signal(&self, signal: &str) {
        send_signal(self.child.id(), signal);
    }

    /// The next line of its log.
    pub(crate) fn event(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send_signal(process: u32, signal: &str) {
    let status = Command::new("kill").args([format!("-{signal}"), process.to_string()]).status().unwrap();
    assert!(status.success());
}

pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("the process does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A relay to a server, over a path on which a server learns something of its clients.
pub(crate) fn path_of_30_ms(upstream: &str) -> RelayConfig {
    let path: PathSpec = serde_json::from_str(r#"{ "rtt": "30ms", "rate": "100mbit" }"#).unwrap();
    RelayConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        upstream: upstream.parse().unwrap(),
        down: path.down(),
        up: path.up(),
        seed: 1,
        max_clients: 64,
    }
}

/// Runs a command to its end and gives exit code, stdout and stderr.
pub(crate) fn run(command: &mut Command) -> (i32, Vec<u8>, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    (status.code().unwrap_or(-1), stdout, String::from_utf8(stderr).unwrap())
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
