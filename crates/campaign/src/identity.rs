//! Digests of programs and texts: a journal outlives builds, and files that it was begun with.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::digest::{Context, Digest, SHA256};

/// A SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity([u8; 32]);

impl Identity {
    /// Of the running program.
    ///
    /// # Errors
    /// If its file cannot be found or read.
    pub fn of_this_program() -> io::Result<Self> {
        Self::of_file(&std::env::current_exe()?)
    }

    /// Of a file's content.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut context = Context::new(&SHA256);
        let mut block = vec![0; 1 << 20];
        loop {
            let length = file.read(&mut block)?;
            if length == 0 {
                break;
            }
            context.update(&block[..length]);
        }
        Ok(Self::from_digest(&context.finish()))
    }

    /// Of several parts, one after another.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut context = Context::new(&SHA256);
        parts.into_iter().for_each(|part| context.update(part));
        Self::from_digest(&context.finish())
    }

    /// Of a text.
    pub fn of_text(text: &str) -> Self {
        Self::of_parts([text.as_bytes()])
    }

    fn from_digest(digest: &Digest) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its first `bytes` bytes (at most 32) as hexadecimal digits.
    pub fn hexadecimal(&self, bytes: usize) -> String {
        self.0.iter().take(bytes).fold(String::new(), |mut text, byte| {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Twelve digits: enough to tell builds apart, in a file's name or next to a result.
    pub fn short(&self) -> String {
        self.hexadecimal(6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_fips_180_and_of_the_whole() {
        let abc = Identity::of_text("abc");
        assert_eq!(abc.short(), "ba7816bf8f01");
        assert_eq!(abc.hexadecimal(32).len(), 64);
        assert_eq!(abc, Identity::of_parts([&b"a"[..], b"bc"]));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(Identity::of_file(&file).unwrap(), abc);
        assert!(Identity::of_file(&folder.path().join("none")).is_err());
    }
}
