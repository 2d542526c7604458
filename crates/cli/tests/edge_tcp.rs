//! `posthaste edge --to` over TCP, as curl sees it: HTTP/1.1 and HTTP/2 on the port of HTTP/3.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::edge::{Edge, certificate};
use common::{Folders, PATIENCE, run, sample, wait};

/// An application that sends bodies back. `/slow` answers in two halves, the second when it is told to.
fn application() -> (SocketAddr, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (release, released) = mpsc::channel();
    std::thread::spawn(move || {
        // One connection after the other; the proxy opens another one while this is busy only with `/slow`.
        let released = std::sync::Arc::new(std::sync::Mutex::new(released));
        for stream in listener.incoming() {
            let released = std::sync::Arc::clone(&released);
            std::thread::spawn(
                move || while answer(&mut BufReader::new(stream.as_ref().unwrap()), &released) {},
            );
        }
    });
    (address, release)
}

/// Answers a request; false when the connection is over.
fn answer(stream: &mut BufReader<&TcpStream>, released: &std::sync::Mutex<mpsc::Receiver<()>>) -> bool {
    let (mut line, mut length, mut is_chunked) = (String::new(), 0, false);
    if stream.read_line(&mut line).unwrap_or(0) == 0 {
        return false;
    }
    let is_slow = line.contains(" /slow ");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        is_chunked |= lower.starts_with("transfer-encoding: chunked");
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    while is_chunked {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).unwrap();
        body.extend_from_slice(&chunk[..size]);
        is_chunked = size > 0;
    }
    let mut stream = *stream.get_ref();
    if is_slow {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none").unwrap();
        released.lock().unwrap().recv().unwrap();
        stream.write_all(b"two").unwrap();
    } else {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
    }
    true
}

fn start(folders: &Folders, application: SocketAddr) -> Edge {
    certificate(folders);
    let more = ["--redirect", "127.0.0.1:0", "--grace", "60"];
    let edge = Edge::to(folders, &format!("http://{application}"), &more);
    assert_eq!(edge.start["protocols"], serde_json::json!(["h1", "h2", "h3"]));
    edge
}

#[test]
fn clients_over_tcp_are_served_and_told_of_http3() {
    let folders = Folders::new();
    let content = sample(3_000_000);
    std::fs::write(folders.path("upload"), &content).unwrap();
    let (application, _release) = application();
    let mut front = start(&folders, application);
    let Some(mut command) = front.curl(&folders, "/x") else {
        return;
    };
    let (code, head, stderr) = run(command.args(["--http2", "--head"]));
    let head = String::from_utf8(head).unwrap();
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(head.contains(&format!("alt-svc: h3=\":{}\"; ma=86400", front.port())), "{head}");
    assert_eq!(front.event()["protocol"], "h2");
    for (version, name, number) in [("--http1.1", "h1", "1.1"), ("--http2", "h2", "2")] {
        for upload in ["Content-Length: 3000000", "Transfer-Encoding: chunked"] {
            let mut command = front.curl(&folders, "/echo").unwrap();
            // HTTP/2 has no chunks: without a length, that is.
            let length = if upload.starts_with('T') && name == "h2" { "Content-Length:" } else { upload };
            command.args([version, "--header", length, "--header", "Expect:", "--output"]);
            command.arg(folders.path("echo")).args(["--write-out", "%{http_version} %{http_code}", "-T"]);
            let (code, stdout, stderr) = run(command.arg(folders.path("upload")));
            assert_eq!((code, stderr.as_str()), (0, ""), "{version} {upload}");
            assert_eq!(String::from_utf8(stdout).unwrap(), format!("{number} 200"));
            assert!(std::fs::read(folders.path("echo")).unwrap() == content, "{version} {upload}");
            let event = front.event();
            assert_eq!((&event["protocol"], &event["bytes"]), (&name.into(), &3_000_000.into()), "{event}");
        }
    }
    // The same port over UDP.
    let (code, ..) = run(&mut front.get(&folders, "/x"));
    assert_eq!((code, &front.event()["protocol"]), (0, &"h3".into()));
    let mut plain = Command::new("curl");
    plain.args(["-s", "-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"]);
    let (_, stdout, _) = run(plain.arg(format!("http://{}/x?y", front.start["redirect"].as_str().unwrap())));
    assert_eq!(String::from_utf8(stdout).unwrap(), format!("308 https://127.0.0.1:{}/x?y", front.port()));
    assert!(front.stop().success());
    assert_eq!(front.event()["event"], "stopped");
}

