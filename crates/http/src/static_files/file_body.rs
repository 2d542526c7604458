//! A file, or a part of one, read while it is sent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::calls::Lane;
use super::read_budget::{Held, ReadBudget};

/// A client that takes longer for what was read last is slow: its response reads little, and nothing ahead.
const SLOW: Duration = Duration::from_secs(1);

/// Bytes that a slow client's response reads at once.
const SLOW_CHUNK: u64 = 32 * 1024;

/// Reads a part of a file in chunks; the next one is read ahead while the last is being sent, if the budget and the
/// client's pace permit it. Ends with an error ([`io::ErrorKind::UnexpectedEof`]) if the file has become shorter since
/// it was opened.
#[derive(Debug)]
pub(super) struct FileBody {
    state: State,
    /// Bytes not yet asked of the file system.
    remaining: u64,
    /// Bytes not yet handed on.
    unsent: u64,
    budget: ReadBudget,
    /// The room of the chunk that is or has been read, until it is handed on.
    ahead: Option<Held>,
    /// The room of the chunk that was handed on, and when: the transport has all of it when it asks for the next.
    handed_on: Option<(Held, Instant)>,
    is_slow: bool,
    lane: Lane,
}

#[derive(Debug)]
enum State {
    /// The first chunk, read when the file was opened.
    First(Bytes, File),
    /// Nothing is read before the transport asks.
    Waiting(File),
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
        budget: &ReadBudget,
        lane: &Lane,
    ) -> io::Result<Self> {
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
        }
        let length = end.saturating_sub(start);
        let ahead = budget.take(length);
        let (first, file) = read_chunk(file, ahead.bytes())?;
        Ok(Self {
            state: State::First(first, file),
            remaining: length - ahead.bytes(),
            unsent: length,
            budget: budget.clone(),
            ahead: Some(ahead),
            handed_on: None,
            is_slow: false,
            lane: lane.clone(),
        })
    }

    /// Begins to read the next chunk, in a task of its own.
    fn read(&mut self, file: File) -> State {
        let wanted = if self.is_slow { self.remaining.min(SLOW_CHUNK) } else { self.remaining };
        let room = self.budget.take(wanted);
        let length = room.bytes();
        self.remaining -= length;
        self.ahead = Some(room);
        let read = self.lane.clone().call(move || read_chunk(file, length));
        State::Reading(tokio::spawn(async move { read.await? }))
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if let Some((_, since)) = self.handed_on.take() {
            self.is_slow = since.elapsed() > SLOW;
        }
        if let State::Waiting(_) = &self.state
            && let State::Waiting(file) = std::mem::replace(&mut self.state, State::Over)
        {
            self.state = self.read(file);
        }
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
        self.handed_on = self.ahead.take().map(|room| (room, Instant::now()));
        if self.remaining > 0 {
            let reads_ahead = !self.is_slow && self.budget.permits_reading_ahead();
            self.state = if reads_ahead { self.read(file) } else { State::Waiting(file) };
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
    use super::super::read_budget::{CHUNK, PIECE, TOTAL};
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

    fn open(file: File, start: u64, end: u64, budget: &ReadBudget) -> FileBody {
        FileBody::open(file, start, end, budget, &Calls::default().below("file")).unwrap()
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
        let budget = ReadBudget::default();
        for length in [0, 1, 1000, CHUNK as usize - 1, CHUNK as usize, CHUNK as usize + 1, 700_000] {
            let (file, content) = sample(length);
            let body = open(file, 0, length as u64, &budget);
            assert_eq!(collect(body).await.unwrap(), content);
        }
        let (file, content) = sample(700_000);
        let body = open(file, 12_345, 654_321, &budget);
        assert_eq!(collect(body).await.unwrap(), content[12_345..654_321]);
        assert_eq!(budget.take(0).bytes(), 0);
        assert!(budget.permits_reading_ahead());
    }

    #[tokio::test]
    async fn a_file_that_shrinks_is_an_error_and_no_end() {
        let (file, _) = sample(700_000);
        let shorter = file.try_clone().unwrap();
        let body = open(file, 0, 700_000, &ReadBudget::default());
        shorter.set_len(400_000).unwrap();
        assert_eq!(collect(body).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Memory of all responses together, whatever their number.
    #[tokio::test]
    async fn responses_that_nobody_reads_share_one_budget() {
        const RESPONSES: usize = 500;
        let budget = ReadBudget::default();
        let content = vec![7; 700_000];
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all(&content).unwrap();
        let another = || open(file.reopen().unwrap(), 0, 700_000, &budget);
        let mut stalled = Vec::new();
        let mut held = 0;
        for _ in 0..RESPONSES {
            let mut body = another();
            held += next(&mut body).await.unwrap().unwrap().len() as u64;
            held += body.ahead.as_ref().map_or(0, Held::bytes);
            stalled.push(body);
        }
        assert!(held <= TOTAL + RESPONSES as u64 * PIECE, "{held}");
        // Another one goes on, in pieces.
        let mut body = another();
        assert_eq!(next(&mut body).await.unwrap().unwrap().len() as u64, PIECE);
        assert!(body.ahead.is_none());
        drop(stalled);
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!(rest, content[PIECE as usize..]);
    }

    /// As if the client had taken long for the last chunk.
    fn wait(body: &mut FileBody) {
        body.handed_on.as_mut().unwrap().1 -= 2 * SLOW;
    }

    #[tokio::test]
    async fn a_slow_client_holds_little() {
        let (file, content) = sample(900_000);
        let mut body = open(file, 0, 900_000, &ReadBudget::default());
        let mut all = next(&mut body).await.unwrap().unwrap().to_vec();
        assert_eq!(body.ahead.as_ref().map(Held::bytes), Some(CHUNK));
        wait(&mut body);
        all.extend_from_slice(&next(&mut body).await.unwrap().unwrap());
        assert!(body.ahead.is_none());
        wait(&mut body);
        let slow = next(&mut body).await.unwrap().unwrap();
        assert_eq!(slow.len() as u64, SLOW_CHUNK);
        all.extend_from_slice(&slow);
        // As soon as it takes what it gets, it is treated as others are.
        all.extend_from_slice(&next(&mut body).await.unwrap().unwrap());
        assert!(body.ahead.is_some());
        all.extend_from_slice(&body.collect().await.unwrap().to_bytes());
        assert_eq!(all, content);
    }
}
