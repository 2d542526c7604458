//! The command line without a network: help, usage errors, profiles.

use assert_cmd::Command;

fn posthaste(arguments: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_posthaste")).args(arguments).env_remove("RUST_LOG").assert()
}

fn stdout(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn help_teaches_with_examples() {
    for (arguments, expected) in [
        (&["--help"][..], "posthaste serve ./public"),
        (&["--help"], "posthaste race  "),
        (&["race", "--help"], "posthaste race --path bad --object 100kB"),
        (&["serve", "--help"], "--cert fullchain.pem"),
        (&["get", "--help"], "--ca cert.pem"),
        (&["profiles", "--help"], "posthaste profiles cubic"),
    ] {
        let help = stdout(&posthaste(arguments).success());
        assert!(help.contains("Examples:") && help.contains(expected), "{help}");
        for hidden in ["max-datagram-size", "key-limit", "move-after"] {
            assert!(!help.contains(hidden), "{hidden}");
        }
    }
    assert!(stdout(&posthaste(&["--version"]).success()).starts_with("posthaste "));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat table")]
fn wrong_use_is_exit_code_2_and_says_what_is_right() {
    for (arguments, expected) in [
        (&[][..], "Usage"),
        (&["fetch"], "unrecognized subcommand"),
        (&["serve"], "DIR"),
        (&["serve", "/does/not/exist"], "there is no directory /does/not/exist"),
        (&["serve", "/dev/null"], "is not a directory"),
        (&["serve", ".", "--cert", "a.pem"], "--key"),
        (&["serve", ".", "--cert", "/missing.pem", "--key", "/missing.pem"], "cannot read the certificate"),
        (&["serve", ".", "--listen", "here"], "--listen"),
        (&["serve", ".", "--profile", "cubik"], "there is no profile `cubik`; there are: cubic,"),
        (&["serve", ".", "--grace=-1"], "--grace"),
        (&["serve", ".", "--max-datagram-size", "1199"], "1200"),
        (&["serve", ".", "--profile", "quicming"], "write `quicming@min_rate=1mbit`"),
        (&["serve", ".", "--profile", "quicming@min_rate=0bit"], "from 10.0 kbit/s to 100 Gbit/s"),
        (&["serve", ".", "--profile", "quicming@min_rate=1000gbit"], "from 10.0 kbit/s to 100 Gbit/s"),
        (&["serve", ".", "--profile", "quicming@min_rate=1tbit"], "Gbit (a second)"),
        (&["serve", ".", "--profile", "quicming@1mbit"], "write key=value"),
        (
            &["serve", ".", "--profile", "cubic@min_rate=1mbit"],
            "profile `cubic`: has no parameter `min_rate`",
        ),
        (&["get", "https://h/a", "--connections", "0"], "from 1 to 16, or `auto`"),
        (&["get", "https://h/a", "--connections", "many"], "from 1 to 16, or `auto`"),
        (&["get", "https://h/a", "--connections", "auto"], "-o FILE"),
        (&["get", "https://h/a", "--profile", "quicming"], "quicming@min_rate=1mbit"),
        (&["serve", ".", "--guaranteed-rate-max", "5mbit"], "--profile quicming"),
        (&["serve", ".", "--profile", "quicming", "--guaranteed-rate-max", "0bit"], "10kbit to 100Gbit"),
        (&["get", "https://h/a", "--guaranteed-rate", "0bit"], "from 10kbit to 100Gbit, or `auto`"),
        (&["get", "https://h/a", "--guaranteed-rate", "1000gbit"], "from 10kbit to 100Gbit, or `auto`"),
        (&["get", "https://h/a", "--guaranteed-rate", "1tbit"], "or `auto`"),
        (
            &["get", "https://127.0.0.1/a", "--guaranteed-rate", "auto", "--insecure"],
            "the interface lo does not tell its speed",
        ),
        (&["get", "https://h/a", "--profile", "cubic@beta=1.5"], "above 0, below 1"),
        (&["race", "--profiles", "cubic,quicming"], "quicming@min_rate=1mbit"),
        (&["race", "--profiles", "quicming@min_rate=1000gbit"], "from 10.0 kbit/s to 100 Gbit/s"),
        (&["race", "--profiles", "mquic-cubic@64"], "`mquic-cubic`"),
        (&["serve", ".", "--receive-budget", "1kB"], "must be from 1MiB to 1TiB"),
        (&["serve", ".", "--receive-budget", "much"], "--receive-budget"),
        (&["serve", ".", "--send-budget", "2048GiB"], "must be from 1MiB to 1TiB"),
        (&["get"], "URL"),
        (&["get", "example.com"], "https://"),
        (&["get", "http://example.com/"], "https://"),
        (&["get", "https://h/a", "https://h/b"], "-O DIR"),
        (&["get", "https://h/a", "-o", "f", "-O", "d"], "cannot be used with"),
        (&["get", "https://h/a", "--ca", "f", "--insecure"], "cannot be used with"),
        (&["get", "https://h/a", "--ca", "/missing.pem"], "cannot read certificates from /missing.pem"),
        (&["get", "https://h/a", "--ca", "/dev/null"], "it contains no certificate"),
        (&["get", "https://h/a", "--parallel", "0"], "--parallel"),
        (&["get", "https://h/a", "--timeout", "soon"], "--timeout"),
        (&["get", "https://h/a", "--quic-version", "3"], "[possible values: 1, 2]"),
        (&["get", "https://h/a", "--cipher", "rot13"], "[possible values: aes128, aes256, chacha20]"),
        (&["serve", ".", "--cipher", "rot13"], "[possible values: aes128, aes256, chacha20]"),
        (&["get", "https://h/a", "--move-to", "127.0.0.2"], "--move-after"),
        (&["get", "https://h/a", "--profile", "/missing.toml"], "cannot read the profile"),
        (&["get", "https://h/a", "--qlog", "/dev/null/traces"], "--qlog DIR"),
        (&["get", "https://h/%2e%2e", "-O", "d"], "no name"),
        (&["profiles", "cubik"], "there is no profile `cubik`"),
        (
            &["race", "--path", "avarage"],
            "there is no path `avarage`; there are: good, average, bad, lte, wifi, lte-trace, wifi-trace",
        ),
        (&["race", "--path", "/missing.toml"], "cannot read /missing.toml"),
        (&["race", "--profiles", "cubic,cubik"], "there is no profile `cubik`; there are: cubic,"),
        (&["race", "--profiles", "cubic", "--baseline", "standard"], "these do: cubic"),
        (&["race", "--object", "0B"], "must be from 1B to 1GB"),
        (&["race", "--object", "much"], "--object"),
        (&["race", "--runs", "0"], "--runs"),
        (&["race", "--html", "/missing/race.html"], "there is no such folder"),
        (&["race", "--html", "/dev"], "--html FILE"),
        (&["race", "--html", "a.html", "--no-html"], "cannot be used with"),
    ] {
        let assert = posthaste(arguments).code(2);
        let message = stderr(&assert);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{message}");
        assert!(stdout(&assert).is_empty());
    }
}

#[test]
fn profiles_are_listed_and_explained() {
    let list = stdout(&posthaste(&["profiles"]).success());
    for name in ["cubic", "cubic-iw32", "standard"] {
        assert!(list.lines().any(|line| line.starts_with(name)), "{list}");
    }
    assert!(!list.contains('\u{1b}'), "no colours in a pipe");
    let cubic = stdout(&posthaste(&["profiles", "cubic"]).success());
    for expected in ["congestion: cubic", "RFC 9438", "breaks when", "beta"] {
        assert!(cubic.contains(expected), "{expected} is not in {cubic}");
    }
}

#[test]
fn profiles_that_break_a_must_say_so() {
    let list = stdout(&posthaste(&["profiles"]).success());
    let exceptions = list.lines().filter(|line| line.contains("breaks a MUST")).count();
    assert_eq!(exceptions, 3, "{list}");
    let paper = stdout(&posthaste(&["profiles", "quicming-paper@min_rate=1mbit"]).success());
    assert!(paper.contains("BREAKS       RFC 9002 sections 7.3.1, 7.3.2 and 7.6.2"), "{paper}");
    assert!(paper.contains("min_rate                 1.00 Mbit/s"), "{paper}");
    let freeze = stdout(&posthaste(&["profiles", "cubic-freeze"]).success());
    assert!(freeze.contains("BREAKS       RFC 9002 section 7.6.2"), "{freeze}");
    assert!(!stdout(&posthaste(&["profiles", "cubic"]).success()).contains("BREAKS"));
}

#[test]
fn profiles_for_programs() {
    let all: serde_json::Value =
        serde_json::from_str(&stdout(&posthaste(&["profiles", "--json"]).success())).unwrap();
    assert!(all.as_array().unwrap().iter().any(|profile| profile["name"] == "cubic"));
    let one = stdout(&posthaste(&["profiles", "standard", "--json"]).success());
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    let policies = one["policies"].as_array().unwrap();
    assert!(policies.iter().any(|policy| policy["seam"] == "congestion" && policy["name"] == "newreno"));
}

#[test]
fn a_profile_may_be_a_file_and_its_faults_have_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    std::fs::write(&path, "description = \"mine\"\n[congestion.newreno]\n").unwrap();
    let shown = stdout(&posthaste(&["profiles", path.to_str().unwrap()]).success());
    assert!(shown.starts_with("mine") && shown.contains("newreno"), "{shown}");
    std::fs::write(&path, "description = \"mine\"\n[congestion.reno]\n").unwrap();
    let message = stderr(&posthaste(&["profiles", path.to_str().unwrap()]).code(2));
    assert!(message.contains("line 2") && message.contains("newreno"), "{message}");
}

/// `posthaste profiles cubic | head -0`: nobody reads, and that is no failure.
#[cfg(unix)]
#[test]
fn a_reader_that_left_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_posthaste"))
        .args(["profiles", "cubic"])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
    let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(message, "");
}