/// Clients from before TLS 1.3, unless they are not wanted; never with old ciphers.
#[test]
fn tls_1_2_is_spoken_with_modern_ciphers_only() {
    let folders = Folders::new();
    let (application, _release) = application();
    let mut front = start(&folders, application);
    let fetch = |front: &Edge, more: &[&str]| {
        let mut command = front.curl(&folders, "/x")?;
        Some(run(command.args(["--tls-max", "1.2", "--verbose"]).args(more)))
    };
    for (version, protocol) in [("--http1.1", "h1"), ("--http2", "h2")] {
        let Some((code, _, stderr)) = fetch(&front, &[version]) else { return };
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("TLSv1.2 / ECDHE-ECDSA-"), "{stderr}");
        assert_eq!(front.event()["protocol"], protocol);
    }
    let (code, _, stderr) = fetch(&front, &["--ciphers", "ECDHE-ECDSA-AES128-SHA256"]).unwrap();
    assert_eq!(code, 35, "a cipher without authenticated encryption: {stderr}");
    let url = format!("http://{application}");
    let strict = Edge::to(&folders, &url, &["--redirect", "127.0.0.1:0", "--tls-min", "1.3"]);
    assert_eq!(fetch(&strict, &[]).unwrap().0, 35);
    assert_eq!(run(&mut strict.curl(&folders, "/x").unwrap()).0, 0);
    assert_eq!(run(&mut strict.get(&folders, "/x")).0, 0);
}

/// Fetches a page by this version of HTTP and checks that it comes compressed and decodes to `content`.
fn fetch_compressed(front: &Edge, folders: &Folders, version: &str, content: &[u8]) {
    let mut command = front.curl(folders, "/page.html").unwrap();
    command.args([version, "--compressed", "--dump-header"]).arg(folders.path("head"));
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!((code, stderr.as_str()), (0, ""), "{version}");
    assert!(stdout == content, "{version}");
    let head = std::fs::read_to_string(folders.path("head")).unwrap().to_lowercase();
    let coding =
        ["zstd", "br", "gzip"].iter().find(|coding| head.contains(&format!("content-encoding: {coding}")));
    assert!(coding.is_some() && !head.contains("content-length"), "{version}: {head}");
}

#[test]
fn responses_are_compressed_for_clients_that_accept_it() {
    let folders = Folders::new();
    certificate(&folders);
    let lines: Vec<_> = (0..9000).map(|n| format!("<p>Line {n} of {}.</p>", n * n)).collect();
    let page = lines.join("\n");
    std::fs::write(folders.path("www/page.html"), &page).unwrap();
    let www = folders.path("www").display().to_string();
    let usual = ["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem"];
    let mut front =
        Edge::start(&folders, &[&usual, &["--files", &www, "--redirect", "127.0.0.1:0"][..]].concat());
    if front.curl(&folders, "/").is_some() {
        for version in ["--http1.1", "--http2"] {
            fetch_compressed(&front, &folders, version, page.as_bytes());
        }
    }
    let (code, stdout, stderr) = run(front.get(&folders, "/page.html").args(["-o", "-"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout == page.as_bytes(), "not asked for");
    assert!(front.stop().success());
}

#[test]
fn requests_over_tcp_finish_when_it_stops() {
    let folders = Folders::new();
    let (application, release) = application();
    let mut front = start(&folders, application);
    let mut clients = Vec::new();
    for version in ["--http1.1", "--http2"] {
        let Some(mut command) = front.curl(&folders, "/slow") else { break };
        let mut client = command.args([version, "--no-buffer"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut half = [0; 3];
        client.stdout.as_mut().unwrap().read_exact(&mut half).unwrap();
        assert_eq!(&half, b"one");
        clients.push(client);
    }
    front.signal("TERM");
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", front.port())).is_ok() {
        assert!(began.elapsed() < PATIENCE, "it still listens");
        std::thread::sleep(Duration::from_millis(20));
    }
    for mut client in clients {
        release.send(()).unwrap();
        release.send(()).unwrap();
        let mut rest = String::new();
        client.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), wait(&mut client).code()), ("two", Some(0)));
        assert_eq!(front.event()["complete"], true);
    }
    assert!(wait(&mut front.child).success());
    let stopped = front.event();
    assert_eq!((&stopped["event"], &stopped["requests_cut_off"]), (&"stopped".into(), &0.into()));
}
