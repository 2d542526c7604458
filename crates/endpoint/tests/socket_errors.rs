//! Errors of real sockets, made by the kernel: rules and links of a network namespace that each test makes.
//!
//! A test starts this program once more inside a namespace, by `unshare`, and there alone the second part of it runs.
//! Where namespaces are not permitted, or `unshare`, `ip` or `ss` is missing, it says so and is skipped.

use std::io::{BufRead as _, Write as _};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_endpoint::{Connection, Endpoint, RecvStream, SendStream};
use tokio::time::Instant;
use tracing::field::{Field, Visit};

use crate::common::Pair;

/// Set in the namespace.
const INSIDE: &str = "POSTHASTE_TEST_NAMESPACE";
/// The server's and the client's address, on the namespace's loopback interface.
const ADDRESS: &str = "10.9.9.1:0";
/// Everything must have happened by then: the longest wait is the one of 10 s before a socket is replaced.
const PATIENCE: Duration = Duration::from_secs(40);

/// True in the namespace. Outside, runs the test there and judges what it says.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let tools =
        "ip link set lo up && ip addr add 10.9.9.1/32 dev lo && ip rule add pref 9 lookup local && ss -h";
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--map-root-user"]);
        command
    };
    let tried = unshare().args(["sh", "-c", tools]).output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        let why = tried
            .map_or_else(|error| error.to_string(), |tried| String::from_utf8_lossy(&tried.stderr).into());
        // Past the capture of a test's output, so that it is seen.
        let _ =
            writeln!(std::io::stderr(), "skipped: {test}: no network namespace with rules: {}", why.trim());
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let name = format!("socket_errors::{test}");
    let inside =
        unshare().arg(program).args(["--exact", &name, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&inside.stdout) + String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Runs a command of the namespace.
fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).stdout(std::process::Stdio::null()).status();
    assert!(status.unwrap().success(), "{command}");
}

/// Rules come before the table of local addresses, so that they can refuse those.
fn prepare() {
    for command in [
        "ip link set lo up",
        "ip addr add 10.9.9.1/32 dev lo",
        "ip rule add pref 100 lookup local",
        "ip rule del pref 0",
    ] {
        run(command);
    }
}

/// The warnings of the endpoint that contain some words.
#[derive(Default)]
struct Warnings {
    sending: AtomicUsize,
    receiving: AtomicUsize,
    replaced: AtomicUsize,
}

impl Warnings {
    /// Counts from now on, in this whole process.
    fn counted() -> Arc<Self> {
        let warnings = Arc::new(Self::default());
        tracing::subscriber::set_global_default(Counter(Arc::clone(&warnings))).unwrap();
        warnings
    }

    fn counts(&self) -> [usize; 3] {
        [&self.sending, &self.receiving, &self.replaced].map(|count| count.load(Ordering::Relaxed))
    }
}

struct Counter(Arc<Warnings>);

impl tracing::Subscriber for Counter {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl Visit for Text {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        let counts = [
            ("a datagram was not sent", &self.0.sending),
            ("the socket reports an error", &self.0.receiving),
            ("was replaced", &self.0.replaced),
        ];
        for (words, count) in counts {
            count.fetch_add(usize::from(text.0.contains(words)), Ordering::Relaxed);
        }
    }
}

/// A connection whose server sends everything back.
struct Echo {
    pair: Pair,
    /// Dropped, they would close.
    _ends: [Connection; 2],
    send: SendStream,
    recv: RecvStream,
}

impl Echo {
    async fn start() -> Self {
        let default = posthaste_endpoint::default_transport;
        let pair = Pair::at(ADDRESS, default(), default());
        let (client, server) = pair.connect().await;
        let (send, recv) = client.open_bi().await.unwrap();
        let serving = server.clone();
        tokio::spawn(async move {
            let (mut send, mut recv) = serving.accept_bi().await.unwrap();
            while let Ok(Some(data)) = recv.read_chunk(usize::MAX).await {
                send.write_bytes(data).await.unwrap();
            }
        });
        Self { pair, _ends: [client, server], send, recv }
    }

    /// Sends a byte, without waiting for what comes back.
    async fn say(&mut self, byte: u8) {
        self.send.write_all(&[byte]).await.unwrap();
    }

