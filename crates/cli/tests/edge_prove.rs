//! `posthaste edge prove` with a real browser. Where there is none, or where the system permits no network namespaces, the
//! tests that need them say so and pass. Nothing here asks how fast it is.
#![cfg(target_os = "linux")]

mod common;

use std::process::{Command, Stdio};

use common::browser::{self, processes_with};
use common::edge::Edge;
use common::{Folders, application, posthaste, run, send_signal, wait};
use serde_json::Value;

const PAGE: &str = "<!doctype html><link rel=icon href=data:,><p>text";
const PATH: &str = "rtt = \"20ms\"\nrate = \"50mbit\"\n";

/// A folder with a path in it; `None`, and a remark on stderr, where there can be no runs.
fn ground() -> Option<Folders> {
    if !browser::can_load_pages() {
        return None;
    }
    let folders = Folders::new();
    std::fs::write(folders.path("path.toml"), PATH).unwrap();
    std::fs::create_dir(folders.path("tmp")).unwrap();
    Some(folders)
}

fn prove(folders: &Folders, url: &str, more: &[&str]) -> Command {
    let mut command = posthaste();
    command.args(["edge", "prove", url, "--path", "./path.toml", "--json"]).args(more);
    command.current_dir(folders.path("")).env("TMPDIR", folders.path("tmp"));
    command
}

/// The report, and the requests of each side's first visit.
fn report(command: &mut Command) -> (Value, Vec<Value>, Vec<Value>) {
    let (code, stdout, stderr) = run(command);
    let report: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{code}: {stderr}"));
    let side = |name: &str| {
        let runs = report["runs"].as_array().unwrap();
        let record = runs.iter().find(|run| run["contestant"] == name).unwrap();
        assert_eq!(record["failure"], Value::Null, "{record}");
        record["visits"][0]["objects"].as_array().unwrap().clone()
    };
    let (plain, edge) = (side("as it is"), side("posthaste edge"));
    // A busy machine makes runs void, and no test fails by that; but it has to be said.
    let is_valid =
        report["runs"].as_array().unwrap().iter().all(|run| run["faults"] == serde_json::json!([]));
    assert_eq!(code == 0, is_valid, "{code}: {stderr}");
    (report, plain, edge)
}

fn protocols(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["protocol"].as_str().unwrap()).collect()
}

