//! The listener for operators of `posthaste edge`: figures after known requests, health, status, the dashboard in a browser.
#![cfg(unix)]
#![expect(clippy::float_cmp, reason = "counters are whole numbers, and times are compared with themselves")]

mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::edge::{Edge, certificate};
use common::{Folders, PATIENCE, posthaste, run, wait};

/// Status and body of a GET at the listener for operators.
fn ask(edge: &Edge, path: &str, host: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(edge.start["admin"].as_str().unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn get(edge: &Edge, path: &str) -> (u16, String) {
    ask(edge, path, "localhost")
}

/// Each sample of a page in the text format of `OpenMetrics` by name and labels, read by its grammar and not by the library
/// that writes it.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    assert!(page.ends_with("\n# EOF\n"), "a page has an end");
    for line in page.trim_end_matches("# EOF\n").lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (kind, name, text) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(["HELP", "TYPE", "UNIT"].contains(&kind), "{line}");
            if kind == "TYPE" {
                assert!(kinds.insert(name.to_owned(), text.to_owned()).is_none(), "{name} is there twice");
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap();
        let name = key.split('{').next().unwrap();
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{line}"
        );
        let is_known = kinds.iter().any(|(family, kind)| match kind.as_str() {
            "counter" => name == format!("{family}_total"),
            "histogram" => ["_bucket", "_sum", "_count"].iter().any(|end| name == format!("{family}{end}")),
            _ => name == family,
        });
        assert!(is_known, "{line} has no type");
        assert!(samples.insert(key.to_owned(), value.parse().unwrap()).is_none(), "{line} is there twice");
    }
    samples
}

/// The official parser, where Python has it.
fn check_with_python(page: &str) {
    let program = "import sys\ntry:\n from prometheus_client.openmetrics.parser import text_string_to_metric_families as p\n\
                   except ImportError: sys.exit(77)\nprint(len(list(p(sys.stdin.read()))))";
    let mut command = Command::new("python3");
    let Ok(mut child) = command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
    else {
        return eprintln!("skipped: there is no python3");
    };
    // Without the module it does not read.
    let _ = child.stdin.take().unwrap().write_all(page.as_bytes());
    match wait(&mut child).code() {
        Some(77) => eprintln!("skipped: python3 has no prometheus_client"),
        code => assert_eq!(code, Some(0), "{page}"),
    }
}

