//! `posthaste emulate` as a process, in network namespaces of its own. Where the system permits none, the tests that
//! need them say so and pass. Most run once with each kind of device. Nothing here asks how fast it is: upper bounds hold only for runs that were valid.
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{PATIENCE, posthaste, run, sample, send_signal, wait};

/// Chooses what this test program does as a process inside an emulated path.
const ROLE: &str = "POSTHASTE_TEST_ROLE";

/// The far end's UDP port.
const PORT: u16 = 7_000;

/// Each of these is a test with TUN devices, and one with pairs of veth.
macro_rules! with_each_device {
    ($($name:ident)*) => {
        mod tun {
            $(#[test] fn $name() { super::$name("tun"); })*
        }
        mod veth {
            $(#[test] fn $name() { super::$name("veth"); })*
        }
    };
}

with_each_device! {
    a_round_trip_takes_both_delays
    paths_are_joined_by_nesting
    the_rate_is_kept_to_a_hundredth
    losses_are_those_of_the_model
    what_an_interface_that_is_down_misses_is_counted
    kernel_tcp_arrives_whole
    a_user_without_privileges_may_do_it
    a_file_is_fetched_through_it
    a_download_goes_on_when_its_path_is_taken_down
    the_commands_end_is_the_runs
    ctrl_c_ends_all_of_it
    what_the_command_leaves_behind_is_no_zombie
    a_killed_run_takes_its_command_along
    no_interface_stays
}

/// Runs in a folder of their own.
struct Ground {
    guard: tempfile::TempDir,
    device: String,
}

/// What a run has left behind.
struct Outcome {
    stdout: String,
    stderr: String,
    report: serde_json::Value,
}

impl Ground {
    /// `None`, and a remark on stderr, where there can be no network namespaces with such devices.
    fn new(device: &str) -> Option<Self> {
        let ground = Self { guard: tempfile::tempdir().unwrap(), device: device.to_owned() };
        let (code, _, stderr) = run(&mut ground.command(&["--down", "delay=0ms", "--", "true"]));
        if code == 1 {
            eprintln!("SKIPPED, nothing was tested: {stderr}");
            return None;
        }
        assert!([0, 125].contains(&code), "{code}: {stderr}");
        Some(ground)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.guard.path().join(name)
    }

    /// A program that knows where everything is.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .env_remove("RUST_LOG")
            .env("TESTS", std::env::current_exe().unwrap())
            .env("POSTHASTE", env!("CARGO_BIN_EXE_posthaste"))
            .env("DEVICE", &self.device);
        command.current_dir(&self.guard);
        command
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_posthaste"));
        command.args(["emulate", "-q", "--isolate", "--device", &self.device, "--json", "report.json"]);
        command.args(arguments);
        command
    }

    /// A script in a user namespace that is made by `unshare` with these options; `None` where that is not possible.
    fn unshared(&self, options: &[&str], script: &str) -> Option<Outcome> {
        let mut probe = self.program("unshare");
        if !probe.args(options).arg("true").status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED, nothing was tested: `unshare {}` is not possible here", options.join(" "));
            return None;
        }
        let mut command = self.program("unshare");
        Some(self.outcome(command.args(options).args(["sh", "-c", script])))
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let outcome = self.outcome(&mut self.command(arguments));
        assert_eq!(outcome.report["device"], *self.device, "{}", outcome.report);
        outcome
    }

    fn outcome(&self, command: &mut Command) -> Outcome {
        let (code, stdout, stderr) = run(command);
        let report = std::fs::read(self.path("report.json")).unwrap_or_else(|_| panic!("{code}: {stderr}"));
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        // A busy machine makes figures worthless, and no test fails by that; but it has to be said.
        assert_eq!(report["valid"] == false, code == 125, "{report}");
        // Runs inside of this one say it there, too.
        assert!(code != 125 || stderr.contains("this run is void"), "{stderr}");
        Outcome { stdout: String::from_utf8(stdout).unwrap(), stderr, report }
    }
}

impl Outcome {
    /// COMMAND's own.
    fn exit_code(&self) -> u64 {
        self.report["exit_code"].as_u64().unwrap()
    }

    fn is_valid(&self) -> bool {
        self.report["valid"] == true
    }

    fn count(&self, direction: &str, what: &str) -> u64 {
        self.report[direction][what].as_u64().unwrap_or_else(|| panic!("{what} in {}", self.report))
    }
}

/// This program in another role, as a shell command.
fn role(role: &str) -> String {
    format!("{ROLE}={role} exec \"$TESTS\" --exact a_role_is_played --nocapture")
}

