//! 0-RTT together with a history: one client that comes back to `posthaste serve` over real sockets and a path of 60 ms,
//! with the history from the disk or from its own token, to the same server, after its restart and after its crash.
//! The proof is in the server's trace of that very connection: it has read data from 0-RTT packets, and it has jumped.
#![cfg(unix)]

mod common;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Folders, PATIENCE, Server, free_port, sample};
use http::Uri;
use posthaste_emulator::{RelayConfig, UdpRelay};
use posthaste_endpoint::{ClientConfig, EarlyData, TokenCache, tls};
use posthaste_http::{ALPN, Client, ClientOptions};
use posthaste_path::PathSpec;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Enough for the window to outgrow four initial ones, below which nothing is saved, also where a busy machine ends slow
/// start early.
const SIZE: usize = 3_000_000;

/// A client, the path, and where the server runs again and again.
struct Stage {
    folders: Folders,
    runtime: tokio::runtime::Runtime,
    listen: String,
    relay: UdpRelay,
    client: Option<Client>,
    history: &'static str,
    runs: usize,
}

/// What one download has shown.
#[derive(Debug, PartialEq, Eq)]
struct Visit {
    is_resumed: bool,
    early_data: Option<EarlyData>,
}

const ANEW: Visit = Visit { is_resumed: false, early_data: Some(EarlyData::None) };
const EARLY: Visit = Visit { is_resumed: true, early_data: Some(EarlyData::Accepted) };

impl Stage {
    fn new(history: &'static str) -> Self {
        let folders = Folders::new();
        folders.publish("file", &sample(SIZE));
        let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let path: PathSpec = serde_json::from_str(r#"{ "rtt": "60ms", "rate": "100mbit" }"#).unwrap();
        let config = RelayConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            upstream: listen,
            down: path.down(),
            up: path.up(),
            seed: 1,
            max_clients: 8,
        };
        let relay = runtime.block_on(UdpRelay::start(config)).unwrap();
        Self { folders, runtime, listen: listen.to_string(), relay, client: None, history, runs: 0 }
    }

    /// The server's next run, with the folder of its traces.
    fn serve(&mut self) -> (Server, PathBuf) {
        self.runs += 1;
        let traces = self.folders.path(&format!("traces-{}", self.runs));
        let qlog = traces.display().to_string();
        let more = ["--profile", "history", "--history", self.history, "--qlog", &qlog];
        let server = Server::start_at(&self.folders, &self.listen, &more);
        let options = || client_options(&server.text("certificate"));
        self.client.get_or_insert_with(|| Client::new(options()));
        (server, traces)
    }

    /// Fetches the file over a new connection, and compares it.
    fn visit(&self) -> Visit {
        let client = self.client.as_ref().unwrap();
        let uri: Uri = format!("https://{}/file", self.relay.local_addr()).parse().unwrap();
        self.runtime.block_on(async {
            client.hang_up();
            // The server hears of it after half a round trip.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let mut response = client.get(&uri).await.unwrap();
            assert_eq!(response.status().as_u16(), 200);
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.unwrap() {
                body.extend_from_slice(&chunk);
            }
            assert!(body == sample(SIZE), "another file");
            let report = client.connections().pop().unwrap();
            Visit { is_resumed: report.is_resumed, early_data: report.early_data }
        })
    }

    fn history_file(&self) -> PathBuf {
        self.folders.path("state").join("history.redb")
    }

    /// Paths on the server's disk.
    fn known(&self) -> usize {
        let mut show = common::posthaste();
        show.args(["history", "show", "--json", "--state"]).arg(self.folders.path("state"));
        let (code, stdout, stderr) = common::run(&mut show);
        assert_eq!((code, stderr.as_str()), (0, ""));
        let shown: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
        shown["paths"].as_array().unwrap().len()
    }
}

/// One client for all visits: its sessions and tokens outlive the server's runs.
fn client_options(certificate: &str) -> ClientOptions {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(certificate).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let tls = tls::client_config_with_roots(roots, &[ALPN]).unwrap();
    let tokens = Arc::new(TokenCache::new());
    ClientOptions::new(
        ClientConfig::new(tls::client_with_early_data(&tls), posthaste_endpoint::default_transport())
            .with_tokens(tokens as _),
    )
}

/// Of each connection in a finished run's traces: whether data in 0-RTT packets were read, and whether it jumped.
fn connections(traces: &PathBuf) -> Vec<(bool, bool)> {
    let files = std::fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<(bool, bool)> = files
        .map(|file| {
            let trace = std::fs::read_to_string(file).unwrap();
            let early = ["quic:packet_received", r#""packet_type":"0RTT""#, r#""frame_type":"stream""#];
            let is_early = trace.lines().any(|line| early.iter().all(|text| line.contains(text)));
            (is_early, trace.contains(r#""unvalidated""#))
        })
        .collect();
    all.sort_unstable();
    all
}

/// Ends the server so that its traces are whole and its sessions are kept.
fn stop(mut server: Server) {
    server.signal("INT");
    assert!(server.wait().success());
}

/// Comes back to the same run, to the next, and to one after a crash.
fn comes_back(history: &'static str) -> Stage {
    let mut stage = Stage::new(history);
    let (server, traces) = stage.serve();
    assert_eq!([stage.visit(), stage.visit()], [ANEW, EARLY]);
    stop(server);
    assert_eq!(connections(&traces), [(false, false), (true, true)]);

    let (server, traces) = stage.serve();
    assert_eq!(stage.visit(), EARLY, "the next run has the sessions");
    stop(server);
    assert_eq!(connections(&traces), [(true, true)], "and the history, or the secret to read it with");

    // A crash loses the sessions, which may never serve twice, but not what is known of paths.
    let (server, _) = stage.serve();
    server.signal("KILL");
    drop(server);
    let (server, traces) = stage.serve();
    assert_eq!(stage.visit(), Visit { is_resumed: false, early_data: Some(EarlyData::Rejected) });
    stop(server);
    assert_eq!(connections(&traces), [(false, true)]);
    stage
}

#[test]
fn early_data_and_the_history_on_the_disk_go_together_also_after_a_restart_and_a_crash() {
    assert_eq!(comes_back("store").known(), 1);
}

#[test]
fn early_data_and_the_history_in_the_clients_token_go_together_also_after_a_restart_and_a_crash() {
    assert!(!comes_back("token").history_file().exists(), "there is no store");
}

#[test]
fn without_a_history_early_data_are_accepted_and_nothing_jumps() {
    let mut stage = Stage::new("none");
    let (server, traces) = stage.serve();
    let began = Instant::now();
    assert_eq!([stage.visit(), stage.visit()], [ANEW, EARLY]);
    assert!(began.elapsed() < PATIENCE);
    stop(server);
    assert_eq!(connections(&traces), [(false, false), (true, false)], "the proof can fail");
}
