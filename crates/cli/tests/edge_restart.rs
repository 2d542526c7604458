//! `posthaste edge --state`: what clients rely on outlives the process.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

use common::edge::{Edge, certificate, client};
use common::{Folders, PATIENCE, free_port, posthaste, run};
use posthaste_endpoint::EarlyData;

/// An application that tells the `Early-Data` field of each request.
fn application() -> (SocketAddr, mpsc::Receiver<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let lines: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let early = lines
                .iter()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("early-data: ").map(str::to_owned));
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").unwrap();
            if tell.send(early).is_err() {
                return;
            }
        }
    });
    (address, told)
}

/// The figure of this name.
fn figure(edge: &Edge, name: &str) -> String {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(edge.start["admin"].as_str().unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name}: {page}")).to_owned()
}

#[test]
fn after_a_restart_clients_come_back_by_0_rtt_and_with_their_tokens() {
    let folders = Folders::new();
    certificate(&folders);
    let (address, early) = application();
    let port = free_port();
    let start = || {
        let (url, listen) = (format!("http://{address}"), format!("127.0.0.1:{port}"));
        let args =
            ["--to", &url, "--listen", &listen, "--cert", "cert.pem", "--key", "key.pem", "--state", "state"];
        Edge::start(&folders, &[&args[..], &["--workers", "2", "--admin", "127.0.0.1:0"]].concat())
    };
    let state = |name: &str| folders.path("state").join(name);
    let sessions = state(&format!("sessions-{port}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = client(&folders);
    let visit = |edge: &Edge| {
        let url = posthaste_http::parse_url(&edge.url("/")).unwrap();
        runtime.block_on(async {
            assert_eq!(client.get(&url).await.unwrap().status(), 200);
            // Sessions and tokens come behind the response.
            tokio::time::sleep(Duration::from_millis(200)).await;
            client.connections().pop().unwrap().early_data
        })
    };
    let mut first = start();
    visit(&first);
    assert_eq!(early.recv_timeout(PATIENCE).unwrap(), None);
    assert!(first.stop().success());
    for secret in [&sessions, &state("secret")] {
        assert_eq!(std::fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // The application is told that a request came early unless the client's Finished was there before the request was
    // passed on, which a busy machine lets happen: then another restart shows it.
    for attempt in 1.. {
        let mut second = start();
        assert!(!sessions.exists(), "each session may be used once");
        assert_eq!(visit(&second), Some(EarlyData::Accepted));
        let told = early.recv_timeout(PATIENCE).unwrap();
        assert_eq!(figure(&second, "edge_quic_validated_by_token_total"), "1");
        assert!(second.stop().success());
        if told.as_deref() == Some("1") {
            break;
        }
        assert!(told.is_none() && attempt < 5, "{told:?} in attempt {attempt}");
    }
}

#[test]
fn secrets_are_not_put_among_the_files_that_are_served() {
    let folders = Folders::new();
    certificate(&folders);
    let args = ["edge", "--files", "www", "--cert", "cert.pem", "--key", "key.pem", "--state", "www/state"];
    let (code, _, stderr) = run(posthaste().args(args).current_dir(folders.path("")));
    assert!(code == 2 && stderr.contains("would be served"), "{stderr}");
    assert!(!folders.path("www/state").exists());
}
