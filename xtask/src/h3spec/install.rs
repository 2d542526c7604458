//! h3spec's binary, which a Maven plugin brings along.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::Result;
use crate::workspace::{root, run};

/// Maven's goal that unpacks one artifact without a project.
const UNPACK: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:unpack";
/// Group, artifact and version.
const ARTIFACT: &str = "io.netty.incubator:netty-incubator-h3spec-maven-plugin:0.0.5.Final";
/// The only one for Linux.
const BINARY: &str = "h3spec/h3spec-linux-x86_64";
/// Of that file: it is executed, so it must be the one that was looked at.
const SHA_256: &str = "2a178ae29eabcced5ec52aac1fc97784f6eaccace07aa6a4b716cd90ab29e6b7";

/// Fetches it unless it is there already.
pub(super) fn installed() -> Result<PathBuf> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("h3spec comes as a binary for Linux on x86-64 only".into());
    }
    let folder = root().join("interop/bin");
    let program = folder.join(BINARY);
    if !program.exists() {
        let mut unpack = Command::new("mvn");
        unpack.args([
            "--batch-mode",
            "--quiet",
            "-Dstyle.color=never",
            UNPACK,
            &format!("-Dartifact={ARTIFACT}"),
        ]);
        unpack.arg(format!("-Dmdep.unpack.includes={BINARY}"));
        unpack.arg(format!("-DoutputDirectory={}", folder.display()));
        // Outside the repository, so that nothing is taken for its project.
        let elsewhere = tempfile::tempdir()?;
        run(unpack.current_dir(elsewhere.path()))?;
    }
    let found = digest(&program)?;
    if found != SHA_256 {
        return Err(format!(
            "{} has SHA-256 {found}, not {SHA_256}: remove it and try again",
            program.display()
        )
        .into());
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

fn digest(file: &Path) -> Result<String> {
    let content = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(format!("{:x}", Sha256::digest(content)))
}
