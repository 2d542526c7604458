//! `posthaste get --upload` as a process, against a server of the library.
#![cfg(unix)]

mod common;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::edge::certificate;
use common::{Folders, PATIENCE, posthaste, read, run, sample, send_signal, wait};
use posthaste_emulator::{RelayConfig, UdpRelay};
use posthaste_endpoint::{Endpoint, ServerConfig, default_transport, rustls, tls};
use posthaste_http::service::{Body, Request, Response, service_fn};
use posthaste_path::PathSpec;
use rustls::pki_types::pem::PemObject;

/// A server that takes uploads in several ways, for as long as it lives.
struct Taker {
    runtime: tokio::runtime::Runtime,
    port: u16,
}

impl Taker {
    fn start(folders: &Folders) -> Self {
        certificate(folders);
        let certificate = rustls::pki_types::CertificateDer::from_pem_file(folders.path("cert.pem")).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::from_pem_file(folders.path("key.pem")).unwrap();
        let tls = tls::server_config(vec![certificate], key, &[posthaste_http::ALPN]).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = ServerConfig::new(tls, default_transport());
        let endpoint = runtime.block_on(async { Endpoint::server("127.0.0.1:0".parse().unwrap(), config) });
        let endpoint = endpoint.unwrap();
        let port = endpoint.local_addr().unwrap().port();
        let folder = folders.path("in");
        let service = service_fn(move |request| take(request, folder.clone()));
        runtime.spawn(async move { posthaste_http::serve(endpoint, service).await });
        Self { runtime, port }
    }

    fn get(&self, folders: &Folders, path: &str) -> Command {
        let mut command = posthaste();
        command.args(["get", "--ca"]).arg(folders.path("cert.pem"));
        command.arg(format!("https://localhost:{}{path}", self.port)).current_dir(folders.path(""));
        command
    }

    fn upload(&self, folders: &Folders, path: &str, more: &[&str]) -> (i32, String, String) {
        let (code, stdout, stderr) = run(self.get(folders, path).args(["--upload", "file"]).args(more));
        (code, String::from_utf8(stdout).unwrap(), stderr)
    }
}

/// A file that appears if an upload does not come to its end: its body fails, or the server gives the request up, whichever
/// comes first when a client has gone.
struct Unfinished(std::path::PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        std::fs::write(&self.0, "").unwrap();
    }
}

