//! `posthaste serve` and `posthaste get` as processes, over loopback.
#![cfg(unix)]

mod common;

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folders, PATIENCE, Server, posthaste, read, run, sample, send_signal, wait};

#[test]
fn a_file_arrives_whole_in_a_file_and_on_stdout() {
    let folders = Folders::new();
    let content = sample(1_000_003);
    folders.publish("a file.bin", &content);
    let mut server = Server::start(&folders, &[]);
    let url = server.url("a%20file.bin");
    let target = folders.path("in").join("copy");
    let (code, stdout, stderr) = run(server.get().arg(&url).arg("-o").arg(&target));
    assert_eq!((code, stderr.as_str()), (0, ""), "no progress in a pipe");
    assert!(stdout.is_empty());
    assert!(read(&target) == content);
    assert_eq!(folders.fetched(), ["copy"]);

    // As a person types it.
    let (code, stdout, _) = run(server.get().arg(server.url("a file.bin")));
    assert_eq!(code, 0);
    assert!(stdout == content);

    let event = server.event();
    assert_eq!((event["event"].as_str(), event["path"].as_str()), (Some("request"), Some("/a%20file.bin")));
    assert_eq!((event["status"].as_u64(), event["bytes"].as_u64()), (Some(200), Some(1_000_003)));
    assert_eq!(event["complete"], true, "{event}");
}

#[test]
fn a_hundred_files_come_over_one_connection() {
    let folders = Folders::new();
    for index in 0..100 {
        folders.publish(&format!("{index:03}"), &sample(1000 + index));
    }
    let server = Server::start(&folders, &[]);
    let urls: Vec<_> = (0..100).map(|index| server.url(&format!("{index:03}"))).collect();
    let (code, stdout, stderr) =
        run(server.get().args(&urls).args(["--parallel", "100", "--json", "-O"]).arg(folders.path("in")));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert_eq!(folders.fetched().len(), 100);
    for index in 0..100 {
        assert!(read(&folders.path("in").join(format!("{index:03}"))) == sample(1000 + index), "{index}");
    }
    let report: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(report["transfers"].as_array().unwrap().len(), 100);
    assert_eq!(report["connections"].as_array().unwrap().len(), 1);
}

#[test]
fn a_guaranteed_rate_serves_and_says_what_it_breaks() {
    let folders = Folders::new();
    let content = sample(300_000);
    folders.publish("file", &content);
    let mut server = Server::start(&folders, &["--profile", "quicming-paper@min_rate=10mbit"]);
    let (code, stdout, _) = run(server.get().arg(server.url("file")));
    assert_eq!(code, 0);
    assert!(stdout == content);
    server.signal("INT");
    assert!(server.wait().success());
    let mut told = String::new();
    std::io::Read::read_to_string(&mut server.child.stderr.take().unwrap(), &mut told).unwrap();
    assert!(told.contains("warning: congestion guaranteed breaks RFC 8085 section 3.1"), "{told}");
}

#[test]
fn a_server_grants_the_rate_that_a_client_states_and_no_more_than_it_may() {
    let folders = Folders::new();
    let content = sample(300_000);
    folders.publish("file", &content);
    for (stated, at_the_floor) in [(None, false), (Some("20mbit"), true), (Some("100gbit"), true)] {
        let traces = folders.path(stated.unwrap_or("nothing"));
        let server = Server::start(
            &folders,
            &["--profile", "quicming", "--guaranteed-rate-max", "50mbit", "--qlog", traces.to_str().unwrap()],
        );
        let rate = stated.map(|rate| ["--guaranteed-rate", rate]);
        let (code, stdout, _) = run(server.get().args(rate.iter().flatten()).arg(server.url("file")));
        assert_eq!(code, 0);
        assert!(stdout == content);
        drop(server);
        let trace = std::fs::read_dir(&traces).unwrap().next().unwrap().unwrap().path();
        let trace = String::from_utf8(read(&trace)).unwrap();
        assert_eq!(trace.contains("wireless"), at_the_floor, "{stated:?}");
    }
}

