//! `posthaste edge doctor`: of a site that is well, and of sites that are broken in one way each.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use common::edge::{Edge, certificate};
use common::{Folders, posthaste, run, sample};
use posthaste_endpoint::rustls;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;

/// More than any step takes on a busy machine.
const PATIENT: &str = "60";

/// For steps to which nothing ever answers.
const IMPATIENT: &str = "2";

fn folders() -> Folders {
    let folders = Folders::new();
    certificate(&folders);
    std::fs::create_dir_all(folders.path("site")).unwrap();
    std::fs::write(folders.path("site/file"), sample(30_000)).unwrap();
    folders
}

/// A server of files over TCP and UDP.
fn files(folders: &Folders) -> Edge {
    let args = ["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--files", "site"];
    Edge::start(folders, &args)
}

/// What the doctor says.
struct Examination {
    code: i32,
    report: Value,
    stderr: String,
}

impl Examination {
    fn of(folders: &Folders, host: &str, port: u16, timeout: &str) -> Self {
        let mut command = posthaste();
        command
            .args(["edge", "doctor", host, "--json", "--path", "/file", "--ca"])
            .arg(folders.path("cert.pem"));
        command.args(["--port", &port.to_string(), "--timeout", timeout]);
        let (code, stdout, stderr) = run(&mut command);
        let report = serde_json::from_slice(&stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        Self { code, report, stderr }
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.report["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["check"] == name)
            .unwrap_or_else(|| panic!("no {name} in {}", self.report))
    }

    /// The check has this state, and its texts contain these.
    fn says(&self, name: &str, state: &str, detail: &str, next: &str) {
        let check = self.check(name);
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        let found = (text("state"), text("detail").contains(detail), text("next").contains(next));
        assert_eq!(found, (state.to_owned(), true, true), "{check}\n{}", self.stderr);
        // What is wrong says what to do.
        assert_eq!(check["next"].is_string(), ["warning", "failed"].contains(&state), "{check}");
    }

    fn names(&self, state: &str) -> Vec<&str> {
        let checks = self.report["checks"].as_array().unwrap();
        checks.iter().filter(|it| it["state"] == state).map(|it| it["check"].as_str().unwrap()).collect()
    }
}

#[test]
fn a_site_that_is_well_passes_each_check() {
    let folders = folders();
    let edge = files(&folders);
    let found = Examination::of(&folders, "localhost", edge.port(), PATIENT);
    assert_eq!((found.code, &found.report["ok"]), (0, &Value::from(true)), "{:#}", found.report);
    assert_eq!(found.names("skipped"), ["https-record"]);
    assert_eq!(found.names("failed"), [""; 0]);
    assert_eq!(found.names("warning"), [""; 0], "{:#}", found.report);
    let order = [
        "dns",
        "tcp",
        "certificate",
        "http",
        "http2",
        "alt-svc",
        "udp",
        "quic-versions",
        "quic-certificate",
        "http3",
        "path",
        "resumption",
        "early-data",
        "addresses",
    ];
    assert_eq!(found.names("ok"), order);
    found.says("certificate", "ok", "for localhost, good until 4096-01-01", "");
    found.says("http", "ok", "200 OK over h2, 30000 bytes", "");
    found.says("alt-svc", "ok", &format!("port {}", edge.port()), "");
    found.says("quic-versions", "ok", "1", "");
    found.says("http3", "ok", "200 OK, 30000 bytes, as over TCP", "");
    found.says("early-data", "ok", "taken (0-RTT)", "");
    let (code, stdout, _) = run(posthaste()
        .args(["edge", "doctor", "localhost", "--path", "/file", "--timeout", PATIENT, "--port"])
        .arg(edge.port().to_string())
        .arg("--ca")
        .arg(folders.path("cert.pem")));
    let text = String::from_utf8(stdout).unwrap();
    assert!(code == 0 && text.ends_with("15 checks: 0 failed, 0 warnings\n"), "{text}");
    assert_eq!(text.lines().count(), 16, "{text}");
}

/// Each TCP connection to the listener goes on to this port.
fn lead(listener: TcpListener, port: u16) {
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
}

#[test]
fn a_closed_udp_port_is_found() {
    let folders = folders();
    let edge = files(&folders);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    lead(listener, edge.port());
    let found = Examination::of(&folders, "localhost", port, IMPATIENT);
    assert_eq!(found.code, 1);
    found.says("udp", "failed", &format!("UDP port {port} does not answer"), "firewall");
    found.says("addresses", "warning", "127.0.0.1: TCP", "");
    found.says("quic-versions", "skipped", "", "");
    assert!(!found.report.to_string().contains("\"http3\""));
}

/// A server over TCP that has nothing newer than TLS 1.2, as nginx before 1.23.4 unless it is told otherwise.
fn old(folders: &Folders) -> u16 {
    let chain =
        CertificateDer::pem_file_iter(folders.path("cert.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folders.path("key.pem")).unwrap();
    let config = rustls::ServerConfig::builder_with_protocol_versions(&[&rustls::version::TLS12]);
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(rustls::StreamOwned::new(tls, client));
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|length| length > 2) {
                    line.clear();
                }
                let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            });
        }
    });
    port
}

