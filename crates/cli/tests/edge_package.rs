//! The Debian package of `posthaste edge`: made from the command of this build, unpacked into a folder, installed there.
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folders, run};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The output of a command that must not fail.
fn output(program: &str, args: &[&str]) -> String {
    let (code, stdout, stderr) =
        run(Command::new(program).args(args).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"));
    assert_eq!(code, 0, "{program} {args:?}: {stderr}");
    String::from_utf8(stdout).unwrap()
}

/// The package; `None` where the tools of Debian are not.
fn package(folders: &Folders) -> Option<PathBuf> {
    let tools = ["dpkg-deb", "dpkg-shlibdeps", "strip"];
    if tools.iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        eprintln!("skipped: needs dpkg-dev and binutils");
        return None;
    }
    let mut build = Command::new(format!("{REPOSITORY}/packaging/debian/build"));
    build.arg(env!("CARGO_BIN_EXE_posthaste")).arg(folders.path("out"));
    build.envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")]);
    let (code, _, stderr) = run(&mut build);
    assert_eq!(code, 0, "{stderr}");
    let arch = output("dpkg", &["--print-architecture"]);
    let name = format!("out/posthaste-edge_{}_{}.deb", env!("CARGO_PKG_VERSION"), arch.trim());
    Some(folders.path(&name))
}

fn mode(file: &Path) -> u32 {
    std::fs::metadata(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).permissions().mode()
        & 0o7777
}

/// What is below `root` must be what the package is for: the unit starts the command with the file, which has no faults.
fn assert_complete(root: &Path) {
    let path = |name: &str| root.join(name.trim_start_matches('/'));
    let unit = "/usr/lib/systemd/system/posthaste-edge.service";
    let text = std::fs::read_to_string(path(unit)).unwrap();
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let (program, rest) = start.split_once(' ').unwrap();
    let config = rest.strip_prefix("edge --config ").and_then(|rest| rest.split(' ').next()).unwrap();
    assert_eq!((program, config), ("/usr/bin/posthaste", "/etc/posthaste/edge.toml"));
    assert_eq!((mode(&path(program)), mode(&path(config)), mode(&path(unit))), (0o755, 0o644, 0o644));
    assert_eq!(mode(&path("/usr/lib/systemd/system/posthaste-edge.socket")), 0o644);
    assert_eq!(mode(&path("/usr/share/doc/posthaste-edge/copyright")), 0o644);
    let (code, stdout, stderr) = run(Command::new(path(program)).args(["edge", "check"]).arg(path(config)));
    let stdout = String::from_utf8(stdout).unwrap();
    // 1: without root, or where a server runs, the port cannot be had.
    assert!(
        code == 0 || code == 1 && stdout.contains("the file itself has no faults"),
        "{code}: {stdout}{stderr}"
    );
}

#[test]
fn the_package_is_complete_and_needs_what_the_command_needs() {
    let folders = Folders::new();
    let Some(package) = package(&folders) else { return };
    let package = package.to_str().unwrap();
    let field = |name: &str| output("dpkg-deb", &["--field", package, name]).trim().to_owned();
    assert_eq!(field("Version"), env!("CARGO_PKG_VERSION"));
    let depends = field("Depends");
    assert!(depends.contains("libc6 (>= ") || !cfg!(target_env = "gnu"), "{depends}");
    assert!(output("dpkg-deb", &["--info", package, "conffiles"]).contains("/etc/posthaste/edge.toml"));
    let contents = output("dpkg-deb", &["--contents", package]);
    assert!(contents.lines().all(|line| line.contains(" root/root ")), "{contents}");
    let root = folders.path("unpacked");
    output("dpkg-deb", &["--extract", package, root.to_str().unwrap()]);
    assert_complete(&root);
    install_and_purge(package, &folders.path("root"));
}

/// With the package's own scripts, in a system without anything else. Only root may do so.
fn install_and_purge(package: &str, root: &Path) {
    if output("id", &["-u"]).trim() != "0" {
        return eprintln!("not installed: needs root");
    }
    for folder in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/private/posthaste"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let dpkg = |args: &[&str]| {
        let root = format!("--root={}", root.display());
        let common = [&root, "--force-script-chrootless", "--force-depends", "--log=/dev/null"];
        output("dpkg", &[&common, args].concat());
    };
    dpkg(&["--install", package]);
    assert_complete(root);
    let config = root.join("etc/posthaste/edge.toml");
    std::fs::write(&config, "# of the owner\n").unwrap();
    dpkg(&["--force-confold", "--install", package]);
    dpkg(&["--remove", "posthaste-edge"]);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# of the owner\n");
    assert!(!root.join("usr/bin/posthaste").exists() && root.join("var/lib/private/posthaste").exists());
    dpkg(&["--purge", "posthaste-edge"]);
    assert!(!config.exists() && !root.join("var/lib/private/posthaste").exists());
}
