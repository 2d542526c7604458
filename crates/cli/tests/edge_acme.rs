//! `posthaste edge --acme` with Pebble, the ACME server of Let's Encrypt for tests, and its DNS server.
//!
//! `cargo test -p posthaste --test edge_acme -- --ignored`; needs `pebble` and `pebble-challtestsrv`, in the path or where
//! `POSTHASTE_PEBBLE` says. Pebble refuses every
//! twentieth nonce.
#![cfg(target_os = "linux")]

mod common;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::edge::{Edge, certificate};
use common::{Folders, PATIENCE, free_port, posthaste, read, run};

/// A program of Pebble's.
fn program(name: &str) -> PathBuf {
    std::env::var_os("POSTHASTE_PEBBLE")
        .map_or_else(|| name.into(), |folder| PathBuf::from(folder).join(name))
}

/// An authority that runs. Ended when it is dropped.
struct Pebble {
    children: Vec<Child>,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Ports that are free now.
struct Ports {
    authority: u16,
    management: u16,
    dns: u16,
    /// Where the authority looks for TLS-ALPN-01 and HTTP-01.
    tls: u16,
    plain: u16,
}

impl Ports {
    fn new() -> Self {
        let [authority, management, dns, tls, plain] = std::array::from_fn(|_| free_port());
        Self { authority, management, dns, tls, plain }
    }
}

/// What the tests share: folders with a site, and free ports.
struct Ground {
    folders: Folders,
    ports: Ports,
}

impl Ground {
    fn new() -> Self {
        let folders = Folders::new();
        certificate(&folders);
        folders.publish("index.html", b"certified");
        Self { folders, ports: Ports::new() }
    }

