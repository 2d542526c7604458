//! A server with one file of known content, and visitors of it (`crates/http/examples/visitors.rs`), for
//! `adverse --sockets` and `soak`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::process::Running;
use crate::workspace::{cargo, run, target};

/// For a server to say where it listens.
pub(crate) const START: Duration = Duration::from_secs(30);
/// For a server to end after SIGTERM: its own time for clients that still read, and a busy machine's.
pub(crate) const END: Duration = Duration::from_secs(40);

/// The binary, and visitors of what it serves.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) posthaste: PathBuf,
    pub(crate) visitors: PathBuf,
}

impl Programs {
    /// With this binary. The visitors are built as `cargo test` builds them: nothing is compiled twice.
    pub(crate) fn with(posthaste: PathBuf) -> Result<Self> {
        run(cargo().args(["build", "--quiet", "--workspace", "--example", "visitors"]))?;
        Ok(Self { posthaste, visitors: target().join("debug/examples/visitors") })
    }
}

/// A server that runs, and its folder.
pub(crate) struct Site {
    folder: TempDir,
    programs: Programs,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    pub(crate) server: Running,
    pub(crate) address: SocketAddr,
    certificate: String,
    starts: u32,
}

/// How many visitors there were, and how they ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visits {
    pub(crate) all: u64,
    pub(crate) whole: u64,
    pub(crate) moved: u64,
    pub(crate) reset: u64,
    pub(crate) uploads: u64,
    pub(crate) failed: u64,
}

impl Site {
    /// Serves a file of so many bytes on a free port.
    pub(crate) fn start(programs: &Programs, bytes: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["www", "in", "logs"] {
            fs::create_dir(folder.path().join(name))?;
        }
        fs::write(folder.path().join("www/file"), content(bytes))?;
        let (server, address, certificate) = listen(programs, folder.path(), "127.0.0.1:0", "server-0")?;
        Ok(Self { folder, programs: programs.clone(), bytes, server, address, certificate, starts: 0 })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Kills the server, and starts another at its address.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.server.kill()?;
        // Its socket is closed when it has ended, which on a busy machine takes its time.
        self.server.wait(END)?;
        self.starts += 1;
        let (address, name) = (self.address.to_string(), format!("server-{}", self.starts));
        (self.server, _, _) = listen(&self.programs, self.folder.path(), &address, &name)?;
        Ok(())
    }

    /// A client that fetches the file by way of an address into `in/file`, and goes on where an earlier one ended.
    pub(crate) fn get(&self, by: SocketAddr) -> Command {
        let mut get = Command::new(&self.programs.posthaste);
        get.env_remove("RUST_LOG").args(["get", "--continue", "--ca", &self.certificate]);
        get.arg(format!("https://{by}/file")).arg("-o").arg(self.path("in/file"));
        get
    }

    /// Visitors by way of an address; their output goes to `logs/NAME.stdout`.
    pub(crate) fn visitors(
        &self,
        by: SocketAddr,
        name: &str,
        [connections, at_once, seed]: [u64; 3],
    ) -> Result<Running> {
        let mut visitors = Command::new(&self.programs.visitors);
        visitors.args(["--ca", &self.certificate, "--url", &format!("https://{by}/file")]);
        let numbers = [
            ("--bytes", self.bytes),
            ("--connections", connections),
            ("--at-once", at_once),
            ("--seed", seed),
        ];
        for (option, number) in numbers {
            visitors.args([option, &number.to_string()]);
        }
        Running::spawn(&mut visitors, name, &self.path("logs"))
    }

    /// Ends the server.
    ///
    /// # Errors
    /// It does not end, or not well, or a server of this site has panicked.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.server.terminate();
        let status = self.server.wait(END)?;
        if !status.success() {
            return Err(format!("the server ended with {status}").into());
        }
        for start in 0..=self.starts {
            let said = fs::read_to_string(self.path(&format!("logs/server-{start}.stderr")))?;
            if said.contains("panicked") {
                return Err(format!("the server: {said}").into());
            }
        }
        Ok(())
    }
}

impl Visits {
    /// Counts further visitors.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { all, whole, moved, reset, uploads, failed } = other;
        self.all += all;
        self.whole += whole;
        self.moved += moved;
        self.reset += reset;
        self.uploads += uploads;
        self.failed += failed;
    }

    /// From the visitors' output, and why those failed that did.
    ///
    /// # Errors
    /// They did not come to their end.
    pub(crate) fn read(output: &str) -> Result<(Self, Vec<String>)> {
        let failures = output.lines().filter_map(|line| line.strip_prefix("failed ")).map(str::to_owned);
        let line = output.lines().find_map(|line| line.strip_prefix("visited "));
        let line = line.ok_or("the visitors have not said how it went")?;
        let numbers = line.split(' ').map(str::parse).collect::<std::result::Result<Vec<u64>, _>>()?;
        let [all, whole, moved, reset, uploads, failed] = numbers[..] else {
            return Err(format!("visitors said {line}").into());
        };
        Ok((Self { all, whole, moved, reset, uploads, failed }, failures.collect()))
    }
}

/// What the visitors expect: each byte depends on its offset.
pub(crate) fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|offset| (offset ^ offset >> 8 ^ offset >> 16) as u8).collect()
}

fn listen(
    programs: &Programs,
    folder: &Path,
    address: &str,
    name: &str,
) -> Result<(Running, SocketAddr, String)> {
    let mut serve = Command::new(&programs.posthaste);
    serve.env_remove("RUST_LOG").arg("serve").arg(folder.join("www")).args(["--json", "--no-access-log"]);
    serve.args(["--listen", address, "--state"]).arg(folder.join("state"));
    let mut running = Running::spawn(&mut serve, name, &folder.join("logs"))?;
    let (start, address) = read_start(&mut running, folder, name)?;
    let certificate =
        start["certificate"].as_str().ok_or("the server does not say what to trust")?.to_owned();
    Ok((running, address, certificate))
}

/// What a server of this name says when it has started, and where it listens.
pub(crate) fn read_start(running: &mut Running, folder: &Path, name: &str) -> Result<(Value, SocketAddr)> {
    let start = running.wait_for(START, |line| serde_json::from_str::<Value>(line).ok());
    let start = start.map_err(|error| {
        let said = fs::read_to_string(folder.join(format!("logs/{name}.stderr"))).unwrap_or_default();
        format!("{error}: {}", said.trim())
    })?;
    let address = start["address"].as_str().ok_or("the server does not say where it listens")?.parse()?;
    Ok((start, address))
}
