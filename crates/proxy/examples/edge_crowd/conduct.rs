//! What clients do.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

use http::{Request, StatusCode, Uri};
use posthaste_service::Body;
use tokio::time::sleep;

use crate::connection::{Answer, Connection, Place, Way};
use crate::upstream::EVENTS;
use crate::{Result, check, content};

/// Bytes of a usual response, of one that takes its time, and of an upload.
const USUAL: u64 = 60_000;
const LARGE: u64 = 1_500_000;
const UPLOAD: u64 = 200_000;
/// Bytes that are uploaded at once.
const PIECE: u64 = 20_000;
/// A slow reader's pause between two pieces, and how many it makes.
const PAUSE: (Duration, u32) = (Duration::from_millis(20), 20);
/// Attempts to move, one a pause: a client may not before the handshake is confirmed and the server has given it an ID.
const MOVES: u32 = 100;
/// Messages of a WebSocket.
const MESSAGES: u64 = 5;

/// What a client does on its connection, behind a usual request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Conduct {
    /// Asks once more, and for a file that the edge has.
    Reads,
    ReadsSlowly,
    /// Uploads; the application says how much has come.
    Uploads,
    /// Gives an upload up.
    EndsUpload,
    /// Gives a response up.
    GivesUp,
    /// Over TCP: is gone in the middle of a response, by a reset. Over QUIC: goes on from another port.
    Leaves,
    /// Has a WebSocket.
    Talks,
    /// Reads events.
    Listens,
}

impl Conduct {
    pub(crate) const fn drawn(number: u64) -> Self {
        match number % 10 {
            0..=2 => Self::Reads,
            3 => Self::ReadsSlowly,
            4 => Self::Uploads,
            5 => Self::EndsUpload,
            6 => Self::GivesUp,
            7 => Self::Leaves,
            8 => Self::Talks,
            _ => Self::Listens,
        }
    }
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no response yet to a GET.
    Head,
    /// The response's body is on its way.
    Body,
    /// An upload, which is sent once only.
    Upload,
    Tunnel,
}

/// A client at work. What fails is the request of `step`, which began at `asked`.
pub(crate) struct Visit<'a> {
    place: &'a Place,
    way: Way,
    conduct: Conduct,
    pub(crate) step: Step,
    pub(crate) asked: SystemTime,
    pub(crate) requests: u64,
}

impl<'a> Visit<'a> {
    pub(crate) fn new(place: &'a Place, way: Way, conduct: Conduct) -> Self {
        Self { place, way, conduct, step: Step::Head, asked: SystemTime::now(), requests: 0 }
    }

    /// All that the client does.
    pub(crate) async fn run(&mut self) -> Result<()> {
        let vanishes = self.conduct == Conduct::Leaves;
        let mut connection = self.place.connect(self.way, vanishes).await?;
        let done = self.act(&mut connection).await;
        connection.close().await;
        done
    }

    async fn act(&mut self, connection: &mut Connection) -> Result<()> {
        self.fetch(connection, USUAL).await?;
        match self.conduct {
            Conduct::Reads => {
                self.fetch(connection, USUAL).await?;
                self.whole(connection, "/static/file", USUAL).await
            }
            Conduct::ReadsSlowly => self.read_slowly(connection).await,
            Conduct::Uploads => self.upload(connection).await,
            Conduct::EndsUpload => {
                self.end_upload(connection).await?;
                self.fetch_unless_spent(connection).await
            }
            Conduct::GivesUp => {
                let mut answer = self.ask(connection, &bytes(LARGE)).await?;
                check(&answer.chunk().await?.unwrap_or_default(), 0)?;
                drop(answer);
                self.fetch_unless_spent(connection).await
            }
            Conduct::Leaves => self.leave(connection).await,
            Conduct::Talks => self.talk(connection).await,
            Conduct::Listens => self.listen(connection).await,
        }
    }

    fn begin(&mut self, step: Step) {
        self.step = step;
        self.asked = SystemTime::now();
        self.requests += 1;
    }

    fn uri(&self, path: &str) -> Result<Uri> {
        self.place.uri(path)
    }

    /// Asks for a path; the response's head.
    async fn ask(&mut self, connection: &mut Connection, path: &str) -> Result<Answer> {
        self.begin(Step::Head);
        let answer = connection.get(&self.uri(path)?).await?;
        answer.expect(StatusCode::OK)?;
        self.step = Step::Body;
        Ok(answer)
    }

