//! What the fuzz target `translate` does with an input: a request as it comes over HTTP/3, forwarded to an upstream whose
//! bytes are judged.
//!
//! The lowest bit of the first byte says that the stream is reset behind the rest, which is the stream's bytes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use posthaste_http3::{MessageKind, MessageReader, Part};
use posthaste_proxy::{Proxy, ProxyOptions, Upstream};
use posthaste_service::{Body, BodyError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tower_service::Service;

use crate::recorder::{Message, parse_and_rest};

/// Largest field section that is permitted, in bytes.
const MAX_SECTION: u64 = 32 * 1024;

/// Nothing takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request as the server reads it.
struct Read {
    head: http::Request<()>,
    frames: VecDeque<Result<Frame<Bytes>, BodyError>>,
}

impl Read {
    /// `None` if the bytes do not begin with a head.
    fn new(stream: &[u8], is_reset: bool) -> Option<Self> {
        let mut reader = MessageReader::new(MessageKind::Request, MAX_SECTION);
        let mut input = Bytes::copy_from_slice(stream);
        let Ok(Some(Part::Request(head))) = reader.next(&mut input) else { return None };
        let mut frames = VecDeque::new();
        let end = loop {
            match reader.next(&mut input) {
                Ok(Some(Part::Data(data))) => frames.push_back(Ok(Frame::data(data))),
                Ok(Some(Part::Trailers(fields))) => frames.push_back(Ok(Frame::trailers(fields))),
                Ok(Some(_)) => {}
                Ok(None) if is_reset => break Err(BodyError::Reset(0x10c)),
                Ok(None) => break reader.end().map_err(|error| BodyError::Malformed(error.to_string())),
                Err(error) => break Err(BodyError::Malformed(error.to_string())),
            }
        };
        frames.extend(end.err().map(Err));
        Some(Self { head, frames })
    }

    fn is_whole(&self) -> bool {
        self.frames.iter().all(Result::is_ok)
    }

    fn content(&self) -> Vec<u8> {
        let data = self.frames.iter().flatten().filter_map(Frame::data_ref);
        data.flat_map(|data| data.to_vec()).collect()
    }

    /// Whether a request at the upstream says what this one says.
    fn assert_said(&self, message: &Message) {
        let uri = self.head.uri();
        assert_eq!(message.method, self.head.method().as_str());
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        assert!(message.target == path || message.target == format!("/{path}"), "{message:?} of {path:?}");
        let host =
            uri.authority().map_or_else(|| self.head.headers()["host"].to_str().unwrap(), |it| it.as_str());
        assert_eq!(message.all("host"), [host]);
        assert_eq!(message.body, self.content());
    }
}

/// Frames that are there.
struct Ready(VecDeque<Result<Frame<Bytes>, BodyError>>);

impl http_body::Body for Ready {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// Runs an input to its end.
pub(crate) fn run(input: &[u8]) {
    thread_local! {
        static GROUND: (tokio::runtime::Runtime, tempfile::TempDir) = (
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            tempfile::tempdir().unwrap(),
        );
    }
    let Some((choice, stream)) = input.split_first() else { return };
    let is_reset = choice & 1 == 1;
    let (Some(read), Some(asked)) = (Read::new(stream, is_reset), Read::new(stream, is_reset)) else {
        return;
    };
    GROUND.with(|(runtime, folder)| runtime.block_on(judge(&read, asked, &folder.path().join("upstream"))));
}

async fn judge(read: &Read, asked: Read, socket: &std::path::Path) {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).unwrap();
    let upstream = Upstream::parse(&format!("unix:{}", socket.display()), None).unwrap();
    let mut proxy = Proxy::new(upstream, ProxyOptions::default()).unwrap();
    let mut links: Vec<Link> = Vec::new();
    let status = {
        let body = Body::new(Ready(asked.frames));
        let mut answering = proxy.call(asked.head.map(|()| body));
        let serving = serve(&listener, &mut links);
        let both = async {
            tokio::select! {
                answer = &mut answering => answer.unwrap(),
                never = serving => never,
            }
        };
        timeout(PATIENCE, both).await.unwrap_or_else(|_| panic!("no answer: {:?}", read.head)).status()
    };
    // What is kept or half sent ends with it.
    drop(proxy);
    let mut messages = Vec::new();
    for (mut link, mut bytes) in links {
        timeout(PATIENCE, link.read_to_end(&mut bytes)).await.expect("the connection does not end").unwrap();
        let (whole, rest) = parse_and_rest(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
        assert!(whole.is_empty() || rest.is_empty(), "something follows a request: {bytes:?}");
        messages.extend(whole);
    }
    assert!(messages.len() <= 1, "{messages:?}");
    for message in &messages {
        assert!(read.is_whole(), "{message:?} was not whole");
        read.assert_said(message);
    }
    assert_eq!(status.is_success(), messages.len() == 1, "{status}: {messages:?}");
}

type Link = (UnixStream, Vec<u8>);

/// Answers whole requests, each on a connection of its own, one after the other.
async fn serve(listener: &UnixListener, links: &mut Vec<Link>) -> http::Response<Body> {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        links.push((stream, Vec::new()));
        let Some((stream, bytes)) = links.last_mut() else { continue };
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            bytes.extend_from_slice(&buffer[..length]);
            let parsed = parse_and_rest(bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"));
            if !parsed.0.is_empty() {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            }
        }
    }
}
