//! The third parties: what they can play, how they are built and started.

use std::path::PathBuf;
use std::process::Command;

use crate::Result;
use crate::workspace::{cargo, root, run};

/// How a peer is built and started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toolchain {
    /// A binary of `interop/peers`.
    Rust,
    /// The binary of `interop/go`.
    Go,
    /// A script of `interop/python`.
    Python,
}

/// A third party.
#[derive(Debug)]
pub struct Peer {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// It can fetch.
    pub client: bool,
    /// It can serve.
    pub server: bool,
    toolchain: Toolchain,
}

/// The peer in Go.
const QUIC_GO: &str = "quic-go";

/// All of them; a new one is its file and a line here.
pub const PEERS: [Peer; 6] = [
    Peer { name: "aioquic", client: true, server: true, toolchain: Toolchain::Python },
    Peer { name: "chromium", client: true, server: false, toolchain: Toolchain::Python },
    Peer { name: "curl", client: true, server: false, toolchain: Toolchain::Python },
    Peer { name: QUIC_GO, client: true, server: true, toolchain: Toolchain::Go },
    Peer { name: "quiche", client: true, server: true, toolchain: Toolchain::Rust },
    Peer { name: "quinn", client: true, server: true, toolchain: Toolchain::Rust },
];

/// The peer called `name`.
///
/// # Errors
/// If there is none; the message has the names.
pub fn find(name: &str) -> Result<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| {
        let names: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        format!("no peer {name:?}; there are {}", names.join(", ")).into()
    })
}

impl Peer {
    /// Its command without arguments.
    pub fn command(&self) -> Command {
        match self.toolchain {
            Toolchain::Rust => Command::new(rust_binary(self.name)),
            Toolchain::Go => Command::new(go_binary()),
            Toolchain::Python => {
                let mut command = Command::new(python());
                command.arg(interop().join("python").join(format!("{}_peer.py", self.name)));
                command
            }
        }
    }
}

/// The binary of a peer in Rust.
pub fn rust_binary(name: &str) -> PathBuf {
    rust_target().join("release").join(format!("peer-{name}"))
}

/// Builds what `peers` need and nothing else.
///
/// # Errors
/// Something does not build.
pub fn build<'a>(peers: impl IntoIterator<Item = &'a Peer>) -> Result<()> {
    let mut toolchains: Vec<Toolchain> = peers.into_iter().map(|peer| peer.toolchain).collect();
    toolchains.sort_unstable();
    toolchains.dedup();
    for toolchain in toolchains {
        match toolchain {
            Toolchain::Rust => build_rust()?,
            Toolchain::Go => build_go()?,
            Toolchain::Python => install_python()?,
        }
    }
    Ok(())
}

/// Builds the peers in Rust (minutes the first time: `BoringSSL`).
///
/// # Errors
/// Something does not build.
pub fn build_rust() -> Result<()> {
    build_rust_with(&[])
}

/// Builds the peers of the benches. Returns the third parties that do not build, each with the reason: a bench goes on
/// without them.
///
/// # Errors
/// Those in Rust do not build; one of them is Posthaste itself.
pub fn build_for_benches() -> Result<Vec<(&'static str, String)>> {
    build_rust_with(&["--features", "benches"])?;
    Ok(unless_built(QUIC_GO, build_go()))
}

fn unless_built(name: &'static str, outcome: Result<()>) -> Vec<(&'static str, String)> {
    outcome.err().map(|error| (name, format!("it does not build: {error}"))).into_iter().collect()
}

/// The program of a peer of the benches.
pub fn bench_binary(name: &str) -> PathBuf {
    if name == QUIC_GO { go_binary() } else { rust_binary(name) }
}

fn build_rust_with(features: &[&str]) -> Result<()> {
    install_python()?;
    let mut command = cargo();
    command.args(["build", "--quiet", "--release", "--locked"]).args(features);
    command.arg("--target-dir").arg(rust_target());
    command.arg("--manifest-path").arg(interop().join("Cargo.toml"));
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        // quiche's bindgen wants libclang.so, which the wheel brings, and the C compiler's own headers.
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let include = Command::new(compiler).arg("-print-file-name=include").output()?;
        let include = String::from_utf8(include.stdout)?;
        command.env("LIBCLANG_PATH", libclang()?);
        command.env("BINDGEN_EXTRA_CLANG_ARGS", format!("-I{}", include.trim()));
    }
    run(&mut command)
}

fn build_go() -> Result<()> {
    build_go_by("go")
}

fn build_go_by(tool: &str) -> Result<()> {
    let mut command = Command::new(tool);
    command
        .current_dir(interop().join("go"))
        .args(["build", "-mod=readonly", "-o"])
        .arg(go_binary())
        .arg(".");
    // Without the folder: the message may become part of a page.
    let status = command.status().map_err(|error| format!("{tool}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{tool} build: {status}").into()) }
}

/// Makes the virtual environment, unless it has the pinned packages already.
fn install_python() -> Result<()> {
    let environment = interop().join(".venv");
    let wanted = interop().join("python/requirements.txt");
    let installed = environment.join("installed-requirements.txt");
    if std::fs::read(&installed)
        .is_ok_and(|installed| std::fs::read(&wanted).is_ok_and(|wanted| wanted == installed))
    {
        return Ok(());
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(python());
    install.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--requirement"]).arg(&wanted);
    run(&mut install)?;
    std::fs::copy(&wanted, &installed)?;
    Ok(())
}

fn interop() -> PathBuf {
    root().join("interop")
}

/// Not inside the root workspace's target folder: the two must not wait for each other's lock.
fn rust_target() -> PathBuf {
    std::env::var_os("INTEROP_TARGET_DIR").map_or_else(|| interop().join("target"), Into::into)
}

fn go_binary() -> PathBuf {
    interop().join("bin/peer-quic-go")
}

fn python() -> PathBuf {
    interop().join(".venv/bin/python")
}

/// Where the `libclang` wheel has its library.
fn libclang() -> Result<PathBuf> {
    for version in std::fs::read_dir(interop().join(".venv/lib"))? {
        let native = version?.path().join("site-packages/clang/native");
        if native.is_dir() {
            return Ok(native);
        }
    }
    Err("the libclang wheel is missing from interop/.venv: remove that folder and try again".into())
}

#[cfg(test)]
mod tests {
    use super::{QUIC_GO, bench_binary, build_go_by, unless_built};

    #[test]
    fn without_its_tool_a_third_party_is_named_with_the_reason() {
        assert_eq!(unless_built(QUIC_GO, Ok(())), []);
        let missing = unless_built(QUIC_GO, build_go_by("no-such-tool"));
        let [(name, reason)] = missing.as_slice() else { panic!("{missing:?}") };
        assert_eq!(*name, "quic-go");
        assert!(reason.starts_with("it does not build: "), "{reason}");
        assert!(reason.contains("no-such-tool") && reason.contains("No such file"), "{reason}");
    }

    #[test]
    fn benches_find_the_program_of_each_language() {
        assert!(bench_binary("quic-go").ends_with("bin/peer-quic-go"));
        assert!(bench_binary("quinn-ring").ends_with("release/peer-quinn-ring"));
    }
}
