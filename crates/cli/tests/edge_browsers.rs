//! Browsers visit `posthaste edge --to`: first over HTTP/2, then, told by `Alt-Svc`, over HTTP/3. What counts is the word of
//! their own network stacks (`PerformanceResourceTiming.nextHopProtocol`), which the page reports in a last request.
//!
//! `cargo test -p posthaste --test edge_browsers -- --ignored`; needs chromium, firefox-esr and certutil (libnss3-tools).
#![cfg(unix)]

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use common::edge::Edge;
use common::{Folders, application};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Time for a browser to start and to change over, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Asks again and again until HTTP/3 has come, and reports every protocol on the way.
const PAGE: &str = "<!doctype html><title>x</title><script>
(async () => {
  const seen = [performance.getEntriesByType('navigation')[0].nextHopProtocol];
  for (let i = 0; i < 150 && seen.at(-1) !== 'h3'; i++) {
    // Without cookies Chromium opens another connection; on one that is open it would stay.
    await (await fetch('/again?' + i, { credentials: 'omit' })).text();
    await new Promise(done => setTimeout(done, 400));
    const entries = performance.getEntriesByType('resource').filter(e => e.name.endsWith('/again?' + i));
    if (entries.length) seen.push(entries[0].nextHopProtocol);
  }
  await fetch('/report?' + seen.filter((p, i) => p !== seen[i - 1]).join(','));
})();
</script>";

/// A certificate for localhost of an authority made for this test.
fn certificates(folders: &Folders) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
    let key = KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    std::fs::write(folders.path("authority.pem"), certificate.pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let own = KeyPair::generate().unwrap();
    let site =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&own, &issuer).unwrap();
    std::fs::write(folders.path("cert.pem"), site.pem()).unwrap();
    std::fs::write(folders.path("key.pem"), own.serialize_pem()).unwrap();
}

/// Has a browser that keeps its authorities here trust the test's.
fn trust(folders: &Folders, database: &Path) {
    std::fs::create_dir_all(database).unwrap();
    let database = format!("sql:{}", database.display());
    let made = Command::new("certutil").args(["-N", "--empty-password", "-d", &database]).status().unwrap();
    assert!(made.success());
    let mut add = Command::new("certutil");
    add.args(["-A", "-n", "test", "-t", "C,,", "-d", &database, "-i"]);
    assert!(add.arg(folders.path("authority.pem")).status().unwrap().success());
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the page reports in this browser; `None` if a program is missing.
fn visit(browser: &str, prepare: impl FnOnce(&Folders, &mut Command)) -> Option<String> {
    for program in [browser, "certutil"] {
        if Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_err()
        {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
    }
    let folders = Folders::new();
    certificates(&folders);
    let mut edge = Edge::to(&folders, &format!("http://{}", application::of_one_page(PAGE)), &[]);
    let mut command = Command::new(browser);
    command.env("HOME", folders.path("home")).stdout(Stdio::null()).stderr(Stdio::null());
    std::fs::create_dir(folders.path("home")).unwrap();
    prepare(&folders, &mut command);
    let browser = Killed(command.arg(edge.url("/")).spawn().unwrap());
    let (tell, told) = mpsc::channel();
    let events = edge.take_events();
    std::thread::spawn(move || {
        for event in events {
            let path = event["path"].as_str().unwrap_or_default();
            let report = path.strip_prefix("/report?").map(|seen| format!("{seen} by {}", event["protocol"]));
            if report.is_some_and(|report| tell.send(report).is_err()) {
                return;
            }
        }
    });
    let began = Instant::now();
    let report = told.recv_timeout(PATIENCE);
    eprintln!("{report:?} after {:.1} s", began.elapsed().as_secs_f64());
    drop(browser);
    edge.stop();
    Some(report.expect("the browser does not report"))
}

#[test]
#[ignore = "needs chromium"]
fn chromium_comes_over_http2_and_returns_over_http3() {
    let report = visit("chromium", |folders, command| {
        trust(folders, &folders.path("home/.pki/nssdb"));
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-quic"]);
        // HTTP/3 with certificates of an authority that Chromium does not ship is for hosts named here; the port is none
        // that is visited, so nothing is forced.
        command.arg("--origin-to-force-quic-on=localhost:1");
        // Not ::1, where nothing listens.
        command.arg("--host-resolver-rules=MAP localhost 127.0.0.1");
        command.arg(format!("--user-data-dir={}", folders.path("profile").display()));
    });
    assert!(report.is_none_or(|report| report == "h2,h3 by \"h3\""));
}

#[test]
#[ignore = "needs firefox-esr"]
fn firefox_comes_over_http2_and_returns_over_http3() {
    let report = visit("firefox-esr", |folders, command| {
        let profile = folders.path("profile");
        trust(folders, &profile);
        // Firefox gives HTTP/3 up where authorities were added, which are often those of filters.
        let settings = "user_pref(\"network.http.http3.disable_when_third_party_roots_found\", false);\n\
                        user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\n\
                        user_pref(\"browser.shell.checkDefaultBrowser\", false);\n";
        std::fs::write(profile.join("user.js"), settings).unwrap();
        command.args(["--headless", "--no-remote", "--profile"]).arg(profile);
    });
    assert!(report.is_none_or(|report| report == "h2,h3 by \"h3\""));
}
