//! Files that hold the content of others in a coding: `app.js.br` next to `app.js`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::locate::{self, Found};
use crate::service::Coding;

/// The smallest first: whoever prepares files takes the highest levels.
pub(super) const ORDER: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

/// One of these files.
pub(super) struct Coded {
    pub(super) coding: Coding,
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) metadata: Metadata,
}

/// The file in the first of these codings that exists below `root` and is not older than the file at `path`, whose state
/// `metadata` is: one that is older was made from another content. Blocks on the file system.
pub(super) fn find(root: &Path, path: &Path, metadata: &Metadata, codings: &[Coding]) -> Option<Coded> {
    let modified = metadata.modified().ok()?;
    codings.iter().find_map(|&coding| {
        let mut name = OsString::from(path);
        name.push(".");
        name.push(coding.extension());
        let path = PathBuf::from(name);
        let Ok(Found::File(file, metadata)) = locate::open(root, &path) else { return None };
        (metadata.modified().ok()? >= modified).then_some(Coded { coding, path, file, metadata })
    })
}

/// What the cache knows a request by: its path, and the codings that it accepts, since they choose the file. A blank is in
/// no path of a request.
pub(super) fn key<'a>(path: &'a str, codings: &[Coding]) -> Cow<'a, str> {
    codings.iter().fold(path.into(), |key: Cow<'_, str>, coding| format!("{key} {coding}").into())
}

/// How long a file in the coding `chosen` counts as the one for these codings although nothing that was seen has changed:
/// if there was none in one that comes before it, nobody tells when one appears.
pub(super) fn lifetime(chosen: Option<Coding>, codings: &[Coding]) -> Duration {
    if chosen == codings.first().copied() { Duration::MAX } else { Duration::from_secs(1) }
}