/// What the server does with a request, by its path.
async fn take(request: Request, folder: std::path::PathBuf) -> Response {
    let (head, body) = request.into_parts();
    let answer =
        |status: u16, text: String| http::Response::builder().status(status).body(Body::from(text)).unwrap();
    match head.uri.path() {
        // Takes all of it, then answers; the second not before it may.
        path @ ("/store" | "/later") => {
            if path == "/later" {
                std::fs::write(folder.join("waiting"), b"").unwrap();
                while !folder.join("go").exists() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            let unfinished = Unfinished(folder.join("broken"));
            match Body::new(body).collect(100_000_000).await {
                Ok(content) => {
                    std::mem::forget(unfinished);
                    std::fs::write(folder.join("stored"), &content).unwrap();
                    let length =
                        head.headers.get("content-length").map_or("-", |value| value.to_str().unwrap());
                    answer(201, format!("{} {length} {}", head.method, content.len()))
                }
                Err(error) => answer(400, error.to_string()),
            }
        }
        // Answers first.
        "/first" => http::Response::new(Body::new(body)),
        "/refuse" => answer(413, "too much".to_owned()),
        "/early" => answer(200, "enough".to_owned()),
        "/moved" => http::Response::builder()
            .status(307)
            .header("location", "https://example.org/there")
            .body(Body::empty())
            .unwrap(),
        // Never takes anything.
        _ => {
            std::fs::write(folder.join("waiting"), b"").unwrap();
            tokio::time::sleep(PATIENCE).await;
            answer(500, String::new())
        }
    }
}

/// More than all windows and buffers between the file and a server that reads nothing.
const LARGE: usize = 30_000_000;

#[test]
fn a_file_reaches_the_server_whole_and_the_answer_the_user() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    for length in [3_000_000, 1, 0] {
        std::fs::write(folders.path("file"), sample(length)).unwrap();
        let expected = format!("PUT {length} {length}");
        assert_eq!(taker.upload(&folders, "/store", &[]), (0, expected, String::new()));
        assert_eq!(read(&folders.path("in").join("stored")), sample(length));
    }
    std::fs::write(folders.path("file"), sample(100_000)).unwrap();
    let (code, stdout, stderr) = taker.upload(&folders, "/store", &["--method", "post", "--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let transfer = &report["transfers"][0];
    assert_eq!((&transfer["uploaded_bytes"], &transfer["status"]), (&100_000.into(), &201.into()));
    assert!(transfer["bytes_per_second"].as_f64().unwrap() > 0.0 && transfer["ok"] == true);

    // stdin has no length that could be announced.
    let mut get = taker.get(&folders, "/store");
    get.args(["--upload", "-"]).stdin(std::fs::File::open(folders.path("file")).unwrap());
    let output = get.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "PUT - 100000");
    assert_eq!(read(&folders.path("in").join("stored")), sample(100_000));
}

#[test]
fn an_answer_before_the_end_of_the_upload_is_read_while_the_rest_is_sent() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    std::fs::write(folders.path("file"), sample(LARGE)).unwrap();
    let (code, _, stderr) = taker.upload(&folders, "/first", &["-o", "echo"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(read(&folders.path("echo")) == sample(LARGE), "what came back is not what was sent");
}

#[test]
fn an_upload_that_the_server_does_not_take_fails_and_says_why() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    std::fs::write(folders.path("file"), sample(LARGE)).unwrap();
    for (path, expected) in [
        ("/refuse", "the server answers 413 Payload Too Large"),
        ("/early", "and takes no more"),
        ("/moved", "send it to https://example.org/there"),
    ] {
        let (code, _, stderr) = taker.upload(&folders, path, &["-o", "answer"]);
        assert!(code == 1 && stderr.contains(expected), "{path}: {code} {stderr}");
    }
    // What is sent whole before the answer is taken for sent, read or not.
    std::fs::write(folders.path("file"), b"short").unwrap();
    assert_eq!(taker.upload(&folders, "/early", &[]), (0, "enough".to_owned(), String::new()));
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_taken_for_whole_by_nobody() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    std::fs::write(folders.path("file"), sample(LARGE)).unwrap();
    let mut command = taker.get(&folders, "/later");
    command.args(["--upload", "file"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut get = command.spawn().unwrap();
    wait_for(&folders.path("in").join("waiting"));
    std::fs::File::options()
        .write(true)
        .open(folders.path("file"))
        .unwrap()
        .set_len(LARGE as u64 - 1)
        .unwrap();
    std::fs::write(folders.path("in").join("go"), b"").unwrap();
    let status = wait(&mut get);
    let stderr = std::io::read_to_string(get.stderr.take().unwrap()).unwrap();
    // The reason is the file, or what the server says of a body that has no end, whichever comes first.
    let says = |text| stderr.contains(text);
    assert!(!status.success() && (says("become shorter") || says("answers 400")), "{stderr}");
    wait_for(&folders.path("in").join("broken"));
    assert!(!folders.path("in").join("stored").exists());
}

/// Until the server has made this file.
fn wait_for(file: &std::path::Path) {
    let began = std::time::Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < PATIENCE, "{} does not come", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ctrl_c_ends_an_upload_and_the_server_sees_that_it_is_not_whole() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    // A pipe that stays open: the upload has no end yet.
    let mut command = taker.get(&folders, "/store");
    command.args(["--upload", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut get = command.spawn().unwrap();
    let mut stdin = get.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &sample(2_000_000)).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    send_signal(get.id(), "INT");
    let status = wait(&mut get);
    assert!(!status.success());
    let stderr = std::io::read_to_string(get.stderr.take().unwrap()).unwrap();
    assert!(stderr.contains("interrupted; the upload is not complete"), "{stderr}");
    // The server does not wait for the rest.
    wait_for(&folders.path("in").join("broken"));
    assert!(!folders.path("in").join("stored").exists());
}

#[test]
fn an_upload_that_cannot_be_is_refused_before_anybody_is_asked() {
    let folders = Folders::new();
    std::fs::write(folders.path("file"), b"content").unwrap();
    let refuse = |arguments: &[&str], expected: &str| {
        let mut get = posthaste();
        get.arg("get").args(arguments).current_dir(folders.path(""));
        let (code, _, stderr) = run(&mut get);
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {code} {stderr}");
    };
    let url = "https://127.0.0.1:1/";
    refuse(&[url, "--upload", "missing"], "cannot read missing");
    refuse(&[url, "--upload", "."], "it is a folder");
    refuse(&[url, "https://127.0.0.1:2/", "-O", "in", "--upload", "file"], "one file to one URL");
    refuse(&[url, "--upload", "-", "--repeat", "2"], "stdin can be sent once");
    refuse(&[url, "--upload", "file", "--method", "GET"], "PUT, POST or PATCH");
    refuse(&[url, "--method", "POST"], "--upload");
    refuse(&[url, "--upload", "file", "--connections", "2"], "cannot be used with");
    refuse(&[url, "--path-hint", "1000gbit"], "from 10kbit to 100Gbit");
}

/// What a client's trace says when it has jumped to what its history knows.
const JUMPED: &str = r#""unvalidated""#;

#[test]
fn what_an_upload_has_learnt_of_its_path_is_kept_for_the_next() {
    let folders = Folders::new();
    let taker = Taker::start(&folders);
    // A path on which a history is worth something: on loopback the first window is all that is ever in flight.
    let path: PathSpec = serde_json::from_str(r#"{ "rtt": "60ms", "rate": "100mbit" }"#).unwrap();
    let config = RelayConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        upstream: SocketAddr::from(([127, 0, 0, 1], taker.port)),
        down: path.down(),
        up: path.up(),
        seed: 1,
        max_clients: 8,
    };
    let relay = taker.runtime.block_on(UdpRelay::start(config)).unwrap();
    let through = Taker { port: relay.local_addr().port(), runtime: tokio::runtime::Runtime::new().unwrap() };
    std::fs::write(folders.path("file"), sample(3_000_000)).unwrap();
    let jumped = |profile: &str, state: &str, traces: &str| {
        let more = ["--profile", profile, "--state", state, "--qlog", traces];
        let (code, _, stderr) = through.upload(&folders, "/store", &more);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let mut files = std::fs::read_dir(folders.path(traces)).unwrap().map(|entry| entry.unwrap().path());
        files.any(|trace| String::from_utf8_lossy(&read(&trace)).contains(JUMPED))
    };
    assert!(!jumped("history", "client", "1"), "it knows nothing yet");
    let (code, stdout, stderr) = run(posthaste()
        .args(["history", "show", "--json", "--state", "client"])
        .current_dir(folders.path("")));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(String::from_utf8(stdout).unwrap().contains("window"), "the path to the server");
    assert!(jumped("history", "client", "2"), "the next process goes on from it");
    assert!(!jumped("cubic", "other", "3") && !folders.path("other").join("history.redb").exists());
}
