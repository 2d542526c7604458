//! `posthaste edge` as a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use super::{Folders, posthaste, send_signal, wait};

/// Writes a certificate for localhost and its key.
pub(crate) fn certificate(folders: &Folders) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folders.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folders.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

/// A client that trusts the certificate, keeps address tokens, and sends what it may by 0-RTT.
pub(crate) fn client(folders: &Folders) -> posthaste_http::Client {
    posthaste_http::Client::new(posthaste_http::ClientOptions::new(client_config(folders)))
}

/// The transport of such a client.
pub(crate) fn client_config(folders: &Folders) -> posthaste_endpoint::ClientConfig {
    use posthaste_endpoint::{ClientConfig, TokenCache, default_transport, rustls, tls};
    use rustls::pki_types::pem::PemObject;

    let certificate = rustls::pki_types::CertificateDer::from_pem_file(folders.path("cert.pem")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let tls = tls::client_config_with_roots(roots, &[posthaste_http::ALPN]).unwrap();
    let quic = ClientConfig::new(tls::client_with_early_data(&tls), default_transport());
    quic.with_tokens(std::sync::Arc::new(TokenCache::new()) as _)
}

/// An edge that runs, with `--json`. Ended when it is dropped.
pub(crate) struct Edge {
    pub(crate) child: Child,
    /// What it has said when it began.
    pub(crate) start: serde_json::Value,
    /// Until [`Edge::take_events`].
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl Edge {
    /// Begins in the folder of `cert.pem` and `key.pem`.
    pub(crate) fn start(folders: &Folders, args: &[&str]) -> Self {
        Self::start_by(posthaste(), folders, args)
    }

    /// By a command that ends where the arguments of `posthaste` begin.
    pub(crate) fn start_by(mut command: Command, folders: &Folders, args: &[&str]) -> Self {
        command.args(["edge", "--json"]).args(args).current_dir(folders.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut reason = String::new();
            let _ = std::io::Read::read_to_string(&mut stderr, &mut reason);
            panic!("it does not start: {reason}");
        }
        let start: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(start["event"], "listening");
        Self { child, start, stdout: Some(stdout), stderr }
    }

    /// In front of the application at this URL, with the certificate of [`certificate`].
    pub(crate) fn to(folders: &Folders, url: &str, more: &[&str]) -> Self {
        let usual = ["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--to", url];
        Self::start(folders, &[&usual, more].concat())
    }

    pub(crate) fn port(&self) -> u16 {
        let address = self.start["address"].as_str().unwrap();
        address.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.port())
    }

    /// The next line of stdout.
    pub(crate) fn event(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// The next line of stderr.
    pub(crate) fn note(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    /// All that comes on stdout, for another thread to read.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = serde_json::Value> + Send + use<> {
        self.stdout
            .take()
            .unwrap()
            .lines()
            .map_while(Result::ok)
            .map(|line| serde_json::from_str(&line).unwrap())
    }

    pub(crate) fn signal(&self, name: &str) {
        send_signal(self.child.id(), name);
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        wait(&mut self.child)
    }

    /// A `get` of this path that trusts the certificate.
    pub(crate) fn get(&self, folders: &Folders, path: &str) -> Command {
        let mut command = posthaste();
        command.args(["get", "--ca"]).arg(folders.path("cert.pem")).arg(self.url(path));
        command
    }

    /// curl for this path, if it is installed and knows HTTP/2.
    pub(crate) fn curl(&self, folders: &Folders, path: &str) -> Option<Command> {
        let version = Command::new("curl").arg("--version").output().ok()?;
        if !String::from_utf8_lossy(&version.stdout).contains("HTTP2") {
            eprintln!("skipped: there is no curl with HTTP/2");
            return None;
        }
        let mut command = Command::new("curl");
        command.args(["-4", "--silent", "--show-error", "--max-time", "60", "--cacert"]);
        command.arg(folders.path("cert.pem")).arg(self.url(path));
        Some(command)
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
