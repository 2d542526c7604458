//! `get --upload`: a file on its way to the server, read as the server takes it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use bytes::{Bytes, BytesMut};
use http::{StatusCode, Uri, header};
use posthaste_http::service::{Body, BodySender};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::fallback::Reply;
use super::output::{Destination, Output};
use super::progress::Bar;
use super::report::Transfer;
use super::{Means, Problem, accept, receive};
use crate::args::Get;
use crate::exit::Failure;
use crate::printer;

/// Bytes that are read at a time: one frame's worth waits between the file and the connection.
const BLOCK: usize = 256 * 1024;

/// What stands for stdin.
const STDIN: &str = "-";

/// Why an upload failed, where the server's status does not say.
#[derive(Debug)]
pub(crate) enum UploadError {
    /// The file, and why it cannot be read.
    Read(PathBuf, io::Error),
    /// The server answered, and takes no more.
    Part { status: StatusCode, sent: u64 },
    /// It is somewhere else.
    Moved { status: StatusCode, location: String },
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, error) => write!(f, "cannot read {}: {error}", file.display()),
            Self::Part { status, sent } => {
                write!(f, "the server answers {status} after {sent} bytes of it, and takes no more")
            }
            Self::Moved { status, location } => {
                let location = printer::printable(location);
                write!(
                    f,
                    "the server answers {status}: send it to {location}, which --upload does not follow"
                )
            }
        }
    }
}

/// Checks what can be checked before anybody is asked.
pub(super) fn check(args: &Get, uris: &[Uri]) -> Result<(), Failure> {
    let Some(path) = &args.upload else { return Ok(()) };
    if uris.len() > 1 {
        return Err(Failure::usage("--upload sends one file to one URL").hint("run it once for each URL"));
    }
    if is_stdin(path) {
        return if args.repeat > 1 {
            Err(Failure::usage("stdin can be sent once, and --repeat sends it again")
                .hint("name a file with --upload FILE"))
        } else {
            Ok(())
        };
    }
    let fail = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read {}: {error}", path.display()))
            .hint("name a file that can be read with --upload FILE, or - for stdin")
    };
    let about = std::fs::metadata(path).map_err(|error| fail(&error))?;
    if about.is_dir() {
        return Err(fail(&"it is a folder"));
    }
    // A pipe is opened once, by who reads it.
    if about.is_file() { std::fs::File::open(path).map(drop).map_err(|error| fail(&error)) } else { Ok(()) }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// Sends the file `path` and takes the answer to where it goes.
pub(super) async fn send(
    means: Means<'_>,
    uri: &Uri,
    path: &Path,
    destination: Destination,
    transfer: &mut Transfer,
) -> Result<(), Problem> {
    let output = Output::open(destination).await?;
    let source = Source::open(path).await?;
    let (feed, body) = Body::channel();
    let mut request = http::Request::builder().method(means.args.method.clone()).uri(uri.clone());
    if let Some(length) = source.length {
        request = request.header(header::CONTENT_LENGTH, length);
    }
    let request =
        request.body(body).map_err(|error| UploadError::Read(path.to_owned(), io::Error::other(error)))?;
    let shown = if is_stdin(path) { uri.path().to_owned() } else { path.display().to_string() };
    let bar = means.progress.bar(&shown, source.length);
    let mut feeding = Feeding(tokio::spawn(source.feed(feed, bar)));
    let response = means.client.send(request).await?;
    transfer.begin(&response);
    let status = response.status();
    if let Some(location) = response.headers().get(header::LOCATION).filter(|_| status.is_redirection()) {
        let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
        return Err(UploadError::Moved { status, location }.into());
    }
    accept(status)?;
    let mut reply = Reply::from(response);
    receive(&mut reply, output, means, uri, transfer).await?;
    // Some answer before they have read all. What is still under way then is theirs, too.
    let is_whole = reply.upload_sent().await?;
    let taken = (&mut feeding.0).await.unwrap_or(Fed { bytes: 0, is_whole: false });
    transfer.uploaded = Some(taken.bytes);
    // A server that has all of it may say that it wants no more (RFC 9114 section 4.1).
    if is_whole || taken.is_whole {
        Ok(())
    } else {
        Err(UploadError::Part { status, sent: taken.bytes }.into())
    }
}

/// The task that reads the file; it ends with its transfer.
struct Feeding(JoinHandle<Fed>);

impl Drop for Feeding {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the connection has taken.
struct Fed {
    bytes: u64,
    /// All of it.
    is_whole: bool,
}

/// What is sent.
struct Source {
    reader: Reader,
    /// Of a plain file: what is announced.
    length: Option<u64>,
}

enum Reader {
    File(File),
    /// What a thread reads, for what may keep a reader waiting: stdin, pipes. The process need not wait for it.
    Thread(mpsc::Receiver<io::Result<Bytes>>),
}

impl Source {
    async fn open(path: &Path) -> Result<Self, UploadError> {
        if is_stdin(path) {
            return Ok(Self::waiting(|| Ok(io::stdin())));
        }
        let fail = |error| UploadError::Read(path.to_owned(), error);
        // Of a pipe or a device nobody knows the length.
        if !tokio::fs::metadata(path).await.map_err(fail)?.is_file() {
            let path = path.to_owned();
            return Ok(Self::waiting(move || std::fs::File::open(path)));
        }
        let file = File::open(path).await.map_err(fail)?;
        let length = file.metadata().await.map_err(fail)?.len();
        Ok(Self { reader: Reader::File(file), length: Some(length) })
    }

    /// A thread's reading of what `open` gives.
    fn waiting<R: io::Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        let (blocks, reader) = mpsc::channel(1);
        std::thread::spawn(move || {
            let read = open().and_then(|mut source| {
                loop {
                    let mut block = vec![0; BLOCK];
                    let length = source.read(&mut block)?;
                    block.truncate(length);
                    if length == 0 || blocks.blocking_send(Ok(block.into())).is_err() {
                        return Ok(());
                    }
                }
            });
            if let Err(error) = read {
                // Who has left need not know.
                let _ = blocks.blocking_send(Err(error));
            }
        });
        Self { reader: Reader::Thread(reader), length: None }
    }

    /// Reads it to its end, or to the length that was announced: a file that grows meanwhile is sent as it was. One that
    /// shrinks fails, so that no server takes a part for the whole.
    async fn feed(mut self, feed: BodySender, bar: Bar) -> Fed {
        let mut bytes = 0;
        loop {
            let chunk = match self.read(bytes).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Fed { bytes, is_whole: feed.finish().await.is_ok() },
                Err(error) => {
                    let _ = feed.fail(error).await;
                    return Fed { bytes, is_whole: false };
                }
            };
            let length = chunk.len() as u64;
            if feed.send(chunk).await.is_err() {
                return Fed { bytes, is_whole: false };
            }
            bytes += length;
            bar.advance(length);
        }
    }

    /// The bytes behind the first `so_far`; `None` at the end.
    async fn read(&mut self, so_far: u64) -> io::Result<Option<Bytes>> {
        let file = match &mut self.reader {
            Reader::File(file) => file,
            Reader::Thread(blocks) => return blocks.recv().await.transpose(),
        };
        let left = self.length.unwrap_or(so_far).saturating_sub(so_far);
        if left == 0 {
            return Ok(None);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK);
        let mut block = BytesMut::with_capacity(most);
        if file.take(most as u64).read_buf(&mut block).await? == 0 {
            let reason = format!("the file has become shorter: {left} bytes are missing");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
        }
        Ok(Some(block.freeze()))
    }
}