#[test]
fn what_was_measured_is_reported() {
    let folders = Folders::new();
    folders.publish("file", &sample(300_000));
    let server = Server::start(&folders, &[]);
    let (code, stdout, _) =
        run(server.get().arg(server.url("file")).args(["--json", "--profile", "cubic-iw32"]));
    assert_eq!(code, 0);
    let report: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(report["profile"], "cubic-iw32");
    let transfer = &report["transfers"][0];
    assert_eq!((transfer["bytes"].as_u64(), transfer["status"].as_u64()), (Some(300_000), Some(200)));
    assert_eq!((&transfer["ok"], &transfer["protocol"]), (&true.into(), &"h3".into()));
    let time = |name: &str| transfer["times"][name].as_f64().unwrap_or_else(|| panic!("no time {name}"));
    assert!(0.0 < time("handshake") && time("handshake") < time("total"));
    assert!(time("first_byte") <= time("total"));
    let connection = &report["connections"][0];
    for (parent, field) in
        [("rtt", "smoothed"), ("rtt", "minimum"), ("packets", "sent"), ("packets", "received")]
    {
        assert!(connection[parent][field].as_f64().unwrap() > 0.0, "{parent}.{field} of {connection}");
    }
    assert!(connection["packets"]["lost"].is_u64());
    assert!(connection["congestion_window"].as_u64().unwrap() >= 2400);
}

#[test]
fn an_error_status_is_exit_code_1_and_leaves_no_file() {
    let folders = Folders::new();
    let mut server = Server::start(&folders, &[]);
    let target = folders.path("in").join("copy");
    let (code, stdout, stderr) = run(server.get().arg(server.url("missing")).arg("-o").arg(&target));
    assert_eq!((code, stdout.len()), (1, 0));
    assert!(stderr.contains("404 Not Found"), "{stderr}");
    assert!(folders.fetched().is_empty());
    assert_eq!(server.event()["status"], 404);

    // One that fails does not spoil the others.
    folders.publish("there", b"there");
    let urls = [server.url("there"), server.url("missing")];
    let (code, _, _) = run(server.get().args(urls).arg("-O").arg(folders.path("in")));
    assert_eq!((code, folders.fetched()), (1, vec!["there".to_owned()]));
}