/// No test of its own: what other tests start at the ends of a path.
#[test]
fn a_role_is_played() {
    match std::env::var(ROLE).ok().as_deref() {
        None => {}
        Some("echo") => echo(),
        Some("sink") => sink(),
        Some("ping") => ping(),
        Some("flood") => flood(),
        Some("chatter") => chatter(),
        Some("greet") => greet(),
        Some("send") => send(),
        Some("take") => take(),
        Some(other) => panic!("{other}"),
    }
}

fn far_socket() -> UdpSocket {
    UdpSocket::bind(("0.0.0.0", PORT)).unwrap()
}

/// Sends back what comes; it is killed with the run.
fn echo() {
    let socket = far_socket();
    let mut buffer = [0; 2_000];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        socket.send_to(&buffer[..length], from).unwrap();
    }
}

/// Counts what comes; one byte asks for the count.
fn sink() {
    let socket = far_socket();
    let mut buffer = [0; 2_000];
    let mut received = 0_u64;
    loop {
        match socket.recv_from(&mut buffer).unwrap() {
            (1, from) => drop(socket.send_to(&received.to_be_bytes(), from).unwrap()),
            _ => received += 1,
        }
    }
}

/// Bytes that go through TCP.
const TCP_BYTES: usize = 1_000_000;

/// Sends them to who connects; it is killed with the run.
fn send() {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    loop {
        let (mut client, _) = listener.accept().unwrap();
        client.write_all(&sample(TCP_BYTES)).unwrap();
    }
}

