//! A server, its folders and its clients.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Figure;
use crate::Result;
use crate::process::Running;
use crate::workspace::{cargo, run, target};

/// Nothing on loopback takes this long unless it hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of the file that live clients fetch.
const SMALL: usize = 10_000;
/// Bytes of a file that no buffers on the way hold.
pub(super) const BIG: usize = 32_000_000;
/// Bytes of a file that the buffers of a client hold, and a pipe does not.
pub(super) const MEDIUM: usize = 150_000;
/// Seconds that no fetch of a live client takes, however busy the machine: those that wait for what others hold take longer.
const HELD_UP: f64 = 10.0;

/// Folders of one case.
pub(super) struct Scene {
    folder: TempDir,
    pub(super) program: PathBuf,
    /// Where [`build_clients`] has put them.
    pub(super) clients: PathBuf,
}

/// A server that runs.
pub(super) struct Served {
    pub(super) running: Running,
    pub(super) address: SocketAddr,
    pub(super) certificate: String,
}

/// What a live client has seen.
pub(super) struct Live {
    fetches: f64,
    /// The slowest fetch over a connection that is kept, in seconds.
    kept: f64,
    /// And over a new one.
    new: f64,
    /// Fetches that took longer than 100 ms.
    late: f64,
}

impl Scene {
    pub(super) fn new(program: &Path, clients: &Path) -> Result<Self> {
        let (program, clients) = (program.to_owned(), clients.to_owned());
        let scene = Self { folder: tempfile::tempdir()?, program, clients };
        for name in ["www", "in", "logs"] {
            fs::create_dir(scene.path(name))?;
        }
        for (name, length) in [("small", SMALL), ("medium", MEDIUM), ("big", BIG)] {
            scene.publish(name, &vec![7; length])?;
        }
        Ok(scene)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn publish(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path("www").join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(path, content)?)
    }

    /// The command of a server on a free port.
    pub(super) fn serve_command(&self, more: &[&str]) -> Command {
        let mut command = self.posthaste("serve");
        command.arg(self.path("www")).args(["--json", "--listen", "127.0.0.1:0", "--state"]);
        command.arg(self.path("state")).args(more);
        command
    }

    /// A server that listens.
    pub(super) fn serve(&self, more: &[&str]) -> Result<Served> {
        let mut running = Running::spawn(&mut self.serve_command(more), "server", &self.path("logs"))?;
        let start =
            running.wait_for(PATIENCE, |line| serde_json::from_str::<serde_json::Value>(line).ok())?;
        let text = |field: &str| start[field].as_str().ok_or("the server does not say where it listens");
        let (address, certificate) = (text("address")?.parse()?, text("certificate")?.to_owned());
        Ok(Served { running, address, certificate })
    }

    fn posthaste(&self, command: &str) -> Command {
        let mut posthaste = Command::new(&self.program);
        posthaste.arg(command).env_remove("RUST_LOG").stderr(Stdio::null());
        posthaste
    }

    /// A client that trusts the server.
    pub(super) fn get(&self, served: &Served, name: &str) -> Command {
        self.get_at(served, served.address, name)
    }

    /// The same by another way.
    pub(super) fn get_at(&self, served: &Served, address: SocketAddr, name: &str) -> Command {
        let mut get = self.posthaste("get");
        get.args(["--ca", &served.certificate, &format!("https://{address}/{name}")]);
        get
    }

    /// Clients that ask for a file and read nothing of it. They end with the guard.
    pub(super) fn stalled(&self, served: &Served, name: &str, count: usize) -> Result<Vec<Reader>> {
        let spawn = |_| Ok(Reader(self.get(served, name).stdout(Stdio::piped()).spawn()?));
        (0..count).map(spawn).collect()
    }

    /// Does `work` while a client fetches a small file again and again.
    ///
    /// # Errors
    /// A fetch failed or was held up, or `work` failed.
    pub(super) fn live_during<T>(
        &self,
        served: &Served,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, Live)> {
        let mut client = Command::new(self.clients.join("live"));
        client.args(["--ca", &served.certificate, "--url", &format!("https://{}/small", served.address)]);
        client.args(["--bytes", &SMALL.to_string()]);
        let logs = self.path("logs");
        let mut client = Running::spawn(&mut client, "live", &logs)?;
        client.wait_for(PATIENCE, |line| (line == "begun").then_some(()))?;
        let done = work();
        client.close_stdin();
        if !client.wait(PATIENCE)?.success() {
            return Err(format!("a live client: {}", fs::read_to_string(logs.join("live.stderr"))?).into());
        }
        let live = client.output()?.lines().find_map(Live::read).ok_or("no figures of the live client")?;
        if live.kept.max(live.new) > HELD_UP {
            return Err(format!("a live client waited for {:.1} s", live.kept.max(live.new)).into());
        }
        Ok((done?, live))
    }
}

impl Live {
    /// From the line that the client prints in the end.
    fn read(line: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix("served ")?.split(' ').map_while(|word| word.parse::<f64>().ok());
        let mut next = || numbers.next();
        Some(Self { fetches: next()?, kept: next()?, new: next()?, late: next()? })
    }

    pub(super) fn figures(&self) -> [Figure; 4] {
        [
            ("live fetches", self.fetches, ""),
            ("of them after more than 100 ms", self.late, ""),
            ("slowest of a connection that is kept", self.kept, "s"),
            ("of a new one", self.new, "s"),
        ]
    }
}

/// The examples that are clients here, built as `cargo test` builds them: with the features of the whole
/// workspace nothing is compiled twice.
pub(super) fn build_clients() -> Result<PathBuf> {
    let examples =
        ["live", "crowd", "careless", "edge_crowd"].into_iter().flat_map(|name| ["--example", name]);
    run(cargo().args(["build", "--quiet", "--workspace"]).args(examples))?;
    Ok(target().join("debug/examples"))
}

/// A client whose output is a pipe; killed when it is dropped.
pub(super) struct Reader(pub(super) Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The value of `condition` as soon as it has one.
pub(super) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if let Some(value) = condition()? {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("waited for {what} in vain").into())
}
