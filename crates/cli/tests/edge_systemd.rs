//! `posthaste edge` under a service manager: sockets that it holds, and what it is told. The manager here is Python, which
//! passes descriptors as systemd does.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::Command;

use common::edge::{Edge, certificate};
use common::{Folders, PATIENCE, run, wait};

/// Binds UDP and TCP on one port and TCP on another, and becomes the command in its arguments with these as descriptors
/// from 3 on.
const MANAGER: &str = r#"
import os, socket, sys
def bind(kind, port):
    s = socket.socket(socket.AF_INET, kind)
    s.bind(("127.0.0.1", port))
    if kind == socket.SOCK_STREAM: s.listen(16)
    return s
while True:
    udp = bind(socket.SOCK_DGRAM, 0)
    try: tcp = bind(socket.SOCK_STREAM, udp.getsockname()[1]); break
    except OSError: udp.close()
held = [tcp, bind(socket.SOCK_STREAM, 0), udp]
spare = [os.dup2(s.fileno(), 20 + i) for i, s in enumerate(held)]
for i, fd in enumerate(spare): os.dup2(fd, 3 + i, inheritable=True)
os.environ.update(LISTEN_FDS="3", LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn lines(manager: &UnixDatagram) -> Vec<String> {
    let mut message = [0; 1000];
    let length = manager.recv(&mut message).unwrap();
    String::from_utf8_lossy(&message[..length]).lines().map(str::to_owned).collect()
}

#[test]
fn it_serves_on_the_sockets_of_its_manager_and_tells_it_how_it_is() {
    let folders = Folders::new();
    certificate(&folders);
    let manager = UnixDatagram::bind(folders.path("notify")).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", MANAGER, env!("CARGO_BIN_EXE_posthaste")]);
    command.env("NOTIFY_SOCKET", folders.path("notify")).env_remove("RUST_LOG");
    // Nobody but the manager may listen there: the sockets must be the passed ones.
    let usual = ["--listen", "192.0.2.1:443", "--cert", "cert.pem", "--key", "key.pem", "--files", "www"];
    folders.publish("page", b"a page");
    let mut edge = Edge::start_by(command, &folders, &usual);
    assert_eq!(lines(&manager), ["READY=1"]);
    let (code, body, stderr) = run(&mut edge.get(&folders, "/page"));
    assert_eq!((code, body.as_slice(), stderr.as_str()), (0, b"a page".as_slice(), ""));
    if let Some(mut curl) = edge.curl(&folders, "/page") {
        assert_eq!(run(&mut curl).1, b"a page");
    }
    let mut redirect = TcpStream::connect(edge.start["redirect"].as_str().unwrap()).unwrap();
    redirect.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    let mut answer = String::new();
    redirect.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains(" 308 ") && answer.contains(&format!("https://a.test:{}/", edge.port())),
        "{answer}"
    );
    edge.signal("HUP");
    let told = lines(&manager);
    assert!(told[0] == "RELOADING=1" && told[1].starts_with("MONOTONIC_USEC="), "{told:?}");
    assert_eq!(lines(&manager), ["READY=1"]);
    edge.signal("TERM");
    assert_eq!(lines(&manager), ["STOPPING=1"]);
    assert!(wait(&mut edge.child).success());
}

/// The unit files, where systemd can look at them.
#[test]
fn systemd_takes_the_unit_files() {
    let folders = Folders::new();
    let packaging = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");
    let mut command = Command::new("systemd-analyze");
    // The man page comes with the package, whose test looks at it.
    command.args(["verify", "--man=no"]);
    for name in ["posthaste-edge.service", "posthaste-edge.socket"] {
        let unit = std::fs::read_to_string(format!("{packaging}/{name}")).unwrap();
        // The program must be there for systemd to take it.
        let unit = unit.replace("/usr/bin/posthaste ", &format!("{} ", env!("CARGO_BIN_EXE_posthaste")));
        std::fs::write(folders.path(name), unit).unwrap();
        command.arg(folders.path(name));
    }
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no systemd-analyze");
    }
    let (code, _, stderr) = run(&mut command);
    assert_eq!((code, stderr.as_str()), (0, ""));
}
