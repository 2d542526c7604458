//! A state directory of which one file is damaged: the server says so and begins anew, or refuses to start with a reason.
//! It never panics, and the other files stay as they are.
#![cfg(unix)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Folders, Server, free_port, path_of_30_ms, read, run, sample, wait};
use posthaste_emulator::UdpRelay;

/// Enough for a server to learn something of the path.
const SIZE: usize = 3_000_000;

/// Damages of each kind that is drawn.
const DRAWN: u64 = 3;

#[derive(Debug, Clone, Copy)]
enum Damage {
    /// Some bytes, drawn from a seed, are others.
    Flipped(u64),
    /// So many eighths of the file are left.
    Cut(usize),
    /// A folder in its place.
    Folder,
}

impl Damage {
    fn all() -> impl Iterator<Item = Self> {
        let cuts = [0, 1, 4, 7].map(Self::Cut);
        (1..=DRAWN).map(Self::Flipped).chain(cuts).chain([Self::Folder])
    }

    fn apply(self, file: &Path) {
        let mut bytes = read(file);
        match self {
            Self::Flipped(seed) => {
                let drawn = sample(4096 * DRAWN as usize);
                let mut numbers =
                    drawn.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()));
                for number in numbers.by_ref().skip(seed as usize * 100).take(8 * seed as usize) {
                    let place = (number >> 8) as usize % bytes.len();
                    bytes[place] ^= (number as u8).max(1);
                }
                std::fs::write(file, bytes).unwrap();
            }
            Self::Cut(eighths) => std::fs::write(file, &bytes[..bytes.len() * eighths / 8]).unwrap(),
            Self::Folder => {
                std::fs::remove_file(file).unwrap();
                std::fs::create_dir(file).unwrap();
            }
        }
    }
}

/// A state directory as a server has left it.
struct Stage {
    folders: Folders,
    listen: String,
    sessions: String,
    whole: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let folders = Folders::new();
        folders.publish("file", &sample(SIZE));
        let port = free_port();
        let (listen, sessions) = (format!("127.0.0.1:{port}"), format!("sessions-{port}"));
        let whole = folders.path("whole");
        let stage = Self { folders, listen, sessions, whole };
        let server = Server::start_at(&stage.folders, &stage.listen, &["--profile", "history"]);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let relay = runtime.block_on(UdpRelay::start(path_of_30_ms(&stage.listen))).unwrap();
        stage.fetch(&server, &format!("https://{}/file", relay.local_addr()));
        stop(server);
        drop(relay);
        std::fs::rename(stage.state(), &stage.whole).unwrap();
        assert_eq!(shown(&stage.whole).0, 1);
        stage
    }

    fn state(&self) -> PathBuf {
        self.folders.path("state")
    }

    fn fetch(&self, server: &Server, url: &str) {
        let target = self.folders.path("in").join("copy");
        let mut get = server.get();
        get.args(["--repeat", "2", "--state"]).arg(self.folders.path("client"));
        let (code, _, stderr) = run(get.arg("-o").arg(&target).arg(url));
        assert_eq!(code, 0, "{stderr}");
        assert!(read(&target) == sample(SIZE), "another file");
    }

    /// A fresh copy of the state, of which `name` is damaged.
    fn damage(&self, name: &str, damage: Damage) {
        let _ = std::fs::remove_dir_all(self.state());
        let copied = Command::new("cp").arg("-a").args([&self.whole, &self.state()]).status().unwrap();
        assert!(copied.success());
        damage.apply(&self.state().join(name));
    }

    /// The server starts, answers, and ends in order; what it has said.
    fn serves(&self) -> String {
        let mut server = Server::start_at(&self.folders, &self.listen, &["--profile", "history"]);
        self.fetch(&server, &server.url("file"));
        let stderr = server.child.stderr.take().unwrap();
        stop(server);
        std::io::read_to_string(stderr).unwrap()
    }

    /// The server does not start; what it has said.
    fn refuses(&self) -> String {
        let mut serve = common::posthaste();
        serve.arg("serve").arg(self.folders.path("www"));
        serve.args(["--listen", &self.listen, "--profile", "history", "--state"]).arg(self.state());
        let mut child = serve.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert_eq!(wait(&mut child).code(), Some(1));
        std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
    }

    /// The files but the damaged one are what they were, or have grown by what the server has learnt since.
    fn check_others(&self, damaged: &str) {
        for name in ["secret", "localhost.pem"].into_iter().filter(|name| *name != damaged) {
            assert!(read(&self.state().join(name)) == read(&self.whole.join(name)), "{name} is another");
        }
        if damaged != self.sessions {
            let [kept, before] =
                [self.state(), self.whole.clone()].map(|state| read(&state.join(&self.sessions)).len());
            assert!(kept >= before, "{kept} bytes of sessions are left of {before}");
        }
        if damaged != "history.redb" {
            assert_eq!(shown(&self.state()).0, 1, "the history");
        }
    }

    /// Damages a file in all ways. `is_refused` says when the server may not start; `said` is in what it says of damage that it
    /// must see.
    fn try_all(
        &self,
        name: &str,
        is_refused: impl Fn(Damage) -> bool,
        must_say: impl Fn(Damage) -> bool,
        said: &str,
    ) {
        for damage in Damage::all() {
            self.damage(name, damage);
            let text = if is_refused(damage) { self.refuses() } else { self.serves() };
            assert!(!text.contains("panicked"), "{name}, {damage:?}: {text}");
            assert!(!must_say(damage) || text.contains(said), "{name}, {damage:?}: {text}");
            self.check_others(name);
        }
    }
}

