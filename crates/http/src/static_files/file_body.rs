//! A file, or a part of one, read while it is sent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::JoinHandle;

use super::calls::Lane;

/// Bytes read at once.
const CHUNK: u64 = 256 * 1024;

/// Bytes read at once while more than [`FEW_TRANSFERS`] files are being sent.
const SMALL_CHUNK: u64 = 64 * 1024;

/// Up to so many files at a time are read in large chunks. Together with the server's limit of requests this
/// bounds the memory that slow readers can hold: 2 chunks each.
const FEW_TRANSFERS: usize = 256;

/// Counts the files that are being sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Transfers(Arc<AtomicUsize>);

impl Transfers {
    fn begin(&self) -> Transfer {
        self.0.fetch_add(1, Ordering::Relaxed);
        Transfer(self.clone())
    }

    fn chunk(&self) -> u64 {
        if self.0.load(Ordering::Relaxed) > FEW_TRANSFERS { SMALL_CHUNK } else { CHUNK }
    }
}

/// One file that is being sent.
#[derive(Debug)]
struct Transfer(Transfers);

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads a part of a file in chunks; the next one is read ahead while the last is being sent. Ends with an error
/// ([`io::ErrorKind::UnexpectedEof`]) if the file has become shorter since it was opened.
#[derive(Debug)]
pub(super) struct FileBody {
    state: State,
    /// Bytes not yet asked of the file system.
    remaining: u64,
    /// Bytes not yet handed on.
    unsent: u64,
    transfer: Transfer,
    lane: Lane,
}

#[derive(Debug)]
enum State {
    /// The first chunk, read when the file was opened.
    First(Bytes, File),
    Reading(JoinHandle<io::Result<(Bytes, File)>>),
    Over,
}

impl FileBody {
    /// Starts with the bytes from `start` to before `end`. Blocks: it reads the first chunk, so that a small file
    /// takes one trip to a blocking thread in all.
    pub(super) fn open(
        mut file: File,
        start: u64,
        end: u64,
        transfers: &Transfers,
        lane: &Lane,
    ) -> io::Result<Self> {
        let transfer = transfers.begin();
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
        }
        let length = end.saturating_sub(start);
        let (first, file) = read_chunk(file, length.min(transfers.chunk()))?;
        let remaining = length - first.len() as u64;
        Ok(Self { remaining, unsent: length, state: State::First(first, file), transfer, lane: lane.clone() })
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let (chunk, file) = match &mut self.state {
            State::Reading(read) => {
                let read = ready!(Pin::new(read).poll(cx));
                self.state = State::Over;
                read.map_err(io::Error::other)??
            }
            state => match std::mem::replace(state, State::Over) {
                State::First(chunk, file) => (chunk, file),
                _ => return Poll::Ready(Ok(None)),
            },
        };
        if self.remaining > 0 {
            let length = self.remaining.min(self.transfer.0.chunk());
            self.remaining -= length;
            // A task of its own, so that it is read while the last chunk is sent.
            let read = self.lane.clone().call(move || read_chunk(file, length));
            self.state = State::Reading(tokio::spawn(async move { read.await? }));
        }
        self.unsent -= chunk.len() as u64;
        Poll::Ready(Ok(Some(chunk).filter(|chunk| !chunk.is_empty())))
    }
}

impl http_body::Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.get_mut().poll_chunk(cx).map(|chunk| chunk.transpose().map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.unsent)
    }
}

/// Reads exactly `length` bytes.
fn read_chunk(file: File, length: u64) -> io::Result<(Bytes, File)> {
    let mut buffer = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    let read = (&file).take(length).read_to_end(&mut buffer)?;
    if (read as u64) < length {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the file became shorter while it was sent",
        ));
    }
    Ok((Bytes::from(buffer), file))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::super::calls::Calls;
    use super::*;

    async fn next(body: &mut FileBody) -> io::Result<Option<Bytes>> {
        body.frame().await.transpose().map(|frame| frame.map(|frame| frame.into_data().unwrap()))
    }

    async fn collect(mut body: FileBody) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        let length = body.size_hint().exact();
        while let Some(chunk) = next(&mut body).await? {
            assert!(chunk.len() as u64 <= CHUNK);
            all.extend_from_slice(&chunk);
        }
        assert_eq!(length, Some(all.len() as u64));
        assert!(body.is_end_stream());
        Ok(all)
    }

    fn open(file: File, start: u64, end: u64, transfers: &Transfers) -> FileBody {
        FileBody::open(file, start, end, transfers, &Calls::default().below("file")).unwrap()
    }

    fn sample(length: usize) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file.rewind().unwrap();
        (file, content)
    }

    #[tokio::test]
    async fn whole_files_and_parts_arrive_exactly() {
        let transfers = Transfers::default();
        for length in [0, 1, 1000, CHUNK as usize - 1, CHUNK as usize, CHUNK as usize + 1, 700_000] {
            let (file, content) = sample(length);
            let body = open(file, 0, length as u64, &transfers);
            assert_eq!(collect(body).await.unwrap(), content);
        }
        let (file, content) = sample(700_000);
        let body = open(file, 12_345, 654_321, &transfers);
        assert_eq!(collect(body).await.unwrap(), content[12_345..654_321]);
        assert_eq!(transfers.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_file_that_shrinks_is_an_error_and_no_end() {
        let (file, _) = sample(700_000);
        let shorter = file.try_clone().unwrap();
        let body = open(file, 0, 700_000, &Transfers::default());
        shorter.set_len(400_000).unwrap();
        assert_eq!(collect(body).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn many_transfers_use_small_chunks() {
        let transfers = Transfers::default();
        let many: Vec<_> = (0..=FEW_TRANSFERS).map(|_| transfers.begin()).collect();
        let (file, _) = sample(700_000);
        let mut body = open(file, 0, 700_000, &transfers);
        assert_eq!(next(&mut body).await.unwrap().unwrap().len() as u64, SMALL_CHUNK);
        drop(many);
        next(&mut body).await.unwrap();
        assert_eq!(next(&mut body).await.unwrap().unwrap().len() as u64, CHUNK);
    }
}