#[test]
fn a_server_without_tls_1_3_is_no_fault() {
    let folders = folders();
    let found = Examination::of(&folders, "localhost", old(&folders), IMPATIENT);
    found.says("certificate", "ok", "for localhost", "");
    found.says("http", "ok", "200 OK over http/1.1, 2 bytes", "");
}

/// As with `--beside`: the server over TCP says nothing of HTTP/3, for its port is another one behind the redirection.
#[test]
fn a_missing_alt_svc_is_found() {
    let folders = folders();
    let site = files(&folders);
    let (upstream, ca) = (format!("https://localhost:{}", site.port()), folders.path("cert.pem"));
    let (beside, listener) = std::iter::repeat_with(|| {
        let args =
            ["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--beside", &upstream];
        let edge = Edge::start(&folders, &[&args[..], &["--ca", ca.to_str().unwrap()]].concat());
        let listener = TcpListener::bind(("127.0.0.1", edge.port()));
        listener.map(|listener| (edge, listener))
    })
    .take(20)
    .find_map(Result::ok)
    .expect("no number is free for both");
    lead(listener, site.port());
    let found = Examination::of(&folders, "localhost", beside.port(), PATIENT);
    let next = format!("`Alt-Svc: h3=\":{}\"; ma=86400`", beside.port());
    found.says("alt-svc", "failed", "has no Alt-Svc", &next);
    assert_eq!((found.code, found.names("failed")), (1, vec!["alt-svc"]), "{:#}", found.report);
    found.says("http3", "ok", "200 OK, 30000 bytes, as over TCP", "");
}

#[test]
fn an_alt_svc_that_leads_nowhere_is_found() {
    let folders = folders();
    // Nobody else takes its number, and datagrams to it are refused: it is connected to somebody who never speaks.
    let unused = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    unused.connect("127.0.0.1:9").unwrap();
    let other = unused.local_addr().unwrap().port();
    for (value, detail) in [
        (format!("h3=\\\":{other}\\\""), format!("names UDP port {other}, where nothing answers")),
        ("clear".to_owned(), "says `clear`".to_owned()),
    ] {
        let text = format!(
            "[edge]\nlisten = \"127.0.0.1:0\"\n[site.localhost]\ncertificate = {{ chain = \"cert.pem\", key = \"key.pem\" }}\n\
             files = \"site\"\n[site.localhost.headers]\nset = {{ \"alt-svc\" = \"{value}\" }}\n"
        );
        std::fs::write(folders.path("edge.toml"), text).unwrap();
        let edge = Edge::start(&folders, &["--config", "edge.toml"]);
        let found = Examination::of(&folders, "localhost", edge.port(), PATIENT);
        found.says("alt-svc", "failed", &detail, &format!("h3=\":{}\"", edge.port()));
        assert_eq!((found.code, found.names("failed")), (1, vec!["alt-svc"]), "{:#}", found.report);
    }
}

#[test]
fn a_certificate_for_another_name_is_found() {
    let folders = folders();
    let edge = files(&folders);
    let found = Examination::of(&folders, "127.0.0.1", edge.port(), PATIENT);
    assert_eq!(found.code, 1);
    for check in ["certificate", "quic-certificate"] {
        found.says(check, "failed", "not for 127.0.0.1, but for localhost", "with 127.0.0.1 among its names");
    }
    // The name is not covered, so the edge refuses the request over both.
    found.says("http", "warning", "421", "");
}

#[test]
fn an_expired_certificate_is_found() {
    let folders = folders();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2019, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 2, 3);
    let key = rcgen::KeyPair::generate().unwrap();
    std::fs::write(folders.path("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(folders.path("key.pem"), key.serialize_pem()).unwrap();
    let edge = files(&folders);
    let found = Examination::of(&folders, "localhost", edge.port(), PATIENT);
    assert_eq!(
        (found.code, found.names("failed")),
        (1, vec!["certificate", "quic-certificate"]),
        "{:#}",
        found.report
    );
    found.says("certificate", "failed", "expired on 2020-02-03 (for localhost)", "renew");
}

#[test]
fn an_authority_that_is_not_known_is_found() {
    let folders = folders();
    let edge = files(&folders);
    // The certificate is that of the first run.
    certificate(&folders);
    let found = Examination::of(&folders, "localhost", edge.port(), PATIENT);
    assert_eq!(found.code, 1);
    found.says("certificate", "failed", "not trusted", "--ca FILE");
}

#[test]
fn where_nobody_is_both_transports_fail() {
    let folders = folders();
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let found = Examination::of(&folders, "localhost", port, IMPATIENT);
    assert_eq!((found.code, found.names("failed")), (1, vec!["tcp", "udp"]), "{:#}", found.report);
    let found = Examination::of(&folders, "nowhere.invalid", port, PATIENT);
    assert_eq!((found.code, found.names("failed")), (1, vec!["dns"]), "{:#}", found.report);
}

#[test]
fn what_is_no_host_is_a_usage_error() {
    for host in ["https://localhost/", "localhost/x", "localhost:443", "a b", ""] {
        let (code, _, stderr) = run(posthaste().args(["edge", "doctor", host]));
        assert_eq!(code, 2, "{host}: {stderr}");
    }
}