#[test]
fn directories_redirect_to_their_index_or_listing() {
    let folders = Folders::new();
    std::fs::create_dir(folders.path("www").join("docs")).unwrap();
    folders.publish("docs/index.html", b"<p>index");
    std::fs::create_dir(folders.path("www").join("bare")).unwrap();
    folders.publish("bare/<b>.txt", b"");
    let server = Server::start(&folders, &["--listing"]);
    let (code, stdout, _) = run(server.get().arg(server.url("docs")));
    assert_eq!((code, stdout.as_slice()), (0, b"<p>index".as_slice()));
    let (code, _, stderr) = run(server.get().arg(server.url("docs")).args(["--max-redirects", "0"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("301"), "{stderr}");
    let (_, stdout, _) = run(server.get().arg(server.url("bare/")));
    assert!(String::from_utf8(stdout).unwrap().contains("&lt;b&gt;.txt"));
}

#[test]
fn nothing_outside_the_directory_is_served() {
    let folders = Folders::new();
    std::fs::write(folders.path("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(folders.path("secret"), folders.path("www").join("link")).unwrap();
    let server = Server::start(&folders, &[]);
    for path in [
        "%2e%2e/secret",
        "..%2fsecret",
        "%2e%2e%2fsecret",
        "link",
        "..%5csecret",
        "%252e%252e/secret",
        "a%00",
    ] {
        let (code, stdout, _) = run(server.get().arg(server.url(path)));
        assert_eq!((code, stdout.len()), (1, 0), "{path}");
    }
}

#[test]
fn secrets_are_not_served() {
    let folders = Folders::new();
    folders.publish(".env", b"SECRET=1");
    let (inside, outside) = (folders.path("www").join("kept"), folders.path("state"));
    for (option, state, traces) in [("--state", &inside, &outside), ("--qlog", &outside, &inside)] {
        let mut command = posthaste();
        command.arg("serve").arg(folders.path("www")).args(["--listen", "127.0.0.1:0", "--state"]);
        let (code, _, said) = run(command.arg(state).arg("--qlog").arg(traces));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("would be served") && said.contains(option), "{said}");
    }
    for (more, code) in [(&[][..], 1), (&["--hidden"][..], 0)] {
        let server = Server::start(&folders, more);
        assert_eq!(run(server.get().arg(server.url(".env"))).0, code);
    }
}

#[test]
fn an_untrusted_certificate_is_refused_with_advice() {
    let folders = Folders::new();
    folders.publish("file", b"content");
    let server = Server::start(&folders, &[]);
    let other = Folders::new();
    let stranger = Server::start(&other, &[]);
    let (code, stdout, stderr) =
        run(posthaste().args(["get", "--ca", &stranger.text("certificate")]).arg(server.url("file")));
    assert_eq!((code, stdout.len()), (1, 0));
    assert!(stderr.contains("certificate") && stderr.contains("--ca FILE"), "{stderr}");
    let (code, stdout, stderr) = run(posthaste().args(["get", "--insecure"]).arg(server.url("file")));
    assert_eq!((code, stdout.as_slice()), (0, b"content".as_slice()));
    assert!(stderr.contains("--insecure"), "{stderr}");
}

#[test]
fn nobody_there_is_told_within_the_timeout() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let began = Instant::now();
    let (code, _, stderr) =
        run(posthaste().args(["get", "--insecure", "--timeout", "0.5"]).arg(format!("https://{address}/")));
    assert_eq!(code, 1);
    assert!(stderr.contains(&format!("nothing answered on UDP {address}")), "{stderr}");
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_port_in_use_is_told_with_another() {
    let folders = Folders::new();
    let server = Server::start(&folders, &[]);
    let (code, _, stderr) = run(posthaste()
        .arg("serve")
        .arg(folders.path("www"))
        .args(["--listen", &format!("127.0.0.1:{}", server.port()), "--state"])
        .arg(folders.path("state")));
    assert_eq!(code, 1);
    assert!(stderr.contains("is in use") && stderr.contains("--listen 127.0.0.1:"), "{stderr}");
}

#[test]
fn the_start_names_commands_that_work() {
    let folders = Folders::new();
    folders.publish("index.html", b"<p>home");
    let server = Server::start(&folders, &[]);
    let commands = &server.start["commands"];
    let get = commands["get"].as_str().unwrap().strip_prefix("posthaste ").unwrap().to_owned();
    let shell = format!("{} {get}", env!("CARGO_BIN_EXE_posthaste"));
    let (code, stdout, _) = run(std::process::Command::new("sh").args(["-c", &shell]));
    assert_eq!((code, stdout.as_slice()), (0, b"<p>home".as_slice()));
    assert!(commands["curl"].as_str().unwrap().starts_with("curl --http3-only --cacert "));
    let chromium = commands["chromium"].as_str().unwrap();
    assert!(
        chromium.contains(&format!("--ignore-certificate-errors-spki-list={}", server.text("spki_sha256")))
    );
    assert!(chromium.contains(&format!("--origin-to-force-quic-on=127.0.0.1:{}", server.port())));

    // The certificate is the same next time.
    let hash = server.text("spki_sha256");
    drop(server);
    assert_eq!(Server::start(&folders, &[]).text("spki_sha256"), hash);
}

#[test]
fn a_given_certificate_is_used() {
    let folders = Folders::new();
    folders.publish("file", b"content");
    let kept = Server::start(&folders, &[]);
    let (certificate, key) = (kept.text("certificate"), folders.path("state").join("localhost.pem"));
    let server = Server::start(&folders, &["--cert", &certificate, "--key", key.to_str().unwrap()]);
    assert_eq!(server.start["certificate_is_own"], false);
    assert_eq!(run(server.get().arg(server.url("file"))).0, 0);
}

#[test]
fn secrets_and_traces_are_written_where_asked() {
    let folders = Folders::new();
    folders.publish("file", &sample(100_000));
    let server = Server::start(&folders, &["--qlog", folders.path("traces").to_str().unwrap()]);
    let keys = folders.path("keys.log");
    let (code, _, _) = run(server
        .get()
        .arg(server.url("file"))
        .args(["--qlog", folders.path("traces").to_str().unwrap()])
        .arg("--json")
        .env("SSLKEYLOGFILE", &keys));
    assert_eq!(code, 0);
    let secrets = String::from_utf8(read(&keys)).unwrap();
    assert!(
        secrets.contains("CLIENT_TRAFFIC_SECRET_0") && secrets.contains("SERVER_HANDSHAKE_TRAFFIC_SECRET")
    );
    let traces = std::fs::read_dir(folders.path("traces")).unwrap().count();
    assert!(traces >= 2, "one for each end, there are {traces}");
}

/// A server of a file that never ends within a test: sparse, so that it takes no disk.
fn endless(folders: &Folders) -> &'static str {
    std::fs::File::create(folders.path("www").join("endless")).unwrap().set_len(1 << 42).unwrap();
    "endless"
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes in the partial file.
fn partial_length(folders: &Folders) -> u64 {
    let partial = folders.fetched().into_iter().find(|name| name.contains(".part"));
    partial
        .and_then(|name| folders.path("in").join(name).metadata().ok())
        .map_or(0, |metadata| metadata.len())
}

#[test]
fn an_interrupted_transfer_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let folders = Folders::new();
        let name = endless(&folders);
        let server = Server::start(&folders, &[]);
        let target = folders.path("in").join("copy");
        let mut get =
            server.get().arg(server.url(name)).arg("-o").arg(&target).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a partial file", || partial_length(&folders) > 0);
        assert!(!target.exists());
        send_signal(get.id(), signal);
        assert_eq!(wait(&mut get).code(), Some(1));
        assert!(folders.fetched().is_empty(), "{:?}", folders.fetched());
    }
}

#[test]
fn a_server_that_dies_leaves_nothing_at_the_client() {
    let folders = Folders::new();
    let name = endless(&folders);
    let mut server = Server::start(&folders, &[]);
    let target = folders.path("in").join("copy");
    let mut command = server.get();
    command.arg(server.url(name)).args(["--timeout", "1"]).arg("-o").arg(&target);
    let mut get = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a partial file", || partial_length(&folders) > 0);
    server.signal("KILL");
    server.wait();
    assert_eq!(wait(&mut get).code(), Some(1));
    let stderr = std::io::read_to_string(get.stderr.take().unwrap()).unwrap();
    assert!(stderr.contains("nothing more arrived") || stderr.contains("was lost"), "{stderr}");
    assert!(folders.fetched().is_empty());
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let folders = Folders::new();
    folders.publish("file", &sample(3_000_000));
    let server = Server::start(&folders, &[]);
    if cfg!(target_os = "linux") {
        let (code, _, stderr) = run(server.get().arg(server.url("file")).args(["-o", "/dev/full"]));
        assert_eq!(code, 1);
        assert!(stderr.contains("no space left"), "{stderr}");
    }
    // A limit of the shell's stands for a file system that takes no more: 1,000 blocks of 512 or 1,024 bytes.
    let target = folders.path("in").join("copy");
    let script = "trap '' XFSZ; ulimit -f 1000; exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_posthaste"),
        "get",
        "--ca",
        &server.text("certificate"),
    ]);
    let (code, _, stderr) = run(command.arg(server.url("file")).arg("-o").arg(&target));
    assert_eq!(code, 1);
    assert!(stderr.contains("would be larger than"), "{stderr}");
    assert!(folders.fetched().is_empty(), "{:?}", folders.fetched());
}

