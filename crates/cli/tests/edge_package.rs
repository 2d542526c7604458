//! The Debian package of `posthaste edge`: made from the command of this build, unpacked into a folder, installed there.
#![cfg(target_os = "linux")]

mod common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::edge::{Edge, certificate};
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
    assert_described(root);
    let (code, stdout, stderr) = run(Command::new(path(program)).args(["edge", "check"]).arg(path(config)));
    let stdout = String::from_utf8(stdout).unwrap();
    // 1: without root, or where a server runs, the port cannot be had.
    assert!(
        code == 0 || code == 1 && stdout.contains("the file itself has no faults"),
        "{code}: {stdout}{stderr}"
    );
}

/// Man pages and completions are where programs look for them, and readable for everyone.
fn assert_described(root: &Path) {
    let share = root.join("usr/share");
    let files = ["bash-completion/completions/posthaste", "zsh/vendor-completions/_posthaste"];
    let pages =
        ["posthaste", "posthaste-edge", "posthaste-edge-check", "posthaste-edge-doctor", "posthaste-serve"];
    let pages = pages.map(|name| format!("man/man1/{name}.1.gz"));
    for file in files.iter().copied().chain(pages.iter().map(String::as_str)) {
        assert_eq!(mode(&share.join(file)), 0o644, "{file}");
    }
    let page = output("gzip", &["--decompress", "--stdout", share.join(&pages[1]).to_str().unwrap()]);
    assert!(page.starts_with(".ie") && page.contains("\\-\\-beside"), "{page}");
}

/// systemd finds nothing to complain about in the units, with the program where it was unpacked.
fn verify_units(root: &Path, folders: &Folders) {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("units not verified: no systemd-analyze");
    }
    let program = root.join("usr/bin/posthaste");
    let units = ["posthaste-edge.service", "posthaste-edge.socket"].map(|name| {
        let text = std::fs::read_to_string(root.join("usr/lib/systemd/system").join(name)).unwrap();
        let unit = folders.path(name);
        std::fs::write(&unit, text.replace("/usr/bin/posthaste", program.to_str().unwrap())).unwrap();
        unit
    });
    let (code, stdout, stderr) =
        run(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units));
    assert_eq!((code, stdout, stderr.as_str()), (0, Vec::new(), ""));
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
    verify_units(&root, &folders);
    install_and_purge(package, &folders);
}

/// With the package's own scripts, in a system without anything else. Only root may do so.
fn install_and_purge(package: &str, folders: &Folders) {
    let root = &folders.path("root");
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
    serve_from(root, &config, folders);
    std::fs::write(&config, "# of the owner\n").unwrap();
    dpkg(&["--force-confold", "--install", package]);
    dpkg(&["--remove", "posthaste-edge"]);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "# of the owner\n");
    assert!(!root.join("usr/bin/posthaste").exists() && root.join("var/lib/private/posthaste").exists());
    dpkg(&["--purge", "posthaste-edge"]);
    assert!(!config.exists() && !root.join("var/lib/private/posthaste").exists());
}

/// The installed command serves a file, with this folder as its whole file system.
fn serve_from(root: &Path, config: &Path, folders: &Folders) {
    let program = root.join("usr/bin/posthaste");
    // Those of the packages that it depends on.
    for line in output("ldd", &[program.to_str().unwrap()]).lines() {
        let Some(library) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let inside = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
        std::fs::copy(library, inside).unwrap();
    }
    certificate(folders);
    for name in ["cert.pem", "key.pem"] {
        std::fs::copy(folders.path(name), root.join("etc/posthaste").join(name)).unwrap();
    }
    std::fs::create_dir_all(root.join("srv")).unwrap();
    std::fs::write(root.join("srv/file"), "from the package").unwrap();
    let site = "[edge]\nlisten = \"127.0.0.1:0\"\n[site.localhost]\nfiles = \"/srv\"\n\
                certificate = { chain = \"/etc/posthaste/cert.pem\", key = \"/etc/posthaste/key.pem\" }\n";
    std::fs::write(config, site).unwrap();
    let mut command = Command::new("chroot");
    command.arg(root).arg("/usr/bin/posthaste").env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let mut edge = Edge::start_by(command, folders, &["--config", "/etc/posthaste/edge.toml"]);
    let (code, stdout, stderr) = run(&mut edge.get(folders, "/file"));
    assert_eq!((code, stdout.as_slice()), (0, b"from the package".as_slice()), "{stderr}");
    assert!(edge.stop().success());
}

/// The image is made as the package is: the same command, which is started with the same file, and both ports of HTTPS.
#[test]
fn the_container_file_agrees_with_the_package() {
    let read = |name: &str| std::fs::read_to_string(format!("{REPOSITORY}/packaging/{name}")).unwrap();
    let (container, script) = (read("Containerfile"), read("debian/build"));
    let line = |start: &str| {
        let mut lines = container.lines().filter(|line| line.starts_with(start));
        lines.next_back().unwrap_or_else(|| panic!("no {start}"))
    };
    let build = line("RUN cargo build").strip_prefix("RUN ").unwrap();
    assert!(script.contains(build), "{build}");
    assert_eq!(line("COPY --from"), "COPY --from=build /src/target/dist/posthaste /usr/bin/posthaste");
    let ports: Vec<_> = line("EXPOSE").split(' ').skip(1).collect();
    assert_eq!(ports, ["443/tcp", "443/udp", "80/tcp"]);
    let words = |start: &str| {
        let list = line(start).strip_prefix(start).unwrap();
        serde_json::from_str::<Vec<String>>(list).unwrap()
    };
    let [program, words @ ..] = &[words("ENTRYPOINT "), words("CMD ")].concat()[..] else {
        panic!("nothing runs")
    };
    let unit = read("posthaste-edge.service");
    assert!(unit.contains(&format!("ExecStart={program} {}\n", words.join(" "))), "{program} {words:?}");
}
