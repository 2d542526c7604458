//! From a request's path to a file below the root, and to nothing else.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where a host keeps what protocols ask for (RFC 8615).
const WELL_KNOWN: &str = ".well-known";

/// Longest path that is looked up, decoded, in bytes.
const MAX_PATH: usize = 4096;

/// Why a path leads to no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathError {
    /// The path is no path: malformed percent-encoding, NUL, `..`, separators in disguise, not UTF-8, too long.
    Malformed,
    /// There is nothing there, or nothing that may be served.
    NotFound,
    /// The file system denies access.
    Forbidden,
    /// The file system fails.
    Failed,
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Forbidden,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                Self::NotFound
            }
            _ if is_link_loop(&error) => Self::NotFound,
            _ => {
                tracing::warn!(%error, "cannot open a file");
                Self::Failed
            }
        }
    }
}

/// Links in a circle; also what a link at the end of a path is when none may be followed.
fn is_link_loop(error: &io::Error) -> bool {
    #[cfg(unix)]
    let code = Some(libc::ELOOP);
    #[cfg(not(unix))]
    let code = None;
    code.is_some() && error.raw_os_error() == code
}

/// A request's path, decoded and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestPath {
    /// The names along the path; none is empty, `.` or `..`, none contains a separator or NUL.
    pub(super) segments: Vec<String>,
    /// Whether it ended in a slash, and so means a directory.
    pub(super) is_directory: bool,
}

impl RequestPath {
    /// Decodes a path once. What is still encoded after that is part of a name.
    pub(super) fn parse(path: &str) -> Result<Self, PathError> {
        if !path.starts_with('/') || path.len() > MAX_PATH {
            return Err(PathError::Malformed);
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            let name = percent_decode(segment).ok_or(PathError::Malformed)?;
            if name == ".." || name.contains(is_forbidden) {
                return Err(PathError::Malformed);
            }
            if !name.is_empty() && name != "." {
                segments.push(name);
            }
        }
        let is_directory = matches!(path.rsplit('/').next(), Some("" | "."));
        Ok(Self { segments, is_directory })
    }

    /// Whether it leads through a name that begins with a dot.
    pub(super) fn is_hidden(&self) -> bool {
        let skipped = usize::from(self.segments.first().is_some_and(|first| first == WELL_KNOWN));
        self.segments.iter().skip(skipped).any(|name| name.starts_with('.'))
    }

    /// The path of the directory of this name, encoded. Begins with one slash only: two would make it another host's.
    pub(super) fn directory_location(&self) -> String {
        let mut location = String::from("/");
        for segment in &self.segments {
            percent_encode(segment, &mut location);
            location.push('/');
        }
        location
    }

    /// The path below `root`.
    pub(super) fn below(&self, root: &Path) -> PathBuf {
        let mut path = root.to_owned();
        path.extend(&self.segments);
        path
    }
}

/// What no name in a path may contain: NUL, and what some system takes for a separator (or, for the colon on
/// Windows, for the start of a stream or a drive).
fn is_forbidden(character: char) -> bool {
    matches!(character, '\0' | '/' | '\\') || cfg!(windows) && character == ':'
}

fn percent_decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_digit(rest.next()?)? << 4 | hex_digit(rest.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// Appends `name` with all but unreserved characters (RFC 3986 section 2.3) encoded.
pub(super) fn percent_encode(name: &str, output: &mut String) {
    use std::fmt::Write;

    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                output.push(char::from(byte));
            }
            _ => {
                // Writing to a string does not fail.
                let _ = write!(output, "%{byte:02X}");
            }
        }
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// A regular file, open.
    File(File, Metadata),
    /// A directory, by its real path.
    Directory(PathBuf),
}

/// Opens what `path` leads to, if it is a regular file or a directory whose real path lies below `root`, which
/// must be a real path itself. Blocks on the file system, never on a FIFO or a device.
pub(super) fn open(root: &Path, path: &Path) -> Result<Found, PathError> {
    let real = path.canonicalize()?;
    if !real.starts_with(root) {
        return Err(PathError::NotFound);
    }
    let metadata = real.metadata()?;
    if metadata.is_dir() {
        return Ok(Found::Directory(real));
    }
    if !metadata.is_file() {
        return Err(PathError::NotFound);
    }
    let file = open_options().open(&real)?;
    // The name may have been given to something else since it was resolved.
    let metadata = file.metadata()?;
    if !metadata.is_file() || !still_below(root, &file) {
        return Err(PathError::NotFound);
    }
    Ok(Found::File(file, metadata))
}

/// For reading; neither waits for the other end of a FIFO nor follows a link put in place of the file.
fn open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOFOLLOW | libc::O_NOCTTY,
    );
    options
}

/// Whether the open file lies below `root`, as far as the system tells: directories on the way may have been
/// exchanged for links after the path was resolved. Systems without `/proc` leave that instant open.
fn still_below(root: &Path, file: &File) -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;

        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        if let Ok(real) = std::fs::read_link(link) {
            return real.starts_with(root);
        }
    }
    let _ = (root, file);
    true
}

#[cfg(test)]
mod tests;
