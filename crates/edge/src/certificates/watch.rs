//! Certificate files that change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Loaded, Resolver};
use crate::config::CertificateFiles;

/// Looks at the files of certificates, and has the resolver use what is new in them.
///
/// By their state when asked, and not by the system's notices: those speak of one directory, and the files that certbot and
/// Kubernetes name are links to links, of which any may change.
#[derive(Debug, Default)]
pub struct Watched {
    /// Files as they were when they were last looked at, and whether that state was tried.
    seen: Vec<(CertificateFiles, State, bool)>,
}

/// Of chain and key: what changes when the file does. `None` without a file.
type State = [Option<FileState>; 2];

#[derive(Debug, PartialEq, Eq)]
struct FileState {
    /// Without links.
    path: PathBuf,
    length: u64,
    modified: Option<SystemTime>,
    /// Times are as coarse as the kernel's clock tick.
    inode: u64,
}

/// What looking at the files has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// This certificate is in use.
    Renewed(PathBuf),
    /// The files cannot be used; the certificate before stays.
    Kept(String),
}

impl Watched {
    /// Looks at the files of the certificates in use, a few system calls each. Call it every few seconds: files that have
    /// changed are read when they are the same for two calls, so that nobody reads a half-written one. Returns what
    /// could not be used; the certificate before then stays in use.
    pub fn look(&mut self, resolver: &Resolver) -> Vec<String> {
        let changes = self.changes(resolver);
        let failed = changes.into_iter().filter_map(|change| match change {
            Change::Renewed(chain) => {
                tracing::info!(chain = %chain.display(), "a new certificate is in use");
                None
            }
            Change::Kept(reason) => Some(reason),
        });
        failed.collect()
    }

    pub(crate) fn changes(&mut self, resolver: &Resolver) -> Vec<Change> {
        let certificates = resolver.current();
        let mut changes = Vec::new();
        let mut seen = Vec::new();
        for loaded in certificates.iter() {
            let files = &loaded.files;
            let state = [state(&files.chain), state(&files.key)];
            let before = self.seen.iter().find(|(other, ..)| other == files);
            let is_tried = match before {
                // What was loaded a moment ago is what is there.
                None => true,
                Some((_, old, is_tried)) if *old == state => {
                    if !is_tried {
                        changes.push(renew(resolver, files));
                    }
                    true
                }
                Some(_) => false,
            };
            seen.push((files.clone(), state, is_tried));
        }
        self.seen = seen;
        changes
    }
}

fn renew(resolver: &Resolver, files: &CertificateFiles) -> Change {
    match Loaded::read(files) {
        Ok(loaded) => {
            // A reload may have come in between: what is current then counts.
            resolver.set(resolver.current().with(&Arc::new(loaded)));
            Change::Renewed(files.chain.clone())
        }
        Err(reason) => Change::Kept(reason),
    }
}

fn state(path: &Path) -> Option<FileState> {
    let path = path.canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let inode = 0;
    Some(FileState { path, length: metadata.len(), modified: metadata.modified().ok(), inode })
}