#[test]
fn a_site_with_tls_comes_as_it_is_and_through_the_edge_and_other_hosts_stay_as_they_are() {
    let Some(folders) = ground() else { return };
    let names = ["localhost", "other.test"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(folders.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folders.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    folders.publish(
        "index.html",
        b"<!doctype html><link rel=icon href=data:,><script src=/own.js></script><script src=https://other.test/other.js></script><p>text",
    );
    folders.publish("own.js", b"1");
    folders.publish("other.js", b"2");
    let usual =
        ["--listen", "127.0.0.1:0", "--cert", "cert.pem", "--key", "key.pem", "--files", "www", "--domain"];
    let site = Edge::start(&folders, &[&usual[..], &["localhost"]].concat());
    let other = Edge::start(&folders, &[&usual[..], &["other.test"]].concat());
    let pin = format!("other.test=127.0.0.1:{}", other.port());
    let arguments =
        ["--ca", "cert.pem", "--resolve", &pin, "--runs", "1", "--cold-only", "--html", "proof.html"];
    let (report, plain, edge) = report(&mut prove(&folders, &site.url("/"), &arguments));
    assert_eq!(protocols(&plain), ["h2"; 3]);
    assert_eq!(protocols(&edge), ["h3", "h3", "h2"]);
    assert!(plain.iter().chain(&edge).all(|object| object["status"] == 200), "{plain:?} {edge:?}");
    assert_eq!(report["as_it_is"], "h2");
    assert_eq!(report["failed_requests"], serde_json::json!([]));
    let is_void = report["voided"].as_u64().unwrap() > 0 && report["rows"][0]["saved"].is_null();
    if !is_void {
        assert_eq!(report["other_hosts"], serde_json::json!({ "other.test": 1 }));
        // One run of each decides nothing, whatever it was.
        assert_eq!(report["rows"][0]["verdict"], "may-be-chance", "{}", report["rows"][0]);
        let html = std::fs::read_to_string(folders.path("proof.html")).unwrap();
        assert_eq!(html.matches("Requests of ").count(), 2, "a waterfall each");
        assert!(html.contains("may be chance") && html.contains("other.test (1)"), "{html}");
        for outside in ["src=", "@import", "url(http"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
    assert!(std::fs::read_dir(folders.path("tmp")).unwrap().next().is_none(), "files were left");
}

#[test]
fn an_application_without_tls_comes_by_http2_and_http3_of_the_same_edge() {
    let Some(folders) = ground() else { return };
    let url = format!("http://{}/page?a=1", application::of_one_page(PAGE));
    let arguments = ["--runs", "1", "--cold-only", "--no-html"];
    let (report, plain, edge) = report(&mut prove(&folders, &url, &arguments));
    assert_eq!((protocols(&plain), protocols(&edge)), (vec!["h2"], vec!["h3"]));
    assert_eq!(plain[0]["url"], url.replace("http://127.0.0.1", "https://localhost"));
    assert!(report["remarks"].to_string().contains("no TLS"), "{}", report["remarks"]);
}

#[test]
#[ignore = "takes half a minute; `edge_prove -- --ignored`"]
fn an_interrupt_ends_all_processes_and_leaves_nothing() {
    let Some(folders) = ground() else { return };
    let url = format!("http://127.0.0.1:{}/", application::of_one_page(PAGE).port());
    let mut command = prove(&folders, &url, &["--no-html"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let marker = folders.path("tmp").display().to_string();
    let is_browser = |words: &String| words.contains("--remote-debugging-pipe");
    let deadline = std::time::Instant::now() + common::PATIENCE;
    while !processes_with(&marker).iter().any(is_browser) {
        assert!(child.try_wait().unwrap().is_none() && std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    send_signal(child.id(), "INT");
    assert_eq!(wait(&mut child).code(), Some(130));
    assert_eq!(processes_with(&marker), Vec::<String>::new());
    assert!(std::fs::read_dir(folders.path("tmp")).unwrap().next().is_none(), "files were left");
}

#[test]
fn what_cannot_be_proved_is_refused_with_what_to_do() {
    let folders = Folders::new();
    let nobody = format!("http://127.0.0.1:{}/", common::free_port());
    let browser = ["--browser", "/bin/true", "--no-html"];
    for (url, more, code, expected) in [
        ("example.org", &browser[..], 2, ["is not the URL of a page", "http://127.0.0.1:3000/"]),
        ("ftp://a.test/", &browser, 2, ["must begin with http:// or https://", "http://127.0.0.1:3000/"]),
        ("https://192.0.2.1/", &browser, 2, ["no name to an address", "--resolve NAME=192.0.2.1"]),
        (&nobody, &browser, 1, ["does not answer", "--resolve 127.0.0.1=ADDRESS"]),
        (&nobody, &["--browser", "/none/such"], 1, ["is not installed", "apt-get install chromium"]),
        (&nobody, &["--browser", "/usr/bin/firefox"], 2, ["only Chromium", "leave it out"]),
        (&nobody, &["--path", "none"], 2, ["emulated path", "posthaste page"]),
    ] {
        let mut command = posthaste();
        command.args(["edge", "prove", url]).args(more).current_dir(folders.path(""));
        let (found, _, stderr) = run(&mut command);
        assert_eq!(found, code, "{url} {more:?}: {stderr}");
        assert!(expected.iter().all(|part| stderr.contains(part)), "{url} {more:?}: {stderr}");
    }
}