#[test]
fn an_unwritable_target_is_told_before_anything_is_fetched() {
    let folders = Folders::new();
    folders.publish("file", b"content");
    let server = Server::start(&folders, &[]);
    let target = folders.path("in").join("missing/copy");
    let (code, _, stderr) = run(server.get().arg(server.url("file")).arg("-o").arg(&target));
    assert_eq!(code, 1);
    assert!(stderr.contains("there is no such folder"), "{stderr}");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let folders = Folders::new();
    let name = endless(&folders);
    let server = Server::start(&folders, &[]);
    let mut get =
        server.get().arg(server.url(name)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut head = [1; 1000];
    get.stdout.take().unwrap().read_exact(&mut head).unwrap();
    assert_eq!(head, [0; 1000]);
    assert_eq!(wait(&mut get).code(), Some(0));
}

#[test]
fn an_idle_server_stops_at_once_and_says_so() {
    for signal in ["INT", "TERM"] {
        let folders = Folders::new();
        folders.publish("file", b"content");
        let mut server = Server::start(&folders, &[]);
        assert_eq!(run(server.get().arg(server.url("file"))).0, 0);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0));
        assert_eq!(server.event()["event"], "request");
        let stopped = server.event();
        assert_eq!((&stopped["event"], &stopped["connections_cut_off"]), (&"stopped".into(), &0.into()));
    }
}