/// Says whether they have come as they were.
fn take() {
    let began = Instant::now();
    let mut server = loop {
        match TcpStream::connect(far_address()) {
            Ok(server) => break server,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut bytes = Vec::new();
    server.read_to_end(&mut bytes).unwrap();
    println!("same {}", u64::from(bytes == sample(TCP_BYTES)));
}

/// Answers the first that comes, and never stops.
fn chatter() {
    let socket = far_socket();
    let (_, near) = socket.recv_from(&mut [0]).unwrap();
    for _ in 0.. {
        let _ = socket.send_to(&[1], near);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Says something until something comes.
fn greet() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(far_address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let began = Instant::now();
    while socket.send(&[0]).and_then(|_| socket.recv(&mut [0])).is_err() {
        assert!(began.elapsed() < PATIENCE, "the far end does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn far_address() -> SocketAddr {
    let far = std::env::var("TARGET").or_else(|_| std::env::var("POSTHASTE_FAR"));
    let far: std::net::IpAddr = far.expect("the far end's address is in the environment").parse().unwrap();
    SocketAddr::new(far, PORT)
}

/// A socket to the far end, once somebody answers there.
fn near_socket() -> UdpSocket {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(far_address()).unwrap();
    ask(&socket);
    socket
}

/// Sends one byte until there is an answer, and then waits for the answers to the other ones.
fn ask(socket: &UdpSocket) -> Vec<u8> {
    let began = Instant::now();
    let mut buffer = [0; 2_000];
    let mut answer = None;
    loop {
        assert!(began.elapsed() < PATIENCE, "the far end does not answer");
        if answer.is_none() {
            let _ = socket.send(&[0]);
        }
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        match (socket.recv(&mut buffer), answer.take()) {
            (Ok(length), _) => answer = Some(buffer[..length].to_vec()),
            (Err(_), Some(answer)) => return answer,
            (Err(_), None) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Prints round-trip times in microseconds.
fn ping() {
    let socket = near_socket();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    for index in 0..20_u8 {
        let began = Instant::now();
        socket.send(&[index, 0]).unwrap();
        let mut answer = [0; 2];
        assert_eq!((socket.recv(&mut answer).unwrap(), answer[0]), (2, index));
        println!("rtt {}", began.elapsed().as_micros());
    }
}

/// Sends so many datagrams of 1,000 bytes at once, and prints how many have arrived when no more do.
fn flood() {
    let count: u64 = std::env::var("COUNT").unwrap().parse().unwrap();
    let socket = near_socket();
    for _ in 0..count {
        socket.send(&[7; 1_000]).unwrap();
    }
    let mut last = ask(&socket);
    loop {
        let now = ask(&socket);
        if now == last {
            break println!("arrived {}", u64::from_be_bytes(now.try_into().unwrap()));
        }
        last = now;
    }
}

fn figures(text: &str, name: &str) -> Vec<u64> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix(' '));
    lines.map(|figure| figure.parse().unwrap()).collect()
}

fn a_round_trip_takes_both_delays(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let run = ground.run(&[
        "--down",
        "delay=20ms",
        "--up",
        "delay=10ms",
        "--far",
        &role("echo"),
        "--",
        "sh",
        "-c",
        &role("ping"),
    ]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    let times = figures(&run.stdout, "rtt");
    assert_eq!(times.len(), 20, "{}", run.stdout);
    let least = *times.iter().min().unwrap();
    assert!(least >= 30_000, "nothing is early: {times:?}");
    assert!(!run.is_valid() || least < 35_000, "{times:?}");
    assert!(run.count("up", "delivered") >= 20 && run.count("down", "delivered") >= 20, "{}", run.report);
}

fn paths_are_joined_by_nesting(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let inner = format!(
        "TARGET=$POSTHASTE_FAR \"$POSTHASTE\" emulate -q --device $DEVICE --up delay=15ms --down delay=0ms -- sh -c '{}' || [ $? = 125 ]",
        role("ping")
    );
    let run = ground.run(&[
        "--down",
        "delay=20ms",
        "--up",
        "delay=10ms",
        "--far",
        &role("echo"),
        "--",
        "sh",
        "-c",
        &inner,
    ]);
    let times = figures(&run.stdout, "rtt");
    assert_eq!(times.len(), 20, "{}{}", run.stdout, run.stderr);
    assert!(times.iter().all(|&time| time >= 45_000), "{times:?}");
}

/// The times at which packets were really handed over, from the log.
fn departures(log: &str, direction: &str) -> Vec<f64> {
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("microseconds,direction,event,bytes,queue_bytes,late_microseconds"));
    let fields = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let full = fields.filter(|fields| fields[1] == direction && fields[2] == "out" && fields[3] == "1028");
    full.map(|fields| fields[0].parse::<f64>().unwrap() + fields[5].parse::<f64>().unwrap()).collect()
}

fn the_rate_is_kept_to_a_hundredth(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let run = ground.run(&[
        "--up",
        "rate=20mbit,queue=10MB",
        "--log",
        "log.csv",
        "--far",
        &role("sink"),
        "--",
        "sh",
        "-c",
        &format!("COUNT=4000 {}", role("flood")),
    ]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    let times = departures(&std::fs::read_to_string(ground.path("log.csv")).unwrap(), "up");
    assert_eq!(times.len(), 4_000, "nothing is lost: {}", run.report);
    let expected = 3_999.0 * 1_028.0 * 8.0 / 20.0;
    let taken = times[times.len() - 1] - times[0];
    assert!(!run.is_valid() || (taken / expected - 1.0).abs() < 0.01, "{taken} us instead of {expected}");
    assert!(run.count("up", "peak_queue_bytes") > 3_000_000, "{}", run.report);
}

fn losses_are_those_of_the_model(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let flood = format!("COUNT=600 {}", role("flood"));
    let arguments =
        ["--up", "rate=5mbit,queue=10MB,loss=20%", "--far", &role("sink"), "--", "sh", "-c", &flood];
    let run = ground.run(&arguments);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    let [lost, delivered, offered] = ["lost", "delivered", "offered"].map(|what| run.count("up", what));
    assert_eq!((lost + delivered, run.count("up", "overflowed")), (offered, 0), "{}", run.report);
    // Five standard deviations of 600 draws at 20 %; the questions about the count are lost as well.
    assert!((71..180).contains(&lost), "{}", run.report);
    let arrived = figures(&run.stdout, "arrived")[0];
    assert!((600 - lost..=delivered).contains(&arrived), "{arrived} arrived: {}", run.report);
}

/// Lengths of all packets of a log.
fn lengths(log: &str) -> impl Iterator<Item = u32> {
    log.lines().skip(1).map(|line| line.split(',').nth(3).unwrap().parse().unwrap())
}

fn kernel_tcp_arrives_whole(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let run = ground.run(&[
        "--down",
        "rate=50mbit,delay=5ms,queue=100ms,loss=1%,corrupt=1%",
        "--up",
        "delay=5ms",
        "--log",
        "log.csv",
        "--far",
        &role("send"),
        "--",
        "sh",
        "-c",
        &role("take"),
    ]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    // Noise is found by the receiver alone, by its checksums: they must be right, and no one may mend them.
    assert_eq!(figures(&run.stdout, "same"), [1], "{}{}", run.stdout, run.stderr);
    assert!(run.count("down", "lost") > 0 && run.count("down", "corrupted") > 0, "{}", run.report);
    let log = std::fs::read_to_string(ground.path("log.csv")).unwrap();
    assert_eq!(lengths(&log).max(), Some(1_500), "full packets, and no larger ones");
    // The interface is counted to the last packet: each byte is in one that the path has had.
    assert!(run.count("down", "offered") > (TCP_BYTES / 1_500) as u64, "{}", run.report);
    assert_eq!(run.count("down", "undeliverable"), 0, "{}", run.report);
    assert!(run.report["down"]["lateness_max"].as_f64().unwrap() > 0.0, "{}", run.report);
}

fn what_an_interface_that_is_down_misses_is_counted(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let near = format!("({}) && ip link set posthaste down && sleep 0.7", role("greet"));
    let arguments = ["--down", "delay=20ms", "--far", &role("chatter"), "--", "sh", "-c", &near];
    let run = ground.run(&arguments);
    if run.exit_code() == 127 {
        return eprintln!("SKIPPED, nothing was tested: there is no `ip`: {}", run.stderr);
    }
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    // Those that it could not be given are not counted again as dropped by it; what was in its hands at that instant is.
    let (missed, dropped) = (run.count("down", "undeliverable"), run.count("down", "unaccounted"));
    assert!(missed > 0 && dropped <= missed / 10, "{}", run.report);
}

fn a_user_without_privileges_may_do_it(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let far = role("echo");
    let script = format!(
        "[ $(id -u) = 1000 ] && exec \"$POSTHASTE\" emulate -q --device $DEVICE --json report.json --down delay=20ms \
         --far '{far}' -- sh -c '{}'",
        role("ping")
    );
    let Some(run) = ground.unshared(&["--map-user=1000", "--map-group=1000"], &script) else { return };
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.report["device"], *device, "{}", run.report);
    let times = figures(&run.stdout, "rtt");
    assert!(times.len() == 20 && times.iter().all(|&time| time >= 20_000), "{times:?}");
}

#[test]
fn where_there_is_no_tun_it_is_veth() {
    let Some(ground) = Ground::new("veth") else { return };
    let script = "mount -t tmpfs none /dev/net &&
        ! \"$POSTHASTE\" emulate -q --isolate --device tun -- true 2>message &&
        exec \"$POSTHASTE\" emulate -q --isolate --json report.json -- true";
    let Some(run) = ground.unshared(&["--map-root-user", "--mount"], script) else { return };
    assert_eq!(run.exit_code(), 0, "{}", run.stderr);
    assert_eq!(run.report["device"], "veth", "{}", run.report);
    let message = std::fs::read_to_string(ground.path("message")).unwrap();
    assert!(message.contains("It takes /dev/net/tun") && message.contains("--device veth"), "{message}");
}

#[test]
fn an_interface_among_many_is_counted() {
    let Some(ground) = Ground::new("veth") else { return };
    // The kernel lists them in the order in which they were made, and gives some thirty at once.
    let script =
        "for index in $(seq 40); do ip link add many$index type veth peer name more$index || exit 77; done
        \"$POSTHASTE\" emulate -q --down delay=1ms --json inner.json -- true || [ $? = 125 ]";
    let run = ground.run(&["--", "sh", "-c", script]);
    if [77, 127].contains(&run.exit_code()) {
        return eprintln!("SKIPPED, nothing was tested: `ip` makes no pairs of veth: {}", run.stderr);
    }
    assert_eq!(run.exit_code(), 0, "{}", run.stderr);
    assert!(ground.path("inner.json").exists(), "{}", run.stderr);
}

#[test]
fn a_path_inside_that_leads_nowhere_says_so() {
    const SAID: &str = "what leaves this path gets no further than 198.18.";
    let Some(ground) = Ground::new("veth") else { return };
    let read_only = "mount --rbind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys || exit 77; ";
    for (prepare, is_said) in [(read_only, true), ("", false)] {
        let nested = "\"$POSTHASTE\" emulate -q --isolate -- sh -c '\"$POSTHASTE\" emulate -q -- true'";
        let mut command = ground.program("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &format!("{prepare}{nested}")]);
        let (code, _, stderr) = run(&mut command);
        if ![0, 125].contains(&code) {
            return eprintln!("SKIPPED, nothing was tested: /proc/sys stays writable: {code}: {stderr}");
        }
        assert_eq!(stderr.contains(SAID), is_said, "{stderr}");
    }
}

#[test]
fn both_kinds_get_along() {
    for (outer, inner) in [("tun", "veth"), ("veth", "tun")] {
        let (Some(ground), Some(_)) = (Ground::new(outer), Ground::new(inner)) else { return };
        // One inside the other, and beside one of the other kind.
        let script = format!(
            "far=$POSTHASTE_FAR
             \"$POSTHASTE\" emulate -q --device {outer} -- sleep 1000 & beside=$!
             while ! grep -q posthaste0: /proc/net/dev; do sleep 0.1; done
             TARGET=$far \"$POSTHASTE\" emulate -q --device {inner} --up delay=15ms -- sh -c '{}'; code=$?
             kill $beside
             [ $code = 125 ] || exit $code",
            role("ping")
        );
        let run = ground.run(&["--up", "delay=10ms", "--far", &role("echo"), "--", "sh", "-c", &script]);
        let times = figures(&run.stdout, "rtt");
        assert_eq!((times.len(), run.exit_code()), (20, 0), "{}{}", run.stdout, run.stderr);
        assert!(times.iter().all(|&time| time >= 25_000), "{times:?}");
    }
}

fn a_file_is_fetched_through_it(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    std::fs::create_dir(ground.path("www")).unwrap();
    let content = sample(300_000);
    std::fs::write(ground.path("www/file"), &content).unwrap();
    let run = ground.run(&[
        "--path",
        "good",
        "--far",
        "exec \"$POSTHASTE\" serve www --listen 0.0.0.0:4433 --state state >/dev/null",
        "--",
        "sh",
        "-c",
        "exec \"$POSTHASTE\" get --insecure https://$POSTHASTE_FAR:4433/file -o out",
    ]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    assert!(common::read(&ground.path("out")) == content, "the file is what was served");
    assert!(run.count("down", "delivered_bytes") > 300_000, "{}", run.report);
}

fn a_download_goes_on_when_its_path_is_taken_down(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    std::fs::create_dir(ground.path("www")).unwrap();
    let content = sample(1_500_000);
    std::fs::write(ground.path("www/file"), &content).unwrap();
    // Over the first path alone it would take a second and a half.
    let run = ground.run(&[
        "--down",
        "rate=8mbit,delay=5ms",
        "--up",
        "delay=5ms",
        "--and",
        "good",
        "--leave-after",
        "0.3",
        "--far",
        "exec \"$POSTHASTE\" serve www --listen 0.0.0.0:4433 --state state >/dev/null",
        "--",
        "sh",
        "-c",
        "exec \"$POSTHASTE\" get --insecure https://$POSTHASTE_FAR:4433/file -o out",
    ]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    assert!(common::read(&ground.path("out")) == content, "the file is what was served");
    assert!(run.report["left_at"].as_f64().is_some_and(|at| at > 0.0), "{}", run.report);
    let first = run.count("down", "delivered_bytes");
    let second = run.report["second"]["down"]["delivered_bytes"].as_u64().unwrap();
    // What has come is not fetched again, but for what was under way. How much came first is the machine's business.
    assert!(first > 0 && second > 100_000, "{}", run.report);
    assert!(first + second > content.len() as u64, "{}", run.report);
}

fn the_commands_end_is_the_runs(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    for (script, expected) in [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        assert_eq!(ground.run(&["--", "sh", "-c", script]).exit_code(), expected, "{script}");
    }
    let run = ground.run(&["--", "./nosuch"]);
    assert_eq!(run.exit_code(), 127);
    assert!(run.stderr.contains("cannot run ./nosuch"), "{}", run.stderr);
    std::fs::write(ground.path("text"), "no program").unwrap();
    assert_eq!(ground.run(&["--", "./text"]).exit_code(), 126);
}

/// Waits until a process is no more.
fn is_gone(process: u32) -> bool {
    let began = Instant::now();
    let is_there = || {
        // A zombie is gone, too: whoever adopted it has yet to look.
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok();
        stat.is_some_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
    };
    while is_there() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Starts a run whose command has a child of its own, and sends the run's process a signal.
fn interrupted(device: &str, signal: &str, stdin: Stdio) -> Option<(std::process::ExitStatus, bool)> {
    let ground = Ground::new(device)?;
    let script = "sleep 1000 & echo $!; echo $$; wait";
    let mut child = ground
        .command(&["--far", "exec sleep 1001", "--", "sh", "-c", script])
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut process = || lines.next().unwrap().unwrap().parse().unwrap();
    let processes: [u32; 2] = [process(), process()];
    send_signal(child.id(), signal);
    let status = wait(&mut child);
    // Those that nothing but the run's own death ends are its command and the far end; the kernel sees to these.
    let must_go = if signal == "KILL" { &processes[1..] } else { &processes[..] };
    let all_gone = must_go.iter().all(|&process| is_gone(process));
    if signal == "KILL" {
        send_signal(processes[0], "KILL");
    }
    Some((status, all_gone))
}

fn ctrl_c_ends_all_of_it(device: &str) {
    // The end of a terminal that no one uses is one: whoever has it as its stdin has not been sent this by it.
    let terminal = || {
        std::fs::File::options().read(true).write(true).open("/dev/ptmx").map_or(Stdio::null(), Stdio::from)
    };
    for (signal, stdin, code) in
        [("INT", Stdio::null(), 130), ("TERM", Stdio::null(), 143), ("INT", terminal(), 130)]
    {
        let Some((status, all_gone)) = interrupted(device, signal, stdin) else { return };
        assert!([Some(code), Some(125)].contains(&status.code()), "{signal}: {status}");
        assert!(all_gone, "{signal}: something still runs");
    }
}

fn a_killed_run_takes_its_command_along(device: &str) {
    let Some((_, all_gone)) = interrupted(device, "KILL", Stdio::null()) else { return };
    assert!(all_gone, "the command still runs");
}

fn what_the_command_leaves_behind_is_no_zombie(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    // Each loses its parent at once and comes to the run's process, which is COMMAND's parent.
    let script = "
        zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c \") Z $PPID \"; }
        await() { n=0; while ! eval \"$1\"; do n=$((n+1)); [ $n -lt 600 ] || exit 9; sleep 0.1; done; }
        for index in 1 2 3; do (sh -c 'echo $PPID >>orphans; sleep 0.2; echo over >>over' &); done
        await '[ \"$(wc -l <over)\" = 3 ]'
        await '[ $(zombies) = 0 ]'
        exit 7";
    std::fs::write(ground.path("over"), "").unwrap();
    let run = ground.run(&["--", "sh", "-c", script]);
    assert_eq!(run.exit_code(), 7, "{}{}", run.stdout, run.stderr);
}

/// Counts interfaces from inside a namespace in which other runs come and go.
fn no_interface_stays(device: &str) {
    let Some(ground) = Ground::new(device) else { return };
    let script = "
        count() { grep -c 'posthaste[0-9]:' /proc/net/dev; }
        await() { n=0; while [ \"$(count)\" != $1 ]; do n=$((n+1)); [ $n -lt 600 ] || exit 9; sleep 0.1; done; }
        for signal in TERM KILL; do
            await 0
            \"$POSTHASTE\" emulate -q --device $DEVICE --down delay=1ms -- sleep 1000 & first=$!
            \"$POSTHASTE\" emulate -q --device $DEVICE --down delay=1ms -- sleep 1000 & second=$!
            await 2
            kill -$signal $first; wait $first; await 1
            kill -$signal $second; wait $second; await 0
        done
        \"$POSTHASTE\" emulate -q --device $DEVICE --down delay=1ms -- sh -c 'kill -KILL $$'; echo crash $?
        echo left $(count)";
    let run = ground.run(&["--", "sh", "-c", script]);
    assert_eq!(run.exit_code(), 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(figures(&run.stdout, "left"), [0], "{}{}", run.stdout, run.stderr);
    assert!([137, 125].contains(&figures(&run.stdout, "crash")[0]), "{}", run.stdout);
}

#[test]
fn wrong_use_is_explained() {
    for (arguments, expected) in [
        (&["--path", "nosuch", "--", "true"][..], "there is no path `nosuch`; there are: good"),
        (&["--down", "speed=1mbit", "--", "true"], "--down: there is no key `speed`"),
        (&["--down", "tremor=5ms", "--", "true"], "a path file has more"),
        (&["--up", "loss=2", "--", "true"], "--up: "),
        (&["--json", "/nosuch/report.json", "--", "true"], "/nosuch/report.json"),
        (&["--log", "/nosuch/log.csv", "--", "true"], "cannot write the log"),
        (&["--path", "good"], "COMMAND"),
        (&["--and", "nosuch", "--", "true"], "there is no path `nosuch`"),
        (&["--leave-after", "1", "--", "true"], "--and"),
        (&["--meter", "loud", "--", "true"], "loud"),
        (&["--device", "tap", "--", "true"], "[possible values: tun, veth]"),
    ] {
        let (code, _, stderr) = run(posthaste().arg("emulate").args(arguments));
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}
