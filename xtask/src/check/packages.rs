//! `cargo xtask packages`: what would be published is complete. `cargo publish --dry-run` accepts all libraries; their
//! packages are unpacked outside their folders, and compiled from what the packages hold.

use std::process::Command;

use crate::Result;
use crate::workspace::{cargo, root, run as run_command, target};

/// Packs, unpacks and compiles all libraries.
pub(crate) fn run() -> Result<bool> {
    let libraries = libraries()?;
    for command in [&["publish", "--dry-run"][..], &["package"]] {
        let mut pack = cargo();
        // What is committed or not makes no difference to what a package holds.
        pack.args(command).args(["--quiet", "--no-verify", "--allow-dirty"]);
        pack.args(libraries.iter().flat_map(|library| ["--package", library]));
        run_command(&mut pack)?;
    }
    let folder = target().join("package/unpacked");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let mut members = Vec::new();
    for library in &libraries {
        let name = format!("{library}-{}", version()?);
        let archive = target().join("package").join(format!("{name}.crate"));
        run_command(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
        members.push((library.as_str(), name));
    }
    std::fs::write(folder.join("Cargo.toml"), manifest(&members)?)?;
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    // Third parties' crates are those of the other builds here.
    let mut check = cargo();
    check.current_dir(&folder).args(["check", "--workspace", "--quiet", "--target-dir"]).arg(target());
    run_command(&mut check)?;
    println!("{} packages are complete", libraries.len());
    Ok(true)
}

/// The packages of `crates/` that are libraries.
fn libraries() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("crates"))? {
        let folder = entry?.path();
        if folder.join("src/lib.rs").is_file() {
            let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml"))?.parse()?;
            // Those that say so are not published.
            if manifest["package"].get("publish").and_then(toml::Value::as_bool) == Some(false) {
                continue;
            }
            let name = manifest["package"]["name"].as_str().ok_or("a package has a name")?;
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn workspace() -> Result<toml::Table> {
    Ok(std::fs::read_to_string(root().join("Cargo.toml"))?.parse()?)
}

/// The version of all packages.
fn version() -> Result<String> {
    let workspace = workspace()?;
    Ok(workspace["workspace"]["package"]["version"].as_str().ok_or("the workspace has a version")?.to_owned())
}

/// A workspace of the unpacked packages, which find each other here and not in a registry. Its profiles are those of the
/// root, so that third parties' crates are compiled once.
fn manifest(members: &[(&str, String)]) -> Result<String> {
    let folders: Vec<toml::Value> = members.iter().map(|(_, folder)| folder.as_str().into()).collect();
    let patch = |(name, folder): &(&str, String)| {
        let path: toml::Table = [("path".to_owned(), folder.as_str().into())].into_iter().collect();
        ((*name).to_owned(), toml::Value::from(path))
    };
    let patches: toml::Table = members.iter().map(patch).collect();
    let mut all = toml::Table::new();
    let mut workspace_table = toml::Table::new();
    workspace_table.insert("resolver".to_owned(), "3".into());
    workspace_table.insert("members".to_owned(), folders.into());
    all.insert("workspace".to_owned(), workspace_table.into());
    let crates_io: toml::Table = [("crates-io".to_owned(), toml::Value::from(patches))].into_iter().collect();
    all.insert("patch".to_owned(), crates_io.into());
    if let Some(profiles) = workspace()?.remove("profile") {
        all.insert("profile".to_owned(), profiles);
    }
    Ok(toml::to_string(&all)?)
}

/// Builds that leave out what their users need not: the sans-IO core must not need `serde_json` or `toml`.
pub(crate) fn minimal() -> Result<bool> {
    for package in ["posthaste-transport", "posthaste-policy", "posthaste-schemes"] {
        run_command(cargo().args(["check", "--quiet", "--no-default-features", "--package", package]))?;
        let mut tree = cargo();
        tree.args(["tree", "--prefix", "none", "--edges", "normal,build", "--no-default-features"]);
        let output = tree.args(["--package", package]).output()?;
        if !output.status.success() {
            return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let tree = String::from_utf8(output.stdout)?;
        if let Some(line) = unwanted(&tree) {
            return Err(format!("{package} without features depends on {line}").into());
        }
    }
    for package in ["posthaste-emulator", "posthaste-http", "posthaste-lab"] {
        run_command(cargo().args(["check", "--quiet", "--no-default-features", "--package", package]))?;
    }
    Ok(true)
}

/// The command line with some of its commands only, as `cargo race` builds it.
pub(crate) fn single_commands() -> Result<bool> {
    for feature in ["race", "files", "edge", "lab", "emulate", "manual", "page"] {
        let mut check = cargo();
        check.args([
            "check",
            "--quiet",
            "--package",
            "posthaste",
            "--no-default-features",
            "--features",
            feature,
        ]);
        run_command(&mut check)?;
    }
    Ok(true)
}

/// A line of `cargo tree` with a package that the core must do without.
fn unwanted(tree: &str) -> Option<&str> {
    tree.lines().find(|line| {
        ["serde_json", "toml", "qlog"].contains(&line.split_whitespace().next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packages_are_the_libraries() {
        let libraries = libraries().unwrap();
        assert!(libraries.iter().any(|name| name == "posthaste-endpoint"));
        assert!(!libraries.iter().any(|name| name == "posthaste"), "the command line is no library");
    }

    #[test]
    fn what_the_core_does_without_is_found() {
        assert_eq!(unwanted("a v1\nserde v1\nserde_json v1.0 (*)\n"), Some("serde_json v1.0 (*)"));
        assert_eq!(unwanted("a v1\nserde v1\n"), None);
    }
}