    /// What was said comes back.
    async fn hear(&mut self, bytes: &[u8]) {
        let mut heard = vec![0; bytes.len()];
        let mut filled = 0;
        let reading = async {
            while filled < heard.len() {
                filled += self.recv.read(&mut heard[filled..]).await.unwrap().expect("no end");
            }
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the connection is stuck");
        assert_eq!(heard, bytes);
    }

    fn ends(&self) -> [&Endpoint; 2] {
        [&self.pair.client, &self.pair.server]
    }
}

/// Waits for something that must come.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A pair that has spoken, and the count of its warnings.
async fn connected() -> (Arc<Warnings>, Echo) {
    prepare();
    let warnings = Warnings::counted();
    let mut echo = Echo::start().await;
    echo.say(1).await;
    echo.hear(&[1]).await;
    (warnings, echo)
}

#[tokio::test]
async fn sends_that_the_kernel_refuses_are_counted_logged_once_and_survived() {
    if !is_inside("sends_that_the_kernel_refuses_are_counted_logged_once_and_survived") {
        return;
    }
    prepare();
    let warnings = Warnings::counted();
    let mut echo = Echo::start().await;
    // EACCES, ENETUNREACH and EINVAL.
    for (said, rule) in (0..).zip(["prohibit", "unreachable", "blackhole"]) {
        echo.say(said).await;
        echo.hear(&[said]).await;
        let before = echo.ends().map(|end| end.socket_stats().send_errors);
        run(&format!("ip rule add pref 10 {rule} to 10.9.9.1"));
        echo.say(100 + said).await;
        let ends = echo.ends();
        until("errors of the client", || ends[0].socket_stats().send_errors >= before[0] + 3).await;
        run("ip rule del pref 10");
        echo.hear(&[100 + said]).await;
    }
    for end in echo.ends() {
        assert_eq!((end.socket_stats().replacements, end.socket_stats().receive_errors), (0, 0));
    }
    let logging = echo.ends().iter().filter(|end| end.socket_stats().send_errors > 0).count();
    assert_eq!(
        warnings.counts(),
        [logging, 0, 0],
        "one warning for each socket with errors, however many they are"
    );
}

#[tokio::test]
async fn after_ten_seconds_of_refused_sends_the_socket_is_replaced_and_the_connection_goes_on() {
    if !is_inside("after_ten_seconds_of_refused_sends_the_socket_is_replaced_and_the_connection_goes_on") {
        return;
    }
    let (warnings, mut echo) = connected().await;
    let address = echo.pair.client.local_addr().unwrap();
    run("ip rule add pref 10 prohibit to 10.9.9.1");
    let began = Instant::now();
    echo.say(2).await;
    let client = echo.pair.client.clone();
    until("another socket", || client.socket_stats().replacements > 0).await;
    assert!(began.elapsed() >= Duration::from_secs(10), "{:?}", began.elapsed());
    run("ip rule del pref 10");
    echo.hear(&[2]).await;
    assert_eq!(client.local_addr().unwrap(), address);
    assert!(warnings.counts()[2] >= 1, "it is said");
}

#[tokio::test]
async fn a_client_whose_socket_the_kernel_aborts_sees_one_error_and_goes_on() {
    if !is_inside("a_client_whose_socket_the_kernel_aborts_sees_one_error_and_goes_on") {
        return;
    }
    let (warnings, mut echo) = connected().await;
    // ECONNABORTED, as Android makes it for the sockets of a network that is gone. The socket loses its port with it, and gets
    // another when it sends: the server sees its client move.
    let (client, server) = (echo.pair.client.clone(), echo.pair.server.clone());
    run(&format!("ss --kill --udp --all sport = :{}", client.local_addr().unwrap().port()));
    // Nothing is to be read and nothing sent: the error alone wakes the driver.
    until("the error", || client.socket_stats().receive_errors > 0).await;
    echo.say(2).await;
    echo.hear(&[2]).await;
    let stats = client.socket_stats();
    assert_eq!((stats.send_errors, stats.receive_errors, stats.replacements), (0, 1, 0), "{stats:?}");
    assert_eq!(server.socket_stats().receive_errors + server.socket_stats().send_errors, 0);
    assert_eq!(warnings.counts(), [0, 1, 0], "one warning");
}

/// The kernel answers each receive of this process with an error, until this is dropped.
struct NothingReceived(std::process::Child);

impl NothingReceived {
    /// `None` where no process may be traced.
    fn begin() -> Option<Self> {
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-e",
            "trace=recvmmsg",
            "-e",
            "inject=recvmmsg:error=ENOBUFS",
            "-o",
            "/dev/null",
        ]);
        command.arg("-p").arg(std::process::id().to_string());
        let mut tracer = command.stderr(std::process::Stdio::piped()).spawn().ok()?;
        let mut said = String::new();
        let mut lines = std::io::BufReader::new(tracer.stderr.take()?);
        let is_attached = lines.read_line(&mut said).is_ok() && said.contains("attached");
        let tracing = Self(tracer);
        is_attached.then_some(tracing)
    }
}

impl Drop for NothingReceived {
    /// The process goes on when its tracer has ended.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn after_ten_seconds_of_refused_receives_the_socket_is_replaced_and_the_connection_goes_on() {
    if !is_inside("after_ten_seconds_of_refused_receives_the_socket_is_replaced_and_the_connection_goes_on") {
        return;
    }
    let (warnings, mut echo) = connected().await;
    // Until neither end has anything to say.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let server = echo.pair.server.clone();
    let address = server.local_addr().unwrap();
    let Some(refusing) = NothingReceived::begin() else {
        let _ = writeln!(std::io::stderr(), "skipped in part: nothing is traced here");
        return;
    };
    let began = Instant::now();
    // Arrives at the server, which cannot read it: the client hears nothing.
    echo.say(2).await;
    until("another socket", || server.socket_stats().replacements > 0).await;
    assert!(began.elapsed() >= Duration::from_secs(10), "{:?}", began.elapsed());
    drop(refusing);
    let stats = server.socket_stats();
    assert_eq!((stats.send_errors, stats.replacements), (0, 1), "{stats:?}");
    // 64 in a row are looked at at once, the others after waits that become longer; the new socket begins anew.
    assert!((65..200).contains(&stats.receive_errors), "{stats:?}");
    assert_eq!(warnings.counts(), [0, 1, 1], "the first error and the replacement are said, each once");
    echo.hear(&[2]).await;
    assert_eq!(server.local_addr().unwrap(), address);
    let client = echo.pair.client.socket_stats();
    assert_eq!((client.receive_errors, client.send_errors), (0, 0), "{client:?}");
}