    async fn fetch(&mut self, connection: &mut Connection, length: u64) -> Result<()> {
        self.whole(connection, &bytes(length), length).await
    }

    /// Another request on the same connection, which is good for one unless it is HTTP/1.1's and was given up.
    async fn fetch_unless_spent(&mut self, connection: &mut Connection) -> Result<()> {
        if self.way == Way::Http1 { Ok(()) } else { self.fetch(connection, USUAL).await }
    }

    async fn whole(&mut self, connection: &mut Connection, path: &str, length: u64) -> Result<()> {
        let mut answer = self.ask(connection, path).await?;
        let mut offset = 0;
        while let Some(piece) = answer.chunk().await? {
            offset = check(&piece, offset)?;
        }
        expect_length(offset, length)
    }

    async fn read_slowly(&mut self, connection: &mut Connection) -> Result<()> {
        let mut answer = self.ask(connection, &bytes(LARGE)).await?;
        let (mut offset, mut pieces) = (0, 0);
        while let Some(piece) = answer.chunk().await? {
            offset = check(&piece, offset)?;
            pieces += 1;
            if pieces <= PAUSE.1 {
                sleep(PAUSE.0).await;
            }
        }
        expect_length(offset, LARGE)
    }

    async fn upload(&mut self, connection: &mut Connection) -> Result<()> {
        let (feed, body) = Body::channel();
        let request = Request::post(self.uri("/upload")?).body(body)?;
        let feeding = async move {
            for start in (0..UPLOAD).step_by(PIECE as usize) {
                feed.send(content(start, start + PIECE)).await?;
            }
            feed.finish().await
        };
        self.begin(Step::Upload);
        // A refused upload still has an answer.
        let (answer, _) = tokio::join!(connection.send(request), feeding);
        let mut answer = answer?;
        answer.expect(StatusCode::OK)?;
        let mut said = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            said.extend_from_slice(&piece);
        }
        expect_length(String::from_utf8(said)?.parse()?, UPLOAD)
    }

    /// Begins an upload, and ends before it does. What comes of it is the edge's business; the connection must remain good.
    async fn end_upload(&mut self, connection: &mut Connection) -> Result<()> {
        let (feed, body) = Body::channel();
        let request = Request::post(self.uri("/upload")?).body(body)?;
        self.begin(Step::Upload);
        let _ = tokio::join!(connection.send(request), async move { feed.send(content(0, PIECE)).await });
        Ok(())
    }

    async fn leave(&mut self, connection: &mut Connection) -> Result<()> {
        let mut answer = self.ask(connection, &bytes(LARGE)).await?;
        let mut offset = check(&answer.chunk().await?.unwrap_or_default(), 0)?;
        let Connection::Http3(client) = connection else { return Ok(()) };
        let mut attempts = 0;
        while let Err(error) = client.rebind((Ipv4Addr::LOCALHOST, 0).into()) {
            attempts += 1;
            if attempts == MOVES {
                return Err(error.into());
            }
            sleep(PAUSE.0).await;
        }
        while let Some(piece) = answer.chunk().await? {
            offset = check(&piece, offset)?;
        }
        expect_length(offset, LARGE)
    }

    async fn talk(&mut self, connection: &mut Connection) -> Result<()> {
        self.begin(Step::Tunnel);
        let mut tunnel = connection.open(&self.uri("/echo")?).await?;
        let mut offset = 0;
        for message in 0..MESSAGES {
            let end = offset + 1 + message * 3_000;
            tunnel.write(content(offset, end)).await?;
            while offset < end {
                let piece = tunnel.read().await?.ok_or("the WebSocket has ended")?;
                offset = check(&piece, offset)?;
            }
        }
        tunnel.end().await
    }

    async fn listen(&mut self, connection: &mut Connection) -> Result<()> {
        let mut answer = self.ask(connection, "/events").await?;
        let mut events = 0;
        while let Some(piece) = answer.chunk().await? {
            events += piece.split(|byte| *byte == b':').count() as u64 - 1;
        }
        expect_length(events, EVENTS)
    }
}

/// The path of a response with this many bytes.
fn bytes(length: u64) -> String {
    format!("/bytes/{length}")
}

/// # Errors
/// A body that looks whole has another length than it should have.
fn expect_length(came: u64, expected: u64) -> Result<()> {
    if came == expected { Ok(()) } else { Err(format!("WRONG length: {came} of {expected}").into()) }
}
