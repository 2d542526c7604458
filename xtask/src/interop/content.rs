//! What the servers serve, and the digests that the clients' files must have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posthaste_units::Rng;
use sha2::{Digest as _, Sha256};

use crate::Result;

/// Files of the parallel case.
const SMALL_FILES: usize = 100;
/// Files of the multiplexing case.
const TINY_FILES: usize = 2_000;

/// What a case fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// This one.
    One(&'static str),
    /// A hundred small ones.
    Hundred,
    /// Two thousand tiny ones.
    TwoThousand,
}

impl Files {
    /// Their names.
    pub(crate) fn names(self) -> Vec<String> {
        match self {
            Self::One(file) => vec![file.to_owned()],
            Self::Hundred => (0..SMALL_FILES).map(small_file).collect(),
            Self::TwoThousand => (0..TINY_FILES).map(tiny_file).collect(),
        }
    }
}

/// A directory of files and their digests.
#[derive(Debug)]
pub(crate) struct Content {
    /// What servers serve.
    pub(crate) root: PathBuf,
    digests: BTreeMap<String, [u8; 32]>,
}

impl Content {
    /// Writes all files below `root`.
    pub(crate) fn create(root: &Path) -> Result<Self> {
        std::fs::create_dir_all(root)?;
        let mut content = Self { root: root.to_owned(), digests: BTreeMap::new() };
        let mut rng = Rng::from_test_seed(1);
        content.random("small.bin", 1_000, &mut rng)?;
        content.random("one-megabyte.bin", 1_000_000, &mut rng)?;
        content.random("ten-megabytes.bin", 10_000_000, &mut rng)?;
        for index in 0..SMALL_FILES {
            content.random(&small_file(index), 500 + 37 * index, &mut rng)?;
        }
        for index in 0..TINY_FILES {
            content.random(&tiny_file(index), 32 + index % 100, &mut rng)?;
        }
        // Browsers fetch from a page of the same origin.
        std::fs::write(root.join("page.html"), "<!doctype html><title>Posthaste interop</title>\n")?;
        Ok(content)
    }

    fn random(&mut self, name: &str, length: usize, rng: &mut Rng) -> Result<()> {
        let mut bytes = vec![0; length];
        rng.fill(&mut bytes);
        std::fs::write(self.root.join(name), &bytes)?;
        self.digests.insert(name.to_owned(), Sha256::digest(&bytes).into());
        Ok(())
    }

    /// Checks that `directory` holds exactly `files` with their content; returns the number of bytes.
    pub(crate) fn verify(&self, directory: &Path, files: &[String]) -> Result<u64> {
        let mut bytes = 0;
        for file in files {
            let fetched = std::fs::read(directory.join(file)).map_err(|error| format!("{file}: {error}"))?;
            if self.digests.get(file).is_none_or(|digest| Sha256::digest(&fetched)[..] != digest[..]) {
                return Err(format!("{file}: wrong content ({} bytes)", fetched.len()).into());
            }
            bytes += fetched.len() as u64;
        }
        let present = std::fs::read_dir(directory)?.count();
        if present != files.len() {
            return Err(format!("{present} files where {} were asked for", files.len()).into());
        }
        Ok(bytes)
    }
}

fn small_file(index: usize) -> String {
    format!("part-{index:03}.bin")
}

fn tiny_file(index: usize) -> String {
    format!("tiny-{index:04}.bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_missing_or_extra_file_fails() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let content = Content::create(&folder.path().join("root")).expect("written");
        let fetched = folder.path().join("fetched");
        std::fs::create_dir(&fetched).expect("made");
        let files = vec!["small.bin".to_owned()];
        assert!(content.verify(&fetched, &files).is_err());
        let mut bytes = std::fs::read(content.root.join("small.bin")).expect("read");
        std::fs::write(fetched.join("small.bin"), &bytes).expect("written");
        assert_eq!(content.verify(&fetched, &files).expect("whole"), 1_000);
        std::fs::write(fetched.join("other"), "").expect("written");
        assert!(content.verify(&fetched, &files).is_err());
        std::fs::remove_file(fetched.join("other")).expect("removed");
        bytes[999] ^= 1;
        std::fs::write(fetched.join("small.bin"), &bytes).expect("written");
        assert!(content.verify(&fetched, &files).is_err());
    }
}
