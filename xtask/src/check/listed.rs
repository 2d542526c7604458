//! Test files that no test program contains: where tests are one program (`tests/all.rs`), cargo looks for no others.

use std::path::Path;

use crate::Result;

/// Each file of `crates/*/tests` that neither `all.rs` nor the manifest names, as a message.
pub(super) fn faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(root.join("crates"))? {
        let package = entry?.path();
        let list = package.join("tests/all.rs");
        if !list.is_file() {
            continue;
        }
        let list = std::fs::read_to_string(list)?;
        let manifest = std::fs::read_to_string(package.join("Cargo.toml"))?;
        for file in std::fs::read_dir(package.join("tests"))? {
            let file = file?.path();
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_source = file.extension().is_some_and(|extension| extension == "rs");
            if is_source && !is_listed(&name, &list, &manifest) {
                let file = file.strip_prefix(root).unwrap_or(&file).display();
                faults
                    .push(format!("{file}: no test program contains it; add `mod {name};` to tests/all.rs"));
            }
        }
    }
    faults.sort();
    Ok(faults)
}

fn is_listed(name: &str, list: &str, manifest: &str) -> bool {
    list.lines().any(|line| line == format!("mod {name};"))
        || manifest.lines().any(|line| line == format!("name = \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_must_be_named_by_list_or_manifest() {
        let (list, manifest) = ("mod one;\n#[cfg(x)]\nmod two;\n", "[[test]]\nname = \"all\"\n");
        for (name, expected) in [("one", true), ("two", true), ("all", true), ("tw", false), ("three", false)]
        {
            assert_eq!(is_listed(name, list, manifest), expected, "{name}");
        }
    }
}