#[test]
fn a_server_whose_output_nobody_reads_serves_and_stops() {
    let folders = Folders::new();
    let names: Vec<String> = (0..100).map(|count| format!("{count:03}{}", "x".repeat(150))).collect();
    for name in &names {
        folders.publish(name, b"content");
    }
    let mut server = Server::start(&folders, &[]);
    // Together more lines than a pipe holds.
    for _ in 0..4 {
        let urls = names.iter().map(|name| server.url(name));
        let (code, _, said) = run(server.get().args(urls).arg("-O").arg(folders.path("in")));
        assert_eq!(code, 0, "{said}");
    }
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn transfers_are_cut_off_after_the_grace_or_a_second_interrupt() {
    for (grace, signals, code, limit) in [("0.3", 1, 0, PATIENCE), ("300", 2, 1, Duration::from_secs(100))] {
        let folders = Folders::new();
        let name = endless(&folders);
        let mut server = Server::start(&folders, &["--grace", grace]);
        let target = folders.path("in").join("copy");
        let mut command = server.get();
        command.arg(server.url(name)).args(["--timeout", "2", "-o"]).arg(&target).stderr(Stdio::piped());
        let get = command.spawn().unwrap();
        wait_until("a partial file", || partial_length(&folders) > 0);
        let began = Instant::now();
        for _ in 0..signals {
            server.signal("INT");
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(server.wait().code(), Some(code));
        assert!(began.elapsed() < limit);
        let mut stopped = server.event();
        while stopped["event"] != "stopped" {
            stopped = server.event();
        }
        assert_eq!((&stopped["connections_cut_off"], &stopped["requests_cut_off"]), (&1.into(), &1.into()));
        let output = get.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("the server has stopped"), "the second interrupt says good-bye, too: {said}");
        assert!(folders.fetched().is_empty());
    }
}

#[test]
fn a_transfer_in_progress_finishes_after_the_first_interrupt() {
    let folders = Folders::new();
    let content = sample(100_000_000);
    folders.publish("big", &content);
    let mut server = Server::start(&folders, &["--grace", "60"]);
    let target = folders.path("in").join("copy");
    let mut get = server.get().arg(server.url("big")).arg("-o").arg(&target).spawn().unwrap();
    wait_until("a partial file", || partial_length(&folders) > 0);
    server.signal("INT");
    assert_eq!(wait(&mut get).code(), Some(0));
    assert!(read(&target) == content);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn version_cipher_and_a_move_are_the_users_choice() {
    let folders = Folders::new();
    let content = sample(3_000_000);
    folders.publish("file", &content);
    let server = Server::start(&folders, &["--cipher", "chacha20"]);
    let (code, _, stderr) = run(server.get().arg(server.url("file")).args(["--cipher", "aes128"]));
    assert_eq!(code, 1, "no cipher in common: {stderr}");

    let mut get = server.get();
    get.arg(server.url("file")).args(["--quic-version", "2", "--cipher", "chacha20"]);
    get.args(["--move-after", "300000", "--move-to", "127.0.0.1"]);
    get.arg("--qlog").arg(folders.path("traces")).arg("-O").arg(folders.path("in"));
    let (code, _, stderr) = run(&mut get);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(read(&folders.path("in").join("file")) == content);
    let trace = std::fs::read_dir(folders.path("traces")).unwrap().next().unwrap().unwrap().path();
    let trace = String::from_utf8(read(&trace)).unwrap();
    assert!(trace.contains(r#""chosen_version":"6b3343cf""#), "version 2");
    assert!(trace.contains("path_challenge") && trace.contains("path_response"), "it has moved");
}

/// A client none of whose files may grow beyond 1 MiB: then it fails.
fn limited(get: &std::process::Command) -> std::process::Command {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 2048; exec \"$@\"", "sh"]).arg(get.get_program());
    shell.args(get.get_args()).env_remove("RUST_LOG");
    shell
}

#[test]
fn an_incomplete_file_is_continued_unless_it_has_changed() {
    const LIMIT: usize = 1 << 20;
    let folders = Folders::new();
    // The tag of what has just been written is weak.
    let publish = |name: &str, content: &[u8]| {
        folders.publish(name, content);
        let file = std::fs::File::options().write(true).open(folders.path("www").join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_hours(1)).unwrap();
    };
    let content = sample(3_000_000);
    publish("file", &content);
    let server = Server::start(&folders, &[]);
    let target = folders.path("in").join("copy");
    let mut get = server.get();
    get.arg(server.url("file")).args(["--continue", "--json", "-o"]).arg(&target);
    let received = |stdout: &[u8]| {
        let report: serde_json::Value = serde_json::from_slice(stdout).unwrap();
        report["transfers"][0]["bytes"].as_u64().unwrap()
    };
    assert_eq!(run(&mut limited(&get)).0, 1, "it is too large");
    assert_eq!(folders.fetched(), [".copy.posthaste-part", ".copy.posthaste-part.json"]);
    let (code, stdout, stderr) = run(&mut get);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains(&format!("continued at byte {LIMIT}")), "{stderr}");
    assert_eq!(received(&stdout), (content.len() - LIMIT) as u64);
    assert!(read(&target) == content);
    assert_eq!(folders.fetched(), ["copy"]);

    // Another content, of the same length.
    assert_eq!(run(&mut limited(&get)).0, 1);
    let changed: Vec<u8> = content.iter().map(|byte| !byte).collect();
    publish("file", &changed);
    let (code, stdout, stderr) = run(&mut get);
    assert_eq!((code, received(&stdout)), (0, changed.len() as u64), "{stderr}");
    assert!(read(&target) == changed);
    // Shorter than what is kept.
    assert_eq!(run(&mut limited(&get)).0, 1);
    publish("file", b"short");
    assert_eq!(run(&mut get).0, 0);
    assert_eq!(read(&target), b"short");
    // Of another URL.
    publish("file", &content);
    assert_eq!(run(&mut limited(&get)).0, 1);
    publish("other", &changed);
    let mut other = server.get();
    other.arg(server.url("other")).args(["--continue", "-o"]).arg(&target);
    assert_eq!(run(&mut other).0, 0);
    assert!(read(&target) == changed);
    assert_eq!(folders.fetched(), ["copy"]);
}

#[test]
fn a_file_that_another_process_continues_is_left_alone() {
    let folders = Folders::new();
    folders.publish("file", b"content");
    let server = Server::start(&folders, &[]);
    let target = folders.path("in").join("copy");
    let part = folders.path("in").join(".copy.posthaste-part");
    std::fs::write(&part, "of another").unwrap();
    let writer = std::fs::File::open(&part).unwrap();
    writer.lock().unwrap();
    let mut get = server.get();
    get.arg(server.url("file")).args(["--continue", "-o"]).arg(&target);
    let (code, _, stderr) = run(&mut get);
    assert_eq!(code, 1);
    assert!(stderr.contains("another `posthaste get --continue` is writing"), "{stderr}");
    assert_eq!(read(&part), b"of another");
    drop(writer);
    assert_eq!(run(&mut get).0, 0);
    assert_eq!(read(&target), b"content");
    assert_eq!(folders.fetched(), ["copy"]);
}

/// Every client is served whole, whichever worker its connection meets, and one signal stops all of them.
#[cfg(target_os = "linux")]
#[test]
fn several_workers_serve_one_port() {
    let folders = Folders::new();
    let content = sample(200_000);
    folders.publish("file", &content);
    let mut server = Server::start(&folders, &["--workers", "3"]);
    let url = server.url("file");
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let (code, stdout, stderr) = run(server.get().arg(&url));
                assert_eq!((code, stderr.as_str()), (0, ""));
                assert!(stdout == content);
            });
        }
    });
    for _ in 0..12 {
        let event = server.event();
        assert_eq!(
            (event["event"].as_str(), event["complete"].as_bool()),
            (Some("request"), Some(true)),
            "{event}"
        );
    }
    server.signal("TERM");
    assert_eq!(server.event()["event"], "stopped");
    assert!(server.wait().success());
    let (code, _, stderr) = run(posthaste().args(["serve", ".", "--workers", "0"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("from 1 to 1024, or `auto`"), "{stderr}");
}
