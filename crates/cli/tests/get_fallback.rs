//! `posthaste get --fallback`: files over TCP where HTTP/3 does not get through.
#![cfg(target_os = "linux")]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};

use common::edge::{Edge, certificate};
use common::{Folders, posthaste, run, sample};
use serde_json::Value;

/// A server of files over TCP and UDP, and a port that leads to its TCP only.
struct Ground {
    folders: Folders,
    edge: Edge,
    tcp_only: u16,
    /// Takes the datagrams to that port, and does not answer.
    _silent: UdpSocket,
}

impl Ground {
    fn new() -> Self {
        let folders = Folders::new();
        certificate(&folders);
        std::fs::create_dir_all(folders.path("site")).unwrap();
        std::fs::write(folders.path("site/file"), sample(200_000)).unwrap();
        let edge = Edge::start(
            &folders,
            &["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--files", "site"],
        );
        let (tcp_only, silent) = lead_to(edge.port());
        Self { folders, edge, tcp_only, _silent: silent }
    }

    /// Exit code, the report's only transfer, and stderr.
    fn get(&self, port: u16, more: &[&str]) -> (i32, Value, String) {
        let mut command = posthaste();
        command.args(["get", "--json", "--ca"]).arg(self.folders.path("cert.pem")).args(more);
        command.arg(format!("https://localhost:{port}/file")).current_dir(self.folders.path(""));
        let (code, stdout, stderr) = run(&mut command);
        let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
        (code, report["transfers"][0].clone(), stderr)
    }
}

/// A TCP port from which connections lead to another, and the UDP socket of the same number.
fn lead_to(port: u16) -> (u16, UdpSocket) {
    let (listener, silent) = std::iter::repeat_with(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = UdpSocket::bind(listener.local_addr().unwrap());
        silent.map(|silent| (listener, silent))
    })
    .take(50)
    .find_map(Result::ok)
    .expect("no number is free for both");
    let number = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let mut block = [0; 16_384];
                    while let Ok(count @ 1..) = from.read(&mut block) {
                        if to.write_all(&block[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    (number, silent)
}

#[test]
fn a_file_comes_over_tcp_where_udp_is_silent() {
    let ground = Ground::new();
    let (code, transfer, stderr) = ground.get(ground.tcp_only, &["--fallback", "-o", "out"]);
    assert_eq!((code, &transfer["protocol"]), (0, &Value::from("h2")), "{stderr}");
    assert_eq!((&transfer["status"], &transfer["connection"]), (&Value::from(200), &Value::Null));
    assert_eq!(transfer["bytes"], 200_000);
    assert!(std::fs::read(ground.folders.path("out")).unwrap() == sample(200_000));
    // HTTP/3 has had its head start.
    assert!(transfer["times"]["first_byte"].as_f64().unwrap() > 0.25);
}

#[test]
fn without_the_option_it_fails_and_nothing_goes_over_tcp() {
    let ground = Ground::new();
    let (code, transfer, stderr) = ground.get(ground.tcp_only, &["--timeout", "1"]);
    assert_eq!((code, &transfer["protocol"]), (1, &Value::Null));
    assert!(stderr.contains("nothing answered on UDP"), "{stderr}");
}

#[test]
fn http3_is_used_where_it_answers() {
    let ground = Ground::new();
    // However busy the machine is: once the handshake is done, TCP is not tried.
    let (code, transfer, stderr) = ground.get(ground.edge.port(), &["--fallback"]);
    let protocol = transfer["protocol"].as_str().unwrap();
    assert_eq!(code, 0, "{stderr}");
    let first_byte = transfer["times"]["first_byte"].as_f64().unwrap();
    assert!(protocol == "h3" || first_byte > 0.25, "{protocol} after {first_byte} s");
}

#[test]
fn where_nobody_answers_both_reasons_are_said() {
    let ground = Ground::new();
    let (silent, refusing) = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (UdpSocket::bind(("127.0.0.1", port)), port)
    };
    let (code, transfer, stderr) = ground.get(refusing, &["--fallback", "--timeout", "1"]);
    drop(silent);
    assert_eq!((code, &transfer["ok"]), (1, &Value::from(false)));
    assert!(stderr.contains("; over TCP: ") && stderr.contains("refused"), "{stderr}");
}

#[test]
fn a_certificate_that_is_not_accepted_is_not_tried_again_over_tcp() {
    let ground = Ground::new();
    let other = Folders::new();
    certificate(&other);
    let mut command = posthaste();
    command.args(["get", "--json", "--fallback", "--timeout", "1", "--ca"]).arg(other.path("cert.pem"));
    command.arg(format!("https://localhost:{}/file", ground.tcp_only));
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 1);
    assert!(stderr.contains("over TCP: ") && stderr.contains("certificate"), "{stderr}");
    let mut command = posthaste();
    command.args(["get", "--json", "--fallback", "--ca"]).arg(other.path("cert.pem"));
    command.arg(format!("https://localhost:{}/file", ground.edge.port()));
    let (code, _, stderr) = run(&mut command);
    assert_eq!(code, 1);
    assert!(stderr.contains("certificate"), "{stderr}");
}

#[test]
fn wrong_use_is_refused() {
    for other in [&["--connections", "3"][..], &["--continue"]] {
        let mut command = posthaste();
        command.args(["get", "--fallback", "https://localhost/"]).args(other);
        let (code, _, stderr) = run(&mut command);
        assert_eq!(code, 2);
        assert!(stderr.contains("--fallback"), "{stderr}");
    }
}