/// How many paths a history has, and what is said of it; none if it is refused.
fn shown(state: &Path) -> (usize, String) {
    let mut show = common::posthaste();
    let (code, stdout, stderr) = run(show.args(["history", "show", "--json", "--state"]).arg(state));
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(code, i32::from(!stderr.is_empty()), "{stderr}");
    let shown: serde_json::Value = serde_json::from_slice(&stdout).unwrap_or_default();
    (shown["paths"].as_array().map_or(0, Vec::len), stderr)
}

fn stop(mut server: Server) {
    server.signal("INT");
    assert!(server.wait().success());
}

fn is_folder(damage: Damage) -> bool {
    matches!(damage, Damage::Folder)
}

/// Flipped bytes can leave a file as good as before, where nothing says what it must be.
fn is_seen(damage: Damage) -> bool {
    !matches!(damage, Damage::Flipped(_))
}

#[test]
fn a_damaged_secret_is_refused_unless_it_could_be_one() {
    Stage::new().try_all("secret", is_seen, is_seen, "state/secret");
}

#[test]
fn damaged_sessions_are_left_out_with_a_warning() {
    let stage = Stage::new();
    stage.try_all(&stage.sessions, |_| false, is_seen, "sessions");
}

#[test]
fn a_damaged_certificate_is_replaced_with_a_warning() {
    Stage::new().try_all("localhost.pem", is_folder, |_| true, "localhost.pem");
}

#[test]
fn a_damaged_history_is_set_aside_with_a_warning() {
    // An empty file is a history that nobody has begun.
    let must_say = |damage| matches!(damage, Damage::Cut(1..) | Damage::Folder);
    Stage::new().try_all("history.redb", is_folder, must_say, "history.redb");
}

#[test]
fn a_damaged_history_is_shown_or_refused_with_a_reason() {
    let stage = Stage::new();
    for damage in Damage::all() {
        stage.damage("history.redb", damage);
        let file = stage.state().join("history.redb");
        let before = std::fs::metadata(&file).unwrap().len();
        let (_, stderr) = shown(&stage.state());
        assert!(
            !matches!(damage, Damage::Cut(1..) | Damage::Folder) || stderr.contains("history.redb"),
            "{damage:?}"
        );
        // An empty file becomes an empty history; the others are only looked at.
        if !matches!(damage, Damage::Cut(0)) {
            assert_eq!(std::fs::metadata(&file).unwrap().len(), before, "{damage:?}");
        }
    }
}