    /// Starts the authority, which finds TLS-ALPN-01 and HTTP-01 at these ports.
    fn pebble(&self, tls: u16, plain: u16) -> Pebble {
        let Ports { authority, management, dns, .. } = self.ports;
        let config = serde_json::json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{authority}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": self.folders.path("cert.pem"),
            "privateKey": self.folders.path("key.pem"),
            "httpPort": plain,
            "tlsPort": tls,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        std::fs::write(self.folders.path("pebble.json"), config.to_string()).unwrap();
        let address = format!("127.0.0.1:{dns}");
        let mut names = Command::new(program("pebble-challtestsrv"));
        names.args(["-dnsserver", &address, "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        names.args(["-defaultIPv6", "", "-management", "127.0.0.1:0"]);
        let mut pebble = Command::new(program("pebble"));
        pebble.arg("-config").arg(self.folders.path("pebble.json")).args(["-dnsserver", &address]);
        // Otherwise it waits up to 15 s before it looks.
        pebble.env("PEBBLE_VA_NOSLEEP", "1");
        let log = std::fs::File::create(self.folders.path("pebble.log")).unwrap();
        pebble.stdout(log);
        names.stdout(Stdio::null());
        let children = [names, pebble]
            .map(|mut command| command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let pebble = Pebble { children: children.into() };
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", authority)).is_err() {
            assert!(Instant::now() < deadline, "the authority does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        pebble
    }

    fn edge(&self, more: &[&str]) -> Edge {
        let Ports { authority, tls, plain, .. } = self.ports;
        let (listen, redirect) = (format!("127.0.0.1:{tls}"), format!("127.0.0.1:{plain}"));
        let directory = format!("https://localhost:{authority}/dir");
        let usual =
            ["--listen", &listen, "--redirect", &redirect, "--domain", "site.example", "--files", "www"];
        let acme = ["--acme", "state", "--acme-directory", &directory, "--acme-ca", "cert.pem"];
        Edge::start(&self.folders, &[&usual[..], &acme, more].concat())
    }

    /// The certificate that is kept.
    fn kept(&self) -> PathBuf {
        self.folders.path(&format!("state/localhost_{}_dir/site.example.pem", self.ports.authority))
    }

    /// Waits for a line of stderr.
    fn until(edge: &mut Edge, expected: &str) -> String {
        let mut said = String::new();
        loop {
            let line = edge.note();
            assert!(!line.is_empty(), "it has ended: {said}");
            said.push_str(&line);
            if line.contains(expected) {
                return said;
            }
        }
    }

    /// The site is served with the certificate that is kept, over all versions of HTTP.
    fn check_served(&self) {
        let root = format!("https://localhost:{}/roots/0", self.ports.management);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--cacert"])
            .arg(self.folders.path("cert.pem"));
        let (code, root, stderr) = run(curl.arg(root));
        assert_eq!(code, 0, "{stderr}");
        std::fs::write(self.folders.path("root.pem"), root).unwrap();
        let url = format!("https://site.example:{}/index.html", self.ports.tls);
        let address = format!("site.example:{}:127.0.0.1", self.ports.tls);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--resolve", &address, "--cacert"]);
        let (code, body, stderr) = run(curl.arg(self.folders.path("root.pem")).arg(url));
        assert_eq!((code, body.as_slice()), (0, &b"certified"[..]), "{stderr}");
    }
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv"]
fn a_certificate_comes_by_itself_is_kept_and_not_asked_for_again() {
    let ground = Ground::new();
    // HTTP-01 would lead nowhere.
    let pebble = ground.pebble(ground.ports.tls, 1);
    let mut edge = ground.edge(&[]);
    let said = Ground::until(&mut edge, "a new certificate is in use: site.example");
    assert!(!said.contains("no certificate"), "{said}");
    ground.check_served();
    edge.stop();
    let kept = read(&ground.kept());
    assert!(String::from_utf8(kept.clone()).unwrap().matches("BEGIN CERTIFICATE").count() >= 2, "a chain");
    // A second start has it at once, also while the authority is away.
    drop(pebble);
    let mut edge = ground.edge(&[]);
    assert!(edge.start["certificates"][0]["names"].as_array().unwrap().contains(&"site.example".into()));
    std::thread::sleep(Duration::from_millis(500));
    edge.stop();
    assert_eq!(read(&ground.kept()), kept);
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv"]
fn a_certificate_is_renewed_when_the_authority_says_so() {
    let ground = Ground::new();
    let _pebble = ground.pebble(ground.ports.tls, 1);
    let mut edge = ground.edge(&[]);
    Ground::until(&mut edge, "a new certificate is in use: site.example");
    edge.stop();
    let before = read(&ground.kept());
    // As if it were to be revoked: the window has begun and is over (RFC 9773 section 4.2).
    let window = r#"{"suggestedWindow":{"start":"2026-01-02T04:00:00Z","end":"2026-01-03T04:00:00Z"}}"#;
    let first = String::from_utf8(before.clone()).unwrap();
    let first = &first[..first.find("-----END CERTIFICATE-----").unwrap() + 25];
    let told = serde_json::json!({ "Certificate": first, "ARIResponse": window }).to_string();
    let url = format!("https://localhost:{}/set-renewal-info/", ground.ports.management);
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "60", "--data", &told, "--cacert"]);
    let (code, _, stderr) = run(curl.arg(ground.folders.path("cert.pem")).arg(url));
    assert_eq!(code, 0, "{stderr}");
    let mut edge = ground.edge(&[]);
    Ground::until(&mut edge, "a new certificate is in use: site.example");
    ground.check_served();
    edge.stop();
    assert_ne!(read(&ground.kept()), before);
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv"]
fn where_tls_alpn_does_not_lead_here_http_does() {
    let ground = Ground::new();
    let _pebble = ground.pebble(1, ground.ports.plain);
    let mut edge = ground.edge(&[]);
    // The second try is a minute later.
    let said = Ground::until(&mut edge, "no certificate for site.example");
    assert!(said.contains("the next try is in 60 s"), "{said}");
    Ground::until(&mut edge, "a new certificate is in use: site.example");
    ground.check_served();
    edge.stop();
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv"]
fn an_authority_that_comes_later_is_enough_and_what_is_damaged_is_replaced() {
    let ground = Ground::new();
    let mut edge = ground.edge(&[]);
    let said = Ground::until(&mut edge, "no certificate for site.example");
    assert!(said.contains("the next try is in 5 s"), "{said}");
    let pebble = ground.pebble(ground.ports.tls, ground.ports.plain);
    Ground::until(&mut edge, "a new certificate is in use: site.example");
    ground.check_served();
    edge.stop();
    let before = read(&ground.kept());
    std::fs::write(ground.kept(), &before[..before.len() / 3]).unwrap();
    let mut edge = ground.edge(&[]);
    Ground::until(&mut edge, "a new certificate is in use: site.example");
    ground.check_served();
    edge.stop();
    drop(pebble);
    assert_ne!(read(&ground.kept()), before);
}

#[test]
#[ignore = "needs pebble and pebble-challtestsrv"]
fn sites_that_begin_together_have_certificates_of_their_own_and_one_account() {
    let ground = Ground::new();
    let Ports { authority, tls, .. } = ground.ports;
    let site = |name: &str| format!("[site.\"{name}\"]\nnames = [\"www.{name}\"]\nfiles = \"www\"\n");
    let config = format!(
        "[edge]\nlisten = \"127.0.0.1:{tls}\"\n[edge.acme]\nstate = \"state\"\nca = \"cert.pem\"\n\
         directory = \"https://localhost:{authority}/dir\"\n{}{}",
        site("one.example"),
        site("two.example")
    );
    std::fs::write(ground.folders.path("edge.toml"), config).unwrap();
    let _pebble = ground.pebble(tls, 1);
    let mut edge = Edge::start(&ground.folders, &["--config", "edge.toml"]);
    let mut said = Ground::until(&mut edge, "a new certificate is in use: ");
    said.push_str(&Ground::until(&mut edge, "a new certificate is in use: "));
    for name in ["one.example", "two.example"] {
        assert!(said.contains(&format!("{name}, www.{name}")), "{said}");
    }
    edge.stop();
    let kept = |name: &str| ground.folders.path(&format!("state/localhost_{authority}_dir/{name}"));
    let account = read(&kept("account.json"));
    let log = String::from_utf8(read(&ground.folders.path("pebble.log"))).unwrap();
    assert_eq!(log.matches(" accounts in memory").count(), 1, "one account: {log}");
    assert!(read(&kept("one.example.pem")) != read(&kept("two.example.pem")));
    // The account is what the next run has, too.
    let mut edge = Edge::start(&ground.folders, &["--config", "edge.toml"]);
    assert_eq!(edge.start["certificates"].as_array().unwrap().len(), 2);
    edge.stop();
    assert_eq!(read(&kept("account.json")), account);
}

#[test]
fn a_domain_without_files_is_certified_by_lets_encrypt() {
    let mut command = posthaste();
    command.args(["edge", "--to", "http://127.0.0.1:3000", "--domain", "example.org", "--print-config"]);
    let (code, stdout, stderr) = run(command.env("STATE_DIRECTORY", "/somewhere"));
    let text = String::from_utf8(stdout).unwrap();
    assert_eq!(code, 0, "{stderr}");
    let acme = "[edge.acme]\nstate = \"/somewhere\"\ndirectory = \"https://acme-v02.api.letsencrypt.org/directory\"\n";
    assert!(text.contains(acme) && !text.contains("certificate"), "{text}");
}

#[test]
fn what_cannot_be_certified_is_refused_before_anything_starts() {
    let folders = Folders::new();
    let refused = |arguments: &[&str], expected: &str| {
        let mut command = posthaste();
        command.args(["edge", "--listen", "127.0.0.1:0"]).args(arguments).current_dir(folders.path(""));
        let (code, _, stderr) = run(&mut command);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    };
    let files = ["--files", "www", "--acme", "state"];
    refused(&files, "--domain");
    let with = |more: &[&'static str]| [&files[..], more].concat();
    refused(&with(&["--domain", "*.example.org"]), "it certifies single host names");
    refused(&with(&["--domain", "a.test", "--acme-directory", "http://a.test/"]), "is no https URL");
    refused(&["--beside", "https://127.0.0.1", "--domain", "a.test", "--acme", "x"], "--acme");
    // Without files, --domain is certified; not by accident.
    refused(&["--files", "www"], "--cert");
    refused(&["--files", "www", "--domain", "localhost"], "no public authority certifies localhost");
    refused(&["--beside", "https://127.0.0.1", "--domain", "a.test"], "--cert");
    assert!(!folders.path("state").exists());
}
