//! Downloads beside the page, through the same bottleneck: iperf3 at both ends of the path.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::exit::Failure;

/// The program.
const PROGRAM: &str = "iperf3";

/// TCP port at the far end: iperf3's own.
const PORT: u16 = 5_201;

/// What the flows' sender is told to use, whatever the machine's default is.
const CONTROLLER: &str = "cubic";

/// The page is asked for when the downloads have run for so long: slow start is over, and the queue has been full.
const HEAD_START: Duration = Duration::from_secs(2);

/// A server's start and its answers take less.
const PATIENCE: Duration = Duration::from_secs(20);

/// Longer than any run.
const SECONDS: &str = "7200";

/// What its report lacks of a second is not waited for.
const GRACE: Duration = Duration::from_secs(5);

const TICK: Duration = Duration::from_millis(20);

/// Refuses what cannot be measured here.
pub(super) fn check(flows: u16, has_path: bool) -> Result<(), Failure> {
    if flows == 0 {
        return Ok(());
    }
    if !has_path {
        return Err(Failure::usage(
            "--background needs a path: without one there is no far end to download from",
        )
        .hint("omit --path none or --background"));
    }
    let is_there =
        Command::new(PROGRAM).arg("--version").output().is_ok_and(|output| output.status.success());
    if is_there {
        return Ok(());
    }
    Err(Failure::runtime(format!("--background needs {PROGRAM}, which is not installed"))
        .hint(format!("install it (Debian, Ubuntu: apt-get install {PROGRAM}), or omit --background")))
}

/// One word for people; empty without flows.
pub(super) fn describe(flows: u16) -> String {
    match flows {
        0 => String::new(),
        1 => ", with a background iperf3 download (CUBIC)".to_owned(),
        flows => format!(", with {flows} background iperf3 downloads (CUBIC)"),
    }
}

/// The shell command of the far end.
pub(super) fn server() -> String {
    format!("exec {PROGRAM} --server --port {PORT} >/dev/null 2>&1")
}

/// Downloads under way. Dropped, they end.
#[derive(Debug)]
pub(super) struct Downloads {
    child: Child,
    report: PathBuf,
}

/// What of iperf3's report is needed.
#[derive(Debug, Deserialize)]
struct Report {
    end: End,
}

#[derive(Debug, Deserialize)]
struct End {
    sum_received: Sum,
}

#[derive(Debug, Deserialize)]
struct Sum {
    bits_per_second: f64,
}

impl Downloads {
    /// Starts so many from the far end, and returns when they have their head start.
    pub(super) fn start(flows: u16, far: &str, folder: &Path) -> Result<Self, String> {
        let report = folder.join("background.json");
        let began = Instant::now();
        loop {
            let mut this = Self { child: client(flows, far, &report)?, report: report.clone() };
            let has_run = Instant::now() + HEAD_START;
            while this.is_running()? && Instant::now() < has_run {
                std::thread::sleep(TICK);
            }
            // It ends at once where nobody listens yet.
            if this.is_running()? {
                return Ok(this);
            }
            if began.elapsed() > PATIENCE {
                let text = std::fs::read_to_string(&this.report).unwrap_or_default();
                return Err(format!("the background downloads do not start: {}", text.trim()));
            }
            std::thread::sleep(TICK);
        }
    }

    fn is_running(&mut self) -> Result<bool, String> {
        self.child.try_wait().map(|status| status.is_none()).map_err(|error| error.to_string())
    }

    /// Ends them; bits per second of all together since they began. An error if they had ended by themselves.
    pub(super) fn finish(mut self) -> Result<f64, String> {
        let was_running = self.is_running()?;
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let began = Instant::now();
        while self.is_running()? && began.elapsed() < GRACE {
            std::thread::sleep(TICK);
        }
        let text = std::fs::read(&self.report).map_err(|error| error.to_string())?;
        if !was_running {
            let said = String::from_utf8_lossy(&text);
            return Err(format!("the background downloads were interrupted: {}", said.trim()));
        }
        let report = serde_json::from_slice::<Report>(&text);
        report
            .map(|report| report.end.sum_received.bits_per_second)
            .map_err(|error| format!("{PROGRAM} has left no report: {error}"))
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(flows: u16, far: &str, report: &Path) -> Result<Child, String> {
    let failed = |error: std::io::Error| format!("cannot start {PROGRAM}: {error}");
    let output = File::create(report).map_err(failed)?;
    let port = PORT.to_string();
    Command::new(PROGRAM)
        .args(["--client", far, "--port", &port, "--reverse", "--parallel", &flows.to_string()])
        .args(["--time", SECONDS, "--congestion", CONTROLLER, "--json"])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)
}