/// The page once it has counted this many requests: the last are counted when their clients have acknowledged them.
fn page_after(edge: &Edge, requests: f64) -> String {
    let began = Instant::now();
    loop {
        let page = get(edge, "/metrics").1;
        let counted = samples(&page);
        let counted =
            counted.iter().filter(|(key, _)| key.starts_with("edge_requests_total{")).map(|it| it.1);
        let counted: f64 = counted.sum();
        if counted >= requests {
            assert_eq!(counted, requests, "{page}");
            return page;
        }
        assert!(began.elapsed() < PATIENCE, "{page}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const CONFIG: &str = r#"
[edge]
listen = "127.0.0.1:0"
admin = "127.0.0.1:0"
grace = "1m"

[site.localhost]
certificate = { chain = "cert.pem", key = "key.pem" }
reply = "200 pong"

[[site.localhost.route]]
path = "/fail"
reply = "503 no"

[[site.localhost.route]]
path = "/hang"
to = "HANG"
"#;

fn start(folders: &Folders, upstream: &str) -> Edge {
    certificate(folders);
    std::fs::write(folders.path("edge.toml"), CONFIG.replace("HANG", upstream)).unwrap();
    Edge::start(folders, &["--config", "edge.toml", "--no-access-log"])
}

/// What QUIC did on the eight connections of a page, and that it has all figures that are promised.
fn check_what_connections_did(page: &str, read: &BTreeMap<String, f64>) {
    let sum = |name: &str| -> f64 {
        let own = read.iter().filter(|(key, _)| key.starts_with(&format!("{name}{{")));
        own.map(|(_, value)| value).sum()
    };
    // One of them is still open, if its client has closed it but the edge waits for what is on its way.
    let ended = read["edge_quic_window_bytes_count{family=\"ipv4\"}"];
    assert!(ended > 0.0, "{page}");
    assert_eq!(sum("edge_quic_ecn_total"), ended);
    assert_eq!(sum("edge_quic_datagram_bytes_count"), ended);
    assert!(read["edge_quic_datagram_bytes_sum{family=\"ipv4\"}"] >= ended * 1200.0);
    // curl's and `get`'s default urgency.
    assert_eq!(read["edge_http3_streams_total{urgency=\"3\"}"], sum("edge_http3_streams_total"));
    assert_eq!(sum("edge_http3_streams_total"), 8.0);
    assert!(read["edge_quic_waited_seconds_total{family=\"ipv4\",for=\"application\"}"] > 0.0, "{page}");
    for (name, series) in [
        ("edge_quic_waited_seconds_total", 10),
        ("edge_quic_ecn_total", 6),
        ("edge_http3_streams_total", 8),
        ("edge_quic_packets_marked_total", 2),
        ("edge_quic_jumps_total", 2),
        ("edge_quic_jumps_undone_total", 2),
    ] {
        let own = read.keys().filter(|key| key.starts_with(&format!("{name}{{"))).count();
        assert_eq!(own, series, "{name} in {page}");
    }
    for name in ["edge_quic_misplaced_total", "edge_quic_misplaced_lost_total"] {
        assert_eq!(read.get(name), Some(&0.0), "{name} in {page}");
    }
}

#[test]
fn figures_are_those_of_the_requests_that_were_made() {
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    let mut requests = 4.0;
    for _ in 0..4 {
        assert_eq!(run(&mut edge.get(&folders, "/x?y")).0, 0);
    }
    assert_ne!(run(&mut edge.get(&folders, "/fail")).0, 0);
    // Names that clients make up are not counted apart.
    let stranger = format!("https://127.0.0.1:{}/", edge.port());
    assert_ne!(run(posthaste().args(["get", "--insecure", &stranger])).0, 0);
    requests += 2.0;
    let mut expected = vec![
        ("site=\"localhost\",protocol=\"h3\",status=\"2xx\"", 6.0),
        ("site=\"localhost\",protocol=\"h3\",status=\"5xx\"", 1.0),
        ("site=\"none\",protocol=\"h3\",status=\"4xx\"", 1.0),
    ];
    if edge.curl(&folders, "/").is_some() {
        for (version, times) in [("--http1.1", 3), ("--http2", 2)] {
            for _ in 0..times {
                let (code, body, _) = run(edge.curl(&folders, "/").unwrap().arg(version));
                assert_eq!((code, body.as_slice()), (0, b"pong".as_slice()));
                requests += 1.0;
            }
        }
        let mut made_up = edge.curl(&folders, "/").unwrap();
        assert_eq!(run(made_up.args(["--header", "Host: made.up"])).0, 0);
        requests += 1.0;
        expected.push(("site=\"localhost\",protocol=\"h1\",status=\"2xx\"", 3.0));
        expected.push(("site=\"localhost\",protocol=\"h2\",status=\"2xx\"", 2.0));
        expected.push(("site=\"none\",protocol=\"h2\",status=\"4xx\"", 1.0));
    }
    // The second time with 0-RTT.
    assert_eq!(run(edge.get(&folders, "/x").args(["--repeat", "2"])).0, 0);
    requests += 2.0;
    let page = page_after(&edge, requests);
    check_with_python(&page);
    let read = samples(&page);
    for (labels, number) in &expected {
        assert_eq!(read.get(&format!("edge_requests_total{{{labels}}}")), Some(number), "{labels} in {page}");
    }
    let made = read.keys().filter(|key| key.starts_with("edge_requests_total{")).count();
    assert_eq!(made, expected.len(), "{page}");
    let h3 = "{site=\"localhost\",protocol=\"h3\"}";
    assert_eq!(read[&format!("edge_request_seconds_count{h3}")], 7.0);
    assert_eq!(read[&format!("edge_response_bytes_total{h3}")], 6.0 * 4.0 + 2.0);
    assert_eq!(read["edge_http3_connections_total{family=\"ipv4\"}"], 8.0);
    assert_eq!(read["edge_http3_resumed_total{family=\"ipv4\"}"], 1.0);
    assert_eq!(read["edge_http3_early_data_total{family=\"ipv4\"}"], 1.0);
    assert_eq!(read["edge_http3_early_data_refused_total{family=\"ipv4\"}"], 0.0);
    assert!(read["edge_quic_sent_bytes_total{family=\"ipv4\"}"] > 8.0 * 1200.0);
    assert_eq!(read["edge_quic_accepted_total"], 8.0);
    check_what_connections_did(&page, &read);
    let status: serde_json::Value = serde_json::from_str(&get(&edge, "/status").1).unwrap();
    assert_eq!(status["requests"]["all"], requests as u64);
    assert_eq!(status["requests"]["by_protocol"]["h3"], 8);
    assert_eq!(status["sites"]["localhost"]["server_errors"], 1);
    assert_eq!(status["http3"]["connections"], 8);
    check_status(edge, requests);
}

/// What `edge status` says of a running edge, and of none.
fn check_status(mut edge: Edge, requests: f64) {
    let admin = edge.start["admin"].as_str().unwrap().to_owned();
    let (code, told, _) = run(posthaste().args(["edge", "status", "--admin", &admin]));
    let told = String::from_utf8(told).unwrap();
    assert!(code == 0 && told.contains(&format!("requests     {requests}, ")), "{told}");
    assert!(edge.stop().success());
    let (code, _, stderr) = run(posthaste().args(["edge", "status", "--admin", &admin]));
    assert!(code == 1 && stderr.contains("--admin ADDRESS:PORT"), "{stderr}");
}

#[test]
fn reloads_and_certificates_are_told() {
    let folders = Folders::new();
    let mut edge = start(&folders, "http://127.0.0.1:1");
    let figures = |edge: &Edge| samples(&get(edge, "/metrics").1);
    let before = figures(&edge);
    assert_eq!(before["edge_last_reload_successful"], 1.0);
    assert_eq!(before["edge_last_load_seconds"], before["edge_start_seconds"]);
    let ends = before["edge_certificate_not_after_seconds{chain=\"cert.pem\"}"];
    assert!(ends > before["edge_start_seconds"], "{ends}");
    edge.signal("HUP");
    assert_eq!(edge.note(), "posthaste: reloaded\n");
    let after = figures(&edge);
    assert_eq!(after["edge_reloads_total{result=\"loaded\"}"], 1.0);
    assert!(after["edge_last_load_seconds"] > before["edge_last_load_seconds"]);
    std::fs::write(folders.path("edge.toml"), "[edge]\nlisten = 1\n").unwrap();
    edge.signal("HUP");
    assert!(edge.note().contains("not reloaded"));
    let refused = figures(&edge);
    assert_eq!(refused["edge_reloads_total{result=\"refused\"}"], 1.0);
    assert_eq!(refused["edge_last_reload_successful"], 0.0);
    assert_eq!(refused["edge_last_load_seconds"], after["edge_last_load_seconds"]);
    let status: serde_json::Value = serde_json::from_str(&get(&edge, "/status").1).unwrap();
    assert!(status["reload"]["error"].as_str().unwrap().contains("edge.toml:2:10: "), "{status}");
    assert_eq!(status["certificates"][0]["names"][0], "localhost");
}

#[test]
fn it_is_not_ready_while_it_drains() {
    let folders = Folders::new();
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut edge = start(&folders, &format!("http://{}", upstream.local_addr().unwrap()));
    assert_eq!(get(&edge, "/readyz"), (200, "ready\n".to_owned()));
    let mut client = edge.get(&folders, "/hang").stderr(Stdio::null()).spawn().unwrap();
    // The request is here, and nobody answers it.
    let (held, _) = upstream.accept().unwrap();
    edge.signal("TERM");
    let began = Instant::now();
    while get(&edge, "/readyz").0 == 200 {
        assert!(began.elapsed() < PATIENCE, "it is still ready");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(get(&edge, "/readyz"), (503, "draining\n".to_owned()));
    assert_eq!(get(&edge, "/healthz").0, 200);
    edge.signal("TERM");
    wait(&mut edge.child);
    drop(held);
    wait(&mut client);
}

#[test]
fn open_connections_are_listed_one_by_one() {
    let folders = Folders::new();
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = start(&folders, &format!("http://{}", upstream.local_addr().unwrap()));
    let admin = edge.start["admin"].as_str().unwrap().to_owned();
    let ask = |more: &[&str]| {
        let mut asking = posthaste();
        asking.args(["edge", "status", "--connections", "--admin", &admin]).args(more);
        let (code, told, stderr) = run(&mut asking);
        assert_eq!(code, 0, "{stderr}");
        String::from_utf8(told).unwrap()
    };
    assert!(ask(&[]).starts_with("0 HTTP/3 connections open\n"));
    let mut client = edge.get(&folders, "/hang").stderr(Stdio::null()).spawn().unwrap();
    // The request is here, and nobody answers it.
    let (held, _) = upstream.accept().unwrap();
    let listed: serde_json::Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_eq!(listed["open"], 1, "{listed}");
    let one = &listed["slowest"][0];
    assert!(one["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{listed}");
    assert_eq!((&one["requests"], &one["worker"]), (&1.into(), &0.into()), "{listed}");
    assert!(one["datagram_size"].as_u64().unwrap() >= 1200, "{listed}");
    for figure in ["rtt", "rate", "age"] {
        assert!(one[figure].as_f64().unwrap() > 0.0, "{figure} in {listed}");
    }
    let told = ask(&[]);
    assert!(told.starts_with("1 HTTP/3 connections open\n"), "{told}");
    assert!(told.contains(one["address"].as_str().unwrap()), "{told}");
    assert!(!get(&edge, "/metrics").1.contains(one["address"].as_str().unwrap()));
    drop(held);
    wait(&mut client);
}

#[test]
fn others_are_kept_out_unless_the_owner_says_otherwise() {
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    assert_eq!(ask(&edge, "/metrics", "evil.test").0, 421);
    assert_eq!(get(&edge, "/nothing").0, 404);
    let usual = ["edge", "--files", ".", "--cert", "cert.pem", "--key", "key.pem", "--listen", "127.0.0.1:0"];
    let mut public = posthaste();
    public.args(usual).args(["--admin", "0.0.0.0:0"]).current_dir(folders.path(""));
    let (code, _, stderr) = run(&mut public);
    assert!(code == 2 && stderr.contains("--admin-public"), "{code} {stderr}");
    let more = ["--admin", "0.0.0.0:0", "--admin-public"];
    let edge = Edge::start(&folders, &[&usual[1..], &more].concat());
    assert!(edge.start["admin"].as_str().unwrap().starts_with("0.0.0.0:"));
}

#[test]
fn clients_that_are_told_of_http3_and_come_are_counted() {
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    let Some(mut over_tcp) = edge.curl(&folders, "/") else { return };
    assert_eq!(run(&mut over_tcp).0, 0);
    let told = samples(&page_after(&edge, 1.0));
    assert_eq!((told["edge_h3_offered_total"], told["edge_h3_taken_total"]), (1.0, 0.0));
    assert_eq!(run(&mut edge.get(&folders, "/")).0, 0);
    let came = samples(&page_after(&edge, 2.0));
    assert_eq!((came["edge_h3_offered_total"], came["edge_h3_taken_total"]), (1.0, 1.0));
    let status: serde_json::Value = serde_json::from_str(&get(&edge, "/status").1).unwrap();
    let small = &status["times"][0];
    assert_eq!(small["from"], 0);
    for kind in ["tcp", "http3", "tcp_of_both", "http3_of_both"] {
        assert_eq!(small[kind]["count"], 1, "{kind} in {status}");
        assert!(small[kind]["whole"].as_f64().unwrap() > 0.0, "{kind} in {status}");
    }
}

#[test]
fn upstreams_are_told_with_what_they_have_failed_at() {
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    assert_ne!(run(&mut edge.get(&folders, "/hang")).0, 0);
    let read = samples(&page_after(&edge, 1.0));
    let upstream = "upstream=\"http://127.0.0.1:1\"";
    // A GET is asked twice.
    assert_eq!(read[&format!("edge_upstream_failures_total{{{upstream},reason=\"connect\"}}")], 2.0);
    assert_eq!(read[&format!("edge_upstream_first_byte_seconds_count{{{upstream}}}")], 0.0);
    assert_eq!(read[&format!("edge_upstream_up{{{upstream}}}")], 1.0, "the only one is always asked");
    std::fs::write(folders.path("edge.toml"), CONFIG.replace("HANG", "http://127.0.0.1:2")).unwrap();
    edge.signal("HUP");
    let began = Instant::now();
    let other = "edge_upstream_up{upstream=\"http://127.0.0.1:2\"}";
    loop {
        let read = samples(&get(&edge, "/metrics").1);
        if read.contains_key(other) {
            assert!(!read.keys().any(|key| key.contains(upstream)), "what a reload has removed is not shown");
            break;
        }
        assert!(began.elapsed() < PATIENCE, "the new upstream is not there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Names of figures in a text.
fn figures_in(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("edge_")).collect()
}

#[test]
fn the_board_asks_for_figures_that_exist_by_labels_that_they_have() {
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    assert_eq!(run(&mut edge.get(&folders, "/")).0, 0);
    let read = samples(&page_after(&edge, 1.0));
    let exists = |name: &str| read.keys().any(|key| key == name || key.starts_with(&format!("{name}{{")));
    let board = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana.json");
    let board: serde_json::Value = serde_json::from_slice(&common::read(board.as_ref())).unwrap();
    let targets = board["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
    let mut asked = 0;
    for expression in targets.flatten().map(|target| target["expr"].as_str().unwrap()) {
        let names = figures_in(expression);
        assert!(!names.is_empty(), "{expression}");
        for name in &names {
            assert!(exists(name), "{name} in {expression}");
            asked += 1;
        }
        for by in
            expression.split("by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap().split(", "))
        {
            let has = |key: &&String| key.starts_with(names[0]) && key.contains(&format!("{by}=\""));
            assert!(by == "le" || read.keys().any(|key| has(&key)), "{by} in {expression}");
        }
    }
    assert!(asked > 40, "{asked}");
    let job = board["templating"]["list"][1]["query"]["query"].as_str().unwrap();
    assert!(figures_in(job).iter().all(|name| exists(name)), "{job}");
    // Those of the guide, too: families by their names, `_x` after another's beginning by its end.
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/edge.md");
    let guide = String::from_utf8(common::read(guide.as_ref())).unwrap();
    let rows = guide.lines().filter(|line| line.starts_with("| `edge_"));
    let named: Vec<_> = rows.flat_map(|row| figures_in(row.split('|').nth(1).unwrap())).collect();
    assert!(named.len() > 30, "{}", named.len());
    for name in named {
        let is_there = exists(name) || exists(&format!("{name}_count")) || name == "edge_udp_";
        assert!(is_there, "{name} of the guide");
    }
}

/// What stands between these two in a text.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from} in {text}"));
    rest.split(to).next().unwrap()
}

/// The text of a piece of HTML, a blank at each tag.
fn text_of(html: &str) -> String {
    let pieces = html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    pieces.filter(|piece| !piece.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_browser_shows_the_dashboard() {
    if Command::new("chromium").arg("--version").output().is_err() {
        return eprintln!("skipped: chromium is not installed");
    }
    let folders = Folders::new();
    let edge = start(&folders, "http://127.0.0.1:1");
    for path in ["/", "/", "/x"] {
        assert_eq!(run(&mut edge.get(&folders, path)).0, 0);
    }
    assert_ne!(run(&mut edge.get(&folders, "/hang")).0, 0);
    page_after(&edge, 4.0);
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--enable-logging=stderr",
    ]);
    browser
        .arg(format!("--user-data-dir={}", folders.path("browser").display()))
        .env("HOME", folders.path(""));
    // Time passes as fast as the page allows.
    browser.args(["--virtual-time-budget=5000", "--dump-dom"]);
    browser.arg(format!("http://{}/", edge.start["admin"].as_str().unwrap()));
    let (code, page, log) = run(&mut browser);
    let page = String::from_utf8(page).unwrap();
    assert_eq!(code, 0, "{log}");
    let complaints: Vec<_> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(page.contains("role=\"status\">running<"), "{page}");
    let tile = |id| text_of(between(&page, &format!("<div class=\"tile\" id=\"{id}\">"), "</div>"));
    assert_eq!(tile("requests"), "Requests per second 0 4 since the start, 1 with status 5xx");
    assert_eq!(tile("share"), "Share of HTTP/3 – 100 % since the start");
    assert!(tile("connections").contains(" 4 since the start, 0 resumed"), "{}", tile("connections"));
    let body = |id| {
        text_of(between(between(&page, &format!("<table id=\"{id}\">"), "</table>"), "<tbody>", "</tbody>"))
    };
    assert_eq!(body("sites"), "localhost 4 100 % 1 42 B".replace("42", &sent(&edge)));
    assert_eq!(body("upstreams"), "http://127.0.0.1:1 well 0 0 2");
    assert!(body("certificates").starts_with("localhost "), "{}", body("certificates"));
    let times = text_of(between(&page, "id=\"times-all\">", "</tbody>"));
    assert!(times.starts_with("All clients below 16 KiB 0 – – 3 "), "{times}");
}

/// Bytes of bodies so far, as `/status` tells.
fn sent(edge: &Edge) -> String {
    let status: serde_json::Value = serde_json::from_str(&get(edge, "/status").1).unwrap();
    status["requests"]["response_bytes"].to_string()
}
